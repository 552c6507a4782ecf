/* Producers and transactions of a log (the rules of idempotence, and of the last stable offset). */
#include "log/log_impl.h"
#include "unit/log/test_log.h"
#include "wire/error.h"

#define PID 7

struct send {
    int64_t pid;
    int16_t epoch;
    int32_t sequence;
    int n;
};

/* The Kafka error, or K_NONE; *offset: the base offset. */
static int16_t send(struct bench *b, struct send s, int64_t *offset)
{
    struct log_staged st;
    struct batch_spec spec = {.records_n = s.n == 0 ? 1 : s.n,
                              .value_bytes = 5,
                              .timestamp = b->now.wall_ms,
                              .producer_id = s.pid + 1,
                              .epoch = s.epoch,
                              .sequence = s.sequence};
    enum err err = bench_append(b, spec, &st);
    CU_ASSERT_TRUE(err == ERR_NONE || err == ERR_INVALID);
    if (offset != NULL)
        *offset = st.base_offset;
    return err == ERR_INVALID ? st.kafka_error : K_NONE;
}

static void start(struct bench *b)
{
    bench_init(b, 21);
    MUST(bench_new(b));
}

static void restart(struct bench *b, bool clean)
{
    int64_t end = log_end_offset(b->log);
    MUST(bench_close_log(b, clean, false));
    MUST(bench_load(b, (struct log_checkpoints){clean, clean ? end : 0, -1}));
}

static void test_producer_sequences(void)
{
    struct bench b;
    start(&b);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 5, 1}, NULL), K_NONE); /* any first one */
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 6, 1}, NULL), K_NONE);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 6, 2}, NULL), 45);     /* overlap */
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 5, 2}, NULL), 45);     /* both as one */
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 8, 1}, NULL), 45);     /* gap */
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 7, 1}, NULL), K_NONE); /* no trace of those */
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 1, 3, 1}, NULL), 45);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 1, 0, 1}, NULL), K_NONE);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 7, 1}, NULL), 47); /* even a duplicate */
    CU_ASSERT_EQUAL(log_end_offset(b.log), 4);
    bench_close(&b);
}

/* The last five batches are recognised; after a restart the last one is. */
static void test_producer_duplicates(void)
{
    struct bench b;
    int64_t offset;
    start(&b);
    for (int i = 0; i < 6; i++)
        CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 3 * i, 3}, NULL), K_NONE);
    for (int i = 1; i < 6; i++) {
        CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 3 * i, 3}, &offset), K_NONE);
        CU_ASSERT_EQUAL(offset, 3 * i);
    }
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 0, 3}, NULL), 45);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 18);
    for (int clean = 1; clean >= 0; clean--) {
        restart(&b, clean != 0);
        CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 15, 3}, &offset), K_NONE);
        CU_ASSERT_EQUAL(offset, 15);
        CU_ASSERT_EQUAL(log_end_offset(b.log), 18);
        /* From a snapshot only the last is known; recovery reads them all. */
        CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 12, 3}, NULL), clean ? 45 : K_NONE);
    }
    bench_close(&b);
}

static void test_producer_sequence_wraps(void)
{
    struct bench b;
    int64_t offset;
    start(&b);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, INT32_MAX, 3}, NULL), K_NONE);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 2, 1}, NULL), K_NONE);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, INT32_MAX, 3}, &offset), K_NONE);
    CU_ASSERT_EQUAL(offset, 0);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID + 1, 0, INT32_MAX, 1}, NULL), K_NONE);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID + 1, 0, 0, 1}, NULL), K_NONE);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 6);
    bench_close(&b);
}

static void test_producer_expires(void)
{
    struct bench b;
    int64_t offset;
    start(&b);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 0, 1}, NULL), K_NONE);
    CU_ASSERT_TRUE(timers_next_us(&b.timers) < INT64_MAX);
    int64_t day_us = 24LL * 3600 * 1000 * 1000;
    timers_run(&b.timers, b.now.mono_us + day_us - 1000000);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 0, 1}, &offset), K_NONE);
    CU_ASSERT_EQUAL(offset, 0); /* still known */
    b.now.mono_us += day_us;
    b.now.wall_ms += day_us / 1000;
    for (int minutes = 0; minutes < 30; minutes += 10) /* each firing arms the next */
        timers_run(&b.timers, b.now.mono_us + minutes * 60000000LL);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 0, 1}, &offset), K_NONE);
    CU_ASSERT_EQUAL(offset, 1); /* late: appended again */
    restart(&b, true);
    CU_ASSERT_EQUAL(send(&b, (struct send){PID, 0, 1, 1}, NULL), K_NONE);
    MUST(bench_close_log(&b, true, false));
    b.now.wall_ms += 2 * day_us / 1000;
    MUST(bench_load(&b, (struct log_checkpoints){true, 3, -1}));
    CU_ASSERT_EQUAL(b.log->s.producers.n, 0); /* not even loaded */
    bench_close(&b);
}

