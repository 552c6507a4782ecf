/* Reads at every edge, cold files, aborted lists, search by time. */
#include <stdio.h>

#include "log/log_impl.h"
#include "unit/log/test_log.h"

/* 40 batches of 3 records in several segments. */
static void start(struct bench *b)
{
    bench_init(b, 31);
    b->config.segment_bytes = 2000;
    b->config.index_interval_bytes = 300;
    MUST(bench_new(b));
    for (int i = 0; i < 40; i++)
        MUST(bench_append(
            b, (struct batch_spec){.records_n = 3, .value_bytes = 40, .timestamp = 1000 + 10 * i},
            NULL));
    bench_settle(b);
    CU_ASSERT_TRUE(log_segments_n(b->log) > 3);
}

static int64_t base_of(const struct log_span *span)
{
    uint8_t head[BATCH_OVERHEAD];
    struct batch b;
    MUST(log_span_read(span, head, sizeof head));
    MUST(batch_parse_header((struct bytes){head, sizeof head}, &b));
    return b.base_offset;
}

static void test_read_ranges(void)
{
    struct bench b;
    struct log_span span;
    start(&b);
    CU_ASSERT_EQUAL(log_read(b.log, -1, 120, 100, true, &span), ERR_RANGE);
    CU_ASSERT_EQUAL(log_read(b.log, 121, 121, 100, true, &span), ERR_RANGE);
    MUST(log_read(b.log, 120, 120, 100, true, &span)); /* the end: nothing yet */
    CU_ASSERT_EQUAL(span.n, 0);
    MUST(log_raise_start(b.log, 50));
    CU_ASSERT_EQUAL(log_read(b.log, 49, 120, 100, true, &span), ERR_RANGE);
    MUST(log_read(b.log, 50, 120, 100, true, &span));
    CU_ASSERT_EQUAL(base_of(&span), 48); /* the start may lie inside a batch */
    CU_ASSERT_EQUAL(log_raise_start(b.log, 121), ERR_RANGE);
    MUST(log_raise_start(b.log, 10));
    CU_ASSERT_EQUAL(log_start_offset(b.log), 50);
    bench_close(&b);
}

static void test_read_sizes(void)
{
    struct bench b;
    struct log_span span;
    start(&b);
    MUST(log_read(b.log, 0, 120, 1 << 20, false, &span));
    uint32_t one = span.first_batch_bytes;
    CU_ASSERT_TRUE(span.n % one == 0 && span.n >= 5 * one);
    MUST(log_read(b.log, 0, 120, one - 1, false, &span)); /* does not fit */
    CU_ASSERT_EQUAL(span.n, 0);
    MUST(log_read(b.log, 0, 120, 0, true, &span));
    CU_ASSERT_EQUAL(span.n, one);
    MUST(log_read(b.log, 0, 120, one + 7, false, &span)); /* the end cuts a batch */
    CU_ASSERT_EQUAL(span.n, one + 7);
    bench_close(&b);
}

/* No byte at or past the limit, wherever it falls. */
static void test_read_limits(void)
{
    struct bench b;
    struct log_span span;
    start(&b);
    MUST(log_read(b.log, 0, 120, 0, true, &span));
    uint32_t one = span.n;
    for (int64_t limit = 0; limit <= 120; limit++) {
        for (int64_t at = 0; at <= 120; at += 7) {
            MUST(log_read(b.log, at, limit, 1 << 20, true, &span));
            int64_t below = limit / 3 * 3; /* the batch that holds the limit is left out */
            if (at >= below) {
                CU_ASSERT_EQUAL(span.n, 0);
                continue;
            }
            CU_ASSERT_EQUAL(base_of(&span), at / 3 * 3);
            CU_ASSERT_TRUE(at / 3 * 3 + span.n / one * 3 <= below);
        }
    }
    bench_close(&b);
}

static void test_read_cold_files_by_a_job(void)
{
    struct bench b;
    struct log_span span;
    start(&b);
    MUST(bench_close_log(&b, true, false));
    MUST(bench_load(&b, (struct log_checkpoints){true, 120, -1}));
    memfs_cool(&b.fs);
    int waits = 0;
    enum err err;
    b.progress_n = 0;
    while ((err = log_read(b.log, 10, 120, 1 << 20, true, &span)) == ERR_AGAIN && waits < 10) {
        uint64_t reads = b.fs.ops[MEMFS_READ];
        CU_ASSERT_EQUAL(log_read(b.log, 10, 120, 1 << 20, true, &span), ERR_AGAIN);
        CU_ASSERT_EQUAL(b.fs.ops[MEMFS_READ], reads); /* the owner does not wait for the disk */
        bench_settle(&b);
        CU_ASSERT_EQUAL(b.progress_n, ++waits);
    }
    MUST(err);
    CU_ASSERT_TRUE(waits > 0);
    CU_ASSERT_EQUAL(base_of(&span), 9);
    bench_close(&b);
}

