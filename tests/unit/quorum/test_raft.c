/* A sole voter's life over an in-memory disk: starting, its first batch, the commit stream,
 * snapshots, a full disk, and what it refuses. */
#include "base/endian.h"
#include "raft_bench.h"
#include "support/golden_dirs.h"

/* ------------------------------------------------------------------ starting */

static void test_raft_sole_voter_leads_at_once(void)
{
    int64_t last;
    machine_new(1);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE); /* no time passes */
    CU_ASSERT_EQUAL(raft_state(b.raft), RAFT_LEADER);
    CU_ASSERT_EQUAL(raft_epoch(b.raft), 1);
    CU_ASSERT_EQUAL(raft_leader_id(b.raft), 1);
    CU_ASSERT(b.claims == 1 && b.claim_epoch == 1 && b.leaders == 1 && b.leader_id == 1);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 3); /* LeaderChange, KRaftVersion, Voters */
    CU_ASSERT_EQUAL(append_value("one", &last), ERR_NONE);
    CU_ASSERT_EQUAL(last, 3);
    raft_settle(b.raft, b.now);
    CU_ASSERT_EQUAL(raft_high_watermark(b.raft), 3); /* not before it is synced */
    CU_ASSERT_EQUAL(b.values_n, 0);
    settle();
    CU_ASSERT_EQUAL(raft_high_watermark(b.raft), 4);
    CU_ASSERT_EQUAL(b.values_n, 1);
    CU_ASSERT_STRING_EQUAL(b.values[0], "one");
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), b.now.mono_us + 3600000000); /* a snapshot's */
    stop();
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), INT64_MAX);
    machine_free();
}

/* quorum-state and the first batch are written at the same time; whichever is first on disk,
 * nothing of the epoch is told before the other is too. */
static void test_raft_acts_only_when_its_epoch_is_on_disk(void)
{
    for (size_t first = 0; first < 2; first++) {
        machine_new(1);
        CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
        begin_load();
        CU_ASSERT_EQUAL_FATAL(raft_open(&b.load, &b.raft), ERR_NONE);
        raft_load_close(&b.load);
        while (raft_settle(b.raft, b.now))
            ;
        CU_ASSERT(raft_state(b.raft) == RAFT_LEADER && raft_end_offset(b.raft) == 3);
        CU_ASSERT_EQUAL_FATAL(b.env.waiting_n, 2);
        memenv_run_nth_job(&b.env, first);
        memenv_reap_jobs(&b.env);
        while (raft_settle(b.raft, b.now))
            ;
        CU_ASSERT_EQUAL(b.leaders, first == 0); /* quorum-state is the older job */
        CU_ASSERT(b.claims == 0 && raft_high_watermark(b.raft) == -1);
        settle();
        const struct quorum_state s = state_on_disk();
        CU_ASSERT(s.epoch == 1 && s.leader_id == 1);
        CU_ASSERT(b.leaders == 1 && b.claims == 1);
        stop();
        machine_free();
    }
}

/* The first batch reached the disk, quorum-state did not: its epoch is over all the same. */
static void test_raft_leads_once_in_an_epoch_that_only_its_log_knows(void)
{
    machine_new(1);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    begin_load();
    CU_ASSERT_EQUAL_FATAL(raft_open(&b.load, &b.raft), ERR_NONE);
    raft_load_close(&b.load);
    while (raft_settle(b.raft, b.now))
        ;
    memenv_run_nth_job(&b.env, 1);
    memfs_unplug(&b.fs);
    settle();
    CU_ASSERT(b.claims == 0 && b.failures == 1);
    stop();
    struct rng rng = {1};
    memfs_crash(&b.fs, &rng);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT(raft_epoch(b.raft) == 2 && b.claims == 1);
    stop();
    machine_free();
}

