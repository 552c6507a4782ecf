/* The rows of the produce validation that prepare and validate decide, each with its error and in
 * their order: what stands above in this file wins over what stands below. */
#include "unit/wire/test_validate.h"

static struct buf plain(struct made m)
{
    return request_of(m, plain_records(m.records_n));
}

static struct buf raw(const void *p, size_t n)
{
    struct buf b;
    buf_init(&b);
    MUST(buf_append(&b, p, n));
    return b;
}

/* The first bytes of something that would be a batch. */
static void put_start(struct buf *b, int32_t length, int magic, size_t n)
{
    uint8_t p[64] = {0};
    put_be32(p + 8, (uint32_t)length);
    p[16] = (uint8_t)magic;
    MUST(buf_append(b, p, n));
}

/* ------------------------------------------------------------------ prepare */

static struct batch_facts prepared(const struct buf *b)
{
    struct batch_facts f;
    batch_prepare(bytes_of(b), &f);
    return f;
}

static void test_prepare_takes_a_plain_batch(void)
{
    struct buf b = plain(MADE(3));
    struct batch_facts f = prepared(&b);
    CU_ASSERT_EQUAL(f.error, K_NONE);
    CU_ASSERT_TRUE(f.crc_ok);
    CU_ASSERT_FALSE(f.transactional);
    CU_ASSERT_FALSE(f.malformed);
    CU_ASSERT_EQUAL(f.first.records_n, 3);
    CU_ASSERT_EQUAL(f.first.size_bytes, b.n);
    b.p[b.n - 1] ^= 1;
    f = prepared(&b);
    CU_ASSERT_EQUAL(f.error, K_NONE); /* row 12 comes after 10 and 11 */
    CU_ASSERT_FALSE(f.crc_ok);
    buf_close(&b);
    b = plain(MADE(3, .attributes = BATCH_TRANSACTIONAL));
    CU_ASSERT_TRUE(prepared(&b).transactional);
    buf_close(&b);
}

static void check_start(int32_t length, int magic, size_t n, int16_t error, bool malformed)
{
    struct buf b;
    buf_init(&b);
    put_start(&b, length, magic, n);
    struct batch_facts f = prepared(&b);
    CU_ASSERT_EQUAL(f.error, error);
    CU_ASSERT_EQUAL(f.malformed, malformed);
    buf_close(&b);
    /* The same behind a good batch concerns this partition only. */
    b = plain(MADE(1));
    put_start(&b, length, magic, n);
    f = prepared(&b);
    CU_ASSERT_EQUAL(f.error, malformed ? K_CORRUPT_MESSAGE : K_NONE);
    CU_ASSERT_FALSE(f.malformed);
    buf_close(&b);
}

static void test_prepare_row_1_malformed(void)
{
    check_start(13, 2, 12, K_CORRUPT_MESSAGE, true);
    check_start(-1, 2, 12, K_CORRUPT_MESSAGE, true);
    check_start(INT32_MIN, 2, 40, K_CORRUPT_MESSAGE, true);
    check_start(100, 3, 17, K_CORRUPT_MESSAGE, true);
    check_start(100, 255, 17, K_CORRUPT_MESSAGE, true);
    /* Too short to tell. */
    check_start(13, 2, 11, K_INVALID_RECORD, false);
    check_start(100, 3, 16, K_INVALID_RECORD, false);
}

static void test_prepare_row_4_no_complete_batch(void)
{
    struct batch_facts f;
    batch_prepare(BYTES_NULL, &f);
    CU_ASSERT_EQUAL(f.error, K_INVALID_RECORD);
    batch_prepare((struct bytes){(const uint8_t *)"", 0}, &f);
    CU_ASSERT_EQUAL(f.error, K_INVALID_RECORD);
    check_start(100, 2, 64, K_INVALID_RECORD, false);
    check_start(INT32_MAX, 2, 64, K_INVALID_RECORD, false);
    CU_ASSERT_EQUAL(error_of(defaults(), raw("", 0)), K_INVALID_RECORD);
}

