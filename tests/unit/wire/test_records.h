/* What the tests of batches share: batches made byte by byte, good and bad. */
#ifndef TEST_RECORDS_H
#define TEST_RECORDS_H

#include "base/buf.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "support/test.h"
#include "wire/batch.h"
#include "wire/compress.h"
#include "wire/varint.h"

#define T0 INT64_C(1700000000000)

/* For steps that a test needs and does not test. */
#define MUST(e) must(e, __FILE__, __LINE__, #e)

static inline void must(enum err e, const char *file, int line, const char *what)
{
    if (e != ERR_NONE)
        check_failed(file, line, what);
}

static inline struct bytes bytes_of(const struct buf *b)
{
    return (struct bytes){b->p, (int32_t)b->n};
}

static inline struct bytes lit(const char *s)
{
    return s == NULL ? BYTES_NULL : (struct bytes){(const uint8_t *)s, (int32_t)strlen(s)};
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

static inline void put_varint(struct buf *b, int64_t v)
{
    uint8_t p[VARLONG_MAX];
    MUST(buf_append(b, p, varint_put(p, v)));
}

static inline void put_bytes(struct buf *b, struct bytes v)
{
    put_varint(b, v.n);
    if (v.n > 0)
        MUST(buf_append(b, v.p, (size_t)v.n));
}

/* One record without headers. */
static inline void put_record(struct buf *b, int64_t ts_delta, int32_t offset_delta,
                              struct bytes key, struct bytes value)
{
    struct buf body;
    buf_init(&body);
    MUST(buf_append(&body, "", 1));
    put_varint(&body, ts_delta);
    put_varint(&body, offset_delta);
    put_bytes(&body, key);
    put_bytes(&body, value);
    put_varint(&body, 0);
    put_bytes(b, bytes_of(&body));
    buf_close(&body);
}

/* MADE names what differs from its defaults, which is what this warns about. */
#pragma GCC diagnostic ignored "-Woverride-init"

/* A header to be filled in by hand; MADE gives the values of a plain producer. */
struct made {
    int64_t base_offset;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp, max_timestamp;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t records_n;
};

#define MADE(n, ...)                                                                               \
    ((struct made){.last_offset_delta = (n)-1,                                                     \
                   .base_timestamp = T0,                                                           \
                   .max_timestamp = T0,                                                            \
                   .producer_id = -1,                                                              \
                   .producer_epoch = -1,                                                           \
                   .base_sequence = -1,                                                            \
                   .records_n = (n),                                                               \
                   ##__VA_ARGS__})

/* Appends a batch of that header and these bytes behind it, with a right CRC. */
static inline void put_batch(struct buf *b, struct made m, struct bytes payload)
{
    MUST(buf_reserve(b, BATCH_OVERHEAD + (size_t)payload.n));
    uint8_t *p = b->p + b->n;
    put_be64(p, (uint64_t)m.base_offset);
    put_be32(p + 8, (uint32_t)(BATCH_OVERHEAD - BATCH_LOG_OVERHEAD + payload.n));
    put_be32(p + 12, UINT32_MAX);
    p[16] = 2;
    put_be16(p + 21, (uint16_t)m.attributes);
    put_be32(p + 23, (uint32_t)m.last_offset_delta);
    put_be64(p + 27, (uint64_t)m.base_timestamp);
    put_be64(p + 35, (uint64_t)m.max_timestamp);
    put_be64(p + 43, (uint64_t)m.producer_id);
    put_be16(p + 51, (uint16_t)m.producer_epoch);
    put_be32(p + 53, (uint32_t)m.base_sequence);
    put_be32(p + 57, (uint32_t)m.records_n);
    if (payload.n > 0)
        memcpy(p + BATCH_OVERHEAD, payload.p, (size_t)payload.n);
    put_be32(p + 17, crc32c(0, p + 21, BATCH_OVERHEAD - 21 + (size_t)payload.n));
    b->n += BATCH_OVERHEAD + (size_t)payload.n;
}

/* The same with the payload sent through the codec that the attributes name. */
static inline void put_compressed(struct buf *b, struct made m, struct bytes payload)
{
    struct buf packed;
    buf_init(&packed);
    MUST(compress_append((enum batch_codec)(m.attributes & BATCH_CODEC_MASK), INT32_MIN, payload,
                         &packed));
    put_batch(b, m, bytes_of(&packed));
    buf_close(&packed);
}

static inline struct batch parsed(struct bytes in)
{
    struct batch b;
    MUST(batch_parse(in, &b));
    return b;
}

#endif
