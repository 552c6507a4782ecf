/* The inside of a peer: calls (peer.c) over a way for their bytes (peer_loopback.c, peer_remote.c).
 */
#ifndef RPC_PEER_IMPL_H
#define RPC_PEER_IMPL_H

#include "rpc/peer.h"
#include "wire/messages.h"

#define PEER_LENGTH_BYTES 4 /* before each frame */
#define PEER_API_VERSIONS 3 /* the version that is tried first */

/* How bytes travel. */
struct peer_way {
    /* ERR_NONE: connected; ERR_AGAIN: not yet, calls wait; others fail the calls that wait. */
    enum err (*connect)(struct peer *p, struct now now);
    /* Appends what came to p->in; an error ends the connection. */
    enum err (*receive)(struct peer *p, struct now now);
    /* All of p->in was taken; n bytes were there. */
    void (*emptied)(struct peer *p, size_t n, struct now now);
    /* Takes from p->out what it can. */
    void (*send)(struct peer *p, struct now now);
    /* Why the connection ended; ERR_NONE: it has not. */
    enum err (*ended)(const struct peer *p);
    void (*disconnect)(struct peer *p, struct now now);
    void (*free)(struct peer *p);
};

struct peer_range {
    int16_t key, min, max;
};

struct peer {
    const struct peer_way *way;
    struct timers *timers;
    char client_id[64];
    struct list queued;        /* not sent */
    struct list sent;          /* in order */
    struct list leaving;       /* of those that get no answer: not all bytes are gone */
    struct list failed;        /* completes at the next settle */
    struct peer_range *ranges; /* of the other side; NULL: not known */
    size_t ranges_n;
    uint32_t ranges_turn; /* one more with each change of them */
    bool ranges_asked;
    struct peer_call versions_call;
    int16_t versions_version; /* of the next ApiVersions */
    struct api_versions_request versions_request;
    int32_t next_correlation_id;
    struct arena arena;  /* of the answer being decoded */
    struct buf in;       /* bytes of answers */
    struct buf out;      /* frames to send */
    size_t out_sent;     /* bytes of out that are gone */
    uint64_t gone_bytes; /* ever, of whole outs before this one */
    bool refused;        /* nobody listens there, as it seemed last */
    uint32_t failures_n; /* connections that ended since one was of use */
};

/* What both ways share; p is zeroed. */
void peer_init(struct peer *p, const struct peer_way *way, struct timers *timers,
               struct budget *memory, struct str client_id);
/* n more bytes of out are gone. */
void peer_out_gone(struct peer *p, size_t n);

#endif
