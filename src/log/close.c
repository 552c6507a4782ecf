/* Closing: the log is gone for its owner at once, its memory when the last job is through. A clean
 * close leaves what a clean start takes at its word: indexes written and cut to size, a snapshot of
 * the producers, the epoch file, everything synced. */
#include <stdlib.h>

#include "log/checkpoint.h"
#include "log/log_impl.h"

/* ------------------------------------------------------------------ on the worker: the log is its
 */

/* The owner let go of its file objects: the worker opens its own. */
static enum err finish_segment(struct disk *d, const char *dir, struct segment *s)
{
    struct segment_dir at = {.fs = d->fs, .dir = dir};
    enum err err = segment_open(s, at);
    if (err == ERR_NONE)
        err = segment_force_time(s);
    if (err == ERR_NONE)
        err = segment_write_indexes(s, at, 0);
    if (err == ERR_NONE)
        err = log_sync_whole(d, dir, s->head.base_offset, s->head.size_bytes,
                             entry_file_n(&s->index[INDEX_TXN]) > 0);
    return err;
}

static enum err finish(struct disk *d, struct log *l)
{
    struct log_state *s = &l->s;
    enum err err = ERR_NONE;
    for (size_t i = 0; i < s->segments_n && err == ERR_NONE; i++) {
        if (s->segments[i]->unsynced || i + 1 == s->segments_n)
            err = finish_segment(d, l->dir, s->segments[i]);
    }
    for (size_t i = 0; i < l->pending_n && err == ERR_NONE; i++)
        err = log_write_snapshot(d, l->dir, l->pending[i].offset, &l->pending[i].bytes);
    if (err == ERR_NONE && l->closing_snapshot.n > 0)
        err = log_write_snapshot(d, l->dir, s->end_offset, &l->closing_snapshot);
    if (err == ERR_NONE && s->epochs_dirty)
        err = epoch_checkpoint_write(d, l->dir, &s->epochs);
    return err == ERR_NONE ? d->sync_dir(d, l->dir) : err;
}

/* The rename is durable. */
static enum err sync_parent(struct disk *d, const char *dir)
{
    char parent[LOG_PATH_MAX];
    enum err err = path_parent(parent, dir);
    return err == ERR_NONE ? d->sync_dir(d, parent) : err;
}

static void run(struct job *j, struct disk *d)
{
    struct log_close *lc = CONTAINER_OF(j, struct log_close, job);
    struct log *l = lc->impl;
    if (lc->err == ERR_NONE && l->dir_state == DIR_READY) {
        if (lc->delete_)
            lc->err = sync_parent(d, l->closing_dir);
        else if (lc->clean)
            lc->err = finish(d, l);
    }
    /* File objects that this thread opened are this thread's to close. */
    for (size_t i = 0; i < l->s.segments_n; i++)
        segment_free(l->s.segments[i]);
    l->s.segments_n = 0;
}

/* ------------------------------------------------------------------ on the owner's thread */

static void done(struct job *j)
{
    struct log_close *lc = CONTAINER_OF(j, struct log_close, job);
    struct log *l = lc->impl;
    lc->renamed = l->closing_dir;
    l->closing_dir = NULL;
    log_free(l);
    lc->impl = NULL;
    lc->done(lc);
}

static enum err rename_deleted(struct log *l)
{
    char path[LOG_PATH_MAX];
    struct uuid unique;
    l->env->random(l->env, unique.b, sizeof unique.b);
    enum err err = path_aside(path, l->dir, unique, SUFFIX_DIR_DELETE);
    if (err != ERR_NONE)
        return err;
    l->closing_dir = strdup(path);
    if (l->closing_dir == NULL)
        return ERR_NOMEM;
    err = l->env->fs->ops->rename(l->env->fs, l->dir, path);
    if (err != ERR_NONE) {
        free(l->closing_dir);
        l->closing_dir = NULL;
    }
    return err;
}

static enum err prepare_clean(struct log *l)
{
    bool covered = l->s.snapshots_n > 0 && l->s.snapshots[l->s.snapshots_n - 1] == l->s.end_offset;
    if (l->offline)
        return ERR_OFFLINE;
    if (covered || l->s.end_offset == l->s.start_offset)
        return ERR_NONE;
    return producer_snapshot_encode(&l->s.producers, &l->closing_snapshot);
}

/* No job of the log is in flight any more: none can write into a directory that has its name. */
void log_close_ready(struct log *l)
{
    struct log_close *lc = l->closing;
    for (size_t i = 0; i < l->s.segments_n; i++)
        segment_release(l->s.segments[i]);
    if (lc->delete_ && l->dir_state == DIR_READY)
        lc->err = rename_deleted(l);
    else if (lc->clean && lc->err == ERR_NONE)
        lc->err = prepare_clean(l);
    lc->job = (struct job){.lane = JOB_BULK, .run = run, .done = done};
    l->env->submit(l->env, &lc->job);
}

void log_close_start(struct log *l, struct log_close *lc)
{
    lc->err = ERR_NONE;
    lc->impl = l;
    if (lc->clean && !lc->delete_ && !l->offline)
        lc->err = log_write(l, l->now);
    if (lc->err == ERR_AGAIN)
        lc->err = ERR_NONE; /* without a directory nothing was promised */
    stage_cut(l, 0);
    timer_cancel(l->timers, &l->timer);
    timer_cancel(l->timers, &l->expiry);
    log_cancel_read_ahead(l);
    l->closing = lc;
    if (l->jobs_n == 0)
        log_close_ready(l);
}

void log_drop(struct log *l)
{
    timer_cancel(l->timers, &l->timer);
    timer_cancel(l->timers, &l->expiry);
    log_free(l);
}
