/* A segment's rules and files. The rules work on struct segment_head alone, so that staging can
 * look ahead of what is written and throw its copy away. */
#include "log/segment.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/endian.h"

static const uint8_t entry_bytes[INDEX_N] = {OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, TXN_ENTRY_BYTES};
static const char *const suffixes[INDEX_N] = {SUFFIX_INDEX, SUFFIX_TIME, SUFFIX_TXN};

/* ------------------------------------------------------------------ head */

void segment_head_init(struct segment_head *h, int64_t base_offset, int64_t now_ms,
                       int64_t jitter_ms)
{
    *h = (struct segment_head){
        .base_offset = base_offset,
        .max_timestamp = -1,
        .max_timestamp_offset = base_offset,
        .first_timestamp = -1,
        .created_ms = now_ms,
        .jitter_ms = jitter_ms,
        .time_last = -1,
    };
}

struct segment_step segment_head_add(struct segment_head *h, const struct log_config *c,
                                     int64_t last_offset, int64_t max_timestamp,
                                     uint32_t size_bytes)
{
    struct segment_step step = {.position = h->size_bytes};
    if (h->size_bytes == 0)
        h->first_timestamp = max_timestamp;
    if (max_timestamp > h->max_timestamp) {
        h->max_timestamp = max_timestamp;
        h->max_timestamp_offset = last_offset;
    }
    if (h->bytes_since_index > (uint64_t)c->index_interval_bytes) {
        step.index = true;
        h->index_n++;
        if (h->max_timestamp > h->time_last) {
            step.time = true;
            step.time_entry = (struct time_entry){h->max_timestamp, h->max_timestamp_offset};
            h->time_n++;
            h->time_last = h->max_timestamp;
        }
        h->bytes_since_index = 0;
    }
    h->bytes_since_index += size_bytes;
    h->size_bytes += size_bytes;
    return step;
}

bool segment_head_overflows(const struct segment_head *h, int64_t last_offset)
{
    return last_offset - h->base_offset > INT32_MAX;
}

/* "Time rolls only on appends, by record time." */
static bool waited_long(const struct segment_head *h, const struct log_config *c,
                        int64_t max_timestamp, int64_t now_ms)
{
    int64_t limit = c->segment_ms;
    if (c->compacted && c->max_compaction_lag_ms < limit)
        limit = c->max_compaction_lag_ms;
    int64_t jitter = h->jitter_ms < limit ? h->jitter_ms : limit;
    int64_t waited;
    if (h->first_timestamp < 0)
        waited = now_ms - h->created_ms;
    else if (__builtin_sub_overflow(max_timestamp, h->first_timestamp, &waited))
        waited = INT64_MIN;
    return waited > limit - jitter;
}

bool segment_head_full(const struct segment_head *h, const struct log_config *c,
                       int64_t last_offset, int64_t max_timestamp, uint32_t size_bytes,
                       int64_t now_ms)
{
    if (h->size_bytes == 0)
        return false;
    uint64_t limit = c->segment_bytes < 0 ? 0 : (uint64_t)c->segment_bytes;
    uint32_t index_bytes = c->segment_index_bytes < 0 ? 0 : (uint32_t)c->segment_index_bytes;
    return h->size_bytes + size_bytes > limit || waited_long(h, c, max_timestamp, now_ms) ||
           h->index_n >= index_bytes / OFFSET_ENTRY_BYTES ||
           h->time_n + 1 >= index_bytes / TIME_ENTRY_BYTES ||
           segment_head_overflows(h, last_offset);
}

/* ------------------------------------------------------------------ files */

enum err segment_new(int64_t base_offset, struct segment **out)
{
    struct segment *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    segment_head_init(&s->head, base_offset, 0, 0);
    for (int i = 0; i < INDEX_N; i++)
        entry_file_init(&s->index[i], entry_bytes[i], 0);
    *out = s;
    return ERR_NONE;
}

void segment_free(struct segment *s)
{
    if (s == NULL)
        return;
    file_unref(s->log);
    for (int i = 0; i < INDEX_N; i++)
        entry_file_close(&s->index[i]);
    free(s);
}

enum err segment_unlink_file(struct segment_dir at, int64_t base_offset, const char *suffix)
{
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, at.dir, base_offset, suffix);
    if (err == ERR_NONE)
        err = at.fs->ops->unlink(at.fs, path);
    return err == ERR_NOENT ? ERR_NONE : err;
}

enum err segment_sync_file(struct disk *d, const char *dir, int64_t base_offset, const char *suffix)
{
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, dir, base_offset, suffix);
    return err == ERR_NONE ? d->sync(d, path) : err;
}

