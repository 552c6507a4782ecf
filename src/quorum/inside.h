/* The inside of raft: shared by its files only. */
#ifndef QUORUM_INSIDE_H
#define QUORUM_INSIDE_H

#include "base/check.h"
#include "quorum/quorum_state.h"
#include "quorum/raft.h"
#include "quorum/snapshot.h"
#include "quorum/voter_history.h"

/* Where a controller listens; host "": not known. */
struct raft_address {
    char host[256];
    uint16_t port;
};

struct raft_persist {
    struct job job;
    struct quorum_state state;
    const char *dir; /* raft_load.dir */
    enum err err;
};

struct raft_snapshot_job {
    struct job job;
    bool running;
    const char *dir; /* raft_load.dir */
    struct snapshot_id id;
    struct buf content;
    int64_t bytes;
    enum err err;
};

/* Those that are on disk, but for 0-0; the oldest first. */
enum { SNAPSHOTS_KEPT_MAX = 256 };
struct snapshots_kept {
    struct snapshot_kept {
        struct snapshot_id id;
        int64_t bytes, written_ms; /* wall */
    } * v;
    int32_t n, cap;
};

struct raft_clean {
    struct job job;
    bool running;
    const char *dir;
    struct snapshot_id drop[SNAPSHOTS_KEPT_MAX];
    int32_t n;
};

/* A snapshot that comes from the leader. */
struct raft_download {
    struct file *file; /* its .part; NULL: none comes */
    struct snapshot_id id;
    int64_t position, size; /* size -1: not known */
};

/* It is all there and becomes durable. */
struct raft_install {
    struct job job;
    bool running;
    const char *dir;
    struct snapshot_id id;
    struct buf content;
    enum err err;
};

enum { RAFT_KRAFT_VERSION_MAX = 1, REMOVE_TIMEOUT_MS = 30000 };

/* A voter that joins or leaves, by this leader. */
struct raft_change {
    enum { CHANGE_NONE, CHANGE_ASKS, CHANGE_COMMITS } phase;
    struct raft_op *op; /* NULL: answered already */
    bool adding, ack_when_committed, asked, late;
    struct voter voter; /* that joins */
    int64_t last_offset;
    struct timer timer;
};

/* How far a voter's log is, as its leader knows it by its fetches. Times are wall; -1: unknown. */
struct voter_progress {
    int64_t end;
    int64_t fetched_ms, caught_up_ms;
    int64_t leader_end; /* ours, when it fetched last */
    int64_t known_hw;   /* as it said then; INT64_MAX: it does not say */
};

/* How it was noticed that voter lists differ. */
enum raft_disagreement {
    DISAGREE_CANDIDATE,
    DISAGREE_LEADER,
    DISAGREE_VOTER,
    DISAGREE_OURSELVES,
    DISAGREE_LIST,
    DISAGREE_ADDRESS,
    DISAGREE_KINDS
};

/* No cluster lives to see it: who names a later epoch sends garbage. Ours can always be raised. */
enum { RAFT_EPOCH_MAX = INT32_MAX / 2 };

enum vote_result { VOTE_NONE, VOTE_GRANTED, VOTE_REFUSED };

/* The bodies of what we send, each with its one topic and partition. */
union raft_body {
    struct {
        struct vote_request req;
        struct vote_request_topic_data topic;
        struct vote_request_partition_data part;
    } vote;
    struct {
        struct begin_quorum_epoch_request req;
        struct begin_quorum_epoch_request_topic_data topic;
        struct begin_quorum_epoch_request_partition_data part;
        struct begin_quorum_epoch_request_leader_endpoint endpoint;
    } begin;
    struct {
        struct end_quorum_epoch_request req;
        struct end_quorum_epoch_request_topic_data topic;
        struct end_quorum_epoch_request_partition_data part;
        struct end_quorum_epoch_request_replica_info candidates[VOTERS_MAX];
        int32_t ids[VOTERS_MAX];
    } end;
    struct {
        struct fetch_request req;
        struct fetch_request_fetch_topic topic;
        struct fetch_request_fetch_partition part;
    } fetch;
    struct {
        struct fetch_snapshot_request req;
        struct fetch_snapshot_request_topic_snapshot topic;
        struct fetch_snapshot_request_partition_snapshot part;
    } snapshot;
    struct {
        struct update_raft_voter_request req;
        struct update_raft_voter_request_listener listener;
    } update;
    struct {
        struct add_raft_voter_request req;
        struct add_raft_voter_request_listener listener;
    } add;
    struct remove_raft_voter_request remove;
    struct api_versions_request versions;
};