static void test_raft_restart_raises_the_epoch_by_one(void)
{
    int64_t last;
    machine_new(2);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    for (int i = 1; i <= 4; i++) {
        char text[VALUE_MAX];
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
        CU_ASSERT_EQUAL(raft_epoch(b.raft), i);
        CU_ASSERT_EQUAL(b.values_n, i - 1); /* all earlier ones, before the claim */
        CU_ASSERT_EQUAL(b.claims, 1);
        CU_ASSERT_EQUAL(raft_voters(b.raft)->n, 1);
        snprintf(text, sizeof text, "v%d", i);
        CU_ASSERT_EQUAL(append_value(text, &last), ERR_NONE);
        settle();
        stop();
        const struct quorum_state s = state_on_disk();
        CU_ASSERT(s.epoch == i && s.leader_id == 1 && s.voted_id == -1 && s.data_version == 1);
    }
    machine_free();
}

/* Whatever quorum-state says, a sole voter goes one epoch up and leads. */
static void test_raft_starts_from_every_state(void)
{
    static const struct quorum_state states[] = {
        {.data_version = 1, .leader_id = 1, .epoch = 8, .voted_id = -1},
        {.data_version = 1, .leader_id = -1, .epoch = 8, .voted_id = -1},
        {.data_version = 1, .leader_id = 2, .epoch = 8, .voted_id = -1},
        {.data_version = 1,
         .leader_id = -1,
         .epoch = 8,
         .voted_id = 1,
         .voted_directory_id = OWN_DIRECTORY},
        {.data_version = 1,
         .leader_id = -1,
         .epoch = 8,
         .voted_id = 3,
         .voted_directory_id = {{3}}},
        {.data_version = 0,
         .leader_id = -1,
         .epoch = 8,
         .voted_id = 1,
         .voters = {1},
         .voters_n = 1},
    };
    for (size_t i = 0; i < ARRAY_N(states); i++) {
        machine_new(2);
        CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
        CU_ASSERT_EQUAL_FATAL(quorum_state_write(&b.fs.disk, DIR, &states[i]), ERR_NONE);
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
        CU_ASSERT_EQUAL(raft_state(b.raft), RAFT_LEADER);
        CU_ASSERT_EQUAL(raft_epoch(b.raft), 9);
        stop();
        machine_free();
    }
}

/* A log of a later epoch than quorum-state (restored from a copy, lost): its epoch rules. */
/* The page cache lost the log again before its owner looked at it. */
static void test_raft_starts_with_a_cold_log(void)
{
    int64_t last;
    machine_new(1);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(append_value("one", &last), ERR_NONE);
    settle();
    stop();
    begin_load();
    memfs_cool(&b.fs);
    CU_ASSERT_EQUAL_FATAL(raft_open(&b.load, &b.raft), ERR_NONE);
    raft_load_close(&b.load);
    settle();
    CU_ASSERT(b.claims == 1 && b.failures == 0);
    CU_ASSERT_EQUAL(raft_voters(b.raft)->n, 1);
    CU_ASSERT_EQUAL(b.values_n, 1);
    CU_ASSERT_STRING_EQUAL(b.values[0], "one");
    stop();
    machine_free();
}

static void test_raft_log_epoch_rules(void)
{
    machine_new(2);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
        stop();
    }
    CU_ASSERT_EQUAL(b.fs.vfs.ops->unlink(&b.fs.vfs, DIR "/quorum-state"), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(raft_epoch(b.raft), 4);
    stop();
    machine_free();
}

static void test_raft_opens_kafkas_directories(void)
{
    static const char *const kinds[] = {"clean", "killed"};
    for (int i = 0; i < 2; i++) {
        char dir[512];
        machine_new(3);
        snprintf(dir, sizeof dir, "%s/%s/__cluster_metadata-0", golden_dirs(), kinds[i]);
        memfs_import(&b.fs, dir, DIR);
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE); /* static voters: those of quorum-state */
        CU_ASSERT_EQUAL(raft_state(b.raft), RAFT_LEADER);
        CU_ASSERT_EQUAL(raft_epoch(b.raft), i == 0 ? 3 : 2);
        CU_ASSERT(b.commits > 50);
        CU_ASSERT_EQUAL(b.claims, 1);
        CU_ASSERT(raft_bootstrap_records(b.raft).n > 0);
        const struct quorum_state s = state_on_disk();
        CU_ASSERT(s.data_version == 0 && s.voters_n == 1 && s.voters[0] == 1);
        stop();
        machine_free();
    }
}

