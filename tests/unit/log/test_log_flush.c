/* Promises: group commit, flush.messages, flush.ms, what a sync covers, what its failure means. */
#include "log/log_impl.h"
#include "unit/log/test_log.h"

static void append(struct bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MUST(bench_append(b, (struct batch_spec){.value_bytes = 100}, NULL));
}

static void start(struct bench *b, int64_t flush_messages)
{
    bench_init(b, 41);
    b->config.flush_messages = flush_messages;
    MUST(bench_new(b));
    append(b, 1);
    bench_settle(b);
    b->fs.ops[MEMFS_SYNC] = b->fs.ops[MEMFS_SYNC_DIR] = 0;
    b->progress_n = 0;
}

static void test_flush_shares_a_sync(void)
{
    struct bench b;
    start(&b, 1);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 1);
    for (int i = 0; i < 64; i++) {
        append(&b, 1);
        CU_ASSERT_EQUAL(log_promised_end(b.log), 1);
    }
    CU_ASSERT_EQUAL(b.env.waiting_n, 1); /* one in flight, of the first write */
    bench_settle(&b);
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_SYNC], 2); /* all others shared the second */
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_SYNC_DIR], 0);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 65);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 65);
    CU_ASSERT_EQUAL(b.progress_n, 2);
    log_flush(b.log, 65); /* nothing to do */
    CU_ASSERT_EQUAL(b.env.waiting_n, 0);
    bench_close(&b);
}

static void test_flush_messages_counts(void)
{
    struct bench b;
    start(&b, 10);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 0);
    append(&b, 8);
    CU_ASSERT_EQUAL(b.env.waiting_n, 0);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 9);
    append(&b, 1); /* the tenth waits for the flush */
    CU_ASSERT_EQUAL(log_promised_end(b.log), 9);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 10);
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 10);
    bench_close(&b);
}

static void test_flush_ms(void)
{
    struct bench b;
    bench_init(&b, 42);
    b.config.flush_ms = 500;
    MUST(bench_new(&b));
    append(&b, 2);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 2); /* a bound on loss, no promise */
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), b.now.mono_us + 500 * MS);
    timers_run(&b.timers, b.now.mono_us + 499 * MS);
    CU_ASSERT_EQUAL(b.env.waiting_n, 0);
    timers_run(&b.timers, b.now.mono_us + 500 * MS);
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 2);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), INT64_MAX);
    bench_close(&b);
}

/* New values rule for what is written already. */
static void test_flush_config_changes(void)
{
    struct bench b;
    start(&b, INT64_MAX);
    append(&b, 2);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 3);
    b.config.flush_ms = 500;
    log_set_config(b.log, &b.config);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), b.now.mono_us + 500 * MS);
    b.config.flush_ms = 5;
    log_set_config(b.log, &b.config);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), b.now.mono_us + 5 * MS);
    b.config.flush_ms = INT64_MAX;
    log_set_config(b.log, &b.config);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), INT64_MAX);
    b.config.flush_messages = 4;
    log_set_config(b.log, &b.config);
    CU_ASSERT_EQUAL(b.env.waiting_n, 0);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 3);
    b.config.flush_messages = 1;
    log_set_config(b.log, &b.config);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 0); /* until it is synced */
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 3);
    CU_ASSERT_EQUAL(b.progress_n, 1);
    bench_close(&b);
}

static void test_flush_covers_what_a_roll_left(void)
{
    struct bench b;
    bench_init(&b, 43);
    b.config.segment_bytes = 300;
    MUST(bench_new(&b));
    append(&b, 4);
    CU_ASSERT_EQUAL(log_segments_n(b.log), 4 / 2 + (log_segments_n(b.log) - 2));
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 0); /* the job has not run */
    struct file_stat st;
    const char *snapshot = DIR_NAME "/00000000000000000001.snapshot";
    CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, snapshot, &st), ERR_NOENT);
    bench_settle(&b);
    CU_ASSERT_TRUE(log_flushed_end(b.log) >= 3);
    CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, snapshot, &st), ERR_NONE);
    struct epoch_cache epochs;
    epoch_cache_init(&epochs);
    MUST(epoch_checkpoint_read(&b.fs.vfs, DIR_NAME, &epochs));
    CU_ASSERT_EQUAL(epochs.n, 1);
    epoch_cache_close(&epochs);
    bench_close(&b);
}

