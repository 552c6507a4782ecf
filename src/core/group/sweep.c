/* Offsets that nobody needs any more: of deleted topics at once, others when their retention is
 * over (groups.md 3). Both walk over a shard's groups in slices, each slice one write. What a
 * failed write leaves is met again by the next expiry. */
#include "base/check.h"
#include "core/group/write.h"

enum {
    SLICE_GROUPS = 256,   /* looked at */
    SLICE_RECORDS = 1000, /* written */
    SLICE_BYTES = 256 << 10,
};

struct gone_topic {
    struct list link;
    bool unknown;   /* not one topic, but all that the image does not know */
    struct uuid id; /* of one topic, as its name */
    int32_t name_n;
    char name[];
};

/* ------------------------------------------------------------------ cursors */

static struct group *first_group(const struct shard *sh)
{
    return list_empty(&sh->order) ? NULL : LIST_ENTRY(sh->order.next, struct group, link);
}

static struct group *next_group(const struct group *g)
{
    struct list *next = g->link.next;
    return next == &g->shard->order ? NULL : LIST_ENTRY(next, struct group, link);
}

void sweep_group_gone(struct group *g)
{
    struct shard *sh = g->shard;
    if (sh->expire == g)
        sh->expire = next_group(g);
    if (sh->forget == g)
        sh->forget = next_group(g);
}

static bool is_full(const struct write *w)
{
    return w->records_n >= SLICE_RECORDS || w->charged_bytes >= SLICE_BYTES;
}

static void queue(struct shard *sh)
{
    if (list_empty(&sh->sweeping))
        list_append(&sh->gs->sweeping, &sh->sweeping);
    groups_work_soon(sh->gs);
}

/* ------------------------------------------------------------------ deleted topics */

static struct gone_topic *gone_new(struct shard *sh, const char *name)
{
    const struct str s = str_of(name);
    struct gone_topic *gone = groups_alloc(sh->gs, sizeof *gone + (size_t)s.n);
    if (gone == NULL) {
        env_log(sh->gs->env, LOG_WARN, "offsets_kept topic=%s partition=%d error=NOMEM", name,
                sh->index);
        return NULL;
    }
    gone->name_n = s.n;
    memcpy(gone->name, s.p, (size_t)s.n);
    return gone;
}

static void forget(struct shard *sh, struct gone_topic *gone)
{
    if (list_empty(&sh->gone))
        sh->forget = first_group(sh);
    list_append(&sh->gone, &gone->link);
    if (sh->state == SHARD_ACTIVE)
        queue(sh);
}

void sweep_forget_topic(struct shard *sh, const struct delta_topic *t)
{
    struct gone_topic *gone = gone_new(sh, t->name);
    if (gone == NULL)
        return;
    gone->id = t->id;
    forget(sh, gone);
}

static const struct gone_topic *last_gone(const struct shard *sh)
{
    return LIST_ENTRY(sh->gone.prev, struct gone_topic, link);
}

/* One that has not begun looks at this image too. */
void sweep_forget_unknown(struct shard *sh)
{
    const bool alone = list_empty(&sh->gone) || sh->gone.next == sh->gone.prev;
    if (!alone && last_gone(sh)->unknown)
        return;
    struct gone_topic *gone = gone_new(sh, "");
    if (gone == NULL)
        return;
    gone->unknown = true;
    forget(sh, gone);
}

void sweep_begin_forgetting(struct shard *sh)
{
    if (list_empty(&sh->gone))
        return;
    sh->forget = first_group(sh);
    queue(sh);
}

static void end_forgetting(struct shard *sh)
{
    struct gone_topic *gone = LIST_ENTRY(sh->gone.next, struct gone_topic, link);
    list_remove(&gone->link);
    groups_release(sh->gs, gone, sizeof *gone + (size_t)gone->name_n);
    sh->forget = first_group(sh);
}

static bool is_of(const struct committed *value, struct uuid topic_id)
{
    return uuid_is_zero(value->topic_id) || uuid_eq(value->topic_id, topic_id);
}

/* The latest, or what is pending alone; NULL. */
static const struct committed *value_of(const struct offset *o)
{
    const struct version *v = offset_latest(o);
    if (v == NULL && !list_empty(&o->pending))
        v = LIST_ENTRY(o->pending.next, struct pending, in_offset)->value;
    return v == NULL ? NULL : &v->value;
}