/* ------------------------------------------------------------------ the bytes */

/* Offset, epoch, CRC and times may differ. */
static size_t batch_differs(const uint8_t *p, const uint8_t *q)
{
    const size_t n = 12 + be32(q + 8);
    size_t differ = 0;
    for (size_t i = 8; i < n; i++)
        if (!(i >= 12 && i < 16) && !(i >= 17 && i < 21) && !(i >= 27 && i < 43))
            differ += p[i] != q[i];
    return differ;
}

static const char log_file[] = DIR "/00000000000000000000.log";

/* Formatted as with --standalone and started once: the first batch and quorum-state are Kafka's. */
static void test_raft_first_start_is_kafkas(void)
{
    static const struct bytes record = {(const uint8_t *)"feature", 7};
    struct raft_format f = {
        .node_id = 1,
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("127.0.0.1"), 29393},
        .records = &record,
        .records_n = 1,
    };
    size_t n, kafka_n;
    uint8_t *kafka = test_read_file(test_golden("quorum/standalone-first-batch.log"), &kafka_n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(kafka);
    machine_new(1);
    CU_ASSERT(uuid_parse(STR_LIT("uK7LyF4YTQG6gSjP2ToB3w"), &f.directory_id));
    CU_ASSERT_EQUAL_FATAL(raft_format_standalone(&b.fs.disk, DIR, &f), ERR_NONE);
    begin_load();
    b.load.directory_id = f.directory_id;
    b.load.endpoint = f.endpoint;
    CU_ASSERT_EQUAL_FATAL(raft_open(&b.load, &b.raft), ERR_NONE);
    raft_load_close(&b.load);
    settle();
    const uint8_t *p = memfs_get(&b.fs, log_file, &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_FATAL(n >= kafka_n);
    CU_ASSERT_EQUAL(batch_differs(p, kafka), 0);
    free(kafka);
    kafka = test_read_file(test_golden("quorum/standalone-quorum-state"), &kafka_n);
    p = memfs_get(&b.fs, DIR "/quorum-state", &n);
    CU_ASSERT(n == kafka_n && memcmp(p, kafka, n) == 0);
    free(kafka);
    stop();
    machine_free();
}

/* With a static voter only the LeaderChange. */
static void test_raft_static_leader_change_is_kafkas(void)
{
    char dir[512];
    size_t n, kafka_n;
    machine_new(3);
    snprintf(dir, sizeof dir, "%s/killed/__cluster_metadata-0", golden_dirs());
    memfs_import(&b.fs, dir, DIR);
    CU_ASSERT_PTR_NOT_NULL_FATAL(memfs_get(&b.fs, log_file, &kafka_n));
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    const uint8_t *p = memfs_get(&b.fs, log_file, &n);
    size_t at = 0; /* ours is the last one */
    while (at + 12 + be32(p + at + 8) < n)
        at += 12 + be32(p + at + 8);
    CU_ASSERT_EQUAL(be32(p + at + 12), 2);
    CU_ASSERT_EQUAL(batch_differs(p + at, p), 0); /* Kafka's own is the first */
    stop();
    machine_free();
}

/* Our entry moved: the set is written again, once. */
static void test_raft_writes_its_voter_entry_when_it_moved(void)
{
    machine_new(4);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 3);
    stop();
    b.port = 9999;
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 6);
    CU_ASSERT_EQUAL(raft_voters(b.raft)->v[0].port, 9999);
    stop();
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 7);
    CU_ASSERT_EQUAL(raft_voters(b.raft)->v[0].port, 9999);
    stop();
    machine_free();
}

/* ------------------------------------------------------------------ refusals */

static void refused(const char *why)
{
    begin_load();
    enum err e = b.load.err;
    if (e == ERR_NONE)
        e = raft_open(&b.load, &b.raft);
    CU_ASSERT_NOT_EQUAL(e, ERR_NONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.load.message, why));
    raft_load_close(&b.load);
    stop();
}

