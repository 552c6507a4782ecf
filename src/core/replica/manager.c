/* All partitions of this broker. settle looks only at partitions that something happened to: each
 * dirty log is written once, then what was promised by it completes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/endian.h"
#include "core/replica/inside.h"

/* ------------------------------------------------------------------ finding */

void partition_key(struct uuid topic_id, int32_t index, uint8_t out[PARTITION_KEY_BYTES])
{
    memcpy(out, topic_id.b, sizeof topic_id.b);
    put_be32(out + sizeof topic_id.b, (uint32_t)index);
}

struct partition *replicas_find(const struct replicas *rs, struct uuid topic_id, int32_t index)
{
    uint8_t key[PARTITION_KEY_BYTES];
    partition_key(topic_id, index, key);
    return map_get(&rs->partitions, key, sizeof key);
}

void replicas_mark_dirty(struct partition *p)
{
    if (list_empty(&p->dirty))
        list_append(&p->rs->dirty, &p->dirty);
}

size_t replicas_partitions_n(const struct replicas *rs)
{
    return rs->partitions.n;
}

bool replicas_offline(const struct replicas *rs)
{
    return rs->failed;
}

/* ------------------------------------------------------------------ logs */

void replicas_log_failed(struct replicas *rs, enum err e, const char *what)
{
    if (rs->failed)
        return;
    rs->failed = true;
    rs->failed_untold = true;
    rs->failed_err = e;
    rs->failed_what = what;
}

static void log_progress(void *ctx, struct log *l)
{
    struct partition *p = ctx;
    (void)l;
    replicas_mark_dirty(p);
    partition_changed(p); /* a cold read may have come in */
}

static void log_failed(void *ctx, struct log *l, enum err e, const char *what)
{
    struct partition *p = ctx;
    (void)l;
    replicas_log_failed(p->rs, e, what);
}

struct log_events partition_log_events(struct partition *p)
{
    return (struct log_events){.ctx = p, .progress = log_progress, .failed = log_failed};
}

enum err partition_log_args(struct partition *p, struct log_args *args, char *dir, size_t dir_n)
{
    const int n = snprintf(dir, dir_n, "%s/%s-%d", p->rs->log_dir, p->topic, p->index);
    if (n < 0 || (size_t)n >= dir_n)
        return ERR_INVALID;
    *args = (struct log_args){
        .env = p->rs->env,
        .timers = p->rs->timers,
        .budget = p->rs->budget,
        .dir = dir,
        .topic_id = p->topic_id,
        .config = p->config.log,
        .events = partition_log_events(p),
        .now = p->rs->now,
    };
    return ERR_NONE;
}

/* ------------------------------------------------------------------ configuration */

enum { RESOURCE_TOPIC = 2 }; /* Kafka's ConfigResource.Type */

struct topic_values {
    const struct image *image;
    struct str topic;
};

static const char *topic_value(void *ctx, const char *key)
{
    const struct topic_values *v = ctx;
    return image_config_value(v->image, RESOURCE_TOPIC, v->topic, str_of(key));
}

static void resolve_config(struct partition *p)
{
    struct topic_values v = {p->rs->image, str_of(p->topic)};
    topic_config_resolve(p->rs->config, topic_value, &v, &p->config);
    if (p->log != NULL)
        log_set_config(p->log, &p->config.log);
}

/* ------------------------------------------------------------------ the image changes */

static enum err new_partition(struct replicas *rs, const struct image_topic *t, int32_t index,
                              struct partition **out)
{
    uint8_t key[PARTITION_KEY_BYTES];
    struct partition *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ERR_NOMEM;
    list_init(&p->dirty);
    list_init(&p->writing);
    list_init(&p->promising);
    list_init(&p->replicating);
    list_init(&p->watchers);
    p->rs = rs;
    p->topic = strdup(t->name);
    p->topic_id = t->id;
    p->index = index;
    p->leader = -1;
    p->leader_epoch = p->partition_epoch = -1;
    partition_key(t->id, index, key);
    if (p->topic == NULL || map_put(&rs->partitions, key, sizeof key, p) != ERR_NONE) {
        partition_free(p);
        return ERR_NOMEM;
    }
    resolve_config(p);
    *out = p;
    return ERR_NONE;
}

enum err partition_begin_empty(struct partition *p)
{
    char dir[4200];
    struct log_args args;
    struct log *log;
    enum err e = partition_log_args(p, &args, dir, sizeof dir);
    if (e == ERR_NONE)
        e = log_new(&args, &log);
    return e == ERR_NONE ? partition_log_ready(p, log, 0, p->rs->now) : e;
}

static bool ours(const struct replicas *rs, const struct image_partition *ip)
{
    for (int32_t i = 0; i < ip->replicas_n; i++)
        if (ip->replicas[i] == rs->node_id)
            return true;
    return false;
}

