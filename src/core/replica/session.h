/* Incremental fetch sessions (KIP-227): what a client fetches is remembered, requests carry
 * changes, answers only partitions with something new. The table is bounded; a full table gives no
 * session (id 0), which is legal, unless one was idle for long. */
#ifndef REPLICA_SESSION_H
#define REPLICA_SESSION_H

#include "base/list.h"
#include "base/map.h"
#include "core/replica/replica.h"

/* One partition of a fetch: as asked, and as last answered. */
struct fetch_part {
    struct str topic; /* by name (before v13), or from the image; in the session: owned */
    struct uuid topic_id;
    int32_t index;
    int32_t current_leader_epoch;
    int64_t fetch_offset;
    int32_t last_fetched_epoch;
    int64_t log_start_offset;
    int32_t max_bytes;
    int64_t told_high_watermark, told_log_start; /* -1: nothing yet */
};

struct session {
    struct list lru;
    int32_t id, epoch; /* epoch: of the next request */
    bool uses_topic_ids;
    struct map parts; /* key: topic id or name, index -> struct fetch_part */
    int64_t used_us;
};

struct fetch_sessions {
    struct map by_id;
    struct list lru; /* least recently used first */
    uint64_t seed;
    struct env *env;
    size_t max;
    int64_t eviction_us;
};

void fetch_sessions_init(struct fetch_sessions *s, const struct replicas_args *args);
void fetch_sessions_close(struct fetch_sessions *s);

/* What a request means for sessions. */
struct session_context {
    int16_t error;        /* K_NONE, or the answer's top-level error (70, 71, 106) */
    bool incremental;     /* answer only changes */
    bool create;          /* give the answer a new session if there is room */
    int32_t session_id;   /* of the answer */
    struct fetch_part *v; /* what to fetch, in the request's arena */
    int32_t n;
};

/* ERR_NOMEM, else out. Full fetches close the session they name. */
MUST_USE enum err fetch_sessions_begin(struct fetch_sessions *s, const struct fetch_request *req,
                                       int16_t version, struct arena *a, struct now now,
                                       struct session_context *out);
/* A session for these parts; its id, or 0 when the table is full. */
int32_t fetch_sessions_create(struct fetch_sessions *s, const struct fetch_part *v, int32_t n,
                              bool uses_topic_ids, struct now now);
/* Remembers what an incremental answer told of a part; harmless if the session is gone. */
void fetch_sessions_told(struct fetch_sessions *s, int32_t id, const struct fetch_part *part,
                         int64_t high_watermark, int64_t log_start);

#endif
