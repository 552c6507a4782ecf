/* A group's topics are found by one map of the shard, so that a group without many costs no table
 * of its own; a topic's partitions are an array in their order, which is the order of answers. */
#include "core/group/offsets.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/endian.h"
#include "base/limits.h"

enum {
    MAP_ENTRY_BYTES = 96, /* what a map takes for an entry, besides its key */
    KEY_MAX = 8 + LIMIT_NAME_MAX,
};

struct str topic_name(const struct topic_offsets *t)
{
    return (struct str){t->name, t->name_n};
}

/* ------------------------------------------------------------------ topics */

static size_t topic_key(uint64_t serial, struct str topic, uint8_t out[KEY_MAX])
{
    put_be64(out, serial);
    if (topic.n > 0)
        memcpy(out + 8, topic.p, (size_t)topic.n);
    return 8 + (size_t)(topic.n < 0 ? 0 : topic.n);
}

static size_t topic_bytes(int32_t name_n)
{
    return sizeof(struct topic_offsets) + MAP_ENTRY_BYTES + 8 + 2 * (size_t)name_n;
}

struct topic_offsets *group_topic(const struct group *g, struct str topic)
{
    uint8_t key[KEY_MAX];
    if (topic.n > LIMIT_NAME_MAX)
        return NULL;
    const size_t n = topic_key(g->serial, topic, key);
    return map_get(&g->shard->topics, key, n);
}

static enum err topic_make(struct group *g, struct str topic, struct topic_offsets **out)
{
    uint8_t key[KEY_MAX];
    struct shard *sh = g->shard;
    *out = group_topic(g, topic);
    if (*out != NULL)
        return ERR_NONE;
    if (topic.n < 0 || topic.n > LIMIT_NAME_MAX)
        return ERR_CORRUPT;
    struct topic_offsets *t = groups_alloc(sh->gs, topic_bytes(topic.n));
    if (t == NULL)
        return ERR_NOMEM;
    const size_t n = topic_key(g->serial, topic, key);
    t->group = g;
    t->name_n = topic.n;
    if (topic.n > 0)
        memcpy(t->name, topic.p, (size_t)topic.n);
    if (map_put(&sh->topics, key, n, t) != ERR_NONE) {
        groups_release(sh->gs, t, topic_bytes(topic.n));
        return ERR_NOMEM;
    }
    list_append(&g->topics, &t->link);
    *out = t;
    return ERR_NONE;
}

static void topic_free(struct topic_offsets *t)
{
    uint8_t key[KEY_MAX];
    struct shard *sh = t->group->shard;
    const size_t n = topic_key(t->group->serial, topic_name(t), key);
    CHECK(t->n == 0);
    map_remove(&sh->topics, key, n);
    list_remove(&t->link);
    groups_release(sh->gs, t->v, t->cap * sizeof *t->v);
    groups_release(sh->gs, t, topic_bytes(t->name_n));
}

/* ------------------------------------------------------------------ partitions */

/* Where the partition stands or would stand. */
static size_t place(const struct topic_offsets *t, int32_t partition)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (t->v[mid]->partition < partition)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct offset *topic_offset(const struct topic_offsets *t, int32_t partition)
{
    const size_t i = place(t, partition);
    return i < t->n && t->v[i]->partition == partition ? t->v[i] : NULL;
}

struct offset *group_offset(const struct group *g, struct str topic, int32_t partition)
{
    const struct topic_offsets *t = group_topic(g, topic);
    return t == NULL ? NULL : topic_offset(t, partition);
}

