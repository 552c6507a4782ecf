/* From the records of a shard's log to its state, as everything is committed. A tombstone of what
 * is not there is no error; a key of an unknown type is skipped; what cannot be decoded, or makes
 * two kinds of one group, fails the load (Kafka). */
#include "base/check.h"
#include "base/endian.h"
#include "core/group/offsets.h"

enum { RECORD_MAX_BYTES = 64 << 20, KEY_ENTRY_BYTES = 96 };

enum key_type {
    KEY_LEGACY_OFFSET = 0,
    KEY_OFFSET = 1,
    KEY_CLASSIC = 2,
    KEY_CONSUMER = 3,
    KEY_CONSUMER_MEMBER = 5,
    KEY_SHARE_MEMBER = 10,
    KEY_SHARE = 11,
    KEY_STREAMS = 17,
    KEY_STREAMS_MEMBER = 19,
};

/* A record taken apart: numbers in front of key and value. */
struct entry {
    int64_t offset;
    int64_t producer_id;
    int16_t type, version; /* of the value, -1 without */
    struct bytes key, value;
    struct bytes raw_key;
};

/* The kind of group that a type of record makes. */
static enum group_kind kind_of(int16_t type)
{
    if ((type >= 3 && type <= 8) || type == 16)
        return GROUP_CONSUMER;
    if (type >= 10 && type <= 15)
        return GROUP_SHARE;
    if (type == KEY_STREAMS || (type >= 19 && type <= 23))
        return GROUP_STREAMS;
    return GROUP_NONE;
}

/* ------------------------------------------------------------------ offsets */

static enum err make_simple(struct group *g)
{
    struct life *l;
    return g->life != NULL ? ERR_NONE : life_begin(g, NULL, GROUP_CLASSIC, &l);
}

static enum err put_offset(struct shard *sh, const struct entry *en,
                           const struct offset_commit_key *key, const struct committed *value)
{
    struct group *g;
    struct offset *o = NULL;
    struct version *v;
    enum err e = group_make(sh, key->group, &g);
    if (e != ERR_NONE)
        return e;
    e = make_simple(g);
    if (e == ERR_NONE)
        e = group_offset_make(g, key->topic, key->partition, &o);
    if (e == ERR_NONE && en->producer_id >= 0)
        e = offset_pend(o, en->producer_id, value, en->offset);
    else if (e == ERR_NONE && (e = offset_set(o, NULL, value, &v)) == ERR_NONE)
        v->log_offset = en->offset;
    if (o != NULL)
        offset_tidy(o);
    else
        group_tidy(g);
    return e;
}

static enum err replay_offset(struct shard *sh, const struct entry *en, struct arena *a)
{
    struct offset_commit_key key;
    struct offset_commit_value v;
    enum err e = wire_decode(&msg_offset_commit_key, 0, en->key, a, &key);
    if (e != ERR_NONE)
        return e;
    if (en->value.n < 0) {
        struct group *g = map_get_str(&sh->groups, key.group);
        struct offset *o = g == NULL ? NULL : group_offset(g, key.topic, key.partition);
        struct version *none;
        return o == NULL ? ERR_NONE : offset_delete(o, NULL, &none);
    }
    e = wire_decode(&msg_offset_commit_value, en->version, en->value, a, &v);
    if (e != ERR_NONE)
        return e;
    const struct committed value = {v.offset,           v.leader_epoch,     v.metadata,
                                    v.commit_timestamp, v.expire_timestamp, v.topic_id};
    return put_offset(sh, en, &key, &value);
}

/* ------------------------------------------------------------------ groups */

/* No record of its own has made it: offsets alone have. */
static bool is_simple(const struct life *l)
{
    return l->kind == GROUP_CLASSIC && !l->recorded;
}

static void end_life(struct group *g)
{
    struct life *l = g->life;
    life_undo(l);
    life_free(l, K_NOT_COORDINATOR);
}

static enum err keep_value(struct life *l, struct bytes value)
{
    uint8_t *copy = groups_alloc(l->gs, (size_t)value.n);
    if (copy == NULL)
        return ERR_NOMEM;
    memcpy(copy, value.p, (size_t)value.n);
    l->stored = (struct bytes){copy, value.n};
    return ERR_NONE;
}

static enum err replay_classic(struct shard *sh, const struct entry *en, struct arena *a,
                               struct bytes raw_value)
{
    struct group_metadata_key key;
    struct group_metadata_value value;
    struct group *g;
    struct life *l;
    enum err e = wire_decode(&msg_group_metadata_key, 0, en->key, a, &key);
    if (e != ERR_NONE)
        return e;
    if (en->value.n < 0) {
        g = map_get_str(&sh->groups, key.group);
        if (g != NULL && g->life != NULL)
            end_life(g);
        return ERR_NONE;
    }
    e = wire_decode(&msg_group_metadata_value, en->version, en->value, a, &value);
    if (e == ERR_NONE)
        e = group_make(sh, key.group, &g);
    if (e != ERR_NONE)
        return e;
    e = life_begin(g, NULL, GROUP_CLASSIC, &l);
    if (e != ERR_NONE) {
        group_tidy(g);
        return e;
    }
    l->recorded = true;
    return keep_value(l, raw_value);
}

/* ------------------------------------------------------------------ kinds that are not served */

