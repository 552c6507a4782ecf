/* Group commit: one sync job in flight per log; what is written meanwhile shares the next. A job
 * covers, in this order, the files of rolled segments, the active .log, producer snapshots, the
 * epoch file, the directory; only when all is durable the recovery point passes.
 *
 * A failed sync is final. No room for a snapshot or the epoch file is not: the job is tried again.
 */
#include <stdlib.h>

#include "log/array.h"
#include "log/checkpoint.h"
#include "log/log_impl.h"

#define RETRY_MS 1000

struct sync_segment {
    int64_t base_offset;
    uint64_t size_bytes;
    bool rolled; /* all its files; else the .log alone */
    bool txn;
};

struct sync {
    struct job job;
    struct log *log;
    const char *dir; /* the log's; never changes */
    struct sync_segment *segments;
    size_t segments_n;
    struct pending_snapshot *snapshots;
    size_t snapshots_n, snapshots_cap;
    struct buf epochs;
    bool write_epochs, sync_dir;
    int64_t upto;
    uint32_t cuts;
    /* results */
    size_t written_n; /* snapshots */
    enum err err;
    bool passes;
    const char *what;
};

/* ------------------------------------------------------------------ on the worker */

enum err log_sync_whole(struct disk *d, const char *dir, int64_t base, uint64_t size, bool txn)
{
    /* A preallocated tail goes; the owner's file object, and slices of it, do not notice. */
    enum err err = log_trim(d->fs, dir, base, size);
    if (err == ERR_NONE)
        err = segment_sync_file(d, dir, base, SUFFIX_LOG);
    if (err == ERR_NONE)
        err = segment_sync_file(d, dir, base, SUFFIX_INDEX);
    if (err == ERR_NONE)
        err = segment_sync_file(d, dir, base, SUFFIX_TIME);
    if (err == ERR_NONE && txn)
        err = segment_sync_file(d, dir, base, SUFFIX_TXN);
    return err;
}

static enum err sync_segment(struct disk *d, const char *dir, const struct sync_segment *s)
{
    return s->rolled ? log_sync_whole(d, dir, s->base_offset, s->size_bytes, s->txn)
                     : segment_sync_file(d, dir, s->base_offset, SUFFIX_LOG);
}

enum err log_write_snapshot(struct disk *d, const char *dir, int64_t offset, const struct buf *b)
{
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, dir, offset, SUFFIX_SNAPSHOT);
    return err == ERR_NONE ? file_write_synced(d, path, b->p, b->n) : err;
}

static enum err write_snapshots(struct disk *d, struct sync *s)
{
    enum err err = ERR_NONE;
    for (size_t i = 0; i < s->snapshots_n && err == ERR_NONE; i++) {
        err = log_write_snapshot(d, s->dir, s->snapshots[i].offset, &s->snapshots[i].bytes);
        if (err == ERR_NONE)
            s->written_n++;
    }
    return err;
}

/* It is written before the data is waited for, and shares that wait. */
static enum err begin_epochs(struct disk *d, const struct sync *s)
{
    return epoch_checkpoint_begin(d, s->dir, (struct bytes){s->epochs.p, (int32_t)s->epochs.n});
}

static void run(struct job *j, struct disk *d)
{
    struct sync *s = CONTAINER_OF(j, struct sync, job);
    s->what = "sync";
    const enum err epochs = s->write_epochs ? begin_epochs(d, s) : ERR_NONE;
    for (size_t i = 0; i < s->segments_n && s->err == ERR_NONE; i++)
        s->err = sync_segment(d, s->dir, &s->segments[i]);
    if (s->err != ERR_NONE) {
        s->passes = s->err == ERR_NOMEM || s->err == ERR_NFILE;
        return;
    }
    s->what = "snapshot";
    s->err = write_snapshots(d, s);
    if (s->err == ERR_NONE && s->write_epochs) {
        s->what = "leader-epoch-checkpoint";
        s->err = epochs == ERR_NONE ? epoch_checkpoint_end(d, s->dir) : epochs;
    }
    if (s->err == ERR_NONE && (s->sync_dir || s->write_epochs)) {
        s->what = "sync of directory";
        s->err = d->sync_dir(d, s->dir);
    }
    s->passes = log_err_passes(s->err);
}

