#include "log/scan.h"

#include <zlib.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/endian.h"

#define CRC_FROM 21 /* the CRC of magic 2 covers everything from here on */
#define MAGIC1_TIMESTAMP 18
#define MAGIC1_CRC_FROM 16 /* magic 0 and 1: a CRC-32 of zlib's kind, stored right before */

void scan_init(struct scan *s, struct file *f, uint64_t from, uint64_t end, uint8_t *buf,
               size_t cap)
{
    CHECK(cap >= SCAN_HEAD_BYTES && from <= end);
    *s = (struct scan){.f = f, .at = from, .end = end, .buf = buf, .cap = cap};
}

/* Makes [at, at + n) readable, n <= cap, and more behind it if there is. */
static enum err fill(struct scan *s, uint64_t at, size_t n, const uint8_t **p)
{
    if (at < s->buf_at || at + n > s->buf_at + s->buf_n) {
        uint64_t left = s->end - at;
        size_t want = left < s->cap ? (size_t)left : s->cap;
        s->buf_at = at;
        s->buf_n = 0;
        const struct vfs_ops *ops = s->f->fs->ops;
        enum err err = (s->now ? ops->pread_now : ops->pread)(s->f, s->buf, want, at, &s->buf_n);
        if (err != ERR_NONE) {
            s->buf_n = 0;
            return err;
        }
        if (s->buf_n < n)
            return ERR_TRUNCATED;
    }
    *p = s->buf + (at - s->buf_at);
    return ERR_NONE;
}

enum err scan_next(struct scan *s, struct batch *out, uint64_t *position, bool *more)
{
    *more = false;
    if (s->at >= s->end)
        return ERR_NONE;
    uint64_t left = s->end - s->at;
    size_t n = left < BATCH_OVERHEAD ? (size_t)left : BATCH_OVERHEAD;
    const uint8_t *p;
    enum err err = fill(s, s->at, n, &p);
    if (err == ERR_NONE)
        err = batch_parse_header((struct bytes){p, (int32_t)n}, out);
    if (err != ERR_NONE)
        return err;
    if (out->size_bytes > left)
        return ERR_TRUNCATED;
    if (out->magic == 1)
        out->max_timestamp = (int64_t)be64(p + MAGIC1_TIMESTAMP);
    *position = s->at;
    s->at += out->size_bytes;
    *more = true;
    return ERR_NONE;
}

enum err scan_body(struct scan *s, struct batch *b)
{
    if (b->size_bytes > s->cap)
        return ERR_TOO_LARGE;
    return fill(s, s->at - b->size_bytes, b->size_bytes, &b->p);
}

enum err scan_crc(struct scan *s, const struct batch *b)
{
    const bool old = b->magic < 2; /* CRC-32 of what follows it, as zlib's */
    uint64_t at = s->at - b->size_bytes + (old ? MAGIC1_CRC_FROM : CRC_FROM);
    uint32_t expected = b->crc;
    uint32_t crc = 0;
    if (old) {
        const uint8_t *p;
        enum err err = b->size_bytes < MAGIC1_CRC_FROM ? ERR_CORRUPT : fill(s, at - 4, 4, &p);
        if (err != ERR_NONE)
            return err;
        expected = be32(p);
    }
    while (at < s->at) {
        const uint8_t *p;
        size_t n = s->at - at < s->cap ? (size_t)(s->at - at) : s->cap;
        if (at >= s->buf_at && at < s->buf_at + s->buf_n && at + n > s->buf_at + s->buf_n)
            n = (size_t)(s->buf_at + s->buf_n - at); /* what is here already, first */
        enum err err = fill(s, at, n, &p);
        if (err != ERR_NONE)
            return err;
        crc = old ? (uint32_t)crc32(crc, p, (uInt)n) : crc32c(crc, p, n);
        at += n;
    }
    return crc == expected ? ERR_NONE : ERR_CORRUPT;
}