enum err segment_open(struct segment *s, struct segment_dir at)
{
    if (s->log != NULL)
        return ERR_NONE;
    char path[LOG_PATH_MAX];
    int64_t base = s->head.base_offset;
    enum err err = path_file(path, at.dir, base, SUFFIX_LOG);
    /* A leftover .txnindex would be read at the next start; the others are emptied when written. */
    if (err == ERR_NONE && !s->created)
        err = segment_unlink_file(at, base, SUFFIX_TXN);
    if (err == ERR_NONE)
        err = at.fs->ops->open(at.fs, path, s->created ? FILE_WRITE : FILE_CREATE, &s->log);
    if (err == ERR_NONE)
        s->created = true;
    return err;
}

enum err segment_open_index(struct segment *s, struct segment_dir at, enum segment_index which)
{
    struct entry_file *e = &s->index[which];
    if (e->f != NULL || e->written_n == 0)
        return ERR_NONE;
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, at.dir, s->head.base_offset, suffixes[which]);
    return err == ERR_NONE ? at.fs->ops->open(at.fs, path, FILE_WRITE, &e->f) : err;
}

void segment_release(struct segment *s)
{
    file_unref(s->log);
    s->log = NULL;
    for (int i = 0; i < INDEX_N; i++) {
        file_unref(s->index[i].f);
        s->index[i].f = NULL;
    }
}

enum err segment_unlink(struct segment_dir at, int64_t base_offset)
{
    enum err err = ERR_NONE;
    for (int i = 0; i < INDEX_N && err == ERR_NONE; i++)
        err = segment_unlink_file(at, base_offset, suffixes[i]);
    return err == ERR_NONE ? segment_unlink_file(at, base_offset, SUFFIX_LOG) : err;
}

enum err segment_reserve(struct segment *s, uint32_t n)
{
    enum err err = entry_file_reserve(&s->index[INDEX_OFFSET], n);
    return err == ERR_NONE ? entry_file_reserve(&s->index[INDEX_TIME], n) : err;
}

static void push_time(struct segment *s, struct time_entry t)
{
    uint8_t entry[TIME_ENTRY_BYTES];
    put_be64(entry, (uint64_t)t.timestamp);
    put_be32(entry + 8, (uint32_t)(t.offset - s->head.base_offset));
    entry_file_push(&s->index[INDEX_TIME], entry);
}

void segment_push(struct segment *s, const struct segment_step *step, int64_t last_offset)
{
    uint8_t entry[OFFSET_ENTRY_BYTES];
    if (step->index) {
        put_be32(entry, (uint32_t)(last_offset - s->head.base_offset));
        put_be32(entry + 4, (uint32_t)step->position);
        entry_file_push(&s->index[INDEX_OFFSET], entry);
    }
    if (step->time)
        push_time(s, step->time_entry);
}

enum err segment_force_time(struct segment *s)
{
    struct segment_head *h = &s->head;
    if (h->max_timestamp <= h->time_last)
        return ERR_NONE;
    enum err err = entry_file_reserve(&s->index[INDEX_TIME], 1);
    if (err != ERR_NONE)
        return err;
    push_time(s, (struct time_entry){h->max_timestamp, h->max_timestamp_offset});
    h->time_n++;
    h->time_last = h->max_timestamp;
    return ERR_NONE;
}

enum err segment_write_indexes(struct segment *s, struct segment_dir at, uint32_t min_bytes)
{
    enum err err = ERR_NONE;
    for (int i = 0; i < INDEX_N && err == ERR_NONE; i++) {
        struct entry_file *e = &s->index[i];
        bool wanted = min_bytes == 0 ? (i != INDEX_TXN || e->tail_n > 0)
                                     : e->tail_n * e->entry_bytes > min_bytes;
        if (!wanted)
            continue;
        char path[LOG_PATH_MAX];
        err = path_file(path, at.dir, s->head.base_offset, suffixes[i]);
        if (err == ERR_NONE)
            err = entry_file_write(e, (struct entry_place){.fs = at.fs, .path = path});
    }
    return err;
}

/* ------------------------------------------------------------------ indexes */

static enum err get(struct segment *s, struct segment_dir at, enum segment_index which, uint32_t i,
                    uint8_t *entry)
{
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, at.dir, s->head.base_offset, suffixes[which]);
    if (err == ERR_NONE)
        err = entry_file_get(&s->index[which], (struct entry_place){.fs = at.fs, .path = path}, i,
                             entry);
    return err;
}

static enum err search(struct segment *s, struct segment_dir at, enum segment_index which,
                       entry_before before, int64_t key, uint32_t *n, uint8_t *last)
{
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, at.dir, s->head.base_offset, suffixes[which]);
    if (err != ERR_NONE)
        return err;
    return entry_file_search(&s->index[which],
                             (struct entry_place){.fs = at.fs, .path = path, .now = at.now}, before,
                             key, n, last);
}

enum err segment_index_get(struct segment *s, struct segment_dir at, uint32_t i,
                           struct offset_entry_pos *out)
{
    uint8_t entry[OFFSET_ENTRY_BYTES];
    enum err err = get(s, at, INDEX_OFFSET, i, entry);
    if (err == ERR_NONE)
        *out =
            (struct offset_entry_pos){s->head.base_offset + (int32_t)be32(entry), be32(entry + 4)};
    return err;
}

