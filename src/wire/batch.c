/* Header of a record batch. */
#include "wire/batch.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "wire/batch_layout.h"

#define LENGTH_MIN 14        /* batchLength of the smallest batch of any magic */
#define KEPT_ATTRIBUTES 0x77 /* all that have a meaning, but the timestamp type */

int32_t batch_last_sequence(const struct batch *b)
{
    if (b->base_sequence < 0)
        return b->base_sequence;
    int64_t last = (int64_t)b->base_sequence + b->last_offset_delta;
    return (int32_t)(last & INT32_MAX);
}

enum err batch_peek_size(struct bytes in, uint64_t *size_bytes)
{
    if (in.n < BATCH_LOG_OVERHEAD)
        return ERR_TRUNCATED;
    int32_t length = (int32_t)be32(in.p + AT_LENGTH);
    if (length < LENGTH_MIN)
        return ERR_CORRUPT;
    *size_bytes = (uint64_t)length + BATCH_LOG_OVERHEAD;
    return ERR_NONE;
}

static void read_header(const uint8_t *p, struct batch *out)
{
    out->leader_epoch = (int32_t)be32(p + AT_LEADER_EPOCH);
    out->crc = be32(p + AT_CRC);
    out->attributes = (int16_t)be16(p + AT_ATTRIBUTES);
    out->last_offset_delta = (int32_t)be32(p + AT_LAST_OFFSET_DELTA);
    out->base_timestamp = (int64_t)be64(p + AT_BASE_TIMESTAMP);
    out->max_timestamp = (int64_t)be64(p + AT_MAX_TIMESTAMP);
    out->producer_id = (int64_t)be64(p + AT_PRODUCER_ID);
    out->producer_epoch = (int16_t)be16(p + AT_PRODUCER_EPOCH);
    out->base_sequence = (int32_t)be32(p + AT_BASE_SEQUENCE);
    out->records_n = (int32_t)be32(p + AT_RECORDS_N);
}

enum err batch_parse_header(struct bytes in, struct batch *out)
{
    uint64_t size;
    enum err err = batch_peek_size(in, &size);
    if (err != ERR_NONE)
        return err;
    if (in.n < BATCH_MIN)
        return ERR_TRUNCATED;
    int8_t magic = (int8_t)in.p[AT_MAGIC];
    if (magic < 0 || magic > 2 || size > UINT32_MAX || (magic == 2 && size < BATCH_OVERHEAD))
        return ERR_CORRUPT;
    *out = (struct batch){
        .p = in.p,
        .size_bytes = (uint32_t)size,
        .base_offset = (int64_t)be64(in.p + AT_BASE_OFFSET),
        .leader_epoch = -1,
        .magic = magic,
        .base_timestamp = -1,
        .max_timestamp = -1,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .records_n = -1,
    };
    if (magic < 2)
        return ERR_NONE;
    if (in.n < BATCH_OVERHEAD)
        return ERR_TRUNCATED;
    read_header(in.p, out);
    return ERR_NONE;
}

enum err batch_parse(struct bytes in, struct batch *out)
{
    enum err err = batch_parse_header(in, out);
    if (err != ERR_NONE)
        return err;
    return out->size_bytes > (uint64_t)in.n ? ERR_TRUNCATED : ERR_NONE;
}

enum err batch_take(struct bytes *in, struct batch *out)
{
    enum err err = batch_parse(*in, out);
    if (err != ERR_NONE)
        return err;
    in->p += out->size_bytes;
    in->n -= (int32_t)out->size_bytes;
    return ERR_NONE;
}

static uint32_t compute_crc(const uint8_t *p, uint32_t size_bytes)
{
    return crc32c(0, p + AT_ATTRIBUTES, size_bytes - AT_ATTRIBUTES);
}

bool batch_crc_ok(const struct batch *b)
{
    return b->magic < 2 || compute_crc(b->p, b->size_bytes) == b->crc;
}

void batch_set_base_offset(uint8_t *p, int64_t offset)
{
    put_be64(p + AT_BASE_OFFSET, (uint64_t)offset);
}

void batch_set_leader_epoch(uint8_t *p, int32_t epoch)
{
    put_be32(p + AT_LEADER_EPOCH, (uint32_t)epoch);
}

void batch_set_max_timestamp(uint8_t *p, bool log_append_time, int64_t max_timestamp)
{
    uint32_t size_bytes = be32(p + AT_LENGTH) + BATCH_LOG_OVERHEAD;
    CHECK(p[AT_MAGIC] == 2 && size_bytes >= BATCH_OVERHEAD);
    uint16_t attributes = be16(p + AT_ATTRIBUTES) & KEPT_ATTRIBUTES;
    put_be16(p + AT_ATTRIBUTES, attributes | (log_append_time ? BATCH_LOG_APPEND_TIME : 0));
    put_be64(p + AT_MAX_TIMESTAMP, (uint64_t)max_timestamp);
    put_be32(p + AT_CRC, compute_crc(p, size_bytes));
}
