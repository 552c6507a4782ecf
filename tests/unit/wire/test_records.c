/* Records out of batches and into them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fault.h"
#include "support/rng.h"
#include "unit/wire/test_records.h"

#define BIG (1 << 20)

static struct batch_builder *builder(int16_t attributes)
{
    struct batch_builder_args args = {.base_offset = 100,
                                      .leader_epoch = 7,
                                      .attributes = attributes,
                                      .producer_id = 5,
                                      .producer_epoch = 6,
                                      .base_sequence = 8,
                                      .level = INT_MIN};
    struct batch_builder *bb;
    MUST(batch_builder_new(&args, &bb));
    return bb;
}

/* Reads all records; the last error, ERR_NONE at a proper end. */
static enum err read_all(const struct batch *b, uint32_t max, int32_t *n)
{
    struct record_reader *r;
    *n = 0;
    enum err err = record_reader_new(b, max, &r);
    if (err != ERR_NONE)
        return err;
    bool end = false;
    while (err == ERR_NONE && !end) {
        struct record rec;
        err = record_reader_next(r, &rec, &end);
        *n += err == ERR_NONE && !end;
    }
    record_reader_free(r);
    return err;
}

/* ------------------------------------------------------------------ building */

static void test_records_builder_writes_what_a_reader_reads(void)
{
    static const struct record_header headers[] = {
        {{"a", 1}, {(const uint8_t *)"1", 1}}, {{"a", 1}, {NULL, -1}}, {{"", 0}, {NULL, 0}}};
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        struct batch_builder *bb = builder(codec | BATCH_TRANSACTIONAL);
        MUST(batch_builder_add(bb, 1, lit("key"), lit("value"), NULL, 0));
        MUST(batch_builder_add(bb, INT64_C(5000000000000), lit(""), lit(""), headers, 3));
        MUST(batch_builder_add(bb, -5, BYTES_NULL, BYTES_NULL, headers, 1));
        struct bytes out;
        MUST(batch_builder_finish(bb, &out));
        struct batch b = parsed(out);
        CU_ASSERT_TRUE(batch_crc_ok(&b));
        CU_ASSERT_EQUAL(b.base_offset, 100);
        CU_ASSERT_EQUAL(b.leader_epoch, 7);
        CU_ASSERT_EQUAL(b.attributes, codec | BATCH_TRANSACTIONAL);
        CU_ASSERT_EQUAL(b.last_offset_delta, 2);
        CU_ASSERT_EQUAL(b.base_timestamp, 1);
        CU_ASSERT_EQUAL(b.max_timestamp, INT64_C(5000000000000));
        CU_ASSERT_EQUAL(b.producer_id, 5);
        CU_ASSERT_EQUAL(b.producer_epoch, 6);
        CU_ASSERT_EQUAL(b.base_sequence, 8);
        CU_ASSERT_EQUAL(b.records_n, 3);

        struct record_reader *r;
        struct record rec;
        bool end;
        MUST(record_reader_new(&b, INT32_MAX, &r));
        MUST(record_reader_next(r, &rec, &end));
        CU_ASSERT_TRUE(bytes_eq(rec.key, lit("key")) && bytes_eq(rec.value, lit("value")));
        CU_ASSERT_TRUE(rec.offset == 100 && rec.timestamp == 1 && rec.headers_n == 0);
        MUST(record_reader_next(r, &rec, &end));
        CU_ASSERT_TRUE(bytes_eq(rec.key, lit("")) && bytes_eq(rec.value, lit("")));
        CU_ASSERT_TRUE(rec.offset == 101 && rec.timestamp == INT64_C(5000000000000));
        CU_ASSERT_EQUAL(rec.headers_n, 3);
        for (int i = 0; i < 3; i++) {
            struct record_header h;
            MUST(record_next_header(&rec.headers, &h));
            CU_ASSERT_TRUE(str_eq(h.key, headers[i].key));
            CU_ASSERT_TRUE(bytes_eq(h.value, headers[i].value));
        }
        CU_ASSERT_EQUAL(rec.headers.n, 0);
        MUST(record_reader_next(r, &rec, &end));
        CU_ASSERT_TRUE(rec.key.n == -1 && rec.value.n == -1 && rec.headers_n == 1);
        CU_ASSERT_TRUE(rec.offset_delta == 2 && rec.timestamp == -5 && !end);
        MUST(record_reader_next(r, &rec, &end));
        CU_ASSERT_TRUE(end);
        record_reader_free(r);
        batch_builder_free(bb);
    }
}