/* A node that we ask, one request at a time. */
struct raft_link {
    struct list link;
    int32_t id; /* < 0: the bootstrap server -2 - id */
    struct raft_address at;
    bool busy;     /* message is on its way */
    uint64_t turn; /* raft.turn when it was made: if that has moved, its answer is not looked at */
    int64_t ready_us; /* not before */
    bool failed;      /* the last request was not answered */
    bool stranger;    /* it answered that it is of another cluster */
    struct raft_message message;
    union raft_body body;
    /* channel.c */
    struct raft *raft;
    struct peer *peer;
    struct raft_address peer_at;
    struct peer_call call;
};

struct raft {
    struct env *env;
    struct timers *timers;
    struct raft_config config;
    int32_t node_id;
    struct uuid directory_id;
    const char *cluster_id;
    struct raft_endpoint endpoint;
    const struct raft_endpoint *servers; /* bootstrap servers */
    size_t servers_n;
    bool may_vote;
    struct dialing *dialing;
    struct budget *answers;
    struct raft_events events;
    struct now now;
    struct log *log;
    int64_t flush_asked; /* end up to which we asked the log to sync */

    /* state */
    enum raft_state state;
    int32_t epoch;
    uint64_t turn;                 /* one more with each change of the state */
    int32_t leader_id;             /* -1: unknown */
    struct raft_address leader_at; /* as messages told; else its voter's entry counts */
    int32_t voted_id;              /* -1: nobody */
    struct uuid voted_directory_id;
    bool fetched;       /* as this follower, once successfully */
    struct timer timer; /* election, fetch, check-quorum: by state */

    /* voters, and what each did for us in this state */
    struct voter_set voters; /* the newest of history, and its kraft.version */
    int16_t kraft_version;
    struct voter_history history;
    enum vote_result votes[VOTERS_MAX];
    struct voter_progress progress[VOTERS_MAX]; /* of the others, while we lead */
    bool heard[VOTERS_MAX];                     /* in this check-quorum window */
    int64_t begin_us[VOTERS_MAX];               /* BeginQuorumEpoch is due, while we lead */
    bool ended[VOTERS_MAX];                     /* acknowledged our EndQuorumEpoch */
    int32_t successors[VOTERS_MAX];             /* of the epoch we led: voters, best first */
    int32_t successors_n;
    struct voter_set *told; /* kraft.version 0: what they are, by what they said; NULL: nothing */
    bool was_voter;         /* in this life, or as far back as history goes */

    /* follower */
    uint64_t refused_turn; /* in which what the leader says was refused, and told */
    int64_t update_us;     /* UpdateRaftVoter is due, if it is wanted */
    bool update_done;      /* in this leadership */
    struct buf incoming;   /* batches staged and not written: a truncation before is not on disk */

    /* quorum-state on disk */
    struct raft_persist persist;
    bool persisting, persist_again;

    struct raft_observer {
        int32_t id;
        struct uuid directory_id;
        struct voter_progress progress;
        int64_t seen_us;
    } * observers;
    int32_t observers_n, observers_cap;

    /* leader */
    struct raft_change change;
    int64_t high_watermark;          /* -1: unknown */
    int64_t epoch_start_offset;      /* -1: its LeaderChange is not staged yet */
    struct batch_builder *unwritten; /* that batch, staged, while a truncation is not on disk */
    bool claimed;
    bool resigned_untold; /* events.resign is due, of this epoch */
    int32_t resigned_epoch;
    int32_t told_leader_id, told_epoch;

    /* the commit stream */
    int64_t delivered;    /* next offset for events.committed */
    bool snapshot_untold; /* events.snapshot is due */
    struct buf read;      /* batches being delivered */

