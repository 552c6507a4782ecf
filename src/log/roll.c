/* A new segment. What the old one still needs on disk (its indexes, the producer snapshot at the
 * new base) is written here or handed to the sync job; the recovery point passes only when that is
 * through. */
#include <stdlib.h>

#include "log/array.h"
#include "log/log_impl.h"

void log_new_head(struct log *l, int64_t base_offset, struct segment_head *out)
{
    const struct log_config *c = &l->config;
    int64_t range = c->segment_jitter_ms < c->segment_ms ? c->segment_jitter_ms : c->segment_ms;
    int64_t jitter = range <= 0 ? 0 : (int64_t)(env_random_u64(l->env) % (uint64_t)range);
    segment_head_init(out, base_offset, l->now.wall_ms, jitter);
}

/* An empty file that stayed behind would end the log at its base at the next start. */
static enum err create(struct log *l, struct segment *fresh)
{
    enum err err = segment_open(fresh, log_files(l));
    l->names_dirty = true;
    if (err == ERR_NONE && l->config.preallocate && l->config.segment_bytes > 0)
        err = fresh->log->fs->ops->truncate(fresh->log, (uint64_t)l->config.segment_bytes);
    if (err == ERR_NONE)
        return ERR_NONE;
    enum err undo = segment_unlink(log_files(l), fresh->head.base_offset);
    return undo == ERR_NONE ? err : undo == ERR_NOSPC ? ERR_IO : undo;
}

/* The empty active segment gives way to one of another base. */
static enum err replace_empty(struct log *l, struct segment *fresh)
{
    struct segment *old = log_active(l);
    enum err err = create(l, fresh);
    if (err == ERR_NONE && old->created && old->head.base_offset != fresh->head.base_offset)
        err = segment_unlink(log_files(l), old->head.base_offset);
    if (err != ERR_NONE)
        return log_err_passes(err) && fresh->created ? ERR_IO : err;
    segment_free(old);
    l->s.segments[l->s.segments_n - 1] = fresh;
    return ERR_NONE;
}

static enum err leave_full(struct log *l, struct segment *fresh, struct buf *snapshot)
{
    struct segment *old = log_active(l);
    enum err err = ARRAY_ROOM(l->s.segments);
    if (err == ERR_NONE)
        err = ARRAY_ROOM(l->pending);
    if (err == ERR_NONE)
        err = segment_force_time(old);
    if (err == ERR_NONE)
        err = segment_write_indexes(old, log_files(l), 0);
    if (err == ERR_NONE)
        err = create(l, fresh);
    if (err != ERR_NONE)
        return err;
    l->s.segments[l->s.segments_n++] = fresh;
    old->unsynced = true;
    l->pending[l->pending_n++] = (struct pending_snapshot){fresh->head.base_offset, *snapshot};
    buf_init(snapshot);
    return ERR_NONE;
}

enum err log_begin_segment(struct log *l, const struct segment_head *head, struct buf *snapshot)
{
    struct segment *fresh;
    enum err err = segment_new(head->base_offset, &fresh);
    if (err != ERR_NONE)
        return err;
    fresh->head = *head;
    err = log_active(l)->head.size_bytes == 0 ? replace_empty(l, fresh)
                                              : leave_full(l, fresh, snapshot);
    if (err != ERR_NONE) {
        segment_free(fresh);
        return err;
    }
    log_recents_clear(l);
    return ERR_NONE;
}

enum err log_roll(struct log *l, struct now now)
{
    enum err err = log_write(l, now);
    if (err != ERR_NONE || log_active(l)->head.size_bytes == 0)
        return l->offline ? ERR_OFFLINE : err;
    struct segment_head head;
    struct buf snapshot;
    buf_init(&snapshot);
    log_new_head(l, l->s.end_offset, &head);
    err = producer_snapshot_encode(&l->s.producers, &snapshot);
    if (err == ERR_NONE)
        err = log_begin_segment(l, &head, &snapshot);
    buf_close(&snapshot);
    if (err != ERR_NONE && !log_err_passes(err)) {
        log_fail(l, err, "roll");
        return ERR_IO;
    }
    if (err == ERR_NONE)
        log_after_write(l);
    return err;
}
