/* Appending, reading, rolling, flushing and closing, over memfs. */
#include <stdio.h>

#include "unit/log/test_log.h"

struct seen {
    int64_t next;
    int n;
    uint64_t bytes;
};

static void count(void *ctx, const struct batch *b)
{
    struct seen *s = ctx;
    CU_ASSERT_EQUAL(b->base_offset, s->next);
    s->next = batch_next_offset(b);
    s->n++;
    s->bytes += b->size_bytes;
}

static void test_log_first_write_makes_directory(void)
{
    struct bench b;
    bench_init(&b, 1);
    MUST(bench_new(&b));
    struct batch facts;
    struct log_staged st;
    uint8_t *p = batch_make((struct batch_spec){.value_bytes = 10, .records_n = 3}, &facts);
    MUST(log_stage_leader(b.log, p, &facts, 7, LOG_CLIENT, b.now, &st));
    free(p); /* small ones are copied */
    CU_ASSERT_EQUAL(st.base_offset, 0);
    CU_ASSERT_EQUAL(st.last_offset, 2);
    CU_ASSERT_EQUAL(log_staged_end(b.log), 3);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 0);
    CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_AGAIN);
    CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_AGAIN);
    bench_settle(&b);
    CU_ASSERT_EQUAL(b.progress_n, 1);
    MUST(log_write(b.log, b.now));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 3);
    CU_ASSERT_EQUAL(log_promised_end(b.log), 3);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 0);
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 7);
    struct uuid id;
    MUST(partition_metadata_read(&b.fs.vfs, DIR_NAME, &id));
    CU_ASSERT_TRUE(uuid_eq(id, topic_id));
    struct seen seen = {0};
    MUST(bench_each(&b, 0, 1 << 20, count, &seen));
    CU_ASSERT_EQUAL(seen.n, 1);
    bench_close(&b);
}

static void test_log_held_directory(void)
{
    struct bench b;
    bench_init(&b, 1);
    MUST(bench_new(&b));
    log_hold_dir(b.log);
    struct batch facts;
    struct log_staged st;
    uint8_t *p = batch_make((struct batch_spec){.value_bytes = 10, .records_n = 3}, &facts);
    MUST(log_stage_leader(b.log, p, &facts, 7, LOG_CLIENT, b.now, &st));
    free(p);
    CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_AGAIN);
    bench_settle(&b);
    CU_ASSERT(b.progress_n == 0 && log_staged_end(b.log) == 3 && log_end_offset(b.log) == 0);
    struct file_stat stat;
    CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, DIR_NAME, &stat), ERR_NOENT);
    log_release_dir(b.log);
    CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_AGAIN); /* it is being made */
    bench_settle(&b);
    MUST(log_write(b.log, b.now));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 3);
    log_release_dir(b.log);
    MUST(log_write(b.log, b.now));
    bench_close(&b);
}

static void test_log_one_write_for_all_that_is_staged(void)
{
    struct bench b;
    bench_init(&b, 2);
    MUST(bench_new(&b));
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 10}, NULL));
    uint8_t *large[3];
    b.fs.ops[MEMFS_WRITE] = 0;
    for (int i = 0; i < 64; i++) {
        struct batch facts;
        struct log_staged st;
        bool is_large = i % 20 == 19;
        uint8_t *p = batch_make((struct batch_spec){.value_bytes = is_large ? 10000 : 100}, &facts);
        MUST(log_stage_leader(b.log, p, &facts, 0, LOG_CLIENT, b.now, &st));
        CU_ASSERT_EQUAL(st.base_offset, 1 + i);
        if (is_large)
            large[i / 20] = p;
        else
            free(p);
    }
    MUST(log_write(b.log, b.now));
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_WRITE], 1);
    for (int i = 0; i < 3; i++)
        free(large[i]);
    /* A read at the tail touches no file. */
    b.fs.ops[MEMFS_READ] = 0;
    struct log_span span;
    MUST(log_read(b.log, 64, 65, 1 << 20, true, &span));
    CU_ASSERT_TRUE(span.n > 0);
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_READ], 0);
    struct seen seen = {0};
    MUST(bench_each(&b, 0, 5000, count, &seen));
    CU_ASSERT_EQUAL(seen.n, 65);
    CU_ASSERT_EQUAL(seen.bytes, log_size_bytes(b.log));
    bench_close(&b);
}

