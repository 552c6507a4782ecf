/* The membership of one classic group (groups.md 2): members, generations, the join and sync
 * phases, static members, the vote. It knows neither logs nor partitions: what must be persisted
 * (the group's record, type 2) is asked of the owner by events.store. Everything that a group holds
 * is charged to a budget; a refusal is a Kafka error for the request that asked for more.
 *
 * A Join or Sync may wait for minutes: what is needed of its request is copied. */
#ifndef GROUP_CLASSIC_H
#define GROUP_CLASSIC_H

#include "base/arena.h"
#include "base/timer.h"
#include "core/config/config.h"
#include "core/group/op.h"
#include "wire/messages.h"

enum classic_state {
    CLASSIC_EMPTY,
    CLASSIC_PREPARING,
    CLASSIC_COMPLETING,
    CLASSIC_STABLE,
    CLASSIC_DEAD, /* unloaded */
};

struct classic;

struct classic_events {
    void *ctx;
    /* Persist the group: classic_record() gives the value, until this returns only. K_NONE: begun,
     * and classic_stored follows once, not from inside; stores end in the order of their beginning.
     * What does not end within offsets.commit.timeout.ms counts as failed meanwhile, as in Kafka.
     * Else Kafka's error for the client, and nothing follows. Called from timers too. */
    int16_t (*store)(void *ctx, struct classic *g, struct now now);
};

struct classic_args {
    struct env *env; /* random member ids, log lines */
    struct timers *timers;
    struct budget *budget;
    const struct config *config; /* group.* */
    uint64_t seed;               /* of maps */
    struct list *ready;          /* struct group_op.ready: the owner completes them */
    struct classic_events events;
};

/* Empty, of generation 0, without type. id is copied, *args too. ERR_NOMEM. */
MUST_USE enum err classic_new(const struct classic_args *args, struct str id, struct now now,
                              struct classic **out);
/* No op may wait and no store be under way: classic_unload ends both. NULL is fine. */
void classic_free(struct classic *g);

/* The group as a record of its log says (members: Stable, else Empty) in place of what it was; may
 * be repeated. ERR_NOMEM: to be freed. ERR_CORRUPT: the record contradicts itself. */
MUST_USE enum err classic_load(struct classic *g, const struct group_metadata_value *v);
/* All records are read: sessions start afresh; a group over group.max.size rebalances. */
void classic_loaded(struct classic *g, struct now now);
/* The group as it is to be stored. Strings belong to the group, arrays to a. ERR_NOMEM. */
MUST_USE enum err classic_record(const struct classic *g, struct arena *a,
                                 struct group_metadata_value *out);
/* The oldest store under way is committed (K_NONE), or failed with an error for the client. */
void classic_stored(struct classic *g, int16_t error, struct now now);
/* Not ours any more, or deleted: what waits ends with error, stores under way are forgotten, timers
 * stop. Dead from here. */
void classic_unload(struct classic *g, int16_t error);

/* ------------------------------------------------------------------ operations */

struct classic_member;
struct classic_store;

struct classic_join_op {
    struct group_op op;
    struct arena *arena;                      /* of the answer */
    const struct join_group_request *request; /* until the call returns */
    int16_t version;
    struct str client_id;   /* null: as "" */
    struct str client_host; /* "/1.2.3.4" */
    struct join_group_response *response;
    /* own */
    struct classic *group;
    struct classic_member *member; /* that it is parked with; NULL: not parked */
};
/* JoinGroup from the check of the group's size on (groups.md 2, steps 4 to 7). */
void classic_join(struct classic *g, struct classic_join_op *op, struct now now);

/* Only fills the answer, for errors found before there is a group. */
void classic_join_refuse(struct classic_join_op *op, int16_t error, struct str member_id);

struct classic_sync_op {
    struct group_op op;
    struct arena *arena;
    const struct sync_group_request *request; /* until the call returns */
    struct sync_group_response *response;
    /* own */
    struct classic *group;
    struct classic_member *member;
};
void classic_sync(struct classic *g, struct classic_sync_op *op, struct now now);
void classic_sync_refuse(struct classic_sync_op *op, int16_t error);

struct classic_leave_op {
    struct group_op op;
    struct arena *arena;
    const struct leave_group_request *request; /* stays until done() */
    int16_t version;                           /* 0 to 2: one member, its error on top */
    struct leave_group_response *response;
    /* own */
    struct classic *group;
    struct classic_store *store; /* that it waits for */
};
/* Every member that the request names. When the group becomes Empty by it, the answer waits for the
 * end of that store (and tells its error on top). */
void classic_leave(struct classic *g, struct classic_leave_op *op, struct now now);
/* Nobody is a member of what there is: each gets UNKNOWN_MEMBER_ID. Another error is the whole
 * answer's. */
void classic_leave_refuse(struct classic_leave_op *op, int16_t error);

/* The client is gone, or the node stops: what waits becomes ready with NOT_COORDINATOR, for whoever
 * still hears it. A member remains as it was, as in Kafka, until its session or the phase ends.
 * Harmless when the op is ready already. */
void classic_join_cancel(struct classic_join_op *op);
void classic_sync_cancel(struct classic_sync_op *op);
void classic_leave_cancel(struct classic_leave_op *op);

/* instance may be null. Kafka's code. */
int16_t classic_heartbeat(struct classic *g, struct str member, struct str instance,
                          int32_t generation, struct now now);

/* May this member commit offsets (groups.md 3)? Resets its session where Kafka does. Kafka's code.
 * txn: TxnOffsetCommit, with the current codes (22, 25, 82); its older versions' are the caller's.
 */
int16_t classic_check_commit(struct classic *g, struct str member, struct str instance,
                             int32_t generation, bool txn, struct now now);

/* ------------------------------------------------------------------ what others read */

/* Everything of a DescribeGroups answer but the error and the authorized operations. Copied to a.
 * ERR_NOMEM. */
MUST_USE enum err classic_describe(const struct classic *g, struct arena *a,
                                   struct describe_groups_response_described_group *out);

enum classic_state classic_state(const struct classic *g);
const char *classic_state_name(enum classic_state s); /* "PreparingRebalance" */
int64_t classic_state_since_ms(const struct classic *g);
struct str classic_protocol_type(const struct classic *g); /* null: none yet */
int32_t classic_generation(const struct classic *g);
size_t classic_members_n(const struct classic *g); /* pending ids not counted */

/* Topics that the members subscribe to, of a group of type "consumer" that has members. */
struct classic_topics {
    bool all; /* a subscription could not be read: as if subscribed to everything */
    struct str *v;
    size_t n; /* in order, each once */
};
/* Strings belong to the group, v to a. ERR_NOMEM. */
MUST_USE enum err classic_subscriptions(const struct classic *g, struct arena *a,
                                        struct classic_topics *out);
bool classic_topics_has(const struct classic_topics *t, struct str topic);

#endif
