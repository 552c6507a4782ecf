#include "core/replica/session.h"

#include <stdlib.h>

#include "base/endian.h"
#include "base/limits.h"
#include "wire/error.h"

enum { KEY_MAX = LIMIT_NAME_MAX + 8 };

static size_t part_key(const struct fetch_part *p, bool by_id, uint8_t out[KEY_MAX])
{
    size_t n = sizeof p->topic_id.b;
    if (by_id) {
        memcpy(out, p->topic_id.b, n);
    } else {
        n = p->topic.n < 0 ? 0 : p->topic.n > LIMIT_NAME_MAX ? LIMIT_NAME_MAX : (size_t)p->topic.n;
        memcpy(out, p->topic.p, n);
    }
    put_be32(out + n, (uint32_t)p->index);
    return n + 4;
}

void fetch_sessions_init(struct fetch_sessions *s, const struct replicas_args *args)
{
    s->env = args->env;
    s->seed = args->seed;
    s->max = (size_t)config_int(args->config, "max.incremental.fetch.session.cache.slots");
    s->eviction_us = (int64_t)120 * 1000 * 1000; /* Kafka's MinIncrementalFetchSessionEvictionMs */
    map_init(&s->by_id, args->seed);
    list_init(&s->lru);
}

static void free_parts(struct session *ss)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&ss->parts, it)) != NULL) {
        struct fetch_part *p = map_value(it);
        free((char *)(uintptr_t)p->topic.p);
        free(p);
    }
    map_close(&ss->parts);
}

static void remove_session(struct fetch_sessions *s, struct session *ss)
{
    map_remove(&s->by_id, &ss->id, sizeof ss->id);
    list_remove(&ss->lru);
    free_parts(ss);
    free(ss);
}

void fetch_sessions_close(struct fetch_sessions *s)
{
    struct list *l;
    while ((l = list_pop(&s->lru)) != NULL)
        remove_session(s, LIST_ENTRY(l, struct session, lru));
    map_close(&s->by_id);
}

static struct session *find(const struct fetch_sessions *s, int32_t id)
{
    return map_get(&s->by_id, &id, sizeof id);
}

static void touch(struct fetch_sessions *s, struct session *ss, struct now now)
{
    ss->used_us = now.mono_us;
    list_remove(&ss->lru);
    list_append(&s->lru, &ss->lru);
}

/* ------------------------------------------------------------------ parts of a session */

static enum err put_part(struct session *ss, const struct fetch_part *from)
{
    uint8_t key[KEY_MAX];
    const size_t key_n = part_key(from, ss->uses_topic_ids, key);
    struct fetch_part *p = map_get(&ss->parts, key, key_n);
    if (p != NULL) { /* the request's values rule; what was told stays */
        const struct fetch_part was = *p;
        *p = *from;
        p->topic = was.topic;
        p->told_high_watermark = was.told_high_watermark;
        p->told_log_start = was.told_log_start;
        return ERR_NONE;
    }
    p = malloc(sizeof *p);
    char *name = malloc((size_t)(from->topic.n < 0 ? 0 : from->topic.n) + 1);
    if (p != NULL && name != NULL && from->topic.n > 0)
        memcpy(name, from->topic.p, (size_t)from->topic.n);
    if (p == NULL || name == NULL || map_put(&ss->parts, key, key_n, p) != ERR_NONE) {
        free(p);
        free(name);
        return ERR_NOMEM;
    }
    *p = *from;
    p->topic.p = name;
    return ERR_NONE;
}

static void forget_part(struct session *ss, const struct fetch_part *which)
{
    uint8_t key[KEY_MAX];
    const size_t key_n = part_key(which, ss->uses_topic_ids, key);
    struct fetch_part *p = map_remove(&ss->parts, key, key_n);
    if (p == NULL)
        return;
    free((char *)(uintptr_t)p->topic.p);
    free(p);
}

static void forget_topics(struct session *ss, const struct fetch_request *req)
{
    for (int32_t i = 0; i < req->forgotten_topics_data.n; i++) {
        const struct fetch_request_forgotten_topic *t = &req->forgotten_topics_data.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++) {
            const struct fetch_part which = {
                .topic = t->topic, .topic_id = t->topic_id, .index = t->partitions.v[k]};
            forget_part(ss, &which);
        }
    }
}

/* ------------------------------------------------------------------ requests */

static enum err request_parts(const struct fetch_request *req, struct arena *a,
                              struct fetch_part **v, int32_t *n)
{
    size_t count = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        count += (size_t)req->topics.v[i].partitions.n;
    *v = arena_array(a, count, sizeof **v);
    *n = 0;
    if (*v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct fetch_request_fetch_topic *t = &req->topics.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++) {
            const struct fetch_request_fetch_partition *p = &t->partitions.v[k];
            (*v)[(*n)++] = (struct fetch_part){
                .topic = t->topic,
                .topic_id = t->topic_id,
                .index = p->partition,
                .current_leader_epoch = p->current_leader_epoch,
                .fetch_offset = p->fetch_offset,
                .last_fetched_epoch = p->last_fetched_epoch,
                .log_start_offset = p->log_start_offset,
                .max_bytes = p->partition_max_bytes,
                .told_high_watermark = -1,
                .told_log_start = -1,
            };
        }
    }
    return ERR_NONE;
}