static void test_raft_refuses_other_quorums(void)
{
    machine_new(4);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    begin_load();
    b.load.node_id = 2;                                     /* another node's directory */
    CU_ASSERT_EQUAL(raft_open(&b.load, &b.raft), ERR_NONE); /* may watch, not lead */
    raft_load_close(&b.load);
    pass(5000000);
    CU_ASSERT(raft_state(b.raft) == RAFT_UNATTACHED && b.claims == 0);
    stop();
    machine_free();
    machine_new(4);
    memfs_mkdirs(&b.fs, DIR); /* nothing in it */
    refused("no voters");
    CU_ASSERT_EQUAL(voter_set_parse(STR_LIT("1@a:1,2@b:2,3@c:3"), &b.static_voters), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT(raft_voters(b.raft)->n == 3 && raft_state(b.raft) == RAFT_UNATTACHED);
    stop();
    machine_free();
}

static void test_raft_refuses_damaged_files(void)
{
    size_t n;
    machine_new(4);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    memfs_put(&b.fs, DIR "/quorum-state", "{\"leaderId\":1", 13);
    refused("quorum-state");
    CU_ASSERT_EQUAL(b.fs.vfs.ops->unlink(&b.fs.vfs, DIR "/quorum-state"), ERR_NONE);
    const uint8_t *p = memfs_get(&b.fs, BOOTSTRAP, &n);
    uint8_t *half = malloc(n);
    memcpy(half, p, n);
    memfs_put(&b.fs, BOOTSTRAP, half, n - 1);
    free(half);
    refused("00000000000000000000-0000000000.checkpoint");
    machine_free();
}

/* ------------------------------------------------------------------ snapshots */

static void test_raft_snapshot_trims_and_restarts(void)
{
    int64_t last;
    machine_new(5);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    int64_t at[3];
    for (int round = 0; round < 3; round++) {
        CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
        settle();
        at[round] = b.committed_end;
        CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE);
        CU_ASSERT_EQUAL(make_snapshot(), ERR_BUSY);
        settle();
        CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE); /* nothing new: nothing is made */
        CU_ASSERT_EQUAL(log_start_offset(raft_log(b.raft)), round == 0 ? 0 : at[round - 1]);
    }
    CU_ASSERT_EQUAL(append_value("behind", &last), ERR_NONE);
    settle();
    stop();
    struct file_stat st;
    char path[128];
    for (int round = 0; round < 3; round++) { /* two are kept */
        snprintf(path, sizeof path, DIR "/%020lld-0000000001.checkpoint", (long long)at[round]);
        CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, path, &st),
                        round == 0 ? ERR_NOENT : ERR_NONE);
    }
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(b.snapshots, 1);
    CU_ASSERT_EQUAL(b.snapshot_offset, at[2]);
    CU_ASSERT_EQUAL(b.values_n, 4);
    CU_ASSERT_STRING_EQUAL(b.values[3], "behind"); /* only this from the log */
    CU_ASSERT_EQUAL(log_start_offset(raft_log(b.raft)), at[1]);
    CU_ASSERT_EQUAL(raft_voters(b.raft)->n, 1);
    stop();
    machine_free();
}

static int snapshots_on_disk(const int64_t *at, int n, int *first)
{
    struct file_stat st;
    char path[128];
    int found = 0;
    *first = -1;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, DIR "/%020lld-0000000001.checkpoint", (long long)at[i]);
        if (b.fs.vfs.ops->stat(&b.fs.vfs, path, &st) != ERR_NONE)
            continue;
        found++;
        if (*first < 0)
            *first = i;
    }
    return found;
}

/* metadata.max.retention.*: they stay until they are too old, or too much; so does the log that
 * they stand for. */
