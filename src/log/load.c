/* Loading on a worker (Kafka: LogLoader). After a clean stop every file is taken at its word but
 * for cheap checks, and the end of the last segment is walked; else every segment from the one that
 * holds the recovery point on is recovered. Nothing read here is trusted with memory or a CHECK. */
#include "log/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "log/checkpoint.h"

enum err load_fail(struct loader *ld, enum err e, const char *fmt, ...)
{
    struct log_load *ll = ld->ll;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(ll->message, sizeof ll->message, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof ll->message)
        snprintf(ll->message + n, sizeof ll->message - (size_t)n, " (%s)", err_name(e));
    return e;
}

/* ------------------------------------------------------------------ what is there */

static enum err file_size(struct loader *ld, int64_t base, const char *suffix, uint64_t *size)
{
    char path[LOG_PATH_MAX];
    struct file_stat st;
    enum err err = path_file(path, ld->at.dir, base, suffix);
    if (err == ERR_NONE)
        err = ld->at.fs->ops->stat(ld->at.fs, path, &st);
    if (err == ERR_NONE)
        *size = st.size_bytes;
    return err;
}

/* Names come in order, so base offsets do. */
static enum err take_name(void *ctx, const char *name, bool is_dir)
{
    struct loader *ld = ctx;
    int64_t base;
    const char *suffix;
    struct segment *seg;
    if (is_dir || !path_parse(name, &base, &suffix))
        return ERR_NONE;
    if (strcmp(suffix, SUFFIX_SNAPSHOT) == 0)
        return log_state_add_snapshot(&ld->s, base);
    if (strcmp(suffix, SUFFIX_LOG) != 0)
        return ERR_NONE;
    enum err err = segment_new(base, &seg);
    if (err != ERR_NONE)
        return err;
    seg->created = true;
    err = log_state_add_segment(&ld->s, seg);
    if (err != ERR_NONE)
        segment_free(seg);
    return err;
}

/* An index file without its .log. */
static enum err drop_orphan(void *ctx, const char *name, bool is_dir)
{
    struct loader *ld = ctx;
    int64_t base;
    const char *suffix;
    if (is_dir || !path_parse(name, &base, &suffix))
        return ERR_NONE;
    if (strcmp(suffix, SUFFIX_INDEX) != 0 && strcmp(suffix, SUFFIX_TIME) != 0 &&
        strcmp(suffix, SUFFIX_TXN) != 0)
        return ERR_NONE;
    if (ld->s.segments_n > 0 &&
        ld->s.segments[log_state_find(&ld->s, base)]->head.base_offset == base)
        return ERR_NONE;
    char path[LOG_PATH_MAX];
    enum err err = path_join(path, ld->at.dir, name);
    return err == ERR_NONE ? ld->at.fs->ops->unlink(ld->at.fs, path) : err;
}

static enum err list_files(struct loader *ld)
{
    struct vfs *fs = ld->at.fs;
    enum err err = fs->ops->list(fs, ld->at.dir, take_name, ld);
    if (err == ERR_NONE)
        err = fs->ops->list(fs, ld->at.dir, drop_orphan, ld);
    for (size_t i = 0; i < ld->s.segments_n && err == ERR_NONE; i++) {
        struct segment_head *h = &ld->s.segments[i]->head;
        err = file_size(ld, h->base_offset, SUFFIX_LOG, &h->size_bytes);
    }
    return err == ERR_NONE ? err : load_fail(ld, err, "%s: cannot be listed", ld->at.dir);
}

