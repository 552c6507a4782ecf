/* Kafka's four codecs as streams. What each accepts is what Kafka 4.4's readers accept (gzip: many
 * members, junk behind; snappy: xerial framing or one bare block; lz4: one frame of independent
 * blocks; zstd: many frames, windows up to 128 MiB). */
#ifndef WIRE_COMPRESS_H
#define WIRE_COMPRESS_H

#include "base/budget.h"
#include "base/buf.h"
#include "wire/batch.h"

struct decompressor;

/* in must stay. What the decompressor allocates (a window or a block, never the output) is charged
 * to budget, which may be NULL. ERR_UNSUPPORTED for codecs 5..7 and for CODEC_NONE, ERR_NOMEM. */
MUST_USE enum err decompressor_new(enum batch_codec codec, struct bytes in, struct budget *budget,
                                   struct decompressor **out);
/* Up to n bytes, n > 0; *got == 0 at the end of the stream. ERR_INVALID: not, or no longer, a
 * stream of this codec; ERR_NOMEM. An error stays. */
MUST_USE enum err decompressor_read(struct decompressor *d, void *p, size_t n, size_t *got);
void decompressor_free(struct decompressor *d);

struct compressor;

/* Appends to out, which must stay and to which nobody else may append until the end. CODEC_NONE
 * copies. Pending input is at most 64 KiB and what the codec itself holds back. ERR_UNSUPPORTED
 * for codecs 5..7; level INT_MIN: the codec's default. */
MUST_USE enum err compressor_new(enum batch_codec codec, int level, struct buf *out,
                                 struct compressor **c);
/* ERR_NOMEM: out now ends anywhere; free the compressor. */
MUST_USE enum err compressor_write(struct compressor *c, const void *p, size_t n);
MUST_USE enum err compressor_finish(struct compressor *c);
void compressor_free(struct compressor *c);

/* Appends the compressed form of in to out. level INT_MIN: default. After an error out is as it
 * was. */
MUST_USE enum err compress_append(enum batch_codec codec, int level, struct bytes in,
                                  struct buf *out);

#endif
