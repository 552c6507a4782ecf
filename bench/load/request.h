/* One request, encoded once. What differs from one sending to the next is patched where it stands.
 */
#ifndef LOAD_REQUEST_H
#define LOAD_REQUEST_H

#include "base/arena.h"
#include "load/options.h"
#include "wire/codec.h"

#define REQUEST_CORRELATION_AT 8 /* length, api key, version stand before it */

struct request {
    const struct wire_message *answer;
    int16_t version;
    int16_t answer_header_version;
    const uint8_t *p; /* the frame, its length included */
    size_t n;
    size_t head_n;       /* what is copied and patched; the rest is sent from p */
    size_t partition_at; /* an int32; 0: nothing to patch */
    size_t offset_at;    /* an int64; 0: nothing to patch */
    size_t batch_bytes;  /* produced by it */
};

/* number tells apart what connections must not share (the group of a commit). False, with a line
 * on stderr, when it cannot be encoded. Memory comes from a. */
bool request_make(const struct options *o, int number, struct arena *a, struct request *out);

#endif
