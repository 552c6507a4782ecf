/* The sockets of peers: makes connections to other nodes when they are wanted, brings what comes
 * and takes what is to be sent. Callbacks of the loop receive; dialer_settle, once per turn and
 * after the peers', connects, sends and ends. Whoever wants the addresses and reasons too uses
 * dial_new; the inside of a node its peers only, by `dialing`. */
#ifndef NET_DIALER_H
#define NET_DIALER_H

#include "base/timer.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "rpc/dialing.h"

struct dialer {
    struct dialing dialing;
    struct loop *loop;
    struct timers *timers; /* of connecting; run by the owner, once per turn */
    struct env *env;       /* for jobs only */
    struct list all, due;
    bool lost; /* a connection, since dialer_settle began */
};

/* One other node. */
struct dial;

void dialer_init(struct dialer *d, struct loop *loop, struct timers *timers, struct env *env);
/* Connects and sends what is wanted. True: a connection ended or could not be made, its peer has
 * something to tell. */
bool dialer_settle(struct dialer *d);
/* Removes all. */
void dialer_close(struct dialer *d);

/* ERR_NOMEM; ERR_INVALID: no host, or a name longer than any. */
MUST_USE enum err dial_new(struct dialer *d, const struct dialing_args *args, struct dial **out);
struct peer *dial_peer(struct dial *dl);
/* "HOST:PORT" */
const char *dial_name(const struct dial *dl);
/* Why the last connection failed or ended, for people; "" while there is one. */
const char *dial_reason(const struct dial *dl);
/* Frees the peer too. A look-up under way keeps what it needs until its job has been reaped. */
void dial_free(struct dial *dl);
bool dial_looking_up(const struct dial *dl);

#endif