static void transactional(struct bench *b, int64_t pid, int16_t epoch, int32_t sequence)
{
    MUST(bench_append(b,
                      (struct batch_spec){.value_bytes = 5,
                                          .timestamp = b->now.wall_ms,
                                          .producer_id = pid + 1,
                                          .epoch = epoch,
                                          .sequence = sequence,
                                          .attributes = BATCH_TRANSACTIONAL},
                      NULL));
}

static void plain(struct bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MUST(bench_append(b, (struct batch_spec){.value_bytes = 5, .timestamp = b->now.wall_ms},
                          NULL));
}

static void check_aborted(struct bench *b)
{
    struct arena a;
    struct log_span span;
    struct log_aborted *v;
    int32_t n;
    arena_init(&a, NULL);
    MUST(log_read(b->log, 0, log_end_offset(b->log), 1 << 20, true, &span));
    MUST(log_aborted_in(b->log, 0, &span, &a, &v, &n));
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_EQUAL(v[0].producer_id, 1);
    CU_ASSERT_EQUAL(v[0].first_offset, 3);
    MUST(log_aborted_in(b->log, 10, &span, &a, &v, &n)); /* behind the marker */
    CU_ASSERT_EQUAL(n, 0);
    arena_close(&a);
}

/* Two transactions from 3 and 7; the first aborted, its marker at 9. */
static void test_transactions_hold_readers(void)
{
    struct bench b;
    start(&b);
    plain(&b, 3);
    transactional(&b, 1, 0, 0); /* 3 */
    plain(&b, 3);
    transactional(&b, 2, 0, 0); /* 7 */
    transactional(&b, 1, 0, 1); /* 8 */
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 9), 3);
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 2), 2);
    MUST(bench_marker(&b, 1, 0, true));                   /* 9 */
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 9), 3); /* the marker is not below the hw */
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 10), 7);
    struct aborted_txn t;
    struct segment *seg = b.log->s.segments[0];
    CU_ASSERT_EQUAL(entry_file_n(&seg->index[INDEX_TXN]), 1);
    MUST(segment_txn_get(seg, log_files(b.log), 0, &t));
    CU_ASSERT_TRUE(t.producer_id == 1 && t.first_offset == 3 && t.last_offset == 9 &&
                   t.last_stable_offset == 7);
    check_aborted(&b);
    for (int clean = 1; clean >= 0; clean--) {
        restart(&b, clean != 0);
        CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 10), 7);
        check_aborted(&b);
    }
    MUST(bench_marker(&b, 2, 0, false)); /* 10 */
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 10), 7);
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 11), 11);
    check_aborted(&b);
    bench_close(&b);
}

static void test_transactions_follow_truncation(void)
{
    struct bench b;
    start(&b);
    transactional(&b, 1, 0, 0);         /* 0 */
    transactional(&b, 1, 0, 1);         /* 1 */
    MUST(bench_marker(&b, 1, 0, true)); /* 2 */
    transactional(&b, 1, 1, 0);         /* 3 */
    MUST(log_truncate_to(b.log, 2, b.now));
    bench_settle(&b);
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 2), 0); /* open again */
    CU_ASSERT_EQUAL(entry_file_n(&b.log->s.segments[0]->index[INDEX_TXN]), 0);
    CU_ASSERT_EQUAL(send(&b, (struct send){1, 0, 2, 1}, NULL), 48); /* not transactional */
    transactional(&b, 1, 0, 2);
    MUST(bench_marker(&b, 1, 0, false));
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 4), 4);
    bench_close(&b);
}

