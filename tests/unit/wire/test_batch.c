/* Headers of batches, and the integers inside. */
#include <stdlib.h>

#include "support/rng.h"
#include "unit/wire/test_records.h"

/* One record, all header fields different. */
static struct buf sample(void)
{
    struct buf payload, b;
    buf_init(&payload);
    buf_init(&b);
    put_record(&payload, 5, 0, lit("key"), lit("value"));
    put_batch(&b,
              MADE(1, .base_offset = INT64_C(0x0102030405060708), .attributes = 0x10,
                   .max_timestamp = T0 + 5, .producer_id = INT64_C(0x1112131415161718),
                   .producer_epoch = 0x2122, .base_sequence = 0x31323334),
              bytes_of(&payload));
    batch_set_leader_epoch(b.p, 0x41424344);
    buf_close(&payload);
    return b;
}

static void test_batch_parse_reads_every_field(void)
{
    struct buf in = sample();
    struct batch b = parsed(bytes_of(&in));
    CU_ASSERT_PTR_EQUAL(b.p, in.p);
    CU_ASSERT_EQUAL(b.size_bytes, in.n);
    CU_ASSERT_EQUAL(b.base_offset, INT64_C(0x0102030405060708));
    CU_ASSERT_EQUAL(b.leader_epoch, 0x41424344);
    CU_ASSERT_EQUAL(b.magic, 2);
    CU_ASSERT_EQUAL(b.attributes, 0x10);
    CU_ASSERT_EQUAL(b.last_offset_delta, 0);
    CU_ASSERT_EQUAL(b.base_timestamp, T0);
    CU_ASSERT_EQUAL(b.max_timestamp, T0 + 5);
    CU_ASSERT_EQUAL(b.producer_id, INT64_C(0x1112131415161718));
    CU_ASSERT_EQUAL(b.producer_epoch, 0x2122);
    CU_ASSERT_EQUAL(b.base_sequence, 0x31323334);
    CU_ASSERT_EQUAL(b.records_n, 1);
    CU_ASSERT_TRUE(batch_crc_ok(&b));
    CU_ASSERT_EQUAL(batch_next_offset(&b), INT64_C(0x0102030405060709));
    buf_close(&in);
}

static void test_batch_parse_needs_all_its_bytes(void)
{
    struct buf in = sample();
    struct batch b;
    for (size_t n = 0; n < in.n; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, in.p, n);
        struct bytes v = {cut, (int32_t)n};
        CU_ASSERT_EQUAL(batch_parse(v, &b), ERR_TRUNCATED);
        CU_ASSERT_EQUAL(batch_parse_header(v, &b), n < BATCH_OVERHEAD ? ERR_TRUNCATED : ERR_NONE);
        free(cut);
    }
    /* What stands behind a batch is not its business. */
    MUST(buf_append(&in, "behind", 6));
    CU_ASSERT_EQUAL(parsed(bytes_of(&in)).size_bytes, in.n - 6);
    buf_close(&in);
}

static enum err parse_with(struct buf *in, size_t at, uint32_t length, int magic)
{
    struct batch b;
    put_be32(in->p + at, length);
    in->p[16] = (uint8_t)magic;
    return batch_parse(bytes_of(in), &b);
}

