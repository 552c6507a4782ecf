/* TERM and INT in a command that has something to say or to finish then. Without it they end the
 * process as they do any other. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <ev.h>

#include "cli/client.h"

struct signals {
    struct client *client;
    ev_signal term, interrupt;
    void (*came)(void *ctx); /* in a turn of the client; usually ends the process */
    void *ctx;
};

void signals_watch(struct signals *s, struct client *c, void (*came)(void *ctx), void *ctx);
void signals_unwatch(struct signals *s);

#endif
