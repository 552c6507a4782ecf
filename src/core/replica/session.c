/* A session outlives its place in the table while fetches use it. Its parts are hot when they are
 * new, and cool as fetches look at them. Kafka keeps trees of sessions for eviction; here a full
 * table is walked, which only a new session pays. */
#include "core/replica/session.h"

#include <stdlib.h>

#include "base/endian.h"
#include "base/limits.h"
#include "core/replica/inside.h"
#include "wire/error.h"

enum { KEY_MAX = LIMIT_NAME_MAX + 4 };
/* What a part or a session costs beside itself: its place in a map, the allocator's. */
enum { OVERHEAD_BYTES = 160 };
/* Kafka's MinIncrementalFetchSessionEvictionMs */
#define EVICTION_US ((int64_t)120 * 1000 * 1000)

void fetch_sessions_init(struct fetch_sessions *s, const struct replicas_args *args)
{
    s->env = args->env;
    s->seed = args->seed;
    s->budget = args->budget;
    s->max = (size_t)config_int(args->config, "max.incremental.fetch.session.cache.slots");
    map_init(&s->by_id, args->seed);
    list_init(&s->lru);
}

/* ------------------------------------------------------------------ parts */

static size_t part_key(struct str topic, struct uuid topic_id, int32_t index, bool by_id,
                       uint8_t out[KEY_MAX])
{
    size_t n = sizeof topic_id.b;
    if (by_id) {
        memcpy(out, topic_id.b, n);
    } else {
        n = topic.n < 0 ? 0 : topic.n > LIMIT_NAME_MAX ? LIMIT_NAME_MAX : (size_t)topic.n;
        if (n > 0)
            memcpy(out, topic.p, n);
    }
    put_be32(out + n, (uint32_t)index);
    return n + 4;
}

static size_t name_bytes(const struct fetch_part *part)
{
    return part->set->by_id || part->topic.n < 0 ? 0 : (size_t)part->topic.n;
}

static size_t part_cost(size_t name_n)
{
    return sizeof(struct fetch_part) + 2 * name_n + OVERHEAD_BYTES;
}

/* A part and its topic's name in one piece. */
static struct fetch_part *part_new(struct fetch_sessions *s, struct session *ss, struct str topic,
                                   struct uuid topic_id)
{
    const size_t n = ss->set.by_id || topic.n < 0 ? 0 : (size_t)topic.n;
    if (!budget_take(s->budget, part_cost(n)))
        return NULL;
    struct fetch_part *part = malloc(sizeof *part + n);
    if (part == NULL) {
        budget_give(s->budget, part_cost(n));
        return NULL;
    }
    char *name = (char *)(part + 1);
    fetch_part_init(part, &ss->set);
    if (n > 0)
        memcpy(name, topic.p, n);
    part->topic = (struct str){name, (int32_t)n};
    part->topic_id = topic_id;
    return part;
}

static void part_free(struct fetch_sessions *s, struct fetch_part *part)
{
    budget_give(s->budget, part_cost(name_bytes(part)));
    fetch_part_speak(part);
    fetch_part_leave(part);
    free(part);
}

/* The session's part, a new one if it has none; NULL: out of memory. */
static struct fetch_part *get_part(struct fetch_sessions *s, struct session *ss, struct str topic,
                                   struct uuid topic_id, int32_t index)
{
    uint8_t key[KEY_MAX];
    const size_t key_n = part_key(topic, topic_id, index, ss->set.by_id, key);
    struct fetch_part *part = map_get(&ss->parts, key, key_n);
    if (part != NULL)
        return part;
    part = part_new(s, ss, topic, topic_id);
    if (part != NULL && map_put(&ss->parts, key, key_n, part) != ERR_NONE) {
        part_free(s, part);
        return NULL;
    }
    return part;
}

static void forget_part(struct fetch_sessions *s, struct session *ss, struct str topic,
                        struct uuid topic_id, int32_t index)
{
    uint8_t key[KEY_MAX];
    const size_t key_n = part_key(topic, topic_id, index, ss->set.by_id, key);
    struct fetch_part *part = map_remove(&ss->parts, key, key_n);
    if (part != NULL)
        part_free(s, part);
}

/* ------------------------------------------------------------------ sessions */

static struct session *find(const struct fetch_sessions *s, int32_t id)
{
    return map_get(&s->by_id, &id, sizeof id);
}