/* All parts of a session, copied: it may change or go while the fetch waits. */
static enum err session_parts(const struct session *ss, struct arena *a,
                              struct session_context *out)
{
    struct map_entry *it = NULL;
    out->v = arena_array(a, ss->parts.n, sizeof *out->v);
    if (out->v == NULL)
        return ERR_NOMEM;
    while ((it = map_next(&ss->parts, it)) != NULL) {
        struct fetch_part *to = &out->v[out->n++];
        *to = *(const struct fetch_part *)map_value(it);
        to->topic.p = arena_strdup(a, to->topic);
        if (to->topic.p == NULL)
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

static enum err begin_full(struct fetch_sessions *s, const struct fetch_request *req,
                           struct arena *a, struct session_context *out)
{
    struct session *old = req->session_id != 0 ? find(s, req->session_id) : NULL;
    if (old != NULL)
        remove_session(s, old);
    out->create = req->session_epoch == 0;
    return request_parts(req, a, &out->v, &out->n);
}

static enum err begin_incremental(struct fetch_sessions *s, const struct fetch_request *req,
                                  bool uses_topic_ids, struct arena *a, struct now now,
                                  struct session_context *out)
{
    struct session *ss = find(s, req->session_id);
    struct fetch_part *changed;
    int32_t changed_n;
    if (ss == NULL)
        out->error = K_FETCH_SESSION_ID_NOT_FOUND;
    else if (ss->epoch != req->session_epoch)
        out->error = K_INVALID_FETCH_SESSION_EPOCH;
    else if (ss->uses_topic_ids != uses_topic_ids)
        out->error = K_FETCH_SESSION_TOPIC_ID_ERROR;
    if (out->error != K_NONE)
        return ERR_NONE;
    enum err e = request_parts(req, a, &changed, &changed_n);
    for (int32_t i = 0; i < changed_n && e == ERR_NONE; i++)
        e = put_part(ss, &changed[i]);
    if (e != ERR_NONE)
        return e;
    forget_topics(ss, req);
    ss->epoch = ss->epoch == INT32_MAX ? 1 : ss->epoch + 1;
    touch(s, ss, now);
    out->incremental = true;
    out->session_id = ss->id;
    if (ss->parts.n == 0) { /* as Kafka: nothing left to remember */
        out->session_id = 0;
        remove_session(s, ss);
        return ERR_NONE;
    }
    return session_parts(ss, a, out);
}

enum err fetch_sessions_begin(struct fetch_sessions *s, const struct fetch_request *req,
                              int16_t version, struct arena *a, struct now now,
                              struct session_context *out)
{
    *out = (struct session_context){.error = K_NONE};
    if (req->session_epoch <= 0)
        return begin_full(s, req, a, out);
    return begin_incremental(s, req, version >= 13, a, now, out);
}

/* ------------------------------------------------------------------ new sessions */

static bool make_room(struct fetch_sessions *s, struct now now)
{
    if (s->by_id.n < s->max)
        return true;
    if (list_empty(&s->lru))
        return false;
    struct session *oldest = LIST_ENTRY(s->lru.next, struct session, lru);
    if (now.mono_us - oldest->used_us <= s->eviction_us)
        return false;
    remove_session(s, oldest);
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

int32_t fetch_sessions_create(struct fetch_sessions *s, const struct fetch_part *v, int32_t n,
                              bool uses_topic_ids, struct now now)
{
    if (n == 0 || !make_room(s, now))
        return 0;
    struct session *ss = calloc(1, sizeof *ss);
    if (ss == NULL)
        return 0;
    ss->id = fresh_id(s);
    ss->epoch = 1;
    ss->uses_topic_ids = uses_topic_ids;
    ss->used_us = now.mono_us;
    list_init(&ss->lru);
    map_init(&ss->parts, s->seed);
    enum err e = map_put(&s->by_id, &ss->id, sizeof ss->id, ss);
    for (int32_t i = 0; i < n && e == ERR_NONE; i++)
        e = put_part(ss, &v[i]);
    if (e != ERR_NONE) {
        remove_session(s, ss);
        return 0;
    }
    list_append(&s->lru, &ss->lru);
    return ss->id;
}

void fetch_sessions_told(struct fetch_sessions *s, int32_t id, const struct fetch_part *part,
                         int64_t high_watermark, int64_t log_start)
{
    uint8_t key[KEY_MAX];
    struct session *ss = id == 0 ? NULL : find(s, id);
    if (ss == NULL)
        return;
    const size_t key_n = part_key(part, ss->uses_topic_ids, key);
    struct fetch_part *p = map_get(&ss->parts, key, key_n);
    if (p == NULL)
        return;
    p->told_high_watermark = high_watermark;
    p->told_log_start = log_start;
}
