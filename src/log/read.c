/* Reading: where a batch stands, and how far a reader may go. The latest batches are remembered
 * with their positions, so a read at the tail touches no file; others are found by the offset index
 * and a walk over headers. */
#include "log/log_impl.h"
#include "log/scan.h"

/* ------------------------------------------------------------------ recent batches */

void log_recents_clear(struct log *l)
{
    l->recents_n = 0;
}

void log_recents_add(struct log *l, const struct staged_batch *b, uint64_t position)
{
    l->recents[l->recents_n++ % RECENT_N] =
        (struct recent){b->base_offset, b->last_offset, position, b->size_bytes};
}

/* The first recent batch with last offset >= offset, if it is certain that none is before it. */
static bool recent_find(const struct log *l, int64_t offset, struct recent *out)
{
    const struct recent *v = l->recents;
    const uint32_t n = l->recents_n;
    if (n == 0)
        return false;
    uint32_t first = n > RECENT_N ? n - RECENT_N : 0;
    const struct recent *before = &v[first % RECENT_N];
    if (before->base_offset > offset)
        return false;
    for (uint32_t i = first; i < n; i++) {
        if (v[i % RECENT_N].last_offset >= offset) {
            *out = v[i % RECENT_N];
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ positions */

/* Where to begin to walk. What of the index is not in memory is read whole by a job. */
static enum err floor_of(struct log *l, struct segment *seg, int64_t offset, bool wait,
                         uint64_t *position)
{
    const struct entry_file *e = &seg->index[INDEX_OFFSET];
    struct segment_dir at = log_files(l);
    at.now = !wait;
    enum err err = segment_floor(seg, at, offset, position);
    if (err == ERR_AGAIN && at.now) {
        err = log_want_cached(l, e->f, seg->head.base_offset, SUFFIX_INDEX, 0,
                              (uint64_t)e->written_n * e->entry_bytes);
        at.now = false;
        if (err == ERR_NONE)
            err = segment_floor(seg, at, offset, position);
    }
    return err;
}

static enum err next_header(struct log *l, struct segment *seg, struct scan *sc, struct batch *b,
                            uint64_t *position, bool *more)
{
    enum err err = scan_next(sc, b, position, more);
    if (err == ERR_AGAIN && sc->now) {
        const uint64_t left = sc->end - sc->at;
        err = log_want_cached(l, seg->log, seg->head.base_offset, SUFFIX_LOG, sc->at,
                              left < sc->cap ? left : sc->cap);
        sc->now = false;
        if (err == ERR_NONE)
            err = scan_next(sc, b, position, more);
        sc->now = true;
    }
    return err;
}

static enum err walk(struct log *l, struct segment *seg, uint64_t from, int64_t offset, bool wait,
                     struct recent *out, bool *found)
{
    uint8_t buf[SCAN_HEAD_BYTES];
    struct scan sc;
    scan_init(&sc, seg->log, from, seg->head.size_bytes, buf, sizeof buf);
    sc.now = !wait;
    for (;;) {
        struct batch b;
        bool more;
        enum err err = next_header(l, seg, &sc, &b, &out->position, &more);
        if (err != ERR_NONE || !more)
            return err;
        if (batch_last_offset(&b) < offset)
            continue;
        out->base_offset = b.base_offset;
        out->last_offset = batch_last_offset(&b);
        out->size_bytes = b.size_bytes;
        *found = true;
        return ERR_NONE;
    }
}

static enum err locate(struct log *l, struct segment *seg, int64_t offset, bool wait,
                       struct recent *out, bool *found)
{
    *found = false;
    if (seg->head.size_bytes == 0)
        return ERR_NONE;
    if (seg == log_active(l) && recent_find(l, offset, out)) {
        *found = true;
        return ERR_NONE;
    }
    uint64_t from;
    enum err err = segment_open(seg, log_files(l));
    if (err == ERR_NONE)
        err = floor_of(l, seg, offset, wait, &from);
    if (err != ERR_NONE)
        return err;
    if (from > seg->head.size_bytes)
        from = 0; /* an index that lies: the walk finds it all the same */
    return walk(l, seg, from, offset, wait, out, found);
}

enum err log_locate(struct log *l, struct segment *seg, int64_t offset, struct recent *out,
                    bool *found)
{
    return locate(l, seg, offset, false, out, found);
}

enum err log_locate_now(struct log *l, struct segment *seg, int64_t offset, struct recent *out,
                        bool *found)
{
    return locate(l, seg, offset, true, out, found);
}

/* Position behind the last byte that a reader bounded by limit may have. */
static enum err limit_position(struct log *l, struct segment *seg, int64_t limit, uint64_t from,
                               uint64_t want, uint64_t *out)
{
    *out = seg->head.size_bytes;
    bool active = seg == log_active(l);
    if (active && limit >= l->s.end_offset)
        return ERR_NONE;
    if (!active &&
        limit >= l->s.segments[log_state_find(&l->s, seg->head.base_offset) + 1]->head.base_offset)
        return ERR_NONE;
    /* Far enough below the remembered tail: how far exactly does not matter. */
    const uint32_t n = l->recents_n;
    if (active && n > 0) {
        const struct recent *oldest = &l->recents[n > RECENT_N ? n % RECENT_N : 0];
        if (limit >= oldest->base_offset && from + want <= oldest->position)
            return ERR_NONE;
    }
    struct recent at;
    bool found;
    enum err err = log_locate(l, seg, limit, &at, &found);
    if (err == ERR_NONE && found)
        *out = at.position;
    return err;
}

/* ------------------------------------------------------------------ reads */

/* The first batch that ends at or behind offset, in whatever segment. */
static enum err find_first(struct log *l, int64_t offset, struct segment **seg,
                           struct recent *first, bool *found)
{
    *found = false;
    enum err err = ERR_NONE;
    for (size_t i = log_state_find(&l->s, offset); i < l->s.segments_n && !*found; i++) {
        *seg = l->s.segments[i];
        err = log_locate(l, *seg, offset, first, found);
        if (err != ERR_NONE)
            break;
    }
    return err;
}

enum err log_read(struct log *l, int64_t offset, int64_t limit, uint32_t max_bytes, bool min_one,
                  struct log_span *out)
{
    *out = (struct log_span){0};
    if (l->offline)
        return ERR_OFFLINE;
    if (offset < l->s.start_offset || offset > l->s.end_offset)
        return ERR_RANGE;
    if (limit > l->s.end_offset)
        limit = l->s.end_offset;
    if (offset >= limit)
        return ERR_NONE;
    struct segment *seg;
    struct recent first;
    bool found;
    enum err err = find_first(l, offset, &seg, &first, &found);
    if (err != ERR_NONE || !found || first.base_offset >= limit)
        return err;
    uint64_t end, want = max_bytes;
    if (min_one && want < first.size_bytes)
        want = first.size_bytes;
    err = limit_position(l, seg, limit, first.position, want, &end);
    if (err == ERR_NONE)
        err = segment_open(seg, log_files(l));
    if (err != ERR_NONE)
        return err;
    out->segment_base = seg->head.base_offset;
    out->position = first.position;
    out->f = seg->log;
    out->generation = seg->log->generation;
    if (end <= first.position)
        return ERR_NONE; /* the batch that contains the limit */
    out->first_batch_bytes = first.size_bytes;
    uint64_t n = end - first.position < want ? end - first.position : want;
    if (n < first.size_bytes)
        return ERR_NONE; /* does not fit */
    out->n = (uint32_t)n;
    return log_want_cached(l, seg->log, seg->head.base_offset, SUFFIX_LOG, out->position, out->n);
}

enum err log_span_read(const struct log_span *s, void *p, size_t n)
{
    size_t got;
    if (n > s->n)
        n = s->n;
    if (n == 0)
        return ERR_NONE;
    if (s->f->generation != s->generation)
        return ERR_CLOSED;
    enum err err = s->f->fs->ops->pread(s->f, p, n, s->position, &got);
    return err == ERR_NONE && got < n ? ERR_TRUNCATED : err;
}