/* A topic of the same name that was made meanwhile keeps its own. */
static bool is_gone(const struct groups *gs, const struct gone_topic *gone, struct str topic,
                    const struct committed *value)
{
    if (!gone->unknown)
        return is_of(value, gone->id);
    return uuid_is_zero(value->topic_id) ? image_topic_named(gs->image, topic) == NULL
                                         : image_topic_by_id(gs->image, value->topic_id) == NULL;
}

static enum err forget_topic(struct write *w, const struct gone_topic *gone,
                             const struct topic_offsets *t)
{
    enum err e = ERR_NONE;
    for (size_t k = 0; k < t->n && e == ERR_NONE && !is_full(w); k++) {
        const struct committed *value = value_of(t->v[k]);
        if (value != NULL && is_gone(w->gs, gone, topic_name(t), value))
            e = write_offset_deletion(w, t->v[k]);
    }
    return e;
}

static enum err forget_in_group(struct write *w, const struct gone_topic *gone,
                                const struct group *g)
{
    struct list *l, *tmp;
    enum err e = ERR_NONE;
    if (!gone->unknown) {
        const struct topic_offsets *t = group_topic(g, (struct str){gone->name, gone->name_n});
        return t == NULL ? ERR_NONE : forget_topic(w, gone, t);
    }
    LIST_EACH(l, tmp, &g->topics)
    if (e == ERR_NONE && !is_full(w))
        e = forget_topic(w, gone, LIST_ENTRY(l, struct topic_offsets, link));
    return e;
}

static enum err forget_slice(struct shard *sh, struct write *w)
{
    const struct gone_topic *gone = LIST_ENTRY(sh->gone.next, struct gone_topic, link);
    enum err e = ERR_NONE;
    for (int i = 0; i < SLICE_GROUPS && sh->forget != NULL && e == ERR_NONE; i++) {
        struct group *g = sh->forget;
        e = forget_in_group(w, gone, g);
        if (is_full(w))
            break; /* the next slice goes on with this group */
        sh->forget = next_group(g);
    }
    return e;
}

/* ------------------------------------------------------------------ expiry */

void sweep_begin_expiry(struct shard *sh)
{
    if (sh->state != SHARD_ACTIVE || list_empty(&sh->order))
        return;
    sh->expire = first_group(sh);
    queue(sh); /* deleted topics that a full disk has left too */
}

/* When the retention of a group's offsets begins. */
enum base { BASE_NEVER, BASE_COMMIT, BASE_EMPTY };

static enum base base_of(const struct life *l, struct now now)
{
    if (l->kind == GROUP_SHARE)
        return BASE_NEVER;
    if (l->kind != GROUP_CLASSIC)
        return life_is_empty(l, now) ? BASE_COMMIT : BASE_NEVER;
    const struct str type = classic_protocol_type(l->classic);
    const enum classic_state state = classic_state(l->classic);
    if (type.n <= 0)
        return BASE_COMMIT;
    if (state == CLASSIC_EMPTY)
        return classic_state_since_ms(l->classic) < 0 ? BASE_COMMIT : BASE_EMPTY;
    return state == CLASSIC_STABLE && str_eq(type, STR_LIT("consumer")) ? BASE_COMMIT : BASE_NEVER;
}

struct expiry {
    enum base base;
    int64_t empty_ms; /* since when the group is Empty */
    int64_t now_ms, retention_ms;
};

static bool is_over(const struct expiry *x, const struct committed *v)
{
    if (v->expire_ms != -1)
        return x->now_ms >= v->expire_ms;
    const int64_t from_ms = x->base == BASE_EMPTY ? x->empty_ms : v->commit_ms;
    return from_ms <= x->now_ms && /* what a record says may be anything */
           (uint64_t)x->now_ms - (uint64_t)from_ms >= (uint64_t)x->retention_ms;
}