static struct session *session_new(struct fetch_sessions *s, const struct fetch_state *st)
{
    if (!budget_take(s->budget, sizeof(struct session) + OVERHEAD_BYTES))
        return NULL;
    struct session *ss = calloc(1, sizeof *ss);
    if (ss == NULL) {
        budget_give(s->budget, sizeof(struct session) + OVERHEAD_BYTES);
        return NULL;
    }
    fetch_set_init(&ss->set, st->rs, st->set->by_id);
    list_init(&ss->lru);
    map_init(&ss->parts, s->seed);
    ss->epoch = 1;
    ss->privileged = st->replica_id >= 0;
    ss->replica_epoch = st->replica_epoch;
    ss->set.silent_replica = ss->set.by_id ? st->replica_id : -1;
    ss->set.fetched_us = st->arrived_us;
    ss->created_us = ss->used_us = st->rs->now.mono_us;
    ss->refs = 1;
    return ss;
}

void fetch_session_unref(struct fetch_sessions *s, struct session *ss)
{
    struct map_entry *it = NULL;
    if (--ss->refs > 0)
        return;
    while ((it = map_next(&ss->parts, it)) != NULL)
        part_free(s, map_value(it));
    map_close(&ss->parts);
    budget_give(s->budget, sizeof(struct session) + OVERHEAD_BYTES);
    free(ss);
}

/* Out of the table. */
static void remove_session(struct fetch_sessions *s, struct session *ss)
{
    map_remove(&s->by_id, &ss->id, sizeof ss->id);
    list_remove(&ss->lru);
    fetch_session_unref(s, ss);
}

void fetch_sessions_close(struct fetch_sessions *s)
{
    while (!list_empty(&s->lru))
        remove_session(s, LIST_ENTRY(s->lru.next, struct session, lru));
    map_close(&s->by_id);
}

/* ------------------------------------------------------------------ requests */

static bool add_asked(struct fetch_sessions *s, struct session *ss, const struct fetch_request *req)
{
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct fetch_request_fetch_topic *t = &req->topics.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++) {
            const struct fetch_request_fetch_partition *in = &t->partitions.v[k];
            struct fetch_part *part = get_part(s, ss, t->topic, t->topic_id, in->partition);
            if (part == NULL)
                return false;
            fetch_part_heat(part);
            fetch_part_ask(part, in);
            if (ss->privileged) /* a follower that names it may not have taken what it was told */
                part->told_high_watermark = part->told_log_start = -1;
        }
    }
    return true;
}

static void forget_topics(struct fetch_sessions *s, struct session *ss,
                          const struct fetch_request *req)
{
    for (int32_t i = 0; i < req->forgotten_topics_data.n; i++) {
        const struct fetch_request_forgotten_topic *t = &req->forgotten_topics_data.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++)
            forget_part(s, ss, t->topic, t->topic_id, t->partitions.v[k]);
    }
}

static void heat_all(struct session *ss)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&ss->parts, it)) != NULL)
        fetch_part_heat(map_value(it));
}

/* A follower's fetch speaks for every partition of its session: for those that are hot when it is
 * looked at, for the others by its time. In another life than the last one it is new to all. */
static void follower_arrived(struct session *ss, const struct fetch_state *st)
{
    if (!ss->set.by_id || ss->replica_epoch != st->replica_epoch)
        heat_all(ss);
    ss->replica_epoch = st->replica_epoch;
    ss->set.fetched_us = st->arrived_us;
}

static int16_t session_error(const struct session *ss, const struct fetch_state *st)
{
    if (ss == NULL)
        return K_FETCH_SESSION_ID_NOT_FOUND;
    if (ss->epoch != st->op->request->session_epoch)
        return K_INVALID_FETCH_SESSION_EPOCH;
    return ss->set.by_id != st->own.by_id ? K_FETCH_SESSION_TOPIC_ID_ERROR : K_NONE;
}

static enum err begin_incremental(struct fetch_sessions *s, struct fetch_state *st)
{
    const struct fetch_request *req = st->op->request;
    struct session *ss = find(s, req->session_id);
    st->error = session_error(ss, st);
    if (st->error != K_NONE)
        return ERR_NONE;
    if (!add_asked(s, ss, req))
        return ERR_NOMEM;
    forget_topics(s, ss, req);
    ss->epoch = ss->epoch == INT32_MAX ? 1 : ss->epoch + 1;
    ss->used_us = st->rs->now.mono_us;
    list_remove(&ss->lru);
    list_append(&s->lru, &ss->lru);
    if (ss->parts.n == 0) {
        remove_session(s, ss);
        return ERR_NONE;
    }
    if (ss->privileged)
        follower_arrived(ss, st);
    ss->refs++;
    st->session = ss;
    st->set = &ss->set;
    return ERR_NONE;
}

