/* The least that can be read of a request: where its records are, which offset it asks for. */
#ifndef LIMIT_REQUEST_H
#define LIMIT_REQUEST_H

#include "base/types.h"

struct request {
    int16_t api_key, version;
    int32_t correlation_id;
    int32_t partition;
    int64_t offset;   /* of a fetch */
    uint8_t *records; /* of a produce */
    size_t records_n;
};

/* Of a whole frame with the load generator's shape: one topic, one partition, flexible versions.
 * False if it is not of that shape. */
bool request_read(uint8_t *frame, size_t n, struct request *out);

#endif
