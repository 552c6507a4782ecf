/* A Kafka conversation without a socket: connections whose bytes come from a driver (net,
 * simulator, loopback), frames, the start rule, answers in order.
 *
 * Driver's side, per connection: conn_recv_space / conn_recv for bytes in; conn_peek / conn_sent
 * for bytes out; conn_eof when no more will come in, conn_closed when the other side is gone. After
 * each turn it drains rpc_next_output
 * (has something to send), rpc_next_close (to be closed now), rpc_next_resume (reads again).
 *
 * Receiving without moving bytes: the pool hands out large warm buffers, last in first out. Bytes
 * are received into one, frames are used in place. Frames up to LIMIT_SMALL_FRAME_BYTES are copied
 * into their request's arena, larger ones hold the buffer (counted). An unfinished frame that fits
 * the rest of the buffer stays where it is; else it moves once, into a buffer of its size, charged
 * whole when its size is read. An idle connection has no buffer.
 *
 * Start rule (Kafka): a request starts when all before it on its connection have been answered;
 * only a Produce may start behind Produces already staged. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include "base/arena.h"
#include "base/env.h"
#include "base/list.h"
#include "base/timer.h"
#include "rpc/pool.h"
#include "wire/api_key.h"
#include "wire/codec.h"

struct rpc;
struct conn;
struct request;

struct rpc_handler {
    void *ctx;
    /* May the request start now, or does its key and version close the connection? Decodes the
     * header only. Called once per frame; false: closed with one log line (already written). */
    bool (*accept)(void *ctx, struct request *r);
    /* Start it. It completes by request_answer, request_drop or request_close, at once or later. */
    void (*start)(void *ctx, struct request *r, struct now now);
    /* The client is gone or the node stops: hasten the end of a waiting request. It still completes
     * by one of the three. */
    void (*cancel)(void *ctx, struct request *r);
    /* A connection that request_mark has marked is gone; or NULL. */
    void (*lost)(void *ctx, int64_t mark, struct now now);
};

struct rpc_args {
    struct env *env;
    struct timers *timers;
    struct budget *frames;  /* receive buffers and large frames */
    struct budget *small;   /* unfinished small frames: heartbeats pass when large ones fill up */
    struct budget *answers; /* arenas of requests */
    int32_t request_max_bytes; /* socket.request.max.bytes */
    int64_t idle_max_ms;       /* connections.max.idle.ms; negative: never */
    struct rpc_handler handler;
};

MUST_USE enum err rpc_new(const struct rpc_args *args, struct rpc **out);
void rpc_free(struct rpc *rpc); /* all connections must be closed and all requests complete */

/* ------------------------------------------------------------------ requests */

enum request_state {
    REQUEST_QUEUED, /* waits for those before it */
    REQUEST_RUNNING,
    REQUEST_ANSWERED, /* waits for answers before it, or is being sent */
};

/* One request: alive from its whole frame to the last byte of its answer, also when its connection
 * ends meanwhile (then conn is NULL). */
struct request {
    struct list link; /* in its connection, in order */
    struct rpc *rpc;
    struct conn *conn;
    uint64_t conn_id;
    int listener; /* index in config_listeners; -1: loopback of the node itself */
    const char *client_address;
    struct str principal;  /* "User:ANONYMOUS" */
    struct request *outer; /* that it came inside of (request_within), or NULL */
    void (*ended)(struct request *outer, struct bytes answer, const char *reason);
    struct arena arena;
    struct bytes frame;   /* without the length; freed early by request_release_frame */
    struct pool_buf *buf; /* what holds a large frame */
    int16_t api_key, api_version;
    int32_t correlation_id;
    struct str client_id;
    struct bytes body; /* behind the header */
    struct now arrival;
    enum request_state state;
    bool produce_staged; /* the next Produce may start */
    const struct wire_message *request_message;
    void *message;       /* decoded, set by api */
    void *handler_state; /* of the api's handler, in the arena */
    struct wire_parts answer;
    size_t answer_sent_n;     /* parts fully sent */
    size_t answer_sent_bytes; /* of the next part */
    bool no_answer;
};

/* Encodes response (a struct of m) as the answer; its slices are released when they have been sent.
 * False: out of memory, the connection closes with a log line, slices remain the caller's. */
bool request_answer(struct request *r, const struct wire_message *m, const void *response);
/* The same of a body that is encoded already, for the request's version; it is copied. */
bool request_answer_encoded(struct request *r, struct bytes body);
/* The same of a whole answer, header and body as another node sent them; it is copied. */
bool request_answer_whole(struct request *r, struct bytes answer);
/* Who came by this connection, for handler.lost; not 0. */
void request_mark(struct request *r, int64_t mark);
/* Completes without an answer (acks=0). */
void request_drop(struct request *r);
/* Completes by closing the connection; one log line with the reason. */
void request_close(struct request *r, const char *reason);
/* A large frame's bytes are no longer needed (all written); decoded pointers into it die. */
void request_release_frame(struct request *r);
/* Marks a Produce as staged and starts what may follow. */
void request_staged(struct request *r);
/* A request that runs inside another one, which stays until then: frame (header and body) lies in
 * outer's. When it completes, ended() is told once, maybe before its handler's start returns: the
 * answer's header and body, or null with the reason for which its connection would be closed. What
 * it tells of dies with the call. NULL: out of memory. */
struct request *request_within(struct request *outer, struct bytes frame,
                               void (*ended)(struct request *outer, struct bytes answer,
                                             const char *reason));

/* ------------------------------------------------------------------ connections, driver's side */

/* address is for logs ("127.0.0.1:1234"), copied. NULL when the budget refuses. */
struct conn *conn_new(struct rpc *rpc, int listener, const char *address, void *driver,
                      struct now now);
void *conn_driver(const struct conn *c);
uint64_t conn_id(const struct conn *c);
/* Where to put received bytes: p and its room (0: not to be read now; rpc_next_resume tells). */
void conn_recv_space(struct conn *c, uint8_t **p, size_t *n);
/* n bytes were put there (0: none came; the buffer goes back when nothing is in it). Frames that
 * may start are started. */
void conn_recv(struct conn *c, size_t n, struct now now);
bool conn_wants_recv(const struct conn *c);
/* Up to max parts of what is to be sent, in order; none behind a slice, which goes out alone. */
size_t conn_peek(struct conn *c, struct wire_part *parts, size_t max);
/* n bytes went out. A stale slice in conn_peek's parts closes the connection instead. */
void conn_sent(struct conn *c, size_t n, struct now now);
/* Nothing more will come in (the client shut down its side, or closed). What it asked is answered,
 * waiting requests are hastened (cancel) but for Produce, then rpc_next_close gives it. */
void conn_eof(struct conn *c, struct now now);
/* The driver is done with it (closed by either side); c is invalid now. */
void conn_closed(struct conn *c, struct now now);

struct conn *rpc_next_output(struct rpc *rpc);
struct conn *rpc_next_close(struct rpc *rpc);
struct conn *rpc_next_resume(struct rpc *rpc);

/* Ends all waiting requests (cancel) and refuses new ones. */
void rpc_stop(struct rpc *rpc, struct now now);
/* Started and not yet answered, our own loopback's included. */
size_t rpc_running_n(const struct rpc *rpc);

#endif