static enum err topic_grow(struct topic_offsets *t)
{
    struct groups *gs = t->group->shard->gs;
    const size_t cap = t->cap == 0 ? 1 : t->cap * 2;
    struct offset **v = groups_alloc(gs, cap * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    if (t->n > 0)
        memcpy(v, t->v, t->n * sizeof *v);
    groups_release(gs, t->v, t->cap * sizeof *v);
    t->v = v;
    t->cap = cap;
    return ERR_NONE;
}

static enum err offset_make(struct topic_offsets *t, int32_t partition, struct offset **out)
{
    *out = topic_offset(t, partition);
    if (*out != NULL)
        return ERR_NONE;
    if (t->n == t->cap && topic_grow(t) != ERR_NONE)
        return ERR_NOMEM;
    struct offset *o = groups_alloc(t->group->shard->gs, sizeof *o);
    if (o == NULL)
        return ERR_NOMEM;
    const size_t i = place(t, partition);
    o->topic = t;
    o->partition = partition;
    list_init(&o->pending);
    memmove(t->v + i + 1, t->v + i, (t->n - i) * sizeof *t->v);
    t->v[i] = o;
    t->n++;
    *out = o;
    return ERR_NONE;
}

enum err group_offset_make(struct group *g, struct str topic, int32_t partition,
                           struct offset **out)
{
    struct topic_offsets *t;
    enum err e = topic_make(g, topic, &t);
    if (e == ERR_NONE)
        e = offset_make(t, partition, out);
    if (e != ERR_NONE && t != NULL && t->n == 0)
        topic_free(t);
    return e;
}

void offset_tidy(struct offset *o)
{
    struct topic_offsets *t = o->topic;
    struct group *g = t->group;
    if (o->latest != NULL || !list_empty(&o->pending))
        return;
    const size_t i = place(t, o->partition);
    CHECK(t->v[i] == o);
    t->n--;
    memmove(t->v + i, t->v + i + 1, (t->n - i) * sizeof *t->v);
    groups_release(g->shard->gs, o, sizeof *o);
    if (t->n > 0)
        return;
    topic_free(t);
    group_tidy(g);
}

/* ------------------------------------------------------------------ versions */

static struct groups *groups_of(const struct offset *o)
{
    return o->topic->group->shard->gs;
}

static size_t version_bytes(const struct version *v)
{
    return sizeof *v + (size_t)v->value.metadata.n;
}

static struct version *version_new(struct offset *o, const struct committed *value)
{
    const int32_t n = value == NULL || value->metadata.n < 0 ? 0 : value->metadata.n;
    struct version *v = groups_alloc(groups_of(o), sizeof *v + (size_t)n);
    if (v == NULL)
        return NULL;
    if (value != NULL)
        v->value = *value;
    v->value.metadata = (struct str){v->metadata, n};
    if (n > 0)
        memcpy(v->metadata, value->metadata.p, (size_t)n);
    v->of = o;
    v->log_offset = -1;
    list_init(&v->dropped);
    return v;
}

static void pending_free(struct pending *p)
{
    struct producer_offsets *from = p->producer;
    struct groups *gs = from->shard->gs;
    list_remove(&p->in_offset);
    list_remove(&p->in_producer);
    if (p->value != NULL)
        groups_release(gs, p->value, version_bytes(p->value));
    groups_release(gs, p, sizeof *p);
    if (--from->pending_n > 0)
        return;
    uint8_t key[8];
    put_be64(key, (uint64_t)from->producer_id);
    map_remove(&from->shard->producers, key, sizeof key);
    groups_release(gs, from, sizeof *from + MAP_ENTRY_BYTES);
}

static void version_free(struct version *v)
{
    struct groups *gs = groups_of(v->of);
    while (!list_empty(&v->dropped))
        pending_free(LIST_ENTRY(v->dropped.next, struct pending, in_offset));
    groups_release(gs, v, version_bytes(v));
}

static void free_older(struct version *v)
{
    struct version *older = v->older;
    v->older = NULL;
    while (older != NULL) {
        struct version *next = older->older;
        version_free(older);
        older = next;
    }
}

const struct version *offset_latest(const struct offset *o)
{
    return o->latest == NULL || o->latest->deleted ? NULL : o->latest;
}

const struct version *offset_committed(const struct offset *o)
{
    const struct version *v = o->latest;
    while (v != NULL && v->write != NULL)
        v = v->older;
    return v == NULL || v->deleted ? NULL : v;
}

static void put_on_top(struct offset *o, struct version *v, struct write *w)
{
    v->write = w;
    v->older = o->latest;
    o->latest = v;
    if (w == NULL)
        free_older(v);
}

enum err offset_set(struct offset *o, struct write *w, const struct committed *value,
                    struct version **out)
{
    *out = version_new(o, value);
    if (*out == NULL)
        return ERR_NOMEM;
    put_on_top(o, *out, w);
    return ERR_NONE;
}

enum err offset_delete(struct offset *o, struct write *w, struct version **out)
{
    struct version *v = version_new(o, NULL);
    struct list *l;
    if (v == NULL)
        return ERR_NOMEM;
    v->deleted = true;
    while ((l = list_pop(&o->pending)) != NULL) {
        struct pending *p = LIST_ENTRY(l, struct pending, in_offset);
        list_remove(&p->in_producer);
        list_append(&v->dropped, &p->in_offset);
    }
    put_on_top(o, v, w);
    if (w == NULL)
        version_commit(v);
    else
        *out = v;
    return ERR_NONE;
}

/* Takes v out of the chain; it is the oldest. */
static void unlink_oldest(struct version *v)
{
    struct version **at = &v->of->latest;
    while (*at != v)
        at = &(*at)->older;
    *at = NULL;
}

void version_commit(struct version *v)
{
    v->write = NULL;
    free_older(v);
    if (!v->deleted)
        return;
    struct offset *o = v->of;
    unlink_oldest(v);
    version_free(v);
    offset_tidy(o);
}

void version_undo(struct version *v)
{
    struct offset *o = v->of;
    struct list *l;
    CHECK(o->latest == v);
    o->latest = v->older;
    while ((l = list_pop(&v->dropped)) != NULL) {
        struct pending *p = LIST_ENTRY(l, struct pending, in_offset);
        list_append(&o->pending, &p->in_offset);
        list_append(&p->producer->pending, &p->in_producer);
    }
    version_free(v);
    offset_tidy(o);
}

/* ------------------------------------------------------------------ transactions */

static struct producer_offsets *producer_make(struct shard *sh, int64_t producer_id)
{
    uint8_t key[8];
    put_be64(key, (uint64_t)producer_id);
    struct producer_offsets *p = map_get(&sh->producers, key, sizeof key);
    if (p != NULL)
        return p;
    p = groups_alloc(sh->gs, sizeof *p + MAP_ENTRY_BYTES);
    if (p == NULL)
        return NULL;
    p->shard = sh;
    p->producer_id = producer_id;
    list_init(&p->pending);
    if (map_put(&sh->producers, key, sizeof key, p) != ERR_NONE) {
        groups_release(sh->gs, p, sizeof *p + MAP_ENTRY_BYTES);
        return NULL;
    }
    return p;
}

static struct pending *find_pending(const struct offset *o, int64_t producer_id)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &o->pending)
    {
        struct pending *p = LIST_ENTRY(l, struct pending, in_offset);
        if (p->producer->producer_id == producer_id)
            return p;
    }
    return NULL;
}