static void test_raft_snapshots_are_retained(void)
{
    enum { N = 6 };
    const int64_t day_us = INT64_C(86400) * 1000000;
    int64_t last, at[N];
    int first;
    machine_new(5);
    b.retention_bytes = 1 << 20;
    b.retention_ms = 7 * day_us / 1000;
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    for (int i = 0; i < N; i++) {
        CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
        settle();
        at[i] = b.committed_end;
        CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE);
        settle();
        pass(day_us);
    }
    CU_ASSERT_EQUAL(snapshots_on_disk(at, N, &first), N);
    CU_ASSERT_EQUAL(log_start_offset(raft_log(b.raft)), 0);
    pass(day_us + 60000000); /* the first is of more than 7 days ago */
    CU_ASSERT_EQUAL(snapshots_on_disk(at, N, &first), N - 1);
    CU_ASSERT(first == 1 && log_start_offset(raft_log(b.raft)) == at[1]);
    pass(2 * day_us + 60000000);
    CU_ASSERT_EQUAL(snapshots_on_disk(at, N, &first), N - 3);
    CU_ASSERT(first == 3 && log_start_offset(raft_log(b.raft)) == at[3]);
    stop();
    b.retention_bytes = 1; /* two stay */
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(snapshots_on_disk(at, N, &first), 2);
    CU_ASSERT(first == N - 2 && log_start_offset(raft_log(b.raft)) == at[N - 2]);
    CU_ASSERT_EQUAL(b.values_n, N);
    stop();
    b.retention_bytes = b.retention_ms = -1;
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
    settle();
    CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE);
    settle();
    pass(1000 * day_us);
    CU_ASSERT_EQUAL(snapshots_on_disk(at, N, &first), 2);
    stop();
    machine_free();
}

/* Segments wholly below the older of two snapshots go, in time or at the next start. */
static void test_raft_snapshot_drops_segments(void)
{
    int64_t last;
    size_t n;
    machine_new(5);
    b.segment_bytes = 200;
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++)
            CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
        settle();
        CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE);
        settle();
        CU_ASSERT(round == 0 ? log_start_offset(raft_log(b.raft)) == 0
                             : log_segments_n(raft_log(b.raft)) < 8);
        CU_ASSERT_EQUAL(memfs_get(&b.fs, log_file, &n) == NULL, round > 0);
    }
    stop();
    for (int life = 0; life < 2; life++) {
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
        CU_ASSERT(b.values_n == 18 && b.claims == 1 && raft_voters(b.raft)->n == 1);
        stop();
    }
    machine_free();
}

static void test_raft_start_clears_what_is_half_done(void)
{
    static const char *const names[] = {
        DIR "/00000000000000000009-0000000001.checkpoint.part",
        DIR "/00000000000000000001-0000000001.checkpoint.deleted",
        DIR "/00000000000000000002-0000000001.checkpoint",
    };
    int64_t last;
    machine_new(5);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    for (int round = 0; round < 2; round++) {
        CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
        settle();
        CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE);
        settle();
    }
    stop();
    for (size_t i = 0; i < ARRAY_N(names); i++)
        memfs_put(&b.fs, names[i], "x", 1);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    size_t n;
    for (size_t i = 0; i < ARRAY_N(names); i++)
        CU_ASSERT_PTR_NULL(memfs_get(&b.fs, names[i], &n));
    CU_ASSERT_PTR_NOT_NULL(memfs_get(&b.fs, BOOTSTRAP, &n));
    stop();
    machine_free();
}

