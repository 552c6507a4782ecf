/* gzip by zlib. Members follow each other; what stands behind one and cannot be another is ignored,
 * as Java's reader does: too short for header and trailer, or no gzip header. */
#include <zlib.h>

#include "compress_codec.h"

#define GZIP_WINDOW_BITS (15 + 16) /* 16: gzip wrapping */
#define GZIP_MEMBER_MIN 18         /* header and trailer: no more bytes cannot be a member */
#define GZIP_OUT_STEP 16384

struct gunzip {
    z_stream z;
    gz_header head; /* of members behind the first; done == 1: it was a header */
    bool later;     /* in a member behind the first */
};

static void *gzip_alloc(void *budget, unsigned n, unsigned size)
{
    return charged_alloc(budget, (size_t)n * size);
}

static void gzip_free(void *budget, void *p)
{
    charged_free(budget, p);
}

static enum err gzip_open(struct decompressor *d)
{
    struct gunzip *g = charged_alloc(d->budget, sizeof *g);
    if (g == NULL)
        return ERR_NOMEM;
    *g = (struct gunzip){.z = {.zalloc = gzip_alloc, .zfree = gzip_free, .opaque = d->budget}};
    if (inflateInit2(&g->z, GZIP_WINDOW_BITS) != Z_OK) {
        charged_free(d->budget, g);
        return ERR_NOMEM;
    }
    d->state = g;
    return ERR_NONE;
}

static void gzip_close(struct decompressor *d)
{
    struct gunzip *g = d->state;
    if (g == NULL)
        return;
    inflateEnd(&g->z);
    charged_free(d->budget, g);
}

static void next_member(struct decompressor *d, struct gunzip *g)
{
    if (g->z.avail_in <= GZIP_MEMBER_MIN || inflateReset(&g->z) != Z_OK) {
        d->ended = true;
        return;
    }
    g->head = (gz_header){0};
    g->later = true;
    if (inflateGetHeader(&g->z, &g->head) != Z_OK)
        d->ended = true;
}

static enum err gzip_read(struct decompressor *d, uint8_t *p, size_t n, size_t *got)
{
    struct gunzip *g = d->state;
    g->z.next_in = (z_const Bytef *)d->pos;
    g->z.avail_in = (uInt)(d->end - d->pos);
    g->z.next_out = p;
    g->z.avail_out = n > UINT_MAX ? UINT_MAX : (uInt)n;
    enum err err = ERR_NONE;
    while (g->z.avail_out > 0 && err == ERR_NONE && !d->ended) {
        int r = inflate(&g->z, Z_NO_FLUSH);
        if (r == Z_OK)
            continue;
        if (r == Z_STREAM_END)
            next_member(d, g);
        else if (r == Z_MEM_ERROR)
            err = ERR_NOMEM;
        else if (g->later && g->head.done != 1)
            d->ended = true;
        else
            err = ERR_INVALID;
    }
    d->pos = g->z.next_in;
    *got = (size_t)(g->z.next_out - p);
    return err;
}

static enum err gzip_begin(struct compressor *c)
{
    z_stream *z = charged_alloc(NULL, sizeof *z);
    if (z == NULL)
        return ERR_NOMEM;
    *z = (z_stream){.zalloc = gzip_alloc, .zfree = gzip_free};
    int level = c->level < Z_DEFAULT_COMPRESSION || c->level > Z_BEST_COMPRESSION
                    ? Z_DEFAULT_COMPRESSION
                    : c->level;
    if (deflateInit2(z, level, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        charged_free(NULL, z);
        return ERR_NOMEM;
    }
    c->state = z;
    return ERR_NONE;
}

static enum err gzip_block(struct compressor *c, const uint8_t *p, size_t n, bool last)
{
    z_stream *z = c->state;
    z->next_in = (z_const Bytef *)p;
    z->avail_in = (uInt)n;
    int r = Z_OK;
    /* All input is taken when output room is left, and the end is written when it says so. */
    do {
        enum err err = buf_reserve(c->out, GZIP_OUT_STEP);
        if (err != ERR_NONE)
            return err;
        z->next_out = c->out->p + c->out->n;
        z->avail_out = GZIP_OUT_STEP;
        r = deflate(z, last ? Z_FINISH : Z_NO_FLUSH);
        c->out->n += GZIP_OUT_STEP - z->avail_out;
    } while (last ? r == Z_OK : z->avail_out == 0);
    return ERR_NONE;
}

static void gzip_end(struct compressor *c)
{
    if (c->state == NULL)
        return;
    deflateEnd(c->state);
    charged_free(NULL, c->state);
}

const struct codec_ops codec_gzip = {
    .open = gzip_open,
    .read = gzip_read,
    .close = gzip_close,
    .begin = gzip_begin,
    .block = gzip_block,
    .end = gzip_end,
};