static void test_log_rolls_and_survives_clean_restart(void)
{
    struct bench b;
    bench_init(&b, 3);
    b.config.segment_bytes = 4000;
    b.config.index_interval_bytes = 500;
    MUST(bench_new(&b));
    for (int i = 0; i < 100; i++)
        MUST(bench_append(&b,
                          (struct batch_spec){.value_bytes = 200,
                                              .records_n = 2,
                                              .timestamp = 1000 + i,
                                              .producer_id = 5,
                                              .sequence = 2 * i},
                          NULL));
    CU_ASSERT_TRUE(log_segments_n(b.log) > 10);
    bench_settle(&b);
    int32_t segments = log_segments_n(b.log);
    CU_ASSERT_TRUE(log_flushed_end(b.log) > 150); /* rolled segments were synced */
    uint64_t size = log_size_bytes(b.log);
    MUST(bench_close_log(&b, true, false));
    b.now.wall_ms = 1000 + 2000;
    MUST(bench_load(&b, (struct log_checkpoints){true, 200, -1}));
    CU_ASSERT_EQUAL(b.recovered_bytes, 0);
    CU_ASSERT_EQUAL(log_segments_n(b.log), segments);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 200);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 200);
    CU_ASSERT_EQUAL(log_size_bytes(b.log), size);
    struct seen seen = {0};
    MUST(bench_each(&b, 0, 700, count, &seen));
    CU_ASSERT_EQUAL(seen.n, 100);
    for (int64_t at = 0; at < 200; at++) { /* every offset: its batch */
        struct log_span span;
        uint8_t head[61];
        MUST(log_read(b.log, at, 200, 1, true, &span));
        MUST(log_span_read(&span, head, sizeof head));
        struct batch batch;
        MUST(batch_parse_header((struct bytes){head, 61}, &batch));
        CU_ASSERT_EQUAL(batch.base_offset, at / 2 * 2);
        CU_ASSERT_EQUAL(span.n, batch.size_bytes);
    }
    /* The producer is known: its last batch is a duplicate, a gap is refused. */
    struct log_staged st;
    MUST(bench_append(
        &b,
        (struct batch_spec){.value_bytes = 200, .records_n = 2, .producer_id = 5, .sequence = 198},
        &st));
    CU_ASSERT_TRUE(st.duplicate);
    CU_ASSERT_EQUAL(st.base_offset, 198);
    CU_ASSERT_EQUAL(st.duplicate_max_timestamp, 1000 + 99 + 1);
    CU_ASSERT_EQUAL(
        bench_append(&b, (struct batch_spec){.value_bytes = 200, .producer_id = 5, .sequence = 201},
                     &st),
        ERR_INVALID);
    CU_ASSERT_EQUAL(st.kafka_error, 45);
    bench_close(&b);
}

static void test_log_recovers_after_crash(void)
{
    struct bench b;
    bench_init(&b, 4);
    b.config.segment_bytes = 4000;
    MUST(bench_new(&b));
    for (int i = 0; i < 40; i++)
        MUST(bench_append(
            &b, (struct batch_spec){.value_bytes = 300, .timestamp = i, .leader_epoch = i / 15},
            NULL));
    log_flush(b.log, 30);
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 40);
    memfs_sync_all(&b.fs);
    bench_close_log(&b, false, false);
    MUST(bench_load(&b, (struct log_checkpoints){false, 0, -1}));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 40);
    CU_ASSERT_EQUAL(log_flushed_end(b.log), 0);
    CU_ASSERT_TRUE(b.recovered_bytes > 40 * 300);
    CU_ASSERT_EQUAL(log_epochs(b.log)->n, 3);
    CU_ASSERT_EQUAL(log_epochs(b.log)->v[2].start_offset, 30);
    struct seen seen = {0};
    MUST(bench_each(&b, 0, 700, count, &seen));
    CU_ASSERT_EQUAL(seen.n, 40);
    bench_close(&b);
}

