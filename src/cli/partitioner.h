/* Which partition a key belongs to: Kafka's own choice, so that what Java clients and this one
 * write under one key stays in order. */
#ifndef CLI_PARTITIONER_H
#define CLI_PARTITIONER_H

#include "base/types.h"

/* MurmurHash2 of 32 bits with Kafka's seed. */
uint32_t partitioner_hash(struct bytes key);
/* In [0, n). */
int32_t partitioner_choose(struct bytes key, int32_t n);

#endif
