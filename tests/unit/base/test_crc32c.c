#include "base/crc32c.h"

#include "support/test.h"

#define BYTES_N 8192

static uint8_t bytes[BYTES_N + 16];

static void fill(void)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < sizeof bytes; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(x >> 24);
    }
}

/* The definition, bit by bit. */
static uint32_t by_definition(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78 & (0u - (crc & 1)));
    }
    return ~crc;
}

static void test_crc32c_known_vectors(void)
{
    uint8_t block[32];
    CU_ASSERT_EQUAL(crc32c(0, "123456789", 9), 0xe3069283);
    CU_ASSERT_EQUAL(crc32c_portable(0, "123456789", 9), 0xe3069283);
    /* RFC 3720, B.4 */
    memset(block, 0, sizeof block);
    CU_ASSERT_EQUAL(crc32c(0, block, sizeof block), 0x8a9136aa);
    memset(block, 0xff, sizeof block);
    CU_ASSERT_EQUAL(crc32c(0, block, sizeof block), 0x62a8ab43);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)i;
    CU_ASSERT_EQUAL(crc32c(0, block, sizeof block), 0x46dd794e);
    CU_ASSERT_EQUAL(crc32c(0, "", 0), 0);
}

static void test_crc32c_agrees_at_every_alignment(void)
{
    fill();
    size_t wrong = 0;
    for (size_t at = 0; at < 16; at++) {
        for (size_t n = 0; n < 900; n++) {
            uint32_t right = crc32c_portable(0, bytes + at, n);
            wrong += crc32c(0, bytes + at, n) != right;
            if (n % 37 == 0)
                wrong += by_definition(bytes + at, n) != right;
        }
        for (size_t n = 3050; n < BYTES_N; n += 61)
            wrong += crc32c(0, bytes + at, n) != crc32c_portable(0, bytes + at, n);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void test_crc32c_continues(void)
{
    fill();
    uint32_t whole = crc32c(0, bytes, BYTES_N);
    CU_ASSERT_EQUAL(whole, by_definition(bytes, BYTES_N));
    for (size_t cut = 0; cut <= BYTES_N; cut += 333) {
        uint32_t crc = crc32c(0, bytes, cut);
        CU_ASSERT_EQUAL(crc32c(crc, bytes + cut, BYTES_N - cut), whole);
        crc = crc32c_portable(0, bytes, cut);
        CU_ASSERT_EQUAL(crc32c_portable(crc, bytes + cut, BYTES_N - cut), whole);
    }
}

TEST_MAIN(TEST(test_crc32c_known_vectors), TEST(test_crc32c_agrees_at_every_alignment),
          TEST(test_crc32c_continues))
