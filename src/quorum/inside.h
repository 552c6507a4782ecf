/* The inside of raft: shared by its files only. */
#ifndef QUORUM_INSIDE_H
#define QUORUM_INSIDE_H

#include "base/check.h"
#include "quorum/quorum_state.h"
#include "quorum/raft.h"
#include "quorum/snapshot.h"

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
    struct snapshot_id drop; /* an older one to delete afterwards; offset -1: none */
    enum err err;
};

/* How far a voter's log is, as its leader knows it by its fetches. Times are wall; -1: unknown. */
struct voter_progress {
    int64_t end;
    int64_t fetched_ms, caught_up_ms;
    int64_t leader_end; /* ours, when it fetched last */
};

enum vote_result { VOTE_NONE, VOTE_GRANTED, VOTE_REFUSED };

struct raft {
    struct env *env;
    struct timers *timers;
    struct raft_config config;
    int32_t node_id;
    struct uuid directory_id;
    const char *cluster_id;
    struct raft_endpoint endpoint;
    bool may_vote;
    struct raft_events events;
    struct now now;
    struct log *log;
    int64_t flush_asked; /* end up to which we asked the log to sync */

    /* state */
    enum raft_state state;
    int32_t epoch;
    int32_t leader_id; /* -1: unknown */
    int32_t voted_id;  /* -1: nobody */
    struct uuid voted_directory_id;
    bool fetched;       /* as this follower, once successfully */
    struct timer timer; /* election, fetch, check-quorum: by state */

    /* voters, and what each did for us in this state */
    struct voter_set voters;
    bool voters_from_log; /* not only from the 0-0 snapshot */
    int16_t kraft_version;
    enum vote_result votes[VOTERS_MAX];
    struct voter_progress progress[VOTERS_MAX]; /* of the others, while we lead */
    bool heard[VOTERS_MAX];                     /* in this check-quorum window */

    /* quorum-state on disk */
    struct raft_persist persist;
    bool persisting, persist_again;

    /* leader */
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
    struct snapshot_id newest, previous; /* offset -1: none; 0-0 does not count */
    struct buf newest_content;           /* until it was told */
    struct buf bootstrap;                /* 0-0 */
    struct raft_snapshot_job snapshot_job;
    uint64_t delivered_bytes;    /* since the last snapshot */
    int64_t snapshot_us;         /* when the last one was asked for */
    struct timer snapshot_timer; /* wakes a turn when the next one is due by time */

    struct list outbox;
    bool failed;
    enum err failed_err;
    const char *failed_what;
    bool failed_told;
    struct log_close close;
    void (*closed)(void *ctx, enum err e);
    void *closed_ctx;
    bool log_gone; /* closing: only our own jobs are left */
    enum err closing_err;
};

int32_t raft_voter_index(const struct raft *r, int32_t id, struct uuid directory_id); /* or -1 */
bool raft_is_voter(const struct raft *r);
bool raft_sole_voter(const struct raft *r);
bool raft_majority(const struct raft *r, int32_t n);
int32_t raft_last_epoch(const struct raft *r); /* of the log */
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

/* vote.c */
int32_t raft_votes_n(const struct raft *r, enum vote_result what);

/* leader.c */
void raft_timer_fired(struct timer *t);
bool raft_lead(struct raft *r);
/* After a write of the log: what became of the epoch's first batch, if it had to wait. */
void raft_unwritten_done(struct raft *r, enum err e);
bool raft_update_high_watermark(struct raft *r);
/* commit.c */
bool raft_deliver(struct raft *r);
void raft_snapshot_time(struct timer *t);
/* snapshot_job.c: the log begins at offset, its older segments go. */
MUST_USE enum err raft_trim_log(struct raft *r, int64_t offset);

#endif
