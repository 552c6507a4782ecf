/* Segments that lie wholly below the log start go: out of the log at once, off the disk by a job.
 * One after the other from the oldest, each durably: were a later one gone and an earlier one back
 * after a crash, recovery would take the hole for lost writes. */
#include <stdlib.h>

#include "log/log_impl.h"

struct drop {
    struct job job;
    struct log *log;
    const char *dir; /* the log's; never changes */
    enum err err;
    size_t n;
    int64_t bases[];
};

static enum err remove_segment(struct disk *d, const char *dir, int64_t base_offset)
{
    const struct segment_dir at = {.fs = d->fs, .dir = dir};
    enum err err = segment_unlink(at, base_offset);
    if (err == ERR_NONE)
        err = segment_unlink_file(at, base_offset, SUFFIX_SNAPSHOT);
    return err == ERR_NONE ? d->sync_dir(d, dir) : err;
}

static void run(struct job *j, struct disk *d)
{
    struct drop *r = CONTAINER_OF(j, struct drop, job);
    for (size_t i = 0; i < r->n && r->err == ERR_NONE; i++)
        r->err = remove_segment(d, r->dir, r->bases[i]);
}

/* A reset meanwhile may have begun at the base of a segment that the job removed. */
static void make_again(struct log *l)
{
    struct segment *seg = log_active(l);
    if (seg->head.size_bytes > 0)
        return;
    segment_release(seg);
    seg->created = false;
    enum err err = segment_open(seg, log_files(l));
    l->names_dirty = true;
    if (err != ERR_NONE)
        log_fail(l, err, "segment after a reset");
}

static void done(struct job *j)
{
    struct drop *r = CONTAINER_OF(j, struct drop, job);
    struct log *l = r->log;
    l->dropping = false;
    if (r->err == ERR_NONE && l->undropped == r->bases[0])
        l->undropped = -1;
    if (r->err != ERR_NONE && !log_err_passes(r->err))
        log_fail(l, r->err, "removal of a segment");
    free(r);
    if (log_job_done(l) || l->offline)
        return;
    if (l->cut_unsynced) {
        make_again(l);
        log_sync_start(l);
    }
    log_progress(l);
}

/* How many of the oldest segments can go: no sync job may still want their files. */
static size_t droppable_n(const struct log *l)
{
    size_t n = 0;
    while (n + 1 < l->s.segments_n && !l->s.segments[n]->unsynced &&
           l->s.segments[n + 1]->head.base_offset <= l->s.start_offset)
        n++;
    return n;
}

static void forget_snapshot(struct log_state *s, int64_t offset)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->snapshots_n; i++) {
        if (s->snapshots[i] != offset)
            s->snapshots[kept++] = s->snapshots[i];
    }
    s->snapshots_n = kept;
}

enum err log_drop_old_segments(struct log *l)
{
    struct log_state *s = &l->s;
    size_t n = droppable_n(l);
    if (l->offline)
        return ERR_OFFLINE;
    if (n == 0 || l->dropping)
        return ERR_NONE;
    struct drop *r = malloc(sizeof *r + n * sizeof r->bases[0]);
    if (r == NULL)
        return ERR_NOMEM;
    *r = (struct drop){
        .job = {.lane = JOB_BULK, .run = run, .done = done}, .log = l, .dir = l->dir, .n = n};
    for (size_t i = 0; i < n; i++) {
        struct segment *seg = s->segments[i];
        r->bases[i] = seg->head.base_offset;
        s->size_bytes -= seg->head.size_bytes;
        forget_snapshot(s, seg->head.base_offset);
        segment_free(seg);
    }
    if (l->undropped < 0)
        l->undropped = r->bases[0];
    s->segments_n -= n;
    memmove(s->segments, s->segments + n, s->segments_n * sizeof *s->segments);
    l->dropping = true;
    log_submit(l, &r->job);
    return ERR_NONE;
}
