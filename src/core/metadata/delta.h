/* What a run of committed records changed; the publishers (replicas, listeners) look only at this
 * (architecture: what changed, not what exists). */
#ifndef METADATA_DELTA_H
#define METADATA_DELTA_H

#include "base/err.h"
#include "base/types.h"

struct delta_partition {
    struct uuid topic_id;
    int32_t index;
};

struct delta_topic { /* deleted */
    struct uuid id;
    char *name; /* owned */
    int32_t partitions_n;
};

struct delta_config {
    int8_t resource_type;
    char *name; /* owned */
};

struct image_delta {
    struct delta_partition *partitions; /* created or changed; duplicates possible */
    size_t partitions_n, partitions_cap;
    struct delta_topic *deleted;
    size_t deleted_n, deleted_cap;
    struct delta_config *configs;
    size_t configs_n, configs_cap;
    bool brokers, features, producer_ids;
    bool everything; /* after a snapshot: look at the whole image */
};

void image_delta_init(struct image_delta *d);
void image_delta_close(struct image_delta *d);
/* By the image; ERR_NOMEM. */
MUST_USE enum err image_delta_add_partition(struct image_delta *d, struct uuid topic_id,
                                            int32_t index);
MUST_USE enum err image_delta_add_deleted(struct image_delta *d, struct uuid id, const char *name,
                                          int32_t partitions_n);
MUST_USE enum err image_delta_add_config(struct image_delta *d, int8_t resource_type,
                                         const char *name);

#endif