static bool is_member(int16_t type)
{
    return type == KEY_CONSUMER_MEMBER || type == KEY_SHARE_MEMBER || type == KEY_STREAMS_MEMBER;
}

static bool is_group(int16_t type)
{
    return type == KEY_CONSUMER || type == KEY_SHARE || type == KEY_STREAMS;
}

static enum err keep_key(struct life *l, const struct entry *en)
{
    const size_t n = (size_t)en->raw_key.n;
    if (map_get(&l->records, en->raw_key.p, n) != NULL)
        return ERR_NONE;
    if (!budget_take(l->gs->budget, n + KEY_ENTRY_BYTES))
        return ERR_NOMEM;
    enum err e = map_put(&l->records, en->raw_key.p, n, l);
    if (e != ERR_NONE) {
        budget_give(l->gs->budget, n + KEY_ENTRY_BYTES);
        return e;
    }
    l->members_n += is_member(en->type);
    return ERR_NONE;
}

static void drop_key(struct life *l, const struct entry *en)
{
    const size_t n = (size_t)en->raw_key.n;
    if (map_remove(&l->records, en->raw_key.p, n) == NULL)
        return;
    budget_give(l->gs->budget, n + KEY_ENTRY_BYTES);
    l->members_n -= is_member(en->type);
}

static enum err foreign_life(struct group *g, enum group_kind kind, struct life **out)
{
    *out = g->life;
    if (g->life != NULL && g->life->kind == kind)
        return ERR_NONE;
    if (g->life != NULL && !is_simple(g->life))
        return ERR_CORRUPT;
    return life_begin(g, NULL, kind, out);
}

/* The keys are kept: whoever deletes the group must delete each of its records. */
static enum err replay_foreign(struct shard *sh, const struct entry *en, struct arena *a)
{
    struct group_metadata_key key; /* every key begins as this one */
    size_t used;
    struct group *g;
    struct life *l;
    enum err e = wire_decode_prefix(&msg_group_metadata_key, 0, en->key, a, &key, &used);
    if (e != ERR_NONE)
        return e;
    if (en->value.n < 0) {
        g = map_get_str(&sh->groups, key.group);
        if (group_kind(g) != kind_of(en->type))
            return ERR_NONE;
        drop_key(g->life, en);
        if (is_group(en->type))
            end_life(g);
        return ERR_NONE;
    }
    e = group_make(sh, key.group, &g);
    if (e != ERR_NONE)
        return e;
    e = foreign_life(g, kind_of(en->type), &l);
    if (e == ERR_NONE)
        e = keep_key(l, en);
    group_tidy(g);
    return e;
}

/* ------------------------------------------------------------------ records and batches */

static enum err take_apart(const struct record *r, struct entry *en)
{
    if (r->key.n < 2)
        return ERR_CORRUPT;
    if (r->value.n >= 0 && r->value.n < 2)
        return ERR_CORRUPT;
    en->offset = r->offset;
    en->raw_key = r->key;
    en->type = (int16_t)be16(r->key.p);
    en->key = (struct bytes){r->key.p + 2, r->key.n - 2};
    en->version = r->value.n < 0 ? -1 : (int16_t)be16(r->value.p);
    en->value = r->value.n < 0 ? BYTES_NULL : (struct bytes){r->value.p + 2, r->value.n - 2};
    return ERR_NONE;
}

static enum err replay_record(struct shard *sh, const struct record *r, int64_t producer_id,
                              struct arena *a)
{
    struct entry en = {.producer_id = producer_id};
    enum err e = take_apart(r, &en);
    if (e != ERR_NONE)
        return e;
    if (en.type == KEY_LEGACY_OFFSET || en.type == KEY_OFFSET)
        e = replay_offset(sh, &en, a);
    else if (en.type == KEY_CLASSIC)
        e = replay_classic(sh, &en, a, r->value);
    else if (kind_of(en.type) != GROUP_NONE)
        e = replay_foreign(sh, &en, a);
    else
        env_log(sh->gs->env, LOG_WARN, "group_record_skipped partition=%d offset=%lld type=%d",
                sh->index, (long long)en.offset, en.type);
    arena_reset(a);
    /* A value of a version that we do not know. */
    return e == ERR_NONE || e == ERR_NOMEM ? e : ERR_CORRUPT;
}

/* The end of a transaction; other control records say nothing here. */
static void replay_control(struct shard *sh, const struct batch *b, const struct record *r)
{
    enum { ABORT = 0, COMMIT = 1 };
    if (r->key.n < 4)
        return;
    const uint16_t type = be16(r->key.p + 2);
    if (type == ABORT || type == COMMIT)
        producer_end(sh, b->producer_id, type == COMMIT);
}

enum err replay_batch(struct shard *sh, const struct batch *b)
{
    struct record_reader *reader;
    struct record r;
    struct arena a;
    bool end = false;
    enum err e = record_reader_new(b, RECORD_MAX_BYTES, &reader);
    if (e != ERR_NONE)
        return e;
    arena_init(&a, sh->gs->budget);
    while (e == ERR_NONE && (e = record_reader_next(reader, &r, &end)) == ERR_NONE && !end) {
        if ((b->attributes & BATCH_CONTROL) != 0)
            replay_control(sh, b, &r);
        else
            e = replay_record(sh, &r, b->producer_id, &a);
    }
    arena_close(&a);
    record_reader_free(reader);
    return e;
}