static enum err apply_partition(struct replicas *rs, struct uuid topic_id, int32_t index)
{
    struct image_topic *t = image_topic_by_id(rs->image, topic_id);
    struct image_partition *ip = t == NULL ? NULL : image_partition(t, index);
    struct partition *p = replicas_find(rs, topic_id, index);
    enum err e = ERR_NONE;
    if (ip == NULL || (p == NULL && !ours(rs, ip)))
        return ERR_NONE;
    const bool fresh = p == NULL;
    if (fresh)
        e = new_partition(rs, t, index, &p);
    if (e == ERR_NONE)
        e = partition_apply(p, ip, rs->now);
    /* Until loading has begun, a log on disk may still turn up for it. */
    if (e == ERR_NONE && fresh && rs->load_begun)
        e = partition_begin_empty(p);
    return e;
}

/* A log on its way out; the partition need not live that long. */
struct closing_log {
    struct log_close close;
    struct replicas *rs;
};

static void log_closed(struct log_close *lc)
{
    struct closing_log *c = CONTAINER_OF(lc, struct closing_log, close);
    struct replicas *rs = c->rs;
    if (lc->err != ERR_NONE) {
        env_log(rs->env, LOG_WARN, "log_close_failed error=%s", err_name(lc->err));
        rs->close_clean = false;
    }
    free(c);
    replicas_job_ended(rs);
}

static void close_log(struct replicas *rs, struct log *log, bool clean, bool delete_)
{
    struct closing_log *c = calloc(1, sizeof *c);
    if (c == NULL) {
        replicas_log_failed(rs, ERR_NOMEM, "no memory to close a log");
        return;
    }
    c->close = (struct log_close){.clean = clean, .delete_ = delete_, .done = log_closed};
    c->rs = rs;
    rs->closes_n++;
    log_close_start(log, &c->close);
}

static void delete_partition(struct replicas *rs, struct uuid topic_id, int32_t index)
{
    uint8_t key[PARTITION_KEY_BYTES];
    partition_key(topic_id, index, key);
    struct partition *p = map_remove(&rs->partitions, key, sizeof key);
    if (p == NULL)
        return;
    produce_fail(p, K_UNKNOWN_TOPIC_OR_PARTITION);
    partition_gone(p);
    if (p->log != NULL)
        close_log(rs, p->log, false, true);
    partition_free(p);
}

static enum err apply_everything(struct replicas *rs)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->image->topics_by_id, it)) != NULL) {
        const struct image_topic *t = map_value(it);
        for (int32_t i = 0; i < t->partitions_n; i++) {
            enum err e = apply_partition(rs, t->id, i);
            if (e != ERR_NONE)
                return e;
        }
    }
    return ERR_NONE;
}

static void apply_configs(struct replicas *rs, const struct image_delta *d)
{
    for (size_t i = 0; i < d->configs_n; i++) {
        struct image_topic *t = d->configs[i].resource_type == RESOURCE_TOPIC
                                    ? image_topic_named(rs->image, str_of(d->configs[i].name))
                                    : NULL;
        for (int32_t k = 0; t != NULL && k < t->partitions_n; k++) {
            struct partition *p = replicas_find(rs, t->id, k);
            if (p != NULL)
                resolve_config(p);
        }
    }
}

void replicas_apply(struct replicas *rs, const struct image_delta *d, struct now now)
{
    enum err e = ERR_NONE;
    rs->now = now;
    for (size_t i = 0; i < d->deleted_n; i++)
        for (int32_t k = 0; k < d->deleted[i].partitions_n; k++)
            delete_partition(rs, d->deleted[i].id, k);
    if (d->everything)
        e = apply_everything(rs);
    for (size_t i = 0; i < d->partitions_n && e == ERR_NONE; i++)
        e = apply_partition(rs, d->partitions[i].topic_id, d->partitions[i].index);
    apply_configs(rs, d);
    if (e != ERR_NONE) /* the metadata is committed: this node can no longer follow it */
        replicas_log_failed(rs, e, "a committed change of partitions cannot be taken over");
}

/* ------------------------------------------------------------------ settle */

static void write_partition(struct partition *p)
{
    if (!log_dirty(p->log))
        return;
    enum err e = log_write(p->log, p->rs->now);
    if (e == ERR_NONE || e == ERR_AGAIN)
        return;
    if (e == ERR_NOSPC) {
        env_log(p->rs->env, LOG_WARN, "disk_full partition=%s-%d", p->topic, p->index);
        produce_cut(p, K_KAFKA_STORAGE_ERROR);
        return;
    }
    replicas_log_failed(p->rs, e, "a write failed");
}