enum err fetch_sessions_begin(struct fetch_sessions *s, struct fetch_state *st)
{
    enum { EPOCH_INITIAL = 0, EPOCH_FINAL = -1 };
    const struct fetch_request *req = st->op->request;
    if (req->session_epoch != EPOCH_INITIAL && req->session_epoch != EPOCH_FINAL)
        return begin_incremental(s, st);
    struct session *old = req->session_id != 0 ? find(s, req->session_id) : NULL;
    if (old != NULL)
        remove_session(s, old);
    st->create = req->session_epoch == EPOCH_INITIAL;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ new sessions */

/* Kafka's order of eviction: clients before followers, small before large, then by id. */
static bool goes_before(const struct session *a, const struct session *b)
{
    if (a->privileged != b->privileged)
        return b->privileged;
    if (a->parts.n != b->parts.n)
        return a->parts.n < b->parts.n;
    return a->id < b->id;
}

static bool evictable_by(const struct session *ss, bool privileged)
{
    return ss->used_us - ss->created_us > EVICTION_US || (privileged && !ss->privileged);
}

/* The session that a new one of n parts may take the place of; NULL: none. */
static struct session *victim(const struct fetch_sessions *s, bool privileged, size_t n,
                              int64_t now_us)
{
    struct session *first = NULL;
    struct list *l, *tmp;
    if (list_empty(&s->lru))
        return NULL;
    struct session *oldest = LIST_ENTRY(s->lru.next, struct session, lru);
    if (now_us - oldest->used_us > EVICTION_US)
        return oldest;
    LIST_EACH(l, tmp, &s->lru)
    {
        struct session *ss = LIST_ENTRY(l, struct session, lru);
        if (evictable_by(ss, privileged) && (first == NULL || goes_before(ss, first)))
            first = ss;
    }
    if (first == NULL)
        return NULL;
    const bool outranked = privileged != first->privileged ? privileged : n > first->parts.n;
    return outranked ? first : NULL;
}

static bool make_room(struct fetch_sessions *s, const struct fetch_state *st)
{
    if (s->by_id.n < s->max)
        return true;
    struct session *ss = victim(s, st->replica_id >= 0, (size_t)st->n, st->rs->now.mono_us);
    if (ss == NULL)
        return false;
    remove_session(s, ss);
    return true;
}

static int32_t fresh_id(const struct fetch_sessions *s)
{
    for (;;) {
        const int32_t id = (int32_t)(env_random_u64(s->env) & INT32_MAX);
        if (id != 0 && find(s, id) == NULL)
            return id;
    }
}

static bool copy_parts(struct fetch_sessions *s, struct session *ss, const struct fetch_state *st)
{
    for (int32_t i = 0; i < st->n; i++) {
        const struct fetch_part *from = &st->v[i];
        struct fetch_part *to = get_part(s, ss, from->topic, from->topic_id, from->index);
        if (to == NULL)
            return false;
        to->index = from->index;
        to->current_leader_epoch = from->current_leader_epoch;
        to->fetch_offset = from->fetch_offset;
        to->last_fetched_epoch = from->last_fetched_epoch;
        to->log_start_offset = from->log_start_offset;
        to->max_bytes = from->max_bytes;
        to->told_high_watermark = from->told_high_watermark;
        to->told_log_start = from->told_log_start;
        fetch_part_heat(to);
    }
    return true;
}

int32_t fetch_sessions_create(struct fetch_sessions *s, const struct fetch_state *st)
{
    if (st->n == 0 || !make_room(s, st))
        return 0;
    struct session *ss = session_new(s, st);
    if (ss == NULL)
        return 0;
    ss->id = fresh_id(s);
    if (!copy_parts(s, ss, st) || map_put(&s->by_id, &ss->id, sizeof ss->id, ss) != ERR_NONE) {
        fetch_session_unref(s, ss);
        return 0;
    }
    list_append(&s->lru, &ss->lru);
    return ss->id;
}
