/* KRaft: agreement on the metadata log (KIP-595, KIP-630, KIP-853, KIP-996). One raft node as a
 * state machine without network: messages in by functions, messages out through an outbox, files
 * through the log and jobs. A single node is a quorum of one with the same code.
 *
 * Promises (votes, our own share in the high watermark, messages of a new state) leave only when
 * quorum-state and log are durable. */
#ifndef QUORUM_RAFT_H
#define QUORUM_RAFT_H

#include "log/log.h"
#include "quorum/voters.h"
#include "rpc/dialing.h"
#include "wire/messages.h"

struct raft;

enum raft_state {
    RAFT_UNATTACHED,
    RAFT_PROSPECTIVE,
    RAFT_CANDIDATE,
    RAFT_LEADER,
    RAFT_FOLLOWER,
    RAFT_RESIGNED,
};

struct raft_config {
    int32_t election_timeout_ms; /* T; timers are random in [T, 2T) */
    int32_t fetch_timeout_ms;
    int32_t election_backoff_max_ms; /* after EndQuorumEpoch */
    int32_t request_timeout_ms;
    int32_t retry_backoff_ms;
    int32_t fetch_max_bytes;               /* a Fetch of ours asks for; one batch may be larger */
    int32_t fetch_snapshot_max_bytes;      /* so does a FetchSnapshot */
    int64_t snapshot_max_new_bytes;        /* metadata.log.max.record.bytes.between.snapshots */
    int64_t snapshot_max_interval_ms;      /* metadata.log.max.snapshot.interval.ms */
    int64_t retention_bytes, retention_ms; /* metadata.max.retention.*; < 0: no limit */
    bool auto_join;                        /* controller.quorum.auto.join.enable */
    struct log_config log;
};

/* Told to the owner, never from inside a call of the owner's. */
struct raft_events {
    void *ctx;
    /* The replica starts over from this state: a snapshot's record batches (control records
     * included), before any committed batch behind it. offset: of the first batch to come. */
    void (*snapshot)(void *ctx, int64_t offset, int32_t epoch, struct bytes batches);
    /* Committed batches in order, once each, control batches included. p is valid in the call. */
    void (*committed)(void *ctx, const struct batch *b);
    /* leader_id -1: none known. When we may act as leader ourselves is told by `claim`. */
    void (*leader)(void *ctx, int32_t leader_id, int32_t epoch);
    /* We lead, and every committed batch of earlier epochs has been given to `committed`
     * (KAFKA-15345): the controller may act. */
    void (*claim)(void *ctx, int32_t epoch);
    /* We lead no longer: what was appended and not committed may be lost or not. */
    void (*resign)(void *ctx, int32_t epoch);
    /* Enough new bytes or time: answer with raft_snapshot at a commit point. */
    void (*snapshot_due)(void *ctx);
    /* A node that we ask belongs to another cluster; most: so do most of those we can ask. NULL:
     * not told. */
    void (*stranger)(void *ctx, const char *host, uint16_t port, bool most);
    /* The metadata log directory failed: the node cannot go on. */
    void (*failed)(void *ctx, enum err e, const char *what);
};

/* Where other voters reach this one. */
struct raft_endpoint {
    struct str listener, host;
    uint16_t port;
};

/* ------------------------------------------------------------------ starting */

/* Worker's part: quorum-state, snapshots (names checked, .part and .deleted removed), the log
 * (always recovered whole). Embedded in its owner. */
struct raft_load {
    struct job job;
    struct env *env;
    struct timers *timers;
    struct budget *budget;
    const char
        *dir; /* ".../__cluster_metadata-0"; must exist, formatted; stays as long as the raft */
    struct raft_config config;
    int32_t node_id;
    struct uuid directory_id;
    const char *cluster_id; /* stays while the raft lives, as the endpoint's strings */
    struct raft_endpoint endpoint;
    const struct voter_set *static_voters; /* controller.quorum.voters; n == 0 when not set */
    /* controller.quorum.bootstrap.servers, their listener ""; stay as long as the raft */
    const struct raft_endpoint *bootstrap;
    size_t bootstrap_n;
    bool may_vote;           /* process.roles names controller; else an observer in any case */
    struct dialing *dialing; /* to other nodes; NULL: none are reached */
    struct budget *answers;  /* of theirs; or NULL */
    struct raft_events events;
    struct now now;
    void (*done)(struct raft_load *rl);
    enum err err;
    char message[512];
    /* own */
    void *impl;
    struct raft *raft;
};

