/* Cutting a log: at its end (divergence), whole, at its start. Files are cut from the last segment
 * down, so that a crash in between leaves a prefix.
 *
 * Nothing is written before a cut is durable (cut_unsynced): after a crash the old bytes may be
 * there again, and new ones in their midst would make a history that never was. */
#include <stdlib.h>

#include "log/log_impl.h"
#include "log/scan.h"

/* Promises end at x, whatever becomes of the files. Results of jobs in flight are stale now. */
static void cut_begins(struct log *l, int64_t x)
{
    stage_cut(l, 0);
    if (l->s.flushed_end > x)
        l->s.flushed_end = x;
    l->cuts++;
    l->cut_unsynced = true;
    log_recents_clear(l);
}

/* Behind the first change there is no way back, whatever failed. */
static enum err failed(struct log *l, enum err err)
{
    if (err == ERR_NONE)
        return err;
    log_fail(l, err, "truncation");
    return ERR_IO;
}

/* Removes the last segment's files. */
static enum err drop_last(struct log *l)
{
    struct segment *seg = log_active(l);
    if (seg->created) {
        enum err err = segment_unlink(log_files(l), seg->head.base_offset);
        if (err != ERR_NONE)
            return err;
        l->names_dirty = true;
    }
    if (seg->log != NULL)
        seg->log->generation++;
    l->s.size_bytes -= seg->head.size_bytes;
    segment_free(seg);
    l->s.segments_n--;
    return ERR_NONE;
}

/* The times of what is left: of the first batch, and the largest, which is in the last .timeindex
 * entry or behind it. */
static enum err find_times(struct log *l, struct segment *seg)
{
    struct segment_head *h = &seg->head;
    uint8_t buf[SCAN_HEAD_BYTES];
    struct scan sc;
    struct batch b;
    bool more;
    uint64_t position = 0;
    scan_init(&sc, seg->log, 0, h->size_bytes, buf, sizeof buf);
    enum err err = scan_next(&sc, &b, &position, &more);
    if (err == ERR_NONE && more)
        h->first_timestamp = b.max_timestamp;
    if (err == ERR_NONE && h->time_n > 0) {
        struct time_entry last;
        err = segment_time_get(seg, log_files(l), h->time_n - 1, &last);
        if (err == ERR_NONE)
            err = segment_floor(seg, log_files(l), last.offset, &position);
        h->max_timestamp = h->time_last = last.timestamp;
        h->max_timestamp_offset = last.offset;
    }
    if (err == ERR_NONE)
        scan_init(&sc, seg->log, position < h->size_bytes ? position : 0, h->size_bytes, buf,
                  sizeof buf);
    for (more = true; err == ERR_NONE && more;) {
        err = scan_next(&sc, &b, &position, &more);
        if (err == ERR_NONE && more && b.max_timestamp > h->max_timestamp) {
            h->max_timestamp = b.max_timestamp;
            h->max_timestamp_offset = batch_last_offset(&b);
        }
    }
    return err;
}

static enum err cut_files(struct log *l, struct segment *seg, const struct recent *first)
{
    enum err err = segment_open(seg, log_files(l));
    if (err == ERR_NONE)
        err = seg->log->fs->ops->truncate(seg->log, first->position);
    return err == ERR_NONE ? segment_truncate_indexes(seg, log_files(l), first->base_offset) : err;
}

/* Cuts the active segment before the batch that ends at x or behind it; *end is where it ends. */
static enum err cut_active(struct log *l, int64_t x, int64_t *end)
{
    struct segment *seg = log_active(l);
    struct segment_head *h = &seg->head;
    struct recent first;
    bool found;
    enum err err = log_locate_now(l, seg, x, &first, &found);
    if (err != ERR_NONE)
        return err;
    if (found) {
        err = cut_files(l, seg, &first);
        if (err != ERR_NONE)
            return err;
        l->s.size_bytes -= h->size_bytes - first.position;
        h->size_bytes = first.position;
        if (first.base_offset < *end)
            *end = first.base_offset;
    }
    uint64_t size_bytes = h->size_bytes;
    log_new_head(l, h->base_offset, h);
    h->size_bytes = size_bytes;
    h->index_n = entry_file_n(&seg->index[INDEX_OFFSET]);
    h->time_n = entry_file_n(&seg->index[INDEX_TIME]);
    return h->size_bytes > 0 ? find_times(l, seg) : ERR_NONE;
}

