/* Zstandard. Frames follow each other to the end of the input. A frame names its window, which is
 * the memory its reader takes: zstd's own limit of 128 MiB holds, as in Kafka, and all of it is
 * charged. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_customMem */
#include <zstd.h>
#include <zstd_errors.h>

#include "compress_codec.h"

#define ZSTD_LEVEL_DEFAULT 3

struct unzstd {
    ZSTD_DStream *z;
    bool inside; /* of a frame */
};

static void *zstd_alloc(void *budget, size_t n)
{
    return charged_alloc(budget, n);
}

static void zstd_free(void *budget, void *p)
{
    charged_free(budget, p);
}

static enum err zstd_err(size_t code)
{
    return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? ERR_NOMEM : ERR_INVALID;
}

static enum err zstd_open(struct decompressor *d)
{
    struct unzstd *s = charged_alloc(d->budget, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    *s = (struct unzstd){0};
    s->z = ZSTD_createDStream_advanced((ZSTD_customMem){zstd_alloc, zstd_free, d->budget});
    if (s->z == NULL) {
        charged_free(d->budget, s);
        return ERR_NOMEM;
    }
    d->state = s;
    return ERR_NONE;
}

static void zstd_close(struct decompressor *d)
{
    struct unzstd *s = d->state;
    if (s == NULL)
        return;
    ZSTD_freeDStream(s->z);
    charged_free(d->budget, s);
}

static enum err zstd_read(struct decompressor *d, uint8_t *p, size_t n, size_t *got)
{
    struct unzstd *s = d->state;
    ZSTD_inBuffer in = {d->pos, (size_t)(d->end - d->pos), 0};
    ZSTD_outBuffer out = {p, n, 0};
    enum err err = ERR_NONE;
    while (out.pos == 0 && err == ERR_NONE) {
        if (in.pos == in.size && !s->inside) {
            d->ended = true;
            break;
        }
        size_t before = in.pos;
        size_t r = ZSTD_decompressStream(s->z, &out, &in);
        if (ZSTD_isError(r))
            err = zstd_err(r);
        else if (in.pos == before && out.pos == 0)
            err = ERR_INVALID; /* it wants more than there is */
        else
            s->inside = r != 0;
    }
    d->pos += in.pos;
    *got = out.pos;
    return err;
}

static enum err zstd_begin(struct compressor *c)
{
    ZSTD_CCtx *z = ZSTD_createCCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, NULL});
    if (z == NULL)
        return ERR_NOMEM;
    c->state = z;
    int level = c->level == INT_MIN ? ZSTD_LEVEL_DEFAULT : c->level;
    size_t r = ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level);
    return ZSTD_isError(r) ? zstd_err(r) : ERR_NONE;
}

static enum err zstd_block(struct compressor *c, const uint8_t *p, size_t n, bool last)
{
    ZSTD_inBuffer in = {p, n, 0};
    size_t r = 0;
    /* Until all input is taken; at the end, until nothing is held back. */
    do {
        enum err err = buf_reserve(c->out, ZSTD_compressBound(n));
        if (err != ERR_NONE)
            return err;
        ZSTD_outBuffer out = {c->out->p, c->out->cap, c->out->n};
        r = ZSTD_compressStream2(c->state, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(r))
            return zstd_err(r);
        c->out->n = out.pos;
    } while (last ? r != 0 : in.pos < in.size);
    return ERR_NONE;
}

static void zstd_end(struct compressor *c)
{
    ZSTD_freeCCtx(c->state);
}

const struct codec_ops codec_zstd = {
    .open = zstd_open,
    .read = zstd_read,
    .close = zstd_close,
    .begin = zstd_begin,
    .block = zstd_block,
    .end = zstd_end,
};
