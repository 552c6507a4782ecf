/* Topic names that differ only in '.' and '_' would give the same metric names; Kafka refuses the
 * second. The index of names that hold either, for the image ahead. */
#ifndef CONTROLLER_COLLISIONS_H
#define CONTROLLER_COLLISIONS_H

#include "base/limits.h"
#include "core/controller/inside.h"

#define COLLISION_MAX LIMIT_NAME_MAX

/* The name with '.' as '_' (not terminated); false if it has neither, and so collides with none. */
bool collisions_unify(struct str name, char out[COLLISION_MAX]);
/* From the image ahead; ERR_NOMEM. */
MUST_USE enum err collisions_open(struct controller *c);
void collisions_close(struct controller *c);
MUST_USE enum err collisions_add(struct controller *c, struct str name);
/* Before the topic leaves the image. */
void collisions_remove(struct controller *c, struct uuid topic_id);
/* The other topic's name, or NULL. */
const char *collisions_find(const struct controller *c, struct str name);

#endif
