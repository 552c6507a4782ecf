/* OffsetForLeaderEpoch (KIP-101, KIP-279): where an epoch ended, from the leader's epoch cache. */
#include "core/replica/inside.h"
#include "wire/error.h"

struct question {
    struct replicas *rs;
    bool (*allowed)(void *ctx, struct str topic);
    void *allowed_ctx;
};

static int16_t find_part(const struct question *q, struct str topic, int32_t index, int32_t epoch,
                         struct partition **out)
{
    const struct image_topic *t = image_topic_named(q->rs->image, topic);
    if (q->allowed != NULL && !q->allowed(q->allowed_ctx, topic))
        return K_TOPIC_AUTHORIZATION_FAILED;
    if (t == NULL || index < 0 || index >= t->partitions_n)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    *out = replicas_find(q->rs, t->id, index);
    return *out == NULL ? K_NOT_LEADER_OR_FOLLOWER : partition_check_epoch(*out, epoch);
}

static enum err
answer_topic(const struct question *q,
             const struct offset_for_leader_epoch_request_offset_for_leader_topic *in,
             struct arena *a,
             struct offset_for_leader_epoch_response_offset_for_leader_topic_result *out)
{
    out->topic = in->topic;
    out->partitions.v = wire_array(&wire_offset_for_leader_epoch_response_epoch_end_offset, a,
                                   (size_t)in->partitions.n);
    if (out->partitions.v == NULL)
        return ERR_NOMEM;
    out->partitions.n = in->partitions.n;
    for (int32_t i = 0; i < in->partitions.n; i++) {
        const struct offset_for_leader_epoch_request_offset_for_leader_partition *part =
            &in->partitions.v[i];
        struct offset_for_leader_epoch_response_epoch_end_offset *to = &out->partitions.v[i];
        struct partition *p = NULL;
        to->partition = part->partition;
        to->error_code = find_part(q, in->topic, part->partition, part->current_leader_epoch, &p);
        if (to->error_code == K_NONE)
            log_end_offset_for_epoch(p->log, part->leader_epoch, &to->leader_epoch,
                                     &to->end_offset);
    }
    return ERR_NONE;
}

enum err replicas_offset_for_leader_epoch(struct replicas *rs,
                                          const struct offset_for_leader_epoch_request *req,
                                          int16_t version,
                                          bool (*allowed)(void *ctx, struct str topic),
                                          void *allowed_ctx, struct arena *a,
                                          struct offset_for_leader_epoch_response *resp)
{
    const struct question q = {rs, allowed, allowed_ctx};
    (void)version;
    resp->topics.v =
        wire_array(&wire_offset_for_leader_epoch_response_offset_for_leader_topic_result, a,
                   (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return ERR_NOMEM;
    resp->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        enum err e = answer_topic(&q, &req->topics.v[i], a, &resp->topics.v[i]);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}
