/* Where to look when a broker comes or goes, for the image ahead: so that an event costs the
 * partitions it concerns, not all there are. */
#ifndef CONTROLLER_PARTITION_INDEX_H
#define CONTROLLER_PARTITION_INDEX_H

#include "core/controller/partition_set.h"
#include "core/metadata/image.h"

struct partition_index {
    struct map brokers; /* id -> what it hosts, and how many partitions it leads */
    struct partition_set leaderless;
    struct partition_set not_preferred; /* led by another than the first replica, or by none */
    struct partition_set reassigning;
};

void partition_index_init(struct partition_index *x, uint64_t seed);
void partition_index_close(struct partition_index *x);
/* All of an image; x is empty. ERR_NOMEM. */
MUST_USE enum err partition_index_fill(struct partition_index *x, const struct image *img);
/* A partition before and after a record changes it; replicas: those too, not its leader alone.
 * ERR_NOMEM: x is to be made anew. */
void partition_index_remove(struct partition_index *x, struct uuid topic_id, int32_t index,
                            const struct image_partition *p, bool replicas);
MUST_USE enum err partition_index_add(struct partition_index *x, struct uuid topic_id,
                                      int32_t index, const struct image_partition *p,
                                      bool replicas);
/* Partitions with a replica on the broker (in the ISR and ELR are only replicas); NULL: none. */
const struct partition_set *partition_index_hosted(const struct partition_index *x,
                                                   int32_t broker_id);
bool partition_index_leads(const struct partition_index *x, int32_t broker_id);

#endif