static void test_batch_impossible_headers_are_corrupt(void)
{
    struct buf in = sample();
    uint64_t size;
    CU_ASSERT_EQUAL(parse_with(&in, 8, 13, 2), ERR_CORRUPT);
    CU_ASSERT_EQUAL(batch_peek_size(bytes_of(&in), &size), ERR_CORRUPT);
    CU_ASSERT_EQUAL(parse_with(&in, 8, 0, 2), ERR_CORRUPT);
    CU_ASSERT_EQUAL(parse_with(&in, 8, UINT32_MAX, 2), ERR_CORRUPT);
    CU_ASSERT_EQUAL(parse_with(&in, 8, 14, 2), ERR_CORRUPT); /* too short for magic 2 */
    CU_ASSERT_EQUAL(parse_with(&in, 8, 48, 2), ERR_CORRUPT);
    CU_ASSERT_EQUAL(parse_with(&in, 8, 49, 2), ERR_NONE);
    CU_ASSERT_EQUAL(parse_with(&in, 8, 49, 3), ERR_CORRUPT);
    CU_ASSERT_EQUAL(parse_with(&in, 8, 49, 255), ERR_CORRUPT);
    CU_ASSERT_EQUAL(parse_with(&in, 8, INT32_MAX, 2), ERR_TRUNCATED);
    CU_ASSERT_EQUAL(batch_peek_size(bytes_of(&in), &size), ERR_NONE);
    CU_ASSERT_EQUAL(size, INT64_C(0x8000000b));
    CU_ASSERT_EQUAL(batch_peek_size((struct bytes){in.p, 11}, &size), ERR_TRUNCATED);
    buf_close(&in);
}

static void test_batch_old_magic_has_offset_and_size_only(void)
{
    for (uint8_t magic = 0; magic < 2; magic++) {
        uint8_t p[40] = {0};
        put_be64(p, 77);
        put_be32(p + 8, 28);
        p[16] = magic;
        struct batch b = parsed((struct bytes){p, sizeof p});
        CU_ASSERT_EQUAL(b.magic, magic);
        CU_ASSERT_EQUAL(b.size_bytes, 40);
        CU_ASSERT_EQUAL(b.base_offset, 77);
        CU_ASSERT_EQUAL(batch_last_offset(&b), 77);
        CU_ASSERT_EQUAL(b.leader_epoch, -1);
        CU_ASSERT_EQUAL(b.max_timestamp, -1);
        CU_ASSERT_EQUAL(b.producer_id, -1);
        CU_ASSERT_EQUAL(b.records_n, -1);
        CU_ASSERT_TRUE(batch_crc_ok(&b));
        struct record_reader *r;
        CU_ASSERT_EQUAL(record_reader_new(&b, INT32_MAX, &r), ERR_UNSUPPORTED);
    }
}

