/* compression.type: batches whose codec changes; and memory, here where most of it is used. */
#include "support/fault.h"
#include "support/rng.h"
#include "unit/wire/test_validate.h"

/* What a rebuilt batch must give back: headers, nulls, empties, times that go back. */
static struct buf varied(struct made m)
{
    /* Length 14: attributes, 1 ms, offset 1, key "k", no value, headers a: 1 and a: null. */
    static const uint8_t with_headers[] = {28, 0x7f, 2, 2, 2, 'k', 1, 4, 2, 'a', 2, '1', 2, 'a', 1};
    struct buf records;
    buf_init(&records);
    put_record(&records, 10, 0, lit("key"), lit("value"));
    MUST(buf_append(&records, with_headers, sizeof with_headers));
    put_record(&records, INT64_C(-1) - T0, 2, lit(""), BYTES_NULL);
    put_record(&records, 5, 3, BYTES_NULL, lit(""));
    m.records_n = 4;
    m.last_offset_delta = 3;
    return request_of(m, records);
}

static bool same_record(const struct record *a, const struct record *b)
{
    return a->timestamp == b->timestamp && a->offset_delta == b->offset_delta &&
           bytes_eq(a->key, b->key) && bytes_eq(a->value, b->value) &&
           a->headers_n == b->headers_n && bytes_eq(a->headers, b->headers);
}

static void check_same_records(const struct batch *a, const struct batch *b)
{
    struct record_reader *ra, *rb;
    struct record rec_a, rec_b;
    bool end_a = false, end_b = false;
    MUST(record_reader_new(a, INT32_MAX, &ra));
    MUST(record_reader_new(b, INT32_MAX, &rb));
    for (;;) {
        MUST(record_reader_next(ra, &rec_a, &end_a));
        MUST(record_reader_next(rb, &rec_b, &end_b));
        CU_ASSERT_EQUAL(end_a, end_b);
        if (end_a || end_b)
            break;
        CU_ASSERT_TRUE(same_record(&rec_a, &rec_b));
    }
    record_reader_free(ra);
    record_reader_free(rb);
}

static void check_rebuild(int16_t from, int16_t to)
{
    struct validate_config cfg = defaults();
    cfg.compression = to;
    struct made m = MADE(0, .attributes = from | BATCH_TRANSACTIONAL, .producer_id = 77,
                         .producer_epoch = 3, .base_sequence = 500);
    struct buf original = varied(m);
    struct batch before = parsed(bytes_of(&original));
    struct sent s = send_to(cfg, varied(m));
    CU_ASSERT_EQUAL_FATAL(s.error, K_NONE);
    const struct batch *f = &s.v.facts;
    CU_ASSERT_EQUAL(s.v.owned_copy, from != to);
    CU_ASSERT_TRUE(batch_crc_ok(f));
    CU_ASSERT_EQUAL(f->attributes, to | BATCH_TRANSACTIONAL);
    CU_ASSERT_EQUAL(f->base_offset, 0);
    CU_ASSERT_EQUAL(f->base_timestamp, from != to ? T0 + 10 : T0); /* the first record's */
    CU_ASSERT_EQUAL(f->max_timestamp, T0 + 10);
    CU_ASSERT_EQUAL(f->producer_id, 77);
    CU_ASSERT_EQUAL(f->producer_epoch, 3);
    CU_ASSERT_EQUAL(f->base_sequence, 500);
    CU_ASSERT_EQUAL(f->last_offset_delta, 3);
    CU_ASSERT_EQUAL(f->records_n, 4);
    check_same_records(&before, f);
    sent_close(&s);
    buf_close(&original);
}

static void test_rebuild_keeps_records_and_producer(void)
{
    for (int16_t from = 0; from < CODEC_MAX; from++) {
        for (int16_t to = 0; to < CODEC_MAX; to++)
            check_rebuild(from, to);
    }
}

static void test_rebuild_drops_bits_without_meaning(void)
{
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_GZIP;
    struct sent s = send_to(cfg, varied(MADE(0, .attributes = (int16_t)0xffc0)));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.facts.attributes, CODEC_GZIP);
    sent_close(&s);
}

