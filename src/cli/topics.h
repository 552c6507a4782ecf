/* The verbs of dohle topics, a file each or two. */
#ifndef CLI_TOPICS_H
#define CLI_TOPICS_H

#include "cli/line.h"

extern const struct verb topics_list, topics_create, topics_describe, topics_delete,
    topics_add_partitions, topics_trim, topics_alter;

/* Metadata of the named topics; those that are not there are told. CLI_FAILED. */
int topics_find(struct client *c, char *const *names, size_t n, struct metadata *out);
/* The most replicas that a partition of t has. */
int32_t topics_replicas(const struct topic *t);

#endif
