/* Builds a batch: records go through the codec as they come, so memory is the batch as it will be
 * and never its records; the header is written last, when everything in it is known. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "wire/batch_layout.h"
#include "wire/compress.h"
#include "wire/varint.h"

struct batch_builder {
    struct batch_builder_args args;
    struct buf out;
    struct compressor *c;
    size_t raw_bytes;
    int32_t records_n;
    int64_t base_timestamp, max_timestamp;
};

enum err batch_builder_new(const struct batch_builder_args *args, struct batch_builder **out)
{
    struct batch_builder *bb = malloc(sizeof *bb);
    if (bb == NULL)
        return ERR_NOMEM;
    *bb = (struct batch_builder){
        .args = *args,
        .raw_bytes = BATCH_OVERHEAD,
        .base_timestamp = -1,
        .max_timestamp = -1,
    };
    buf_init(&bb->out);
    static const uint8_t header[BATCH_OVERHEAD];
    enum err err = buf_append(&bb->out, header, sizeof header);
    if (err == ERR_NONE) {
        enum batch_codec codec = (enum batch_codec)(args->attributes & BATCH_CODEC_MASK);
        err = compressor_new(codec, args->level, &bb->out, &bb->c);
    }
    if (err != ERR_NONE) {
        batch_builder_free(bb);
        return err;
    }
    *out = bb;
    return ERR_NONE;
}

void batch_builder_free(struct batch_builder *bb)
{
    if (bb == NULL)
        return;
    compressor_free(bb->c);
    buf_close(&bb->out);
    free(bb);
}

static size_t bytes_size(int32_t n)
{
    return varint_size(n < 0 ? -1 : n) + (n > 0 ? (size_t)n : 0);
}

static enum err write_bytes(struct batch_builder *bb, const void *p, int32_t n)
{
    uint8_t head[VARINT_MAX];
    enum err err = compressor_write(bb->c, head, varint_put(head, n < 0 ? -1 : n));
    if (err == ERR_NONE && n > 0)
        err = compressor_write(bb->c, p, (size_t)n);
    return err;
}

/* Everything of a record up to its headers; headers_bytes is their size. */
static enum err write_head(struct batch_builder *bb, int64_t timestamp, struct bytes key,
                           struct bytes value, int32_t headers_n, size_t headers_bytes)
{
    if (bb->records_n == INT32_MAX)
        return ERR_TOO_LARGE;
    if (bb->records_n == 0)
        bb->base_timestamp = timestamp;
    int64_t delta = (int64_t)((uint64_t)timestamp - (uint64_t)bb->base_timestamp);
    size_t body = 1 + varint_size(delta) + varint_size(bb->records_n) + bytes_size(key.n) +
                  bytes_size(value.n) + varint_size(headers_n) + headers_bytes;
    if (body > INT32_MAX)
        return ERR_TOO_LARGE;
    uint8_t head[VARINT_MAX + 1 + VARLONG_MAX + VARINT_MAX];
    size_t n = varint_put(head, (int32_t)body);
    bb->raw_bytes += n + body;
    head[n++] = 0; /* attributes: none are defined */
    n += varint_put(head + n, delta);
    n += varint_put(head + n, bb->records_n);
    enum err err = compressor_write(bb->c, head, n);
    if (err == ERR_NONE)
        err = write_bytes(bb, key.p, key.n);
    if (err == ERR_NONE)
        err = write_bytes(bb, value.p, value.n);
    if (err != ERR_NONE)
        return err;
    bb->records_n++;
    if (timestamp > bb->max_timestamp)
        bb->max_timestamp = timestamp;
    uint8_t count[VARINT_MAX];
    return compressor_write(bb->c, count, varint_put(count, headers_n));
}

enum err batch_builder_add(struct batch_builder *bb, int64_t timestamp, struct bytes key,
                           struct bytes value, const struct record_header *headers,
                           int32_t headers_n)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < headers_n; i++) {
        if (headers[i].key.n < 0)
            return ERR_INVALID;
        bytes += bytes_size(headers[i].key.n) + bytes_size(headers[i].value.n);
    }
    enum err err = write_head(bb, timestamp, key, value, headers_n, bytes);
    for (int32_t i = 0; err == ERR_NONE && i < headers_n; i++) {
        err = write_bytes(bb, headers[i].key.p, headers[i].key.n);
        if (err == ERR_NONE)
            err = write_bytes(bb, headers[i].value.p, headers[i].value.n);
    }
    return err;
}

enum err batch_builder_add_encoded(struct batch_builder *bb, int64_t timestamp, struct bytes key,
                                   struct bytes value, struct bytes headers, int32_t headers_n)
{
    size_t bytes = headers.n > 0 ? (size_t)headers.n : 0;
    enum err err = write_head(bb, timestamp, key, value, headers_n, bytes);
    if (err == ERR_NONE && bytes > 0)
        err = compressor_write(bb->c, headers.p, bytes);
    return err;
}

size_t batch_builder_bytes(const struct batch_builder *bb)
{
    return bb->raw_bytes;
}

size_t batch_builder_written_bytes(const struct batch_builder *bb)
{
    return bb->out.n;
}

enum err batch_builder_finish(struct batch_builder *bb, struct bytes *out)
{
    if (bb->records_n == 0)
        return ERR_INVALID;
    enum err err = compressor_finish(bb->c);
    if (err != ERR_NONE)
        return err;
    if (bb->out.n > INT32_MAX)
        return ERR_TOO_LARGE;
    uint8_t *p = bb->out.p;
    const struct batch_builder_args *a = &bb->args;
    put_be64(p + AT_BASE_OFFSET, (uint64_t)a->base_offset);
    put_be32(p + AT_LENGTH, (uint32_t)(bb->out.n - BATCH_LOG_OVERHEAD));
    put_be32(p + AT_LEADER_EPOCH, (uint32_t)a->leader_epoch);
    p[AT_MAGIC] = 2;
    put_be16(p + AT_ATTRIBUTES, (uint16_t)a->attributes);
    put_be32(p + AT_LAST_OFFSET_DELTA, (uint32_t)bb->records_n - 1);
    put_be64(p + AT_BASE_TIMESTAMP, (uint64_t)bb->base_timestamp);
    put_be64(p + AT_MAX_TIMESTAMP, (uint64_t)bb->max_timestamp);
    put_be64(p + AT_PRODUCER_ID, (uint64_t)a->producer_id);
    put_be16(p + AT_PRODUCER_EPOCH, (uint16_t)a->producer_epoch);
    put_be32(p + AT_BASE_SEQUENCE, (uint32_t)a->base_sequence);
    put_be32(p + AT_RECORDS_N, (uint32_t)bb->records_n);
    put_be32(p + AT_CRC, crc32c(0, p + AT_ATTRIBUTES, bb->out.n - AT_ATTRIBUTES));
    *out = (struct bytes){p, (int32_t)bb->out.n};
    return ERR_NONE;
}
