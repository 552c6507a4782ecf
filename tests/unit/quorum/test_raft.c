/* The quorum's state machine over an in-memory disk: a sole voter's life, and the general rules
 * with three voters driven by hand. */
#include <stdio.h>
#include <stdlib.h>

#include "quorum/control.h"
#include "quorum/inside.h"
#include "support/fault.h"
#include "support/golden_dirs.h"
#include "support/memenv.h"
#include "support/test.h"
#include "wire/api_key.h"
#include "wire/error.h"

#define DIR "/d/__cluster_metadata-0"
#define FIRST_DIRECTORY ((struct uuid){{7}})

enum { COMMITS_MAX = 256 };

static struct bench {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct raft_load load;
    struct raft *raft;
    struct now now;
    struct voter_set static_voters;
    /* what the events told */
    int claims, resigns, failures, snapshots, snapshot_due;
    int32_t claim_epoch, leader_id, leader_epoch;
    int64_t snapshot_offset, committed_end;
    int commits;
    bool loaded, closed;
    enum err closed_err;
    char values[COMMITS_MAX][16]; /* of data records, in order */
    int values_n;
} b;

static void on_snapshot(void *ctx, int64_t offset, int32_t epoch, struct bytes batches)
{
    (void)ctx;
    (void)epoch;
    (void)batches;
    b.snapshots++;
    b.snapshot_offset = offset;
    b.committed_end = offset;
}

static void on_committed(void *ctx, const struct batch *batch)
{
    struct record_reader *r;
    struct record rec;
    bool end = false;
    (void)ctx;
    CU_ASSERT_EQUAL(batch->base_offset, b.committed_end); /* in order, once */
    b.committed_end = batch_next_offset(batch);
    b.commits++;
    if ((batch->attributes & BATCH_CONTROL) != 0)
        return;
    CU_ASSERT_EQUAL_FATAL(record_reader_new(batch, INT32_MAX, &r), ERR_NONE);
    while (record_reader_next(r, &rec, &end) == ERR_NONE && !end) {
        CU_ASSERT_FATAL(b.values_n < COMMITS_MAX);
        snprintf(b.values[b.values_n++], sizeof b.values[0], "%.*s", rec.value.n,
                 (const char *)rec.value.p);
    }
    record_reader_free(r);
}

static void on_leader(void *ctx, int32_t leader_id, int32_t epoch)
{
    (void)ctx;
    b.leader_id = leader_id;
    b.leader_epoch = epoch;
}

static void on_claim(void *ctx, int32_t epoch)
{
    (void)ctx;
    b.claims++;
    b.claim_epoch = epoch;
}

static void on_resign(void *ctx, int32_t epoch)
{
    (void)ctx;
    (void)epoch;
    b.resigns++;
}

static void on_snapshot_due(void *ctx)
{
    (void)ctx;
    b.snapshot_due++;
}

static void on_failed(void *ctx, enum err e, const char *what)
{
    (void)ctx;
    (void)e;
    (void)what;
    b.failures++;
}

static void on_loaded(struct raft_load *rl)
{
    (void)rl;
    b.loaded = true;
}

static void on_closed(void *ctx, enum err e)
{
    (void)ctx;
    b.closed = true;
    b.closed_err = e;
}

static void machine_new(uint64_t seed)
{
    memset(&b, 0, sizeof b);
    b.now = (struct now){1000000, 1700000000000};
    memfs_init(&b.fs, seed);
    memfs_mkdirs(&b.fs, "/d");
    memenv_init(&b.env, &b.fs, seed);
    timers_init(&b.timers);
}

static void machine_free(void)
{
    timers_close(&b.timers);
    memenv_close(&b.env);
    memfs_close(&b.fs);
}

static enum err format_disk(void)
{
    static const struct bytes record = {(const uint8_t *)"feature", 7};
    const struct raft_format f = {
        .node_id = 1,
        .directory_id = FIRST_DIRECTORY,
        .endpoint = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), 9092},
        .records = &record,
        .records_n = 1,
        .now = b.now,
    };
    return raft_format_standalone(&b.fs.disk, DIR, &f);
}

