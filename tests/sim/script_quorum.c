/* Voters that come back. */
#include "quorum/inside.h"
#include "script.h"
#include "scripts.h"
#include "support/node/model.h"

static int32_t epoch_at(int32_t id)
{
    return script_raft(id) == NULL ? -1 : raft_epoch(script_raft(id));
}

/* K2 (KAFKA-10527): the leader of epoch e starts again at once: it never leads in e, nor in e + 1,
 * which belongs to who stands while it waits. */
void script_k2(void)
{
    script_begin(3, "");
    script_topic((int32_t[]){1, 2, 3}, 3);
    for (int i = 0; i < 3; i++) {
        UNTIL(script_controller() != 0);
        const int32_t leader = script_controller(), epoch = epoch_at(leader);
        script_kill(leader);
        script_start(leader);
        UNTIL(script_controller() != 0);
        NOW(script_controller() != leader || epoch_at(leader) >= epoch + 2);
        UNTIL(script_up(leader));
    }
    script_end();
}

/* K4 (KAFKA-15489): a leader that hears no voter resigns by itself, within the window in which it
 * heard them last and one more. */
void script_k4(void)
{
    enum { TWO_WINDOWS_MS = 6200 };
    script_begin(3, "");
    script_topic((int32_t[]){1, 2, 3}, 3);
    const int32_t leader = script_controller();
    script_isolate(leader);
    script_pass(TWO_WINDOWS_MS);
    NOW(script_raft(leader)->state != RAFT_LEADER);
    UNTIL(script_controller() != 0);
    NOW(script_controller() != leader);
    script_end();
}

/* K5 (KIP-996, KAFKA-16164): a voter that heard nobody for a minute has not raised its epoch, and
 * disturbs nobody when it hears them again. */
void script_k5(void)
{
    enum { AWAY_MS = 60000 };
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "");
    script_topic((int32_t[]){1, 2, 3}, 3);
    const int32_t leader = script_controller(), epoch = epoch_at(leader);
    script_others(leader, id);
    script_isolate(id[0]);
    script_pass(AWAY_MS);
    NOW(epoch_at(id[0]) == epoch && script_controller() == leader && epoch_at(leader) == epoch);
    script_heal();
    UNTIL(!script_broker(id[0])->fenced);
    script_pass(5000);
    NOW(script_controller() == leader && epoch_at(leader) == epoch);
    script_end();
}

/* K6 (KAFKA-17641): b alone misses the leader, whom c hears: c refuses b's pre-votes, whose log is
 * as good as its own, and nobody is disturbed. When the leader dies one is found. */
void script_k6(void)
{
    enum { AWAY_MS = 4000 }; /* before its session ends, which the log would tell of */
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "");
    script_topic((int32_t[]){1, 2, 3}, 3);
    const int32_t leader = script_controller(), epoch = epoch_at(leader);
    script_others(leader, id);
    script_block(leader, id[0]);
    script_block(id[0], leader);
    UNTIL(script_raft(id[0])->state == RAFT_PROSPECTIVE);
    script_pass(AWAY_MS);
    NOW(script_controller() == leader && epoch_at(leader) == epoch && epoch_at(id[1]) == epoch);
    script_kill(leader);
    UNTIL(script_controller() != 0);
    script_end();
}

/* K10 (KIP-853), static voters: one voter's disk is replaced. It has forgotten its epoch and its
 * votes, learns both from the others, and all that was committed is there. */
void script_k10(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=2\n");
    const int32_t leader = script_controller(), epoch = epoch_at(leader);
    script_others(leader, id);
    script_topic((int32_t[]){leader, id[0], id[1]}, 3);
    script_write(leader, -1);
    script_kill(id[0]);
    script_wipe(id[0]);
    script_start(id[0]);
    UNTIL(script_part(id[0]) != NULL && script_end_of(id[0]) == 1 && script_in_isr(id[0]));
    NOW(epoch_at(id[0]) >= epoch);
    script_kill(leader);
    UNTIL(script_controller() != 0);
    NOW(epoch_at(script_controller()) > epoch);
    script_end();
}