static void test_rebuild_with_log_append_time(void)
{
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_LZ4;
    cfg.log_append_time = true;
    struct sent s = send_to(cfg, varied(MADE(0)));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.facts.attributes, CODEC_LZ4 | BATCH_LOG_APPEND_TIME);
    CU_ASSERT_EQUAL(s.v.facts.max_timestamp, NOW);
    CU_ASSERT_EQUAL(s.v.facts.base_timestamp, T0 + 10);
    CU_ASSERT_EQUAL(s.v.log_append_time_ms, NOW);
    CU_ASSERT_TRUE(batch_crc_ok(&s.v.facts));
    sent_close(&s);
}

static void test_rebuild_takes_the_level(void)
{
    struct buf records;
    buf_init(&records);
    struct rng rng = {1};
    for (int i = 0; i < 3000; i++) {
        char value[16];
        for (size_t k = 0; k < sizeof value; k++)
            value[k] = (char)('a' + rng_below(&rng, 3));
        put_record(&records, 0, i, lit("k"), (struct bytes){(uint8_t *)value, sizeof value});
    }
    struct buf request = request_of(MADE(3000), records);
    int32_t size[2];
    for (int i = 0; i < 2; i++) {
        struct validate_config cfg = defaults();
        cfg.compression = CODEC_GZIP;
        cfg.compression_level = i == 0 ? 1 : 9;
        struct buf copy;
        buf_init(&copy);
        MUST(buf_append(&copy, request.p, request.n));
        struct sent s = send_to(cfg, copy);
        CU_ASSERT_EQUAL(s.error, K_NONE);
        size[i] = s.v.batch.n;
        sent_close(&s);
    }
    CU_ASSERT_TRUE(size[1] < size[0]);
    buf_close(&request);
}

/* A batch in its codec already stays as it is, whatever the level. */
static void test_rebuild_not_for_another_level(void)
{
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_GZIP;
    cfg.compression_level = 1;
    struct buf b =
        request_of(MADE(50, .attributes = CODEC_GZIP, .max_timestamp = T0 + 49), plain_records(50));
    struct sent s = send_to(cfg, b);
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_PTR_EQUAL(s.v.batch.p, s.request.p);
    sent_close(&s);
}

/* ------------------------------------------------------------------ row 19 and its neighbours */

/* Compressed to nothing, but n bytes when not. The first record's timestamp is T0 + ts_delta. */
static struct buf zeros(size_t n, int64_t ts_delta, struct bytes last_key)
{
    uint8_t *p = calloc(1, n);
    struct buf records;
    buf_init(&records);
    put_record(&records, ts_delta, 0, lit("k"), (struct bytes){p, (int32_t)n});
    put_record(&records, 0, 1, last_key, lit("v"));
    free(p);
    return request_of(MADE(2, .attributes = CODEC_GZIP), records);
}

static void test_rebuild_row_19_grows_over_the_limit(void)
{
    for (int to = CODEC_NONE; to < CODEC_MAX; to++) {
        struct validate_config cfg = defaults();
        cfg.max_message_bytes = 1000;
        cfg.compression = to;
        bool fits = to != CODEC_NONE;
        CU_ASSERT_EQUAL(error_of(cfg, zeros(2000, 0, lit("k"))),
                        fits ? K_NONE : K_MESSAGE_TOO_LARGE);
    }
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_NONE;
    struct sent s = send_to(cfg, zeros(500, 0, lit("k")));
    int32_t n = s.v.batch.n;
    sent_close(&s);
    cfg.max_message_bytes = n;
    CU_ASSERT_EQUAL(error_of(cfg, zeros(500, 0, lit("k"))), K_NONE);
    cfg.max_message_bytes = n - 1;
    CU_ASSERT_EQUAL(error_of(cfg, zeros(500, 0, lit("k"))), K_MESSAGE_TOO_LARGE);
}