static void test_records_five_hundred_headers(void)
{
    struct record_header headers[500];
    for (int i = 0; i < 500; i++)
        headers[i] = (struct record_header){{"same", 4}, {(const uint8_t *)"value", i % 6 - 1}};
    struct batch_builder *bb = builder(CODEC_ZSTD);
    MUST(batch_builder_add(bb, 1, lit("k"), BYTES_NULL, headers, 500));
    struct bytes out;
    MUST(batch_builder_finish(bb, &out));
    struct batch b = parsed(out);
    struct record_reader *r;
    struct record rec;
    bool end;
    MUST(record_reader_new(&b, INT32_MAX, &r));
    MUST(record_reader_next(r, &rec, &end));
    CU_ASSERT_EQUAL(rec.headers_n, 500);
    for (int i = 0; i < 500; i++) {
        struct record_header h;
        MUST(record_next_header(&rec.headers, &h));
        CU_ASSERT_TRUE(bytes_eq(h.value, headers[i].value));
    }
    CU_ASSERT_EQUAL(record_next_header(&rec.headers, &(struct record_header){0}), ERR_TRUNCATED);
    record_reader_free(r);
    batch_builder_free(bb);
}

static void test_records_encoded_headers_pass_unchanged(void)
{
    static const uint8_t encoded[] = {2, 'a', 1, 4, 'b', 'b', 2, 'x'};
    struct batch_builder *bb = builder(CODEC_NONE);
    MUST(batch_builder_add_encoded(bb, 1, lit("k"), lit("v"), (struct bytes){encoded, 8}, 2));
    CU_ASSERT_EQUAL(batch_builder_bytes(bb), batch_builder_written_bytes(bb));
    struct bytes out;
    MUST(batch_builder_finish(bb, &out));
    CU_ASSERT_EQUAL((size_t)out.n, batch_builder_bytes(bb));
    CU_ASSERT_EQUAL(memcmp(out.p + out.n - 8, encoded, 8), 0);
    int32_t n;
    struct batch b = parsed(out);
    CU_ASSERT_EQUAL(read_all(&b, INT32_MAX, &n), ERR_NONE);
    CU_ASSERT_EQUAL(n, 1);
    batch_builder_free(bb);
}

static void test_records_builder_refuses_what_is_no_batch(void)
{
    struct batch_builder *bb = builder(CODEC_NONE);
    struct bytes out;
    CU_ASSERT_EQUAL(batch_builder_finish(bb, &out), ERR_INVALID);
    struct record_header null_key = {STR_NULL, {NULL, 0}};
    CU_ASSERT_EQUAL(batch_builder_add(bb, 1, lit("k"), lit("v"), &null_key, 1), ERR_INVALID);
    /* Sizes are judged before a byte is read. */
    struct bytes huge = {(const uint8_t *)"", INT32_MAX};
    CU_ASSERT_EQUAL(batch_builder_add(bb, 1, lit("k"), huge, NULL, 0), ERR_TOO_LARGE);
    batch_builder_free(bb);
    struct batch_builder_args args = {.attributes = 5, .level = INT_MIN};
    CU_ASSERT_EQUAL(batch_builder_new(&args, &bb), ERR_UNSUPPORTED);
}

