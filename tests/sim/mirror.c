#include "mirror.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "log/log.h"
#include "support/node/model.h"
#include "support/real_alloc.h"

enum { CHUNK_BYTES = 256 << 10 };

/* A batch in the book, and what stands before it. */
struct mirror_page {
    uint64_t hash;
    bool before_known;
    int64_t before_base;
    int32_t before_epoch;
};

struct page_key {
    int64_t base;
    int64_t epoch;
};

void mirror_book_init(struct mirror_book *b)
{
    map_init(&b->batches, 1);
}

void mirror_book_close(struct mirror_book *b)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&b->batches, e)) != NULL)
        free(map_value(e));
    map_close(&b->batches);
}

void mirror_close(struct mirror *m)
{
    __real_free(m->v);
}

ptrdiff_t mirror_find(const struct mirror *m, int64_t offset)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (m->v[mid].next <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->n && m->v[lo].base <= offset ? (ptrdiff_t)lo : -1;
}

/* ------------------------------------------------------------------ the book */

static void write_page(struct mirror_book *b, const struct mirror_batch *at,
                       const struct mirror_batch *before, const char *what, size_t node)
{
    const struct page_key key = {at->base, at->epoch};
    struct mirror_page *page = map_get(&b->batches, &key, sizeof key);
    if (page == NULL) {
        page = calloc(1, sizeof *page);
        CHECK(page != NULL && map_put(&b->batches, &key, sizeof key, page) == ERR_NONE);
        page->hash = at->hash;
    }
    if (page->hash != at->hash)
        violation("%s: node %zu has another batch at offset %lld of epoch %d than there was", what,
                  node + 1, (long long)at->base, at->epoch);
    if (before == NULL)
        return;
    if (!page->before_known) {
        page->before_known = true;
        page->before_base = before->base;
        page->before_epoch = before->epoch;
    }
    if (page->before_base != before->base || page->before_epoch != before->epoch)
        violation(
            "%s: before offset %lld of epoch %d node %zu has offset %lld of epoch %d, another "
            "had offset %lld of epoch %d",
            what, (long long)at->base, at->epoch, node + 1, (long long)before->base, before->epoch,
            (long long)page->before_base, page->before_epoch);
}

/* ------------------------------------------------------------------ reading a log, inside its node
 */

struct reading {
    struct log *log;
    int64_t offset;
    uint8_t *to;
    size_t n;
    enum err err;
};

static void read_some(void *ctx)
{
    struct reading *r = ctx;
    struct log_span span;
    r->n = 0;
    r->err = log_read(r->log, r->offset, log_end_offset(r->log), CHUNK_BYTES, true, &span);
    if (r->err != ERR_NONE || span.n == 0)
        return;
    CHECK(span.n <= 16 * CHUNK_BYTES);
    r->err = log_span_read(&span, r->to, span.n);
    if (r->err == ERR_NONE)
        r->n = span.n;
}

static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static void append(struct mirror *m, const struct mirror_batch *b)
{
    if (m->n == m->cap) {
        m->cap = m->cap == 0 ? 64 : m->cap * 2;
        m->v = __real_realloc(m->v, m->cap * sizeof *m->v);
        CHECK(m->v != NULL);
    }
    m->v[m->n++] = *b;
}

static void take_batch(struct mirror *m, struct mirror_book *book, const struct world *w,
                       const struct batch *b, struct log *log, const char *what)
{
    const struct mirror_batch *last = m->n > 0 ? &m->v[m->n - 1] : NULL;
    const struct mirror_batch mine = {b->base_offset, batch_next_offset(b), b->leader_epoch,
                                      hash_bytes(b->p, b->size_bytes)};
    if (last != NULL && (mine.base < last->next || mine.epoch < last->epoch))
        violation("%s: node %zu has offset %lld of epoch %d behind the end %lld of epoch %d", what,
                  w->index + 1, (long long)mine.base, mine.epoch, (long long)last->next,
                  last->epoch);
    const int32_t floor = epoch_cache_floor(log_epochs(log), mine.base);
    /* -1: before its first entry. A start that was raised and is forgotten by a crash is not
     * forgotten by the epoch file. */
    if (floor >= 0 && floor != mine.epoch)
        violation("%s: node %zu: the epoch cache says %d of offset %lld, its batch %d", what,
                  w->index + 1, floor, (long long)mine.base, mine.epoch);
    write_page(book, &mine, last, what, w->index);
    append(m, &mine);
}

