/* Calls out to another node: requests in order, versions from ApiVersions, a deadline for each.
 *
 * The node may be ourselves (loopback: the same bytes arrive at our own rpc) or another one. Then
 * the peer has no socket either: its driver makes the connection when it is wanted, brings what was
 * received and takes what is to be sent. A connection is wanted while calls wait; after one that
 * failed the next is wanted later, a call made meanwhile waits for it. */
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
    int16_t max_version;   /* at most this one; -1: ours */
    int16_t fixed_version; /* this one, sent without asking what the other side knows; -1: asks */
    bool no_answer; /* Produce with acks=0: done, without a response, when its bytes are gone */
    const void *request; /* struct of the api's request; stays until done */
    struct arena *keep;  /* the answer lives as long as this; NULL: in done() only */
    int64_t deadline_us;
    /* e is ERR_NONE: response is the api's response, alive in the call only; else NULL. */
    void (*done)(struct peer_call *call, enum err e, const void *response);
    /* own */
    int16_t version; /* fixed_version, or the highest both know; set when sent */
    bool sent;       /* the other side may have acted on it, also when it failed */
    int32_t correlation_id;
    uint64_t end_bytes; /* of its frame, in all that the peer ever had to send */
    enum err failed;    /* told at the next settle */
    struct timer timer;
    struct peer *peer;
};

/* The loopback peer: its requests arrive at `rpc` as frames on listener `listener`. */
MUST_USE enum err peer_new_loopback(struct rpc *rpc, struct timers *timers, int listener,
                                    struct str client_id, struct peer **out);
/* Open calls complete with ERR_CANCELLED first. A driver has no connection left. */
void peer_free(struct peer *p);

/* ERR_TIMEOUT at the deadline; ERR_CLOSED when the connection ended or none could be made;
 * ERR_UNSUPPORTED: no common version; ERR_CORRUPT: an answer that does not decode, ERR_TOO_LARGE:
 * one that is larger than allowed, ERR_NOMEM: than the budget (the connection is dropped). */
void peer_call(struct peer *p, struct peer_call *call, struct now now);
/* An open call completes with ERR_CANCELLED at the next settle; its answer is read over. */
void peer_cancel(struct peer_call *call);
/* The versions of an api that the other side says it serves. False: it has not said, or does not
 * serve it; *told says which. */
bool peer_range(const struct peer *p, int16_t api_key, bool *told, int16_t *min, int16_t *max);
/* Another number whenever what peer_range says may be something else. */
uint32_t peer_ranges_turn(const struct peer *p);
/* Did the last connection fail because nobody listens there? */
bool peer_was_refused(const struct peer *p);
/* Moves bytes and completes calls; true if anything moved. Part of the node's settle. */
bool peer_settle(struct peer *p, struct now now);

/* ------------------------------------------------------------------ driver's side, another node */

#define PEER_ANSWER_MAX_BYTES (INT32_MAX - 4) /* with its length before it */

struct peer_args {
    struct timers *timers;
    struct budget *memory; /* of answers; or NULL */
    struct str client_id;
    uint32_t answer_max_bytes; /* at most PEER_ANSWER_MAX_BYTES */
    /* peer_wants may have changed. Called by peer_settle and the timers. */
    void (*ready)(void *driver);
    void *driver;
};

enum peer_want {
    PEER_WANTS_NOTHING,
    PEER_WANTS_CONNECTION, /* from peer_connect_at_us on; then peer_connected or _disconnected */
    PEER_WANTS_SEND,       /* peer_peek has bytes */
    PEER_WANTS_END,        /* close the connection, then peer_disconnected */
};

MUST_USE enum err peer_new(const struct peer_args *args, struct peer **out);
enum peer_want peer_wants(const struct peer *p);
void *peer_driver(const struct peer *p);
int64_t peer_connect_at_us(const struct peer *p);
void peer_connected(struct peer *p, struct now now);
/* The connection ended or could not be made: what is open fails with ERR_CLOSED. */
void peer_disconnected(struct peer *p, struct now now);
/* As peer_disconnected, when the other machine was reached and said that nobody listens there. */
void peer_refused(struct peer *p, struct now now);
/* Where to put received bytes; room is 0 when there is no memory for them: the peer wants an end.
 */
void peer_recv_space(struct peer *p, uint8_t **to, size_t *room);
void peer_recv(struct peer *p, size_t n);
/* All that is to be sent; n bytes of it went out. */
struct bytes peer_peek(const struct peer *p);
void peer_sent(struct peer *p, size_t n);

#endif
