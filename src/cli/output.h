/* stdout of a command that streams: bytes wait in memory, never in a write, so that signals and the
 * network are served while a reader is slow. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <ev.h>

#include "base/buf.h"
#include "cli/client.h"

#define OUTPUT_WAIT_BYTES (1u << 20) /* more waits for the reader */

struct output {
    struct client *client;
    struct buf buf;      /* append here */
    size_t sent;         /* bytes of buf that are gone */
    uint64_t gone_bytes; /* all that ever went */
    bool polled;         /* a pipe, a terminal, a socket: may be full */
    bool closed;         /* the reader went away */
    int failed;          /* errno of a write; 0: none */
    bool hurried;        /* set it: nothing waits for the reader any more */
    ev_io room, gone;
};

/* Ignores SIGPIPE: a reader that goes away is `closed`. */
void output_init(struct output *o, struct client *c);
void output_close(struct output *o);
/* Writes what does not wait. False when nothing more will be written. */
bool output_pump(struct output *o);
/* Pumps until at most max bytes wait; the client turns meanwhile. False as output_pump, and when it
 * is hurried and more than that waits. */
bool output_wait(struct output *o, size_t max);

#endif