void raft_load_start(struct raft_load *rl);
/* After done() with ERR_NONE. Starts the state machine: a sole voter stands for election at once.
 * On an error (rl->message) *out may be set all the same: it is then ended by raft_close. */
MUST_USE enum err raft_open(struct raft_load *rl, struct raft **out);
void raft_load_close(struct raft_load *rl);

/* As Kafka's storage tool with --standalone: makes dir with the 0-0 snapshot (kraft.version 1, the
 * voter set of this node, the feature levels). Runs in a job. */
struct raft_format {
    int32_t node_id;
    struct uuid directory_id;
    struct raft_endpoint endpoint;
    const struct bytes *records; /* framed: the feature levels */
    size_t records_n;
    struct now now;
};
MUST_USE enum err raft_format_standalone(struct disk *d, const char *dir,
                                         const struct raft_format *f);
/* As with --initial-controllers (kraft_version 1 and these voters), --no-initial-controllers (1,
 * NULL), or for static voters (0, NULL). Of f only records and now count. */
MUST_USE enum err raft_format_voters(struct disk *d, const char *dir, const struct raft_format *f,
                                     int16_t kraft_version, const struct voter_set *voters);

/* ------------------------------------------------------------------ the turn */

/* Settle: writes what is staged, counts what was synced, moves the high watermark, tells events.
 * True if anything moved. */
bool raft_settle(struct raft *r, struct now now);
/* Ends it: no event follows, a leader's epoch ends with it (its owner has stopped to act on it
 * before), its next start begins a new one. A leader first names its successors to the other
 * voters, which takes up to 5 s and raft_settle, to be called until done. The log is closed by a
 * job, then done(ctx). */
void raft_close(struct raft *r, void (*done)(void *ctx, enum err e), void *ctx);
/* Frees it where it stands, as the death of its process does. No job of it may be under way. */
void raft_drop(struct raft *r);

/* ------------------------------------------------------------------ facts */

enum raft_state raft_state(const struct raft *r);
int32_t raft_epoch(const struct raft *r);
int32_t raft_leader_id(const struct raft *r);
int64_t raft_high_watermark(const struct raft *r); /* -1: unknown */
/* Of a leader: all who follow it know all that is committed. Of others: true. */
bool raft_commits_known(const struct raft *r, struct now now);
/* As the leader tells it: -1 until it is established in its epoch. */
int64_t raft_known_high_watermark(const struct raft *r);
int64_t raft_end_offset(const struct raft *r);
const struct voter_set *raft_voters(const struct raft *r);
int16_t raft_kraft_version(const struct raft *r); /* 0: its voters are the configured ones */
const struct log *raft_log(const struct raft *r);
/* Where the leader's controller listener is; false: no leader known, or its endpoint is not.
 * leader_id may be our own. */
bool raft_leader_endpoint(const struct raft *r, int32_t *leader_id, struct str *host,
                          uint16_t *port);

/* A voter as the leader knows it; -1: not fetched from this leader yet. Times are wall. */
struct raft_replica {
    int32_t id;
    struct uuid directory_id; /* zero: a static voter's */
    int64_t end_offset;
    int64_t fetched_ms, caught_up_ms;
};
/* The ith of raft_voters, while we lead. */
struct raft_replica raft_replica_at(const struct raft *r, int32_t i, struct now now);

/* Those that fetch from this leader and are no voters, in the last 5 minutes. */
int32_t raft_observers_n(struct raft *r, struct now now);
struct raft_replica raft_observer_at(const struct raft *r, int32_t i);

/* Record batches of the 0-0 snapshot (what formatting wrote; control batches included), for the
 * controller's first claim; n == 0 when there is none. Lives as long as r. */
struct bytes raft_bootstrap_records(const struct raft *r);

/* ------------------------------------------------------------------ leader */

/* Writes one batch of framed metadata records (see core/metadata/records.h), as leader of `epoch`.
 * ERR_BUSY: not leader of that epoch. ERR_TOO_LARGE: over 8 MiB. ERR_NOSPC, ERR_NOMEM, ERR_NFILE:
 * as if it had not been asked for; any other error also ends the node (events.failed). The records
 * are committed when an events.committed batch ends at *last_offset or past it. */