static void test_read_slices_go_stale_when_cut(void)
{
    struct bench b;
    struct log_span span;
    uint8_t head[BATCH_OVERHEAD];
    start(&b);
    MUST(log_read(b.log, 119, 120, 1 << 20, true, &span));
    struct file *f = file_ref(span.f);
    MUST(log_truncate_to(b.log, 118, b.now));
    CU_ASSERT_EQUAL(log_span_read(&span, head, sizeof head), ERR_CLOSED);
    file_unref(f);
    bench_close(&b);
}

/* Kafka's rules of index entries: batches of 1000 bytes, interval 4096. */
static void test_index_entries(void)
{
    struct bench b;
    bench_init(&b, 32);
    MUST(bench_new(&b));
    for (int i = 0; i < 20; i++) {
        MUST(bench_append(&b,
                          (struct batch_spec){.records_n = 5,
                                              .value_bytes = 1000,
                                              .timestamp = i == 3 ? 9000 : 1000 + i},
                          NULL));
    }
    struct segment *seg = b.log->s.segments[0];
    uint32_t size = (uint32_t)(log_size_bytes(b.log) / 20);
    CU_ASSERT_TRUE(size > 5000);
    CU_ASSERT_EQUAL(entry_file_n(&seg->index[INDEX_OFFSET]), 19);
    struct offset_entry_pos e;
    struct time_entry t;
    MUST(segment_index_get(seg, log_files(b.log), 0, &e));
    CU_ASSERT_EQUAL(e.offset, 9);
    CU_ASSERT_EQUAL(e.position, size);
    /* Time entries only where the largest timestamp grew. */
    CU_ASSERT_EQUAL(entry_file_n(&seg->index[INDEX_TIME]), 3);
    MUST(segment_time_get(seg, log_files(b.log), 2, &t));
    CU_ASSERT_EQUAL(t.timestamp, 9004);
    CU_ASSERT_EQUAL(t.offset, 19);
    bench_close(&b);
}

static void test_roll_by_time_and_index(void)
{
    struct bench b;
    bench_init(&b, 33);
    b.config.segment_ms = 10000;
    MUST(bench_new(&b));
    MUST(bench_append(&b, (struct batch_spec){.timestamp = 1000000}, NULL));
    MUST(bench_append(&b, (struct batch_spec){.timestamp = 1010000}, NULL));
    MUST(bench_append(&b, (struct batch_spec){.timestamp = 5}, NULL));
    CU_ASSERT_EQUAL(log_segments_n(b.log), 1);
    MUST(bench_append(&b, (struct batch_spec){.timestamp = 1010001}, NULL));
    CU_ASSERT_EQUAL(log_segments_n(b.log), 2);
    b.config.segment_index_bytes = 40; /* 5 offsets, 3 times */
    b.config.index_interval_bytes = 1;
    log_set_config(b.log, &b.config);
    for (int i = 0; i < 2; i++)
        MUST(bench_append(&b, (struct batch_spec){.timestamp = 1010002 + i}, NULL));
    CU_ASSERT_EQUAL(log_segments_n(b.log), 2);
    MUST(bench_append(&b, (struct batch_spec){.timestamp = 1010009}, NULL));
    CU_ASSERT_EQUAL(log_segments_n(b.log), 3); /* the time index was full */
    bench_close(&b);
}

/* Old batches, in order: a block of the index, or two, and the headers of two batches. */
static void test_read_on_reads_little(void)
{
    struct bench b;
    bench_init(&b, 5);
    MUST(bench_new(&b));
    for (int i = 0; i < 1500; i++) {
        MUST(bench_append(
            &b, (struct batch_spec){.records_n = 1, .value_bytes = 5000, .timestamp = i}, NULL));
        if (i % 100 == 0)
            bench_settle(&b);
    }
    bench_settle(&b);
    for (int64_t at = 0; at < 1400; at++) {
        struct log_span span;
        const uint64_t before = b.fs.ops[MEMFS_READ];
        MUST(log_read(b.log, at, 1500, 5000, true, &span));
        CU_ASSERT_TRUE(b.fs.ops[MEMFS_READ] - before <= 4);
        CU_ASSERT_EQUAL(base_of(&span), at);
    }
    bench_close(&b);
}

/* ------------------------------------------------------------------ search by time */

struct found {
    struct log_lookup lookup;
    bool done;
};