/* What the codec held back to the end counts as well: noise does not shrink, and has a frame now.
 */
static void test_rebuild_row_19_counts_the_last_bytes(void)
{
    struct rng rng = {2};
    uint8_t noise[900];
    rng_fill(&rng, noise, sizeof noise);
    for (int to = CODEC_GZIP; to < CODEC_MAX; to++) {
        struct buf records;
        buf_init(&records);
        put_record(&records, 0, 0, BYTES_NULL, (struct bytes){noise, sizeof noise});
        struct buf b = request_of(MADE(1), records);
        struct validate_config cfg = defaults();
        cfg.max_message_bytes = (int32_t)b.n;
        cfg.compression = to;
        CU_ASSERT_EQUAL(error_of(cfg, b), K_MESSAGE_TOO_LARGE);
    }
}

static void test_rebuild_row_19_comes_after_the_records(void)
{
    struct validate_config cfg = defaults();
    cfg.max_message_bytes = 1000;
    cfg.compression = CODEC_NONE;
    cfg.compacted = true;
    struct sent s = send_to(cfg, zeros(2000, 0, BYTES_NULL));
    CU_ASSERT_EQUAL(s.error, K_INVALID_RECORD);
    CU_ASSERT_EQUAL(s.v.record_errors_n, 1);
    sent_close(&s);
    CU_ASSERT_EQUAL(error_of(cfg, zeros(2000, -T0 - 2, lit("k"))), K_UNKNOWN_SERVER_ERROR);
}

static int16_t rebuilt_error(struct made m)
{
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_GZIP;
    m.records_n = 2;
    m.last_offset_delta = 1;
    return error_of(cfg, request_of(m, plain_records(2)));
}

/* What Kafka's builder cannot write, it answers with -1. */
static void test_rebuild_refuses_what_kafkas_builder_does(void)
{
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2)), K_NONE);
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2, .base_timestamp = -1)), K_NONE);
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2, .base_timestamp = -2)), K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2, .attributes = BATCH_TRANSACTIONAL)),
                    K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2, .producer_id = 5, .base_sequence = 0)),
                    K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2, .producer_id = -5, .producer_epoch = 0)),
                    K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(
        rebuilt_error(MADE(2, .producer_id = -5, .producer_epoch = -3, .base_sequence = 5)),
        K_NONE);
    CU_ASSERT_EQUAL(rebuilt_error(MADE(2, .producer_epoch = -3, .base_sequence = -5)), K_NONE);
}

/* ------------------------------------------------------------------ memory */

/* 100 MB of zeros in one record, about 100 kB of gzip. */
static struct buf bomb(void)
{
    return zeros(100u << 20, 0, lit("k"));
}

static void test_validate_a_bomb_that_stays_takes_a_window(void)
{
    struct budget budget;
    budget_init(&budget, NULL, 1 << 20);
    struct sent s = send_budgeted(defaults(), bomb(), &budget);
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_TRUE(budget.peak_bytes < 100000);
    sent_close(&s);
    CU_ASSERT_EQUAL(budget.used_bytes, 0);
}

static void test_rebuild_a_bomb_stops_at_the_budget(void)
{
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_ZSTD;
    struct budget budget;
    budget_init(&budget, NULL, 10 << 20);
    struct sent s = send_budgeted(cfg, bomb(), &budget);
    CU_ASSERT_EQUAL(s.error, K_UNKNOWN_SERVER_ERROR);
    sent_close(&s);
    CU_ASSERT_EQUAL(budget.used_bytes, 0);
}

/* Many records: the rebuilt batch is given up at the limit, not held. */
static void test_rebuild_gives_up_early_what_is_too_large(void)
{
    struct buf records;
    buf_init(&records);
    static const uint8_t value[1000];
    for (int i = 0; i < 20000; i++)
        put_record(&records, 0, i, lit("k"), (struct bytes){value, sizeof value});
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_NONE;
    struct budget budget;
    budget_init(&budget, NULL, 1 << 20);
    struct sent s =
        send_budgeted(cfg, request_of(MADE(20000, .attributes = CODEC_GZIP), records), &budget);
    CU_ASSERT_EQUAL(s.error, K_MESSAGE_TOO_LARGE);
    sent_close(&s);
}

