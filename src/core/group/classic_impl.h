/* The inside of a classic group: shared by the files classic*.c only.
 *
 * What must not fail later is taken when a member comes: its session timer stays armed (at
 * CLASSIC_NEVER when nothing is to happen), and so does the group's phase timer while there are
 * members, because re-arming needs no memory. Session deadlines move with every heartbeat, their
 * timers only when they fire: a heartbeat costs one look-up. */
#ifndef GROUP_CLASSIC_IMPL_H
#define GROUP_CLASSIC_IMPL_H

#include "base/map.h"
#include "core/group/classic.h"
#include "wire/error.h"

#define CLASSIC_NEVER INT64_MAX
/* What a thing costs beside its bytes: its place in a map, the allocator's. */
enum { CLASSIC_OVERHEAD_BYTES = 96 };
/* Out of memory, or of budget: clients try again. */
#define CLASSIC_NO_MEMORY K_COORDINATOR_NOT_AVAILABLE

struct classic_protocol {
    struct str name;
    struct bytes metadata;
};

/* A member's list, in its order of preference, each name once. One piece of memory. */
struct classic_protocols {
    size_t bytes; /* charged */
    size_t n;
    struct classic_protocol v[];
};

/* A protocol's name, for the members that have it and for the group that chose it. */
struct classic_support {
    size_t members_n;
    size_t kept_n; /* lists of members that may come back */
    bool chosen;
    size_t votes; /* of a vote under way */
    size_t seen;  /* its place among the names voted for */
    struct str name;
};

struct classic_member {
    struct classic *group;
    struct list link; /* in group.members, in order of joining */
    struct str id;
    struct str instance; /* null: dynamic */
    struct str client_id, client_host;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    struct classic_protocols *protocols;
    struct bytes assignment;
    struct bytes next_assignment; /* from the leader, being stored */
    bool fresh;                   /* was in no generation yet: its session ends also while parked */
    bool joining, syncing;        /* parked; also when the op is gone with its client */
    bool sync_due;                /* has not asked for this generation's assignment */
    struct classic_join_op *join;
    struct classic_sync_op *sync;
    struct timer session;
    int64_t deadline_us; /* of the session; the timer fires then or before */
};

/* An id given out with MEMBER_ID_REQUIRED and not used yet. */
struct classic_pending {
    struct classic *group;
    struct list link; /* in group.pending */
    struct str id;
    struct timer timer;
};

enum classic_store_kind { CLASSIC_STORE_SYNC, CLASSIC_STORE_EMPTY, CLASSIC_STORE_REPLACED };

/* A store under way. */
struct classic_store {
    struct classic *group;
    struct list link; /* in group.stores, oldest first */
    struct timer timer;
    enum classic_store_kind kind;
    int32_t generation;
    struct classic_leave_op *leave; /* EMPTY: what waits for it, or NULL */
    /* REPLACED: how to take it back; member is NULL once its Join is answered otherwise */
    struct classic_member *member;
    struct str old_id; /* still in the map of ids, so that taking it back needs no memory */
    struct str old_leader;
    struct classic_protocols *old_protocols;
    int32_t old_session_timeout_ms, old_rebalance_timeout_ms;
};

struct classic {
    struct classic_args args;
    struct str id;
    struct now now; /* of the last call */
    enum classic_state state;
    bool initial;      /* Preparing out of Empty: the initial delay */
    bool member_added; /* since its timer was armed */
    int64_t initial_wait_ms, initial_rest_ms;
    int64_t since_ms;                 /* wall; -1: a record that does not tell */
    struct str protocol_type;         /* null: none yet */
    struct classic_support *protocol; /* chosen; NULL: none */
    int32_t generation;
    struct classic_member *leader;
    struct list members;
    size_t members_n, joining_n, sync_due_n;
    struct map by_id;       /* -> struct classic_member, also under an id being replaced */
    struct map by_instance; /* -> struct classic_member */
    struct list pending;
    size_t pending_n;
    struct map pending_by_id;
    struct map supports; /* name -> struct classic_support */
    struct timer phase;  /* Preparing: the join phase's; Completing, Stable: the sync phase's */
    struct list stores;
    int16_t empty_refused; /* why the store of the last turn to Empty did not begin */
};

