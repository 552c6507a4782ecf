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

/* Where a batch with a sequence was written: more than once, in logs that parted. */
struct mirror_sent {
    struct mirror_sent *next;
    int64_t base;
    int32_t epoch;
};

struct sent_key {
    int64_t producer_id;
    int32_t producer_epoch, sequence;
};

void mirror_book_init(struct mirror_book *b)
{
    map_init(&b->batches, 1);
    map_init(&b->sent, 1);
}

static void free_sent(struct mirror_sent *s)
{
    while (s != NULL) {
        struct mirror_sent *const next = s->next;
        free(s);
        s = next;
    }
}

void mirror_book_close(struct mirror_book *b)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&b->batches, e)) != NULL)
        free(map_value(e));
    e = NULL;
    while ((e = map_next(&b->sent, e)) != NULL)
        free_sent(map_value(e));
    map_close(&b->batches);
    map_close(&b->sent);
}

void mirror_close(struct mirror *m)
{
    __real_free(m->v);
}

void mirror_append(struct mirror *m, const struct mirror_batch *b)
{
    if (m->n == m->cap) {
        m->cap = m->cap == 0 ? 64 : m->cap * 2;
        m->v = __real_realloc(m->v, m->cap * sizeof *m->v);
        CHECK(m->v != NULL);
    }
    m->v[m->n++] = *b;
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

static bool holds(const struct mirror *m, int64_t base, int32_t epoch)
{
    const ptrdiff_t at = mirror_find(m, base);
    return at >= 0 && m->v[at].base == base && m->v[at].epoch == epoch;
}

/* 14: what a producer sends again stands once in a log. */
static void write_sent(struct mirror_book *book, const struct mirror *m, const struct batch *b,
                       const char *what, size_t node)
{
    const struct sent_key key = {b->producer_id, b->producer_epoch, b->base_sequence};
    struct mirror_sent *const first = map_get(&book->sent, &key, sizeof key);
    bool known = false;
    for (const struct mirror_sent *s = first; s != NULL; s = s->next) {
        const bool same = s->base == b->base_offset && s->epoch == b->leader_epoch;
        known |= same;
        if (!same && holds(m, s->base, s->epoch))
            violation("%s: node %zu has sequence %d of producer %lld at offset %lld and again at "
                      "%lld (14)",
                      what, node + 1, b->base_sequence, (long long)b->producer_id,
                      (long long)s->base, (long long)b->base_offset);
    }
    if (known)
        return;
    struct mirror_sent *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    *s = (struct mirror_sent){first, b->base_offset, b->leader_epoch};
    CHECK(map_put(&book->sent, &key, sizeof key, s) == ERR_NONE);
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

uint64_t mirror_hash(const struct batch *b)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < b->size_bytes; i++)
        h = (h ^ b->p[i]) * 0x100000001b3u;
    return h;
}

static void take_batch(struct mirror *m, struct mirror_book *book, const struct world *w,
                       const struct batch *b, struct log *log, const char *what)
{
    const struct mirror_batch *last = m->n > 0 ? &m->v[m->n - 1] : NULL;
    const struct mirror_batch mine = {b->base_offset, batch_next_offset(b), b->leader_epoch,
                                      mirror_hash(b)};
    if (last != NULL && (mine.base < last->next || mine.epoch < last->epoch))
        violation("%s: node %zu has offset %lld of epoch %d behind the end %lld of epoch %d", what,
                  w->index + 1, (long long)mine.base, mine.epoch, (long long)last->next,
                  last->epoch);
    const int32_t floor = epoch_cache_floor(log_epochs(log), mine.base);
    /* -1: before its first entry. A start that was raised and is forgotten by a crash is not
     * forgotten by the epoch file. */
    if (floor >= 0 && floor != mine.epoch)
        violation("%s: node %zu: the epoch cache says %d of offset %lld, its batch %d (3)", what,
                  w->index + 1, floor, (long long)mine.base, mine.epoch);
    write_page(book, &mine, last, what, w->index);
    if (b->producer_id >= 0)
        write_sent(book, m, b, what, w->index);
    mirror_append(m, &mine);
}

