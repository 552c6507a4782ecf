/* Incremental fetch sessions (KIP-227): what a client fetches is remembered, requests carry
 * changes, answers only partitions with something new. The table is bounded
 * (max.incremental.fetch.session.cache.slots); when it is full, a new session takes the place of
 * one that was idle for long, or of a smaller one that has lived long, a follower's that of a
 * client's; else the answer gives no session (id 0), which is legal. A session's memory is charged
 * to the budget; without it there is none. */
#ifndef REPLICA_SESSION_H
#define REPLICA_SESSION_H

#include "base/map.h"
#include "core/replica/fetch.h"

struct session {
    struct fetch_set set;
    struct list lru;
    int32_t id;
    int32_t epoch;         /* of the next request */
    bool privileged;       /* a follower's */
    int64_t replica_epoch; /* of its last fetch */
    struct map parts;      /* topic id or name, index -> struct fetch_part */
    int64_t created_us, used_us;
    uint32_t refs; /* fetches under way, and the table */
};

struct fetch_sessions {
    struct map by_id; /* int32 -> struct session */
    struct list lru;  /* least recently used first */
    uint64_t seed;
    struct env *env;
    struct budget *budget;
    size_t max;
};

void fetch_sessions_init(struct fetch_sessions *s, const struct replicas_args *args);
/* No fetch may be under way. */
void fetch_sessions_close(struct fetch_sessions *s);

/* What the request means for sessions: sets st->error (70, 71, 106), st->create, st->session
 * (counted) when it is incremental. A full fetch closes the session that it names. A session left
 * without partitions is closed: the fetch then goes on without one. ERR_NOMEM. */
MUST_USE enum err fetch_sessions_begin(struct fetch_sessions *s, struct fetch_state *st);
/* A session for the parts of an answered full fetch; its id, 0 when there is no room. */
int32_t fetch_sessions_create(struct fetch_sessions *s, const struct fetch_state *st);

/* A fetch is through with it. */
void fetch_session_unref(struct fetch_sessions *s, struct session *ss);

#endif
