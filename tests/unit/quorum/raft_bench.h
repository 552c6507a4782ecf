/* What the tests of raft share: one machine (an in-memory disk, jobs run by hand, a clock) with one
 * raft on it, and what its events told. A snapshot of the tests' state is the list of all values
 * committed so far, so that after any restart `values` is the whole history again. */
#ifndef TEST_RAFT_BENCH_H
#define TEST_RAFT_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "quorum/control.h"
#include "quorum/inside.h"
#include "support/memenv.h"
#include "support/quiet_log.h"
#include "support/test.h"
#include "wire/record.h"

#define DIR "/d/__cluster_metadata-0"
#define BOOTSTRAP DIR "/00000000000000000000-0000000000.checkpoint"
#define OWN_DIRECTORY ((struct uuid){{7}})

enum { VALUES_MAX = 256, VALUE_MAX = 24 };

static struct bench {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct raft_load load;
    struct raft *raft;
    struct now now;
    struct voter_set static_voters;
    uint16_t port;
    int32_t segment_bytes;
    int64_t retention_bytes, retention_ms;
    /* since the last start */
    int claims, resigns, failures, snapshots, snapshots_due, leaders, commits;
    int32_t claim_epoch, resign_epoch, leader_id, leader_epoch;
    int64_t snapshot_offset, committed_end;
    char values[VALUES_MAX][VALUE_MAX];
    int values_n;
    bool loaded, closed;
    enum err closed_err;
} b;

/* ------------------------------------------------------------------ events */

/* Uncompressed batches are read where they lie: nothing here allocates. */
static inline void take_values(const struct batch *batch)
{
    struct record_stream s;
    struct record rec;
    bool end = false;
    if ((batch->attributes & BATCH_CONTROL) != 0)
        return;
    CU_ASSERT_EQUAL_FATAL(record_stream_open(&s, batch, INT32_MAX, NULL), ERR_NONE);
    while (record_stream_next(&s, true, &rec, &end) == ERR_NONE && !end) {
        CU_ASSERT_FATAL(b.values_n < VALUES_MAX);
        snprintf(b.values[b.values_n++], VALUE_MAX, "%.*s",
                 rec.value.n < VALUE_MAX ? (int)rec.value.n : VALUE_MAX - 1,
                 (const char *)rec.value.p);
    }
    record_stream_close(&s);
}

static inline void on_snapshot(void *ctx, int64_t offset, int32_t epoch, struct bytes batches)
{
    struct batch batch;
    (void)ctx;
    (void)epoch;
    b.snapshots++;
    b.snapshot_offset = b.committed_end = offset;
    b.values_n = 0;
    while (batches.n > 0 && batch_parse(batches, &batch) == ERR_NONE) {
        take_values(&batch);
        batches.p += batch.size_bytes;
        batches.n -= (int32_t)batch.size_bytes;
    }
}

static inline void on_committed(void *ctx, const struct batch *batch)
{
    (void)ctx;
    CU_ASSERT_EQUAL(batch->base_offset, b.committed_end); /* in order, once */
    CU_ASSERT(batch_crc_ok(batch));
    b.committed_end = batch_next_offset(batch);
    b.commits++;
    take_values(batch);
}

static inline void on_leader(void *ctx, int32_t leader_id, int32_t epoch)
{
    (void)ctx;
    CU_ASSERT(epoch >= b.leader_epoch);
    b.leaders++;
    b.leader_id = leader_id;
    b.leader_epoch = epoch;
}

static inline void on_claim(void *ctx, int32_t epoch)
{
    (void)ctx;
    CU_ASSERT_EQUAL(epoch, b.leader_epoch); /* told before */
    b.claims++;
    b.claim_epoch = epoch;
}

static inline void on_resign(void *ctx, int32_t epoch)
{
    (void)ctx;
    b.resigns++;
    b.resign_epoch = epoch;
}

static inline void on_snapshot_due(void *ctx)
{
    (void)ctx;
    b.snapshots_due++;
}

static inline void on_failed(void *ctx, enum err e, const char *what)
{
    (void)ctx;
    (void)e;
    (void)what;
    b.failures++;
}

static inline void on_loaded(struct raft_load *rl)
{
    (void)rl;
    b.loaded = true;
}

static inline void on_closed(void *ctx, enum err e)
{
    (void)ctx;
    b.closed = true;
    b.closed_err = e;
}

/* ------------------------------------------------------------------ the machine */

