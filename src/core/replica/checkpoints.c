/* The checkpoint files of the log directory: high watermarks often, recovery points and log starts
 * seldom, all at once when a directory has left, log starts when records were deleted (whoever
 * asked for that waits for the file); each file whole, by a job, and only after a change. */
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"

struct checkpoints_job {
    struct job job;
    struct replicas *rs;
    struct timer hw_timer, recovery_timer;
    struct offset_checkpoint hws, recovery, starts; /* to write */
    unsigned writes;                                /* of the job in flight; 0: none is */
    unsigned wanted;                                /* as soon as that is through */
    bool begun;
    struct list covers; /* struct leaving: not in these files any more */
    enum err err;
};

enum { HWS = 1, RECOVERY = 2, STARTS = 4, ALL = HWS | RECOVERY | STARTS };

static void start(struct checkpoints_job *c, unsigned writes);

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
    if (c->writes & HWS)
        c->err = offset_checkpoint_write(d, dir, "replication-offset-checkpoint", &c->hws);
    if ((c->writes & RECOVERY) && c->err == ERR_NONE)
        c->err = offset_checkpoint_write(d, dir, "recovery-point-offset-checkpoint", &c->recovery);
    if ((c->writes & STARTS) && c->err == ERR_NONE)
        c->err = offset_checkpoint_write(d, dir, "log-start-offset-checkpoint", &c->starts);
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

/* Who waits for a log start looks again: it is in the file now, or is not. */
static void starts_written(struct replicas *rs, bool ok)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &rs->raised)
    {
        struct partition *p = LIST_ENTRY(l, struct partition, raised);
        if (ok && p->saving_start > p->saved_start)
            p->saved_start = p->saving_start;
        delete_records_saved(p);
    }
}

static void failed(struct checkpoints_job *c)
{
    struct replicas *rs = c->rs;
    rs->close_clean = false;
    c->wanted = 0; /* the timers come again */
    give_back(c);
    if (c->err == ERR_NOSPC || c->err == ERR_NOMEM || c->err == ERR_NFILE)
        env_log(rs->env, LOG_WARN, "checkpoint_failed error=%s", err_name(c->err));
    else
        replicas_log_failed(rs, c->err, "a checkpoint cannot be written");
}

static void checkpoints_done(struct job *j)
{
    struct checkpoints_job *c = CONTAINER_OF(j, struct checkpoints_job, job);
    struct replicas *rs = c->rs;
    if (c->err == ERR_NONE)
        leaving_end(rs, &c->covers);
    else
        failed(c);
    if (c->err != ERR_NONE || (c->writes & STARTS))
        starts_written(rs, c->err == ERR_NONE);
    c->writes = 0;
    reset(&c->hws);
    reset(&c->recovery);
    reset(&c->starts);
    const unsigned again = c->wanted;
    c->wanted = 0;
    if (again != 0)
        start(c, again);
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
    while (e == ERR_NONE && (it = map_next(&c->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log == NULL)
            continue;
        /* a clean close syncs all there is */
        const int64_t point = closing ? log_end_offset(p->log) : log_recovery_point(p->log);
        e = offset_checkpoint_add(&c->recovery, str_of(p->topic), p->index, point);
    }
    return e;
}

/* Only what the files alone do not say (Kafka). */
static enum err collect_starts(struct checkpoints_job *c)
{
    struct list *l, *tmp;
    enum err e = ERR_NONE;
    reset(&c->starts);
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
            e = offset_checkpoint_add(&c->starts, str_of(p->topic), p->index, start);
    }
    return e;
}

/* Everything that the files to be written need; nothing is forgotten when that fails. */
static bool collect(struct checkpoints_job *c, unsigned writes, bool closing)
{
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
    return rs->checkpoints->writes != 0;
}

void checkpoints_collect(struct replicas *rs)
{
    struct checkpoints_job *c = rs->checkpoints;
    timer_cancel(rs->timers, &c->hw_timer);
    timer_cancel(rs->timers, &c->recovery_timer);
    CHECK(c->writes == 0);
    if (!collect(c, ALL, true))
        rs->close_clean = false;
}

void checkpoints_final(struct replicas *rs)
{
    submit(rs->checkpoints, ALL);
}
