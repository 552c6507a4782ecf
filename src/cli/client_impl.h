/* The inside of the client. */
#ifndef CLI_CLIENT_IMPL_H
#define CLI_CLIENT_IMPL_H

#include "cli/client.h"
#include "net/dialer.h"
#include "os/threads.h"

struct broker {
    struct list link;
    struct client *client;
    int32_t id; /* -1: of the command line, or another address has its id now */
    char host[RESOLVE_HOST_BYTES];
    uint16_t port;
    struct dial *dial;
};

struct client {
    struct loop loop;
    struct timers timers;
    struct budget memory;
    struct dialer dialer;
    struct env env; /* of the dialer: jobs go to names */
    struct os_pool names;
    bool names_started;
    struct list finished; /* jobs that were run without a thread */
    ev_io name_found;
    struct list brokers; /* the one that answered last first */
    size_t brokers_n;
    int64_t timeout_ms;
    bool quiet, patient;
};

/* Learns of a broker from an answer. ERR_INVALID: there can be none like that; ERR_NOMEM;
 * ERR_TOO_LARGE: too many. */
MUST_USE enum err client_add_broker(struct client *c, int32_t id, struct str host, int32_t port,
                                    struct broker **out);
/* "HOST[:PORT],...", of the command line. ERR_INVALID. */
MUST_USE enum err client_add_brokers(struct client *c, const char *list);

#endif
