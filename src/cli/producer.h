/* Records to the partitions of one topic: gathered into batches, one batch per partition and one
 * request per leader under way, so that nothing overtakes. With acks=all the broker knows the
 * producer, and a batch that is sent again is written once. What a leader cannot take now is sent
 * again for as long as the client's timeout without a success. */
#ifndef CLI_PRODUCER_H
#define CLI_PRODUCER_H

#include "cli/client.h"
#include "wire/batch.h"

#define PRODUCER_PENDING_BYTES (16u << 20) /* more are not to be added before some are gone */

struct producer_args {
    struct client *client;
    struct str topic;
    int16_t acks; /* -1 all, 0, 1 */
    enum batch_codec codec;
};

struct producer_record {
    int64_t timestamp;
    struct bytes key, value;
    const struct record_header *headers;
    int32_t headers_n;
    int32_t partition; /* -1: by the key, else in turn */
};

/* Records of one partition, in their order. */
struct producer_batch {
    struct list link;
    struct batch_builder *builder;
    struct bytes bytes; /* when closed; else p is NULL */
    size_t size;        /* what pending_bytes counts */
    size_t own_bytes;   /* of it: keys, values, headers */
    int32_t records_n, base_sequence;
};

struct producer_partition {
    int32_t index;
    int32_t leader;      /* -1: to be found */
    struct list batches; /* oldest first; only the last may be open */
    int32_t next_sequence;
    bool in_flight; /* the first batch */
};

struct producer {
    struct producer_args args;
    int64_t id; /* -1: the broker does not know us */
    int16_t epoch;
    struct producer_partition *v; /* by index */
    int32_t n;
    int32_t turn;      /* where records without a key go */
    struct list sends; /* requests under way */
    uint64_t added_n, written_n, written_bytes;
    size_t pending_bytes;
    const struct broker *told; /* that it failed, and it has not answered since; or NULL */
    int16_t last_error;        /* that may be over soon */
    int64_t refresh_us;        /* when leaders are looked for again; INT64_MAX: they are known */
    int64_t failing_us;        /* since when something did not succeed; INT64_MAX: all is well */
};

/* Finds the topic, making it when the cluster makes topics that are written to. CLI_FAILED: told.
 */
int producer_open(struct producer *p, const struct producer_args *args);
void producer_close(struct producer *p);
/* CLI_FAILED: told. */
int producer_add(struct producer *p, const struct producer_record *r);
/* Sends what can be sent now, takes the answers that are there. */
int producer_step(struct producer *p);
/* When it wants to step at the latest, besides after each turn. */
int64_t producer_deadline_us(const struct producer *p);
/* Steps and turns until all is written. */
int producer_flush(struct producer *p);

#endif
