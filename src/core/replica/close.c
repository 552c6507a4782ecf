/* A clean close: no checkpoint, load or directory job is under way, then all logs are closed, then
 * the checkpoint files say what they ended with. And the end without one. */
#include "base/check.h"
#include "core/replica/inside.h"
#include "wire/error.h"

static void log_closed(struct log_close *lc)
{
    struct leaving *lv = CONTAINER_OF(lc, struct leaving, close);
    struct replicas *rs = lv->rs;
    if (lc->err != ERR_NONE) {
        env_log(rs->env, LOG_WARN, "log_close_failed name=%s error=%s", lv->name,
                err_name(lc->err));
        lv->dir->close_clean = false;
    }
    replicas_job_ended(rs);
}

static void close_partition(struct partition *p)
{
    struct replicas *rs = p->rs;
    p->leaving->dir = p->dir;
    p->leaving->close = (struct log_close){.clean = p->dir->close_clean, .done = log_closed};
    rs->jobs_n++;
    log_close_start(p->log, &p->leaving->close);
    p->log = NULL;
}

static void close_logs(struct replicas *rs)
{
    struct map_entry *it = NULL;
    rs->close_state = CLOSE_LOGS;
    rs->jobs_n++; /* held until all closes are under way */
    checkpoints_collect(rs);
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        struct partition *p = map_value(it);
        produce_fail(p, K_NOT_LEADER_OR_FOLLOWER);
        delete_records_fail(p, K_NOT_LEADER_OR_FOLLOWER);
        partition_changed(p);
        if (p->log != NULL)
            close_partition(p);
    }
    replicas_job_ended(rs);
}

void replicas_close_step(struct replicas *rs)
{
    switch (rs->close_state) {
    case CLOSE_NOT:
    case CLOSE_DONE:
        return;
    case CLOSE_WAITING:
        if (rs->jobs_n == 0 && rs->loading_n == 0 && !checkpoints_busy(rs))
            close_logs(rs);
        return;
    case CLOSE_LOGS:
        if (rs->jobs_n > 0)
            return;
        rs->close_state = CLOSE_CHECKPOINTS;
        checkpoints_final(rs);
        replicas_close_step(rs);
        return;
    case CLOSE_CHECKPOINTS:
        if (checkpoints_busy(rs))
            return;
        rs->close_state = CLOSE_DONE;
        rs->closed_untold = true;
        return;
    }
}

void replicas_job_ended(struct replicas *rs)
{
    CHECK(rs->jobs_n > 0);
    rs->jobs_n--;
    replicas_close_step(rs);
}

void replicas_close(struct replicas *rs, void (*done)(void *ctx, bool clean), void *ctx,
                    struct now now)
{
    CHECK(rs->close_state == CLOSE_NOT);
    rs->now = now;
    rs->closing = true;
    fetchers_stop(rs);
    removals_drop(rs);
    for (size_t i = 0; i < rs->dirs_n; i++)
        rs->dirs[i].close_clean = !rs->failed && !rs->dirs[i].failed && rs->load_begun;
    rs->closed = done;
    rs->closed_ctx = ctx;
    rs->close_state = CLOSE_WAITING;
    replicas_close_step(rs);
}

bool replicas_closed_clean(const struct replicas *rs, size_t dir)
{
    return !rs->failed && !rs->dirs[dir].failed && rs->dirs[dir].close_clean;
}

size_t replicas_closing_n(const struct replicas *rs)
{
    return rs->jobs_n;
}

/* ------------------------------------------------------------------ abandoning */

static void drop_logs(struct replicas *rs)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        struct partition *p = map_value(it);
        if (p->log != NULL)
            log_drop(p->log);
        p->log = NULL;
    }
}

void replicas_abandon(struct replicas *rs, struct now now)
{
    struct map_entry *it = NULL;
    rs->now = now;
    rs->failed = true;
    fetchers_stop(rs);
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        produce_fail(map_value(it), K_KAFKA_STORAGE_ERROR);
        delete_records_fail(map_value(it), K_KAFKA_STORAGE_ERROR);
        partition_changed(map_value(it));
    }
    (void)produce_complete_ready(rs);
    (void)delete_records_complete_ready(rs);
    (void)fetch_settle(rs);
    (void)list_offsets_settle(rs);
    (void)describe_log_dirs_settle(rs);
    drop_logs(rs);
}
