/* The checkpoint files of the log directory: high watermarks often, recovery points and log starts
 * seldom, each file written whole, by a job, and only when it would change. */
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"

struct checkpoints_job {
    struct job job;
    struct replicas *rs;
    struct timer hw_timer, recovery_timer;
    struct offset_checkpoint hws, recovery, starts; /* to write */
    uint64_t hws_sum, recovery_sum;                 /* of what was written last */
    bool write_hws, write_recovery, busy, final;
    enum err err;
};

static uint64_t sum_of(const struct offset_checkpoint *c)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < c->n; i++) {
        for (const char *p = c->v[i].topic; *p != '\0'; p++)
            h = (h ^ (uint8_t)*p) * 0x100000001b3u;
        h = (h ^ (uint64_t)c->v[i].partition) * 0x100000001b3u;
        h = (h ^ (uint64_t)c->v[i].offset) * 0x100000001b3u;
    }
    return h;
}

static void reset(struct offset_checkpoint *c)
{
    offset_checkpoint_close(c);
    offset_checkpoint_init(c);
}

/* ------------------------------------------------------------------ the job */

static void checkpoints_run(struct job *j, struct disk *d)
{
    struct checkpoints_job *c = CONTAINER_OF(j, struct checkpoints_job, job);
    const char *dir = c->rs->log_dir; /* never changes */
    c->err = ERR_NONE;
    if (c->write_hws)
        c->err = offset_checkpoint_write(d, dir, "replication-offset-checkpoint", &c->hws);
    if (c->write_recovery && c->err == ERR_NONE)
        c->err = offset_checkpoint_write(d, dir, "recovery-point-offset-checkpoint", &c->recovery);
    if (c->write_recovery && c->err == ERR_NONE)
        c->err = offset_checkpoint_write(d, dir, "log-start-offset-checkpoint", &c->starts);
}

static void checkpoints_done(struct job *j)
{
    struct checkpoints_job *c = CONTAINER_OF(j, struct checkpoints_job, job);
    struct replicas *rs = c->rs;
    c->busy = false;
    c->write_hws = c->write_recovery = false;
    if (c->err == ERR_NOSPC) { /* older ones are still right, only older */
        env_log(rs->env, LOG_WARN, "checkpoint_failed error=NOSPC");
        c->hws_sum = c->recovery_sum = 0;
    } else if (c->err != ERR_NONE) {
        replicas_log_failed(rs, c->err, "a checkpoint cannot be written");
    }
    if (c->final) {
        rs->close_clean &= c->err == ERR_NONE;
        replicas_job_ended(rs);
    } else if (rs->closing) {
        replicas_close_logs(rs);
    }
}

static void submit(struct checkpoints_job *c)
{
    c->busy = true;
    c->job = (struct job){.lane = JOB_BULK, .run = checkpoints_run, .done = checkpoints_done};
    c->rs->env->submit(c->rs->env, &c->job);
}

/* ------------------------------------------------------------------ collecting */

static enum err collect_hws(struct checkpoints_job *c)
{
    struct map_entry *it = NULL;
    enum err e = ERR_NONE;
    reset(&c->hws);
    while (e == ERR_NONE && (it = map_next(&c->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log != NULL)
            e = offset_checkpoint_add(&c->hws, str_of(p->topic), p->index, p->high_watermark);
    }
    return e;
}

static enum err collect_recovery(struct checkpoints_job *c, bool closing)
{
    struct map_entry *it = NULL;
    enum err e = ERR_NONE;
    reset(&c->recovery);
    reset(&c->starts);
    while (e == ERR_NONE && (it = map_next(&c->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log == NULL)
            continue;
        /* a clean close syncs all there is */
        const int64_t point = closing ? log_end_offset(p->log) : log_recovery_point(p->log);
        e = offset_checkpoint_add(&c->recovery, str_of(p->topic), p->index, point);
        if (e == ERR_NONE && log_start_offset(p->log) > 0)
            e = offset_checkpoint_add(&c->starts, str_of(p->topic), p->index,
                                      log_start_offset(p->log));
    }
    return e;
}

static void arm(struct checkpoints_job *c, struct timer *t, const char *key)
{
    const int64_t us = config_int(c->rs->config, key) * 1000;
    if (timer_arm(c->rs->timers, t, c->rs->now.mono_us + us) != ERR_NONE)
        env_log(c->rs->env, LOG_WARN, "checkpoint_skipped key=%s error=NOMEM", key);
}

static void hw_due(struct timer *t)
{
    struct checkpoints_job *c = CONTAINER_OF(t, struct checkpoints_job, hw_timer);
    c->rs->now.mono_us = t->at_us > c->rs->now.mono_us ? t->at_us : c->rs->now.mono_us;
    arm(c, t, "replica.high.watermark.checkpoint.interval.ms");
    if (c->busy || c->rs->failed || c->rs->closing || collect_hws(c) != ERR_NONE)
        return;
    const uint64_t sum = sum_of(&c->hws);
    if (sum == c->hws_sum)
        return;
    c->hws_sum = sum;
    c->write_hws = true;
    submit(c);
}

static void recovery_due(struct timer *t)
{
    struct checkpoints_job *c = CONTAINER_OF(t, struct checkpoints_job, recovery_timer);
    c->rs->now.mono_us = t->at_us > c->rs->now.mono_us ? t->at_us : c->rs->now.mono_us;
    arm(c, t, "log.flush.offset.checkpoint.interval.ms");
    if (c->busy || c->rs->failed || c->rs->closing || collect_recovery(c, false) != ERR_NONE)
        return;
    const uint64_t sum = sum_of(&c->recovery) * 31 + sum_of(&c->starts);
    if (sum == c->recovery_sum)
        return;
    c->recovery_sum = sum;
    c->write_recovery = true;
    submit(c);
}

/* ------------------------------------------------------------------ life */

enum err checkpoints_new(struct replicas *rs)
{
    struct checkpoints_job *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    c->rs = rs;
    c->hw_timer.fire = hw_due;
    c->recovery_timer.fire = recovery_due;
    offset_checkpoint_init(&c->hws);
    offset_checkpoint_init(&c->recovery);
    offset_checkpoint_init(&c->starts);
    rs->checkpoints = c;
    return ERR_NONE;
}

void checkpoints_begin(struct replicas *rs)
{
    arm(rs->checkpoints, &rs->checkpoints->hw_timer,
        "replica.high.watermark.checkpoint.interval.ms");
    arm(rs->checkpoints, &rs->checkpoints->recovery_timer,
        "log.flush.offset.checkpoint.interval.ms");
}

void checkpoints_free(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    if (c == NULL)
        return;
    timer_cancel(rs->timers, &c->hw_timer);
    timer_cancel(rs->timers, &c->recovery_timer);
    offset_checkpoint_close(&c->hws);
    offset_checkpoint_close(&c->recovery);
    offset_checkpoint_close(&c->starts);
    free(c);
    rs->checkpoints = NULL;
}

bool checkpoints_busy(const struct replicas *rs)
{
    return rs->checkpoints->busy;
}

void checkpoints_collect(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    timer_cancel(rs->timers, &c->hw_timer);
    timer_cancel(rs->timers, &c->recovery_timer);
    c->final = true;
    CHECK(!c->busy);
    if (collect_hws(c) != ERR_NONE || collect_recovery(c, true) != ERR_NONE)
        rs->close_clean = false;
}

void checkpoints_final(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    c->write_hws = c->write_recovery = true;
    submit(c);
}
