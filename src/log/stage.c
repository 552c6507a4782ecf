/* Staging. A batch gets its offsets here, the producer state and the epoch cache move on, and what
 * is needed to undo that is kept until the batch is written. Staged batches may belong to several
 * segments: a staged_roll says where the next begins, with the producer snapshot of that moment;
 * the files are touched by log_write alone.
 *
 * Every step that can fail comes before the first that changes something. */
#include <stdlib.h>

#include "base/check.h"
#include "log/array.h"
#include "log/log_impl.h"
#include "wire/error.h"

struct stage *stage_new(void)
{
    struct stage *st = calloc(1, sizeof *st);
    if (st == NULL)
        return NULL;
    st->assigned_epoch = -1;
    buf_init(&st->copy);
    return st;
}

void stage_free(struct stage *st)
{
    free(st->batches);
    free(st->pieces);
    free(st->rolls);
    free(st->producers);
    free(st->epochs);
    buf_close(&st->copy);
    free(st);
}

/* Keeps small arrays, so that the next log to stage does not allocate. */
#define KEEP_N 16
#define KEEP_COPY_BYTES 1024
#define SHRINK(a)                                                                                  \
    do {                                                                                           \
        a##_n = 0;                                                                                 \
        if (a##_cap > KEEP_N) {                                                                    \
            free(a);                                                                               \
            (a) = NULL;                                                                            \
            a##_cap = 0;                                                                           \
        }                                                                                          \
    } while (0)

void stage_reset(struct log *l)
{
    struct stage *st = l->stage;
    if (st == NULL)
        return;
    for (size_t i = 0; i < st->rolls_n; i++)
        buf_close(&st->rolls[i].snapshot);
    for (size_t i = 0; i < st->epochs_n; i++)
        epoch_cache_close(&st->epochs[i].before);
    SHRINK(st->batches);
    SHRINK(st->pieces);
    SHRINK(st->rolls);
    SHRINK(st->producers);
    SHRINK(st->epochs);
    st->copy.n = 0;
    if (st->copy.cap > KEEP_COPY_BYTES)
        buf_close(&st->copy);
    budget_give(l->budget, st->charged_bytes);
    st->charged_bytes = 0;
    st->bytes = 0;
    st->assigned_epoch = -1;
    l->stage = NULL;
    log_stages_give(l->stages, st);
}

static void restore_epochs(struct log *l, size_t from)
{
    struct stage *st = l->stage;
    size_t i = 0;
    while (i < st->epochs_n && st->epochs[i].batch_idx < from)
        i++;
    if (i == st->epochs_n)
        return;
    struct epoch_cache dropped = l->s.epochs;
    l->s.epochs = st->epochs[i].before;
    l->s.epochs_dirty = true; /* a sync may have written them meanwhile */
    st->epochs[i].before = dropped;
    if (st->assigned_epoch < 0)
        return;
    /* Copies have room for one more entry. */
    int64_t start = st->assigned_start < l->s.end_offset ? st->assigned_start : l->s.end_offset;
    enum err err = epoch_cache_assign(&l->s.epochs, st->assigned_epoch, start, NULL);
    CHECK(err == ERR_NONE);
}

void stage_cut(struct log *l, size_t from)
{
    struct stage *st = l->stage;
    if (st == NULL)
        return;
    for (size_t i = st->producers_n; i > 0 && st->producers[i - 1].batch_idx >= from; i--)
        producer_state_undo(&l->s.producers, &st->producers[i - 1].undo);
    restore_epochs(l, from);
    stage_reset(l);
}

/* ------------------------------------------------------------------ one batch */

struct staging {
    struct batch b; /* at its offsets */
    bool copy;
    bool roll;
    bool producer;
    bool is_marker;
    struct txn_marker marker;
};

