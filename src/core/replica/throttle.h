/* Throttles of replication (KIP-73): replicas that an operator moves may not take more than so many
 * bytes a second, of a leader's reads for followers and of a follower's fetches each. Which
 * partitions they hold for is a topic's value, how much a broker's. In-sync replicas count, and are
 * never held back. */
#ifndef REPLICA_THROTTLE_H
#define REPLICA_THROTTLE_H

#include "base/err.h"
#include "base/types.h"

/* Of a partition: what holds for it on this broker. */
enum { THROTTLED_LEADER = 1, THROTTLED_FOLLOWER = 2 };

/* As Kafka's: the rate over up to 11 samples of a second. */
enum { THROTTLE_SAMPLES = 11 };

struct throttle {
    int64_t bytes_per_s; /* INT64_MAX: no limit */
    struct throttle_sample {
        int64_t start_us, bytes;
    } samples[THROTTLE_SAMPLES];
    int32_t oldest, n;
};

void throttle_init(struct throttle *t);
void throttle_record(struct throttle *t, int64_t bytes, int64_t now_us);
bool throttle_exceeded(struct throttle *t, int64_t now_us);

/* The partitions of one topic that a list of partition:broker names for this broker. */
struct throttled {
    bool all;
    int32_t *v; /* sorted; owned */
    size_t n;
};

/* "*", or "0:1,1:2"; text NULL or "": none. ERR_NOMEM: none. */
MUST_USE enum err throttled_parse(struct throttled *out, const char *text, int32_t node_id);
bool throttled_has(const struct throttled *t, int32_t index);
void throttled_close(struct throttled *t);

#endif