static void begin_load(void)
{
    b.loaded = false;
    b.claims = b.commits = b.values_n = b.snapshots = 0;
    b.committed_end = 0;
    b.load = (struct raft_load){
        .env = &b.env.env,
        .timers = &b.timers,
        .dir = DIR,
        .config = {.election_timeout_ms = 1000,
                   .fetch_timeout_ms = 2000,
                   .snapshot_max_new_bytes = 1 << 20,
                   .snapshot_max_interval_ms = 3600000,
                   .log = {.segment_bytes = 1 << 20,
                           .segment_ms = INT64_MAX,
                           .segment_index_bytes = 1 << 20,
                           .index_interval_bytes = 4096,
                           .flush_messages = INT64_MAX,
                           .flush_ms = INT64_MAX,
                           .max_compaction_lag_ms = INT64_MAX,
                           .producer_id_expiration_ms = INT64_MAX}},
        .node_id = 1,
        .directory_id = FIRST_DIRECTORY,
        .cluster_id = "cluster",
        .endpoint = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), 9092},
        .static_voters = &b.static_voters,
        .events = {.snapshot = on_snapshot,
                   .committed = on_committed,
                   .leader = on_leader,
                   .claim = on_claim,
                   .resign = on_resign,
                   .snapshot_due = on_snapshot_due,
                   .failed = on_failed},
        .now = b.now,
        .done = on_loaded,
    };
    raft_load_start(&b.load);
    memenv_run_jobs(&b.env);
    memenv_reap_jobs(&b.env);
}

/* Settles until nothing moves and no job is left. */
static void settle(void)
{
    bool moved = true;
    for (int i = 0; i < 1000 && (moved || b.env.waiting_n > 0) && !b.closed; i++) {
        moved = memenv_run_jobs(&b.env) > 0;
        moved |= memenv_reap_jobs(&b.env) > 0;
        if (b.raft != NULL && !b.closed)
            moved |= raft_settle(b.raft, b.now);
    }
    CU_ASSERT_FALSE(moved && !b.closed);
}

static enum err start(void)
{
    begin_load();
    CU_ASSERT(b.loaded);
    enum err e = b.load.err;
    if (e == ERR_NONE)
        e = raft_open(&b.load, &b.raft);
    raft_load_close(&b.load);
    if (e == ERR_NONE)
        settle();
    return e;
}

static void stop(void)
{
    b.closed = false;
    if (b.raft == NULL)
        return;
    raft_close(b.raft, on_closed, NULL);
    b.raft = NULL;
    while (!b.closed && (memenv_run_jobs(&b.env) > 0 || memenv_reap_jobs(&b.env) > 0))
        ;
    CU_ASSERT(b.closed);
    b.closed = false;
}

static enum err append(const char *text, int64_t *last)
{
    const struct bytes value = {(const uint8_t *)text, (int32_t)strlen(text)};
    return raft_append(b.raft, raft_epoch(b.raft), &value, 1, b.now, last);
}

/* ------------------------------------------------------------------ a sole voter */

static void test_raft_sole_voter_leads_at_once(void)
{
    int64_t last;
    machine_new(1);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(raft_state(b.raft), RAFT_LEADER);
    CU_ASSERT_EQUAL(raft_epoch(b.raft), 1);
    CU_ASSERT_EQUAL(b.claims, 1);
    CU_ASSERT_EQUAL(b.leader_id, 1);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 3); /* LeaderChange, KRaftVersion, Voters */
    CU_ASSERT_EQUAL(append("one", &last), ERR_NONE);
    CU_ASSERT_EQUAL(last, 3);
    CU_ASSERT_EQUAL(raft_high_watermark(b.raft), 3); /* not before it is synced */
    CU_ASSERT_EQUAL(b.values_n, 0);
    settle();
    CU_ASSERT_EQUAL(raft_high_watermark(b.raft), 4);
    CU_ASSERT_STRING_EQUAL(b.values[0], "one");
    stop();
    machine_free();
}

static void test_raft_restart_raises_the_epoch(void)
{
    int64_t last;
    machine_new(2);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    for (int i = 1; i <= 4; i++) {
        char text[8];
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
        CU_ASSERT(raft_epoch(b.raft) >= i);
        CU_ASSERT_EQUAL(b.values_n, i - 1); /* all earlier ones, before the claim */
        CU_ASSERT_EQUAL(b.claims, 1);
        snprintf(text, sizeof text, "v%d", i);
        CU_ASSERT_EQUAL(append(text, &last), ERR_NONE);
        settle();
        const int32_t epoch = raft_epoch(b.raft);
        stop();
        struct quorum_state s;
        CU_ASSERT_EQUAL(quorum_state_read(&b.fs.vfs, DIR, &s), ERR_NONE);
        CU_ASSERT(s.epoch == epoch && s.leader_id == 1 && s.data_version == 1);
    }
    machine_free();
}