static inline void machine_new(uint64_t seed)
{
    memset(&b, 0, sizeof b);
    b.now = (struct now){1000000, 1700000000000};
    b.port = 9092;
    b.segment_bytes = 1 << 20;
    memfs_init(&b.fs, seed);
    memfs_mkdirs(&b.fs, "/d");
    memenv_init(&b.env, &b.fs, seed);
    timers_init(&b.timers);
}

static inline void machine_free(void)
{
    timers_close(&b.timers);
    memenv_close(&b.env);
    memfs_close(&b.fs);
}

static inline enum err format_disk(void)
{
    static const struct bytes record = {(const uint8_t *)"feature", 7};
    const struct raft_format f = {
        .node_id = 1,
        .directory_id = OWN_DIRECTORY,
        .endpoint = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), b.port},
        .records = &record,
        .records_n = 1,
        .now = b.now,
    };
    return raft_format_standalone(&b.fs.disk, DIR, &f);
}

static inline void jobs(void)
{
    while (memenv_run_jobs(&b.env) > 0 || memenv_reap_jobs(&b.env) > 0)
        ;
}

static inline void begin_load(void)
{
    b.loaded = false;
    b.claims = b.commits = b.values_n = b.snapshots = b.leaders = b.failures = 0;
    b.committed_end = 0;
    b.load = (struct raft_load){
        .env = &b.env.env,
        .timers = &b.timers,
        .dir = DIR,
        .config = {.election_timeout_ms = 1000,
                   .fetch_timeout_ms = 2000,
                   .snapshot_max_new_bytes = 1 << 20,
                   .snapshot_max_interval_ms = 3600000,
                   .retention_bytes = b.retention_bytes,
                   .retention_ms = b.retention_ms,
                   .log = quiet_log(b.segment_bytes, 4096)},
        .node_id = 1,
        .directory_id = OWN_DIRECTORY,
        .cluster_id = "cluster",
        .endpoint = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), b.port},
        .static_voters = &b.static_voters,
        .may_vote = true,
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
    CU_ASSERT_FALSE(b.loaded); /* never from inside the call */
    jobs();
    CU_ASSERT(b.loaded);
}

/* Turns until nothing moves and no job is left. */
static inline void settle(void)
{
    bool moved = true;
    for (int i = 0; i < 1000 && moved; i++) {
        moved = memenv_run_jobs(&b.env) > 0;
        moved |= memenv_reap_jobs(&b.env) > 0;
        moved |= raft_settle(b.raft, b.now) || b.env.waiting_n > 0;
    }
    CU_ASSERT_FALSE(moved);
}

/* Time passes: the timers that are due, then the turn. */
static inline void pass(int64_t us)
{
    b.now.mono_us += us;
    b.now.wall_ms += us / 1000;
    timers_run(&b.timers, b.now.mono_us);
    settle();
}

static inline enum err start(void)
{
    begin_load();
    enum err e = b.load.err;
    if (e == ERR_NONE)
        e = raft_open(&b.load, &b.raft);
    raft_load_close(&b.load);
    if (e == ERR_NONE)
        settle();
    return e;
}

static inline void stop(void)
{
    b.closed = false;
    if (b.raft == NULL)
        return;
    raft_close(b.raft, on_closed, NULL);
    jobs();
    if (!b.closed) { /* nobody takes over */
        b.now.mono_us += 5000000;
        timers_run(&b.timers, b.now.mono_us);
        (void)raft_settle(b.raft, b.now);
        jobs();
    }
    b.raft = NULL;
    CU_ASSERT(b.closed);
    b.closed = false;
}

static inline enum err append_value(const char *text, int64_t *last)
{
    const struct bytes value = {(const uint8_t *)text, (int32_t)strlen(text)};
    return raft_append(b.raft, raft_epoch(b.raft), &value, 1, b.now, last);
}

/* Of all values committed. */
static inline enum err make_snapshot(void)
{
    struct bytes records[VALUES_MAX];
    for (int i = 0; i < b.values_n; i++)
        records[i] = (struct bytes){(const uint8_t *)b.values[i], (int32_t)strlen(b.values[i])};
    return raft_snapshot(b.raft, b.committed_end, records, (size_t)b.values_n, b.now);
}

static inline struct quorum_state state_on_disk(void)
{
    struct quorum_state s;
    CU_ASSERT_EQUAL(quorum_state_read(&b.fs.vfs, DIR, &s), ERR_NONE);
    return s;
}

#endif
