/* The records of one batch as a stream, for readers that stand on the stack: record_reader
 * (wire/batch.h) and the produce validation. Internal to wire. */
#ifndef WIRE_RECORD_H
#define WIRE_RECORD_H

#include "base/budget.h"
#include "wire/batch.h"

struct decompressor;

/* Uncompressed batches are read where they lie, nothing is allocated. Of compressed ones a window
 * is kept, which grows to the record at hand, and only as bytes really come. */
struct record_stream {
    const uint8_t *pos, *end; /* the window's unread part */
    uint64_t begun;           /* stream position of the window's end */
    struct decompressor *d;   /* NULL: the window is all there is */
    uint8_t *window;
    size_t cap;
    struct budget *budget; /* charged for window and decompressor; or NULL */

    struct batch batch;
    uint32_t max_record_bytes;
    int32_t read_n; /* records so far */
};

/* ERR_UNSUPPORTED: codec 5..7, or magic below 2. ERR_NOMEM. Nothing to close after an error. */
MUST_USE enum err record_stream_open(struct record_stream *s, const struct batch *b,
                                     uint32_t max_record_bytes, struct budget *budget);
/* As record_reader_next. Without `whole` only numbers and lengths are set, pointers are NULL, and
 * memory does not depend on the size of a record. */
MUST_USE enum err record_stream_next(struct record_stream *s, bool whole, struct record *out,
                                     bool *end);
void record_stream_close(struct record_stream *s);

#endif
