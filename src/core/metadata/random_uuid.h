/* Fresh ids of topics, incarnations and directories, as Kafka makes them (Uuid.randomUuid): random,
 * version 4, none of the reserved ones, and no leading '-' in text, which tools would take for an
 * option. */
#ifndef METADATA_RANDOM_UUID_H
#define METADATA_RANDOM_UUID_H

#include "base/env.h"

struct uuid uuid_random(struct env *env);

#endif
