/* What a leader checks in a produced batch, and how it may rewrite it (Kafka's LogValidator and
 * UnifiedLog's checks). Two steps, law 6: batch_prepare is a function of the request alone,
 * batch_validate also of the topic's configuration. Neither knows the log. */
#ifndef WIRE_VALIDATE_H
#define WIRE_VALIDATE_H

#include "base/arena.h"
#include "wire/batch.h"
#include "wire/error.h"

struct validate_config {
    bool compacted;
    bool log_append_time;            /* message.timestamp.type */
    int64_t timestamp_before_max_ms; /* message.timestamp.before.max.ms */
    int64_t timestamp_after_max_ms;  /* message.timestamp.after.max.ms */
    int32_t max_message_bytes;       /* max.message.bytes */
    int32_t segment_bytes;           /* segment.bytes */
    int32_t max_decompressed_bytes;  /* max.decompressed.message.bytes */
    int compression;                 /* enum batch_codec, or -1: producer */
    int compression_level;           /* INT_MIN: default of the codec */
};

/* Facts of one partition's records in a Produce request, from prepare.
 *
 * Kafka looks for transactional batches before anything else, in the order of the partitions, and
 * only at the first batch of each: the first partition that is malformed refuses the whole request
 * (K_CORRUPT_MESSAGE), unless one before it is transactional, which ends the search. */
struct batch_facts {
    int16_t error;      /* K_NONE, K_INVALID_RECORD or K_CORRUPT_MESSAGE; see batch_prepare */
    bool crc_ok;        /* false if not looked at because of the error */
    bool transactional; /* the first batch has the bit */
    bool malformed;     /* the first batch has length < 14 or a magic not in 0..2 */
    struct batch
        first; /* with magic 2 and under 61 bytes: p, size, base offset, magic, attributes */
};

struct record_error {
    int32_t batch_index; /* index of the record in the batch */
    const char *message; /* NULL or text, in the arena */
};

struct validated {
    struct bytes batch;         /* to append: the request's bytes, or a rebuilt copy in the arena */
    struct batch facts;         /* of it */
    bool owned_copy;            /* rebuilt: not the request's bytes */
    int64_t log_append_time_ms; /* -1 with CreateTime */
    int64_t max_timestamp;
    /* on an error */
    struct record_error *record_errors;
    int32_t record_errors_n;
    const char *error_message; /* or NULL */
};

/* Structure and CRC of the records field. Every result is in out; never fails. null records, no
 * complete batch, magic 0 or 1, a second complete batch: K_INVALID_RECORD; the first or what stands
 * behind it cannot be a batch: K_CORRUPT_MESSAGE. A partial batch behind the first is trimmed. */
void batch_prepare(struct bytes records, struct batch_facts *out);

/* Rows 10 to 19 of the produce validation, in Kafka's order (Kafka: UnifiedLog's analysis of an
 * append, then LogValidator); an error of prepare is repeated. p is the batch inside the request
 * and may be changed in place (timestamps). K_NONE, or the Kafka error of the partition;
 * K_UNKNOWN_SERVER_ERROR is also the answer when memory or the arena's budget runs out.
 * topic/partition only for messages. client batches only: coordinators and followers pass by. */
int16_t batch_validate(const struct validate_config *cfg, const struct batch_facts *facts,
                       uint8_t *p, int64_t now_ms, const char *topic, int32_t partition,
                       struct arena *a, struct validated *out);

#endif
