/* Search by time, on a worker: it sees copies of the segments' facts and the files. Index entries
 * are hints where to begin. If the log was cut meanwhile the search is done again. */
#include <stdlib.h>

#include "log/log_impl.h"
#include "log/scan.h"
#include "wire/record.h"

/* Only numbers are looked at: no memory hangs on it. */
#define RECORD_MAX_BYTES INT32_MAX

struct lookup_segment {
    int64_t base_offset, max_timestamp;
    uint64_t size_bytes;
    uint32_t index_n, time_n; /* entries in the files */
};

struct lookup {
    struct log *log;
    uint32_t cuts;
    const char *dir; /* the log's; never changes */
    int64_t start_offset;
    size_t segments_n;
    struct lookup_segment segments[];
};

/* ------------------------------------------------------------------ on the worker */

/* The segment that holds the answer, or NULL. */
static const struct lookup_segment *choose(const struct log_lookup *lk, const struct lookup *k)
{
    const struct lookup_segment *best = NULL;
    for (size_t i = 0; i < k->segments_n; i++) {
        const struct lookup_segment *s = &k->segments[i];
        if (s->size_bytes == 0 || s->max_timestamp < 0)
            continue;
        if (lk->kind == LOOKUP_TIME && s->max_timestamp >= lk->timestamp)
            return s;
        if (lk->kind == LOOKUP_MAX_TIMESTAMP &&
            (best == NULL || s->max_timestamp > best->max_timestamp))
            best = s;
    }
    return best;
}

/* Where to begin: no batch before it reaches the timestamp. */
static enum err begin_at(struct segment *seg, struct segment_dir at, int64_t timestamp,
                         int64_t start_offset, uint64_t *position)
{
    int64_t offset;
    enum err err = segment_time_floor(seg, at, timestamp, &offset);
    if (err != ERR_NONE)
        return err;
    if (offset < start_offset)
        offset = start_offset;
    return segment_floor(seg, at, offset, position);
}

static enum err read_whole(struct segment *seg, uint64_t position, struct batch *b, uint8_t **bytes)
{
    size_t got;
    *bytes = malloc(b->size_bytes);
    if (*bytes == NULL)
        return ERR_NOMEM;
    enum err err = seg->log->fs->ops->pread(seg->log, *bytes, b->size_bytes, position, &got);
    if (err == ERR_NONE && got < b->size_bytes)
        err = ERR_TRUNCATED;
    if (err != ERR_NONE) {
        free(*bytes);
        *bytes = NULL;
    }
    b->p = *bytes;
    return err;
}

/* The first record of the batch that reaches the timestamp, at or behind the start. */
static enum err search_batch(struct log_lookup *lk, struct segment *seg, uint64_t position,
                             struct batch *b, int64_t timestamp, int64_t start_offset)
{
    uint8_t *bytes;
    struct record_stream records;
    enum err err = read_whole(seg, position, b, &bytes);
    if (err != ERR_NONE)
        return err;
    err = record_stream_open(&records, b, RECORD_MAX_BYTES, NULL);
    if (err != ERR_NONE) {
        free(bytes);
        return err;
    }
    for (;;) {
        struct record r;
        bool end;
        err = record_stream_next(&records, false, &r, &end);
        if (err != ERR_NONE || end)
            break;
        if (r.timestamp >= timestamp && r.offset >= start_offset) {
            lk->offset = r.offset;
            lk->found_timestamp = r.timestamp;
            lk->leader_epoch = b->leader_epoch;
            break;
        }
    }
    record_stream_close(&records);
    free(bytes);
    return err;
}