static void test_log_truncates(void)
{
    struct bench b;
    bench_init(&b, 5);
    b.config.segment_bytes = 4000;
    b.config.index_interval_bytes = 500;
    MUST(bench_new(&b));
    for (int i = 0; i < 60; i++)
        MUST(bench_append(
            &b,
            (struct batch_spec){
                .value_bytes = 300, .records_n = 2, .timestamp = i, .leader_epoch = i / 20},
            NULL));
    bench_settle(&b);
    MUST(log_truncate_to(b.log, 71, b.now)); /* inside a batch */
    CU_ASSERT_EQUAL(log_end_offset(b.log), 70);
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 1);
    struct seen seen = {0};
    MUST(bench_each(&b, 0, 700, count, &seen));
    CU_ASSERT_EQUAL(seen.n, 35);
    CU_ASSERT_EQUAL(seen.bytes, log_size_bytes(b.log));
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 300, .leader_epoch = 4}, NULL));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 71);
    MUST(bench_close_log(&b, true, false));
    MUST(bench_load(&b, (struct log_checkpoints){true, 0, -1}));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 71);
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 4);
    MUST(log_reset(b.log, 1000, b.now));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 1000);
    CU_ASSERT_EQUAL(log_start_offset(b.log), 1000);
    MUST(bench_close_log(&b, true, false));
    MUST(bench_load(&b, (struct log_checkpoints){true, 0, -1}));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 1000);
    CU_ASSERT_EQUAL(log_start_offset(b.log), 1000);
    bench_close(&b);
}

static void test_log_out_of_space_cuts_and_recovers(void)
{
    struct bench b;
    bench_init(&b, 6);
    MUST(bench_new(&b));
    struct batch_spec s = {.value_bytes = 300, .producer_id = 9};
    MUST(bench_append(&b, s, NULL));
    b.fs.limit_bytes = b.fs.used_bytes + 100;
    s.sequence = 1;
    CU_ASSERT_EQUAL(bench_append(&b, s, NULL), ERR_NOSPC);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 1);
    CU_ASSERT_EQUAL(log_staged_end(b.log), 1);
    CU_ASSERT_FALSE(log_is_offline(b.log));
    size_t n;
    memfs_get(&b.fs, DIR_NAME "/00000000000000000000.log", &n);
    CU_ASSERT_EQUAL(n, log_size_bytes(b.log));
    b.fs.limit_bytes = 0;
    struct log_staged st;
    MUST(bench_append(&b, s, &st)); /* the retry is no duplicate and no gap */
    CU_ASSERT_FALSE(st.duplicate);
    CU_ASSERT_EQUAL(st.base_offset, 1);
    bench_close(&b);
}

static void test_log_write_error_is_final(void)
{
    struct bench b;
    bench_init(&b, 7);
    MUST(bench_new(&b));
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 300}, NULL));
    memfs_fault_arm(
        &b.fs, (struct memfs_fault){.nth = 1, .err = ERR_IO, .kinds = MEMFS_KIND(MEMFS_WRITE)});
    CU_ASSERT_EQUAL(bench_append(&b, (struct batch_spec){.value_bytes = 300}, NULL), ERR_IO);
    CU_ASSERT_TRUE(memfs_fault_hit(&b.fs));
    CU_ASSERT_TRUE(log_is_offline(b.log));
    CU_ASSERT_EQUAL(b.failed_n, 0);
    bench_settle(&b);
    CU_ASSERT_EQUAL(b.failed_n, 1);
    CU_ASSERT_EQUAL(bench_append(&b, (struct batch_spec){.value_bytes = 300}, NULL), ERR_OFFLINE);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 1);
    CU_ASSERT_EQUAL(bench_close_log(&b, true, false), ERR_OFFLINE);
    bench_close(&b);
}

static void test_log_delete_renames(void)
{
    struct bench b;
    bench_init(&b, 8);
    MUST(bench_new(&b));
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 300}, NULL));
    struct log_span span;
    MUST(log_read(b.log, 0, 1, 1000, true, &span));
    struct file *held = file_ref(span.f);
    MUST(bench_close_log(&b, false, true));
    struct file_stat st;
    CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, DIR_NAME, &st), ERR_NOENT);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b.renamed);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.renamed, "-delete"));
    CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, b.renamed, &st), ERR_NONE);
    free(b.renamed);
    uint8_t head[61];
    MUST(log_span_read(&span, head, sizeof head)); /* an open slice lives on */
    file_unref(held);
    MUST(bench_new(&b));
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 300}, NULL));
    bench_close(&b);
}

TEST_MAIN(TEST(test_log_first_write_makes_directory), TEST(test_log_held_directory),
          TEST(test_log_one_write_for_all_that_is_staged),
          TEST(test_log_rolls_and_survives_clean_restart), TEST(test_log_recovers_after_crash),
          TEST(test_log_truncates), TEST(test_log_out_of_space_cuts_and_recovers),
          TEST(test_log_write_error_is_final), TEST(test_log_delete_renames))
