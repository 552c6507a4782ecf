/* The answers of the do-nothing server: encoded once, patched when sent. */
#ifndef LIMIT_TEMPLATES_H
#define LIMIT_TEMPLATES_H

#include "base/arena.h"

#define TEMPLATE_CORRELATION_AT 4
#define TEMPLATE_FETCH_TAIL 3 /* bytes behind the records: tags of partition, topic, message */

/* A frame, its length included. */
struct answer_template {
    const uint8_t *p;
    size_t n;
    size_t partition_at, offset_at; /* of an int32 and an int64, where it has them */
};

/* As Kafka answers: one entry per API. Each is false when out of memory. */
bool template_api_versions(struct arena *a, int16_t version, struct answer_template *out);
/* offset_at: of the base offset. */
bool template_produce(struct arena *a, int16_t version, struct str topic,
                      struct answer_template *out);
/* What stands before records of this many bytes. */
bool template_fetch(struct arena *a, int16_t version, struct str topic, int32_t records_bytes,
                    struct answer_template *out);

#endif