static void test_records_round_trip_at_every_size(void)
{
    static const int32_t sizes[] = {0, 1, 100, 16383, 16384, 16385, 65535, 65536, 65537, BIG};
    struct rng rng = {3};
    uint8_t *p = malloc(BIG);
    rng_fill(&rng, p, BIG);
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        struct batch_builder *bb = builder(codec);
        for (size_t i = 0; i < ARRAY_N(sizes); i++)
            MUST(batch_builder_add(bb, (int64_t)i, (struct bytes){p, sizes[i] / 2},
                                   (struct bytes){p, sizes[i]}, NULL, 0));
        struct bytes out;
        MUST(batch_builder_finish(bb, &out));
        struct batch b = parsed(out);
        struct record_reader *r;
        struct record rec;
        bool end;
        MUST(record_reader_new(&b, INT32_MAX, &r));
        for (size_t i = 0; i < ARRAY_N(sizes); i++) {
            MUST(record_reader_next(r, &rec, &end));
            CU_ASSERT_TRUE(bytes_eq(rec.key, (struct bytes){p, sizes[i] / 2}));
            CU_ASSERT_TRUE(bytes_eq(rec.value, (struct bytes){p, sizes[i]}));
        }
        MUST(record_reader_next(r, &rec, &end));
        CU_ASSERT_TRUE(end);
        record_reader_free(r);
        batch_builder_free(bb);
    }
    free(p);
}

/* ------------------------------------------------------------------ reading */

static void test_records_log_append_time_replaces_the_records_times(void)
{
    struct buf payload, b;
    buf_init(&payload);
    buf_init(&b);
    put_record(&payload, 5, 0, lit("k"), lit("v"));
    put_batch(&b, MADE(1, .attributes = BATCH_LOG_APPEND_TIME, .max_timestamp = 42),
              bytes_of(&payload));
    struct batch batch = parsed(bytes_of(&b));
    struct record_reader *r;
    struct record rec;
    bool end;
    MUST(record_reader_new(&batch, INT32_MAX, &r));
    MUST(record_reader_next(r, &rec, &end));
    CU_ASSERT_EQUAL(rec.timestamp, 42);
    record_reader_free(r);
    buf_close(&payload);
    buf_close(&b);
}

static void test_records_an_emptied_batch_is_at_its_end(void)
{
    struct buf b;
    buf_init(&b);
    put_batch(&b, MADE(0, .last_offset_delta = 9, .base_timestamp = -1), lit(""));
    struct batch batch = parsed(bytes_of(&b));
    int32_t n;
    CU_ASSERT_EQUAL(read_all(&batch, INT32_MAX, &n), ERR_NONE);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(batch_next_offset(&batch), 10);
    buf_close(&b);
}

struct malformed {
    const char *what;
    const char *bytes;
    size_t n;
    int32_t records_n;
    enum err err;
};

#define RAW(s) s, sizeof(s) - 1

/* length 7: attributes, delta 0, offset 0, key "k", value null, no headers */
#define GOOD "\x0e\x00\x00\x00\x02k\x01\x00"

