/* What the parts of a cluster (cluster.h) share: its nodes, lines and controller. */
#ifndef UNIT_CORE_REPLICA_CLUSTER_STATE_H
#define UNIT_CORE_REPLICA_CLUSTER_STATE_H

#include "core/broker/channel.h"
#include "restart.h"
#include "rpc/dialing.h"

enum { CLUSTER_MAX = 3, CLUSTER_PORT = 9000, CLUSTER_LAG_MS = 30000 };

struct cluster;

/* A node's way to the controller; the library's own channel is never linked here. */
struct channel {
    struct cluster *cluster;
    struct channel_call *call; /* in flight */
};

struct cluster_dialing {
    struct dialing d;
    struct cluster *cluster;
    int32_t node;
};

/* A peer of a node and the connection to another one. */
struct line {
    struct list link;
    struct cluster *cluster;
    struct peer *peer;
    int32_t from, to;
    bool up;
    struct buf in;      /* of requests */
    struct buf answers; /* on their way back */
    struct list served; /* struct served: not answered yet */
};

/* A request that a node serves. */
struct served {
    struct list link;
    struct line *line; /* NULL: its connection ended */
    struct cluster *cluster;
    struct arena arena;
    struct request_header header;
    const struct wire_message *message; /* of the answer */
    uint8_t *frame;
    void *request, *response;
    struct fetch_op fetch;
    struct list_offsets_op range;
};

struct cluster {
    struct fix nodes[CLUSTER_MAX + 1]; /* by id, from 1 */
    struct cluster_dialing dialing[CLUSTER_MAX + 1];
    struct channel channels[CLUSTER_MAX + 1];
    int32_t n;
    struct list lines;
    bool cut[CLUSTER_MAX + 1];  /* no connection to or from it */
    bool hold[CLUSTER_MAX + 1]; /* answers to it stay on their way */
    struct record_list records;
    size_t applied[CLUSTER_MAX + 1];
    bool lazy[CLUSTER_MAX + 1]; /* follows the records only when told */
    struct image truth;         /* the controller's */
    bool alter_hold;            /* the controller does not answer AlterPartition for now */
    bool alter_silent;          /* it answers without saying anything of the partitions */
    int16_t alter_error, alter_top_error; /* it answers these, and does nothing */
    int alters;                           /* requests */
    struct alter_partition_request_broker_state altered[CLUSTER_MAX]; /* of the last partition */
    int32_t altered_n;
    int fetches, fetch_parts, fetch_forgotten, ranges; /* requests, and what they named */
    struct fetch_request fetched;                      /* the scalars of the last */
    struct fetch_request_fetch_partition fetched_part; /* the last that was named */
    int16_t fetched_version;
    int refused;  /* fetches that were answered with an error as a whole */
    int connects; /* connections that were made, or could not be */
    void (*tamper)(struct cluster *c, struct fetch_response *resp);
    int32_t faulty;    /* allocations that are armed to fail are those of this node; 0: nobody's */
    bool faulty_apply; /* also those that take metadata over */
};

/* Around what a node itself does. */
static inline void faults_on(const struct cluster *c, int32_t node)
{
    if (c->faulty == node)
        fault_alloc_resume();
}

static inline void faults_off(const struct cluster *c)
{
    if (c->faulty != 0)
        fault_alloc_pause();
}

#endif