static enum err read_topic_id(struct loader *ld)
{
    struct log_load *ll = ld->ll;
    enum err err = partition_metadata_read(ld->at.fs, ld->at.dir, &ll->topic_id);
    if (err == ERR_NOENT) {
        ll->topic_id = ll->args.topic_id;
        if (uuid_is_zero(ll->topic_id))
            return ERR_NONE;
        err = partition_metadata_begin(ld->d, ld->at.dir, ll->topic_id);
        if (err == ERR_NONE)
            err = partition_metadata_end(ld->d, ld->at.dir);
        ld->names_dirty = true;
    }
    if (err != ERR_NONE)
        return load_fail(ld, err, "%s/partition.metadata: cannot be read or written", ld->at.dir);
    if (!uuid_is_zero(ll->args.topic_id) && !uuid_eq(ll->args.topic_id, ll->topic_id))
        return load_fail(ld, ERR_INVALID, "%s/partition.metadata: another topic's id", ld->at.dir);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ indexes at their word */

/* Takes the entry count of an index file; *ok is false when the segment must be recovered. */
static enum err take_index(struct loader *ld, struct segment *seg, enum segment_index which,
                           const char *suffix, bool *ok)
{
    uint64_t size = 0;
    struct entry_file *e = &seg->index[which];
    enum err err = file_size(ld, seg->head.base_offset, suffix, &size);
    if (err == ERR_NOENT) {
        *ok = which == INDEX_TXN;
        return ERR_NONE;
    }
    *ok = size % e->entry_bytes == 0 && size / e->entry_bytes <= UINT32_MAX;
    if (err == ERR_NONE && *ok)
        entry_file_init(e, e->entry_bytes, (uint32_t)(size / e->entry_bytes));
    return err;
}

/* The last entries of .index and .timeindex must be of this segment. */
static enum err check_last_entries(struct loader *ld, struct segment *seg, bool *ok)
{
    struct segment_head *h = &seg->head;
    uint32_t n = entry_file_n(&seg->index[INDEX_OFFSET]);
    *ok = true;
    if (n > 0) {
        struct offset_entry_pos last;
        enum err err = segment_index_get(seg, ld->at, n - 1, &last);
        if (err != ERR_NONE)
            return err;
        *ok = last.offset > h->base_offset && last.position < h->size_bytes;
    }
    h->index_n = n;
    n = h->time_n = entry_file_n(&seg->index[INDEX_TIME]);
    if (n == 0) {
        *ok = *ok && h->size_bytes == 0; /* else made anew: the largest timestamp is not known */
        return ERR_NONE;
    }
    struct time_entry first, last;
    enum err err = segment_time_get(seg, ld->at, 0, &first);
    if (err == ERR_NONE)
        err = segment_time_get(seg, ld->at, n - 1, &last);
    if (err != ERR_NONE)
        return err;
    *ok = *ok && last.timestamp >= first.timestamp && last.offset >= h->base_offset;
    h->max_timestamp = h->time_last = last.timestamp;
    h->max_timestamp_offset = last.offset;
    return ERR_NONE;
}

static enum err check_txn_index(struct loader *ld, struct segment *seg, bool *ok)
{
    uint32_t n = entry_file_n(&seg->index[INDEX_TXN]);
    *ok = true;
    for (uint32_t i = 0; i < n && *ok; i++) {
        struct aborted_txn t;
        enum err err = segment_txn_get(seg, ld->at, i, &t);
        if (err == ERR_CORRUPT)
            *ok = false;
        else if (err != ERR_NONE)
            return err;
        else
            *ok = t.last_offset >= seg->head.base_offset;
    }
    return ERR_NONE;
}

static enum err take_indexes(struct loader *ld, struct segment *seg, bool *ok)
{
    static const char *const suffixes[INDEX_N] = {SUFFIX_INDEX, SUFFIX_TIME, SUFFIX_TXN};
    enum err err = ERR_NONE;
    *ok = true;
    for (int i = 0; i < INDEX_N && err == ERR_NONE && *ok; i++)
        err = take_index(ld, seg, (enum segment_index)i, suffixes[i], ok);
    if (err == ERR_NONE && *ok)
        err = check_last_entries(ld, seg, ok);
    if (err == ERR_NONE && *ok)
        err = check_txn_index(ld, seg, ok);
    return err == ERR_NONE ? err
                           : load_fail(ld, err, "%s: indexes of segment %020lld cannot be read",
                                       ld->at.dir, (long long)seg->head.base_offset);
}

/* ------------------------------------------------------------------ segments */

/* The producers as of the segment's base, which recovery needs for the .txnindex. */
static enum err producers_at(struct loader *ld, int64_t base)
{
    enum err err = log_state_load_producers(&ld->s, ld->at, base);
    return err == ERR_NONE ? err
                           : load_fail(ld, err, "%s: producers before %lld cannot be read",
                                       ld->at.dir, (long long)base);
}

/* Walks the batches behind the last index entry of the last segment: where the log ends. */
static enum err walk_end(struct loader *ld, struct segment *seg, bool *ok)
{
    struct segment_head *h = &seg->head;
    struct scan sc;
    struct batch b;
    uint64_t position;
    bool more;
    *ok = true;
    ld->s.end_offset = h->base_offset;
    enum err err = segment_open(seg, ld->at);
    if (err == ERR_NONE) /* its first batch's time decides about the next roll */
        scan_init(&sc, seg->log, 0, h->size_bytes, ld->buf, SCAN_BULK_BYTES);
    if (err == ERR_NONE)
        err = scan_next(&sc, &b, &position, &more);
    if (err == ERR_NONE && more)
        h->first_timestamp = b.max_timestamp;
    if (err == ERR_NONE)
        err = segment_floor(seg, ld->at, INT64_MAX, &position);
    if (err == ERR_NONE)
        scan_init(&sc, seg->log, position, h->size_bytes, ld->buf, SCAN_BULK_BYTES);
    for (more = true; err == ERR_NONE && more;) {
        err = scan_next(&sc, &b, &position, &more);
        if (err != ERR_NONE || !more)
            break;
        if (!batch_follows(&b, ld->s.end_offset) ||
            segment_head_overflows(h, batch_last_offset(&b)))
            err = ERR_CORRUPT;
        else
            ld->s.end_offset = batch_next_offset(&b);
        if (b.max_timestamp > h->max_timestamp) {
            h->max_timestamp = b.max_timestamp;
            h->max_timestamp_offset = batch_last_offset(&b);
        }
    }
    if (err != ERR_CORRUPT && err != ERR_TRUNCATED)
        return err;
    *ok = false;
    return ERR_NONE;
}

/* Removes segments from index `from` on. */
static enum err drop_segments(struct loader *ld, size_t from)
{
    struct log_state *s = &ld->s;
    if (s->segments_n <= from)
        return ERR_NONE;
    while (s->segments_n > from) {
        struct segment *seg = s->segments[s->segments_n - 1];
        ld->ll->truncated_bytes += seg->head.size_bytes;
        enum err err = segment_unlink(ld->at, seg->head.base_offset);
        if (err != ERR_NONE)
            return load_fail(ld, err, "%s: segment %020lld cannot be removed", ld->at.dir,
                             (long long)seg->head.base_offset);
        segment_free(seg);
        s->segments_n--;
    }
    enum err err = ld->d->sync_dir(ld->d, ld->at.dir);
    return err == ERR_NONE ? err : load_fail(ld, err, "%s: cannot be synced", ld->at.dir);
}

/* Kafka: a snapshot at each recovered segment's base, so that the next recovery is short. */
static enum err snapshot_at(struct loader *ld, int64_t offset)
{
    char path[LOG_PATH_MAX];
    struct buf bytes;
    buf_init(&bytes);
    enum err err = path_file(path, ld->at.dir, offset, SUFFIX_SNAPSHOT);
    if (err == ERR_NONE)
        err = producer_snapshot_encode(&ld->s.producers, &bytes);
    if (err == ERR_NONE)
        err = file_write_synced(ld->d, path, bytes.p, bytes.n);
    if (err == ERR_NONE)
        err = log_state_add_snapshot(&ld->s, offset);
    buf_close(&bytes);
    return err == ERR_NONE ? err : load_fail(ld, err, "%s: cannot be written", path);
}

/* Segments follow each other without a gap, but where compaction took records. Else writes before
 * this one, or the removal of a longer past, did not reach the disk. What was cut from the segment
 * before may have been a preallocated tail. */
static bool follows(const struct loader *ld, const struct segment *seg, bool cut)
{
    int64_t base = seg->head.base_offset;
    return base == ld->s.end_offset ||
           (base > ld->s.end_offset && ld->ll->args.config.compacted && !cut);
}

/* Everything from segment `from` on, after an unclean stop. */
static enum err recover_from(struct loader *ld, size_t from)
{
    struct log_state *s = &ld->s;
    int64_t base = s->segments[from]->head.base_offset;
    enum err err = log_state_drop_snapshots(s, ld->at, base);
    if (err != ERR_NONE)
        return load_fail(ld, err, "%s: a snapshot cannot be removed", ld->at.dir);
    err = producers_at(ld, base);
    s->end_offset = base;
    bool cut = false;
    for (size_t i = from; i < s->segments_n && err == ERR_NONE; i++) {
        struct segment *seg = s->segments[i];
        if (job_cancelled(&ld->ll->job))
            return ERR_CANCELLED;
        if (!follows(ld, seg, cut))
            return drop_segments(ld, i);
        if (i > from)
            err = snapshot_at(ld, seg->head.base_offset);
        if (err == ERR_NONE)
            err = load_recover_segment(ld, seg, &cut);
        if (err != ERR_NONE)
            return err;
        seg->unsynced = true;
    }
    return err;
}

/* A segment that the recovery point has passed, or all after a clean stop. */
static enum err take_segment(struct loader *ld, struct segment *seg, bool last)
{
    bool ok, cut;
    int64_t base = seg->head.base_offset;
    enum err err = take_indexes(ld, seg, &ok);
    if (err == ERR_NONE && ok && last)
        err = walk_end(ld, seg, &ok);
    if (err != ERR_NONE || ok)
        return err;
    err = producers_at(ld, base);
    ld->s.end_offset = base;
    if (err == ERR_NONE)
        err = load_recover_segment(ld, seg, &cut);
    if (err == ERR_NONE)
        seg->unsynced = true;
    return err;
}

static enum err load_segments(struct loader *ld)
{
    struct log_state *s = &ld->s;
    const struct log_checkpoints *cp = &ld->ll->checkpoints;
    size_t recovered = cp->clean ? s->segments_n : log_state_find(s, cp->recovery_point);
    enum err err = ERR_NONE;
    for (size_t i = 0; i < recovered && err == ERR_NONE; i++)
        err = take_segment(ld, s->segments[i], i + 1 == recovered);
    /* A truncation at the recovery point that did not reach the disk: the longer past is back. */
    if (err == ERR_NONE && recovered > 0 && recovered < s->segments_n &&
        s->end_offset > s->segments[recovered]->head.base_offset)
        recovered--;
    if (err == ERR_NONE && recovered < s->segments_n)
        err = recover_from(ld, recovered);
    else if (err == ERR_NONE && s->segments_n > 0) {
        err = log_state_load_producers(s, ld->at, s->end_offset);
        if (err != ERR_NONE)
            err = load_fail(ld, err, "%s: producers cannot be read", ld->at.dir);
    }
    return err;
}

/* ------------------------------------------------------------------ the whole */

/* No segment, or the log ends before its start: empty at `base`. */
static enum err start_over(struct loader *ld, int64_t base)
{
    struct log_state *s = &ld->s;
    struct segment *seg;
    enum err err = drop_segments(ld, 0);
    s->start_offset = s->end_offset = base;
    if (err == ERR_NONE)
        err = log_state_drop_snapshots(s, ld->at, base);
    if (err == ERR_NONE)
        err = segment_new(base, &seg);
    if (err != ERR_NONE)
        return load_fail(ld, err, "%s: cannot be started at %lld", ld->at.dir, (long long)base);
    segment_head_init(&seg->head, base, ld->ll->args.now.wall_ms, 0);
    err = log_state_add_segment(s, seg);
    if (err != ERR_NONE)
        segment_free(seg);
    else
        err = segment_open(seg, ld->at);
    ld->names_dirty = true;
    producer_state_clear(&s->producers);
    s->epochs_dirty = s->epochs_dirty || s->epochs.n > 0;
    s->epochs.n = 0;
    return err == ERR_NONE
               ? err
               : load_fail(ld, err, "%s: cannot be started at %lld", ld->at.dir, (long long)base);
}

/* Snapshots at no segment's base go, but the newest behind the last base stays (Kafka). */
static enum err drop_stray_snapshots(struct loader *ld)
{
    struct log_state *s = &ld->s;
    int64_t last_base = log_state_active(s)->head.base_offset;
    int64_t newest = s->snapshots_n > 0 ? s->snapshots[s->snapshots_n - 1] : -1;
    for (size_t i = s->snapshots_n; i > 0; i--) {
        int64_t offset = s->snapshots[i - 1];
        bool at_base = s->segments[log_state_find(s, offset)]->head.base_offset == offset;
        if (at_base || (offset == newest && offset > last_base))
            continue;
        enum err err = log_state_remove_snapshot(s, ld->at, i - 1);
        if (err != ERR_NONE)
            return load_fail(ld, err, "%s: a snapshot cannot be removed", ld->at.dir);
    }
    return ERR_NONE;
}

static enum err settle(struct loader *ld)
{
    struct log_state *s = &ld->s;
    const struct log_checkpoints *cp = &ld->ll->checkpoints;
    enum err err = ERR_NONE;
    if (s->segments_n == 0 || s->end_offset < cp->log_start)
        err = start_over(ld, cp->log_start > 0 ? cp->log_start : 0);
    else
        err = drop_stray_snapshots(ld);
    if (err != ERR_NONE)
        return err;
    if (epoch_cache_truncate_end(&s->epochs, s->end_offset))
        s->epochs_dirty = true;
    if (epoch_cache_truncate_start(&s->epochs, s->start_offset))
        s->epochs_dirty = true;
    s->flushed_end = s->end_offset;
    if (!cp->clean && cp->recovery_point < s->end_offset)
        s->flushed_end =
            cp->recovery_point > s->start_offset ? cp->recovery_point : s->start_offset;
    if (ld->ll->args.config.producer_id_expiration_ms > 0)
        producer_state_expire(&s->producers, ld->ll->args.now.wall_ms,
                              ld->ll->args.config.producer_id_expiration_ms);
    log_state_active(s)->unsynced = false; /* the active one's .log is in every sync */
    for (size_t i = 0; i < s->segments_n; i++) {
        s->size_bytes += s->segments[i]->head.size_bytes;
        segment_release(s->segments[i]);
    }
    return ERR_NONE;
}

/* Names that were made here, or by a process that was killed before a sync covered them; from here
 * on the log counts on them. */
static enum err sync_names(struct loader *ld)
{
    if (ld->ll->checkpoints.clean && !ld->names_dirty)
        return ERR_NONE;
    enum err err = ld->d->sync_dir(ld->d, ld->at.dir);
    return err == ERR_NONE ? err : load_fail(ld, err, "%s: cannot be synced", ld->at.dir);
}

static enum err load(struct loader *ld)
{
    struct log_state *s = &ld->s;
    enum err err = load_clear_leftovers(ld);
    if (err == ERR_NONE)
        err = read_topic_id(ld);
    if (err != ERR_NONE)
        return err;
    err = epoch_checkpoint_read(ld->at.fs, ld->at.dir, &s->epochs);
    if (err != ERR_NONE)
        return load_fail(ld, err, "%s/leader-epoch-checkpoint: cannot be read", ld->at.dir);
    err = list_files(ld);
    if (err != ERR_NONE)
        return err;
    if (s->segments_n > 0) {
        s->start_offset = s->segments[0]->head.base_offset;
        if (ld->ll->checkpoints.log_start > s->start_offset)
            s->start_offset = ld->ll->checkpoints.log_start;
        err = load_segments(ld);
    }
    if (err == ERR_NONE)
        err = settle(ld);
    return err == ERR_NONE ? sync_names(ld) : err;
}

void log_load_run(struct log_load *ll, struct disk *d)
{
    struct loader ld = {
        .ll = ll, .d = d, .at = {.fs = d->fs, .dir = ll->args.dir}, .last_epoch = -1};
    log_state_init(&ld.s);
    ll->message[0] = '\0';
    ll->recovered_bytes = ll->truncated_bytes = 0;
    ll->topic_id = (struct uuid){{0}};
    ll->loaded = malloc(sizeof *ll->loaded);
    ld.buf = malloc(SCAN_BULK_BYTES);
    ll->err = ll->loaded == NULL || ld.buf == NULL ? load_fail(&ld, ERR_NOMEM, "%s", ld.at.dir)
                                                   : load(&ld);
    free(ld.buf);
    if (ll->err == ERR_NONE) {
        ll->loaded->s = ld.s;
        return;
    }
    log_state_close(&ld.s);
    free(ll->loaded);
    ll->loaded = NULL;
}

static void run(struct job *j, struct disk *d)
{
    log_load_run(CONTAINER_OF(j, struct log_load, job), d);
}

static void done(struct job *j)
{
    struct log_load *ll = CONTAINER_OF(j, struct log_load, job);
    ll->done(ll);
}

void log_load_start(struct log_load *ll)
{
    ll->job = (struct job){.lane = JOB_BULK, .run = run, .done = done};
    ll->args.env->submit(ll->args.env, &ll->job);
}

enum err log_open(struct log_load *ll, struct log **out)
{
    CHECK(ll->loaded != NULL);
    struct log *l;
    enum err err = log_alloc(&ll->args, &l);
    if (err != ERR_NONE)
        return err;
    err = producer_state_charge(&ll->loaded->s.producers, l->budget);
    if (err != ERR_NONE) {
        log_free(l);
        return err;
    }
    l->s = ll->loaded->s;
    free(ll->loaded);
    ll->loaded = NULL;
    l->topic_id = ll->topic_id;
    l->dir_state = DIR_READY;
    l->names_dirty = true; /* recovery may have made files */
    struct segment_head fresh;
    log_new_head(l, 0, &fresh);
    log_active(l)->head.jitter_ms = fresh.jitter_ms;
    log_active(l)->head.created_ms = fresh.created_ms;
    log_expiry_arm(l);
    *out = l;
    return ERR_NONE;
}

void log_load_close(struct log_load *ll)
{
    if (ll->loaded == NULL)
        return;
    log_state_close(&ll->loaded->s);
    free(ll->loaded);
    ll->loaded = NULL;
}