static const struct malformed malformed[] = {
    {"good", RAW(GOOD), 1, ERR_NONE},
    {"good twice", RAW(GOOD GOOD), 2, ERR_NONE},
    {"key length -2 is null", RAW("\x0c\x00\x00\x00\x03\x01\x00"), 1, ERR_NONE},
    {"length longer than needed", RAW("\x8e\x80\x80\x80\x00\x00\x00\x00\x02k\x01\x00"), 1,
     ERR_NONE},
    {"too few", RAW(GOOD), 2, ERR_TRUNCATED},
    {"too many", RAW(GOOD GOOD), 1, ERR_TRAILING},
    {"a byte behind", RAW(GOOD "\x00"), 1, ERR_TRAILING},
    {"nothing", RAW(""), 1, ERR_TRUNCATED},
    {"negative length", RAW("\x01\x00\x00\x00\x02k\x01\x00"), 1, ERR_CORRUPT},
    {"length 0", RAW("\x00"), 1, ERR_TRUNCATED},
    {"length too long", RAW("\x10\x00\x00\x00\x02k\x01\x00"), 1, ERR_TRUNCATED},
    {"length too long, there is more", RAW("\x10\x00\x00\x00\x02k\x01\x00\x00"), 1, ERR_CORRUPT},
    {"length too short", RAW("\x0c\x00\x00\x00\x02k\x01\x00"), 1, ERR_CORRUPT},
    {"length of six bytes", RAW("\x8e\x80\x80\x80\x80\x00\x00\x00\x02k\x01\x00"), 1, ERR_CORRUPT},
    {"length of 2^31-1", RAW("\xfe\xff\xff\xff\x0f\x00\x00"), 1, ERR_TRUNCATED},
    {"key over the record", RAW("\x0e\x00\x00\x00\x20k\x01\x00"), 1, ERR_CORRUPT},
    {"key of 2^31-1", RAW("\x16\x00\x00\x00\xfe\xff\xff\xff\x0fk\x01\x00"), 1, ERR_CORRUPT},
    {"value over the record", RAW("\x0e\x00\x00\x00\x02k\x10\x00"), 1, ERR_CORRUPT},
    {"-1 headers", RAW("\x0e\x00\x00\x00\x02k\x01\x01"), 1, ERR_CORRUPT},
    {"more headers than bytes", RAW("\x0e\x00\x00\x00\x02k\x01\x02"), 1, ERR_CORRUPT},
    {"2^31-1 headers", RAW("\x16\x00\x00\x00\x02k\x01\xfe\xff\xff\xff\x0f"), 1, ERR_CORRUPT},
    {"header without key", RAW("\x12\x00\x00\x00\x02k\x01\x02\x01\x00"), 1, ERR_CORRUPT},
    {"header without value", RAW("\x10\x00\x00\x00\x02k\x01\x02\x00"), 1, ERR_TRUNCATED},
    {"timestamp of eleven bytes",
     RAW("\x24\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x00\x02k\x01\x00\x00"), 1,
     ERR_CORRUPT},
};

static void check_malformed(const struct malformed *m, int16_t codec)
{
    struct buf b;
    buf_init(&b);
    struct bytes payload = {(const uint8_t *)m->bytes, (int32_t)m->n};
    put_compressed(&b, MADE(m->records_n, .attributes = codec), payload);
    /* A copy of its own size, so that a read past the end is seen. */
    uint8_t *copy = malloc(b.n);
    memcpy(copy, b.p, b.n);
    struct batch batch = parsed((struct bytes){copy, (int32_t)b.n});
    int32_t n;
    enum err err = read_all(&batch, INT32_MAX, &n);
    /* With a stream behind it, a record that ends early cannot be told from a wrong length. */
    bool ok = err == m->err || (m->err != ERR_NONE && err == ERR_TRUNCATED) ||
              (m->err == ERR_TRUNCATED && err == ERR_CORRUPT);
    CU_ASSERT_TRUE(ok);
    if (!ok)
        fprintf(stderr, "%s, codec %d: %d\n", m->what, codec, (int)err);
    free(copy);
    buf_close(&b);
}

static void test_records_malformed_ones_are_errors(void)
{
    for (size_t i = 0; i < ARRAY_N(malformed); i++) {
        for (int16_t codec = 0; codec < CODEC_MAX; codec++)
            check_malformed(&malformed[i], codec);
    }
}

static void test_records_negative_count_reads_nothing(void)
{
    struct buf b;
    buf_init(&b);
    put_batch(&b, MADE(-1), lit(""));
    struct batch batch = parsed(bytes_of(&b));
    int32_t n;
    CU_ASSERT_EQUAL(read_all(&batch, INT32_MAX, &n), ERR_NONE);
    CU_ASSERT_EQUAL(n, 0);
    buf_close(&b);
}

