/* DescribeQuorum (KIP-595, KIP-836, KIP-853): the metadata log's only partition, at its leader.
 * (When the principal may not ask, Kafka's answer is UNKNOWN_SERVER_ERROR, from a refusal that it
 * wraps on the way; here it is the refusal.) */
#include "api/forward.h"
#include "quorum/raft.h"
#include "wire/error.h"

#define METADATA_TOPIC STR_LIT("__cluster_metadata")

static bool is_valid(const struct describe_quorum_request *req)
{
    return req->topics.n == 1 && str_eq(req->topics.v[0].topic_name, METADATA_TOPIC) &&
           req->topics.v[0].partitions.n == 1 &&
           req->topics.v[0].partitions.v[0].partition_index == 0;
}

/* Every partition as the request names it, with the error. */
static bool refuse(const struct describe_quorum_request *req, int16_t error, const char *message,
                   struct arena *a, struct describe_quorum_response *resp)
{
    resp->topics.v =
        wire_array(&wire_describe_quorum_response_topic_data, a, (size_t)req->topics.n);
    if (resp->topics.v == NULL)
        return false;
    resp->topics.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct describe_quorum_request_topic_data *in = &req->topics.v[i];
        struct describe_quorum_response_topic_data *out = &resp->topics.v[i];
        out->topic_name = in->topic_name;
        out->partitions.v =
            wire_array(&wire_describe_quorum_response_partition_data, a, (size_t)in->partitions.n);
        if (out->partitions.v == NULL)
            return false;
        out->partitions.n = in->partitions.n;
        for (int32_t k = 0; k < in->partitions.n; k++) {
            out->partitions.v[k].partition_index = in->partitions.v[k].partition_index;
            out->partitions.v[k].error_code = error;
            out->partitions.v[k].error_message = str_of(message);
        }
    }
    return true;
}

static void fill_replica(int16_t version, struct raft_replica known,
                         struct describe_quorum_response_replica_state *to)
{
    to->replica_id = known.id;
    if (version >= 2)
        to->replica_directory_id = known.directory_id;
    to->log_end_offset = known.end_offset;
    to->last_fetch_timestamp = known.fetched_ms;
    to->last_caught_up_timestamp = known.caught_up_ms;
}

static bool fill_voters(const struct raft *raft, int16_t version, struct now now, struct arena *a,
                        struct describe_quorum_response_partition_data *out)
{
    const int32_t n = raft_voters(raft)->n;
    out->current_voters.v = wire_array(&wire_describe_quorum_response_replica_state, a, (size_t)n);
    if (out->current_voters.v == NULL)
        return false;
    out->current_voters.n = n;
    for (int32_t i = 0; i < n; i++)
        fill_replica(version, raft_replica_at(raft, i, now), &out->current_voters.v[i]);
    return true;
}

static bool fill_observers(struct raft *raft, int16_t version, struct now now, struct arena *a,
                           struct describe_quorum_response_partition_data *out)
{
    const int32_t n = raft_observers_n(raft, now);
    out->observers.v = wire_array(&wire_describe_quorum_response_replica_state, a, (size_t)n);
    if (out->observers.v == NULL)
        return false;
    out->observers.n = n;
    for (int32_t i = 0; i < n; i++)
        fill_replica(version, raft_observer_at(raft, i), &out->observers.v[i]);
    return true;
}

static bool fill_nodes(const struct raft *raft, struct arena *a,
                       struct describe_quorum_response *resp)
{
    const struct voter_set *voters = raft_voters(raft);
    resp->nodes.v = wire_array(&wire_describe_quorum_response_node, a, (size_t)voters->n);
    if (resp->nodes.v == NULL)
        return false;
    resp->nodes.n = voters->n;
    for (int32_t i = 0; i < voters->n; i++) {
        const struct voter *v = &voters->v[i];
        struct describe_quorum_response_node *to = &resp->nodes.v[i];
        to->node_id = v->id;
        to->listeners.v = wire_array(&wire_describe_quorum_response_listener, a, 1);
        if (to->listeners.v == NULL)
            return false;
        if (v->host[0] == '\0')
            continue;
        to->listeners.v[to->listeners.n++] = (struct describe_quorum_response_listener){
            str_of(v->listener), str_of(v->host), v->port};
    }
    return true;
}

static bool describe(struct raft *raft, int16_t version, struct now now, struct arena *a,
                     struct describe_quorum_response *resp)
{
    struct describe_quorum_response_partition_data *out = &resp->topics.v[0].partitions.v[0];
    out->leader_id = raft_leader_id(raft);
    out->leader_epoch = raft_epoch(raft);
    out->high_watermark = raft_known_high_watermark(raft);
    return fill_voters(raft, version, now, a, out) && fill_observers(raft, version, now, a, out) &&
           (version < 2 || fill_nodes(raft, a, resp));
}

static bool answer(struct api *api, struct request *r, struct now now,
                   struct describe_quorum_response *resp)
{
    const struct describe_quorum_request *req = r->message;
    if (!api_authorized(api, r, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        resp->error_code = K_CLUSTER_AUTHORIZATION_FAILED;
        return true;
    }
    if (!is_valid(req))
        return refuse(req, K_UNKNOWN_TOPIC_OR_PARTITION,
                      "Only partition 0 of __cluster_metadata can be described, alone", &r->arena,
                      resp);
    if (api->raft == NULL || raft_state(api->raft) != RAFT_LEADER)
        return refuse(req, K_NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum",
                      &r->arena, resp);
    return refuse(req, K_NONE, "", &r->arena, resp) &&
           describe(api->raft, r->api_version, now, &r->arena, resp);
}

static void answer_error(struct request *r, int16_t error)
{
    struct describe_quorum_response resp;
    wire_default(&wire_describe_quorum_response, &resp);
    resp.error_code = error;
    request_answer(r, &msg_describe_quorum_response, &resp);
}

void api_describe_quorum_start(struct api *api, struct request *r, struct now now)
{
    struct describe_quorum_response resp;
    if (api_forward_to_leader(api, r, -1, answer_error))
        return;
    wire_default(&wire_describe_quorum_response, &resp);
    if (answer(api, r, now, &resp))
        request_answer(r, &msg_describe_quorum_response, &resp);
    else
        request_close(r, "out of memory");
}
