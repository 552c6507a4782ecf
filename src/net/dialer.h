/* The sockets of peers: makes connections to other nodes when they are wanted, brings what comes
 * and takes what is to be sent. Callbacks of the loop receive; dialer_settle, once per turn and
 * after the peers', connects, sends and ends. */
#ifndef NET_DIALER_H
#define NET_DIALER_H

#include "base/timer.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "rpc/peer.h"

struct dialer {
    struct loop *loop;
    struct timers *timers; /* run by the owner, once per turn */
    struct env *env;       /* for jobs only */
    struct list all, due;
};

/* One other node. */
struct dial;

struct dial_args {
    const char *host; /* a name or an address, without brackets; shorter than RESOLVE_HOST_BYTES */
    uint16_t port;
    struct str client_id;
    struct budget *memory;
    uint32_t answer_max_bytes;
};

void dialer_init(struct dialer *d, struct loop *loop, struct timers *timers, struct env *env);
/* Connects and sends what is wanted. */
void dialer_settle(struct dialer *d);
/* Removes all. */
void dialer_close(struct dialer *d);

/* ERR_NOMEM. */
MUST_USE enum err dial_new(struct dialer *d, const struct dial_args *args, struct dial **out);
struct peer *dial_peer(struct dial *dl);
/* "HOST:PORT" */
const char *dial_name(const struct dial *dl);
/* Why the last connection failed or ended, for people; "" while there is one. */
const char *dial_reason(const struct dial *dl);
/* Frees the peer too. No look-up may run: the owner has reaped the jobs. */
void dial_free(struct dial *dl);
bool dial_looking_up(const struct dial *dl);

#endif
