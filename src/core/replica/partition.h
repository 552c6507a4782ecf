/* One partition as this broker holds it (replication.md 1 to 3): its log, the roles that the
 * metadata log gave it, what the leader knows of its followers. */
#ifndef REPLICA_PARTITION_H
#define REPLICA_PARTITION_H

#include "core/replica/replica.h"

/* A follower as its leader knows it. Times are monotonic. */
struct follower {
    int32_t id;
    int64_t end_offset; /* -1: not fetched from this leader yet */
    int64_t log_start;
    int64_t last_fetch_us;
    int64_t last_fetch_leader_end; /* our LEO at its previous fetch */
    int64_t last_caught_up_us;
    int64_t broker_epoch; /* that it sent; -1 */
};

enum isr_state { ISR_COMMITTED, ISR_PENDING_EXPAND, ISR_PENDING_SHRINK };

/* An ISR that was asked for and is not known to be committed (replication.md 3). */
struct isr_change {
    struct list link; /* in the sender's queue; in no list while a request carries it */
    struct partition *p;
    uint64_t seq; /* of this broker's changes: what an answer is for */
    int32_t n;
    /* with the broker epochs of when it was decided */
    struct alter_partition_request_broker_state members[];
};

struct log_dir;

/* What every batch looks at comes first and together: with thousands of partitions each line of it
 * is a cache miss. */
struct partition {
    struct replicas *rs;
    struct log *log; /* NULL: still loading, or its log directory failed */
    char *topic;
    int32_t index;
    int32_t leader_epoch;
    bool leading;
    enum isr_state isr_state;
    uint8_t throttled; /* THROTTLED_LEADER, THROTTLED_FOLLOWER */
    int32_t replicas_n, isr_n, followers_n;
    int64_t high_watermark;
    int64_t promised;         /* log_promised_end as last looked at */
    int64_t seen_end;         /* log_end_offset as last looked at */
    struct list dirty;        /* in replicas.dirty */
    struct list writing;      /* struct produce_part.link: not written; required offsets rising */
    struct list promising;    /* written, acks 0 or 1: wait for the promised end */
    struct list replicating;  /* written, acks -1: wait for the high watermark */
    struct list deleting;     /* struct delete_part.link: required starts rising */
    struct list watchers;     /* struct fetch_part.watch */
    struct list coordinators; /* struct replicas_watch.link */
    struct list raised;       /* in replicas.raised: the files alone do not say the log start */
    struct log_dir *dir; /* where its log is, or may be once that is back; NULL: not known yet */
    struct topic_config config;

    struct uuid topic_id;
    int32_t leader, partition_epoch;
    int64_t leader_epoch_start;
    int32_t *replicas, *isr;    /* assignment; committed ISR */
    int32_t pending_member;     /* of an expansion: in the maximal ISR already */
    struct isr_change *change;  /* pending; NULL: committed */
    uint64_t sent_seq;          /* of the change in the request in flight, current or not; 0 */
    struct follower *followers; /* all replicas but ourselves */
    struct list led;            /* in replicas.led: led here, with followers */
    struct list misplaced;      /* queued: the metadata name another log directory */
    struct follow *follow;      /* how it is fetched from its leader; NULL: it is not */
    struct leaving *leaving;    /* how its log and directory go, when they go */
    struct list all;            /* in replicas.all */
    int64_t saved_start;        /* of the log start: what a start would find */
    int64_t saving_start;       /* and once the checkpoint in flight is written */
};

/* ---- high_watermark.c: pure rules, by hand in tests */

/* min(min.insync.replicas, replicas) */
int32_t partition_effective_min_isr(const struct partition *p);
/* LEO reaches the leader's, or it was caught up within lag_max_us. */
bool follower_caught_up(const struct follower *f, int64_t leader_end, int64_t now_us,
                        int64_t lag_max_us);
/* Assigned, unfenced, not shutting down, and its fetches carry the registered broker epoch. */
bool partition_eligible(const struct partition *p, const struct follower *f);
/* In the maximal ISR: committed, or in a pending expansion. */
bool partition_in_maximal_isr(const struct partition *p, int32_t id);
int32_t partition_maximal_isr_n(const struct partition *p);
/* hw, or as near to it as our log reaches. */
int64_t partition_within_log(const struct partition *p, int64_t hw);
/* Raises the HW by the general rule: refused under min ISR, never lowered. True if it rose.
 * own_end: our log's promised end. */
bool partition_advance_high_watermark(struct partition *p, int64_t own_end, int64_t now_us,
                                      int64_t lag_max_us);

/* ---- follower.c (KIP-16) */
#define FOLLOWER_NEVER_US (INT64_MIN / 2) /* longer ago than any lag */
struct follower follower_unheard(int32_t id);
/* A fetch of it, with our log end when it was served. */
void follower_fetched(struct follower *f, int64_t fetch_offset, int64_t log_start,
                      int64_t leader_end, int64_t broker_epoch, int64_t now_us);
struct follower *partition_follower(const struct partition *p, int32_t id); /* or NULL */
/* It asked for the same again at now_us, and was caught up all the while: what a session did not
 * mention (session.h). */
void follower_repeated(struct follower *f, int64_t now_us);

/* ---- isr.c */
bool partition_in_isr(const struct partition *p, int32_t id); /* the committed one */
/* After a follower's fetch: it joins the ISR when nothing speaks against it. */
void partition_maybe_expand_isr(struct partition *p, const struct follower *f);
/* Members that are not caught up, or not assigned, leave. */
void partition_maybe_shrink_isr(struct partition *p);
/* What was pending counts no more: the last committed ISR does. */
void partition_drop_isr_change(struct partition *p);
/* The controller's answer for the pending change. */
void partition_isr_answered(struct partition *p,
                            const struct alter_partition_response_partition_data *answer);

/* ---- delete_records.c */
/* The smallest log start of the live replicas, ours as far as it is saved; -1 while one is not
 * known. */
int64_t partition_low_watermark(const struct partition *p);
/* The log begins at offset, at most the high watermark, from now on; older segments go. Whoever
 * promises it asks for the checkpoint. Errors of log_raise_start. */
MUST_USE enum err partition_raise_start(struct partition *p, int64_t offset);

/* ---- become.c */
/* Takes over what the image says; ignored when its partition epoch is older. */
MUST_USE enum err partition_apply(struct partition *p, const struct image_partition *ip,
                                  struct now now);
/* The log is there (new or loaded): leads its epoch from here. */
MUST_USE enum err partition_log_ready(struct partition *p, struct log *log, int64_t high_watermark,
                                      struct now now);
void partition_free(struct partition *p);

/* Kafka's error when this broker cannot serve the partition as leader now: K_NONE,
 * NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR. */
int16_t partition_leader_error(const struct partition *p);
/* The same for what any replica may serve. */
int16_t partition_replica_error(const struct partition *p);
/* CurrentLeaderEpoch of a request (-1: none) against ours, then the leader. */
int16_t partition_check_epoch(const struct partition *p, int32_t current_leader_epoch);
/* The same without asking for the leader (KIP-392). */
int16_t partition_check_reader(const struct partition *p, int32_t current_leader_epoch);
/* Where readers of an isolation level end: HW, LSO. */
int64_t partition_limit(const struct partition *p, bool read_committed);

#endif
