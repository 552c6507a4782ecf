/* The state that is loaded from a directory: segments, snapshots, producers. Used by the worker
 * that loads and by the owner that truncates; `at` says whose files. */
#include "log/log_impl.h"

#include <stdlib.h>

#include "log/array.h"
#include "log/checkpoint.h"
#include "log/scan.h"

#define SNAPSHOT_MAX_BYTES (128u << 20) /* 2.9 million producers */

void log_state_init(struct log_state *s)
{
    *s = (struct log_state){0};
    epoch_cache_init(&s->epochs);
    producer_state_init(&s->producers, NULL);
}

void log_state_close(struct log_state *s)
{
    for (size_t i = 0; i < s->segments_n; i++)
        segment_free(s->segments[i]);
    free(s->segments);
    free(s->snapshots);
    epoch_cache_close(&s->epochs);
    producer_state_close(&s->producers);
    log_state_init(s);
}

enum err log_state_add_segment(struct log_state *s, struct segment *seg)
{
    enum err err = ARRAY_ROOM(s->segments);
    if (err == ERR_NONE)
        s->segments[s->segments_n++] = seg;
    return err;
}

enum err log_state_add_snapshot(struct log_state *s, int64_t offset)
{
    size_t i = s->snapshots_n;
    while (i > 0 && s->snapshots[i - 1] > offset)
        i--;
    if (i > 0 && s->snapshots[i - 1] == offset)
        return ERR_NONE;
    enum err err = ARRAY_ROOM(s->snapshots);
    if (err != ERR_NONE)
        return err;
    memmove(s->snapshots + i + 1, s->snapshots + i, (s->snapshots_n - i) * sizeof *s->snapshots);
    s->snapshots[i] = offset;
    s->snapshots_n++;
    return ERR_NONE;
}

size_t log_state_find(const struct log_state *s, int64_t offset)
{
    size_t lo = 0, hi = s->segments_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->segments[mid]->head.base_offset <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == 0 ? 0 : lo - 1;
}

/* ------------------------------------------------------------------ replay */

enum err log_state_replay_batch(struct log_state *s, struct scan *sc, struct batch *b,
                                struct aborted_txn *aborted)
{
    struct txn_marker marker;
    bool is_marker = false;
    struct producer_undo undo;
    aborted->first_offset = -1;
    if ((b->attributes & BATCH_CONTROL) != 0) {
        enum err err = scan_body(sc, b);
        if (err == ERR_TOO_LARGE)
            return ERR_NONE; /* no marker is so large */
        if (err == ERR_NONE)
            err = txn_marker_read(b, &marker, &is_marker);
        if (err != ERR_NONE || !is_marker)
            return err;
    }
    return producer_state_append(&s->producers, b, is_marker ? &marker : NULL, &undo, aborted);
}

static enum err replay_segment(struct log_state *s, struct segment *seg, struct segment_dir at,
                               int64_t from, int64_t to, uint8_t *buf)
{
    uint64_t position;
    struct scan sc;
    enum err err = segment_floor(seg, at, from, &position);
    if (err == ERR_NONE)
        err = segment_open(seg, at);
    if (err != ERR_NONE)
        return err;
    if (position > seg->head.size_bytes)
        position = 0;
    scan_init(&sc, seg->log, position, seg->head.size_bytes, buf, SCAN_BULK_BYTES);
    for (;;) {
        struct batch b;
        bool more;
        err = scan_next(&sc, &b, &position, &more);
        if (err != ERR_NONE || !more || b.base_offset >= to)
            return err;
        if (b.producer_id < 0 || batch_last_offset(&b) < from)
            continue;
        struct aborted_txn aborted;
        err = log_state_replay_batch(s, &sc, &b, &aborted);
        if (err != ERR_NONE)
            return err;
    }
}

static enum err replay(struct log_state *s, struct segment_dir at, int64_t from, int64_t to)
{
    if (from >= to)
        return ERR_NONE;
    uint8_t *buf = malloc(SCAN_BULK_BYTES);
    if (buf == NULL)
        return ERR_NOMEM;
    enum err err = ERR_NONE;
    for (size_t i = log_state_find(s, from); i < s->segments_n && err == ERR_NONE; i++) {
        struct segment *seg = s->segments[i];
        if (seg->head.base_offset >= to)
            break;
        if (seg->head.size_bytes > 0)
            err = replay_segment(s, seg, at, from, to, buf);
    }
    free(buf);
    return err;
}

/* ------------------------------------------------------------------ snapshots */

enum err log_state_remove_snapshot(struct log_state *s, struct segment_dir at, size_t i)
{
    enum err err = segment_unlink_file(at, s->snapshots[i], SUFFIX_SNAPSHOT);
    if (err != ERR_NONE)
        return err;
    s->snapshots_n--;
    memmove(s->snapshots + i, s->snapshots + i + 1, (s->snapshots_n - i) * sizeof *s->snapshots);
    return ERR_NONE;
}

enum err log_state_drop_snapshots(struct log_state *s, struct segment_dir at, int64_t x)
{
    enum err err = ERR_NONE;
    for (size_t i = s->snapshots_n; i > 0 && err == ERR_NONE; i--) {
        if (s->snapshots[i - 1] > x || s->snapshots[i - 1] <= s->start_offset)
            err = log_state_remove_snapshot(s, at, i - 1);
    }
    return err;
}

static enum err load_snapshot(struct log_state *s, struct segment_dir at, int64_t offset)
{
    char path[LOG_PATH_MAX];
    struct buf bytes;
    buf_init(&bytes);
    enum err err = path_file(path, at.dir, offset, SUFFIX_SNAPSHOT);
    if (err == ERR_NONE)
        err = file_slurp(at.fs, path, SNAPSHOT_MAX_BYTES, &bytes);
    if (err == ERR_NONE)
        err = producer_snapshot_decode((struct bytes){bytes.p, (int32_t)bytes.n}, offset,
                                       &s->producers);
    buf_close(&bytes);
    return err == ERR_TOO_LARGE || err == ERR_NOENT ? ERR_CORRUPT : err;
}

enum err log_state_load_producers(struct log_state *s, struct segment_dir at, int64_t x)
{
    producer_state_clear(&s->producers);
    int64_t from = s->start_offset;
    for (size_t i = s->snapshots_n; i > 0; i--) {
        int64_t offset = s->snapshots[i - 1];
        if (offset > x || offset <= s->start_offset)
            continue;
        enum err err = load_snapshot(s, at, offset);
        if (err == ERR_NONE) {
            from = offset;
            break;
        }
        producer_state_clear(&s->producers);
        if (err == ERR_CORRUPT)
            err = log_state_remove_snapshot(s, at, i - 1);
        if (err != ERR_NONE)
            return err;
    }
    return replay(s, at, from, x);
}
