/* A binary heap of pointers, ordered by (deadline, sequence of arming). A callback may arm and
 * cancel at will: what it arms in the past counts as due now, thus goes behind all that was due
 * before, and the sequence at the start of the run tells where to stop. */
#include "base/timer.h"

#include <stdlib.h>

#include "base/check.h"

#define CAP_MIN 16

void timers_init(struct timers *ts)
{
    *ts = (struct timers){.floor_us = INT64_MIN};
}

void timers_close(struct timers *ts)
{
    for (size_t i = 0; i < ts->n; i++)
        ts->heap[i]->idx = 0;
    free(ts->heap);
    timers_init(ts);
}

static bool before(const struct timer *a, const struct timer *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->seq < b->seq);
}

static void place(struct timers *ts, size_t i, struct timer *t)
{
    ts->heap[i] = t;
    t->idx = i + 1;
}

static void sift_up(struct timers *ts, size_t i)
{
    struct timer *t = ts->heap[i];
    while (i > 0 && before(t, ts->heap[(i - 1) / 2])) {
        place(ts, i, ts->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place(ts, i, t);
}

static void sift_down(struct timers *ts, size_t i)
{
    struct timer *t = ts->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= ts->n)
            break;
        if (child + 1 < ts->n && before(ts->heap[child + 1], ts->heap[child]))
            child++;
        if (!before(ts->heap[child], t))
            break;
        place(ts, i, ts->heap[child]);
        i = child;
    }
    place(ts, i, t);
}

static enum err grow(struct timers *ts)
{
    size_t cap = ts->cap == 0 ? CAP_MIN : ts->cap * 2;
    struct timer **heap = realloc(ts->heap, cap * sizeof *heap);
    if (heap == NULL)
        return ERR_NOMEM;
    ts->heap = heap;
    ts->cap = cap;
    return ERR_NONE;
}

enum err timer_arm(struct timers *ts, struct timer *t, int64_t at_us)
{
    if (t->idx == 0 && ts->n == ts->cap) {
        enum err err = grow(ts);
        if (err != ERR_NONE)
            return err;
    }
    timer_cancel(ts, t);
    t->at_us = at_us < ts->floor_us ? ts->floor_us : at_us;
    t->seq = ts->seq++;
    place(ts, ts->n++, t);
    sift_up(ts, t->idx - 1);
    return ERR_NONE;
}

void timer_cancel(struct timers *ts, struct timer *t)
{
    if (t->idx == 0)
        return;
    size_t i = t->idx - 1;
    CHECK(i < ts->n && ts->heap[i] == t);
    t->idx = 0;
    struct timer *last = ts->heap[--ts->n];
    if (last == t)
        return;
    place(ts, i, last);
    sift_up(ts, i);
    sift_down(ts, last->idx - 1);
}

int64_t timers_next_us(const struct timers *ts)
{
    return ts->n == 0 ? INT64_MAX : ts->heap[0]->at_us;
}

void timers_run(struct timers *ts, int64_t now_us)
{
    CHECK(ts->floor_us == INT64_MIN); /* not from a callback */
    uint64_t seq_end = ts->seq;
    ts->floor_us = now_us;
    while (ts->n > 0 && ts->heap[0]->at_us <= now_us && ts->heap[0]->seq < seq_end) {
        struct timer *t = ts->heap[0];
        timer_cancel(ts, t);
        t->fire(t);
    }
    ts->floor_us = INT64_MIN;
}
