#include "quorum/control.h"

#include <limits.h>
#include <stdio.h>

#include "base/endian.h"

enum err control_begin_batch(int64_t base_offset, int32_t leader_epoch, int16_t attributes,
                             struct batch_builder **out)
{
    const struct batch_builder_args args = {
        .base_offset = base_offset,
        .leader_epoch = leader_epoch,
        .attributes = attributes,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .level = INT_MIN,
    };
    return batch_builder_new(&args, out);
}

enum err control_add(struct batch_builder *bb, int64_t timestamp, enum control_type type,
                     const struct wire_message *m, const void *record)
{
    uint8_t key[4];
    struct buf value;
    put_be16(key, 0);
    put_be16(key + 2, (uint16_t)type);
    buf_init(&value);
    enum err e = wire_encode(m, 0, record, &value);
    if (e == ERR_NONE)
        e = batch_builder_add(bb, timestamp, (struct bytes){key, sizeof key},
                              (struct bytes){value.p, (int32_t)value.n}, NULL, 0);
    buf_close(&value);
    return e;
}

enum err control_add_kraft_version(struct batch_builder *bb, int64_t timestamp, int16_t version)
{
    const struct k_raft_version_record record = {.k_raft_version = version};
    return control_add(bb, timestamp, CONTROL_KRAFT_VERSION, &msg_k_raft_version_record, &record);
}

enum err control_add_voters(struct batch_builder *bb, int64_t timestamp,
                            const struct voter_set *voters)
{
    struct voters_record_voter v[VOTERS_MAX];
    struct voters_record_endpoint endpoints[VOTERS_MAX];
    struct voters_record record = {.version = 0};
    for (int32_t i = 0; i < voters->n; i++) {
        const struct voter *from = &voters->v[i];
        endpoints[i] =
            (struct voters_record_endpoint){str_of(from->listener), str_of(from->host), from->port};
        v[i] = (struct voters_record_voter){.voter_id = from->id,
                                            .voter_directory_id = from->directory_id};
        v[i].endpoints.v = &endpoints[i];
        v[i].endpoints.n = 1;
        v[i].k_raft_version_feature.min_supported_version = from->kraft_min;
        v[i].k_raft_version_feature.max_supported_version = from->kraft_max;
    }
    record.voters.v = v;
    record.voters.n = voters->n;
    return control_add(bb, timestamp, CONTROL_VOTERS, &msg_voters_record, &record);
}

/* ------------------------------------------------------------------ reading */

static enum err take_voters(const struct voters_record *record, struct voter_set *out)
{
    if (record->voters.n <= 0 || record->voters.n > VOTERS_MAX)
        return ERR_CORRUPT;
    out->n = 0;
    for (int32_t i = 0; i < record->voters.n; i++) {
        const struct voters_record_voter *from = &record->voters.v[i];
        struct voter *to = &out->v[i];
        if (from->voter_id < 0 || voter_set_find(out, from->voter_id, from->voter_directory_id))
            return ERR_CORRUPT;
        *to = (struct voter){.id = from->voter_id,
                             .directory_id = from->voter_directory_id,
                             .kraft_min = from->k_raft_version_feature.min_supported_version,
                             .kraft_max = from->k_raft_version_feature.max_supported_version};
        out->n++;
        if (from->endpoints.n <= 0)
            continue;
        const struct voters_record_endpoint *e = &from->endpoints.v[0];
        if (!voter_reached_at(to, e->name, e->host, e->port))
            return ERR_CORRUPT;
    }
    return ERR_NONE;
}

static enum err read_record(const struct record *rec, struct arena *a, int16_t *kraft_version,
                            struct voter_set *voters, bool *has_voters)
{
    if (rec->key.n != 4 || rec->value.n < 0)
        return ERR_CORRUPT;
    const int type = be16(rec->key.p + 2);
    if (type == CONTROL_KRAFT_VERSION) {
        struct k_raft_version_record record;
        enum err e = wire_decode(&msg_k_raft_version_record, 0, rec->value, a, &record);
        if (e == ERR_NONE)
            *kraft_version = record.k_raft_version;
        return e;
    }
    if (type == CONTROL_VOTERS) {
        struct voters_record record;
        enum err e = wire_decode(&msg_voters_record, 0, rec->value, a, &record);
        if (e == ERR_NONE)
            e = take_voters(&record, voters);
        *has_voters |= e == ERR_NONE;
        return e;
    }
    return ERR_NONE;
}

enum err control_read(const struct batch *b, int16_t *kraft_version, struct voter_set *voters,
                      bool *has_voters)
{
    struct record_reader *r;
    struct record rec;
    struct arena a;
    bool end = false;
    if ((b->attributes & BATCH_CODEC_MASK) != 0)
        return ERR_CORRUPT; /* nobody compresses them */
    enum err e = record_reader_new(b, INT32_MAX, &r);
    if (e != ERR_NONE)
        return e;
    arena_init(&a, NULL);
    while ((e = record_reader_next(r, &rec, &end)) == ERR_NONE && !end) {
        e = read_record(&rec, &a, kraft_version, voters, has_voters);
        if (e != ERR_NONE)
            break;
    }
    arena_close(&a);
    record_reader_free(r);
    return e;
}

static enum err read_leader_change(const struct record *rec, int32_t ids[VOTERS_MAX], int32_t *n)
{
    struct arena a;
    struct leader_change_message m;
    if (rec->key.n != 4 || be16(rec->key.p + 2) != CONTROL_LEADER_CHANGE)
        return ERR_NONE;
    /* the record's first field is its version */
    const int16_t version = rec->value.n >= 2 ? (int16_t)be16(rec->value.p) : -1;
    if (version < 0 || version > 1)
        return ERR_CORRUPT;
    arena_init(&a, NULL);
    enum err e = wire_decode(&msg_leader_change_message, version, rec->value, &a, &m);
    if (e == ERR_NONE && (m.voters.n < 0 || m.voters.n > VOTERS_MAX))
        e = ERR_CORRUPT;
    if (e == ERR_NONE)
        for (*n = 0; *n < m.voters.n; (*n)++)
            ids[*n] = m.voters.v[*n].voter_id;
    arena_close(&a);
    return e;
}

enum err control_read_leader_change(const struct batch *b, int32_t ids[VOTERS_MAX], int32_t *n)
{
    struct record_reader *r;
    struct record rec;
    bool end = false;
    *n = -1;
    if ((b->attributes & BATCH_CODEC_MASK) != 0)
        return ERR_CORRUPT;
    enum err e = record_reader_new(b, INT32_MAX, &r);
    if (e != ERR_NONE)
        return e;
    e = record_reader_next(r, &rec, &end); /* it is the first */
    if (e == ERR_NONE && !end)
        e = read_leader_change(&rec, ids, n);
    record_reader_free(r);
    return e;
}

enum err control_types(const struct batch *b, int *first, int *last)
{
    struct record_reader *r;
    struct record rec;
    bool end = false;
    *first = *last = -1;
    if ((b->attributes & BATCH_CONTROL) == 0)
        return ERR_CORRUPT;
    enum err e = record_reader_new(b, INT32_MAX, &r);
    if (e != ERR_NONE)
        return e;
    while ((e = record_reader_next(r, &rec, &end)) == ERR_NONE && !end) {
        if (rec.key.n != 4) {
            e = ERR_CORRUPT;
            break;
        }
        *last = be16(rec.key.p + 2);
        if (*first < 0)
            *first = *last;
    }
    record_reader_free(r);
    return e == ERR_NONE && *first < 0 ? ERR_CORRUPT : e;
}