static enum err reserve(struct log *l, const struct staging *g)
{
    struct stage *st = l->stage;
    enum err err = ARRAY_ROOM(st->batches);
    if (err == ERR_NONE)
        err = ARRAY_ROOM(st->pieces);
    if (err == ERR_NONE)
        err = ARRAY_ROOM(st->rolls);
    if (err == ERR_NONE)
        err = ARRAY_ROOM(st->producers);
    if (err == ERR_NONE)
        err = ARRAY_ROOM(st->epochs);
    if (err == ERR_NONE && g->copy)
        err = buf_reserve(&st->copy, g->b.size_bytes);
    if (err == ERR_NONE && g->copy && !budget_take(l->budget, g->b.size_bytes))
        err = ERR_NOMEM;
    return err;
}

/* The epoch cache as the batch asks; the state before is kept. */
static enum err stage_epoch(struct log *l, const struct batch *b)
{
    struct stage *st = l->stage;
    struct epoch_cache *c = &l->s.epochs;
    if (b->magic < 2 || b->leader_epoch < 0 ||
        (c->n > 0 && c->v[c->n - 1].epoch == b->leader_epoch &&
         c->v[c->n - 1].start_offset <= b->base_offset))
        return ERR_NONE;
    struct staged_epochs *e = &st->epochs[st->epochs_n];
    *e = (struct staged_epochs){.batch_idx = st->batches_n};
    enum err err = epoch_cache_copy(c, &e->before);
    if (err != ERR_NONE)
        return err;
    err = epoch_cache_assign(c, b->leader_epoch, b->base_offset, NULL);
    if (err != ERR_NONE) {
        epoch_cache_close(&e->before);
        return err;
    }
    st->epochs_n++;
    l->s.epochs_dirty = true;
    return ERR_NONE;
}

static enum err stage_producer(struct log *l, const struct staging *g)
{
    struct stage *st = l->stage;
    struct staged_producer *p = &st->producers[st->producers_n];
    if (!g->producer)
        return ERR_NONE;
    p->batch_idx = st->batches_n;
    enum err err = producer_state_append(&l->s.producers, &g->b, g->is_marker ? &g->marker : NULL,
                                         &p->undo, &p->aborted);
    if (err == ERR_NONE)
        st->producers_n++;
    return err;
}

static void stage_bytes(struct stage *st, const struct staging *g)
{
    const struct batch *b = &g->b;
    struct staged_piece piece = {b->p, 0, b->size_bytes};
    if (g->copy) {
        memcpy(st->copy.p + st->copy.n, b->p, b->size_bytes);
        piece.p = NULL;
        piece.copy_at = st->copy.n;
        st->copy.n += b->size_bytes;
        st->charged_bytes += b->size_bytes;
    }
    struct staged_piece *last = st->pieces_n > 0 && !g->roll ? &st->pieces[st->pieces_n - 1] : NULL;
    bool follows =
        last != NULL && (last->p == NULL) == (piece.p == NULL) &&
        (piece.p == NULL ? last->copy_at + last->n == piece.copy_at : last->p + last->n == piece.p);
    if (follows)
        last->n += piece.n;
    else
        st->pieces[st->pieces_n++] = piece;
    st->bytes += piece.n;
}

/* A failure leaves everything as it was. */
static enum err add_batch(struct log *l, struct staging *g)
{
    struct stage *st = l->stage;
    struct staged_roll roll = {.batch_idx = st->batches_n, .piece_idx = st->pieces_n};
    struct segment_head head = st->batches_n == 0 ? log_active(l)->head : st->head;
    int64_t last = batch_last_offset(&g->b);
    enum err err = reserve(l, g);
    if (err != ERR_NONE)
        return err;
    g->roll = segment_head_full(&head, &l->config, last, g->b.max_timestamp, g->b.size_bytes,
                                l->now.wall_ms) ||
              (head.size_bytes == 0 && segment_head_overflows(&head, last));
    buf_init(&roll.snapshot);
    if (g->roll) {
        /* Without a gap between segments recovery sees that none is missing. */
        int64_t end = log_staged_end(l);
        log_new_head(l, last - end > INT32_MAX ? g->b.base_offset : end, &roll.head);
        head = roll.head;
        err = producer_snapshot_encode(&l->s.producers, &roll.snapshot);
        if (err != ERR_NONE)
            goto err_after_reserve;
    }
    err = stage_producer(l, g);
    if (err != ERR_NONE)
        goto err_after_reserve;
    err = stage_epoch(l, &g->b);
    if (err != ERR_NONE)
        goto err_after_producer;

