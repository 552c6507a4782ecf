/* All shards of this broker: which it leads by the committed image, who waits, what is to be done
 * in slices. */
#include <stdlib.h>

#include "base/check.h"
#include "core/group/java_string.h"
#include "core/group/write.h"

static const char topic_of_offsets[] = "__consumer_offsets";

/* ------------------------------------------------------------------ memory */

void *groups_alloc(struct groups *gs, size_t n)
{
    if (!budget_take(gs->budget, n))
        return NULL;
    void *p = calloc(1, n);
    if (p == NULL)
        budget_give(gs->budget, n);
    return p;
}

void groups_release(struct groups *gs, void *p, size_t n)
{
    if (p != NULL)
        budget_give(gs->budget, n);
    free(p);
}

/* ------------------------------------------------------------------ finding */

int32_t groups_partitions_n(const struct groups *gs)
{
    if (gs->shards_n > 0)
        return gs->shards_n;
    const struct image_topic *t = image_topic_named(gs->image, str_of(topic_of_offsets));
    return t != NULL && t->partitions_n > 0
               ? t->partitions_n
               : (int32_t)config_int(gs->config, "offsets.topic.num.partitions");
}

int32_t groups_partition(const struct groups *gs, struct str group)
{
    const int32_t h = java_hash(group);
    return (h == INT32_MIN ? 0 : abs(h)) % groups_partitions_n(gs);
}

int16_t groups_shard(struct groups *gs, struct str group, struct shard **out)
{
    struct replicas_ends ends;
    if (gs->shards_n == 0)
        return K_NOT_COORDINATOR;
    struct shard *sh = &gs->shards[groups_partition(gs, group)];
    *out = sh;
    if (sh->state == SHARD_LOADING)
        return K_COORDINATOR_LOAD_IN_PROGRESS;
    if (sh->state != SHARD_ACTIVE ||
        replicas_ends(gs->replicas, sh->topic_id, sh->index, &ends) != K_NONE)
        return K_NOT_COORDINATOR;
    return ends.staged_end < sh->end ? K_COORDINATOR_NOT_AVAILABLE : K_NONE;
}

struct group *shard_group(const struct shard *sh, struct str id)
{
    struct group *g = map_get_str(&sh->groups, id);
    return group_kind(g) == GROUP_NONE ? NULL : g;
}

int16_t group_create_classic(struct shard *sh, struct str id, struct now now, struct group **out)
{
    struct write *w;
    sh->gs->now = now;
    if (group_make(sh, id, out) != ERR_NONE)
        return K_COORDINATOR_NOT_AVAILABLE;
    if (write_new(sh, &w) != ERR_NONE) {
        group_tidy(*out);
        return K_COORDINATOR_NOT_AVAILABLE;
    }
    enum err e = ERR_NONE;
    if (group_kind(*out) != GROUP_NONE)
        e = write_group_deletion(w, *out);
    if (e == ERR_NONE)
        e = write_new_group(w, *out);
    return write_end(w, e, &w);
}

/* ------------------------------------------------------------------ leading */

static void watch_changed(struct replicas_watch *w)
{
    struct shard *sh = CONTAINER_OF(w, struct shard, watch);
    if (sh->state == SHARD_LOADING)
        shard_wake(sh);
}

void shard_wake(struct shard *sh)
{
    if (list_empty(&sh->loading))
        list_append(&sh->gs->loading, &sh->loading);
    groups_work_soon(sh->gs);
}

void shard_fail(struct shard *sh, enum err e, const char *what)
{
    env_log(sh->gs->env, LOG_ERROR, "group_load_failed partition=%s-%d offset=%lld %s error=%s",
            topic_of_offsets, sh->index, (long long)sh->load.offset, what, err_name(e));
    shard_unload(sh);
    sh->state = SHARD_FAILED;
}

static void shard_elect(struct shard *sh, struct uuid topic_id, int32_t epoch, struct now now)
{
    struct groups *gs = sh->gs;
    shard_unload(sh);
    sh->epoch = epoch;
    sh->topic_id = topic_id;
    if (!replicas_watch(gs->replicas, topic_id, sh->index, &sh->watch))
        return;
    load_begin(sh, now);
}