    /* snapshots */
    struct snapshot_id newest; /* offset -1: none; 0-0 does not count */
    struct snapshots_kept kept;
    struct buf newest_content; /* until it was told */
    struct buf bootstrap;      /* 0-0 */
    struct raft_snapshot_job snapshot_job;
    struct raft_download download;
    struct raft_install install;
    struct raft_clean clean;
    struct timer clean_timer;
    bool clean_due;
    int32_t pieces_n;            /* of ours, being read for others */
    uint64_t delivered_bytes;    /* since the last snapshot */
    int64_t snapshot_us;         /* when the last one was asked for */
    struct timer snapshot_timer; /* wakes a turn when the next one is due by time */

    /* other nodes */
    struct list links;
    struct timer talk_timer; /* wakes a turn when something more may be sent */
    int64_t talk_us;
    struct list done_ops; /* answered, to be told when durable */
    struct list parked;   /* fetches that wait for news; what was new when they were looked at: */
    int64_t parked_end, parked_hw;
    uint64_t parked_turn;
    bool parked_look; /* one of them is to be looked at again */

    int64_t disagree_us[DISAGREE_KINDS]; /* not told again before */

    bool failed;
    enum err failed_err;
    const char *failed_what;
    bool failed_told;
    struct log_close close;
    void (*closed)(void *ctx, enum err e);
    void *closed_ctx;
    bool handing_over, handed_late; /* closing: the successors are being told; long enough */
    bool log_gone;                  /* closing: only our own jobs are left */
    enum err closing_err;
};

/* Kafka's id of the metadata topic: 15 zero bytes and a 1. */
extern const struct uuid raft_topic_id;

int32_t raft_voter_index(const struct raft *r, int32_t id, struct uuid directory_id); /* or -1 */
bool raft_is_voter(const struct raft *r);
bool raft_sole_voter(const struct raft *r);
bool raft_majority(const struct raft *r, int32_t n);
int32_t raft_last_epoch(const struct raft *r); /* of the log */
/* log_end_offset_for_epoch; of an epoch that the log does not know: its last one, and its end. */
void raft_epoch_end(const struct raft *r, int32_t epoch, int32_t *end_epoch, int64_t *end);
/* Of a timeout as configured or asked for. Kafka takes 0; then it is 1 ms. */
int64_t raft_timeout_us(int32_t ms);
/* A lack that may be over later; any other error of a file ends the node. */
bool raft_error_passes(enum err e);

/* state.c: the only functions that change the state */
void raft_become_unattached(struct raft *r, int32_t epoch, int32_t leader_id);
void raft_become_prospective(struct raft *r);
void raft_become_candidate(struct raft *r);
void raft_become_leader(struct raft *r);
void raft_become_follower(struct raft *r, int32_t epoch, int32_t leader_id);
void raft_become_resigned(struct raft *r);
void raft_add_vote(struct raft *r, int32_t candidate_id, struct uuid directory_id);
void raft_persist(struct raft *r);
void raft_fail(struct raft *r, enum err e, const char *what);

/* A majority refused, or the time is over: follower again, or unattached, in the same epoch. */
void raft_end_prospective(struct raft *r);
/* At start: the state that epoch, leader and vote of quorum-state and the log say. */
void raft_begin_state(struct raft *r);
/* A sole leader without a first batch (a full disk): wakes a turn to try again. */
void raft_retry_later(struct raft *r);

/* raft.c */
void raft_free(struct raft *r);
void raft_log_failed(void *ctx, struct log *l, enum err e, const char *what);
void raft_log_progress(void *ctx, struct log *l);
/* A job of ours ended: the last thing that raft_close waited for? */
void raft_job_ended(struct raft *r);

/* What a message says of epoch and leader: a higher epoch, or a leader unknown so far, is followed.
 * host.n <= 0: it names no endpoint. */