MUST_USE enum err raft_append(struct raft *r, int32_t epoch, const struct bytes *values, size_t n,
                              struct now now, int64_t *last_offset);
/* Writes a snapshot of the committed state before `offset` by a job, then trims the log behind it
 * (KIP-630). records: framed metadata records. ERR_BUSY while one is being written. */
MUST_USE enum err raft_snapshot(struct raft *r, int64_t offset, const struct bytes *records,
                                size_t n, struct now now);

/* Raises kraft.version as leader of `epoch` (validate_only: says whether it could): the voters go
 * into the log, as they have told us to be. ERR_NONE too when it is that version already. ERR_BUSY:
 * not leader of that epoch; ERR_AGAIN: voters are changing, or what is committed is not known yet;
 * ERR_INVALID: a lower one, or a voter has not said that it knows it; errors of raft_append. */
MUST_USE enum err raft_upgrade(struct raft *r, int32_t epoch, int16_t version, bool validate_only,
                               struct now now);

/* ------------------------------------------------------------------ requests of others */

/* A request of another node's, embedded in its owner, with room for the answer. done() comes once,
 * from raft_settle, when the answer may leave: what it promises is on disk. */
struct raft_op {
    struct list link;
    void (*done)(struct raft_op *op);
    struct arena *arena; /* of the answer's parts; stays until done, as request and answer */
    struct str listener; /* that it came in on; "": none of which an endpoint is known */
    enum err err;        /* set: there is no answer, its connection is to be closed */
    /* own */
    struct raft *raft;
    const void *in;
    void *out;
    struct timer timer; /* a fetch that waits */
    bool counted, hastened;
};

void raft_vote(struct raft *r, struct raft_op *op, const struct vote_request *in,
               struct vote_response *out, struct now now);
void raft_begin_quorum_epoch(struct raft *r, struct raft_op *op,
                             const struct begin_quorum_epoch_request *in,
                             struct begin_quorum_epoch_response *out, struct now now);
void raft_end_quorum_epoch(struct raft *r, struct raft_op *op,
                           const struct end_quorum_epoch_request *in,
                           struct end_quorum_epoch_response *out, struct now now);

/* Waits while there is nothing new, up to its MaxWaitMs. */
void raft_fetch(struct raft *r, struct raft_op *op, const struct fetch_request *in,
                struct fetch_response *out, struct now now);
/* Reads the piece by a job. */
void raft_fetch_snapshot(struct raft *r, struct raft_op *op,
                         const struct fetch_snapshot_request *in,
                         struct fetch_snapshot_response *out, struct now now);
void raft_update_voter(struct raft *r, struct raft_op *op,
                       const struct update_raft_voter_request *in,
                       struct update_raft_voter_response *out, struct now now);
/* Answered when committed, or late (REQUEST_TIMED_OUT: it may come about all the same). */
void raft_add_voter(struct raft *r, struct raft_op *op, const struct add_raft_voter_request *in,
                    struct add_raft_voter_response *out, struct now now);
void raft_remove_voter(struct raft *r, struct raft_op *op,
                       const struct remove_raft_voter_request *in,
                       struct remove_raft_voter_response *out, struct now now);
/* It need not wait any longer: done() comes with the next settle. */
void raft_op_hasten(struct raft_op *op);

/* ------------------------------------------------------------------ requests to others */

/* With dialing, raft sends them itself. Without, its owner does: takes each and gives its answer
 * once, whatever became of it. There is one at a time to each node. */
struct raft_message {
    int32_t to_id; /* < 0: a bootstrap server */
    const char *host;
    uint16_t port;
    int16_t api_key;
    const void *request; /* of the api; as host, it stays until answered */
    int64_t deadline_us;
    /* with ERR_CLOSED: its machine said that nobody listens there */
    bool refused;
};
/* The next one, or NULL. */
struct raft_message *raft_next_message(struct raft *r, struct now now);
/* e is ERR_NONE: response is the api's; else NULL. ERR_UNSUPPORTED: no common version. */
void raft_answered(struct raft *r, struct raft_message *m, enum err e, const void *response,
                   struct now now);

/* True when no write of quorum-state is under way: messages of the present state may leave. */
bool raft_is_durable(const struct raft *r);

#endif
