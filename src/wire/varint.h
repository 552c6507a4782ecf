/* Zigzag base-128 integers, as in record batches (Kafka: varint and varlong of a record). As
 * Kafka reads them: bits beyond the type's width in the last byte are dropped, one byte more is an
 * error, and encodings longer than needed pass. */
#ifndef WIRE_VARINT_H
#define WIRE_VARINT_H

#include "base/types.h"

#define VARINT_MAX 5   /* bytes of a 32-bit one */
#define VARLONG_MAX 10 /* bytes of a 64-bit one */

static inline uint64_t varint_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t varint_unzigzag(uint64_t v)
{
    return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}

/* Bytes of the encoded form, 1 to VARLONG_MAX; the same for both widths. */
static inline size_t varint_size(int64_t v)
{
    uint64_t u = varint_zigzag(v) | 1;
    return (size_t)(70 - __builtin_clzll(u)) / 7;
}

/* Writes varint_size(v) bytes, returns how many. */
static inline size_t varint_put(uint8_t *p, int64_t v)
{
    uint64_t u = varint_zigzag(v);
    size_t n = 0;
    for (; u > 0x7f; u >>= 7)
        p[n++] = (uint8_t)(u | 0x80);
    p[n++] = (uint8_t)u;
    return n;
}

/* Reads up to max bytes of [p, end). Returns the bytes used; 0 if the bytes end first, -1 if no
 * byte of the first max ends the number. */
static inline int varint_get(const uint8_t *p, const uint8_t *end, int max, uint64_t *raw)
{
    uint64_t u = 0;
    for (int i = 0; i < max; i++) {
        if (p + i == end)
            return 0;
        u |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *raw = u;
            return i + 1;
        }
    }
    return -1;
}

#endif