static void test_raft_opens_kafkas_directories(void)
{
    static const char *const kinds[] = {"clean", "killed"};
    for (size_t i = 0; i < ARRAY_N(kinds); i++) {
        char dir[512];
        machine_new(3);
        snprintf(dir, sizeof dir, "%s/%s/__cluster_metadata-0", golden_dirs(), kinds[i]);
        memfs_import(&b.fs, dir, DIR);
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE); /* static voters: those of quorum-state */
        CU_ASSERT_EQUAL(raft_state(b.raft), RAFT_LEADER);
        CU_ASSERT(raft_epoch(b.raft) >= 3);
        CU_ASSERT(b.commits > 50);
        CU_ASSERT_EQUAL(b.claims, 1);
        struct quorum_state s;
        CU_ASSERT_EQUAL(quorum_state_read(&b.fs.vfs, DIR, &s), ERR_NONE);
        CU_ASSERT(s.data_version == 0 && s.voters_n == 1 && s.voters[0] == 1);
        stop();
        machine_free();
    }
}

static void test_raft_refuses_other_quorums(void)
{
    machine_new(4);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    begin_load();
    b.load.node_id = 2; /* another node's directory */
    CU_ASSERT_EQUAL(raft_open(&b.load, &b.raft), ERR_INVALID);
    CU_ASSERT(strstr(b.load.message, "voter") != NULL);
    raft_load_close(&b.load);
    stop();
    machine_free();
}

static void test_raft_snapshot_trims_and_restarts(void)
{
    int64_t last;
    machine_new(5);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    for (int round = 0; round < 3; round++) {
        CU_ASSERT_EQUAL(append("x", &last), ERR_NONE);
        settle();
        const struct bytes state = {(const uint8_t *)"state", 5};
        CU_ASSERT_EQUAL(raft_snapshot(b.raft, b.committed_end, &state, 1, b.now), ERR_NONE);
        CU_ASSERT_EQUAL(raft_snapshot(b.raft, b.committed_end, &state, 1, b.now), ERR_BUSY);
        settle();
    }
    const int64_t newest = b.committed_end;
    CU_ASSERT_EQUAL(append("behind", &last), ERR_NONE);
    settle();
    stop();
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(b.snapshots, 1);
    CU_ASSERT_EQUAL(b.snapshot_offset, newest);
    CU_ASSERT_EQUAL(b.values_n, 1); /* only what is behind the snapshot */
    CU_ASSERT_STRING_EQUAL(b.values[0], "behind");
    CU_ASSERT(log_start_offset(raft_log(b.raft)) > 0);
    stop();
    machine_free();
}

static void test_raft_snapshot_is_due_by_bytes(void)
{
    static char big[300000];
    int64_t last;
    memset(big, 'x', sizeof big - 1);
    machine_new(6);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(b.snapshot_due, 0);
        CU_ASSERT_EQUAL(append(big, &last), ERR_NONE);
        settle();
    }
    CU_ASSERT_EQUAL(b.snapshot_due, 1);
    stop();
    machine_free();
}

/* ------------------------------------------------------------------ the vote table */

static struct raft *hand_made(void)
{
    machine_new(9);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    struct raft *r = b.raft;
    r->voters.n = 3; /* two others join by hand */
    r->voters.v[1] = (struct voter){.id = 2, .directory_id = {{2}}};
    r->voters.v[2] = (struct voter){.id = 3, .directory_id = {{3}}};
    return r;
}

static void to_state(struct raft *r, enum raft_state s, int32_t epoch)
{
    raft_become_resigned(r);
    raft_become_unattached(r, epoch, -1);
    settle();
    switch (s) {
    case RAFT_UNATTACHED:
        break;
    case RAFT_PROSPECTIVE:
        raft_become_prospective(r);
        break;
    case RAFT_CANDIDATE:
        raft_become_prospective(r);
        raft_become_candidate(r);
        break;
    case RAFT_FOLLOWER:
        raft_become_follower(r, epoch, 3);
        break;
    case RAFT_LEADER:
        raft_become_prospective(r);
        raft_become_candidate(r);
        settle();
        raft_become_leader(r);
        break;
    case RAFT_RESIGNED:
        raft_become_resigned(r);
        break;
    }
    settle();
}

