/* What a codec implements: compress.c owns the objects and calls these. A table per codec. */
#ifndef WIRE_COMPRESS_CODEC_H
#define WIRE_COMPRESS_CODEC_H

#include <limits.h>

#include "wire/compress.h"

#define COMPRESS_STAGE_BYTES (64u << 10) /* input of one codec call but the last */

struct decompressor {
    const struct codec_ops *ops;
    struct budget *budget;
    const uint8_t *pos, *end; /* input not yet consumed */
    void *state;              /* the codec's; charged */
    enum err failed;          /* sticky */
    bool ended;               /* sticky */
};

struct compressor {
    const struct codec_ops *ops; /* NULL: CODEC_NONE */
    int level;                   /* INT_MIN: default */
    struct buf *out;
    void *state; /* the codec's */
    bool begun;  /* a block has been written */
    uint8_t *stage;
    size_t stage_n;
};

struct codec_ops {
    /* Allocates d->state. */
    enum err (*open)(struct decompressor *d);
    /* At least one byte and ERR_NONE, or *got == 0 with an error or d->ended. An error may come
     * with bytes; it is reported after them. */
    enum err (*read)(struct decompressor *d, uint8_t *p, size_t n, size_t *got);
    void (*close)(struct decompressor *d); /* state may be NULL */

    enum err (*begin)(struct compressor *c); /* allocates c->state; no output */
    /* n <= COMPRESS_STAGE_BYTES; the last one ends the stream and may be empty. */
    enum err (*block)(struct compressor *c, const uint8_t *p, size_t n, bool last);
    void (*end)(struct compressor *c); /* state may be NULL */
};

extern const struct codec_ops codec_gzip, codec_snappy, codec_lz4, codec_zstd;

/* malloc and free, charged to a budget (may be NULL) together with their bookkeeping. */
void *charged_alloc(struct budget *b, size_t n);
void charged_free(struct budget *b, void *p);

#endif