/* ---- classic.c */
/* Charged; NULL when the budget or malloc refuses. */
void *classic_alloc(struct classic *g, size_t n);
void classic_release(struct classic *g, void *p, size_t n);
MUST_USE enum err classic_copy(struct classic *g, struct str s, struct str *out);
void classic_drop(struct classic *g, struct str *s);
MUST_USE enum err classic_copy_bytes(struct classic *g, struct bytes b, struct bytes *out);
void classic_drop_bytes(struct classic *g, struct bytes *b);
/* Copies for an answer, which is sent when the group may have changed. False: out of memory. */
bool classic_show(struct arena *a, struct str s, struct str *out);
bool classic_show_bytes(struct arena *a, struct bytes b, struct bytes *out); /* null: empty */
void classic_enter(struct classic *g, enum classic_state s);
/* Of members, pending ids, protocol; no op may wait, no store be under way. */
void classic_clear(struct classic *g);
/* The time inside a timer's callback. */
struct now classic_timer_now(const struct classic *g);
/* Re-arms a timer that is armed: needs no memory. */
void classic_rearm(struct classic *g, struct timer *t, int64_t at_us);
/* The same from its own callback, before anything else is armed. */
void classic_keep_armed(struct classic *g, struct timer *t);
int64_t classic_after_ms(const struct classic *g, int64_t ms); /* from g->now */

/* ---- classic_protocols.c */
/* A copy of a request's list. NULL: out of memory. */
struct classic_protocols *
classic_protocols_new(struct classic *g,
                      const struct join_group_request_join_group_request_protocol *v, int32_t n);
void classic_protocols_free(struct classic *g, struct classic_protocols *p);
bool classic_protocols_equal(const struct classic_protocols *a, const struct classic_protocols *b);
/* Null when the member does not have it. */
struct bytes classic_protocols_metadata(const struct classic_protocols *p, struct str name);
/* Counts a member's list among what is supported. ERR_NOMEM: nothing counted. */
MUST_USE enum err classic_support_add(struct classic *g, const struct classic_protocols *p);
void classic_support_remove(struct classic *g, const struct classic_protocols *p);
/* Not counted any more, but kept: classic_support_return needs no memory. */
void classic_support_keep(struct classic *g, const struct classic_protocols *p);
void classic_support_return(struct classic *g, const struct classic_protocols *p);
void classic_support_forget(struct classic *g, const struct classic_protocols *p);
/* Every member has it. */
bool classic_supported(const struct classic *g, struct str name);
/* The group's protocol; NULL: none. */
void classic_choose(struct classic *g, struct classic_support *s);
MUST_USE enum err classic_choose_named(struct classic *g, struct str name);
struct str classic_protocol_name(const struct classic *g); /* null: none */

/* ---- classic_vote.c: members are there, and a name that all support */
struct classic_support *classic_vote(struct classic *g);

/* ---- classic_members.c */
struct classic_member *classic_member(const struct classic *g, struct str id); /* or NULL */
struct classic_member *classic_static_member(const struct classic *g, struct str instance);
struct classic_pending *classic_pending(const struct classic *g, struct str id);
/* Kafka's check of a member's ids: K_NONE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID. */
int16_t classic_validate(const struct classic *g, struct str id, struct str instance);
/* A value in one of the group's maps, charged. */
MUST_USE enum err classic_index(struct classic *g, struct map *m, struct str key, void *value);
void classic_unindex(struct classic *g, struct map *m, struct str key);
/* What a new member brings. */
struct classic_newcomer {
    struct str id, instance, client_id, client_host, protocol_type;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    struct classic_protocols *protocols; /* taken when all went well */
};
/* ERR_NOMEM: the group is as it was. Its session does not run yet. */
MUST_USE enum err classic_member_add(struct classic *g, const struct classic_newcomer *in,
                                     struct classic_member **out);
/* What it waits for ends with UNKNOWN_MEMBER_ID; leadership goes on; it is freed. A sync phase is
 * over by it: classic_rebalance follows. */