static void test_flush_failure_is_final(void)
{
    struct bench b;
    start(&b, 1);
    append(&b, 1);
    memfs_fault_arm(
        &b.fs, (struct memfs_fault){.nth = 1, .err = ERR_NOSPC, .kinds = MEMFS_KIND(MEMFS_SYNC)});
    bench_settle(&b);
    CU_ASSERT_TRUE(memfs_fault_hit(&b.fs));
    CU_ASSERT_EQUAL(b.failed_n, 1); /* whatever the code: the data may be gone */
    CU_ASSERT_TRUE(log_is_offline(b.log));
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 1);
    log_flush(b.log, 2);
    CU_ASSERT_EQUAL(b.env.waiting_n, 0); /* never tried again */
    bench_close(&b);
}

/* No room for the epoch file: nothing is promised, and it is tried again. */
static void test_flush_waits_for_room(void)
{
    struct bench b;
    start(&b, INT64_MAX);
    bench_settle(&b);
    log_flush(b.log, 1);
    memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = 1,
                                                .persistent = true,
                                                .err = ERR_NOSPC,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE)});
    bench_settle(&b);
    CU_ASSERT_FALSE(log_is_offline(b.log));
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 0);
    int64_t again = timers_next_us(&b.timers);
    CU_ASSERT_TRUE(again < INT64_MAX);
    memfs_fault_hit(&b.fs);
    timers_run(&b.timers, again);
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 1);
    bench_close(&b);
}

/* An epoch without a write is on disk when a flush says so. */
static void test_flush_writes_epochs(void)
{
    struct bench b;
    start(&b, INT64_MAX);
    MUST(log_assign_epoch(b.log, 8, 1));
    append(&b, 1);
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 0); /* an older one came again */
    MUST(log_assign_epoch(b.log, 9, 2));
    log_flush(b.log, 2);
    bench_settle(&b);
    struct rng rng = {5};
    memfs_crash(&b.fs, &rng);
    MUST(bench_close_log(&b, false, false));
    MUST(bench_load(&b, (struct log_checkpoints){false, 2, -1}));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 2);
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 0); /* 9 began at the end: dropped */
    bench_close(&b);
}

/* The epoch that was assigned while a batch was staged stays when the batch is cut. */
static void test_assigned_epoch_outlives_a_cut(void)
{
    struct bench b;
    struct batch facts;
    struct log_staged st;
    start(&b, INT64_MAX);
    uint8_t *p = batch_make((struct batch_spec){.value_bytes = 50}, &facts);
    MUST(log_stage_leader(b.log, p, &facts, 4, LOG_CLIENT, b.now, &st));
    MUST(log_assign_epoch(b.log, 6, log_staged_end(b.log)));
    b.fs.limit_bytes = b.fs.used_bytes;
    CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_NOSPC);
    const struct epoch_cache *c = log_epochs(b.log);
    CU_ASSERT_EQUAL(c->n, 2);
    CU_ASSERT_EQUAL(c->v[1].epoch, 6);
    CU_ASSERT_EQUAL(c->v[1].start_offset, 1);
    free(p);
    bench_close(&b);
}

TEST_MAIN(TEST(test_flush_shares_a_sync), TEST(test_flush_messages_counts), TEST(test_flush_ms),
          TEST(test_flush_config_changes), TEST(test_flush_covers_what_a_roll_left),
          TEST(test_flush_failure_is_final), TEST(test_flush_waits_for_room),
          TEST(test_flush_writes_epochs), TEST(test_assigned_epoch_outlives_a_cut))
