/* A set of partitions: topic ids, each with a bit per partition, so that a topic of many partitions
 * costs little. Iteration goes topic by topic, in the order in which they came, and up the
 * partitions. */
#ifndef CONTROLLER_PARTITION_SET_H
#define CONTROLLER_PARTITION_SET_H

#include "base/map.h"

struct partition_set {
    struct map topics; /* topic id -> its bits */
    size_t n;          /* partitions */
};

/* A place in an iteration; at first all zero. */
struct partition_at {
    const struct map_entry *topic;
    struct uuid topic_id;
    int32_t index;
};

void partition_set_init(struct partition_set *s, uint64_t seed);
void partition_set_close(struct partition_set *s);
bool partition_set_has(const struct partition_set *s, struct uuid topic_id, int32_t index);
/* Harmless when it is there already. ERR_NOMEM. */
MUST_USE enum err partition_set_add(struct partition_set *s, struct uuid topic_id, int32_t index);
/* Harmless when it is not there. */
void partition_set_remove(struct partition_set *s, struct uuid topic_id, int32_t index);
/* Of one topic. */
int32_t partition_set_of(const struct partition_set *s, struct uuid topic_id);
/* The next after `at`; false at the end. The set must not change meanwhile. */
bool partition_set_next(const struct partition_set *s, struct partition_at *at);

#endif
