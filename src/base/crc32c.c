/* CRC-32C, reflected polynomial 0x82f63b78.
 *
 * Tables: eight bytes a step. Table k maps a byte to its remainder k + 1 bytes later. The map is
 * linear over xor, so each table follows from the remainders of its eight single bits, and the
 * compiler fills the tables in.
 *
 * Hardware: the crc32 instruction has a latency of three cycles and a throughput of one, so three
 * neighbouring blocks are summed at once. The sum of a block is then moved past the blocks behind
 * it, that is multiplied by x^(8n) modulo the polynomial: a carry-less multiplication by a constant
 * x^(8n-33) and the crc32 instruction, which reduces and brings the missing factor x^33. */
#include "base/crc32c.h"

#define BIT(n, i, v) (((n) >> (i)&1u) != 0 ? (v) : 0u)
#define E1(n, a, b, c, d, e, f, g, h)                                                              \
    (BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^     \
     BIT(n, 6, g) ^ BIT(n, 7, h))
#define E4(n, ...)                                                                                 \
    E1(n, __VA_ARGS__), E1((n) + 1, __VA_ARGS__), E1((n) + 2, __VA_ARGS__), E1((n) + 3, __VA_ARGS__)
#define E16(n, ...)                                                                                \
    E4(n, __VA_ARGS__), E4((n) + 4, __VA_ARGS__), E4((n) + 8, __VA_ARGS__),                        \
        E4((n) + 12, __VA_ARGS__)
#define E64(n, ...)                                                                                \
    E16(n, __VA_ARGS__), E16((n) + 16, __VA_ARGS__), E16((n) + 32, __VA_ARGS__),                   \
        E16((n) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        E64(0u, __VA_ARGS__), E64(64u, __VA_ARGS__), E64(128u, __VA_ARGS__),                       \
            E64(192u, __VA_ARGS__)                                                                 \
    }

static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v = load64(p) ^ crc;
        crc = 0;
#pragma GCC unroll 8
        for (unsigned i = 0; i < 8; i++)
            crc ^= tables[7 - i][v >> (8 * i) & 0xff];
    }
    for (; n > 0; n--, p++)
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
    return ~crc;
}

#ifdef __x86_64__
#include <immintrin.h>

#define HARDWARE __attribute__((target("sse4.2,pclmul")))
#define LONG_BLOCK 1024
#define SHORT_BLOCK 128

HARDWARE static inline uint32_t shift(uint32_t crc, uint32_t factor)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)factor), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Three blocks at p; by_1 and by_2 move a sum past one and two blocks. */
HARDWARE static inline uint32_t three_blocks(uint32_t crc, const uint8_t *p, size_t block,
                                             uint32_t by_1, uint32_t by_2)
{
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < block; i += 8) {
        a = _mm_crc32_u64(a, load64(p + i));
        b = _mm_crc32_u64(b, load64(p + block + i));
        c = _mm_crc32_u64(c, load64(p + 2 * block + i));
    }
    return shift((uint32_t)a, by_2) ^ shift((uint32_t)b, by_1) ^ (uint32_t)c;
}

HARDWARE static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (; n >= 3 * LONG_BLOCK; n -= 3 * LONG_BLOCK, p += 3 * LONG_BLOCK)
        crc = three_blocks(crc, p, LONG_BLOCK, 0x170076fa, 0xa51b6135);
    for (; n >= 3 * SHORT_BLOCK; n -= 3 * SHORT_BLOCK, p += 3 * SHORT_BLOCK)
        crc = three_blocks(crc, p, SHORT_BLOCK, 0x0d3b6092, 0xb9e02b86);
    for (; n >= 8; n -= 8, p += 8)
        crc = (uint32_t)_mm_crc32_u64(crc, load64(p));
    for (; n > 0; n--, p++)
        crc = _mm_crc32_u8(crc, *p);
    return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return crc32c_hardware(crc, p, n);
    return crc32c_portable(crc, p, n);
}
#else
uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    return crc32c_portable(crc, p, n);
}
#endif
