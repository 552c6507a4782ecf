/* The follower's side (replication.md 4): fetchers, each with one conversation with one leader
 * about some of the partitions that follow it; num.replica.fetchers of them for each leader, all on
 * the node's thread.
 *
 * A fetcher has one request in flight. It keeps a fetch session (KIP-227), so that a request names
 * only partitions of which something changed since the last one, and an answer only those with
 * something new: both cost what changed. What is fetched is appended and written when it comes. */
#ifndef REPLICA_FETCHER_H
#define REPLICA_FETCHER_H

#include "core/replica/partition.h"
#include "rpc/dialing.h"

enum follow_state {
    FOLLOW_FETCHING,
    FOLLOW_WAITING,  /* until its log can take bytes again, or has synced what it promises */
    FOLLOW_DELAYED,  /* after an error */
    FOLLOW_LATEST,   /* out of range: asks where the leader's log ends */
    FOLLOW_EARLIEST, /* and where it starts */
    FOLLOW_FAILED,   /* until the next leader epoch */
};

/* Lengths of pauses after errors: from 10 ms, doubled each time, up to replica.fetch.backoff.ms. */
enum { FETCH_PAUSES = 8 };

/* A partition that is fetched, from one leader in one leader epoch. */
struct follow {
    struct partition *p;
    struct fetcher *fetcher;
    enum follow_state state;
    struct list all;       /* in fetcher.parts */
    struct list throttled; /* in fetcher.throttled, when it is */
    bool behind;           /* of the leader's high watermark, as far as we know */
    struct list link; /* in fetcher.changed, delayed or ranged; in none when unchanged, waiting or
                         failed */
    int64_t ready_at_us; /* delayed until then */
    uint32_t pause;      /* and its list in fetcher.delayed */
    uint32_t retries_n;  /* follow_retry in a row */
    int64_t within;  /* the leader's log starts here, in the midst of the batch that our empty log
                        is to begin with; 0: no such thing */
    bool in_session; /* the leader's session has it, or will with the request in flight */
    bool asked;      /* as follows; an answer to anything else is not for us (KAFKA-18991) */
    int64_t asked_offset;
};

struct forgotten {
    struct uuid topic_id;
    int32_t index;
};

enum fetcher_call { FETCHER_IDLE, FETCHER_FETCH, FETCHER_RANGE };

struct fetcher {
    struct list link; /* in replicas.fetchers */
    struct replicas *rs;
    int32_t leader, number;
    struct peer *peer; /* NULL: not known where the leader is, or no memory */
    char *host;        /* where peer goes to */
    uint16_t port;
    struct list parts;
    int32_t fetching_n, waiting_n; /* of them, by their states */
    struct list changed, ranged;
    struct list delayed[FETCH_PAUSES]; /* by the length of their pause, each in order of its end */
    struct list throttled;             /* of parts */
    struct timer backoff;              /* armed: nothing is sent until then */
    uint32_t failures_n;               /* of its requests, in a row */
    struct timer delay;                /* of the first delayed */
    enum fetcher_call in_flight;
    struct peer_call call;
    struct arena arena; /* of the request in flight */
    union {
        struct fetch_request fetch;
        struct list_offsets_request range;
    } request;
    /* session: id 0: none; epoch 0: the next request is a full one */
    int32_t session_id, session_epoch;
    bool full_next;              /* the session is to be given up */
    struct forgotten *forgotten; /* the session is to forget them */
    size_t forgotten_n, forgotten_cap;
};

/* ---- follow.c */
void follow_set_state(struct follow *fw, enum follow_state state);
/* Something that the leader is to be told of changed: log end, log start. */
void follow_changed(struct follow *fw);
/* What is to be fetched: the log's end, but for `within`. */
int64_t follow_offset(const struct follow *fw);
/* Fetches nothing for replica.fetch.backoff.ms. */
void follow_delay(struct follow *fw);
/* The leader may only not have heard yet what we have: a short pause at first. */
void follow_retry(struct follow *fw);
/* After so many failures in a row before this one. */
int64_t fetch_pause_us(const struct replicas *rs, uint32_t failures_n);

/* ---- fetcher.c */
/* Sends nothing for a while. */
void fetcher_back_off(struct fetcher *f);

/* ---- fetch_request.c, fetch_take.c */
/* Fills f->request.fetch; false: nothing to ask for. ERR_NOMEM leaves a full fetch to be made. */
MUST_USE enum err fetcher_make_fetch(struct fetcher *f, int16_t version, bool *any);
void fetcher_take_fetch(struct fetcher *f, const struct fetch_response *resp);

/* ---- fetcher_range.c: partitions out of the leader's range */
MUST_USE enum err fetcher_make_range(struct fetcher *f);
void fetcher_take_range(struct fetcher *f, const struct list_offsets_response *resp);
/* No answer came. */
void fetcher_range_failed(struct fetcher *f);

/* ---- truncate.c: a follower's log gives way to its leader's */
/* Where our log must be cut when the leader's ends epoch at end (replication.md 4). */
int64_t follow_truncation_point(const struct partition *p, int32_t epoch, int64_t end);
/* Cuts to x, or begins anew there. False: it could not; the partition is delayed or failed. */
bool follow_truncate(struct follow *fw, int64_t x);
bool follow_restart_at(struct follow *fw, int64_t x);

#endif