static struct vote_response_partition_data ask(struct raft *r, bool pre, int32_t epoch,
                                               int32_t last_epoch, int64_t end)
{
    struct vote_request_partition_data part = {
        .replica_epoch = epoch,
        .replica_id = 2,
        .replica_directory_id = {{2}},
        .voter_directory_id = FIRST_DIRECTORY,
        .last_offset_epoch = last_epoch,
        .last_offset = end,
        .pre_vote = pre,
    };
    struct vote_request_topic_data topic = {.topic_name = STR_LIT("__cluster_metadata")};
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    struct vote_request req = {.cluster_id = STR_LIT("cluster"), .voter_id = 1};
    req.topics.v = &topic;
    req.topics.n = 1;
    struct vote_response resp;
    struct arena a;
    arena_init(&a, NULL);
    raft_handle_vote(r, &req, b.now, &a, &resp);
    CU_ASSERT_EQUAL(resp.error_code, K_NONE);
    CU_ASSERT_EQUAL_FATAL(resp.topics.n, 1);
    const struct vote_response_partition_data out = resp.topics.v[0].partitions.v[0];
    arena_close(&a);
    return out;
}

/* quorum.md section 1: state x kind of vote, with a log that is new enough and one that is not. */
static void test_raft_vote_table(void)
{
    static const struct {
        enum raft_state state;
        bool pre_vote, vote; /* granted with a good log, in the own epoch */
    } table[] = {
        {RAFT_UNATTACHED, true, true}, {RAFT_PROSPECTIVE, true, true},
        {RAFT_CANDIDATE, true, false}, {RAFT_LEADER, false, false},
        {RAFT_FOLLOWER, true, false},  {RAFT_RESIGNED, true, false},
    };
    for (size_t i = 0; i < ARRAY_N(table); i++) {
        for (int pre = 0; pre <= 1; pre++) {
            for (int good = 0; good <= 1; good++) {
                struct raft *r = hand_made();
                to_state(r, table[i].state, 10);
                const int32_t epoch = raft_epoch(r);
                const int64_t end = raft_end_offset(r);
                const int32_t own = raft_last_epoch(r);
                const int32_t last = !pre && own >= epoch ? epoch - 1 : own; /* a leader's own */
                const struct vote_response_partition_data got =
                    ask(r, pre, epoch, last, good ? end : end - 1);
                const bool expected = good && (pre ? table[i].pre_vote : table[i].vote);
                CU_ASSERT_EQUAL(got.error_code, K_NONE);
                CU_ASSERT_EQUAL(got.vote_granted, expected);
                CU_ASSERT_EQUAL(got.leader_epoch, epoch);
                CU_ASSERT_EQUAL(raft_state(r), table[i].state); /* asking changes nothing */
                if (expected && !pre)
                    CU_ASSERT_FALSE(raft_is_durable(r)); /* the answer waits for the disk */
                settle();
                stop();
                machine_free();
            }
        }
    }
}

static void test_raft_votes_once_in_an_epoch(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    const int64_t end = raft_end_offset(r);
    CU_ASSERT(ask(r, false, 10, raft_last_epoch(r), end).vote_granted);
    settle();
    CU_ASSERT(ask(r, false, 10, raft_last_epoch(r), end).vote_granted); /* the same again */
    r->voted_id = 3;
    CU_ASSERT_FALSE(ask(r, false, 10, raft_last_epoch(r), end).vote_granted);
    CU_ASSERT(
        ask(r, false, 11, raft_last_epoch(r), end).vote_granted); /* a new epoch, a new vote */
    CU_ASSERT_EQUAL(raft_epoch(r), 11);
    settle();
    struct quorum_state s;
    CU_ASSERT_EQUAL(quorum_state_read(&b.fs.vfs, DIR, &s), ERR_NONE);
    CU_ASSERT(s.epoch == 11 && s.voted_id == 2);
    stop();
    machine_free();
}