static void test_prepare_row_4_old_magic(void)
{
    for (int magic = 0; magic < 2; magic++) {
        struct buf b;
        buf_init(&b);
        put_start(&b, 30, magic, 42);
        CU_ASSERT_EQUAL(prepared(&b).error, K_INVALID_RECORD);
        CU_ASSERT_FALSE(prepared(&b).malformed);
        buf_close(&b);
    }
}

static void test_prepare_row_4_second_batch(void)
{
    struct buf b = plain(MADE(1)), second = plain(MADE(1, .attributes = BATCH_TRANSACTIONAL));
    MUST(buf_append(&b, second.p, second.n));
    CU_ASSERT_EQUAL(prepared(&b).error, K_INVALID_RECORD);
    CU_ASSERT_FALSE(prepared(&b).transactional); /* Kafka asks the first only */
    buf_close(&b);
    buf_close(&second);
}

static void test_prepare_trims_a_partial_batch(void)
{
    struct buf b = plain(MADE(1)), second = plain(MADE(1));
    size_t n = b.n;
    MUST(buf_append(&b, second.p, second.n - 1));
    buf_close(&second);
    struct sent s = send_to(defaults(), b);
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL((size_t)s.v.batch.n, n);
    sent_close(&s);
}

/* ------------------------------------------------------------------ header */

static void test_validate_takes_a_plain_batch_untouched(void)
{
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        struct buf b = plain(MADE(3, .attributes = codec, .max_timestamp = T0 + 2));
        struct buf copy = raw(b.p, b.n);
        struct sent s = send_to(defaults(), b);
        CU_ASSERT_EQUAL(s.error, K_NONE);
        CU_ASSERT_PTR_EQUAL(s.v.batch.p, s.request.p);
        CU_ASSERT_TRUE(bytes_eq(s.v.batch, bytes_of(&copy)));
        CU_ASSERT_FALSE(s.v.owned_copy);
        CU_ASSERT_EQUAL(s.v.log_append_time_ms, -1);
        CU_ASSERT_EQUAL(s.v.max_timestamp, T0 + 2);
        CU_ASSERT_EQUAL(s.v.facts.records_n, 3);
        CU_ASSERT_PTR_EQUAL(s.v.facts.p, s.v.batch.p);
        sent_close(&s);
        buf_close(&copy);
    }
}

static void test_validate_row_10_base_offset(void)
{
    CU_ASSERT_EQUAL(error_of(defaults(), plain(MADE(1, .base_offset = 1))), K_INVALID_RECORD);
    CU_ASSERT_EQUAL(error_of(defaults(), plain(MADE(1, .base_offset = -1))), K_INVALID_RECORD);
    struct validate_config cfg = defaults();
    cfg.max_message_bytes = 10;
    CU_ASSERT_EQUAL(error_of(cfg, plain(MADE(1, .base_offset = 1))), K_INVALID_RECORD);
}

static void test_validate_row_11_max_message_bytes(void)
{
    struct validate_config cfg = defaults();
    struct buf b = plain(MADE(1));
    cfg.max_message_bytes = (int32_t)b.n;
    CU_ASSERT_EQUAL(error_of(cfg, b), K_NONE); /* the whole batch counts */
    cfg.max_message_bytes--;
    CU_ASSERT_EQUAL(error_of(cfg, plain(MADE(1))), K_MESSAGE_TOO_LARGE);
    b = plain(MADE(1));
    b.p[b.n - 1] ^= 1;
    CU_ASSERT_EQUAL(error_of(cfg, b), K_MESSAGE_TOO_LARGE); /* before the CRC */
    cfg.max_message_bytes = 0;
    CU_ASSERT_EQUAL(error_of(cfg, plain(MADE(1))), K_MESSAGE_TOO_LARGE);
}