static void found_done(struct log_lookup *lk)
{
    ((struct found *)lk)->done = true;
}

static struct log_lookup search(struct bench *b, enum log_lookup_kind kind, int64_t timestamp)
{
    struct found f = {.lookup = {.kind = kind, .timestamp = timestamp, .done = found_done}};
    MUST(log_lookup_start(b->log, &f.lookup));
    CU_ASSERT_FALSE(f.done);
    bench_settle(b);
    CU_ASSERT_TRUE(f.done);
    return f.lookup;
}

static void check_search(struct bench *b, int64_t timestamp, int64_t offset, int64_t found)
{
    struct log_lookup lk = search(b, LOOKUP_TIME, timestamp);
    CU_ASSERT_EQUAL(lk.err, ERR_NONE);
    CU_ASSERT_EQUAL(lk.offset, offset);
    CU_ASSERT_EQUAL(lk.found_timestamp, found);
}

/* Records stamped 2, 4, 6, 8: as one batch (compressed or not), and as four. */
static void test_lookup_first_record_at_or_after(void)
{
    static const int64_t expect[10] = {0, 0, 0, 1, 1, 2, 2, 3, 3, -1};
    for (int shape = 0; shape < 3; shape++) {
        struct bench b;
        bench_init(&b, 34);
        MUST(bench_new(&b));
        if (shape < 2) {
            struct batch_builder_args args = {.attributes = shape == 0 ? 0 : CODEC_LZ4,
                                              .producer_id = -1,
                                              .producer_epoch = -1,
                                              .base_sequence = -1,
                                              .level = INT32_MIN};
            struct batch_builder *bb;
            struct bytes out;
            struct batch facts;
            struct log_staged st;
            MUST(batch_builder_new(&args, &bb));
            for (int i = 0; i < 4; i++)
                MUST(batch_builder_add(bb, 2 + 2 * i, BYTES_NULL, BYTES_NULL, NULL, 0));
            MUST(batch_builder_finish(bb, &out));
            MUST(batch_parse(out, &facts));
            MUST(log_stage_leader(b.log, (uint8_t *)(uintptr_t)out.p, &facts, 3, LOG_CLIENT, b.now,
                                  &st));
            CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_AGAIN);
            bench_settle(&b);
            MUST(log_write(b.log, b.now));
            batch_builder_free(bb);
        } else {
            for (int i = 0; i < 4; i++)
                MUST(bench_append(
                    &b, (struct batch_spec){.timestamp = 2 + 2 * i, .leader_epoch = 3}, NULL));
        }
        for (int ts = 0; ts < 10; ts++)
            check_search(&b, ts, expect[ts], expect[ts] < 0 ? -1 : 2 + 2 * expect[ts]);
        struct log_lookup lk = search(&b, LOOKUP_MAX_TIMESTAMP, 0);
        CU_ASSERT_EQUAL(lk.offset, 3);
        CU_ASSERT_EQUAL(lk.found_timestamp, 8);
        CU_ASSERT_EQUAL(lk.leader_epoch, 3);
        bench_close(&b);
    }
}

/* Times that go backwards, over segments and index entries: the first in offset order counts. */
static void test_lookup_times_go_backwards(void)
{
    struct bench b;
    bench_init(&b, 35);
    b.config.segment_bytes = 1500;
    b.config.index_interval_bytes = 100;
    MUST(bench_new(&b));
    int64_t stamps[60];
    for (int i = 0; i < 60; i++) {
        stamps[i] = 100 + (i * 37) % 60;
        MUST(
            bench_append(&b, (struct batch_spec){.timestamp = stamps[i], .value_bytes = 20}, NULL));
    }
    bench_settle(&b);
    CU_ASSERT_TRUE(log_segments_n(b.log) > 3);
    for (int start = 0; start < 60; start += 29) {
        MUST(log_raise_start(b.log, start));
        for (int64_t ts = 90; ts < 170; ts++) {
            /* Kafka: only the first segment whose largest timestamp reaches ts is searched. */
            int64_t expect = -1;
            for (size_t k = 0; k < b.log->s.segments_n && expect < 0; k++) {
                const struct segment *seg = b.log->s.segments[k];
                if (seg->head.max_timestamp < ts)
                    continue;
                int64_t end =
                    k + 1 < b.log->s.segments_n ? b.log->s.segments[k + 1]->head.base_offset : 60;
                for (int64_t o = seg->head.base_offset; o < end && expect < 0; o++) {
                    if (stamps[o] >= ts && o >= start)
                        expect = o;
                }
                break;
            }
            check_search(&b, ts, expect, expect < 0 ? -1 : stamps[expect]);
        }
    }
    struct log_lookup lk = search(&b, LOOKUP_MAX_TIMESTAMP, 0);
    CU_ASSERT_EQUAL(lk.found_timestamp, 159);
    CU_ASSERT_EQUAL(stamps[lk.offset], 159);
    bench_close(&b);
}