static void test_raft_vote_checks(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    const int64_t end = raft_end_offset(r);
    CU_ASSERT_EQUAL(ask(r, false, 9, 1, end).error_code, K_FENCED_LEADER_EPOCH);
    CU_ASSERT_EQUAL(ask(r, false, 10, 10, end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, true, 10, 11, end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, true, 10, 10, end).error_code, K_NONE);
    CU_ASSERT_EQUAL(ask(r, false, 10, -1, end).error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(ask(r, false, 10, 1, -1).error_code, K_INVALID_REQUEST);
    r->node_id = 5; /* the request names voter 1 */
    CU_ASSERT_EQUAL(ask(r, false, 12, 1, end).error_code, K_INVALID_VOTER_KEY);
    CU_ASSERT_EQUAL(raft_epoch(r), 12); /* the epoch is adopted before that is looked at */
    r->node_id = 1;
    settle();
    stop();
    machine_free();
}

static void test_raft_follower_refuses_pre_votes_once_it_fetched(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_FOLLOWER, 10);
    r->fetched = true;
    CU_ASSERT_FALSE(ask(r, true, 10, raft_last_epoch(r), raft_end_offset(r)).vote_granted);
    settle();
    stop();
    machine_free();
}

/* ------------------------------------------------------------------ three voters */

static int messages(struct raft *r, bool pre_vote)
{
    struct raft_message *m;
    int n = 0;
    while ((m = raft_next_message(r)) != NULL) {
        CU_ASSERT(m->api_key == API_VOTE && m->pre_vote == pre_vote && m->to_id != 1);
        free(m);
        n++;
    }
    return n;
}

static void respond(struct raft *r, int32_t id, bool pre, bool granted)
{
    raft_handle_vote_response(r, id, (struct uuid){{(uint8_t)id}}, pre, raft_epoch(r), granted,
                              raft_epoch(r), -1, b.now);
}

static void test_raft_election_of_three(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_UNATTACHED, 10);
    raft_become_prospective(r);
    CU_ASSERT_EQUAL(raft_epoch(r), 10); /* asking first costs no epoch */
    CU_ASSERT_EQUAL(messages(r, true), 2);
    respond(r, 2, true, true);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE);
    CU_ASSERT_EQUAL(raft_epoch(r), 11);
    CU_ASSERT_EQUAL(messages(r, false), 0); /* not before the vote for itself is on disk */
    settle();
    CU_ASSERT_EQUAL(messages(r, false), 2);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE);
    respond(r, 3, false, true);
    settle();
    CU_ASSERT_EQUAL(raft_state(r), RAFT_LEADER);
    CU_ASSERT_EQUAL(b.leader_epoch, 11);
    stop();
    machine_free();
}

static void test_raft_refused_majority(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_PROSPECTIVE, 10);
    respond(r, 2, true, false);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_PROSPECTIVE);
    respond(r, 3, true, false);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_UNATTACHED);
    CU_ASSERT_EQUAL(raft_epoch(r), 10);
    to_state(r, RAFT_CANDIDATE, 20);
    respond(r, 2, false, false);
    respond(r, 3, false, false);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_CANDIDATE); /* waits for its timer */
    raft_handle_vote_response(r, 2, (struct uuid){{2}}, false, 21, false, 30, 3, b.now);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_FOLLOWER);
    CU_ASSERT_EQUAL(raft_epoch(r), 30);
    settle();
    stop();
    machine_free();
}

/* HW: majority, own share only when synced, above the epoch's start, never back. */
static void test_raft_high_watermark_of_three(void)
{
    int64_t last;
    struct raft *r = hand_made();
    const int64_t before = raft_high_watermark(r);
    to_state(r, RAFT_LEADER, 10);
    const int64_t start_offset = r->epoch_start_offset;
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* nobody else has the new epoch yet */
    raft_handle_fetch_position(r, 2, (struct uuid){{2}}, start_offset, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* the epoch's start itself is not enough */
    raft_handle_fetch_position(r, 9, (struct uuid){{9}}, start_offset + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* an observer is not counted */
    raft_handle_fetch_position(r, 2, (struct uuid){{5}}, start_offset + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), before); /* nor a replaced disk of a voter */
    raft_handle_fetch_position(r, 2, (struct uuid){{2}}, start_offset + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), start_offset + 1);
    CU_ASSERT_EQUAL(append("x", &last), ERR_NONE);
    raft_handle_fetch_position(r, 3, (struct uuid){{3}}, last + 1, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), start_offset + 1); /* ours is not synced, 2 lags */
    settle();
    CU_ASSERT_EQUAL(raft_high_watermark(r), last + 1);
    raft_handle_fetch_position(r, 3, (struct uuid){{3}}, start_offset, b.now);
    raft_handle_fetch_position(r, 2, (struct uuid){{2}}, start_offset, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(r), last + 1);
    stop();
    machine_free();
}