    (void)segment_head_add(&head, &l->config, last, g->b.max_timestamp, g->b.size_bytes);
    st->head = head;
    if (g->roll)
        st->rolls[st->rolls_n++] = roll;
    stage_bytes(st, g);
    st->batches[st->batches_n++] =
        (struct staged_batch){g->b.base_offset, last, g->b.max_timestamp, g->b.size_bytes};
    st->end_offset = last + 1;
    return ERR_NONE;

err_after_producer:
    if (g->producer)
        producer_state_undo(&l->s.producers, &st->producers[--st->producers_n].undo);
err_after_reserve:
    buf_close(&roll.snapshot);
    if (g->copy)
        budget_give(l->budget, g->b.size_bytes);
    return err;
}

/* Takes the batch; a failure leaves everything as it was. */
static enum err stage_batch(struct log *l, struct staging *g)
{
    if (l->stage == NULL) {
        l->stage = log_stages_take(l->stages);
        if (l->stage == NULL)
            return ERR_NOMEM;
        l->stage->end_offset = l->s.end_offset;
    }
    enum err err = add_batch(l, g);
    if (l->stage->batches_n == 0)
        stage_reset(l);
    return err;
}

/* A full stage is written first. Without a directory that has to wait, up to LIMIT_STAGE_BYTES. */
static enum err make_room(struct log *l, uint32_t size_bytes)
{
    struct stage *st = l->stage;
    if (st == NULL)
        return ERR_NONE;
    bool many = st->pieces_n >= LIMIT_STAGE_IOV;
    bool large = st->bytes > 0 && st->bytes + size_bytes > LIMIT_STAGE_BYTES;
    if (!many && !large)
        return ERR_NONE;
    enum err err = log_write(l, l->now);
    if (err == ERR_AGAIN)
        return large ? ERR_NOMEM : ERR_NONE;
    return err;
}

/* ------------------------------------------------------------------ leader */

static enum err look_at_producer(struct log *l, struct staging *g, enum log_origin origin,
                                 struct log_staged *out)
{
    g->producer = g->b.producer_id >= 0;
    if (!g->producer)
        return ERR_NONE;
    if ((g->b.attributes & BATCH_CONTROL) != 0) {
        enum err err = txn_marker_read(&g->b, &g->marker, &g->is_marker);
        if (err != ERR_NONE)
            return err;
        g->producer = g->is_marker;
    }
    if (!g->producer)
        return ERR_NONE;
    const struct producer_batch *dup;
    out->kafka_error = producer_state_check(&l->s.producers, &g->b,
                                            g->is_marker ? &g->marker : NULL, origin, &dup);
    if (out->kafka_error != K_NONE)
        return ERR_INVALID;
    if (dup != NULL) {
        out->duplicate = true;
        out->base_offset = dup->last_offset - dup->offset_delta;
        out->last_offset = dup->last_offset;
        out->duplicate_max_timestamp = dup->timestamp;
    }
    return ERR_NONE;
}

