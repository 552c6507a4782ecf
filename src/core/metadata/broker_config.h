/* The dynamic configuration of a broker as an image has it: what is set for its id, and for the
 * cluster (KIP-226). */
#ifndef METADATA_BROKER_CONFIG_H
#define METADATA_BROKER_CONFIG_H

#include "core/config/config.h"
#include "core/metadata/image.h"

/* Does a resource of type CONFIG_RESOURCE_BROKER and this name concern broker node_id? */
bool broker_config_is_of(struct str name, int32_t node_id);
bool broker_config_changed(const struct image_delta *d, int32_t node_id);
/* c, made by config_over, takes over what the image says of broker node_id. *topics becomes true
 * when a default of topics changed. ERR_NOMEM. */
MUST_USE enum err broker_config_take(struct config *c, const struct image *img, int32_t node_id,
                                     bool *topics);

/* A rate that only the metadata log can set: the broker's own value, the cluster's, or
 * INT64_MAX. */
int64_t broker_config_rate(const struct image *img, int32_t node_id, const char *key);

#endif
