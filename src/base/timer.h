/* Deadlines in a binary heap, embedded in their owners. Equal deadlines fire in the order in which
 * they were armed. No periodic timers: the callback arms again. */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include "base/err.h"
#include "base/types.h"

struct timer {
    int64_t at_us; /* monotonic */
    uint64_t seq;
    size_t idx; /* place in the heap + 1; 0 when not armed */
    void (*fire)(struct timer *t);
};

struct timers {
    struct timer **heap;
    size_t n, cap;
    uint64_t seq;
    int64_t floor_us; /* while timers_run runs: its now; else INT64_MIN */
};

void timers_init(struct timers *ts);
void timers_close(struct timers *ts);
/* (Re)arms t; a callback's deadline in the past counts as now. ERR_NOMEM leaves t as it was. */
MUST_USE enum err timer_arm(struct timers *ts, struct timer *t, int64_t at_us);
void timer_cancel(struct timers *ts, struct timer *t);
static inline bool timer_armed(const struct timer *t)
{
    return t->idx != 0;
}
/* INT64_MAX when none is armed. */
int64_t timers_next_us(const struct timers *ts);
/* Fires what is due at now_us, at most those armed before the call. */
void timers_run(struct timers *ts, int64_t now_us);

#endif
