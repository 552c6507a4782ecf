/* The common half of the codecs: objects, staging, sticky ends.
 *
 * Reading pulls: a codec turns the input that is left into at most n bytes, so memory is a window
 * and never the output, whatever a hostile stream expands to.
 *
 * Writing stages 64 KiB and hands that over at once. So a small stream reaches its codec in a
 * single call that is also the last one, which lets zstd size its tables by the input instead of by
 * its level (3.5 MB of tables for a 300 byte batch otherwise), and lz4 and snappy get whole
 * blocks. */
#include "compress_codec.h"

#include <stdlib.h>

#define CHARGE_HEAD 16 /* keeps malloc's alignment */

void *charged_alloc(struct budget *b, size_t n)
{
    if (n > SIZE_MAX - CHARGE_HEAD || !budget_take(b, n + CHARGE_HEAD))
        return NULL;
    uint8_t *p = malloc(n + CHARGE_HEAD);
    if (p == NULL) {
        budget_give(b, n + CHARGE_HEAD);
        return NULL;
    }
    memcpy(p, &n, sizeof n);
    return p + CHARGE_HEAD;
}

void charged_free(struct budget *b, void *p)
{
    if (p == NULL)
        return;
    uint8_t *head = (uint8_t *)p - CHARGE_HEAD;
    size_t n;
    memcpy(&n, head, sizeof n);
    budget_give(b, n + CHARGE_HEAD);
    free(head);
}

static const struct codec_ops *codec_find(enum batch_codec codec)
{
    switch (codec) {
    case CODEC_GZIP:
        return &codec_gzip;
    case CODEC_SNAPPY:
        return &codec_snappy;
    case CODEC_LZ4:
        return &codec_lz4;
    case CODEC_ZSTD:
        return &codec_zstd;
    case CODEC_NONE:
    case CODEC_MAX:
        break;
    }
    return NULL;
}

enum err decompressor_new(enum batch_codec codec, struct bytes in, struct budget *budget,
                          struct decompressor **out)
{
    const struct codec_ops *ops = codec_find(codec);
    if (ops == NULL)
        return ERR_UNSUPPORTED;
    struct decompressor *d = charged_alloc(budget, sizeof *d);
    if (d == NULL)
        return ERR_NOMEM;
    size_t n = in.n > 0 ? (size_t)in.n : 0;
    /* A null pointer may not even be moved by 0. */
    const uint8_t *p = n > 0 ? in.p : (const uint8_t *)"";
    *d = (struct decompressor){.ops = ops, .budget = budget, .pos = p, .end = p + n};
    enum err err = ops->open(d);
    if (err != ERR_NONE) {
        decompressor_free(d);
        return err;
    }
    *out = d;
    return ERR_NONE;
}

enum err decompressor_read(struct decompressor *d, void *p, size_t n, size_t *got)
{
    *got = 0;
    if (d->failed != ERR_NONE || d->ended)
        return d->failed;
    enum err err = d->ops->read(d, p, n, got);
    d->failed = err;
    return *got > 0 ? ERR_NONE : err;
}

void decompressor_free(struct decompressor *d)
{
    if (d == NULL)
        return;
    d->ops->close(d);
    charged_free(d->budget, d);
}

enum err compressor_new(enum batch_codec codec, int level, struct buf *out, struct compressor **res)
{
    const struct codec_ops *ops = codec_find(codec);
    if (ops == NULL && codec != CODEC_NONE)
        return ERR_UNSUPPORTED;
    struct compressor *c = malloc(sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    *c = (struct compressor){.ops = ops, .level = level, .out = out};
    if (ops != NULL) {
        c->stage = malloc(COMPRESS_STAGE_BYTES);
        if (c->stage == NULL || ops->begin(c) != ERR_NONE) {
            compressor_free(c);
            return ERR_NOMEM;
        }
    }
    *res = c;
    return ERR_NONE;
}

static enum err write_stage(struct compressor *c, bool last)
{
    enum err err = c->ops->block(c, c->stage, c->stage_n, last);
    c->begun = true;
    c->stage_n = 0;
    return err;
}

enum err compressor_write(struct compressor *c, const void *p, size_t n)
{
    if (c->ops == NULL)
        return buf_append(c->out, p, n);
    const uint8_t *from = p;
    while (n > 0) {
        /* A full stage waits for the next byte: it may be the last one. */
        if (c->stage_n == COMPRESS_STAGE_BYTES) {
            enum err err = write_stage(c, false);
            if (err != ERR_NONE)
                return err;
        }
        size_t room = COMPRESS_STAGE_BYTES - c->stage_n;
        size_t part = n < room ? n : room;
        memcpy(c->stage + c->stage_n, from, part);
        c->stage_n += part;
        from += part;
        n -= part;
    }
    return ERR_NONE;
}

enum err compressor_finish(struct compressor *c)
{
    return c->ops == NULL ? ERR_NONE : write_stage(c, true);
}

void compressor_free(struct compressor *c)
{
    if (c == NULL)
        return;
    if (c->ops != NULL)
        c->ops->end(c);
    free(c->stage);
    free(c);
}

enum err compress_append(enum batch_codec codec, int level, struct bytes in, struct buf *out)
{
    size_t before = out->n;
    struct compressor *c = NULL;
    enum err err = compressor_new(codec, level, out, &c);
    if (err == ERR_NONE)
        err = compressor_write(c, in.p, in.n > 0 ? (size_t)in.n : 0);
    if (err == ERR_NONE)
        err = compressor_finish(c);
    compressor_free(c);
    if (err != ERR_NONE)
        out->n = before;
    return err;
}
