/* How the inside gets peers to other nodes. net/ implements it over its sockets, the simulator over
 * its network. Whoever opened a peer calls peer_settle on it in its own settle. */
#ifndef RPC_DIALING_H
#define RPC_DIALING_H

#include "rpc/peer.h"

struct dialing_args {
    const char *host;
    uint16_t port;
    struct timers *timers;
    struct budget *memory; /* of answers; or NULL */
    struct str client_id;
    uint32_t answer_max_bytes;
};

struct dialing {
    /* A peer to host:port, not connected until it has calls. All is copied. ERR_NOMEM, ERR_INVALID
     * (no host that could be). */
    enum err (*open)(struct dialing *d, const struct dialing_args *args, struct peer **out);
    /* Ends it: open calls complete with ERR_CANCELLED before this returns; what still runs of it (a
     * look-up) is its own. */
    void (*close)(struct dialing *d, struct peer *p);
};

#endif
