/* Snapshots of the producer state (one, the last, batch of each), and transaction markers. */
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "log/producer_state.h"

#define HEAD_BYTES 10 /* version, CRC, count */
#define CRC_FROM 6
#define ENTRY_BYTES 46
#define VERSION 1

#define MARKER_ABORT 0
#define MARKER_COMMIT 1

static void encode_entry(const struct producer *p, uint8_t *out)
{
    static const struct producer_batch none = {-1, -1, -1, 0};
    struct producer_batch b = p->batches_n == 0 ? none : p->batches[p->batches_n - 1];
    if (p->batches_n == 0)
        b.timestamp = p->last_timestamp;
    put_be64(out, (uint64_t)p->producer_id);
    put_be16(out + 8, (uint16_t)p->epoch);
    put_be32(out + 10, (uint32_t)b.last_sequence);
    put_be64(out + 14, (uint64_t)b.last_offset);
    put_be32(out + 22, (uint32_t)b.offset_delta);
    put_be64(out + 26, (uint64_t)p->last_timestamp);
    put_be32(out + 34, (uint32_t)p->coordinator_epoch);
    put_be64(out + 38, (uint64_t)p->txn_first_offset);
}

enum err producer_snapshot_encode(const struct producer_state *ps, struct buf *out)
{
    size_t n = HEAD_BYTES + ps->n * ENTRY_BYTES;
    enum err err = buf_reserve(out, n);
    if (err != ERR_NONE)
        return err;
    uint8_t *p = out->p + out->n;
    put_be16(p, VERSION);
    put_be32(p + CRC_FROM, (uint32_t)ps->n);
    for (size_t i = 0; i < ps->n; i++)
        encode_entry(ps->v[i], p + HEAD_BYTES + i * ENTRY_BYTES);
    put_be32(p + 2, crc32c(0, p + CRC_FROM, n - CRC_FROM));
    out->n += n;
    return ERR_NONE;
}

/* False if no log can have left the entry in that state. */
static bool decode_entry(const uint8_t *in, int64_t offset, struct producer *out)
{
    struct producer_batch b = {
        .last_sequence = (int32_t)be32(in + 10),
        .last_offset = (int64_t)be64(in + 14),
        .offset_delta = (int32_t)be32(in + 22),
        .timestamp = (int64_t)be64(in + 26),
    };
    *out = (struct producer){
        .producer_id = (int64_t)be64(in),
        .epoch = (int16_t)be16(in + 8),
        .last_timestamp = b.timestamp,
        .coordinator_epoch = (int32_t)be32(in + 34),
        .txn_first_offset = (int64_t)be64(in + 38),
        .touched_offset = offset - 1,
    };
    if (b.last_offset >= 0) {
        out->batches[0] = b;
        out->batches_n = 1;
    }
    return out->producer_id >= 0 && b.last_offset < offset && out->txn_first_offset < offset &&
           b.offset_delta >= 0;
}

enum err producer_snapshot_decode(struct bytes in, int64_t offset, struct producer_state *ps)
{
    if (in.n < HEAD_BYTES || be16(in.p) != VERSION ||
        crc32c(0, in.p + CRC_FROM, (size_t)in.n - CRC_FROM) != be32(in.p + 2))
        return ERR_CORRUPT;
    uint32_t n = be32(in.p + CRC_FROM);
    if ((uint64_t)n * ENTRY_BYTES != (uint64_t)in.n - HEAD_BYTES)
        return ERR_CORRUPT;
    for (uint32_t i = 0; i < n; i++) {
        struct producer p;
        if (!decode_entry(in.p + HEAD_BYTES + (size_t)i * ENTRY_BYTES, offset, &p))
            return ERR_CORRUPT;
        enum err err = producer_state_add(ps, &p);
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ markers */

static bool decode_marker(const struct record *r, struct txn_marker *out)
{
    if (r->key.n < 4 || r->value.n < 6)
        return false;
    int16_t type = (int16_t)be16(r->key.p + 2);
    if (type != MARKER_ABORT && type != MARKER_COMMIT)
        return false;
    *out = (struct txn_marker){type == MARKER_ABORT, (int32_t)be32(r->value.p + 2)};
    return true;
}

enum err txn_marker_read(const struct batch *b, struct txn_marker *out, bool *is_marker)
{
    *is_marker = false;
    if ((b->attributes & BATCH_CONTROL) == 0 || b->records_n < 1)
        return ERR_NONE;
    struct record_reader *reader;
    enum err err = record_reader_new(b, TXN_MARKER_MAX_BYTES, &reader);
    if (err != ERR_NONE)
        return err == ERR_NOMEM ? err : ERR_NONE;
    struct record r;
    bool end;
    err = record_reader_next(reader, &r, &end);
    if (err == ERR_NONE && !end)
        *is_marker = decode_marker(&r, out);
    record_reader_free(reader);
    return err == ERR_NOMEM ? err : ERR_NONE;
}