/* ------------------------------------------------------------------ on the owner's thread */

static void sync_free(struct sync *s)
{
    for (size_t i = 0; i < s->snapshots_n; i++)
        buf_close(&s->snapshots[i].bytes);
    free(s->snapshots);
    free(s->segments);
    buf_close(&s->epochs);
    free(s);
}

/* Rolled segments that no job has covered, then the active one. */
static enum err take_segments(struct log *l, struct sync *s)
{
    struct log_state *st = &l->s;
    s->segments = calloc(st->segments_n, sizeof *s->segments);
    if (s->segments == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < st->segments_n; i++) {
        struct segment *seg = st->segments[i];
        bool active = i + 1 == st->segments_n;
        if (active ? !seg->created : !seg->unsynced)
            continue;
        s->segments[s->segments_n++] = (struct sync_segment){
            .base_offset = seg->head.base_offset,
            .size_bytes = seg->head.size_bytes,
            .rolled = !active,
            .txn = entry_file_n(&seg->index[INDEX_TXN]) > 0,
        };
    }
    return ERR_NONE;
}

static enum err sync_new(struct log *l, struct sync **out)
{
    struct sync *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    s->log = l;
    s->dir = l->dir;
    s->upto = l->s.end_offset;
    s->cuts = l->cuts;
    s->sync_dir = l->names_dirty;
    s->write_epochs = l->s.epochs_dirty;
    buf_init(&s->epochs);
    enum err err = take_segments(l, s);
    if (err == ERR_NONE && s->write_epochs)
        err = epoch_checkpoint_print(&l->s.epochs, &s->epochs);
    if (err != ERR_NONE)
        sync_free(s);
    *out = s;
    return err;
}

/* No memory or no room: the timer tries again, or the next call if that has no memory either. */
static void retry_later(struct log *l)
{
    if (timer_arm(l->timers, &l->timer, l->now.mono_us + RETRY_MS * 1000LL) != ERR_NONE)
        env_log(l->env, LOG_WARN, "log_sync_waits dir=%s cause=memory", l->dir);
}

static void sync_done(struct job *j);

void log_sync_start(struct log *l)
{
    if (l->cut_unsynced && l->dropping)
        return; /* it may remove a file that a reset made again: see drop.c */
    if (l->sync != NULL || l->offline || l->closing != NULL || l->dir_state != DIR_READY)
        return;
    struct sync *s;
    if (sync_new(l, &s) != ERR_NONE) {
        retry_later(l);
        return;
    }
    s->snapshots = l->pending;
    s->snapshots_n = l->pending_n;
    s->snapshots_cap = l->pending_cap;
    l->pending = NULL;
    l->pending_n = l->pending_cap = 0;
    l->s.epochs_dirty = false;
    l->names_dirty = false;
    s->job = (struct job){.lane = JOB_SYNC, .run = run, .done = sync_done};
    l->sync = s;
    log_submit(l, &s->job);
}

/* What the job did not get through goes back, in front of what came meanwhile. */
static void give_back(struct log *l, struct sync *s)
{
    l->s.epochs_dirty = l->s.epochs_dirty || s->write_epochs;
    l->names_dirty = l->names_dirty || s->sync_dir;
    for (size_t i = 0; i < l->pending_n; i++) {
        if (ARRAY_ROOM(s->snapshots) == ERR_NONE)
            s->snapshots[s->snapshots_n++] = l->pending[i];
        else
            buf_close(&l->pending[i].bytes); /* a snapshot only saves time */
    }
    free(l->pending);
    l->pending = s->snapshots;
    l->pending_n = s->snapshots_n;
    l->pending_cap = s->snapshots_cap;
    s->snapshots = NULL;
    s->snapshots_n = 0;
}

static void remove_snapshot(struct log *l, int64_t offset)
{
    enum err err = segment_unlink_file(log_files(l), offset, SUFFIX_SNAPSHOT);
    if (err != ERR_NONE)
        log_fail(l, err, "unlink of a snapshot");
}

/* The log was cut while the job ran: what it wrote may be of a history that is no more, and it may
 * have made again a file that was removed. */
