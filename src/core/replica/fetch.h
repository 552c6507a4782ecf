/* The inside of Fetch: what a fetch looks at and what it finds there.
 *
 * A part is one partition as a client asks for it; parts belong to a set. The set of a fetch
 * without a session lives as long as the fetch, in its arena; that of a session (KIP-227) lives
 * over many fetches. A part is hot while there may be something to say of it: bytes, an error, a
 * high watermark not told yet. Only hot parts are looked at, so a fetch costs what changed; a part
 * that cools watches its partition, which heats it again and wakes the fetches that wait on the
 * set. */
#ifndef REPLICA_FETCH_H
#define REPLICA_FETCH_H

#include "core/replica/partition.h"

struct session;

/* What the last look found. */
struct fetch_found {
    struct partition *p; /* valid within the turn's look */
    int16_t error;
    bool refused;      /* before the partition was looked for: Kafka answers these last */
    bool diverging;    /* the reader's last epoch ends elsewhere */
    bool more;         /* there is something below the limit, taken or not */
    int32_t preferred; /* another replica that the reader is sent to (KIP-392); -1 */
    int32_t diverging_epoch;
    int64_t diverging_end;
    int64_t high_watermark, last_stable, log_start; /* -1 with an error */
    struct log_span span;
};

struct fetch_part {
    struct fetch_set *set;
    struct list hot;   /* in set->hot */
    struct list watch; /* in its partition's watchers */
    /* as asked */
    struct str topic; /* null when the request names ids */
    struct uuid topic_id;
    int32_t index;
    int32_t current_leader_epoch;
    int64_t fetch_offset;
    int32_t last_fetched_epoch;
    int64_t log_start_offset;
    int32_t max_bytes;
    /* as last answered; -1: nothing yet, or an error */
    int64_t told_high_watermark, told_log_start;
    struct fetch_found found;
};

struct fetch_set {
    struct replicas *rs;
    struct list hot;     /* in the order of answers: what got bytes goes to the end */
    struct list fetches; /* struct fetch_state.waiting */
    bool by_id;
    /* Of a follower's session; else -1. Each of its fetches is one of its cold parts too, of which
     * this is all that is written down: see fetch_part_speak. */
    int32_t silent_replica;
    int64_t fetched_us; /* by the last of them */
};

/* One Fetch under way, in its request's arena. */
struct fetch_state {
    struct replicas *rs;
    struct fetch_op *op;
    struct fetch_set *set; /* own, or the session's */
    struct fetch_set own;
    struct fetch_part *v; /* of a fetch without a session, in the order asked */
    int32_t n;
    struct session *session; /* counted; NULL without one */
    int16_t error;           /* top-level */
    bool create;             /* the answer may give a new session */
    int32_t replica_id;
    int64_t replica_epoch;
    bool read_committed;
    bool any_replica;   /* a consumer that followers may serve (KIP-392) */
    bool odd_isolation; /* neither level: nothing is read */
    int64_t max_bytes, min_bytes;
    int64_t arrived_us;
    struct timer timer;
    struct list woken;   /* in replicas.woken_fetch or ready_fetch */
    struct list waiting; /* in set->fetches */
    struct list parked;  /* in replicas.parked_followers */
    bool looked;         /* once at least */
    bool cold;           /* something found was not in the page cache */
    bool due;            /* the deadline passed, or it was cancelled */
};

/* ---- fetch_set.c */
void fetch_set_init(struct fetch_set *set, struct replicas *rs, bool by_id);
/* Cold and watching nothing. */
void fetch_part_init(struct fetch_part *part, struct fetch_set *set);
/* Takes over what a request says of a partition; what was told stays, in the same leader epoch. */
void fetch_part_ask(struct fetch_part *part, const struct fetch_request_fetch_partition *in);
/* Writes down for its follower that a cold part was asked for by all fetches of its session until
 * the last one. */
void fetch_part_speak(struct fetch_part *part);
/* There may be something to say of it: wakes whoever waits on its set. */
void fetch_part_heat(struct fetch_part *part);
void fetch_part_watch(struct fetch_part *part, struct partition *p);
/* Out of all lists. */
void fetch_part_leave(struct fetch_part *part);

/* ---- fetch_look.c */
/* Looks at every hot part, within the answer's limit; those with nothing to say cool down. True if
 * the answer can leave. */
bool fetch_look(struct fetch_state *st);
/* Nothing to say: no bytes, no error, nothing that a session has not told. */
bool fetch_part_quiet(const struct fetch_state *st, const struct fetch_part *part);

/* ---- fetch_preferred.c */
/* The replica that a consumer is better off with than with us, who lead; -1: none. */
int32_t partition_preferred_replica(const struct fetch_state *st, const struct fetch_part *part,
                                    const struct partition *p);

/* ---- fetch_answer.c: fills the response from what the last look found. */
void fetch_answer(struct fetch_state *st);

#endif