void raft_hear(struct raft *r, int32_t epoch, int32_t leader_id, struct str host, uint16_t port);
/* The leader's address; false: it is not known, or the leader is we. */
bool raft_leader_address(const struct raft *r, struct str *host, uint16_t *port);
/* Voter i spoke to its leader, or was spoken to: BeginQuorumEpoch can wait. */
void raft_voter_spoke(struct raft *r, int32_t i);
/* After EndQuorumEpoch: the next election comes in so long. */
void raft_end_fetching(struct raft *r, int64_t us);
/* Nobody listens where it did: as a voter that follows we do not wait for our timer. It is deposed
 * only if a majority of the voters grant pre-votes, so see that too. */
void raft_leader_gone(struct raft *r);

/* vote.c */
int32_t raft_votes_n(const struct raft *r, enum vote_result what);
/* The next request of that kind and its answer; e and response as for raft_answered. */
struct raft_message *raft_next_vote(struct raft *r);
bool raft_vote_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);
/* begin_epoch.c, end_epoch.c */
struct raft_message *raft_next_begin(struct raft *r);
bool raft_begin_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);
/* Who of the others should stand next. */
void raft_find_successors(struct raft *r);
struct raft_message *raft_next_end(struct raft *r);
bool raft_end_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);

/* At once, or after a change of the voters: what timer the state wants. */
void raft_fit_timer(struct raft *r);
/* Closing: time to name successors. False: no memory for the timer. */
bool raft_hand_over_in(struct raft *r, int64_t us);
/* A fetch that its leader took. */
void raft_fetch_succeeded(struct raft *r);

/* voters_rule.c */
bool raft_voters_from_log(const struct raft *r); /* else only configured or formatted */
/* Takes over the newest of r->history. */
void raft_voters_changed(struct raft *r);
/* The log was cut at x. */
void raft_cut_voters(struct raft *r, int64_t x);
/* A control batch at the log's end. ERR_CORRUPT, ERR_NOMEM. */
MUST_USE enum err raft_take_control(struct raft *r, const struct batch *b);

/* disagree.c: tells that another node's voters are not ours, while they are static. */
void raft_tell_disagreement(struct raft *r, enum raft_disagreement what, int32_t id);
/* Does so when id is no voter of ours. */
void raft_check_is_voter(struct raft *r, enum raft_disagreement what, int32_t id);
/* b: a control batch that our leader sent. */
void raft_check_leaders_voters(struct raft *r, const struct batch *b);

/* open.c: what r->newest_content says of the voters, into r->history. */
MUST_USE enum err raft_take_snapshot_voters(struct raft *r);

/* fetch.c */
struct raft_message *raft_next_fetch(struct raft *r);
bool raft_fetch_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);
/* update_voter.c */
bool raft_update_is_due(struct raft *r);
struct raft_message *raft_ask_update(struct raft *r, struct raft_link *l);
bool raft_update_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);
void raft_update_later(struct raft *r);
/* upgrade.c: voter i says what it is, with kraft.version 0 */
void raft_voter_told(struct raft *r, int32_t i, const struct voter *v);
void raft_forget_told(struct raft *r);
/* auto_join.c */
void raft_note_membership(struct raft *r);
bool raft_join_is_due(struct raft *r);
struct raft_message *raft_ask_join(struct raft *r, struct raft_link *l);
bool raft_join_answered(struct raft *r, const struct raft_link *l, enum err e,
                        const void *response);
/* change_voters.c: no change is under way or uncommitted, and we know what is committed */
bool raft_may_change_voters(const struct raft *r);
/* The lead ends: it may come about or not. */
void raft_abort_change(struct raft *r);
bool raft_finish_change(struct raft *r);
struct raft_message *raft_ask_candidate(struct raft *r);
bool raft_candidate_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);
/* leader.c: writes the set, which rules at once. */
MUST_USE enum err raft_put_voters(struct raft *r, const struct voter_set *set, int64_t *last);
/* The same, with another kraft.version. */
MUST_USE enum err raft_put_voters_as(struct raft *r, int16_t kraft_version,
                                     const struct voter_set *set, int64_t *last);
/* Is our own entry in the voter set what we are reached at now? */
bool raft_own_entry_current(const struct raft *r);
/* fetch_serve.c: those that may have an answer now */
bool raft_wake_fetches(struct raft *r);
/* What a request to the leader of `epoch` is refused with, or K_NONE. */
int16_t raft_check_leader(const struct raft *r, int32_t epoch);