static void remove_stale(struct log *l, const struct sync *s)
{
    for (size_t i = 0; i < s->written_n; i++)
        remove_snapshot(l, s->snapshots[i].offset);
    for (size_t i = 0; i < s->segments_n; i++) {
        int64_t base = s->segments[i].base_offset;
        if (l->s.segments[log_state_find(&l->s, base)]->head.base_offset == base)
            continue;
        enum err err = segment_unlink(log_files(l), base);
        if (err != ERR_NONE)
            log_fail(l, err, "unlink of a segment");
    }
}

static void count_synced(struct log *l, struct sync *s)
{
    for (size_t i = 0; i < s->segments_n; i++) {
        if (!s->segments[i].rolled)
            continue;
        size_t k = log_state_find(&l->s, s->segments[i].base_offset);
        l->s.segments[k]->unsynced = false;
    }
    for (size_t i = 0; i < s->written_n; i++) {
        /* One that is not known could not be removed by a truncation. */
        if (log_state_add_snapshot(&l->s, s->snapshots[i].offset) != ERR_NONE)
            remove_snapshot(l, s->snapshots[i].offset);
    }
    if (s->upto > l->s.flushed_end)
        l->s.flushed_end = s->upto;
}

static bool wants_sync(const struct log *l)
{
    if (l->cut_unsynced)
        return true;
    if (l->flush_wanted > l->s.flushed_end && l->s.end_offset > l->s.flushed_end)
        return true;
    return l->s.segments_n > 1 && l->s.segments[l->s.segments_n - 2]->unsynced;
}

static void sync_done(struct job *j)
{
    struct sync *s = CONTAINER_OF(j, struct sync, job);
    struct log *l = s->log;
    l->sync = NULL;
    bool current = s->cuts == l->cuts;
    bool rose = false, retry = false;
    /* Files that vanished meanwhile were cut away, or the directory was renamed. */
    bool vanished = s->err == ERR_NOENT && (!current || l->closing != NULL);
    if (l->closing != NULL && l->closing->delete_) {
        /* the directory has another name now, or none */
    } else if (s->err != ERR_NONE && !s->passes && !vanished) {
        log_fail(l, s->err, s->what);
    } else if (!current) {
        l->s.epochs_dirty = true;
        l->names_dirty = true;
        remove_stale(l, s);
    } else if (s->err != ERR_NONE) {
        give_back(l, s);
        retry = true;
    } else {
        int64_t before = l->s.flushed_end;
        count_synced(l, s);
        rose = l->s.flushed_end > before || l->cut_unsynced;
        l->cut_unsynced = false;
    }
    sync_free(s);
    if (log_job_done(l))
        return;
    if (retry)
        retry_later(l);
    else if (wants_sync(l))
        log_sync_start(l);
    if (rose)
        log_progress(l);
}

void log_forget_pending(struct log *l, int64_t above)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->pending_n; i++) {
        if (l->pending[i].offset > above)
            buf_close(&l->pending[i].bytes);
        else
            l->pending[kept++] = l->pending[i];
    }
    l->pending_n = kept;
}

void log_flush(struct log *l, int64_t upto)
{
    if (upto > l->flush_wanted)
        l->flush_wanted = upto;
    if (!l->offline && wants_sync(l))
        log_sync_start(l);
}

void log_after_write(struct log *l)
{
    int64_t unflushed = l->s.end_offset - l->s.flushed_end;
    const struct log_config *c = &l->config;
    if (unflushed > 0 && unflushed >= c->flush_messages && l->flush_wanted < l->s.end_offset)
        l->flush_wanted = l->s.end_offset;
    if (unflushed > 0 && c->flush_ms < INT64_MAX && !timer_armed(&l->timer)) {
        int64_t at;
        if (__builtin_mul_overflow(c->flush_ms, 1000, &at) ||
            __builtin_add_overflow(at, l->now.mono_us, &at))
            at = INT64_MAX;
        if (timer_arm(l->timers, &l->timer, at) != ERR_NONE)
            l->flush_wanted = l->s.end_offset; /* now, then */
    }
    if (wants_sync(l))
        log_sync_start(l);
    log_expiry_arm(l);
}

void log_timer_fire(struct timer *t)
{
    struct log *l = CONTAINER_OF(t, struct log, timer);
    if (l->config.flush_ms < INT64_MAX && l->flush_wanted < l->s.end_offset)
        l->flush_wanted = l->s.end_offset;
    if (wants_sync(l))
        log_sync_start(l);
}
