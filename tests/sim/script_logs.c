/* What followers cut from their logs, and what they keep. */
#include "script.h"
#include "scripts.h"
#include "support/node/model.h"

/* S1 (KAFKA-1211, KIP-101), the 0.10 era's loss. m2 is on b, a and c, and acknowledged, but a and c
 * have not heard of that: their high watermarks are 1. b dies, a leads, and c, who follows it now,
 * must not cut to its high watermark: a dies before it could give m2 back, and c is left. */
void script_s1(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    struct script_write m2;
    script_begin(5, "min.insync.replicas=2\n");
    script_others(script_controller(), id);
    const int32_t b = id[0], a = id[1], c = id[2], all[] = {b, a, c};
    script_topic(all, 3);
    script_write(b, -1);
    UNTIL(script_hw(a) == 1 && script_hw(c) == 1);
    script_write_begin(&m2, b, -1);
    UNTIL(script_end_of(a) == 2 && script_end_of(c) == 2);
    script_block(b, a); /* the answers that would tell */
    script_block(b, c);
    UNTIL(script_write_ended(&m2));
    NOW(m2.error == 0 && script_hw(b) == 2 && script_hw(a) == 1 && script_hw(c) == 1);
    script_hold_fetches(c, a, true);
    script_kill(b);
    const int32_t epoch = script_epoch_of(c);
    UNTIL(script_leads(a) && script_epoch_of(c) > epoch);
    script_kill(a);
    UNTIL(script_leads(c));
    script_heal();
    script_start(a);
    script_start(b);
    UNTIL(script_in_isr(a) && script_in_isr(b));
    script_write(c, -1);
    script_end();
}

/* S2 (KIP-101), the 0.10 era's divergence: m2 is on a alone, whose high watermark it is under, when
 * a dies; b leads (unclean, as is allowed here) and writes m3 where m2 was. a comes back: its
 * log ends at its high watermark, and is to be cut all the same. */
void script_s2(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=1\nunclean.leader.election.enable=true\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], both[] = {a, b};
    script_topic(both, 2);
    script_write(a, -1);
    UNTIL(script_end_of(b) == 1 && script_hw(b) == 1);
    script_hold_fetches(b, a, true);
    script_write(a, 1);
    UNTIL(!script_in_isr(b) && script_hw(a) == 2);
    script_pass(6000); /* it is in the checkpoint */
    script_allow_loss();
    script_kill(a);
    UNTIL(script_leads(b));
    NOW(script_end_of(b) == 1);
    script_write(b, 1);
    script_hold_fetches(b, a, false);
    script_start(a);
    UNTIL(script_part(a) != NULL && script_in_isr(a));
    script_write(b, 1);
    script_end();
}

/* S7 (KAFKA-10706): b led an epoch in which nothing was written, then a leads another one. b's own
 * epoch is one that a lacks: it is dropped, once, and b is in sync. */
void script_s7(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    script_begin(3, "min.insync.replicas=1\n");
    script_others(script_controller(), id);
    const int32_t a = id[0], b = id[1], both[] = {a, b};
    script_topic(both, 2);
    script_write(a, -1);
    UNTIL(script_hw(b) == 1);
    script_stop(a);
    UNTIL(script_leads(b));
    NOW(log_epochs(script_part(b)->log)->n == 2);
    script_start(a);
    UNTIL(script_in_isr(a) && script_up(a));
    NOW(log_epochs(script_part(a)->log)->n == 1);
    script_elect(a);
    UNTIL(script_leads(a) && script_epoch_of(b) == script_epoch_of(a));
    UNTIL(log_epochs(script_part(b)->log)->n == 1);
    script_write(a, -1);
    NOW(script_in_isr(b) && log_epochs(script_part(a)->log)->n == 2);
    UNTIL(script_hw(b) == 2);
    script_end();
}

/* S32: what a leader knew of its followers in an epoch says nothing in a later one. a led and saw c
 * at 2; b led with 1 and c cut to that; a leads again and hears of both changes at once: m2, which
 * it has, is not committed before c has fetched it again. */
void script_s32(void)
{
    int32_t id[SCRIPT_NODES_MAX];
    struct script_write m2;
    script_begin(5, "min.insync.replicas=2\n");
    script_others(script_controller(), id);
    const int32_t ctrl = script_controller();
    const int32_t b = id[0], a = id[1], c = id[2], far = id[3], all[] = {b, a, c};
    script_topic(all, 3);
    script_kill(b); /* so that a leads, whom nobody prefers */
    UNTIL(script_leads(a));
    script_start(b);
    UNTIL(script_in_isr(b) && script_in_isr(c));
    script_write(a, -1);
    UNTIL(script_hw(b) == 1 && script_hw(c) == 1);
    script_hold_fetches(b, a, true);
    script_write_begin(&m2, a, -1);
    UNTIL(script_end_of(c) == 2);
    const struct partition *p = script_part(a);
    UNTIL(partition_follower(p, c)->end_offset == 2);
    NOW(script_hw(a) == 1 && script_end_of(b) == 1 && script_in_isr(b));
    script_block(ctrl, a); /* a hears of nothing */
    script_block(far, a);
    script_block(b, a);
    script_block(c, a);
    script_elect(b);
    UNTIL(script_leads(b) && script_end_of(c) == 1);
    NOW(script_leads(a));
    script_hold_fetches(c, a, true);
    world_stop(script_world(b));
    UNTIL(script_state()->leader == a && script_in_isr(c));
    script_heal();
    const int32_t epoch = script_state()->leader_epoch;
    UNTIL(script_epoch_of(a) == epoch && script_leads(a));
    script_pass(100);
    NOW(script_hw(a) == 1 && script_end_of(a) == 2 && !(script_write_ended(&m2) && m2.error == 0));
    script_hold_fetches(c, a, false);
    UNTIL(script_hw(a) == 2);
    NOW(script_end_of(c) == 2);
    UNTIL(script_world(b)->node == NULL);
    script_end();
}
