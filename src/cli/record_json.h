/* A record as a line of JSON, written by consume and read by produce:
 *
 *   {"topic":"t","partition":0,"offset":7,"timestamp":1700000000000,"key":"k","value":"v",
 *    "headers":[{"key":"h","value":"w"}]}
 *
 * null is null, "" is empty; what is not UTF-8 is base64 in key_base64, value_base64, of headers
 * too. So the line gives back the record byte for byte. */
#ifndef CLI_RECORD_JSON_H
#define CLI_RECORD_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/batch.h"

/* Appends the line with its end. ERR_NOMEM; ERR_CORRUPT: headers that are none. */
MUST_USE enum err record_json_write(struct str topic, int32_t partition, const struct record *r,
                                    struct buf *out);

struct record_line {
    struct bytes key, value;
    struct record_header *headers;
    int32_t headers_n;
    bool has_timestamp, has_partition;
    int64_t timestamp;
    int32_t partition;
};

#define RECORD_JSON_MESSAGE_BYTES 200

/* Only value is required; topic and offset are read over. What is in out lives in the arena.
 * ERR_INVALID: with a message; ERR_NOMEM. */
MUST_USE enum err record_json_read(struct str line, struct arena *a, struct record_line *out,
                                   char message[RECORD_JSON_MESSAGE_BYTES]);

#endif
