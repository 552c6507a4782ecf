/* The checkpoint files of the log directory: high watermarks often, recovery points and log starts
 * seldom, both at once when a directory has left; each file whole, by a job, and only after a
 * change. */
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"

struct checkpoints_job {
    struct job job;
    struct replicas *rs;
    struct timer hw_timer, recovery_timer;
    struct offset_checkpoint hws, recovery, starts; /* to write */
    bool write_hws, write_recovery, busy, begun;
    bool recovery_wanted; /* as soon as the job in flight is through */
    struct list covers;   /* struct leaving: not in these files any more */
    enum err err;
};

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

static void give_back(struct checkpoints_job *c)
{
    struct list *l;
    c->rs->hws_changed |= c->write_hws;
    c->rs->recovery_changed |= c->write_recovery;
    while ((l = list_pop(&c->covers)) != NULL)
        list_append(&c->rs->left, l);
}

static void checkpoints_done(struct job *j)
{
    struct checkpoints_job *c = CONTAINER_OF(j, struct checkpoints_job, job);
    struct replicas *rs = c->rs;
    c->busy = false;
    if (c->err == ERR_NONE) {
        leaving_end(rs, &c->covers);
    } else {
        rs->close_clean = false;
        give_back(c);
        if (c->err == ERR_NOSPC || c->err == ERR_NOMEM || c->err == ERR_NFILE)
            env_log(rs->env, LOG_WARN, "checkpoint_failed error=%s", err_name(c->err));
        else
            replicas_log_failed(rs, c->err, "a checkpoint cannot be written");
    }
    c->write_hws = c->write_recovery = false;
    reset(&c->hws);
    reset(&c->recovery);
    reset(&c->starts);
    const bool again = c->recovery_wanted;
    c->recovery_wanted = false;
    if (again && c->err == ERR_NONE)
        checkpoints_request(rs);
    replicas_close_step(rs);
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

static void start(struct checkpoints_job *c, bool recovery)
{
    struct replicas *rs = c->rs;
    struct list *l;
    c->recovery_wanted |= recovery && c->busy;
    if (c->busy || !c->begun || rs->failed || rs->closing || collect_hws(c) != ERR_NONE ||
        (recovery && collect_recovery(c, false) != ERR_NONE))
        return; /* the timers come again */
    c->write_hws = true;
    c->write_recovery = recovery;
    rs->hws_changed = false;
    if (recovery) {
        rs->recovery_changed = false;
        while ((l = list_pop(&rs->left)) != NULL)
            list_append(&c->covers, l);
    }
    submit(c);
}

void checkpoints_request(struct replicas *rs)
{
    start(rs->checkpoints, true);
}

/* ------------------------------------------------------------------ times */

static void arm(struct checkpoints_job *c, struct timer *t, int64_t from_us, const char *key)
{
    if (from_us < c->rs->timers->floor_us) /* the machine slept: not once for each time missed */
        from_us = c->rs->timers->floor_us;
    if (timer_arm(c->rs->timers, t, from_us + config_int(c->rs->config, key) * 1000) != ERR_NONE)
        env_log(c->rs->env, LOG_WARN, "checkpoint_skipped key=%s error=NOMEM", key);
}

static const char hw_key[] = "replica.high.watermark.checkpoint.interval.ms";
static const char recovery_key[] = "log.flush.offset.checkpoint.interval.ms";

static void hw_due(struct timer *t)
{
    struct checkpoints_job *c = CONTAINER_OF(t, struct checkpoints_job, hw_timer);
    arm(c, t, t->at_us, hw_key);
    if (c->rs->hws_changed || !list_empty(&c->rs->left))
        start(c, !list_empty(&c->rs->left));
}

static void recovery_due(struct timer *t)
{
    struct checkpoints_job *c = CONTAINER_OF(t, struct checkpoints_job, recovery_timer);
    arm(c, t, t->at_us, recovery_key);
    if (c->rs->recovery_changed)
        start(c, true);
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
    list_init(&c->covers);
    offset_checkpoint_init(&c->hws);
    offset_checkpoint_init(&c->recovery);
    offset_checkpoint_init(&c->starts);
    rs->checkpoints = c;
    return ERR_NONE;
}

void checkpoints_begin(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    c->begun = true;
    arm(c, &c->hw_timer, rs->now.mono_us, hw_key);
    arm(c, &c->recovery_timer, rs->now.mono_us, recovery_key);
    if (!list_empty(&rs->left))
        checkpoints_request(rs);
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
