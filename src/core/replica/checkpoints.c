/* The checkpoint files of the log directories: high watermarks often, recovery points and log
 * starts seldom, all at once when a directory has left, log starts when records were deleted
 * (whoever asked for that waits for the file); each file whole, by a job, and only after a change.
 */
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"

/* What one job writes in a log directory. */
struct dir_checkpoints {
    struct offset_checkpoint hws, recovery, starts;
    bool skip;
    enum err err;
};

struct checkpoints_job {
    struct job job;
    struct replicas *rs;
    struct timer hw_timer, recovery_timer;
    struct dir_checkpoints *of; /* by log directory */
    unsigned writes;            /* of the job in flight; 0: none is */
    unsigned wanted;            /* as soon as that is through */
    bool begun;
    struct list covers; /* struct leaving: not in these files any more */
};

enum { HWS = 1, RECOVERY = 2, STARTS = 4, ALL = HWS | RECOVERY | STARTS };

static void start(struct checkpoints_job *c, unsigned writes);

static void reset(struct checkpoints_job *c)
{
    for (size_t i = 0; i < c->rs->dirs_n; i++) {
        offset_checkpoint_close(&c->of[i].hws);
        offset_checkpoint_close(&c->of[i].recovery);
        offset_checkpoint_close(&c->of[i].starts);
        c->of[i].err = ERR_NONE;
    }
}

/* ------------------------------------------------------------------ the job */

static enum err write_dir(struct disk *d, const char *dir, unsigned writes,
                          const struct dir_checkpoints *dc)
{
    enum err e = ERR_NONE;
    if (writes & HWS)
        e = offset_checkpoint_write(d, dir, "replication-offset-checkpoint", &dc->hws);
    if ((writes & RECOVERY) && e == ERR_NONE)
        e = offset_checkpoint_write(d, dir, "recovery-point-offset-checkpoint", &dc->recovery);
    if ((writes & STARTS) && e == ERR_NONE)
        e = offset_checkpoint_write(d, dir, "log-start-offset-checkpoint", &dc->starts);
    return e;
}

static void checkpoints_run(struct job *j, struct disk *d)
{
    struct checkpoints_job *c = CONTAINER_OF(j, struct checkpoints_job, job);
    const struct replicas *rs = c->rs; /* its directories and their names never change */
    for (size_t i = 0; i < rs->dirs_n; i++)
        if (!c->of[i].skip)
            c->of[i].err = write_dir(d, rs->dirs[i].path, c->writes, &c->of[i]);
}

static void give_back(struct checkpoints_job *c)
{
    struct list *l;
    c->rs->hws_changed |= (c->writes & HWS) != 0;
    c->rs->recovery_changed |= (c->writes & RECOVERY) != 0;
    c->rs->starts_changed |= (c->writes & STARTS) != 0;
    while ((l = list_pop(&c->covers)) != NULL)
        list_append(&c->rs->left, l);
}

static bool written(const struct checkpoints_job *c, const struct partition *p)
{
    const struct dir_checkpoints *dc = &c->of[p->dir->idx];
    return (c->writes & STARTS) && !dc->skip && dc->err == ERR_NONE;
}

/* Who waits for a log start looks again: it is in the file now, or is not. */
static void starts_written(struct checkpoints_job *c)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->rs->raised)
    {
        struct partition *p = LIST_ENTRY(l, struct partition, raised);
        if (written(c, p) && p->saving_start > p->saved_start)
            p->saved_start = p->saving_start;
        delete_records_saved(p);
    }
}

/* True when it may go well another time. */
static bool failed(struct log_dir *ld, enum err e)
{
    ld->close_clean = false;
    if (e == ERR_NOSPC || e == ERR_NOMEM || e == ERR_NFILE) {
        env_log(ld->rs->env, LOG_WARN, "checkpoint_failed path=%s error=%s", ld->path, err_name(e));
        return true;
    }
    log_dir_fail(ld, e, "a checkpoint cannot be written");
    return false;
}

static void checkpoints_done(struct job *j)
{
    struct checkpoints_job *c = CONTAINER_OF(j, struct checkpoints_job, job);
    struct replicas *rs = c->rs;
    bool any = false, again = false;
    for (size_t i = 0; i < rs->dirs_n; i++) {
        any |= c->of[i].err != ERR_NONE;
        again |= c->of[i].err != ERR_NONE && failed(&rs->dirs[i], c->of[i].err);
    }
    if (again) {
        c->wanted = 0; /* the timers come again */
        give_back(c);
    } else {
        leaving_end(rs, &c->covers);
    }
    if (any || (c->writes & STARTS))
        starts_written(c);
    c->writes = 0;
    reset(c);
    const unsigned wanted = c->wanted;
    c->wanted = 0;
    if (wanted != 0)
        start(c, wanted);
    replicas_close_step(rs);
}

static void submit(struct checkpoints_job *c, unsigned writes)
{
    c->writes = writes;
    c->job = (struct job){.lane = JOB_BULK, .run = checkpoints_run, .done = checkpoints_done};
    c->rs->env->submit(c->rs->env, &c->job);
}

