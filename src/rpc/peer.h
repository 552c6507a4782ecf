/* Calls out to another node, here to ourselves over the same bytes: requests in order, versions
 * from ApiVersions, a deadline for each. */
#ifndef RPC_PEER_H
#define RPC_PEER_H

#include "base/list.h"
#include "base/timer.h"
#include "rpc/rpc.h"
#include "wire/api_key.h"
#include "wire/codec.h"

struct peer;

/* A call in flight, embedded in its owner; done() comes exactly once, never inside peer_call. */
struct peer_call {
    struct list link;
    int16_t api_key;
    int16_t max_version; /* at most this one; -1: ours */
    const void *request; /* struct of the api's request; stays until done */
    int64_t deadline_us;
    /* e is ERR_NONE: response is the api's response, alive in the call only; else NULL. */
    void (*done)(struct peer_call *call, enum err e, const void *response);
    /* own */
    int16_t version; /* the highest both know, set when sent */
    int32_t correlation_id;
    enum err failed; /* refused before it was sent; told at the next settle */
    struct timer timer;
    struct peer *peer;
};

/* The loopback peer: its requests arrive at `rpc` as frames on listener `listener`. */
MUST_USE enum err peer_new_loopback(struct rpc *rpc, struct timers *timers, int listener,
                                    struct str client_id, struct peer **out);
void peer_free(struct peer *p); /* open calls complete with ERR_CANCELLED first */

/* ERR_TIMEOUT at the deadline; ERR_CLOSED when the connection ended; ERR_UNSUPPORTED: no common
 * version; ERR_CORRUPT: an answer that does not decode (the connection is dropped). */
void peer_call(struct peer *p, struct peer_call *call, struct now now);
/* Moves bytes and completes calls; true if anything moved. Part of the node's settle. */
bool peer_settle(struct peer *p, struct now now);

#endif
