/* The group coordinator (groups.md 1 to 3): groups and the offsets that they commit, kept in memory
 * and in the partitions of __consumer_offsets that this broker leads, in Kafka's records. A change
 * is made in memory at once and appended as one batch; its answer waits until the high watermark
 * has passed the batch, a failed append takes it back. */
#ifndef GROUP_GROUP_H
#define GROUP_GROUP_H

#include "base/arena.h"
#include "core/group/classic.h"
#include "core/replica/replica.h"

struct groups;

struct groups_args {
    struct env *env;
    struct timers *timers;
    struct budget *budget; /* all that groups hold */
    const struct config *config;
    const struct image *image; /* committed, the node's */
    struct replicas *replicas;
    int32_t node_id;
    uint64_t seed;
};

MUST_USE enum err groups_new(const struct groups_args *args, struct groups **out);
/* After groups_close, with all requests complete and the replicas closed. NULL is fine. */
void groups_free(struct groups *gs);

/* The image is caught up: the number of partitions is fixed from here on, as in Kafka. ERR_NOMEM.
 */
MUST_USE enum err groups_start(struct groups *gs, struct now now);
/* The committed image changed, and the replicas follow it already. */
void groups_apply(struct groups *gs, const struct image_delta *d, struct now now);
/* Completes what is ready. True if anything moved. */
bool groups_settle(struct groups *gs, struct now now);
/* Nothing is coordinated any more: what waits ends with NOT_COORDINATOR. */
void groups_close(struct groups *gs, struct now now);

/* The partition of __consumer_offsets that a group belongs to. */
int32_t groups_partition(const struct groups *gs, struct str group);
/* How many partitions __consumer_offsets has, or is to be created with. */
int32_t groups_partitions_n(const struct groups *gs);

/* ------------------------------------------------------------------ operations
 *
 * Embedded in their owners; op.done() comes once, never inside the call. Strings of requests stay
 * until then; what an answer shows is copied to its arena. Cancelling hastens the end and is
 * harmless when the op is ready already. */

struct write;

/* What an operation that changes something waits for. */
struct group_wait {
    struct group_op *op;
    void (*ended)(struct group_wait *w, int16_t error); /* then op is ready, unless it waits on */
    /* own */
    struct groups *gs;
    struct list link;  /* in write.waits */
    struct list fresh; /* in groups.fresh: without a deadline yet */
    struct timer timer;
};

/* ---- membership of classic groups; a Sync is cancelled by classic_sync_cancel */

struct groups_join_op {
    struct classic_join_op join;
    /* own */
    struct group_wait wait;
};
void groups_join(struct groups *gs, struct groups_join_op *op, struct now now);
void groups_join_cancel(struct groups_join_op *op);
void groups_sync(struct groups *gs, struct classic_sync_op *op, struct now now);
void groups_leave(struct groups *gs, struct classic_leave_op *op, struct now now);
int16_t groups_heartbeat(struct groups *gs, const struct heartbeat_request *req, struct now now);
/* One group of a DescribeGroups, but for its authorized operations. ERR_NOMEM. */
MUST_USE enum err groups_describe(struct groups *gs, struct str id, int16_t version,
                                  struct arena *a,
                                  struct describe_groups_response_described_group *out);

/* One partition of an OffsetCommit. */
struct commit_part {
    struct str topic;
    struct uuid topic_id;
    int32_t index;
    int64_t offset;
    int32_t leader_epoch;
    struct str metadata; /* null: "" */
    bool refused;        /* before the group is looked at, with error */
    int16_t error;       /* in: K_NONE unless refused */
};

struct groups_commit_op {
    struct group_op op;
    int16_t version; /* of OffsetCommit */
    struct str group, member, instance;
    int32_t generation;
    int64_t retention_ms; /* -1: the broker's */
    struct commit_part *parts;
    int32_t parts_n;
    /* own */
    struct group_wait wait;
};
void groups_commit(struct groups *gs, struct groups_commit_op *op, struct now now);
void groups_commit_cancel(struct groups_commit_op *op);

/* One partition of an OffsetFetch; what is not committed is (-1, -1, "", K_NONE). */
struct fetched_part {
    struct str topic;
    struct uuid topic_id; /* zero: asked for by name */
    int32_t index;
    int64_t offset;
    int32_t leader_epoch;
    struct str metadata;
    int16_t error;
};

struct groups_fetch_op {
    struct group_op op;
    struct arena *arena;
    struct str group, member; /* member may be null */
    int32_t member_epoch;
    bool require_stable, all;
    bool by_id;                 /* topic_id counts: an offset of another topic is none */
    struct fetched_part *parts; /* all: made by the call, topic by topic */
    int32_t parts_n;
    int16_t error; /* of the group */
    /* own */
    struct group_wait wait;
};
void groups_fetch(struct groups *gs, struct groups_fetch_op *op, struct now now);
void groups_fetch_cancel(struct groups_fetch_op *op);

/* OffsetDelete. parts: topic, index, error as in a commit. */
struct groups_offset_delete_op {
    struct group_op op;
    struct str group;
    struct commit_part *parts;
    int32_t parts_n;
    int16_t error; /* of the group */
    /* own */
    struct group_wait wait;
};
void groups_offset_delete(struct groups *gs, struct groups_offset_delete_op *op, struct now now);
void groups_offset_delete_cancel(struct groups_offset_delete_op *op);

/* DeleteGroups, one group. */
struct groups_delete_op {
    struct group_op op;
    struct str group;
    int16_t error;
    /* own */
    struct group_wait wait;
};
void groups_delete(struct groups *gs, struct groups_delete_op *op, struct now now);
void groups_delete_cancel(struct groups_delete_op *op);

/* ListGroups: every committed group of this coordinator, in order of partitions and creation. */
struct listed_group {
    struct str id, protocol_type;
    const char *state, *type; /* as Kafka writes them: "Stable", "classic" */
};
/* K_NONE, or COORDINATOR_LOAD_IN_PROGRESS when a partition is loading. An error of each ends it. */
MUST_USE enum err groups_list(const struct groups *gs,
                              enum err (*each)(void *ctx, const struct listed_group *g), void *ctx,
                              int16_t *error);

#endif
