/* One libev loop as a node's turns want it: each call waits once, runs the callbacks of what came,
 * and returns. Both clocks are read once per turn, before the first callback. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <ev.h>

#include "base/env.h"

struct loop {
    struct ev_loop *ev;
    ev_check woken;
    ev_timer deadline;
    int64_t deadline_us; /* of the armed timer, monotonic */
    struct now now;      /* of this turn */
};

/* ERR_NFILE, ERR_NOMEM, ERR_IO: no epoll to be had. */
MUST_USE enum err loop_init(struct loop *l);
/* All watchers of others must be stopped. */
void loop_close(struct loop *l);

/* Waits until a watched event comes or deadline_us (monotonic; INT64_MAX: none) has passed; does
 * not wait when it lies behind l->now. Then runs the callbacks. */
void loop_turn(struct loop *l, int64_t deadline_us);

#endif
