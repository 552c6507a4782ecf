/* The partitions that a request names, and those that it names twice: what Kafka makes of them
 * differs from request to request, finding them does not. */
#ifndef REPLICA_MENTIONS_H
#define REPLICA_MENTIONS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/types.h"

struct mention {
    struct str topic; /* of every mention, or the id of every mention */
    struct uuid topic_id;
    int32_t index;
    size_t first, last; /* places of the mentions of the same partition, set by mentions_find */
};

/* Leaves one mention of each partition, in order of topic and index; last is the place that its
 * last one had. The number left. */
size_t mentions_merge(struct mention *v, size_t n);
/* Sorts, so that a request costs little more than its length. ERR_NOMEM. */
MUST_USE enum err mentions_find(struct mention *v, size_t n, struct arena *a);

#endif