/* ------------------------------------------------------------------ collecting */

static enum err collect_hws(struct checkpoints_job *c)
{
    struct map_entry *it = NULL;
    enum err e = ERR_NONE;
    while (e == ERR_NONE && (it = map_next(&c->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log != NULL)
            e = offset_checkpoint_add(&c->of[p->dir->idx].hws, str_of(p->topic), p->index,
                                      p->high_watermark);
    }
    return e;
}

static enum err collect_recovery(struct checkpoints_job *c, bool closing)
{
    struct map_entry *it = NULL;
    enum err e = ERR_NONE;
    while (e == ERR_NONE && (it = map_next(&c->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log == NULL)
            continue;
        /* a clean close syncs all there is */
        const int64_t point = closing ? log_end_offset(p->log) : log_recovery_point(p->log);
        e = offset_checkpoint_add(&c->of[p->dir->idx].recovery, str_of(p->topic), p->index, point);
    }
    return e;
}

/* Only what the files alone do not say (Kafka). */
static enum err collect_starts(struct checkpoints_job *c)
{
    struct list *l, *tmp;
    enum err e = ERR_NONE;
    LIST_EACH(l, tmp, &c->rs->raised)
    {
        struct partition *p = LIST_ENTRY(l, struct partition, raised);
        const int64_t start = p->log == NULL ? 0 : log_start_offset(p->log);
        p->saving_start = start;
        if (p->log == NULL || start <= log_files_start(p->log)) {
            p->saved_start = start;
            list_remove(&p->raised);
            delete_records_saved(p);
            continue;
        }
        if (e == ERR_NONE)
            e = offset_checkpoint_add(&c->of[p->dir->idx].starts, str_of(p->topic), p->index,
                                      start);
    }
    return e;
}

/* Everything that the files to be written need; nothing is forgotten when that fails. */
static bool collect(struct checkpoints_job *c, unsigned writes, bool closing)
{
    reset(c);
    return ((writes & HWS) == 0 || collect_hws(c) == ERR_NONE) &&
           ((writes & RECOVERY) == 0 || collect_recovery(c, closing) == ERR_NONE) &&
           ((writes & STARTS) == 0 || collect_starts(c) == ERR_NONE);
}

static void take_left(struct checkpoints_job *c)
{
    struct list *l;
    while ((l = list_pop(&c->rs->left)) != NULL)
        list_append(&c->covers, l);
}

static void start(struct checkpoints_job *c, unsigned writes)
{
    struct replicas *rs = c->rs;
    if (c->writes != 0)
        c->wanted |= writes;
    if (c->writes != 0 || !c->begun || rs->failed || rs->closing || !collect(c, writes, false))
        return; /* the timers come again */
    if (writes & HWS)
        rs->hws_changed = false;
    if (writes & RECOVERY)
        rs->recovery_changed = false;
    if (writes & STARTS)
        rs->starts_changed = false;
    if (writes == ALL)
        take_left(c);
    for (size_t i = 0; i < rs->dirs_n; i++)
        c->of[i].skip = rs->dirs[i].failed;
    submit(c, writes);
}

void checkpoints_request(struct replicas *rs)
{
    start(rs->checkpoints, ALL);
}

void checkpoints_request_starts(struct replicas *rs)
{
    start(rs->checkpoints, STARTS);
}

bool checkpoints_saving_starts(const struct replicas *rs)
{
    return ((rs->checkpoints->writes | rs->checkpoints->wanted) & STARTS) != 0;
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
    if (!list_empty(&c->rs->left))
        start(c, ALL);
    else if (c->rs->hws_changed || c->rs->starts_changed)
        start(c, c->rs->starts_changed ? HWS | STARTS : HWS);
}

static void recovery_due(struct timer *t)
{
    struct checkpoints_job *c = CONTAINER_OF(t, struct checkpoints_job, recovery_timer);
    arm(c, t, t->at_us, recovery_key);
    if (c->rs->recovery_changed)
        start(c, ALL);
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
    c->of = calloc(rs->dirs_n, sizeof *c->of);
    if (c->of == NULL) {
        free(c);
        return ERR_NOMEM;
    }
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
    reset(c);
    free(c->of);
    free(c);
    rs->checkpoints = NULL;
}

bool checkpoints_busy(const struct replicas *rs)
{
    return rs->checkpoints->writes != 0;
}

void checkpoints_collect(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    timer_cancel(rs->timers, &c->hw_timer);
    timer_cancel(rs->timers, &c->recovery_timer);
    CHECK(c->writes == 0);
    const bool all = collect(c, ALL, true);
    for (size_t i = 0; i < rs->dirs_n && !all; i++)
        rs->dirs[i].close_clean = false;
}

void checkpoints_final(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    bool any = false;
    for (size_t i = 0; i < rs->dirs_n; i++) {
        c->of[i].skip = !rs->dirs[i].close_clean;
        any |= !c->of[i].skip;
    }
    if (any)
        submit(c, ALL);
}
