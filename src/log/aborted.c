/* Aborted transactions for readers of committed data, from the .txnindex files. */
#include "log/array.h"
#include "log/log_impl.h"

/* Offset behind the last record that a span may hold, as Kafka bounds it: by the offset index. */
static enum err upper_bound(struct log *l, const struct log_span *span, size_t segment_idx,
                            int64_t *upper)
{
    struct segment *seg = l->s.segments[segment_idx];
    bool found;
    *upper = segment_idx + 1 < l->s.segments_n ? l->s.segments[segment_idx + 1]->head.base_offset
                                               : l->s.end_offset;
    int64_t offset;
    enum err err =
        segment_index_after(seg, log_files(l), span->position + span->n, &offset, &found);
    if (err == ERR_NONE && found)
        *upper = offset;
    return err;
}

struct found {
    struct arena *a;
    struct log_aborted *v;
    size_t v_n, v_cap;
};

static enum err add(struct found *f, const struct aborted_txn *t)
{
    if (f->v_n == f->v_cap) {
        size_t cap = f->v_cap == 0 ? 8 : 2 * f->v_cap;
        struct log_aborted *v = arena_array(f->a, cap, sizeof *v);
        if (v == NULL)
            return ERR_NOMEM;
        if (f->v_n > 0)
            memcpy(v, f->v, f->v_n * sizeof *v);
        f->v = v;
        f->v_cap = cap;
    }
    f->v[f->v_n++] = (struct log_aborted){t->producer_id, t->first_offset};
    return ERR_NONE;
}

/* *done: no later entry can matter. */
static enum err take_segment(struct log *l, struct segment *seg, int64_t offset, int64_t upper,
                             struct found *f, bool *done)
{
    struct entry_file *e = &seg->index[INDEX_TXN];
    uint32_t i = 0;
    if (entry_file_n(e) == 0)
        return ERR_NONE;
    enum err err = segment_open_index(seg, log_files(l), INDEX_TXN);
    if (err == ERR_NONE && e->written_n > 0)
        err = log_want_cached(l, e->f, seg->head.base_offset, SUFFIX_TXN, 0,
                              (uint64_t)e->written_n * e->entry_bytes);
    if (err == ERR_NONE)
        err = segment_txn_first(seg, log_files(l), offset, &i);
    for (; i < entry_file_n(e) && err == ERR_NONE && !*done; i++) {
        struct aborted_txn t;
        err = segment_txn_get(seg, log_files(l), i, &t);
        if (err != ERR_NONE)
            break;
        if (t.first_offset < upper)
            err = add(f, &t);
        *done = t.last_stable_offset >= upper;
    }
    return err;
}

enum err log_aborted_in(struct log *l, int64_t offset, const struct log_span *span, struct arena *a,
                        struct log_aborted **out, int32_t *n)
{
    struct found f = {.a = a};
    *out = NULL;
    *n = 0;
    if (l->offline)
        return ERR_OFFLINE;
    size_t i = log_state_find(&l->s, span->f == NULL ? offset : span->segment_base);
    int64_t upper;
    enum err err = upper_bound(l, span, i, &upper);
    bool done = false;
    for (; i < l->s.segments_n && err == ERR_NONE && !done; i++)
        err = take_segment(l, l->s.segments[i], offset, upper, &f, &done);
    if (err != ERR_NONE)
        return err;
    *out = f.v;
    *n = (int32_t)f.v_n;
    return ERR_NONE;
}
