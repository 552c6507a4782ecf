/* What becomes of one partition, and the record of it: Kafka's PartitionChangeBuilder. Whoever has
 * a reason sets the targets that it means to change (in-sync replicas, assignment, ...); the rest
 * follows: a reassignment that is complete ends, who is eligible, who leads. Only what differs is
 * written. */
#ifndef CONTROLLER_PARTITION_CHANGE_H
#define CONTROLLER_PARTITION_CHANGE_H

#include "core/controller/inside.h"

enum { NO_LEADER = -1, NO_LEADER_CHANGE = -2 };
enum leader_recovery { RECOVERED = 0, RECOVERING = 1 };

enum election {
    ELECTION_ONLINE,    /* the leader stays if it may */
    ELECTION_PREFERRED, /* the first replica leads if it may */
    ELECTION_UNCLEAN,   /* as online; if nobody may, any active replica */
};

struct replica_set {
    int32_t *v; /* of the image, the request or the controller's scratch */
    int32_t n;
};

bool replica_set_has(struct replica_set s, int32_t id);
bool replica_set_equal(struct replica_set a, struct replica_set b);
bool replica_set_covers(struct replica_set s, struct replica_set part);
/* a without the members of b, in the scratch; false: out of memory. */
bool replica_set_minus(struct controller *c, struct replica_set a, struct replica_set b,
                       struct replica_set *out);
/* Before the first larger id; there must be room. */
void replica_set_insert(struct replica_set *s, int32_t id);
/* Into an array of a response, in a; false: out of memory. */
bool replica_set_copy(struct arena *a, struct replica_set s, int32_t **v, int32_t *n);

/* What the topic's configuration says of elections. */
struct topic_rules {
    bool elr_on;          /* eligible leader replicas (KIP-966) */
    bool unclean_allowed; /* unclean.leader.election.enable */
    int32_t min_isr;      /* effective: at most the replicas of partition 0, as Kafka counts */
};
struct topic_rules topic_rules_of(const struct controller *c, const struct image_topic *t);

struct partition_change {
    struct controller *c;
    const struct image_topic *topic;
    int32_t index;
    const struct image_partition *p; /* as it is */
    struct topic_rules rules;
    /* Targets, at first as things are. */
    enum election election;
    struct broker_change brokers;
    struct replica_set replicas, isr, removing, adding;
    int8_t recovery;
    int32_t moved; /* this broker's replica is now in `directory`; CONTROLLER_NO_BROKER: none */
    struct uuid directory;
    /* Afterwards, where the targets above say what is meant. */
    struct replica_set elr;
    int32_t leader;
    int32_t leader_epoch, partition_epoch;
    bool unclean;
};

/* Of a partition that is there, with the targets as things are. */
void partition_change_open(struct partition_change *pc, struct controller *c,
                           const struct image_topic *t, int32_t index,
                           const struct topic_rules *rules);
/* Adds the record, if anything differs: pc->partition_epoch tells. ERR_NOMEM. */
MUST_USE enum err partition_change_add(struct partition_change *pc, struct record_list *rl);

#endif