static struct buf codec_bits(int16_t codec, struct made m)
{
    struct buf b, records = plain_records(1);
    buf_init(&b);
    m.attributes |= codec;
    put_batch(&b, m, bytes_of(&records));
    buf_close(&records);
    return b;
}

static void test_validate_row_12_crc_and_size(void)
{
    struct buf b = codec_bits(5, MADE(1));
    b.p[20] ^= 1;
    CU_ASSERT_EQUAL(error_of(defaults(), b), K_CORRUPT_MESSAGE);
    for (int32_t length = 14; length < 49; length++) {
        buf_init(&b);
        put_start(&b, length, 2, (size_t)length + 12);
        CU_ASSERT_EQUAL(error_of(defaults(), b), K_CORRUPT_MESSAGE);
    }
}

static void test_validate_row_13_unknown_codec(void)
{
    for (int16_t codec = 5; codec < 8; codec++) {
        CU_ASSERT_EQUAL(error_of(defaults(), codec_bits(codec, MADE(1))), K_UNKNOWN_SERVER_ERROR);
        CU_ASSERT_EQUAL(error_of(defaults(), codec_bits(codec, MADE(0, .attributes = 0x20))),
                        K_UNKNOWN_SERVER_ERROR);
    }
}

static void test_validate_row_14_counts(void)
{
    struct made bad[] = {
        MADE(1, .records_n = 0),
        MADE(0),
        MADE(1, .records_n = -1),
        MADE(1, .records_n = INT32_MAX),
        MADE(1, .last_offset_delta = -1),
        MADE(1, .last_offset_delta = INT32_MIN),
        MADE(1, .last_offset_delta = INT32_MAX, .records_n = INT32_MIN),
        MADE(1, .last_offset_delta = INT32_MAX, .records_n = INT32_MAX),
        MADE(1, .last_offset_delta = 1),
        MADE(2, .last_offset_delta = 0),
    };
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT_EQUAL(error_of(defaults(), codec_bits(0, bad[i])), K_INVALID_RECORD);
}

static void test_validate_row_15_control_and_sequence(void)
{
    CU_ASSERT_EQUAL(error_of(defaults(), plain(MADE(1, .attributes = 0x20))), K_INVALID_RECORD);
    CU_ASSERT_EQUAL(error_of(defaults(), plain(MADE(1, .attributes = 0x30))), K_INVALID_RECORD);
    CU_ASSERT_EQUAL(error_of(defaults(), plain(MADE(1, .producer_id = 0))), K_INVALID_RECORD);
    CU_ASSERT_EQUAL(error_of(defaults(), plain(MADE(1, .producer_id = 9, .producer_epoch = 0,
                                                    .base_sequence = INT32_MIN))),
                    K_INVALID_RECORD);
}

/* ------------------------------------------------------------------ records */

/* 87 whatever the codec, and whether or not the batch would be rebuilt. */
static void check_records(struct buf records, int n, int16_t expected)
{
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        for (int to = -1; to < CODEC_MAX; to++) {
            struct validate_config cfg = defaults();
            cfg.compression = to;
            struct buf b;
            buf_init(&b);
            put_compressed(&b, MADE(n, .attributes = codec), bytes_of(&records));
            CU_ASSERT_EQUAL(error_of(cfg, b), expected);
        }
    }
    buf_close(&records);
}

static void test_validate_row_16_too_few_or_too_many(void)
{
    check_records(plain_records(3), 3, K_NONE);
    check_records(plain_records(2), 3, K_INVALID_RECORD);
    check_records(plain_records(4), 3, K_INVALID_RECORD);
    struct buf b = plain_records(3);
    MUST(buf_append(&b, "", 1));
    check_records(b, 3, K_INVALID_RECORD);
}

