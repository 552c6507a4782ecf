/* All partitions of this broker. settle looks only at partitions that something happened to: each
 * dirty log is written once, then what was promised by it completes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/endian.h"
#include "core/metadata/kafka_error.h"
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

/* ------------------------------------------------------------------ logs */

void replicas_fail(struct replicas *rs, enum err e, const char *what)
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
    p->rs->recovery_changed = true; /* a sync may have ended */
    replicas_mark_dirty(p);
    follow_log_moved(p);
    partition_changed(p); /* a cold read may have come in */
}

static void log_failed(void *ctx, struct log *l, enum err e, const char *what)
{
    struct partition *p = ctx;
    (void)l;
    partition_log_fail(p, e, what);
}

struct log_events partition_log_events(struct partition *p)
{
    return (struct log_events){.ctx = p, .progress = log_progress, .failed = log_failed};
}

enum err partition_log_args(struct partition *p, struct log_dir *ld, struct log_args *args,
                            char *dir, size_t dir_n)
{
    const int n = snprintf(dir, dir_n, "%s/%s-%d", ld->path, p->topic, p->index);
    if (n < 0 || (size_t)n >= dir_n)
        return ERR_INVALID;
    *args = (struct log_args){
        .env = p->rs->env,
        .timers = p->rs->timers,
        .maker = &ld->maker,
        .budget = p->rs->budget,
        .stages = &p->rs->stages,
        .dir = dir,
        .topic_id = p->topic_id,
        .config = p->config.log,
        .events = partition_log_events(p),
        .now = p->rs->now,
    };
    return ERR_NONE;
}

/* ------------------------------------------------------------------ settle */

static void write_partition(struct partition *p)
{
    if (!log_dirty(p->log))
        return;
    enum err e = log_write(p->log, p->rs->now);
    if (e == ERR_NONE || e == ERR_AGAIN)
        return;
    env_log(p->rs->env, LOG_WARN, "append_cut partition=%s-%d error=%s", p->topic, p->index,
            err_name(e));
    produce_cut(p, kafka_error_of(e));
    if (e == ERR_IO || e == ERR_OFFLINE)
        partition_log_fail(p, e, "a write failed");
}

/* What cannot go yet, or has no memory to, goes at a later look. */
static void drop_old_segments(struct partition *p)
{
    enum err e = list_empty(&p->raised) ? ERR_NONE : log_drop_old_segments(p->log);
    (void)e;
}

static void settle_partition(struct partition *p)
{
    struct replicas *rs = p->rs;
    if (partition_offline(p)) {
        produce_fail(p, K_KAFKA_STORAGE_ERROR);
        delete_records_fail(p, K_KAFKA_STORAGE_ERROR);
        return;
    }
    if (p->log == NULL)
        return;
    write_partition(p);
    const int64_t end = log_end_offset(p->log);
    bool changed = end != p->seen_end;
    p->seen_end = end;
    p->promised = log_promised_end(p->log);
    if (p->leading &&
        partition_advance_high_watermark(p, p->promised, rs->now.mono_us, rs->lag_max_us))
        changed = rs->hws_changed = true;
    drop_old_segments(p);
    produce_settle(p);
    delete_records_settle(p);
    if (changed)
        partition_changed(p);
}

static bool all_closed_clean(const struct replicas *rs)
{
    bool clean = !rs->failed;
    for (size_t i = 0; i < rs->dirs_n; i++)
        clean = clean && (rs->dirs[i].failed || rs->dirs[i].close_clean);
    return clean;
}

static bool tell(struct replicas *rs)
{
    bool moved = false;
    if (rs->failed_untold) {
        rs->failed_untold = false;
        fetchers_stop(rs);
        struct map_entry *it = NULL;
        while ((it = map_next(&rs->partitions, it)) != NULL) {
            produce_fail(map_value(it), K_KAFKA_STORAGE_ERROR);
            delete_records_fail(map_value(it), K_KAFKA_STORAGE_ERROR);
            partition_changed(map_value(it));
        }
        rs->events.failed(rs->events.ctx, rs->failed_err, rs->failed_what);
        moved = true;
    }
    moved |= log_dirs_tell(rs);
    if (rs->loaded_untold) {
        rs->loaded_untold = false;
        rs->events.loaded(rs->events.ctx);
        moved = true;
    }
    if (rs->closed_untold) {
        rs->closed_untold = false;
        rs->closed(rs->closed_ctx, all_closed_clean(rs));
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
    moved |= apply_settle(rs);
    moved |= fetchers_settle(rs);
    moved |= produce_complete_ready(rs);
    moved |= delete_records_complete_ready(rs);
    moved |= fetch_settle(rs);
    moved |= list_offsets_settle(rs);
    moved |= describe_log_dirs_settle(rs);
    moved |= isr_settle(rs);
    moved |= isr_sender_settle(rs);
    moved |= directory_sender_settle(rs);
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
    rs->broker_epoch = args->broker_epoch;
    rs->dialing = args->dialing;
    rs->answers = args->answers;
    rs->lag_max_us = config_int(args->config, "replica.lag.time.max.ms") * 1000;
    rs->fetch_max_bytes = config_int(args->config, "fetch.max.bytes");
    rs->rack_aware = fetch_is_rack_aware(args->config);
    log_stages_init(&rs->stages);
    map_init(&rs->partitions, args->seed);
    list_init(&rs->all);
    fetchers_init(rs);
    throttle_init(&rs->leader_throttle);
    throttle_init(&rs->follower_throttle);
    list_init(&rs->walk);
    list_init(&rs->dirty);
    list_init(&rs->ready_produce);
    list_init(&rs->fresh_produce);
    list_init(&rs->ready_delete);
    list_init(&rs->fresh_delete);
    list_init(&rs->ready_list_offsets);
    list_init(&rs->woken_fetch);
    list_init(&rs->parked_followers);
    rs->led_us = FOLLOWER_NEVER_US;
    isr_init(rs);
    describe_log_dirs_init(rs);
    map_init(&rs->leaving, args->seed);
    list_init(&rs->left);
    list_init(&rs->removals);
    list_init(&rs->raised);
    list_init(&rs->to_load);
    list_init(&rs->loading);
    fetch_sessions_init(&rs->sessions, args);
    enum err e = log_dirs_new(rs, args);
    if (e == ERR_NONE)
        e = checkpoints_new(rs);
    if (e == ERR_NONE && args->alter_partition != NULL)
        e = isr_sender_new(rs, args->alter_partition);
    if (e == ERR_NONE && args->directories != NULL)
        e = directory_sender_new(rs, args->directories);
    if (e != ERR_NONE) {
        replicas_free(rs);
        return e;
    }
    *out = rs;
    return ERR_NONE;
}

void replicas_free(struct replicas *rs)
{
    if (rs == NULL)
        return;
    fetchers_stop(rs);
    fetch_sessions_close(&rs->sessions);
    timer_cancel(rs->timers, &rs->shrink_timer);
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        struct partition *p = map_value(it);
        CHECK(p->log == NULL);
        partition_free(p);
    }
    load_drop(rs);
    leaving_drop(rs);
    removals_drop(rs);
    map_close(&rs->partitions);
    log_stages_close(&rs->stages);
    checkpoints_free(rs);
    isr_sender_free(rs);
    directory_sender_free(rs);
    log_dirs_free(rs);
    free(rs);
}