/* A snapshot of the given end and epoch appears, as if it had been downloaded. */
static void put_snapshot(int64_t offset, int32_t epoch)
{
    const struct snapshot_content c = {.id = {offset, epoch}, .kraft_version = 1};
    struct buf content;
    buf_init(&content);
    CU_ASSERT_EQUAL_FATAL(snapshot_build(&c, &content), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(snapshot_write(&b.fs.disk, DIR, c.id, content.p, content.n), ERR_NONE);
    buf_close(&content);
}

/* A crash after the snapshot's rename, before the log starts over at it. */
static void test_raft_snapshot_beyond_the_log_restarts_it(void)
{
    static const struct snapshot_id ids[] = {{1000, 1}, {1000, 6}, {2, 6}};
    for (size_t i = 0; i < ARRAY_N(ids); i++) {
        machine_new(5);
        CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
        CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
        stop();
        put_snapshot(ids[i].offset, ids[i].epoch);
        for (int life = 0; life < 2; life++) {
            CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
            CU_ASSERT_EQUAL(log_start_offset(raft_log(b.raft)), ids[i].offset);
            CU_ASSERT_EQUAL(b.snapshot_offset, ids[i].offset);
            CU_ASSERT(raft_epoch(b.raft) > ids[i].epoch && raft_epoch(b.raft) > 1);
            CU_ASSERT_EQUAL(b.claims, 1);
            stop();
        }
        machine_free();
    }
}

static void test_raft_refuses_a_log_without_its_snapshot(void)
{
    machine_new(5);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    put_snapshot(1000, 6);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    stop();
    CU_ASSERT_EQUAL(snapshot_remove(&b.fs.vfs, DIR, (struct snapshot_id){1000, 6}), ERR_NONE);
    refused("without a snapshot");
    put_snapshot(900, 6);
    refused("behind its newest snapshot");
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
        CU_ASSERT_EQUAL(b.snapshots_due, 0);
        CU_ASSERT_EQUAL(append_value(big, &last), ERR_NONE);
        settle();
    }
    CU_ASSERT_EQUAL(b.snapshots_due, 1);
    stop();
    machine_free();
}

static void test_raft_snapshot_is_due_by_time(void)
{
    int64_t last;
    machine_new(6);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    pass(3599999999);
    CU_ASSERT_EQUAL(b.snapshots_due, 0);
    pass(1);
    CU_ASSERT_EQUAL(b.snapshots_due, 1); /* the first batch is new */
    CU_ASSERT_EQUAL(make_snapshot(), ERR_NONE);
    settle();
    pass(3600000000);
    CU_ASSERT_EQUAL(b.snapshots_due, 1); /* nothing happened since */
    CU_ASSERT_EQUAL(append_value("x", &last), ERR_NONE);
    settle();
    CU_ASSERT_EQUAL(b.snapshots_due, 2);
    stop();
    machine_free();
}

/* ------------------------------------------------------------------ a full disk */

static void test_raft_leads_when_there_is_room_again(void)
{
    machine_new(7);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    begin_load();
    CU_ASSERT_EQUAL_FATAL(raft_open(&b.load, &b.raft), ERR_NONE);
    raft_load_close(&b.load);
    memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = 1,
                                                .persistent = true,
                                                .err = ERR_NOSPC,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                .under = log_file});
    settle();
    CU_ASSERT(b.claims == 0 && b.failures == 0 && raft_state(b.raft) == RAFT_LEADER);
    pass(1000000);
    CU_ASSERT(b.claims == 0 && b.failures == 0);
    CU_ASSERT(memfs_fault_hit(&b.fs));
    pass(1000000);
    CU_ASSERT_EQUAL(b.claims, 1);
    CU_ASSERT_EQUAL(raft_epoch(b.raft), 1);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 3); /* the voters are there too */
    stop();
    machine_free();
}

/* The first batch had to wait for the truncation, and then there was no room. */
static void test_raft_leads_after_a_restart_of_the_log_without_room(void)
{
    machine_new(7);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    stop();
    b.port = 9999; /* its entry is to be written too */
    put_snapshot(1000, 6);
    begin_load();
    CU_ASSERT_EQUAL_FATAL(raft_open(&b.load, &b.raft), ERR_NONE);
    raft_load_close(&b.load);
    memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = 1,
                                                .err = ERR_NOSPC,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                .under = DIR "/00000000000000001000.log"});
    settle();
    CU_ASSERT(memfs_fault_hit(&b.fs));
    if (b.claims == 0)
        pass(1000000);
    CU_ASSERT(b.claims == 1 && b.failures == 0);
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 1003);
    stop();
    machine_free();
}

static void test_raft_append_without_room_leaves_nothing(void)
{
    int64_t last;
    machine_new(8);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = 1, .err = ERR_NOSPC});
    CU_ASSERT_EQUAL(append_value("lost", &last), ERR_NOSPC);
    CU_ASSERT(memfs_fault_hit(&b.fs));
    settle();
    CU_ASSERT_EQUAL(raft_end_offset(b.raft), 3);
    CU_ASSERT_EQUAL(append_value("kept", &last), ERR_NONE);
    settle();
    CU_ASSERT(b.values_n == 1 && strcmp(b.values[0], "kept") == 0 && b.failures == 0);
    stop();
    machine_free();
}