enum err offset_pend(struct offset *o, int64_t producer_id, const struct committed *value,
                     int64_t log_offset)
{
    struct shard *sh = o->topic->group->shard;
    struct pending *p = groups_alloc(sh->gs, sizeof *p);
    if (p == NULL)
        return ERR_NOMEM;
    list_init(&p->in_offset);
    list_init(&p->in_producer);
    p->producer = producer_make(sh, producer_id);
    if (p->producer == NULL) {
        groups_release(sh->gs, p, sizeof *p);
        return ERR_NOMEM;
    }
    p->producer->pending_n++;
    p->value = version_new(o, value);
    if (p->value == NULL) {
        pending_free(p);
        return ERR_NOMEM;
    }
    p->value->log_offset = log_offset;
    struct pending *before = find_pending(o, producer_id);
    if (before != NULL)
        pending_free(before);
    list_append(&o->pending, &p->in_offset);
    list_append(&p->producer->pending, &p->in_producer);
    return ERR_NONE;
}

/* The later record of the log holds, whatever the order of the ends. */
static void materialise(struct pending *p)
{
    struct version *v = p->value;
    struct offset *o = v->of;
    if (o->latest != NULL && o->latest->log_offset > v->log_offset)
        return;
    p->value = NULL;
    put_on_top(o, v, NULL);
}

void producer_end(struct shard *sh, int64_t producer_id, bool commit)
{
    uint8_t key[8];
    put_be64(key, (uint64_t)producer_id);
    struct producer_offsets *from = map_get(&sh->producers, key, sizeof key);
    if (from == NULL)
        return;
    struct list all, *l; /* the last that goes takes `from` along */
    list_init(&all);
    while ((l = list_pop(&from->pending)) != NULL)
        list_append(&all, l);
    while ((l = list_pop(&all)) != NULL) {
        struct pending *p = LIST_ENTRY(l, struct pending, in_producer);
        struct offset *o = p->value->of;
        if (commit)
            materialise(p);
        pending_free(p);
        offset_tidy(o);
    }
}

/* ------------------------------------------------------------------ all */

static void offset_drop(struct offset *o)
{
    while (!list_empty(&o->pending))
        pending_free(LIST_ENTRY(o->pending.next, struct pending, in_offset));
    if (o->latest != NULL) {
        free_older(o->latest);
        version_free(o->latest);
    }
    groups_release(groups_of(o), o, sizeof *o);
}

size_t group_drop_offsets(struct group *g)
{
    size_t n = 0;
    while (!list_empty(&g->topics)) {
        struct topic_offsets *t = LIST_ENTRY(g->topics.next, struct topic_offsets, link);
        n += t->n;
        for (size_t i = 0; i < t->n; i++)
            offset_drop(t->v[i]);
        t->n = 0;
        topic_free(t);
    }
    return n;
}