#define RAFT_TOPIC STR_LIT("__cluster_metadata")

/* op.c: checks that every request has, and what every answer says of the leader. */
bool raft_right_cluster(const struct raft *r, struct str cluster_id);
bool raft_is_metadata_topic(struct str name);
/* It is meant for another voter than this one; id < 0, a zero directory: whoever it reaches. */
bool raft_meant_for_other(const struct raft *r, int32_t voter_id, struct uuid directory_id);
/* Who says to lead, or to have led, that epoch: what refuses it, or K_NONE. */
int16_t raft_check_other_leader(const struct raft *r, int32_t epoch, int32_t leader_id);
/* The leader's endpoint for an answer's NodeEndpoints. */
bool raft_node_endpoint(const struct raft *r, const struct raft_op *op, int32_t *id,
                        struct str *host, uint16_t *port);
void raft_op_begin(struct raft *r, struct raft_op *op, const void *in, void *out);
/* Its answer is complete; it leaves when durable. */
void raft_op_ready(struct raft *r, struct raft_op *op, enum err e);
bool raft_finish_ops(struct raft *r);
/* They get no answer: the node ends. */
void raft_abandon_ops(struct raft *r);

/* links.c */
/* The link to a node, made when there is none; NULL: no memory. */
struct raft_link *raft_link_to(struct raft *r, int32_t id, struct str host, uint16_t port);
/* May it be asked something now? Else the turn is woken when it may. */
bool raft_link_ready(struct raft *r, struct raft_link *l);
/* Of voter i, ready; NULL: not now, or no address. Never of our own. */
struct raft_link *raft_voter_link(struct raft *r, int32_t i);
/* l's message, over l->body, which is filled. */
struct raft_message *raft_send(struct raft *r, struct raft_link *l, int16_t api_key,
                               const void *request);
void raft_talk_at(struct raft *r, int64_t us);
void raft_back_off(struct raft *r, struct raft_link *l);
void raft_links_close(struct raft *r);
/* channel.c: drives the peers. True if anything moved. */
bool raft_talk(struct raft *r);

/* leader.c */
/* observers.c; NULL: no room for one more */
struct voter_progress *raft_observer(struct raft *r, int32_t id, struct uuid directory_id);
/* A voter shows that it follows (check-quorum); others do not count. */
void raft_heard(struct raft *r, int32_t replica_id, struct uuid directory_id);
void raft_handle_fetch_position(struct raft *r, int32_t replica_id, struct uuid directory_id,
                                int64_t end_offset, struct now now);
void raft_timer_fired(struct timer *t);
bool raft_lead(struct raft *r);
/* After a write of the log: what became of the epoch's first batch, if it had to wait. */
void raft_unwritten_done(struct raft *r, enum err e);
bool raft_update_high_watermark(struct raft *r);
/* commit.c */
bool raft_deliver(struct raft *r);
/* For timers that only wake a turn: one follows every timer. */
void raft_wake(struct timer *t);
/* snapshot_fetch.c: the leader says to begin from that one. */
bool raft_snapshot_named(struct raft *r, struct snapshot_id id);
struct raft_message *raft_ask_piece(struct raft *r, struct raft_link *l);
bool raft_piece_answered(struct raft *r, struct raft_link *l, enum err e, const void *response);
void raft_drop_download(struct raft *r);
/* snapshot_clean.c */
/* For one more, so that keeping it cannot fail. */
MUST_USE enum err raft_keep_room(struct snapshots_kept *k);
MUST_USE enum err raft_keep_snapshot(struct snapshots_kept *k, struct snapshot_kept s);
void raft_kept_close(struct snapshots_kept *k);
/* Old ones go, if they are to. */
void raft_clean_snapshots(struct raft *r);
void raft_clean_timer_fired(struct timer *t);
void raft_drop_behind(struct raft *r);
/* snapshot_job.c: the log begins at offset, its older segments go. */
MUST_USE enum err raft_trim_log(struct raft *r, int64_t offset);

#endif
