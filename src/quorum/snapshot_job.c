/* Snapshots of the committed state, made on demand by a job, on every node. */
#include <stdio.h>

#include "quorum/inside.h"

static void run(struct job *j, struct disk *d)
{
    struct raft_snapshot_job *s = CONTAINER_OF(j, struct raft_snapshot_job, job);
    s->err = snapshot_write(d, s->dir, s->id, s->content.p, s->content.n);
}

static void written(struct raft *r)
{
    const struct raft_snapshot_job *s = &r->snapshot_job;
    env_log(r->env, LOG_INFO, "metadata_snapshot offset=%lld epoch=%d", (long long)s->id.offset,
            s->id.epoch);
    r->newest = s->id;
    voter_history_trim(&r->history, s->id.offset);
    const struct snapshot_kept kept = {s->id, s->bytes, r->now.wall_ms};
    enum err e = raft_keep_snapshot(&r->kept, kept);
    CHECK(e == ERR_NONE); /* there was room when it was begun */
    raft_clean_snapshots(r);
}

enum err raft_trim_log(struct raft *r, int64_t offset)
{
    enum err e = log_raise_start(r->log, offset);
    if (e == ERR_NONE)
        e = log_drop_old_segments(r->log);
    return e == ERR_NOMEM ? ERR_NONE : e; /* they go with the next ones */
}

static void done(struct job *j)
{
    struct raft_snapshot_job *s = CONTAINER_OF(j, struct raft_snapshot_job, job);
    struct raft *r = CONTAINER_OF(s, struct raft, snapshot_job);
    s->running = false;
    buf_close(&s->content);
    if (r->log == NULL) {
        raft_job_ended(r);
    } else if (s->err == ERR_NONE) {
        written(r);
    } else {
        env_log(r->env, LOG_WARN, "metadata_snapshot_failed offset=%lld error=%s",
                (long long)s->id.offset, err_name(s->err));
        if (!raft_error_passes(s->err)) /* else the log is longer until the next one */
            raft_fail(r, s->err, "a snapshot cannot be written");
    }
}

enum err raft_snapshot(struct raft *r, int64_t offset, const struct bytes *records, size_t n,
                       struct now now)
{
    struct raft_snapshot_job *s = &r->snapshot_job;
    r->now = now;
    if (s->running || r->failed || r->install.running || r->download.file != NULL)
        return ERR_BUSY;
    if (offset <= r->newest.offset)
        return ERR_NONE;
    CHECK(offset > 0 && offset <= r->high_watermark);
    struct voter_set voters = {.n = 0};
    int16_t kraft_version = 0;
    (void)voter_history_at(&r->history, offset, &kraft_version, &voters);
    s->id = (struct snapshot_id){offset, epoch_cache_floor(log_epochs(r->log), offset - 1)};
    const struct snapshot_content content = {
        .id = s->id,
        .timestamp = now.wall_ms,
        .kraft_version = kraft_version,
        .voters = &voters,
        .records = records,
        .records_n = n,
    };
    enum err e = raft_keep_room(&r->kept);
    if (e == ERR_NONE)
        e = snapshot_build(&content, &s->content);
    if (e != ERR_NONE) {
        buf_close(&s->content);
        return e;
    }
    s->bytes = (int64_t)s->content.n;
    s->running = true;
    s->job = (struct job){.lane = JOB_BULK, .run = run, .done = done};
    r->env->submit(r->env, &s->job);
    return ERR_NONE;
}
