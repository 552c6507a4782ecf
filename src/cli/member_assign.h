/* What the leader of a group does: gives every member of a generation its partitions, as the range
 * assignor of Java clients does, and writes what SyncGroup sends. */
#ifndef CLI_MEMBER_ASSIGN_H
#define CLI_MEMBER_ASSIGN_H

#include "cli/client.h"

/* The subscription to one topic, as JoinGroup sends it. NULL in p: out of memory. */
struct bytes member_subscription(struct arena *a, struct str topic);
/* Sets assignments of request, for the members of joined; all from the arena. *partitions: how many
 * `topic` has. CLI_FAILED: told. */
int member_assign(struct client *c, struct arena *a, const struct join_group_response *joined,
                  struct str topic, struct sync_group_request *request, int32_t *partitions);
/* The partitions of topic in an assignment, each once, from the arena, in *n. What is none has
 * none. NULL: out of memory. */
int32_t *member_assigned(struct arena *a, struct bytes assignment, struct str topic, size_t *n);

#endif
