/* DescribeProducers (KIP-664): what a replica knows of a partition's producers. Any replica
 * answers, not the leader alone. */
#include "core/replica/inside.h"
#include "wire/error.h"

static int16_t find_part(const struct replicas *rs, struct str topic, int32_t index,
                         struct partition **out)
{
    struct image_topic *t = image_topic_named(rs->image, topic);
    if (t == NULL || image_partition(t, index) == NULL)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    *out = replicas_find(rs, t->id, index);
    if (*out == NULL)
        return rs->failed ? K_KAFKA_STORAGE_ERROR : K_NOT_LEADER_OR_FOLLOWER;
    return partition_replica_error(*out);
}

enum err replicas_describe_producers(struct replicas *rs, struct str topic, int32_t index,
                                     struct arena *a,
                                     struct describe_producers_response_partition_response *out)
{
    struct partition *p = NULL;
    out->partition_index = index;
    out->error_code = find_part(rs, topic, index, &p);
    if (out->error_code != K_NONE)
        return ERR_NONE;
    const size_t n = log_producers_n(p->log);
    out->active_producers.v = wire_array(&wire_describe_producers_response_producer_state, a, n);
    if (out->active_producers.v == NULL)
        return ERR_NOMEM;
    out->active_producers.n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        const struct log_producer known = log_producer_at(p->log, i);
        out->active_producers.v[i] = (struct describe_producers_response_producer_state){
            .producer_id = known.producer_id,
            .producer_epoch = known.epoch,
            .last_sequence = known.last_sequence,
            .last_timestamp = known.last_timestamp,
            .coordinator_epoch = known.coordinator_epoch,
            .current_txn_start_offset = known.txn_first_offset,
        };
    }
    return ERR_NONE;
}
