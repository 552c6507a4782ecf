/* Producers in an array sorted by id (ids are handed out rising, so new ones come last), each entry
 * on its own so that pointers last. Transactions are few and sit in arrays sorted by first offset.
 * Arrays never shrink, which is why an undo needs no memory. */
#include "log/producer_state.h"

#include <stdlib.h>

#include "base/check.h"
#include "log/array.h"
#include "wire/error.h"

void producer_state_init(struct producer_state *ps, struct budget *budget)
{
    *ps = (struct producer_state){.budget = budget};
}

void producer_state_clear(struct producer_state *ps)
{
    for (size_t i = 0; i < ps->n; i++)
        free(ps->v[i]);
    budget_give(ps->budget, ps->n * sizeof(struct producer));
    ps->n = ps->open_n = ps->ended_n = 0;
}

void producer_state_close(struct producer_state *ps)
{
    producer_state_clear(ps);
    free(ps->v);
    free(ps->open);
    free(ps->ended);
    producer_state_init(ps, NULL);
}

enum err producer_state_charge(struct producer_state *ps, struct budget *budget)
{
    CHECK(ps->budget == NULL);
    if (!budget_take(budget, ps->n * sizeof(struct producer)))
        return ERR_NOMEM;
    ps->budget = budget;
    return ERR_NONE;
}

