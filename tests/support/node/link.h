/* One connection of a node and the bytes on their way, without sockets: the driver's side of rpc.h
 * for the simulator and for tests. */
#ifndef SUPPORT_NODE_LINK_H
#define SUPPORT_NODE_LINK_H

#include "rpc/rpc.h"
#include "support/pipe.h"

struct link {
    struct conn *conn; /* NULL: not connected */
    int listener;
    const char *address; /* the client's */
    struct pipe in;      /* to the node, not delivered yet */
    struct pipe out;     /* from the node, not taken yet */
    bool closed;         /* not by the client, since it last looked */
};

void link_init(struct link *l);
void link_close(struct link *l); /* not connected */

/* False when the node refuses. Bytes of a former connection are forgotten. */
bool link_connect(struct link *l, struct rpc *rpc, struct now now);
/* The other side is gone. */
void link_disconnect(struct link *l, struct now now);
/* The node died without a word, and its memory with it. */
void link_lost(struct link *l);
/* Are there bytes that the node would take? */
bool link_wants(const struct link *l);
/* Gives the node up to max of the bytes that wait; how many it took. */
size_t link_deliver(struct link *l, size_t max, struct now now);

/* After a turn, until NULL: all that one connection sends is taken into its `out`, n bytes. A slice
 * that cannot be read ends its connection, as a failed sendfile does. */
struct link *link_next_output(struct rpc *rpc, size_t *n, struct now now);
/* Then: closes what the node closes, true if anything; those that were paused read again. */
bool links_settle(struct rpc *rpc, struct now now);

#endif