/* From the mirror's end to the log's. */
static bool read_new(struct mirror *m, struct mirror_book *book, struct world *w, struct log *log,
                     int64_t from, const char *what)
{
    static uint8_t chunk[16 * CHUNK_BYTES];
    struct reading r = {.log = log, .offset = from, .to = chunk};
    const long planned = w->crash_at_op;
    const struct memfs_fault armed = w->fs.fault;
    w->crash_at_op = w->fs.fault.nth = 0; /* looking is nothing that the node does */
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
    w->fs.fault = armed;
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
    /* it may have written more in its first turn; one that is empty has no place of its own */
    if (life == MIRROR_KILLED && end < m->end && m->end > m->start)
        violation("%s: node %zu was killed with end %lld and comes back with %lld", what,
                  w->index + 1, (long long)m->end, (long long)end);
    /* a start that was raised counts as synced: nothing below it matters */
    if (life == MIRROR_POWER && end < m->flushed && m->flushed > m->start)
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

/* ------------------------------------------------------------------ the epoch cache (3) */

static bool same_entry(const struct epoch_entry *a, const struct epoch_entry *b)
{
    return a->epoch == b->epoch && a->start_offset == b->start_offset;
}

static bool cache_is_as_compared(const struct mirror *m, const struct epoch_cache *c)
{
    return c->n == m->epochs_n && (c->n == 0 || (same_entry(&c->v[0], &m->first) &&
                                                 same_entry(&c->v[c->n - 1], &m->last)));
}

/* Only a start that was raised may cut an entry off in the middle of a batch. */
static void check_entry(const struct mirror *m, const struct epoch_cache *c, size_t k,
                        const char *what, size_t node)
{
    const struct epoch_entry *e = &c->v[k];
    const ptrdiff_t at = mirror_find(m, e->start_offset);
    if (k > 0 && (e->epoch <= e[-1].epoch || e->start_offset <= e[-1].start_offset))
        violation("%s: node %zu: the epoch cache has epoch %d at %lld behind epoch %d at %lld (3)",
                  what, node + 1, e->epoch, (long long)e->start_offset, e[-1].epoch,
                  (long long)e[-1].start_offset);
    if (k > 0 && at >= 0 && m->v[at].base != e->start_offset)
        violation("%s: node %zu: epoch %d begins at %lld, inside the batch at %lld (3)", what,
                  node + 1, e->epoch, (long long)e->start_offset, (long long)m->v[at].base);
}

static void check_epochs(struct mirror *m, const struct log *log, const char *what, size_t node)
{
    const struct epoch_cache *c = log_epochs(log);
    if (cache_is_as_compared(m, c))
        return;
    if (c->n > 0 && c->v[c->n - 1].start_offset > log_staged_end(log))
        violation("%s: node %zu: epoch %d begins at %lld, behind the log's end %lld (3)", what,
                  node + 1, c->v[c->n - 1].epoch, (long long)c->v[c->n - 1].start_offset,
                  (long long)log_staged_end(log));
    for (size_t k = 0; k < c->n; k++)
        check_entry(m, c, k, what, node);
    for (size_t k = 0; k < m->n; k++) {
        const int32_t floor = epoch_cache_floor(c, m->v[k].base);
        if (floor >= 0 && floor != m->v[k].epoch)
            violation("%s: node %zu: the epoch cache says %d of offset %lld, its batch %d (3)",
                      what, node + 1, floor, (long long)m->v[k].base, m->v[k].epoch);
    }
    m->epochs_n = c->n;
    if (c->n > 0) {
        m->first = c->v[0];
        m->last = c->v[c->n - 1];
    }
}

bool mirror_look(struct mirror *m, struct mirror_book *b, struct world *w, struct log *log,
                 const char *what, const struct mirror *kept)
{
    static const struct mirror nothing;
    const int64_t start = log_start_offset(log), end = log_end_offset(log);
    bool whole = true;
    if (m->life != MIRROR_SAME) {
        m->behind = true;
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
    m->behind = !whole;
    if (whole)
        check_epochs(m, log, what, w->index);
    return whole;
}