static void test_validate_row_16_malformed(void)
{
    struct buf b = plain_records(2);
    MUST(buf_append(&b, "\x0e\x00\x00\x04\x02k\x10\x00", 8)); /* value over the record */
    check_records(b, 3, K_INVALID_RECORD);
    b = plain_records(2);
    MUST(buf_append(&b, "\x0c\x00\x00\x04\x02k\x01\x00", 8)); /* length too short */
    check_records(b, 3, K_INVALID_RECORD);
    b = plain_records(2);
    MUST(buf_append(&b, "\x01", 1)); /* negative length */
    check_records(b, 3, K_INVALID_RECORD);
}

static void test_validate_row_16_record_over_max_decompressed(void)
{
    struct validate_config cfg = defaults();
    cfg.max_decompressed_bytes = 50;
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        for (int to = -1; to < CODEC_MAX; to++) {
            struct buf records = plain_records(1);
            uint8_t big[60] = {0};
            put_record(&records, 0, 1, lit("k"), (struct bytes){big, sizeof big});
            cfg.compression = to;
            CU_ASSERT_EQUAL(error_of(cfg, request_of(MADE(2, .attributes = codec), records)),
                            codec == CODEC_NONE ? K_NONE : K_INVALID_RECORD);
        }
    }
}

static void test_validate_row_17_decompression(void)
{
    for (int16_t codec = CODEC_GZIP; codec < CODEC_MAX; codec++) {
        for (int to = -1; to < CODEC_MAX; to++) {
            struct validate_config cfg = defaults();
            cfg.compression = to;
            struct buf b;
            buf_init(&b);
            put_batch(&b, MADE(1, .attributes = codec), lit("this is no stream of any codec"));
            CU_ASSERT_EQUAL(error_of(cfg, b), K_UNKNOWN_SERVER_ERROR);
            struct buf whole = plain(MADE(30, .attributes = codec));
            buf_init(&b);
            put_batch(
                &b, MADE(30, .attributes = codec),
                (struct bytes){whole.p + BATCH_OVERHEAD, (int32_t)(whole.n - BATCH_OVERHEAD) / 2});
            CU_ASSERT_EQUAL(error_of(cfg, b), K_UNKNOWN_SERVER_ERROR);
            buf_close(&whole);
        }
    }
}

/* Offsets 0, 2, 1 and a record of the given timestamp delta and key last. */
static struct buf odd_offsets(int16_t codec, int64_t ts_delta, struct bytes key)
{
    struct buf records;
    buf_init(&records);
    put_record(&records, 0, 0, lit("k"), lit("v"));
    put_record(&records, 0, 2, lit("k"), lit("v"));
    put_record(&records, ts_delta, -1, key, lit("v"));
    return request_of(MADE(3, .attributes = codec), records);
}

static void test_validate_row_17_offsets_of_a_compressed_batch(void)
{
    CU_ASSERT_EQUAL(error_of(defaults(), odd_offsets(CODEC_NONE, 0, lit("k"))), K_NONE);
    for (int16_t codec = CODEC_GZIP; codec < CODEC_MAX; codec++)
        CU_ASSERT_EQUAL(error_of(defaults(), odd_offsets(codec, 0, lit("k"))),
                        K_UNKNOWN_SERVER_ERROR);
    /* A rebuilt batch gets new ones. */
    struct validate_config cfg = defaults();
    cfg.compression = CODEC_NONE;
    struct sent s = send_to(cfg, odd_offsets(CODEC_GZIP, 0, lit("k")));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    struct record_reader *r;
    MUST(record_reader_new(&s.v.facts, INT32_MAX, &r));
    for (int i = 0; i < 3; i++) {
        struct record rec;
        bool end;
        MUST(record_reader_next(r, &rec, &end));
        CU_ASSERT_EQUAL(rec.offset_delta, i);
    }
    record_reader_free(r);
    sent_close(&s);
    /* A record's own error is found first. */
    s = send_to(defaults(), odd_offsets(CODEC_GZIP, INT64_C(1) << 40, lit("k")));
    CU_ASSERT_EQUAL(s.error, K_INVALID_TIMESTAMP);
    sent_close(&s);
}

