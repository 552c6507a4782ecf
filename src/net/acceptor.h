/* Takes connections from the listening sockets: a bounded number per turn, none while the broker
 * has as many as it may (max.connections, or its share of descriptors). Further clients wait in the
 * backlog, as in Kafka. The listeners of controllers have an acceptor of their own: a broker full
 * of clients still hears of its quorum. */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include "net/listener.h"
#include "net/sockets.h"

struct acceptor {
    struct sockets *sockets;
    size_t conns_n, conns_max; /* by this acceptor */
    struct accept_watcher *watchers;
    size_t n;
    bool paused;
    int64_t retry_us;  /* while paused by an error: when to try again; else INT64_MAX */
    uint64_t closed_n; /* while paused by an error: sockets' count then */
    int64_t told_us;   /* the last log line */
};

/* Accepts nowhere yet. Of the listeners of controllers, or of the others. ls and sockets, which
 * acceptor_allow needs first, stay until acceptor_close, a as long as the sockets. ERR_NOMEM. */
MUST_USE enum err acceptor_init(struct acceptor *a, const struct listeners *ls, bool controllers,
                                struct sockets *sockets, size_t conns_max);
/* Whether connections may come in at a listener (index in config_listeners), from the next turn on.
 */
void acceptor_allow(struct acceptor *a, int listener, bool allowed);
/* From now on; connections that are there stay. */
void acceptor_set_max(struct acceptor *a, size_t conns_max);
/* Once per turn: accepts again when it can. Returns when it wants to be called at the latest. */
int64_t acceptor_settle(struct acceptor *a);
/* Harmless when not initialised but zeroed, or twice. */
void acceptor_close(struct acceptor *a);

#endif
