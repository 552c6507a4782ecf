/* Row 18: keys and timestamps, record by record; and what becomes of the batch's own timestamps. */
#include "unit/wire/test_validate.h"

static struct buf one(struct made m, int64_t ts_delta)
{
    struct buf records;
    buf_init(&records);
    put_record(&records, ts_delta, 0, lit("k"), lit("v"));
    return request_of(m, records);
}

static int16_t error_at(struct validate_config cfg, int64_t timestamp)
{
    struct sent s = send_to(cfg, one(MADE(1, .base_timestamp = timestamp), 0));
    int16_t error = s.error;
    sent_close(&s);
    return error;
}

/* ------------------------------------------------------------------ keys */

/* Keys by letter: k there, e empty, n null. */
static struct buf keyed(const char *keys, int64_t last_ts_delta, int16_t codec)
{
    struct buf records;
    buf_init(&records);
    int n = (int)strlen(keys);
    for (int i = 0; i < n; i++) {
        struct bytes key = keys[i] == 'k' ? lit("k") : keys[i] == 'e' ? lit("") : BYTES_NULL;
        put_record(&records, i == n - 1 ? last_ts_delta : 0, i, key, lit("v"));
    }
    return request_of(MADE(n, .attributes = codec), records);
}

static void test_validate_compacted_topics_need_keys(void)
{
    struct validate_config cfg = defaults();
    CU_ASSERT_EQUAL(error_of(cfg, keyed("nen", 0, 0)), K_NONE);
    cfg.compacted = true;
    CU_ASSERT_EQUAL(error_of(cfg, keyed("kek", 0, 0)), K_NONE);
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        for (int to = -1; to < CODEC_MAX; to++) {
            cfg.compression = to;
            struct sent s = send_to(cfg, keyed("nkne", 0, codec));
            CU_ASSERT_EQUAL(s.error, K_INVALID_RECORD);
            CU_ASSERT_EQUAL_FATAL(s.v.record_errors_n, 2);
            CU_ASSERT_EQUAL(s.v.record_errors[0].batch_index, 0);
            CU_ASSERT_EQUAL(s.v.record_errors[1].batch_index, 2);
            const char *text =
                "Compacted topic cannot accept message without key in topic partition topic-3";
            CU_ASSERT_STRING_EQUAL(s.v.record_errors[0].message, text);
            CU_ASSERT_STRING_EQUAL(s.v.record_errors[1].message, text);
            const char *head =
                "One or more records have been rejected due to 2 record errors in total, ";
            CU_ASSERT_EQUAL(strncmp(s.v.error_message, head, strlen(head)), 0);
            CU_ASSERT_EQUAL(s.v.batch.n, 0);
            sent_close(&s);
        }
    }
}

