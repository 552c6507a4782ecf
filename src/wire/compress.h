/* Kafka's four codecs as streams. What each accepts is what Kafka 4.4's readers accept (gzip: many
 * members, junk behind; snappy: xerial framing or one bare block; lz4: one frame of independent
 * blocks; zstd: many frames). */
#ifndef WIRE_COMPRESS_H
#define WIRE_COMPRESS_H

#include "base/buf.h"
#include "wire/batch.h"

struct decompressor;

/* in must stay. ERR_UNSUPPORTED for codecs 5..7, ERR_NOMEM. Memory: a window, never the output. */
MUST_USE enum err decompressor_new(enum batch_codec codec, struct bytes in,
                                   struct decompressor **out);
/* Up to n bytes; *got == 0 at the end of the stream. ERR_INVALID: not a stream of this codec. */
MUST_USE enum err decompressor_read(struct decompressor *d, void *p, size_t n, size_t *got);
void decompressor_free(struct decompressor *d);

/* Appends the compressed form of in to out. level INT_MIN: default. */
MUST_USE enum err compress_append(enum batch_codec codec, int level, struct bytes in,
                                  struct buf *out);

#endif