static void test_batch_crc_sees_every_flipped_bit(void)
{
    struct buf in = sample();
    for (size_t bit = 17 * 8; bit < in.n * 8; bit++) {
        in.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct batch b = parsed(bytes_of(&in));
        CU_ASSERT_FALSE(batch_crc_ok(&b));
        in.p[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_close(&in);
}

static void test_batch_offset_and_epoch_are_not_under_the_crc(void)
{
    struct buf in = sample();
    batch_set_base_offset(in.p, INT64_C(1) << 40);
    batch_set_leader_epoch(in.p, 9);
    struct batch b = parsed(bytes_of(&in));
    CU_ASSERT_EQUAL(b.base_offset, INT64_C(1) << 40);
    CU_ASSERT_EQUAL(b.leader_epoch, 9);
    CU_ASSERT_TRUE(batch_crc_ok(&b));
    buf_close(&in);
}

static void test_batch_set_max_timestamp_renews_crc_and_clears_unused_bits(void)
{
    struct buf in = sample();
    put_be16(in.p + 21, 0xfff3);
    batch_set_max_timestamp(in.p, true, T0 + 99);
    struct batch b = parsed(bytes_of(&in));
    CU_ASSERT_EQUAL(b.attributes, 0x7b); /* type set, horizon kept */
    CU_ASSERT_EQUAL(b.max_timestamp, T0 + 99);
    CU_ASSERT_TRUE(batch_crc_ok(&b));
    batch_set_max_timestamp(in.p, false, -1);
    b = parsed(bytes_of(&in));
    CU_ASSERT_EQUAL(b.attributes, 0x73);
    CU_ASSERT_EQUAL(b.max_timestamp, -1);
    CU_ASSERT_TRUE(batch_crc_ok(&b));
    buf_close(&in);
}

static void test_batch_last_sequence_wraps(void)
{
    struct batch b = {.base_sequence = INT32_MAX - 1, .last_offset_delta = 0};
    CU_ASSERT_EQUAL(batch_last_sequence(&b), INT32_MAX - 1);
    b.last_offset_delta = 1;
    CU_ASSERT_EQUAL(batch_last_sequence(&b), INT32_MAX);
    b.last_offset_delta = 2;
    CU_ASSERT_EQUAL(batch_last_sequence(&b), 0);
    b.base_sequence = -1;
    CU_ASSERT_EQUAL(batch_last_sequence(&b), -1);
}

/* ------------------------------------------------------------------ varint */

static void check_varint(int64_t v)
{
    uint8_t p[VARLONG_MAX];
    uint64_t raw = 0;
    size_t n = varint_put(p, v);
    CU_ASSERT_EQUAL(n, varint_size(v));
    CU_ASSERT_EQUAL(varint_get(p, p + n, VARLONG_MAX, &raw), (int)n);
    CU_ASSERT_EQUAL(varint_unzigzag(raw), v);
    CU_ASSERT_EQUAL(varint_get(p, p + n - 1, VARLONG_MAX, &raw), 0);
    CU_ASSERT_EQUAL(varint_get(p, p + n, (int)n - 1, &raw), -1);
}

static void test_batch_varints_round_trip(void)
{
    struct rng r = {1};
    for (int shift = 0; shift < 64; shift++) {
        int64_t v = (int64_t)(UINT64_C(1) << shift);
        check_varint(v);
        check_varint((int64_t)((uint64_t)v - 1));
        check_varint((int64_t)(0 - (uint64_t)v));
        check_varint((int64_t)(rng_u64(&r) >> shift));
    }
}

static void test_batch_varints_are_zigzag(void)
{
    static const struct {
        int64_t v;
        uint8_t p[2];
        size_t n;
    } known[] = {{0, {0}, 1},         {-1, {1}, 1},        {1, {2}, 1},
                 {63, {0x7e}, 1},     {-64, {0x7f}, 1},    {64, {0x80, 1}, 2},
                 {-65, {0x81, 1}, 2}, {300, {0xd8, 4}, 2}, {-300, {0xd7, 4}, 2}};
    for (size_t i = 0; i < ARRAY_N(known); i++) {
        uint8_t p[VARLONG_MAX];
        CU_ASSERT_EQUAL(varint_put(p, known[i].v), known[i].n);
        CU_ASSERT_EQUAL(memcmp(p, known[i].p, known[i].n), 0);
    }
}

static void test_batch_varints_longer_than_needed_pass(void)
{
    static const uint8_t p[] = {0x90, 0x80, 0x80, 0x80, 0x70, 0};
    uint64_t raw;
    CU_ASSERT_EQUAL(varint_get(p, p + sizeof p, VARINT_MAX, &raw), 5);
    CU_ASSERT_EQUAL((uint32_t)raw, 16); /* bits past the 32nd are dropped by the caller's cast */
    static const uint8_t over[] = {0x90, 0x80, 0x80, 0x80, 0x80, 0};
    CU_ASSERT_EQUAL(varint_get(over, over + sizeof over, VARINT_MAX, &raw), -1);
}

TEST_MAIN(TEST(test_batch_parse_reads_every_field), TEST(test_batch_parse_needs_all_its_bytes),
          TEST(test_batch_impossible_headers_are_corrupt),
          TEST(test_batch_old_magic_has_offset_and_size_only),
          TEST(test_batch_crc_sees_every_flipped_bit),
          TEST(test_batch_offset_and_epoch_are_not_under_the_crc),
          TEST(test_batch_set_max_timestamp_renews_crc_and_clears_unused_bits),
          TEST(test_batch_last_sequence_wraps), TEST(test_batch_varints_round_trip),
          TEST(test_batch_varints_are_zigzag), TEST(test_batch_varints_longer_than_needed_pass))
