/* A log for tests: segments roll when they are full, and nothing happens because time passed. */
#ifndef SUPPORT_QUIET_LOG_H
#define SUPPORT_QUIET_LOG_H

#include "log/log.h"

static inline struct log_config quiet_log(int32_t segment_bytes, int32_t index_interval_bytes)
{
    return (struct log_config){
        .segment_bytes = segment_bytes,
        .segment_ms = INT64_MAX,
        .segment_index_bytes = 1 << 20,
        .index_interval_bytes = index_interval_bytes,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
        .max_compaction_lag_ms = INT64_MAX,
        .producer_id_expiration_ms = INT64_MAX,
    };
}

#endif
