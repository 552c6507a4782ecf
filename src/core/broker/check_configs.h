/* What a broker itself refuses of AlterConfigs and IncrementalAlterConfigs before the controller
 * sees it (Kafka's ConfigAdminManager): what is named twice, values that are missing, resources
 * that are not this broker's, and values of its own keys. */
#ifndef BROKER_CHECK_CONFIGS_H
#define BROKER_CHECK_CONFIGS_H

#include "core/config/config.h"
#include "core/metadata/config_change.h"

/* Settles those that are refused, and those of loggers: a Kafka broker without log4j has none, so
 * there is nothing to change. node_id -1: brokers' own resources are not looked at. Messages go
 * into a; seed is of maps. ERR_NOMEM. */
MUST_USE enum err broker_check_configs(const struct config *config, int32_t node_id, uint64_t seed,
                                       struct config_change *changes, int32_t n, struct arena *a);

#endif
