#include "cli/signals.h"

#include <signal.h>

#include "net/loop.h"

static void on_term(struct ev_loop *ev, ev_signal *w, int events)
{
    struct signals *s = CONTAINER_OF(w, struct signals, term);
    s->came(s->ctx);
}

static void on_interrupt(struct ev_loop *ev, ev_signal *w, int events)
{
    struct signals *s = CONTAINER_OF(w, struct signals, interrupt);
    s->came(s->ctx);
}

void signals_watch(struct signals *s, struct client *c, void (*came)(void *ctx), void *ctx)
{
    *s = (struct signals){.client = c, .came = came, .ctx = ctx};
    ev_signal_init(&s->term, on_term, SIGTERM);
    ev_signal_init(&s->interrupt, on_interrupt, SIGINT);
    ev_signal_start(client_loop(c)->ev, &s->term);
    ev_signal_start(client_loop(c)->ev, &s->interrupt);
}

void signals_unwatch(struct signals *s)
{
    ev_signal_stop(client_loop(s->client)->ev, &s->term);
    ev_signal_stop(client_loop(s->client)->ev, &s->interrupt);
}