/* Index of the id, or where it would go. */
static size_t place_of(const struct producer_state *ps, int64_t producer_id)
{
    size_t lo = 0, hi = ps->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (ps->v[mid]->producer_id < producer_id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct producer *producer_state_find(const struct producer_state *ps, int64_t producer_id)
{
    size_t i = place_of(ps, producer_id);
    return i < ps->n && ps->v[i]->producer_id == producer_id ? ps->v[i] : NULL;
}

static enum err insert(struct producer_state *ps, int64_t producer_id, struct producer **out)
{
    enum err err = array_room(&ps->v, ps->n, &ps->cap, sizeof *ps->v);
    if (err != ERR_NONE)
        return err;
    if (!budget_take(ps->budget, sizeof(struct producer)))
        return ERR_NOMEM;
    struct producer *p = malloc(sizeof *p);
    if (p == NULL) {
        budget_give(ps->budget, sizeof *p);
        return ERR_NOMEM;
    }
    *p = (struct producer){.producer_id = producer_id,
                           .last_timestamp = -1,
                           .txn_first_offset = -1,
                           .touched_offset = -1,
                           .coordinator_epoch = -1,
                           .epoch = -1};
    size_t i = place_of(ps, producer_id);
    memmove(ps->v + i + 1, ps->v + i, (ps->n - i) * sizeof *ps->v);
    ps->v[i] = p;
    ps->n++;
    *out = p;
    return ERR_NONE;
}

static void remove_at(struct producer_state *ps, size_t i)
{
    free(ps->v[i]);
    budget_give(ps->budget, sizeof(struct producer));
    ps->n--;
    memmove(ps->v + i, ps->v + i + 1, (ps->n - i) * sizeof *ps->v);
}

/* ------------------------------------------------------------------ transactions */

static void spans_insert(struct txn_span *v, size_t *n, struct txn_span t)
{
    size_t i = *n;
    for (; i > 0 && v[i - 1].first_offset > t.first_offset; i--)
        v[i] = v[i - 1];
    v[i] = t;
    (*n)++;
}

static void spans_remove(struct txn_span *v, size_t *n, int64_t first_offset)
{
    size_t i = 0;
    while (i < *n && v[i].first_offset != first_offset)
        i++;
    CHECK(i < *n);
    (*n)--;
    memmove(v + i, v + i + 1, (*n - i) * sizeof *v);
}

/* Room to open and to end one more, whatever comes. */
static enum err reserve_spans(struct producer_state *ps)
{
    enum err err = array_room(&ps->open, ps->open_n + ps->ended_n, &ps->open_cap, sizeof *ps->open);
    return err == ERR_NONE ? ARRAY_ROOM(ps->ended) : err;
}

enum err producer_state_add(struct producer_state *ps, const struct producer *p)
{
    if (producer_state_find(ps, p->producer_id) != NULL)
        return ERR_CORRUPT;
    struct producer *own;
    enum err err = reserve_spans(ps);
    if (err == ERR_NONE)
        err = insert(ps, p->producer_id, &own);
    if (err != ERR_NONE)
        return err;
    *own = *p;
    if (p->txn_first_offset >= 0)
        spans_insert(ps->open, &ps->open_n,
                     (struct txn_span){p->txn_first_offset, p->producer_id, -1});
    return ERR_NONE;
}

int64_t producer_state_stable(struct producer_state *ps, int64_t hw)
{
    size_t kept = 0;
    for (size_t i = 0; i < ps->ended_n; i++) {
        if (ps->ended[i].marker_offset >= hw)
            ps->ended[kept++] = ps->ended[i];
    }
    ps->ended_n = kept;
    int64_t stable = hw;
    if (ps->open_n > 0 && ps->open[0].first_offset < stable)
        stable = ps->open[0].first_offset;
    if (kept > 0 && ps->ended[0].first_offset < stable)
        stable = ps->ended[0].first_offset;
    return stable;
}

/* ------------------------------------------------------------------ checks */

static const struct producer_batch *find_duplicate(const struct producer *p, const struct batch *b)
{
    int32_t last = batch_last_sequence(b);
    for (uint8_t i = 0; i < p->batches_n; i++) {
        const struct producer_batch *c = &p->batches[i];
        int32_t first = (int32_t)(((int64_t)c->last_sequence - c->offset_delta) & INT32_MAX);
        if (c->last_sequence == last && first == b->base_sequence)
            return c;
    }
    return NULL;
}

static bool in_sequence(int32_t last, int32_t next)
{
    return next == (int64_t)last + 1 || (next == 0 && last == INT32_MAX);
}

static int16_t check_sequence(const struct producer *p, const struct batch *b)
{
    if (p->epoch == -1)
        return K_NONE;
    if (b->producer_epoch != p->epoch)
        return b->base_sequence == 0 ? K_NONE : K_OUT_OF_ORDER_SEQUENCE_NUMBER;
    int32_t last = p->batches_n == 0 ? -1 : p->batches[p->batches_n - 1].last_sequence;
    return in_sequence(last, b->base_sequence) ? K_NONE : K_OUT_OF_ORDER_SEQUENCE_NUMBER;
}

int16_t producer_state_check(const struct producer_state *ps, const struct batch *b,
                             const struct txn_marker *marker, enum log_origin origin,
                             const struct producer_batch **duplicate)
{
    *duplicate = NULL;
    const struct producer *p = producer_state_find(ps, b->producer_id);
    if (p == NULL)
        return K_NONE;
    if (marker == NULL && origin == LOG_CLIENT && b->producer_epoch == p->epoch) {
        *duplicate = find_duplicate(p, b);
        if (*duplicate != NULL)
            return K_NONE;
    }
    if (b->producer_epoch < p->epoch)
        return K_INVALID_PRODUCER_EPOCH;
    if (marker != NULL)
        return marker->coordinator_epoch < p->coordinator_epoch ? K_TRANSACTION_COORDINATOR_FENCED
                                                                : K_NONE;
    if (origin == LOG_CLIENT) {
        int16_t error = check_sequence(p, b);
        if (error != K_NONE)
            return error;
    }
    bool transactional = (b->attributes & BATCH_TRANSACTIONAL) != 0;
    return p->txn_first_offset >= 0 && !transactional ? K_INVALID_TXN_STATE : K_NONE;
}

/* ------------------------------------------------------------------ applying */

static void apply_epoch(struct producer *p, int16_t epoch)
{
    if (p->epoch == epoch)
        return;
    p->epoch = epoch;
    p->batches_n = 0;
}

static void apply_data(struct producer_state *ps, struct producer *p, const struct batch *b,
                       struct producer_undo *undo)
{
    apply_epoch(p, b->producer_epoch);
    if (p->batches_n == LIMIT_PRODUCER_BATCHES) {
        memmove(p->batches, p->batches + 1, (LIMIT_PRODUCER_BATCHES - 1) * sizeof *p->batches);
        p->batches_n--;
    }
    p->batches[p->batches_n++] = (struct producer_batch){
        batch_last_offset(b), b->max_timestamp, batch_last_sequence(b), b->last_offset_delta};
    p->last_timestamp = b->max_timestamp;
    if ((b->attributes & BATCH_TRANSACTIONAL) == 0 || p->txn_first_offset >= 0)
        return;
    p->txn_first_offset = b->base_offset;
    undo->opened = (struct txn_span){b->base_offset, p->producer_id, -1};
    spans_insert(ps->open, &ps->open_n, undo->opened);
}

static void apply_marker(struct producer_state *ps, struct producer *p, const struct batch *b,
                         const struct txn_marker *m, struct producer_undo *undo,
                         struct aborted_txn *aborted)
{
    apply_epoch(p, b->producer_epoch);
    p->coordinator_epoch = m->coordinator_epoch;
    p->last_timestamp = b->max_timestamp;
    if (p->txn_first_offset < 0)
        return;
    int64_t marker = batch_last_offset(b);
    undo->ended = (struct txn_span){p->txn_first_offset, p->producer_id, marker};
    spans_remove(ps->open, &ps->open_n, p->txn_first_offset);
    if (m->abort) {
        /* The oldest other open transaction holds the readers. */
        int64_t stable = ps->open_n > 0 ? ps->open[0].first_offset : marker + 1;
        *aborted = (struct aborted_txn){p->producer_id, p->txn_first_offset, marker, stable};
    }
    spans_insert(ps->ended, &ps->ended_n, undo->ended);
    p->txn_first_offset = -1;
}

enum err producer_state_append(struct producer_state *ps, const struct batch *b,
                               const struct txn_marker *marker, struct producer_undo *undo,
                               struct aborted_txn *aborted)
{
    aborted->first_offset = -1;
    struct producer *p = producer_state_find(ps, b->producer_id);
    *undo = (struct producer_undo){.existed = p != NULL};
    undo->opened.first_offset = undo->ended.first_offset = -1;
    enum err err = reserve_spans(ps);
    if (err == ERR_NONE && p == NULL)
        err = insert(ps, b->producer_id, &p);
    if (err != ERR_NONE)
        return err;
    undo->before = *p;
    if (marker != NULL)
        apply_marker(ps, p, b, marker, undo, aborted);
    else
        apply_data(ps, p, b, undo);
    p->touched_offset = batch_last_offset(b);
    return ERR_NONE;
}

void producer_state_undo(struct producer_state *ps, const struct producer_undo *undo)
{
    size_t i = place_of(ps, undo->before.producer_id);
    CHECK(i < ps->n && ps->v[i]->producer_id == undo->before.producer_id);
    if (undo->opened.first_offset >= 0)
        spans_remove(ps->open, &ps->open_n, undo->opened.first_offset);
    if (undo->ended.first_offset >= 0) {
        spans_remove(ps->ended, &ps->ended_n, undo->ended.first_offset);
        struct txn_span back = undo->ended;
        back.marker_offset = -1;
        spans_insert(ps->open, &ps->open_n, back);
    }
    if (undo->existed)
        *ps->v[i] = undo->before;
    else
        remove_at(ps, i);
}

bool producer_state_touched(const struct producer_state *ps, int64_t x)
{
    for (size_t i = 0; i < ps->n; i++) {
        if (ps->v[i]->touched_offset >= x)
            return true;
    }
    return false;
}

void producer_state_expire(struct producer_state *ps, int64_t now_ms, int64_t expiration_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < ps->n; i++) {
        struct producer *p = ps->v[i];
        bool expired = p->txn_first_offset < 0 && now_ms - p->last_timestamp >= expiration_ms;
        if (expired)
            free(p);
        else
            ps->v[kept++] = p;
    }
    budget_give(ps->budget, (ps->n - kept) * sizeof(struct producer));
    ps->n = kept;
}