static void test_records_broken_compression_is_invalid(void)
{
    for (int16_t codec = CODEC_GZIP; codec < CODEC_MAX; codec++) {
        struct buf b;
        buf_init(&b);
        put_batch(&b, MADE(1, .attributes = codec), lit("this is no stream of any codec"));
        struct batch batch = parsed(bytes_of(&b));
        int32_t n;
        CU_ASSERT_EQUAL(read_all(&batch, INT32_MAX, &n), ERR_INVALID);
        buf_close(&b);
    }
    struct buf b;
    buf_init(&b);
    put_batch(&b, MADE(1, .attributes = 6), lit("x"));
    struct batch batch = parsed(bytes_of(&b));
    int32_t n;
    CU_ASSERT_EQUAL(read_all(&batch, INT32_MAX, &n), ERR_UNSUPPORTED);
    buf_close(&b);
}

/* max.decompressed.message.bytes: the body of a record, in compressed batches only. */
static void test_records_size_limit_is_for_compressed_batches(void)
{
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        struct buf payload, b;
        buf_init(&payload);
        buf_init(&b);
        put_record(&payload, 0, 0, lit("k"), (struct bytes){(const uint8_t[100]){0}, 100});
        int32_t body = (int32_t)payload.n - 2, n;
        put_compressed(&b, MADE(1, .attributes = codec), bytes_of(&payload));
        struct batch batch = parsed(bytes_of(&b));
        CU_ASSERT_EQUAL(read_all(&batch, (uint32_t)body, &n), ERR_NONE);
        CU_ASSERT_EQUAL(read_all(&batch, (uint32_t)body - 1, &n),
                        codec == CODEC_NONE ? ERR_NONE : ERR_TOO_LARGE);
        buf_close(&payload);
        buf_close(&b);
    }
}

/* ------------------------------------------------------------------ memory */

static enum err build_and_read(int16_t codec, const uint8_t *p, int32_t n)
{
    struct batch_builder_args args = {.attributes = codec, .level = INT_MIN};
    struct batch_builder *bb = NULL;
    enum err err = batch_builder_new(&args, &bb);
    for (int i = 0; err == ERR_NONE && i < 3; i++)
        err = batch_builder_add(bb, i, lit("key"), (struct bytes){p, n}, NULL, 0);
    struct bytes out;
    if (err == ERR_NONE)
        err = batch_builder_finish(bb, &out);
    int32_t read_n = 0;
    if (err == ERR_NONE) {
        struct batch b = parsed(out);
        err = read_all(&b, INT32_MAX, &read_n);
    }
    CU_ASSERT_EQUAL(read_n == 3, err == ERR_NONE);
    batch_builder_free(bb);
    return err;
}

static void test_records_survive_every_failing_allocation(void)
{
    struct rng rng = {4};
    static uint8_t p[100000];
    rng_fill(&rng, p, sizeof p);
    for (int16_t codec = 0; codec < CODEC_MAX; codec++) {
        long n = 1;
        for (bool again = true; again; n++) {
            fault_alloc_arm(n, n % 2 == 0);
            enum err err = build_and_read(codec, p, sizeof p);
            again = fault_alloc_hit();
            CU_ASSERT_EQUAL(err, again ? ERR_NOMEM : ERR_NONE);
        }
        CU_ASSERT_TRUE(n > 5);
    }
}

TEST_MAIN(TEST(test_records_builder_writes_what_a_reader_reads),
          TEST(test_records_five_hundred_headers),
          TEST(test_records_encoded_headers_pass_unchanged),
          TEST(test_records_builder_refuses_what_is_no_batch),
          TEST(test_records_round_trip_at_every_size),
          TEST(test_records_log_append_time_replaces_the_records_times),
          TEST(test_records_an_emptied_batch_is_at_its_end),
          TEST(test_records_malformed_ones_are_errors),
          TEST(test_records_negative_count_reads_nothing),
          TEST(test_records_broken_compression_is_invalid),
          TEST(test_records_size_limit_is_for_compressed_batches),
          TEST(test_records_survive_every_failing_allocation))
