/* Questions that only the leader of a partition answers: one request per leader, answers back to
 * their partitions, and again for those whose leader moved or is not known, until time is up. */
#ifndef CLI_LEADERS_H
#define CLI_LEADERS_H

#include "cli/client.h"

/* The beginning of what a command asks for one partition. */
struct leader_item {
    struct str topic;
    int32_t partition;
    /* the answer */
    bool done;
    int16_t error;
    /* own */
    bool final; /* not to be asked again, whatever the error is */
    int32_t leader, leader_epoch;
};

struct leader_op {
    enum api_key api;
    int16_t max_version; /* -1: ours */
    void *items;         /* structs of item_bytes that begin with a struct leader_item */
    size_t item_bytes, n;
    /* A request from the arena for v, which are of one leader and sorted by topic and partition.
     * NULL: out of memory. */
    const void *(*request)(const struct leader_op *op, struct arena *a,
                           struct leader_item *const *v, size_t n);
    /* Sets done, error and what else was asked of those that the answer holds. */
    void (*answer)(const struct leader_op *op, const void *response, struct leader_item *const *v,
                   size_t n);
    const void *ctx;
};

/* CLI_OK: every item is done, perhaps with an error of its own. CLI_FAILED: told. */
int leaders_ask(struct client *c, const struct leader_op *op);
/* For answer: NULL when it was not asked for. */
struct leader_item *leaders_find(struct leader_item *const *v, size_t n, struct str topic,
                                 int32_t partition);
/* How many of v, from the first on, are of one topic. */
size_t leaders_same_topic(struct leader_item *const *v, size_t n);

#endif
