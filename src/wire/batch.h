/* Record batches, magic 2 (Kafka's DefaultRecordBatch): header access, integrity, records. Pure
 * functions of bytes; big endian. */
#ifndef WIRE_BATCH_H
#define WIRE_BATCH_H

#include "base/err.h"
#include "base/types.h"

#define BATCH_OVERHEAD 61     /* header; the records follow */
#define BATCH_LOG_OVERHEAD 12 /* baseOffset and batchLength, before what batchLength counts */
#define BATCH_MIN 17          /* up to and with magic: what is needed to tell the format */

#define BATCH_CODEC_MASK 0x07
#define BATCH_LOG_APPEND_TIME 0x08
#define BATCH_TRANSACTIONAL 0x10
#define BATCH_CONTROL 0x20
#define BATCH_DELETE_HORIZON 0x40

enum batch_codec { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD, CODEC_MAX };

/* The facts of one batch, in host order. */
struct batch {
    const uint8_t *p;    /* the batch itself */
    uint32_t size_bytes; /* batchLength + 12 */
    int64_t base_offset;
    int32_t leader_epoch;
    int8_t magic;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t records_n;
};

static inline int64_t batch_last_offset(const struct batch *b)
{
    return b->base_offset + b->last_offset_delta;
}
static inline int64_t batch_next_offset(const struct batch *b)
{
    return batch_last_offset(b) + 1;
}
/* True if a batch with these offsets can stand behind `end`, and its own end is an offset. */
static inline bool batch_follows(const struct batch *b, int64_t end)
{
    return b->last_offset_delta >= 0 && b->base_offset >= end &&
           b->base_offset <= INT64_MAX - 1 - b->last_offset_delta;
}
static inline enum batch_codec batch_codec(const struct batch *b)
{
    return (enum batch_codec)(b->attributes & BATCH_CODEC_MASK);
}
/* Sequence of the last record; wraps from 2^31-1 to 0. */
int32_t batch_last_sequence(const struct batch *b);

/* Size in bytes claimed by the first 12 bytes; ERR_TRUNCATED if fewer than 12 bytes are there,
 * ERR_CORRUPT if the claimed batchLength is below the smallest of any magic (14). */
MUST_USE enum err batch_peek_size(struct bytes in, uint64_t *size_bytes);
/* Reads the header of the batch at the start of in. Magic 0 and 1 (old log segments): base_offset,
 * size, magic, and a last offset equal to base_offset are set, the rest are "none" values.
 * ERR_TRUNCATED: not all of the claimed size is there; ERR_CORRUPT: impossible header. No CRC. */
MUST_USE enum err batch_parse(struct bytes in, struct batch *out);
/* As batch_parse, and *in begins behind it; an error leaves *in as it is. */
MUST_USE enum err batch_take(struct bytes *in, struct batch *out);
/* As batch_parse but only needs the 61 header bytes (a scan that reads headers only). */
MUST_USE enum err batch_parse_header(struct bytes in, struct batch *out);
/* True if the CRC holds. Magic 0/1: true. */
bool batch_crc_ok(const struct batch *b);

/* These two are not under the CRC and are set by the leader. */
void batch_set_base_offset(uint8_t *p, int64_t offset);
void batch_set_leader_epoch(uint8_t *p, int32_t epoch);
/* Rewrites attributes' timestamp type and maxTimestamp, renews the CRC. Bits 7-15 become 0. */
void batch_set_max_timestamp(uint8_t *p, bool log_append_time, int64_t max_timestamp);

/* ------------------------------------------------------------------ records */

struct record_header {
    struct str key;
    struct bytes value;
};

/* One record. Pointers live until the next call. */
struct record {
    int8_t attributes;
    int64_t timestamp;
    int64_t offset;
    int32_t offset_delta;
    struct bytes key, value;
    int32_t headers_n;
    struct bytes headers; /* encoded; record_next_header reads them */
};

struct record_reader; /* streams through compression; memory bounded by one record */

/* max_record_bytes bounds one record's body in a compressed batch (ERR_TOO_LARGE). ERR_UNSUPPORTED:
 * codec 5..7, or magic 0 and 1. The batch's bytes must stay. */
MUST_USE enum err record_reader_new(const struct batch *b, uint32_t max_record_bytes,
                                    struct record_reader **out);
/* ERR_NONE with a record, or with *end set when all records_n records were read and nothing is
 * left. ERR_CORRUPT: malformed record; ERR_INVALID: decompression failed; ERR_TRUNCATED: too few
 * records; ERR_TRAILING: bytes after the last; ERR_TOO_LARGE. After an error the reader is only
 * freed. */
MUST_USE enum err record_reader_next(struct record_reader *r, struct record *out, bool *end);
void record_reader_free(struct record_reader *r);
/* Consumes one header from *in. ERR_TRUNCATED, ERR_CORRUPT; neither for records that were read. */
MUST_USE enum err record_next_header(struct bytes *in, struct record_header *out);

/* ------------------------------------------------------------------ building */

/* Builds one batch record by record, for clients, internal topics, control batches and
 * recompression. The result is a whole batch with CRC. */
struct batch_builder;

struct batch_builder_args {
    int64_t base_offset;
    int32_t leader_epoch;
    int16_t attributes; /* codec, timestamp type, transactional, control */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int level; /* of compression; INT_MIN: the codec's default (gzip -1, lz4 9, zstd 3) */
};

MUST_USE enum err batch_builder_new(const struct batch_builder_args *args,
                                    struct batch_builder **out);
/* Offset deltas are 0, 1, 2...; timestamps are absolute. ERR_NOMEM; ERR_TOO_LARGE: a record over
 * 2^31-1 bytes; ERR_INVALID: a header's key is null. After an error the builder is only freed. */
MUST_USE enum err batch_builder_add(struct batch_builder *bb, int64_t timestamp, struct bytes key,
                                    struct bytes value, const struct record_header *headers,
                                    int32_t headers_n);
/* The same with a record's headers as they were read (struct record). */
MUST_USE enum err batch_builder_add_encoded(struct batch_builder *bb, int64_t timestamp,
                                            struct bytes key, struct bytes value,
                                            struct bytes headers, int32_t headers_n);
/* Encoded size so far without compression. */
size_t batch_builder_bytes(const struct batch_builder *bb);
/* Bytes of the batch that are written so far; what the codec still holds back is not among them. */
size_t batch_builder_written_bytes(const struct batch_builder *bb);
/* Once, with at least one record (else ERR_INVALID); ERR_TOO_LARGE over 2^31-1 bytes. out points
 * into the builder until it is freed. */
MUST_USE enum err batch_builder_finish(struct batch_builder *bb, struct bytes *out);
void batch_builder_free(struct batch_builder *bb);

#endif