/* What hangs on the files: ends, epochs, snapshots, producers. */
static enum err follow_cut(struct log *l, int64_t end)
{
    struct log_state *s = &l->s;
    s->end_offset = end;
    if (s->start_offset > end)
        s->start_offset = end;
    if (s->flushed_end > end)
        s->flushed_end = end;
    if (l->flush_wanted > end)
        l->flush_wanted = end;
    if (epoch_cache_truncate_end(&s->epochs, end))
        s->epochs_dirty = true;
    log_forget_pending(l, end);
    l->names_dirty = true;
    enum err err = log_state_drop_snapshots(s, log_files(l), end);
    if (err == ERR_NONE && producer_state_touched(&s->producers, end))
        err = log_state_load_producers(s, log_files(l), end);
    return err;
}

static enum err cut_to(struct log *l, int64_t x)
{
    int64_t end = x;
    enum err err = ERR_NONE;
    while (err == ERR_NONE && l->s.segments_n > 1 && log_active(l)->head.base_offset > x)
        err = drop_last(l);
    if (err == ERR_NONE)
        err = cut_active(l, x, &end);
    return err == ERR_NONE ? follow_cut(l, end) : err;
}

enum err log_truncate_to(struct log *l, int64_t x, struct now now)
{
    l->now = now;
    if (l->offline)
        return ERR_OFFLINE;
    if (x < 0)
        return ERR_RANGE;
    if (x < l->s.segments[0]->head.base_offset)
        return log_reset(l, x, now);
    stage_cut(l, 0);
    if (x >= l->s.end_offset) {
        if (epoch_cache_truncate_end(&l->s.epochs, l->s.end_offset))
            l->s.epochs_dirty = true;
        return ERR_NONE;
    }
    cut_begins(l, x);
    return failed(l, cut_to(l, x));
}

/* Nothing of the old history may be read again: epochs, snapshots and producers go with it. */
static enum err empty_at(struct log *l, int64_t x, struct segment *fresh)
{
    struct log_state *s = &l->s;
    enum err err = ERR_NONE;
    while (err == ERR_NONE && s->segments_n > 0)
        err = drop_last(l);
    if (err != ERR_NONE) {
        segment_free(fresh);
        return err;
    }
    s->segments[s->segments_n++] = fresh;
    s->start_offset = s->end_offset = s->flushed_end = x;
    l->flush_wanted = x;
    s->epochs.n = 0;
    s->epochs_dirty = true;
    producer_state_clear(&s->producers);
    log_forget_pending(l, -1);
    err = log_state_drop_snapshots(s, log_files(l), -1);
    if (err == ERR_NONE && l->dir_state == DIR_READY) {
        /* An empty log that starts at x is its file's name. */
        err = segment_open(fresh, log_files(l));
        l->names_dirty = true;
    }
    return err;
}

enum err log_reset(struct log *l, int64_t x, struct now now)
{
    struct segment *fresh;
    l->now = now;
    if (l->offline)
        return ERR_OFFLINE;
    if (x < 0)
        return ERR_RANGE;
    enum err err = segment_new(x, &fresh);
    if (err != ERR_NONE)
        return err;
    log_new_head(l, x, &fresh->head);
    cut_begins(l, l->s.start_offset);
    return failed(l, empty_at(l, x, fresh));
}

enum err log_raise_start(struct log *l, int64_t x)
{
    struct log_state *s = &l->s;
    if (l->offline)
        return ERR_OFFLINE;
    if (x > s->end_offset)
        return ERR_RANGE;
    if (x <= s->start_offset)
        return ERR_NONE;
    s->start_offset = x;
    if (s->flushed_end < x)
        s->flushed_end = x;
    if (epoch_cache_truncate_start(&s->epochs, x))
        s->epochs_dirty = true;
    return ERR_NONE;
}