static enum err search_segment(struct log_lookup *lk, const struct lookup *k, struct segment *seg,
                               struct segment_dir at, uint8_t *buf)
{
    bool max = lk->kind == LOOKUP_MAX_TIMESTAMP;
    int64_t timestamp = max ? seg->head.max_timestamp : lk->timestamp;
    int64_t start = max ? 0 : k->start_offset;
    uint64_t position;
    struct scan sc;
    enum err err = begin_at(seg, at, timestamp, start, &position);
    if (err == ERR_NONE)
        err = segment_open(seg, at);
    if (err != ERR_NONE)
        return err;
    scan_init(&sc, seg->log, position < seg->head.size_bytes ? position : 0, seg->head.size_bytes,
              buf, SCAN_BULK_BYTES);
    while (lk->offset < 0 && !job_cancelled(&lk->job)) {
        struct batch b;
        bool more;
        err = scan_next(&sc, &b, &position, &more);
        if (err != ERR_NONE || !more)
            break;
        if (b.max_timestamp < timestamp || batch_last_offset(&b) < start)
            continue;
        if (b.magic == 2) {
            err = search_batch(lk, seg, position, &b, timestamp, start);
        } else { /* records of old formats are not looked into */
            lk->offset = b.base_offset;
            lk->found_timestamp = b.max_timestamp;
        }
        if (err != ERR_NONE)
            break;
    }
    return err;
}

static enum err search(struct log_lookup *lk, const struct lookup *k, struct disk *d)
{
    const struct lookup_segment *facts = choose(lk, k);
    if (facts == NULL)
        return ERR_NONE;
    struct segment *seg;
    uint8_t *buf = malloc(SCAN_BULK_BYTES);
    if (buf == NULL)
        return ERR_NOMEM;
    enum err err = segment_new(facts->base_offset, &seg);
    if (err == ERR_NONE) {
        seg->created = true;
        seg->head.size_bytes = facts->size_bytes;
        seg->head.max_timestamp = facts->max_timestamp;
        seg->index[INDEX_OFFSET].written_n = facts->index_n;
        seg->index[INDEX_TIME].written_n = facts->time_n;
        err = search_segment(lk, k, seg, (struct segment_dir){.fs = d->fs, .dir = k->dir}, buf);
        segment_free(seg);
    }
    free(buf);
    return err;
}

static void run(struct job *j, struct disk *d)
{
    struct log_lookup *lk = CONTAINER_OF(j, struct log_lookup, job);
    lk->err = search(lk, lk->impl, d);
}

/* ------------------------------------------------------------------ on the owner's thread */

static enum err submit(struct log *l, struct log_lookup *lk);

static void done(struct job *j)
{
    struct log_lookup *lk = CONTAINER_OF(j, struct log_lookup, job);
    struct lookup *k = lk->impl;
    struct log *l = k->log;
    bool stale =
        k->cuts != l->cuts || k->segments[0].base_offset != l->s.segments[0]->head.base_offset;
    free(k);
    lk->impl = NULL;
    if (log_job_done(l)) {
        lk->err = ERR_CLOSED;
    } else if (stale) {
        lk->err = submit(l, lk);
        if (lk->err == ERR_NONE)
            return;
    }
    if (lk->err != ERR_NONE)
        lk->offset = -1;
    lk->done(lk);
}

static enum err submit(struct log *l, struct log_lookup *lk)
{
    size_t n = l->s.segments_n;
    struct lookup *k = malloc(sizeof *k + n * sizeof k->segments[0]);
    if (k == NULL)
        return ERR_NOMEM;
    *k = (struct lookup){.log = l,
                         .cuts = l->cuts,
                         .dir = l->dir,
                         .start_offset = l->s.start_offset,
                         .segments_n = n};
    for (size_t i = 0; i < n; i++) {
        const struct segment *s = l->s.segments[i];
        k->segments[i] = (struct lookup_segment){
            .base_offset = s->head.base_offset,
            .max_timestamp = s->head.max_timestamp,
            .size_bytes = s->head.size_bytes,
            .index_n = s->index[INDEX_OFFSET].written_n,
            .time_n = s->index[INDEX_TIME].written_n,
        };
    }
    lk->impl = k;
    lk->err = ERR_NONE;
    lk->offset = lk->found_timestamp = -1;
    lk->leader_epoch = -1;
    lk->job = (struct job){.lane = JOB_BULK, .run = run, .done = done};
    log_submit(l, &lk->job);
    return ERR_NONE;
}

enum err log_lookup_start(struct log *l, struct log_lookup *lk)
{
    return l->offline ? ERR_OFFLINE : submit(l, lk);
}