/* Elections that are not above the known epoch are old news. */
static void follow_partition(struct groups *gs, const struct image_topic *t, int32_t index)
{
    struct shard *sh = index < gs->shards_n ? &gs->shards[index] : NULL;
    const struct image_partition *ip = index < t->partitions_n ? &t->partitions[index] : NULL;
    if (sh == NULL || ip == NULL || ip->replicas_n == 0)
        return;
    const bool same_topic = uuid_eq(sh->topic_id, t->id);
    if (ip->leader != gs->node_id) {
        if (sh->state != SHARD_NONE)
            shard_unload(sh);
        if (ip->leader_epoch > sh->epoch)
            sh->epoch = ip->leader_epoch;
    } else if (!same_topic || ip->leader_epoch > sh->epoch) {
        shard_elect(sh, t->id, ip->leader_epoch, gs->now);
    }
}

static void forget_topic(struct groups *gs, const struct delta_topic *gone)
{
    for (int32_t i = 0; i < gs->shards_n; i++) {
        struct shard *sh = &gs->shards[i];
        if (uuid_eq(sh->topic_id, gone->id)) {
            shard_unload(sh);
            sh->epoch = -1;
        } else if (sh->state == SHARD_LOADING || sh->state == SHARD_ACTIVE) {
            sweep_forget_topic(sh, gone);
        }
    }
}

/* After a snapshot, which does not name what was deleted. */
static void forget_unknown(struct groups *gs)
{
    for (int32_t i = 0; i < gs->shards_n; i++) {
        struct shard *sh = &gs->shards[i];
        if (image_topic_by_id(gs->image, sh->topic_id) == NULL)
            shard_unload(sh);
        else if (sh->state == SHARD_LOADING || sh->state == SHARD_ACTIVE)
            sweep_forget_unknown(sh);
    }
}

void groups_apply(struct groups *gs, const struct image_delta *d, struct now now)
{
    gs->now = now;
    if (gs->shards_n == 0)
        return;
    for (size_t i = 0; i < d->deleted_n; i++)
        forget_topic(gs, &d->deleted[i]);
    if (d->everything)
        forget_unknown(gs);
    const struct image_topic *t = image_topic_named(gs->image, str_of(topic_of_offsets));
    if (t == NULL)
        return;
    for (int32_t i = 0; d->everything && i < gs->shards_n; i++)
        follow_partition(gs, t, i);
    for (size_t i = 0; i < d->partitions_n; i++)
        if (uuid_eq(d->partitions[i].topic_id, t->id))
            follow_partition(gs, t, d->partitions[i].index);
}

/* ------------------------------------------------------------------ slices */

/* The slice itself is done when the turn settles, which knows the time. */
static void work_due(struct timer *t)
{
    struct groups *gs = CONTAINER_OF(t, struct groups, work);
    enum err e = timer_arm(gs->timers, t, gs->expiry_us);
    CHECK(e == ERR_NONE); /* its place in the heap was freed just now */
    gs->work_due = true;
}

static void rearm(struct groups *gs, int64_t at_us)
{
    enum err e = timer_arm(gs->timers, &gs->work, at_us);
    CHECK(e == ERR_NONE); /* armed already: it only moves */
}

void groups_work_soon(struct groups *gs)
{
    rearm(gs, gs->now.mono_us);
}

/* One slice of one shard, so that a turn stays short. What goes gives its memory to what comes;
 * loading is before expiry. */
static void work(struct groups *gs)
{
    struct list *l;
    if (gs->now.mono_us >= gs->expiry_us) {
        gs->expiry_us =
            gs->now.mono_us + config_int(gs->config, "offsets.retention.check.interval.ms") * 1000;
        for (int32_t i = 0; i < gs->shards_n; i++)
            sweep_begin_expiry(&gs->shards[i]);
        rearm(gs, gs->expiry_us);
    }
    if ((l = list_pop(&gs->dropping)) != NULL)
        shard_unload_step(LIST_ENTRY(l, struct shard, dropping));
    else if ((l = list_pop(&gs->loading)) != NULL)
        load_step(LIST_ENTRY(l, struct shard, loading), gs->now);
    else if ((l = list_pop(&gs->sweeping)) != NULL)
        sweep_step(LIST_ENTRY(l, struct shard, sweeping));
    if (!list_empty(&gs->dropping) || !list_empty(&gs->loading) || !list_empty(&gs->sweeping))
        groups_work_soon(gs);
}

/* ------------------------------------------------------------------ settling */