/* From the mirror's end to the log's. */
static bool read_new(struct mirror *m, struct mirror_book *book, struct world *w, struct log *log,
                     int64_t from, const char *what)
{
    static uint8_t chunk[16 * CHUNK_BYTES];
    struct reading r = {.log = log, .offset = from, .to = chunk};
    const long planned = w->crash_at_op;
    w->crash_at_op = 0; /* looking is nothing that the node does */
    while (r.offset < log_end_offset(log)) {
        struct batch b;
        world_inside(w, read_some, &r);
        if (r.err == ERR_AGAIN)
            break; /* an index is not in the page cache */
        if (r.err != ERR_NONE || r.n == 0)
            violation("%s: node %zu cannot read its log at offset %lld of [%lld, %lld): %s", what,
                      w->index + 1, (long long)r.offset, (long long)log_start_offset(log),
                      (long long)log_end_offset(log), err_name(r.err));
        struct bytes in = {chunk, (int32_t)r.n};
        while (in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
            r.offset = batch_next_offset(&b);
            take_batch(m, book, w, &b, log, what);
        }
    }
    w->crash_at_op = planned;
    return r.offset >= log_end_offset(log);
}

/* ------------------------------------------------------------------ what is gone */

static void cut_end(struct mirror *m, int64_t end, const struct mirror *kept, const struct world *w,
                    const char *what)
{
    while (m->n > 0 && m->v[m->n - 1].next > end) {
        const struct mirror_batch *last = &m->v[--m->n];
        const ptrdiff_t at = mirror_find(kept, last->base);
        if (at >= 0 && kept->v[at].base == last->base && kept->v[at].hash == last->hash)
            violation(
                "%s: node %zu cuts to %lld, and with it the committed batch at offset %lld of "
                "epoch %d (24, Q8)",
                what, w->index + 1, (long long)end, (long long)last->base, last->epoch);
    }
}

static void cut_start(struct mirror *m, int64_t start)
{
    size_t k = 0;
    while (k < m->n && m->v[k].next <= start)
        k++;
    if (k > 0)
        memmove(m->v, m->v + k, (m->n - k) * sizeof *m->v);
    m->n -= k;
}

/* After a restart everything is read again. */
static bool compare_restart(struct mirror *m, struct mirror_book *book, struct world *w,
                            struct log *log, const char *what)
{
    struct mirror now = {0};
    const int64_t start = log_start_offset(log), end = log_end_offset(log);
    const enum mirror_life life = m->life;
    if (life == MIRROR_KILLED && end != m->end)
        violation("%s: node %zu was killed with end %lld and comes back with %lld", what,
                  w->index + 1, (long long)m->end, (long long)end);
    if (life == MIRROR_POWER && end < m->flushed)
        violation("%s: node %zu had synced up to %lld and comes back with %lld", what, w->index + 1,
                  (long long)m->flushed, (long long)end);
    if (!read_new(&now, book, w, log, start, what)) {
        mirror_close(&now);
        return false;
    }
    for (size_t i = 0; life != MIRROR_NEW && i < now.n; i++) {
        const ptrdiff_t at = mirror_find(m, now.v[i].base);
        if (at >= 0 && (m->v[at].base != now.v[i].base || m->v[at].hash != now.v[i].hash))
            violation("%s: node %zu comes back with another batch at offset %lld", what,
                      w->index + 1, (long long)now.v[i].base);
    }
    mirror_close(m);
    *m = now;
    return true;
}

bool mirror_look(struct mirror *m, struct mirror_book *b, struct world *w, struct log *log,
                 const char *what, const struct mirror *kept)
{
    static const struct mirror nothing;
    const int64_t start = log_start_offset(log), end = log_end_offset(log);
    bool whole = true;
    if (m->life != MIRROR_SAME) {
        if (!compare_restart(m, b, w, log, what))
            return false;
    } else {
        if (end < m->end) /* behind a new start it was not cut, but left behind */
            cut_end(m, end, start > end ? &nothing : kept, w, what);
        if (start != m->start)
            cut_start(m, start);
        const int64_t from = m->n > 0 ? m->v[m->n - 1].next : start;
        if (from < end)
            whole = read_new(m, b, w, log, from, what);
    }
    m->life = MIRROR_SAME;
    m->start = start;
    m->end = m->n > 0 ? m->v[m->n - 1].next : end;
    m->flushed = log_flushed_end(log);
    return whole;
}
