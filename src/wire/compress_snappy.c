/* Snappy in the xerial framing: 16 bytes of header (magic, two version ints nobody checks), then
 * blocks of int32 length and a raw snappy block. Input that does not begin so is one bare block
 * (librdkafka, franz-go). As snappy-java reads: a header may stand again between blocks, fewer than
 * four bytes at the end are ignored.
 *
 * A raw block says how long it will be. That is a claim: a block of n bytes cannot give more than
 * 64 bytes for 3 of its own, so longer claims are refused before memory is taken. */
#include <limits.h>
#include <snappy-c.h>

#include "base/endian.h"
#include "compress_codec.h"

#define XERIAL_HEAD 16
#define XERIAL_MAGIC_N 8
#define SNAPPY_BLOCK_BYTES (32u << 10) /* input of a written block, as snappy-java's */
#define SNAPPY_RATIO_MAX 22            /* more than 64 / 3 */

static const uint8_t xerial_head[XERIAL_HEAD] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                                 0,    0,   0,   1,   0,   0,   0,   1};

struct unsnappy {
    bool started, framed;
    uint8_t *block; /* uncompressed; charged */
    size_t cap, n, pos;
};

static enum err snappy_open(struct decompressor *d)
{
    struct unsnappy *s = charged_alloc(d->budget, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    *s = (struct unsnappy){0};
    d->state = s;
    return ERR_NONE;
}

static void snappy_close(struct decompressor *d)
{
    struct unsnappy *s = d->state;
    if (s == NULL)
        return;
    charged_free(d->budget, s->block);
    charged_free(d->budget, s);
}

static bool is_xerial(const struct decompressor *d)
{
    return d->end - d->pos >= XERIAL_HEAD && memcmp(d->pos, xerial_head, XERIAL_MAGIC_N) == 0;
}

/* The raw block in the next n bytes of input. */
static enum err read_block(struct decompressor *d, struct unsnappy *s, size_t n)
{
    const char *from = (const char *)d->pos;
    size_t len;
    if (snappy_uncompressed_length(from, n, &len) != SNAPPY_OK || len / SNAPPY_RATIO_MAX > n)
        return ERR_INVALID;
    if (len > s->cap) {
        charged_free(d->budget, s->block);
        s->cap = 0;
        s->block = charged_alloc(d->budget, len);
        if (s->block == NULL)
            return ERR_NOMEM;
        s->cap = len;
    }
    char none;
    char *to = s->block != NULL ? (char *)s->block : &none;
    if (snappy_uncompress(from, n, to, &len) != SNAPPY_OK)
        return ERR_INVALID;
    d->pos += n;
    s->pos = 0;
    s->n = len;
    return ERR_NONE;
}

/* Steps to the next block, which may be empty; sets d->ended when there is none. */
static enum err next_block(struct decompressor *d, struct unsnappy *s)
{
    if (!s->started) {
        s->started = true;
        s->framed = is_xerial(d);
        if (!s->framed)
            return read_block(d, s, (size_t)(d->end - d->pos));
        d->pos += XERIAL_HEAD;
    }
    if (!s->framed || d->end - d->pos < 4) {
        d->ended = true;
        return ERR_NONE;
    }
    if (memcmp(d->pos, xerial_head, 4) == 0) {
        if (d->end - d->pos < XERIAL_HEAD)
            return ERR_INVALID;
        if (is_xerial(d))
            d->pos += XERIAL_HEAD;
        else
            d->ended = true;
        return ERR_NONE;
    }
    uint32_t n = be32(d->pos);
    d->pos += 4;
    if (n > (size_t)(d->end - d->pos))
        return ERR_INVALID;
    return read_block(d, s, n);
}

static enum err snappy_read(struct decompressor *d, uint8_t *p, size_t n, size_t *got)
{
    struct unsnappy *s = d->state;
    while (s->pos == s->n && !d->ended) {
        enum err err = next_block(d, s);
        if (err != ERR_NONE)
            return err;
    }
    size_t left = s->n - s->pos;
    *got = left < n ? left : n;
    if (*got > 0)
        memcpy(p, s->block + s->pos, *got);
    s->pos += *got;
    return ERR_NONE;
}

static enum err snappy_begin(struct compressor *c)
{
    c->state = NULL;
    return ERR_NONE;
}

static enum err write_block(struct compressor *c, const uint8_t *p, size_t n)
{
    size_t len = snappy_max_compressed_length(n);
    enum err err = buf_reserve(c->out, 4 + len);
    if (err != ERR_NONE)
        return err;
    uint8_t *to = c->out->p + c->out->n;
    if (snappy_compress((const char *)p, n, (char *)to + 4, &len) != SNAPPY_OK)
        return ERR_NOMEM;
    put_be32(to, (uint32_t)len);
    c->out->n += 4 + len;
    return ERR_NONE;
}

static enum err snappy_block(struct compressor *c, const uint8_t *p, size_t n, bool last)
{
    if (!c->begun) {
        enum err err = buf_append(c->out, xerial_head, XERIAL_HEAD);
        if (err != ERR_NONE)
            return err;
    }
    for (size_t at = 0; at < n; at += SNAPPY_BLOCK_BYTES) {
        size_t part = n - at < SNAPPY_BLOCK_BYTES ? n - at : SNAPPY_BLOCK_BYTES;
        enum err err = write_block(c, p + at, part);
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

static void snappy_end(struct compressor *c)
{
    c->state = NULL;
}

const struct codec_ops codec_snappy = {
    .open = snappy_open,
    .read = snappy_read,
    .close = snappy_close,
    .begin = snappy_begin,
    .block = snappy_block,
    .end = snappy_end,
};
