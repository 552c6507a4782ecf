/* A member of a consumer group by the classic protocol, subscribed to one topic: it joins, is given
 * partitions, keeps its place by heartbeats whatever the command does meanwhile, commits, leaves.
 */
#ifndef CLI_MEMBER_H
#define CLI_MEMBER_H

#include "cli/client.h"

struct member_commit {
    int32_t partition;
    int64_t offset; /* -1: nothing to commit */
};

struct member {
    struct client *client;
    struct str group, topic;
    struct broker *coordinator; /* NULL: to be found */
    char id[256];               /* "": not a member */
    int32_t generation;
    int32_t *partitions; /* of the topic, that this member has */
    size_t n;
    bool lost; /* the partitions are to be given up: join again */
    bool leads;
    int32_t topic_partitions; /* of a leader: how many it gave out */
    /* heartbeats */
    struct timer timer;
    struct peer_call call;
    struct heartbeat_request heartbeat;
    bool beating; /* one is under way */
};

void member_init(struct member *m, struct client *c, struct str group, struct str topic);
/* Joins or joins again; waits until partitions are given, perhaps none; not longer than the
 * client's timeout and the time that members have for coming back. CLI_FAILED: told. */
int member_join(struct member *m);
/* What the group has committed for the member's partitions, -1: nothing; out has room for n.
 * CLI_FAILED: told. */
int member_committed(struct member *m, struct member_commit *out);
/* A group that moves on meanwhile makes the member lost, no failure; *done: the group has it.
 * CLI_FAILED: told. */
int member_commit(struct member *m, const struct member_commit *v, size_t n, bool *done);
/* Leaves, so that nobody waits for it; what goes wrong does not matter any more. */
void member_close(struct member *m);

#endif