static void test_lookup_survives_what_happens_meanwhile(void)
{
    struct bench b;
    bench_init(&b, 36);
    MUST(bench_new(&b));
    for (int i = 0; i < 10; i++)
        MUST(bench_append(&b, (struct batch_spec){.timestamp = 100 + i}, NULL));
    struct found f = {.lookup = {.kind = LOOKUP_TIME, .timestamp = 105, .done = found_done}};
    MUST(log_lookup_start(b.log, &f.lookup));
    memenv_run_jobs(&b.env);
    MUST(log_truncate_to(b.log, 3, b.now)); /* the result is of a past that is gone */
    bench_settle(&b);
    CU_ASSERT_TRUE(f.done);
    CU_ASSERT_EQUAL(f.lookup.offset, -1);
    f.done = false;
    f.lookup.timestamp = 101;
    MUST(log_lookup_start(b.log, &f.lookup));
    MUST(bench_close_log(&b, true, false));
    CU_ASSERT_TRUE(f.done);
    CU_ASSERT_EQUAL(f.lookup.err, ERR_CLOSED);
    bench_close(&b);
}

static void test_drop_old_segments(void)
{
    struct bench b;
    struct log_span span;
    start(&b);
    int32_t n = log_segments_n(b.log);
    MUST(log_drop_old_segments(b.log)); /* nothing lies below the start */
    CU_ASSERT_EQUAL(log_segments_n(b.log), n);
    MUST(log_read(b.log, 0, 120, 1000, true, &span));
    struct file *held = file_ref(span.f);
    MUST(log_raise_start(b.log, 60));
    MUST(log_drop_old_segments(b.log));
    CU_ASSERT_TRUE(log_segments_n(b.log) < n);
    int64_t first = b.log->s.segments[0]->head.base_offset;
    CU_ASSERT_TRUE(first > 30 && first <= 60);
    CU_ASSERT_EQUAL(base_of(&span), 0);         /* an open slice lives on */
    CU_ASSERT_EQUAL(log_files_start(b.log), 0); /* they are not gone yet */
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_files_start(b.log), first);
    file_unref(held);
    struct file_stat st;
    CU_ASSERT_EQUAL(b.fs.vfs.ops->stat(&b.fs.vfs, DIR_NAME "/00000000000000000000.log", &st),
                    ERR_NOENT);
    MUST(log_read(b.log, 60, 120, 1000, true, &span));
    MUST(bench_close_log(&b, false, false));
    MUST(bench_load(&b, (struct log_checkpoints){false, 0, -1}));
    CU_ASSERT_EQUAL(log_start_offset(b.log), first);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 120);
    bench_close(&b);
}

/* What could not be removed is there again after a start, until a start offset says otherwise. */
static void test_drop_leaves_segments(void)
{
    struct bench b;
    start(&b);
    MUST(log_raise_start(b.log, 30));
    memfs_fault_arm(
        &b.fs, (struct memfs_fault){.nth = 1, .err = ERR_NFILE, .kinds = MEMFS_KIND(MEMFS_UNLINK)});
    MUST(log_drop_old_segments(b.log));
    bench_settle(&b);
    CU_ASSERT_TRUE(memfs_fault_hit(&b.fs));
    MUST(log_raise_start(b.log, 60));
    MUST(log_drop_old_segments(b.log));
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_files_start(b.log), 0);
    CU_ASSERT_TRUE(b.log->s.segments[0]->head.base_offset > 30);
    MUST(bench_close_log(&b, false, false));
    MUST(bench_load(&b, (struct log_checkpoints){true, 120, 60}));
    CU_ASSERT_EQUAL(log_start_offset(b.log), 60);
    CU_ASSERT_EQUAL(log_files_start(b.log), 0);
    bench_close(&b);
}

TEST_MAIN(TEST(test_read_ranges), TEST(test_read_sizes), TEST(test_read_limits),
          TEST(test_read_cold_files_by_a_job), TEST(test_read_on_reads_little),
          TEST(test_read_slices_go_stale_when_cut), TEST(test_index_entries),
          TEST(test_roll_by_time_and_index), TEST(test_lookup_first_record_at_or_after),
          TEST(test_lookup_times_go_backwards), TEST(test_lookup_survives_what_happens_meanwhile),
          TEST(test_drop_old_segments), TEST(test_drop_leaves_segments))
