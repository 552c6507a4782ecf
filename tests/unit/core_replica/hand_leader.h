/* A leader whose followers are played by hand: node 1 of a cluster of three, the others are known
 * to it and not there. */
#ifndef UNIT_CORE_REPLICA_HAND_LEADER_H
#define UNIT_CORE_REPLICA_HAND_LEADER_H

#include "cluster.h"

/* It leads nothing yet. */
static inline void leader_begin(struct cluster *c)
{
    cluster_prepare(c, 1);
    cluster_register(c, 2, 200, NULL);
    cluster_register(c, 3, 300, NULL);
    cluster_start(c);
}

/* It leads a partition of all three. */
static inline struct uuid leader_of(struct cluster *c, int32_t *isr, int32_t isr_n)
{
    int32_t three[] = {1, 2, 3};
    leader_begin(c);
    const struct uuid t = cluster_topic(c, "t", 1, three, 3, isr, isr_n);
    cluster_turn(c);
    return t;
}

static inline void hand_fetch(struct fix_fetch *q, int32_t id, int64_t epoch)
{
    fix_fetch_init(q);
    q->op.version = 18;
    q->request.replica_state.replica_id = id;
    q->request.replica_state.replica_epoch = epoch;
    q->request.max_wait_ms = 0;
}

/* A follower's fetch without a session; the partition's error. */
static inline int16_t fetch_in(struct cluster *c, int32_t id, int64_t broker_epoch, struct uuid t,
                               int64_t offset, int32_t leader_epoch)
{
    struct fix_fetch q;
    hand_fetch(&q, id, broker_epoch);
    q.request.session_epoch = -1;
    struct fetch_request_fetch_partition *part = fix_ask(&q, t, 0, offset);
    part->current_leader_epoch = leader_epoch;
    part->log_start_offset = 0;
    cluster_fetch(c, 1, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    const int16_t error = fix_answer(&q, t, 0)->error_code;
    fix_fetch_close(&q);
    return error;
}

static inline int16_t fetch_as(struct cluster *c, int32_t id, struct uuid t, int64_t offset)
{
    return fetch_in(c, id, id * 100, t, offset, cluster_part(c, 1, t, 0)->leader_epoch);
}

static inline void begin_produce(struct cluster *c, struct fix_produce *p, struct uuid t)
{
    fix_produce(&c->nodes[1], p, t, 0, -1, &fix_plain);
    cluster_turn(c);
}

#endif