/* In place nothing is allocated for an uncompressed batch. */
static void test_validate_in_place_allocates_nothing(void)
{
    struct buf b = request_of(MADE(100), plain_records(100));
    struct validate_config cfg = defaults();
    struct arena arena;
    struct batch_facts facts;
    struct validated v;
    arena_init(&arena, NULL);
    fault_alloc_arm(1, true);
    batch_prepare(bytes_of(&b), &facts);
    int16_t error = batch_validate(&cfg, &facts, b.p, NOW, "topic", 0, &arena, &v);
    CU_ASSERT_FALSE(fault_alloc_hit());
    CU_ASSERT_EQUAL(error, K_NONE);
    CU_ASSERT_PTR_NULL(arena.head);
    arena_close(&arena);
    buf_close(&b);
}

static int16_t workload(struct validate_config cfg, const struct buf *request)
{
    struct budget budget;
    budget_init(&budget, NULL, UINT64_MAX);
    struct arena arena;
    struct batch_facts facts;
    struct validated v;
    arena_init(&arena, &budget);
    batch_prepare(bytes_of(request), &facts);
    int16_t error = batch_validate(&cfg, &facts, request->p, NOW, "topic", 0, &arena, &v);
    if (error == K_NONE)
        CU_ASSERT_TRUE(batch_crc_ok(&v.facts));
    arena_close(&arena);
    CU_ASSERT_EQUAL(budget.used_bytes, 0);
    return error;
}

/* Every allocation of a validation fails once, and from there on. Returns how many there were. */
static long fault_loop(struct validate_config cfg, struct buf request, int16_t expected)
{
    long n = 1;
    for (bool again = true; again; n++) {
        fault_alloc_arm(n, n % 2 == 0);
        int16_t error = workload(cfg, &request);
        again = fault_alloc_hit();
        CU_ASSERT_EQUAL(error, again ? K_UNKNOWN_SERVER_ERROR : expected);
    }
    buf_close(&request);
    return n;
}

static void test_validate_survives_every_failing_allocation(void)
{
    long points = 0;
    for (int16_t from = 0; from < CODEC_MAX; from++) {
        for (int to = -1; to < CODEC_MAX; to++) {
            struct validate_config cfg = defaults();
            cfg.compression = to;
            struct buf records = plain_records(100);
            static const uint8_t big[40000] = {1, 2, 3};
            put_record(&records, 0, 100, lit("k"), (struct bytes){big, sizeof big});
            points += fault_loop(cfg, request_of(MADE(101, .attributes = from), records), K_NONE);
            cfg.compacted = true;
            records = plain_records(1);
            for (int i = 1; i < 50; i++)
                put_record(&records, 0, i, BYTES_NULL, lit("v"));
            points += fault_loop(cfg, request_of(MADE(50, .attributes = from), records),
                                 K_INVALID_RECORD);
        }
    }
    CU_ASSERT_TRUE(points > 300);
}

TEST_MAIN(TEST(test_rebuild_keeps_records_and_producer),
          TEST(test_rebuild_drops_bits_without_meaning), TEST(test_rebuild_with_log_append_time),
          TEST(test_rebuild_takes_the_level), TEST(test_rebuild_not_for_another_level),
          TEST(test_rebuild_row_19_grows_over_the_limit),
          TEST(test_rebuild_row_19_counts_the_last_bytes),
          TEST(test_rebuild_row_19_comes_after_the_records),
          TEST(test_rebuild_refuses_what_kafkas_builder_does),
          TEST(test_validate_a_bomb_that_stays_takes_a_window),
          TEST(test_rebuild_a_bomb_stops_at_the_budget),
          TEST(test_rebuild_gives_up_early_what_is_too_large),
          TEST(test_validate_in_place_allocates_nothing),
          TEST(test_validate_survives_every_failing_allocation))