static void test_validate_row_19_segment_bytes(void)
{
    for (int to = -1; to < CODEC_MAX; to++) {
        struct validate_config cfg = defaults();
        cfg.compression = to;
        cfg.segment_bytes = 60;
        CU_ASSERT_EQUAL(error_of(cfg, plain(MADE(1))), K_RECORD_LIST_TOO_LARGE);
    }
    struct validate_config cfg = defaults();
    struct buf b = plain(MADE(1));
    cfg.segment_bytes = (int32_t)b.n;
    CU_ASSERT_EQUAL(error_of(cfg, b), K_NONE);
}

/* ------------------------------------------------------------------ accepted as sent */

static void test_validate_accepts_oddities(void)
{
    struct made odd[] = {
        MADE(2, .producer_id = -5, .base_sequence = -4, .producer_epoch = 3),
        MADE(2, .producer_id = 5, .base_sequence = 0, .producer_epoch = -1),
        MADE(2, .attributes = BATCH_TRANSACTIONAL),
        MADE(2, .producer_id = 5, .base_sequence = INT32_MAX, .producer_epoch = 0),
    };
    for (size_t i = 0; i < ARRAY_N(odd); i++) {
        odd[i].max_timestamp = T0 + 1;
        struct buf b = plain(odd[i]), copy = raw(b.p, b.n);
        struct sent s = send_to(defaults(), b);
        CU_ASSERT_EQUAL(s.error, K_NONE);
        CU_ASSERT_TRUE(bytes_eq(s.v.batch, bytes_of(&copy)));
        sent_close(&s);
        buf_close(&copy);
    }
}

/* Bits 6 to 15 stay, unless the header is written anyway. */
static void test_validate_unused_attribute_bits(void)
{
    struct made m = MADE(2, .attributes = (int16_t)0xffc0, .max_timestamp = T0 + 1);
    struct sent s = send_to(defaults(), plain(m));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.facts.attributes, (int16_t)0xffc0);
    sent_close(&s);
    m.max_timestamp = T0 + 7;
    s = send_to(defaults(), plain(m));
    CU_ASSERT_EQUAL(s.v.facts.attributes, 0x40);
    CU_ASSERT_EQUAL(s.v.max_timestamp, T0 + 1);
    CU_ASSERT_TRUE(batch_crc_ok(&s.v.facts));
    sent_close(&s);
}

static void test_validate_record_attributes_stay(void)
{
    struct buf records = plain_records(1);
    records.p[1] = 0x7f;
    struct sent s = send_to(defaults(), request_of(MADE(1), records));
    CU_ASSERT_EQUAL(s.error, K_NONE);
    CU_ASSERT_EQUAL(s.v.batch.p[BATCH_OVERHEAD + 1], 0x7f);
    sent_close(&s);
}

TEST_MAIN(TEST(test_prepare_takes_a_plain_batch), TEST(test_prepare_row_1_malformed),
          TEST(test_prepare_row_4_no_complete_batch), TEST(test_prepare_row_4_old_magic),
          TEST(test_prepare_row_4_second_batch), TEST(test_prepare_trims_a_partial_batch),
          TEST(test_validate_takes_a_plain_batch_untouched), TEST(test_validate_row_10_base_offset),
          TEST(test_validate_row_11_max_message_bytes), TEST(test_validate_row_12_crc_and_size),
          TEST(test_validate_row_13_unknown_codec), TEST(test_validate_row_14_counts),
          TEST(test_validate_row_15_control_and_sequence),
          TEST(test_validate_row_16_too_few_or_too_many), TEST(test_validate_row_16_malformed),
          TEST(test_validate_row_16_record_over_max_decompressed),
          TEST(test_validate_row_17_decompression),
          TEST(test_validate_row_17_offsets_of_a_compressed_batch),
          TEST(test_validate_row_19_segment_bytes), TEST(test_validate_accepts_oddities),
          TEST(test_validate_unused_attribute_bits), TEST(test_validate_record_attributes_stay))