static void test_markers_are_fenced(void)
{
    struct bench b;
    struct batch facts;
    struct log_staged st;
    start(&b);
    transactional(&b, 1, 5, 0);
    CU_ASSERT_EQUAL(bench_marker(&b, 1, 4, true), ERR_INVALID);
    MUST(bench_marker(&b, 1, 5, true));
    uint8_t *p = marker_make(1, 5, true, 3, &facts);
    MUST(log_stage_leader(b.log, p, &facts, 0, LOG_COORDINATOR, b.now, &st));
    MUST(log_write(b.log, b.now));
    free(p);
    p = marker_make(1, 5, true, 2, &facts);
    CU_ASSERT_EQUAL(log_stage_leader(b.log, p, &facts, 0, LOG_COORDINATOR, b.now, &st),
                    ERR_INVALID);
    CU_ASSERT_EQUAL(st.kafka_error, 52);
    free(p);
    bench_close(&b);
}

/* A write that is cut leaves the producers as they were. */
static void test_producers_are_undone(void)
{
    struct bench b;
    struct buf before, after;
    start(&b);
    transactional(&b, 1, 0, 0);
    CU_ASSERT_EQUAL(send(&b, (struct send){2, 3, 9, 1}, NULL), K_NONE);
    buf_init(&before);
    buf_init(&after);
    MUST(producer_snapshot_encode(&b.log->s.producers, &before));
    b.fs.limit_bytes = b.fs.used_bytes;
    for (int i = 0; i < 3; i++) {
        struct batch facts;
        struct log_staged st;
        uint8_t *p = i == 1 ? marker_make(1, 0, true, 0, &facts)
                            : batch_make((struct batch_spec){.value_bytes = 9,
                                                             .producer_id = i == 0 ? 3 : 9,
                                                             .epoch = 4},
                                         &facts);
        MUST(log_stage_leader(b.log, p, &facts, i, i == 1 ? LOG_COORDINATOR : LOG_CLIENT, b.now,
                              &st));
        free(p);
    }
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 2);
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 2), 0);
    CU_ASSERT_EQUAL(log_write(b.log, b.now), ERR_NOSPC);
    MUST(producer_snapshot_encode(&b.log->s.producers, &after));
    CU_ASSERT_TRUE(before.n == after.n && memcmp(before.p, after.p, before.n) == 0);
    CU_ASSERT_EQUAL(log_last_stable_offset(b.log, 2), 0);
    CU_ASSERT_EQUAL(b.log->s.producers.open_n, 1);
    CU_ASSERT_EQUAL(b.log->s.producers.ended_n, 0);
    CU_ASSERT_EQUAL(epoch_cache_latest(log_epochs(b.log)), 0);
    buf_close(&before);
    buf_close(&after);
    bench_close(&b);
}

static void test_snapshots_that_lie_are_refused(void)
{
    struct producer_state ps;
    struct buf good;
    producer_state_init(&ps, NULL);
    buf_init(&good);
    struct producer p = {.producer_id = 4,
                         .epoch = 1,
                         .txn_first_offset = -1,
                         .coordinator_epoch = -1,
                         .last_timestamp = 5,
                         .batches_n = 1};
    p.batches[0] = (struct producer_batch){9, 5, 3, 1};
    MUST(producer_state_add(&ps, &p));
    MUST(producer_snapshot_encode(&ps, &good));
    CU_ASSERT_EQUAL(good.n, 56);
    producer_state_clear(&ps);
    for (size_t n = 0; n < good.n; n++) {
        CU_ASSERT_EQUAL(producer_snapshot_decode((struct bytes){good.p, (int32_t)n}, 10, &ps),
                        ERR_CORRUPT);
        uint8_t was = good.p[n];
        good.p[n] ^= 0x10;
        CU_ASSERT_EQUAL(producer_snapshot_decode((struct bytes){good.p, (int32_t)good.n}, 10, &ps),
                        ERR_CORRUPT);
        good.p[n] = was;
        producer_state_clear(&ps);
    }
    CU_ASSERT_EQUAL(producer_snapshot_decode((struct bytes){good.p, (int32_t)good.n}, 9, &ps),
                    ERR_CORRUPT); /* its last batch is not below the offset of the snapshot */
    producer_state_clear(&ps);
    MUST(producer_snapshot_decode((struct bytes){good.p, (int32_t)good.n}, 10, &ps));
    CU_ASSERT_EQUAL(producer_state_find(&ps, 4)->batches[0].last_sequence, 3);
    producer_state_close(&ps);
    buf_close(&good);
}

TEST_MAIN(TEST(test_producer_sequences), TEST(test_producer_duplicates),
          TEST(test_producer_sequence_wraps), TEST(test_producer_expires),
          TEST(test_transactions_hold_readers), TEST(test_transactions_follow_truncation),
          TEST(test_markers_are_fenced), TEST(test_producers_are_undone),
          TEST(test_snapshots_that_lie_are_refused))