/* *left: something of the topic stays. */
static enum err expire_topic(struct write *w, const struct expiry *x, const struct topic_offsets *t,
                             bool *left)
{
    enum err e = ERR_NONE;
    for (size_t i = 0; i < t->n && e == ERR_NONE; i++) {
        struct offset *o = t->v[i];
        const struct version *v = offset_latest(o);
        if (v != NULL && list_empty(&o->pending) && !is_full(w) && is_over(x, &v->value))
            e = write_offset_deletion(w, o);
        else if (v != NULL || !list_empty(&o->pending))
            *left = true;
    }
    return e;
}

static enum err expire_group(struct write *w, struct group *g, struct arena *a)
{
    struct life *l = g->life;
    struct classic_topics subscribed = {.n = 0};
    const struct groups *gs = g->shard->gs;
    const struct expiry x = {
        .base = base_of(l, gs->now),
        .empty_ms = l->kind == GROUP_CLASSIC ? classic_state_since_ms(l->classic) : -1,
        .now_ms = gs->now.wall_ms,
        .retention_ms = config_int(gs->config, "offsets.retention.minutes") * 60 * 1000,
    };
    bool left = false;
    enum err e = ERR_NONE;
    struct list *at, *tmp;
    if (l->kind == GROUP_CLASSIC && x.base != BASE_NEVER)
        e = classic_subscriptions(l->classic, a, &subscribed);
    LIST_EACH(at, tmp, &g->topics)
    {
        const struct topic_offsets *t = LIST_ENTRY(at, struct topic_offsets, link);
        if (x.base == BASE_NEVER || classic_topics_has(&subscribed, topic_name(t)))
            left = true;
        else if (e == ERR_NONE)
            e = expire_topic(w, &x, t, &left);
    }
    if (e == ERR_NONE && !left && life_is_empty(l, gs->now))
        e = write_group_deletion(w, g);
    return e;
}

static enum err expire_slice(struct shard *sh, struct write *w)
{
    struct arena a;
    enum err e = ERR_NONE;
    arena_init(&a, sh->gs->budget);
    for (int i = 0; i < SLICE_GROUPS && sh->expire != NULL && e == ERR_NONE; i++) {
        struct group *g = sh->expire;
        if (group_kind(g) != GROUP_NONE)
            e = expire_group(w, g, &a);
        arena_reset(&a);
        if (is_full(w))
            break; /* the next slice looks at this group again */
        sh->expire = next_group(g);
    }
    arena_close(&a);
    return e;
}

/* ------------------------------------------------------------------ steps */

static bool has_work(const struct shard *sh)
{
    return !list_empty(&sh->gone) || sh->expire != NULL;
}

/* After a slice, whose write is committed if it had one. */
static void advance(struct shard *sh)
{
    if (!list_empty(&sh->gone) && sh->forget == NULL)
        end_forgetting(sh);
    if (has_work(sh))
        queue(sh);
}

/* A full disk or no memory: the next expiry tries all again. */
static void give_up(struct shard *sh)
{
    sh->expire = NULL;
    sh->forget = first_group(sh);
}

void sweep_written(struct shard *sh, const struct write *w, bool committed)
{
    if (sh->sweep_write != w)
        return;
    sh->sweep_write = NULL;
    if (committed)
        advance(sh);
    else
        give_up(sh);
}

/* One slice; false: it could not be written. */
static bool slice(struct shard *sh)
{
    struct replicas_ends ends;
    struct write *w;
    if (replicas_ends(sh->gs->replicas, sh->topic_id, sh->index, &ends) != K_NONE ||
        ends.staged_end < sh->end || write_new(sh, &w) != ERR_NONE)
        return false;
    enum err e = list_empty(&sh->gone) ? expire_slice(sh, w) : forget_slice(sh, w);
    return write_end(w, e, &sh->sweep_write) == K_NONE;
}

void sweep_step(struct shard *sh)
{
    if (sh->state != SHARD_ACTIVE || sh->sweep_write != NULL || !has_work(sh))
        return;
    if (!slice(sh))
        give_up(sh);
    else if (sh->sweep_write == NULL) /* nothing was to be written */
        advance(sh);
}

void sweep_end(struct shard *sh)
{
    while (!list_empty(&sh->gone))
        end_forgetting(sh);
    sh->expire = sh->forget = NULL;
    sh->sweep_write = NULL;
    list_remove(&sh->sweeping);
}
