/* The inside of rpc: shared by its files only. */
#ifndef RPC_CONN_H
#define RPC_CONN_H

#include "rpc/rpc.h"

struct conn {
    struct rpc *rpc;
    struct list all;     /* in rpc->conns */
    struct list output;  /* has something to send */
    struct list close;   /* is to be closed */
    struct list resume;  /* may be read again */
    struct list starved; /* waits for memory */
    uint64_t id;
    int listener;
    char *address;
    void *driver;
    struct list requests;   /* struct request, in order */
    struct request *queued; /* the first that is not started, and all behind it; or NULL */
    uint32_t requests_n;
    uint32_t running_n;          /* started, not answered */
    uint32_t running_unstaged_n; /* of them: nothing may start behind these */
    struct pool_buf *in;         /* holds an unfinished frame, or NULL */
    size_t in_start, in_end;
    struct timer frame_timer; /* an unfinished frame */
    struct timer idle_timer;
    int64_t active_us;
    int64_t mark; /* of request_mark; 0: none */
    bool closing, paused, starting;
    bool ended; /* nothing more comes in; closed when all is answered */
    bool local; /* of a loopback peer, which looks for itself: in none of the driver's lists */
};

struct rpc {
    struct env *env;
    struct timers *timers;
    struct budget *small, *answers;
    int32_t request_max_bytes;
    int64_t idle_max_us; /* negative: never */
    struct rpc_handler handler;
    struct pool pool;
    struct pool_buf *scratch; /* shared by all connections without an unfinished frame */
    struct pool_buf *reserve; /* in its place when the pool has no memory; never kept */
    struct list conns, output, close, resume, starved;
    struct list orphans;       /* running requests whose connection is gone */
    struct list free_requests; /* warm arenas */
    uint32_t free_requests_n;
    size_t requests_n; /* alive */
    size_t running_n;
    uint64_t next_conn_id;
    struct now now; /* of the current turn */
    bool stopping;
};

/* A queued request for the frame [p, p + n), which lies in buf; NULL when out of memory. */
struct request *request_new(struct conn *c, const uint8_t *p, size_t n, struct pool_buf *buf);
void request_free(struct rpc *rpc, struct request *r);
/* Starts what the start rule allows. */
void conn_start_requests(struct conn *c);
/* Marks for closing, with one log line; reason NULL: quietly. */
void conn_fail(struct conn *c, const char *reason);
/* Finds room for the whole of a starved connection's frame; false: not yet. */
bool conn_grow_partial(struct conn *c);
/* Puts c in the output list if its first request is answered. */
void conn_check_output(struct conn *c);
/* Looks whether a paused connection may be read again. */
void conn_check_resume(struct conn *c);
/* Closes one that has ended and owes nothing any more. */
void conn_check_ended(struct conn *c);

#endif