static void test_raft_append_checks_epoch_and_size(void)
{
    int64_t last;
    machine_new(8);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    struct bytes value = {(const uint8_t *)"x", 1};
    CU_ASSERT_EQUAL(raft_append(b.raft, 2, &value, 1, b.now, &last), ERR_BUSY);
    uint8_t *big = calloc(1, 8 << 20);
    value = (struct bytes){big, 8 << 20};
    CU_ASSERT_EQUAL(raft_append(b.raft, 1, &value, 1, b.now, &last), ERR_TOO_LARGE);
    value.n -= 1000;
    CU_ASSERT_EQUAL(raft_append(b.raft, 1, &value, 1, b.now, &last), ERR_NONE);
    free(big); /* it is written */
    settle();
    CU_ASSERT_EQUAL(b.values_n, 1);
    raft_become_resigned(b.raft);
    value.n = 1;
    CU_ASSERT_EQUAL(raft_append(b.raft, 1, &value, 1, b.now, &last), ERR_BUSY);
    settle();
    CU_ASSERT(b.resigns == 1 && b.resign_epoch == 1);
    stop();
    machine_free();
}

/* The stream is read in pieces; a batch larger than one comes whole. */
static void test_raft_delivers_more_than_one_piece(void)
{
    static char big[700000];
    int64_t last;
    memset(big, 'x', sizeof big - 1);
    machine_new(8);
    CU_ASSERT_EQUAL_FATAL(format_disk(), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    for (int i = 0; i < 6; i++)
        CU_ASSERT_EQUAL(append_value(big, &last), ERR_NONE);
    uint8_t *huge = calloc(1, 3 << 20);
    const struct bytes value = {huge, 3 << 20};
    CU_ASSERT_EQUAL(raft_append(b.raft, 1, &value, 1, b.now, &last), ERR_NONE);
    free(huge);
    CU_ASSERT_EQUAL(append_value("end", &last), ERR_NONE);
    settle();
    CU_ASSERT_EQUAL(b.values_n, 8);
    CU_ASSERT_STRING_EQUAL(b.values[7], "end");
    stop();
    CU_ASSERT_EQUAL_FATAL(start(), ERR_NONE);
    CU_ASSERT_EQUAL(b.values_n, 8);
    stop();
    machine_free();
}

TEST_MAIN(TEST(test_raft_sole_voter_leads_at_once),
          TEST(test_raft_acts_only_when_its_epoch_is_on_disk),
          TEST(test_raft_leads_once_in_an_epoch_that_only_its_log_knows),
          TEST(test_raft_restart_raises_the_epoch_by_one), TEST(test_raft_starts_from_every_state),
          TEST(test_raft_starts_with_a_cold_log), TEST(test_raft_log_epoch_rules),
          TEST(test_raft_opens_kafkas_directories), TEST(test_raft_first_start_is_kafkas),
          TEST(test_raft_static_leader_change_is_kafkas),
          TEST(test_raft_writes_its_voter_entry_when_it_moved),
          TEST(test_raft_refuses_other_quorums), TEST(test_raft_refuses_damaged_files),
          TEST(test_raft_snapshot_trims_and_restarts), TEST(test_raft_snapshots_are_retained),
          TEST(test_raft_snapshot_drops_segments), TEST(test_raft_start_clears_what_is_half_done),
          TEST(test_raft_snapshot_beyond_the_log_restarts_it),
          TEST(test_raft_refuses_a_log_without_its_snapshot),
          TEST(test_raft_snapshot_is_due_by_bytes), TEST(test_raft_snapshot_is_due_by_time),
          TEST(test_raft_leads_when_there_is_room_again),
          TEST(test_raft_leads_after_a_restart_of_the_log_without_room),
          TEST(test_raft_append_without_room_leaves_nothing),
          TEST(test_raft_append_checks_epoch_and_size),
          TEST(test_raft_delivers_more_than_one_piece))
