/* The addresses of a host: a name is looked up by a worker, for that may take seconds; an address
 * in digits is one at once. */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include <netinet/in.h>

#include "base/env.h"

#define RESOLVE_HOST_BYTES 256 /* a name's longest is 253 */
#define RESOLVE_MAX 8          /* addresses that are kept */
#define RESOLVE_REASON_BYTES 96

/* Embedded in its owner, which stays until done. */
struct resolve {
    struct job job;
    char host[RESOLVE_HOST_BYTES];
    uint16_t port;
    struct sockaddr_storage addresses[RESOLVE_MAX];
    size_t n;                          /* 0: none, for the reason */
    char reason[RESOLVE_REASON_BYTES]; /* as the system tells it */
    void (*done)(struct resolve *r);
};

/* host and port are set. True: addresses are there already. */
bool resolve_digits(struct resolve *r);
/* host, port and done are set; done comes with a later reap of env's jobs. */
void resolve_start(struct resolve *r, struct env *env);
socklen_t resolve_size(const struct sockaddr_storage *a);

#endif
