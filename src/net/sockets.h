/* The sockets of an rpc's connections: bytes in, answers out, ends. Callbacks of the loop receive;
 * sockets_settle, once per turn and after the node's, sends, closes and reads again.
 *
 * A socket that cannot take all that is to be sent is watched for room and not read meanwhile, so a
 * client that never reads costs what rpc holds for it and no more; without progress for
 * LIMIT_SEND_DEADLINE_MS it is closed. */
#ifndef NET_SOCKETS_H
#define NET_SOCKETS_H

#include "net/loop.h"
#include "rpc/rpc.h"

struct sockets {
    struct loop *loop;
    struct rpc *rpc;
    struct env *env; /* its files are those of os/ */
    struct list all;
    struct list blocked; /* no room in the socket; the longest without progress first */
    struct list sending; /* to be sent in the next settle: room again, or had their share */
    size_t n;
    uint64_t closed_n;                   /* ever */
    uint64_t received_bytes, sent_bytes; /* ever */
};

void sockets_init(struct sockets *ss, struct loop *loop, struct rpc *rpc, struct env *env);
/* Takes the connected, non-blocking fd; closes it with a log line when there is no memory for it.
 * listener: index in config_listeners. address for logs. *count is one more while it is there;
 * NULL: nobody counts. */
void sockets_add(struct sockets *ss, int fd, int listener, const char *address, size_t *count);
/* Sends what is answered, closes what is to be closed. Returns when it wants to be called again at
 * the latest (monotonic us; INT64_MAX: not by itself). */
int64_t sockets_settle(struct sockets *ss);
/* Closes all. */
void sockets_close(struct sockets *ss);

#endif