enum err log_stage_leader(struct log *l, uint8_t *p, const struct batch *facts,
                          int32_t leader_epoch, enum log_origin origin, struct now now,
                          struct log_staged *out)
{
    CHECK(facts->magic == 2 && facts->last_offset_delta >= 0 &&
          facts->size_bytes >= BATCH_OVERHEAD);
    l->now = now;
    *out = (struct log_staged){
        .base_offset = -1, .last_offset = -1, .duplicate_max_timestamp = -1, .kafka_error = K_NONE};
    if (l->offline)
        return ERR_OFFLINE;
    struct staging g = {.b = *facts, .copy = facts->size_bytes < LIMIT_STAGE_COPY_BYTES};
    g.b.p = p;
    enum err err = look_at_producer(l, &g, origin, out);
    if (err != ERR_NONE || out->duplicate)
        return err;
    err = make_room(l, facts->size_bytes);
    if (err != ERR_NONE)
        return err;
    g.b.base_offset = log_staged_end(l);
    g.b.leader_epoch = leader_epoch;
    if (g.b.base_offset > INT64_MAX - 1 - facts->last_offset_delta)
        return ERR_RANGE;
    batch_set_base_offset(p, g.b.base_offset);
    batch_set_leader_epoch(p, leader_epoch);
    err = stage_batch(l, &g);
    if (err != ERR_NONE)
        return err;
    out->base_offset = g.b.base_offset;
    out->last_offset = batch_last_offset(&g.b);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ follower */

/* The batch at in, which may follow `end`. ERR_TRUNCATED: not all of it is there. */
static enum err check_batch(struct bytes in, int64_t end, struct batch *b)
{
    enum err err = batch_parse(in, b);
    if (err != ERR_NONE)
        return err;
    return batch_follows(b, end) && batch_crc_ok(b) ? ERR_NONE : ERR_CORRUPT;
}

/* Length of the whole batches in `in` that may be appended. */
static enum err check_all(const struct log *l, struct bytes in, int32_t max_epoch, size_t *n)
{
    int64_t end = log_staged_end(l);
    *n = 0;
    while (*n < (size_t)in.n) {
        struct batch b;
        struct bytes rest = {in.p + *n, in.n - (int32_t)*n};
        enum err err = check_batch(rest, end, &b);
        if (err == ERR_TRUNCATED)
            return ERR_NONE;
        if (err != ERR_NONE)
            return err;
        if (b.leader_epoch > max_epoch)
            return ERR_NONE;
        end = batch_next_offset(&b);
        *n += b.size_bytes;
    }
    return ERR_NONE;
}

static enum err stage_next(struct log *l, struct bytes in, size_t *size_bytes)
{
    struct staging g = {0};
    enum err err = batch_parse(in, &g.b);
    CHECK(err == ERR_NONE); /* looked at before */
    *size_bytes = g.b.size_bytes;
    g.copy = g.b.size_bytes < LIMIT_STAGE_COPY_BYTES;
    g.producer = g.b.producer_id >= 0;
    if (g.producer && (g.b.attributes & BATCH_CONTROL) != 0) {
        err = txn_marker_read(&g.b, &g.marker, &g.is_marker);
        g.producer = g.is_marker;
    }
    if (err == ERR_NONE)
        err = make_room(l, g.b.size_bytes);
    return err == ERR_NONE ? stage_batch(l, &g) : err;
}

enum err log_stage_follower(struct log *l, struct bytes in, int32_t max_epoch, struct now now,
                            size_t *appended_bytes)
{
    l->now = now;
    *appended_bytes = 0;
    if (l->offline)
        return ERR_OFFLINE;
    size_t n;
    enum err err = check_all(l, in, max_epoch, &n);
    if (err != ERR_NONE)
        return err;
    while (*appended_bytes < n) {
        size_t size;
        struct bytes rest = {in.p + *appended_bytes, (int32_t)(n - *appended_bytes)};
        err = stage_next(l, rest, &size);
        if (err == ERR_NOMEM && l->stage != NULL && *appended_bytes > 0)
            return ERR_NONE; /* the rest comes with the next fetch */
        if (err != ERR_NONE) {
            *appended_bytes = 0; /* what was staged before was cut with that write */
            return err;
        }
        *appended_bytes += size;
    }
    return ERR_NONE;
}