enum err segment_time_get(struct segment *s, struct segment_dir at, uint32_t i,
                          struct time_entry *out)
{
    uint8_t entry[TIME_ENTRY_BYTES];
    enum err err = get(s, at, INDEX_TIME, i, entry);
    if (err == ERR_NONE)
        *out = (struct time_entry){(int64_t)be64(entry),
                                   s->head.base_offset + (int32_t)be32(entry + 8)};
    return err;
}

void segment_txn_encode(const struct aborted_txn *t, uint8_t out[TXN_ENTRY_BYTES])
{
    put_be16(out, 0);
    put_be64(out + 2, (uint64_t)t->producer_id);
    put_be64(out + 10, (uint64_t)t->first_offset);
    put_be64(out + 18, (uint64_t)t->last_offset);
    put_be64(out + 26, (uint64_t)t->last_stable_offset);
}

/* ERR_CORRUPT: unknown version. */
static enum err txn_decode(const uint8_t *p, struct aborted_txn *out)
{
    if (be16(p) != 0)
        return ERR_CORRUPT;
    *out = (struct aborted_txn){(int64_t)be64(p + 2), (int64_t)be64(p + 10), (int64_t)be64(p + 18),
                                (int64_t)be64(p + 26)};
    return ERR_NONE;
}

enum err segment_txn_get(struct segment *s, struct segment_dir at, uint32_t i,
                         struct aborted_txn *out)
{
    uint8_t entry[TXN_ENTRY_BYTES];
    enum err err = get(s, at, INDEX_TXN, i, entry);
    return err == ERR_NONE ? txn_decode(entry, out) : err;
}

static bool index_at_most(const void *entry, int64_t relative)
{
    return (int32_t)be32(entry) <= relative;
}

static bool time_at_most(const void *entry, int64_t timestamp)
{
    return (int64_t)be64(entry) <= timestamp;
}

static bool time_offset_below(const void *entry, int64_t relative)
{
    return (int32_t)be32((const uint8_t *)entry + 8) < relative;
}

static bool txn_last_below(const void *entry, int64_t offset)
{
    return (int64_t)be64((const uint8_t *)entry + 18) < offset;
}

static bool index_position_below(const void *entry, int64_t position)
{
    return be32((const uint8_t *)entry + 4) < (uint64_t)position;
}

enum err segment_txn_first(struct segment *s, struct segment_dir at, int64_t offset, uint32_t *i)
{
    return search(s, at, INDEX_TXN, txn_last_below, offset, i, NULL);
}

enum err segment_floor(struct segment *s, struct segment_dir at, int64_t offset, uint64_t *position)
{
    uint32_t n;
    uint8_t last[OFFSET_ENTRY_BYTES];
    *position = 0;
    enum err err =
        search(s, at, INDEX_OFFSET, index_at_most, offset - s->head.base_offset, &n, last);
    if (err == ERR_NONE && n > 0)
        *position = be32(last + 4);
    return err;
}

enum err segment_time_floor(struct segment *s, struct segment_dir at, int64_t timestamp,
                            int64_t *offset)
{
    uint32_t n;
    uint8_t last[TIME_ENTRY_BYTES];
    *offset = s->head.base_offset;
    enum err err = search(s, at, INDEX_TIME, time_at_most, timestamp, &n, last);
    if (err == ERR_NONE && n > 0)
        *offset += (int32_t)be32(last + 8);
    return err;
}

enum err segment_index_after(struct segment *s, struct segment_dir at, uint64_t from,
                             int64_t *offset, bool *found)
{
    uint32_t n;
    *found = false;
    enum err err = search(s, at, INDEX_OFFSET, index_position_below, (int64_t)from, &n, NULL);
    if (err != ERR_NONE || n == entry_file_n(&s->index[INDEX_OFFSET]))
        return err;
    struct offset_entry_pos e = {0};
    err = segment_index_get(s, at, n, &e);
    *offset = e.offset;
    *found = err == ERR_NONE;
    return err;
}

enum err segment_truncate_indexes(struct segment *s, struct segment_dir at, int64_t x)
{
    int64_t relative = x - s->head.base_offset;
    static const entry_before keep[INDEX_N] = {index_at_most, time_offset_below, txn_last_below};
    int64_t keys[INDEX_N] = {relative - 1, relative, x};
    for (int i = 0; i < INDEX_N; i++) {
        uint32_t n;
        char path[LOG_PATH_MAX];
        if (entry_file_n(&s->index[i]) == 0)
            continue;
        enum err err = search(s, at, (enum segment_index)i, keep[i], keys[i], &n, NULL);
        if (err == ERR_NONE)
            err = path_file(path, at.dir, s->head.base_offset, suffixes[i]);
        if (err == ERR_NONE)
            err = entry_file_truncate(&s->index[i], (struct entry_place){.fs = at.fs, .path = path},
                                      n);
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}