void classic_member_remove(struct classic_member *m);
/* A list and timeouts in place of the old ones; p is taken then. */
MUST_USE enum err classic_member_update(struct classic_member *m, struct classic_protocols *p,
                                        int32_t session_timeout_ms, int32_t rebalance_timeout_ms);
MUST_USE enum err classic_pending_add(struct classic *g, struct str id, int32_t timeout_ms);
void classic_pending_remove(struct classic_pending *p);
int32_t classic_rebalance_timeout_ms(const struct classic *g);
/* A fresh id: prefix, '-', a random UUID. Null when out of memory. */
struct str classic_fresh_id(struct classic *g, struct str prefix, struct arena *a);

/* ---- classic_join.c */
/* Parks a Join; one that is parked already ends with REBALANCE_IN_PROGRESS. */
void classic_park_join(struct classic_member *m, struct classic_join_op *op);
/* A parked Join is over. Harmless when there is none. */
void classic_end_join(struct classic_member *m, int16_t error, struct str member_id);
/* What a Join is told of the present generation. */
struct classic_joined {
    struct str leader;
    bool members; /* their list */
    bool skip_assignment;
};
void classic_answer_join(struct classic_member *m, const struct classic_joined *j);

/* ---- classic_static.c */
/* A Join without an id of the instance that is m: it gets the id, p is taken. ERR_NOMEM: all is as
 * it was. */
MUST_USE enum err classic_replace(struct classic_member *m, struct classic_join_op *op,
                                  struct str id, struct classic_protocols *p,
                                  int32_t rebalance_timeout_ms);
/* The store of a replacement has ended. */
void classic_replaced(struct classic *g, struct classic_store *s, int16_t error);
/* m's Join is answered otherwise, or m goes: what is stored of it is not to be taken back. */
void classic_replace_forget(struct classic_member *m);
/* The group leaves Stable: Joins under way are parked for the next generation, which is stored with
 * the new ids. */
void classic_replace_forget_all(struct classic *g);
/* What would take it back is freed. */
void classic_replace_drop(struct classic *g, struct classic_store *s);

/* ---- classic_sync.c */
/* A parked Sync is over. Harmless when there is none. */
void classic_end_sync(struct classic_member *m, int16_t error);
/* The store of the leader's assignments has ended. */
void classic_synced(struct classic *g, struct classic_store *s, int16_t error);
/* Completing: assignments of all are dropped, parked Syncs end with error. */
void classic_reset_assignments(struct classic *g, int16_t error);

/* ---- classic_phase.c: the join phase and the sync phase */
void classic_phase_fire(struct timer *t);
/* The phase timer, while there are members. ERR_NOMEM. */
MUST_USE enum err classic_phase_arm(struct classic *g);
/* Someone came, went or changed: the join phase begins, or is over if all have joined. */
void classic_rebalance(struct classic *g, const char *reason);
/* The join phase is over if all have joined, and it is not the first after Empty. */
void classic_maybe_complete(struct classic *g);
/* The same in the first one too: Kafka does not wait on when a session has ended. */
void classic_complete_if_all_joined(struct classic *g);

/* ---- classic_session.c */
void classic_session_fire(struct timer *t);
void classic_pending_fire(struct timer *t);
/* The session begins anew. */
void classic_session_reset(struct classic_member *m, int64_t timeout_ms);

/* ---- classic_store.c */
/* Its time runs from here on. NULL: out of memory. */
struct classic_store *classic_store_new(struct classic *g, enum classic_store_kind kind);
/* The group as it is. K_NONE: under way, s is the group's; else why not, s is the caller's. */
MUST_USE int16_t classic_store_begin(struct classic *g, struct classic_store *s);
void classic_store_free(struct classic *g, struct classic_store *s);
/* The group became Empty: g->empty_refused says why that is not being stored. */
void classic_store_empty(struct classic *g);
/* All are forgotten; what waits for one ends with error. */
void classic_stores_drop(struct classic *g, int16_t error);

/* ---- classic_leave.c */
/* The answer is ready, or error is. */
void classic_left(struct classic_leave_op *op, int16_t error);

#endif