static void test_validate_any_timestamp_error_makes_it_32(void)
{
    struct validate_config cfg = defaults();
    cfg.compacted = true;
    struct sent s = send_to(cfg, keyed("nnk", 2 * HOUR, 0));
    CU_ASSERT_EQUAL(s.error, K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(s.v.record_errors_n, 3);
    CU_ASSERT_EQUAL(s.v.record_errors[2].batch_index, 2);
    CU_ASSERT_STRING_EQUAL(s.v.error_message,
                           "One or more records have been rejected due to invalid timestamp");
    sent_close(&s);
    /* A record without key is not looked at further. */
    s = send_to(cfg, keyed("kkn", 2 * HOUR, 0));
    CU_ASSERT_EQUAL(s.error, K_INVALID_RECORD);
    CU_ASSERT_EQUAL(s.v.record_errors_n, 1);
    sent_close(&s);
}

static void test_validate_offenders_are_listed_up_to_a_limit(void)
{
    struct validate_config cfg = defaults();
    cfg.compacted = true;
    struct buf records;
    buf_init(&records);
    for (int i = 0; i < 12000; i++)
        put_record(&records, 0, i, BYTES_NULL, BYTES_NULL);
    struct sent s = send_to(cfg, request_of(MADE(12000), records));
    CU_ASSERT_EQUAL(s.error, K_INVALID_RECORD);
    CU_ASSERT_EQUAL(s.v.record_errors_n, 10000);
    CU_ASSERT_EQUAL(s.v.record_errors[9999].batch_index, 9999);
    CU_ASSERT_PTR_NOT_NULL(strstr(s.v.error_message, " 12000 record errors "));
    sent_close(&s);
}

/* ------------------------------------------------------------------ CreateTime */

static void test_validate_create_time_bounds(void)
{
    struct validate_config cfg = defaults();
    cfg.timestamp_before_max_ms = 1000;
    cfg.timestamp_after_max_ms = 500;
    CU_ASSERT_EQUAL(error_at(cfg, NOW - 1000), K_NONE);
    CU_ASSERT_EQUAL(error_at(cfg, NOW - 1001), K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(error_at(cfg, NOW + 500), K_NONE);
    CU_ASSERT_EQUAL(error_at(cfg, NOW + 501), K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(error_at(cfg, 0), K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(error_at(cfg, -1), K_NONE); /* no timestamp */
    CU_ASSERT_EQUAL(error_at(cfg, -2), K_INVALID_TIMESTAMP);
}

static void test_validate_create_time_bounds_do_not_wrap(void)
{
    struct validate_config cfg = defaults();
    CU_ASSERT_EQUAL(error_at(cfg, 0), K_NONE);
    CU_ASSERT_EQUAL(error_at(cfg, -5), K_NONE);
    CU_ASSERT_EQUAL(error_at(cfg, NOW - INT64_MAX), K_NONE);
    CU_ASSERT_EQUAL(error_at(cfg, NOW - INT64_MAX - 1), K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(error_at(cfg, INT64_MIN), K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(error_at(cfg, INT64_MAX), K_INVALID_TIMESTAMP);
    cfg.timestamp_after_max_ms = INT64_MAX;
    CU_ASSERT_EQUAL(error_at(cfg, INT64_MAX), K_NONE);
}

static void test_validate_timestamps_are_the_records(void)
{
    /* 64-bit deltas, both ways; wrapping as in Kafka. */
    struct sent s = send_to(defaults(), one(MADE(1, .base_timestamp = 0), T0));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.max_timestamp, T0);
    sent_close(&s);
    s = send_to(defaults(), one(MADE(1, .base_timestamp = INT64_MAX), T0 - INT64_MAX));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.max_timestamp, T0);
    sent_close(&s);
    s = send_to(defaults(), one(MADE(1), INT64_C(1) << 40));
    CU_ASSERT_EQUAL(s.error, K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(s.v.record_errors_n, 1);
    CU_ASSERT_PTR_NOT_NULL(s.v.record_errors[0].message);
    sent_close(&s);
}

/* Records of T0 and T0 + 4; the header says something. */
static struct sent two(struct validate_config cfg, struct made m)
{
    struct buf records;
    buf_init(&records);
    put_record(&records, 4, 0, lit("k"), lit("v"));
    put_record(&records, 0, 1, lit("k"), lit("v"));
    return send_to(cfg, request_of(m, records));
}

static void test_validate_max_timestamp_is_recomputed(void)
{
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        struct sent s = two(defaults(), MADE(2, .attributes = codec, .max_timestamp = 1));
        CU_ASSERT_EQUAL(s.error, K_NONE);
        CU_ASSERT_EQUAL(s.v.facts.max_timestamp, T0 + 4);
        CU_ASSERT_EQUAL(s.v.facts.base_timestamp, T0);
        CU_ASSERT_TRUE(batch_crc_ok(&s.v.facts));
        sent_close(&s);
    }
}

static void test_validate_max_timestamp_without_any(void)
{
    for (int64_t ts = -7; ts < 0; ts += 6) {
        struct sent s = send_to(defaults(), one(MADE(1, .base_timestamp = ts), 0));
        CU_ASSERT_EQUAL(s.error, K_NONE);
        CU_ASSERT_EQUAL(s.v.facts.max_timestamp, -1);
        CU_ASSERT_EQUAL(s.v.max_timestamp, -1);
        CU_ASSERT_TRUE(batch_crc_ok(&s.v.facts));
        sent_close(&s);
    }
}

static void test_validate_clients_log_append_time_passes_and_is_cleared(void)
{
    struct made m = MADE(2, .attributes = BATCH_LOG_APPEND_TIME, .max_timestamp = T0 + 9);
    struct sent s = two(defaults(), m);
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.facts.attributes, 0);
    CU_ASSERT_EQUAL(s.v.max_timestamp, T0 + 9); /* every record's, by that bit */
    CU_ASSERT_TRUE(batch_crc_ok(&s.v.facts));
    sent_close(&s);
    m.max_timestamp = -1;
    s = two(defaults(), m);
    CU_ASSERT_EQUAL(s.error, K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(s.v.record_errors_n, 2);
    sent_close(&s);
    m.max_timestamp = NOW + 2 * HOUR;
    s = two(defaults(), m);
    CU_ASSERT_EQUAL(s.error, K_INVALID_TIMESTAMP);
    sent_close(&s);
}

/* ------------------------------------------------------------------ LogAppendTime */

static void test_validate_log_append_time_rewrites_the_header(void)
{
    struct validate_config cfg = defaults();
    cfg.log_append_time = true;
    cfg.timestamp_before_max_ms = 0; /* bounds are CreateTime's */
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        struct sent s = two(cfg, MADE(2, .attributes = codec | BATCH_TRANSACTIONAL,
                                      .base_timestamp = INT64_C(4102444800000)));
        CU_ASSERT_EQUAL(s.error, K_NONE);
        CU_ASSERT_EQUAL(s.v.log_append_time_ms, NOW);
        CU_ASSERT_EQUAL(s.v.max_timestamp, NOW);
        CU_ASSERT_EQUAL(s.v.facts.max_timestamp, NOW);
        CU_ASSERT_EQUAL(s.v.facts.base_timestamp, INT64_C(4102444800000));
        CU_ASSERT_EQUAL(s.v.facts.attributes, codec | BATCH_TRANSACTIONAL | BATCH_LOG_APPEND_TIME);
        CU_ASSERT_TRUE(batch_crc_ok(&s.v.facts));
        CU_ASSERT_FALSE(s.v.owned_copy);
        sent_close(&s);
    }
}

static void test_validate_log_append_time_is_not_the_clients(void)
{
    struct validate_config cfg = defaults();
    cfg.log_append_time = true;
    for (int to = -1; to < CODEC_MAX; to++) {
        cfg.compression = to;
        struct sent s = two(cfg, MADE(2, .attributes = BATCH_LOG_APPEND_TIME));
        CU_ASSERT_EQUAL(s.error, K_INVALID_TIMESTAMP);
        CU_ASSERT_EQUAL(s.v.record_errors_n, 2);
        CU_ASSERT_EQUAL(s.v.log_append_time_ms, -1);
        sent_close(&s);
    }
}

TEST_MAIN(TEST(test_validate_compacted_topics_need_keys),
          TEST(test_validate_any_timestamp_error_makes_it_32),
          TEST(test_validate_offenders_are_listed_up_to_a_limit),
          TEST(test_validate_create_time_bounds),
          TEST(test_validate_create_time_bounds_do_not_wrap),
          TEST(test_validate_timestamps_are_the_records),
          TEST(test_validate_max_timestamp_is_recomputed),
          TEST(test_validate_max_timestamp_without_any),
          TEST(test_validate_clients_log_append_time_passes_and_is_cleared),
          TEST(test_validate_log_append_time_rewrites_the_header),
          TEST(test_validate_log_append_time_is_not_the_clients))