void groups_op_ready(struct groups *gs, struct group_op *op)
{
    list_append(&gs->ready, &op->ready);
}

bool groups_settle(struct groups *gs, struct now now)
{
    bool moved = false;
    struct list *l;
    gs->now = now;
    while ((l = list_pop(&gs->ended)) != NULL) {
        write_finish(LIST_ENTRY(l, struct write, ended));
        moved = true;
    }
    if (gs->work_due && gs->shards_n > 0) {
        gs->work_due = false;
        work(gs);
        moved = true;
    }
    while ((l = list_pop(&gs->ready)) != NULL) {
        struct group_op *op = LIST_ENTRY(l, struct group_op, ready);
        op->done(op);
        moved = true;
    }
    group_wait_arm_fresh(gs);
    return moved;
}

/* ------------------------------------------------------------------ life */

enum err groups_new(const struct groups_args *args, struct groups **out)
{
    struct groups *gs = calloc(1, sizeof *gs);
    if (gs == NULL)
        return ERR_NOMEM;
    gs->env = args->env;
    gs->timers = args->timers;
    gs->budget = args->budget;
    gs->config = args->config;
    gs->commit_timeout_us = config_int(args->config, "offsets.commit.timeout.ms") * 1000;
    gs->metadata_max = config_int(args->config, "offset.metadata.max.bytes");
    gs->codec = (int16_t)config_int(args->config, "offsets.topic.compression.codec");
    gs->image = args->image;
    gs->replicas = args->replicas;
    gs->node_id = args->node_id;
    gs->seed = args->seed;
    gs->work.fire = work_due;
    list_init(&gs->ready);
    list_init(&gs->fresh);
    list_init(&gs->ended);
    list_init(&gs->dropping);
    list_init(&gs->loading);
    list_init(&gs->sweeping);
    buf_init(&gs->key);
    buf_init(&gs->value);
    *out = gs;
    return ERR_NONE;
}

static void shard_init(struct shard *sh, struct groups *gs, int32_t index)
{
    sh->gs = gs;
    sh->index = index;
    sh->epoch = -1;
    map_init(&sh->groups, gs->seed);
    map_init(&sh->topics, gs->seed);
    map_init(&sh->producers, gs->seed);
    list_init(&sh->order);
    list_init(&sh->writes);
    list_init(&sh->dropping);
    list_init(&sh->loading);
    list_init(&sh->sweeping);
    list_init(&sh->gone);
    list_init(&sh->watch.link);
    sh->watch.changed = watch_changed;
}

enum err groups_start(struct groups *gs, struct now now)
{
    CHECK(gs->shards_n == 0);
    const int32_t n = groups_partitions_n(gs);
    gs->now = now;
    gs->expiry_us =
        now.mono_us + config_int(gs->config, "offsets.retention.check.interval.ms") * 1000;
    enum err e = timer_arm(gs->timers, &gs->work, gs->expiry_us);
    if (e == ERR_NONE)
        gs->shards = groups_alloc(gs, (size_t)n * sizeof *gs->shards);
    if (gs->shards == NULL) {
        timer_cancel(gs->timers, &gs->work);
        return ERR_NOMEM;
    }
    for (int32_t i = 0; i < n; i++)
        shard_init(&gs->shards[i], gs, i);
    gs->shards_n = n;
    const struct image_delta all = {.everything = true};
    groups_apply(gs, &all, now);
    return ERR_NONE;
}

void groups_close(struct groups *gs, struct now now)
{
    gs->now = now;
    for (int32_t i = 0; i < gs->shards_n; i++)
        shard_unload_now(&gs->shards[i]);
    timer_cancel(gs->timers, &gs->work);
    if (gs->shards != NULL)
        groups_release(gs, gs->shards, (size_t)gs->shards_n * sizeof *gs->shards);
    gs->shards = NULL;
    gs->shards_n = 0;
}

void groups_free(struct groups *gs)
{
    struct list *l;
    if (gs == NULL)
        return;
    if (gs->shards_n > 0)
        groups_close(gs, gs->now);
    while ((l = list_pop(&gs->ended)) != NULL)
        write_finish(LIST_ENTRY(l, struct write, ended));
    CHECK(list_empty(&gs->ready));
    buf_close(&gs->key);
    buf_close(&gs->value);
    free(gs);
}
