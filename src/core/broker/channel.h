/* Calls to the active controller, wherever it is: the leader of the metadata quorum, which may be
 * ourselves. One channel per kind of talk, as Kafka's connections, so that none waits behind
 * another; one request is in flight on each.
 *
 * A call waits while no leader is known. When the connection is lost, the leader changes or a
 * response says NOT_CONTROLLER, it is sent again to whom the quorum names then, until its deadline;
 * so the controller may see it twice. */
#ifndef BROKER_CHANNEL_H
#define BROKER_CHANNEL_H

#include "base/timer.h"
#include "quorum/raft.h"
#include "rpc/dialing.h"

struct channel;

struct channel_args {
    struct timers *timers;
    struct rpc *rpc;         /* where we ourselves are the leader */
    struct dialing *dialing; /* to others; NULL: there are none */
    struct budget *memory;   /* of answers */
    int32_t node_id;
    struct str client_id;    /* copied */
    const struct raft *raft; /* stays until channel_stop or channel_free */
    int32_t retry_ms;        /* the first pause; doubled up to 32 times of it */
};

/* Embedded in its owner; done() comes exactly once, never inside channel_call. */
struct channel_call {
    struct list link;
    int16_t api_key;
    const void *request; /* struct of the api's request; stays until done */
    int64_t deadline_us; /* INT64_MAX: none */
    struct arena *keep;  /* the answer lives as long as this; NULL: in done() only */
    /* The error of a response that NOT_CONTROLLER may be in; NULL: it is never sent again for it.
     */
    int16_t (*error)(const void *response);
    /* e is ERR_NONE: response is the api's response. ERR_TIMEOUT, ERR_CANCELLED; ERR_UNSUPPORTED:
     * the leader has no common version; ERR_NOMEM, ERR_TOO_LARGE of the answer. */
    void (*done)(struct channel_call *call, enum err e, const void *response);
    /* own */
    struct channel *channel;
    struct peer_call call;
    struct timer timer;
    enum err ended; /* by the deadline or its owner: told at the next settle */
};

/* ERR_NOMEM; ERR_INVALID: client_id is too long. */
MUST_USE enum err channel_new(const struct channel_args *args, struct channel **out);
/* Open calls complete with ERR_CANCELLED first. */
void channel_free(struct channel *c);
/* For good: what is open and what is still called ends with ERR_CANCELLED; the raft may go. */
void channel_stop(struct channel *c);
void channel_call(struct channel *c, struct channel_call *call, struct now now);
/* An open call completes with ERR_CANCELLED at the next settle. */
void channel_cancel(struct channel_call *call);
/* What of [*min, *max] of an api the active controller serves too, as far as it has said. False:
 * nothing of it. While it has not said, and of ourselves, it is all. */
bool channel_cut_range(const struct channel *c, int16_t api_key, int16_t *min, int16_t *max);
/* Another number whenever channel_cut_range may say something else. */
uint64_t channel_ranges_turn(const struct channel *c);
/* Part of the node's settle, behind raft's: sends and completes calls; true if anything moved. */
bool channel_settle(struct channel *c, struct now now);

#endif
