/* libev runs the pending callbacks by priority, so a check watcher of the highest one reads the
 * clocks before anybody needs them. One timer for all deadlines: the node has a heap of its own,
 * and setting this one costs no system call. */
#include "net/loop.h"

#include <errno.h>

#include "os/clocks.h"
#include "os/error.h"

static void read_clocks(struct ev_loop *ev, ev_check *w, int events)
{
    CONTAINER_OF(w, struct loop, woken)->now = os_now();
}

/* Waking up is all there is to do: the turn looks at the clock. */
static void deadline_passed(struct ev_loop *ev, ev_timer *w, int events)
{
}

enum err loop_init(struct loop *l)
{
    errno = 0;
    struct ev_loop *ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (ev == NULL)
        return errno != 0 ? os_error(errno) : ERR_IO;
    *l = (struct loop){.ev = ev, .deadline_us = INT64_MAX, .now = os_now()};
    ev_check_init(&l->woken, read_clocks);
    ev_set_priority(&l->woken, EV_MAXPRI);
    ev_check_start(ev, &l->woken);
    ev_init(&l->deadline, deadline_passed);
    return ERR_NONE;
}

void loop_close(struct loop *l)
{
    ev_timer_stop(l->ev, &l->deadline);
    ev_check_stop(l->ev, &l->woken);
    ev_loop_destroy(l->ev);
    l->ev = NULL;
}

static void set_deadline(struct loop *l, int64_t deadline_us)
{
    if (deadline_us == l->deadline_us && ev_is_active(&l->deadline))
        return;
    l->deadline_us = deadline_us;
    ev_timer_stop(l->ev, &l->deadline);
    if (deadline_us == INT64_MAX)
        return;
    /* libev counts from its own clock, which it read just before ours. */
    ev_timer_set(&l->deadline, (double)(deadline_us - l->now.mono_us) / 1e6, 0.);
    ev_timer_start(l->ev, &l->deadline);
}

void loop_turn(struct loop *l, int64_t deadline_us)
{
    if (deadline_us <= l->now.mono_us) {
        ev_run(l->ev, EVRUN_NOWAIT);
        return;
    }
    set_deadline(l, deadline_us);
    ev_run(l->ev, EVRUN_ONCE);
}