static void test_raft_leader_resigns_without_its_voters(void)
{
    struct raft *r = hand_made();
    to_state(r, RAFT_LEADER, 10);
    raft_handle_fetch_position(r, 2, (struct uuid){{2}}, raft_end_offset(r), b.now);
    settle();
    b.resigns = 0;
    b.now.mono_us += 3000001;
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_LEADER);
    b.now.mono_us += 3000001;
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_RESIGNED);
    settle();
    CU_ASSERT_EQUAL(b.resigns, 1);
    b.now.mono_us += 2000001;
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_EQUAL(raft_state(r), RAFT_UNATTACHED);
    CU_ASSERT_EQUAL(raft_epoch(r), 12);
    settle();
    stop();
    machine_free();
}

/* ------------------------------------------------------------------ faults */

/* One life: format, start, append, snapshot, stop. Returns the values known to be committed. */
static int life(void)
{
    int64_t last;
    int committed = 0;
    if (format_disk() != ERR_NONE)
        return 0;
    begin_load();
    if (!b.loaded || b.load.err != ERR_NONE || raft_open(&b.load, &b.raft) != ERR_NONE) {
        raft_load_close(&b.load);
        return 0;
    }
    raft_load_close(&b.load);
    settle();
    for (int i = 0; i < 3; i++) {
        char text[8];
        snprintf(text, sizeof text, "v%d", i);
        if (append(text, &last) != ERR_NONE)
            break;
        settle();
        committed = b.values_n;
        const struct bytes state = {(const uint8_t *)"s", 1};
        if (i == 1 && raft_snapshot(b.raft, b.committed_end, &state, 1, b.now) == ERR_NONE)
            settle();
    }
    return committed;
}

/* Every file operation fails for good, then the power goes: epochs never fall, what was committed
 * is there. */
static void test_raft_survives_every_file_fault(void)
{
    long points = 0;
    for (long nth = 1;; nth++) {
        struct rng rng = {(uint64_t)nth};
        machine_new((uint64_t)nth);
        memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = nth, .persistent = true, .err = ERR_IO});
        life();
        const int64_t committed_end = b.committed_end;
        const int32_t epoch = b.leader_epoch;
        const bool hit = memfs_fault_hit(&b.fs);
        stop();
        memenv_drop_jobs(&b.env);
        memfs_crash(&b.fs, &rng);
        if (epoch > 0) {
            CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
            CU_ASSERT(raft_epoch(b.raft) > epoch);
            CU_ASSERT(raft_end_offset(b.raft) >= committed_end);
            stop();
        }
        machine_free();
        if (!hit)
            break;
        points++;
    }
    printf("quorum: %ld file operations failed\n", points);
    CU_ASSERT(points > 30);
}

static void test_raft_survives_every_allocation_fault(void)
{
    long points = 0;
    for (long nth = 1;; nth++) {
        machine_new((uint64_t)nth);
        fault_alloc_arm(nth, false);
        life();
        const bool hit = fault_alloc_hit();
        stop();
        machine_free();
        if (!hit)
            break;
        points++;
    }
    printf("quorum: %ld allocations failed\n", points);
    CU_ASSERT(points > 30);
}

TEST_MAIN(TEST(test_raft_sole_voter_leads_at_once), TEST(test_raft_restart_raises_the_epoch),
          TEST(test_raft_opens_kafkas_directories), TEST(test_raft_refuses_other_quorums),
          TEST(test_raft_snapshot_trims_and_restarts), TEST(test_raft_snapshot_is_due_by_bytes),
          TEST(test_raft_vote_table), TEST(test_raft_votes_once_in_an_epoch),
          TEST(test_raft_vote_checks), TEST(test_raft_follower_refuses_pre_votes_once_it_fetched),
          TEST(test_raft_election_of_three), TEST(test_raft_refused_majority),
          TEST(test_raft_high_watermark_of_three),
          TEST(test_raft_leader_resigns_without_its_voters),
          TEST(test_raft_survives_every_file_fault),
          TEST(test_raft_survives_every_allocation_fault))