static void settle_partition(struct partition *p)
{
    struct replicas *rs = p->rs;
    if (p->log == NULL || rs->failed) {
        if (rs->failed)
            produce_fail(p, K_KAFKA_STORAGE_ERROR);
        return;
    }
    write_partition(p);
    const int64_t end = log_end_offset(p->log);
    bool changed = end != p->seen_end;
    p->seen_end = end;
    p->promised = log_promised_end(p->log);
    if (p->leading)
        changed |=
            partition_advance_high_watermark(p, p->promised, rs->now.mono_us, rs->lag_max_us);
    produce_settle(p);
    if (changed)
        partition_changed(p);
}

static bool tell(struct replicas *rs)
{
    bool moved = false;
    if (rs->failed_untold) {
        rs->failed_untold = false;
        struct map_entry *it = NULL;
        while ((it = map_next(&rs->partitions, it)) != NULL) {
            produce_fail(map_value(it), K_KAFKA_STORAGE_ERROR);
            partition_changed(map_value(it));
        }
        rs->events.log_dir_failed(rs->events.ctx, rs->failed_err, rs->failed_what);
        moved = true;
    }
    if (rs->loaded_untold) {
        rs->loaded_untold = false;
        rs->events.loaded(rs->events.ctx);
        moved = true;
    }
    if (rs->closed_untold) {
        rs->closed_untold = false;
        rs->closed(rs->closed_ctx, rs->close_clean);
        moved = true;
    }
    return moved;
}

bool replicas_settle(struct replicas *rs, struct now now)
{
    bool moved = false;
    struct list *l;
    rs->now = now;
    while ((l = list_pop(&rs->dirty)) != NULL) {
        settle_partition(LIST_ENTRY(l, struct partition, dirty));
        moved = true;
    }
    moved |= produce_complete_ready(rs);
    moved |= fetch_settle(rs);
    moved |= list_offsets_settle(rs);
    moved |= tell(rs);
    return moved;
}

/* ------------------------------------------------------------------ life */

enum err replicas_new(const struct replicas_args *args, struct replicas **out)
{
    struct replicas *rs = calloc(1, sizeof *rs);
    if (rs == NULL)
        return ERR_NOMEM;
    rs->env = args->env;
    rs->timers = args->timers;
    rs->budget = args->budget;
    rs->config = args->config;
    rs->image = args->image;
    rs->node_id = args->node_id;
    rs->events = args->events;
    rs->lag_max_us = config_int(args->config, "replica.lag.time.max.ms") * 1000;
    map_init(&rs->partitions, args->seed);
    list_init(&rs->dirty);
    list_init(&rs->ready_produce);
    list_init(&rs->fresh_produce);
    list_init(&rs->ready_list_offsets);
    list_init(&rs->woken_fetch);
    list_init(&rs->to_load);
    list_init(&rs->loading);
    fetch_sessions_init(&rs->sessions, args);
    rs->log_dir = strdup(args->log_dir);
    if (rs->log_dir == NULL || checkpoints_new(rs) != ERR_NONE) {
        replicas_free(rs);
        return ERR_NOMEM;
    }
    *out = rs;
    return ERR_NONE;
}

void replicas_free(struct replicas *rs)
{
    if (rs == NULL)
        return;
    fetch_sessions_close(&rs->sessions);
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        struct partition *p = map_value(it);
        CHECK(p->log == NULL);
        partition_free(p);
    }
    load_drop(rs);
    map_close(&rs->partitions);
    checkpoints_free(rs);
    free(rs->log_dir);
    free(rs);
}

/* The last of what a close waits for? */
void replicas_job_ended(struct replicas *rs)
{
    rs->closes_n--;
    if (!rs->close_begun || rs->closes_n > 0)
        return;
    if (rs->close_clean && !rs->checkpointed) {
        rs->checkpointed = true;
        rs->closes_n++;
        checkpoints_final(rs);
        return;
    }
    rs->closed_untold = true;
}

void replicas_close_logs(struct replicas *rs)
{
    rs->close_begun = true;
    rs->closes_n++; /* held until all closes are under way */
    checkpoints_collect(rs);
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        struct partition *p = map_value(it);
        if (p->log == NULL)
            continue;
        close_log(rs, p->log, rs->close_clean, false);
        p->log = NULL;
    }
    replicas_job_ended(rs);
}

void replicas_close(struct replicas *rs, void (*done)(void *ctx, bool clean), void *ctx,
                    struct now now)
{
    rs->now = now;
    rs->closing = true;
    rs->close_clean = !rs->failed && rs->load_begun;
    rs->closed = done;
    rs->closed_ctx = ctx;
    if (!checkpoints_busy(rs) && rs->loading_n == 0)
        replicas_close_logs(rs);
}
