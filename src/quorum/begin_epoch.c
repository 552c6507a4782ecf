/* BeginQuorumEpoch (KIP-595, KIP-853): a leader tells the voters that do not fetch from it. */
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ served */

static bool right_topic(const struct begin_quorum_epoch_request *in)
{
    return in->topics.n == 1 && raft_is_metadata_topic(in->topics.v[0].topic_name) &&
           in->topics.v[0].partitions.n == 1 &&
           in->topics.v[0].partitions.v[0].partition_index == 0;
}

/* Its endpoint for our listener, or its first; none in version 0. */
static void leader_endpoint(const struct raft *r, const struct begin_quorum_epoch_request *in,
                            struct str *host, uint16_t *port)
{
    *host = STR_NULL;
    *port = 0;
    for (int32_t i = 0; i < in->leader_endpoints.n; i++) {
        const struct begin_quorum_epoch_request_leader_endpoint *e = &in->leader_endpoints.v[i];
        const bool ours = str_eq(e->name, r->endpoint.listener);
        if (i > 0 && !ours)
            continue;
        *host = e->host;
        *port = e->port;
        if (ours)
            return;
    }
}

static int16_t handle(struct raft *r, const struct begin_quorum_epoch_request *in,
                      const struct begin_quorum_epoch_request_partition_data *p)
{
    struct str host;
    uint16_t port;
    const int16_t error = raft_check_other_leader(r, p->leader_epoch, p->leader_id);
    if (error != K_NONE)
        return error;
    leader_endpoint(r, in, &host, &port);
    raft_hear(r, p->leader_epoch, p->leader_id, host, port);
    return raft_meant_for_other(r, in->voter_id, p->voter_directory_id) ? K_INVALID_VOTER_KEY
                                                                        : K_NONE;
}

static enum err answer(struct raft *r, struct raft_op *op,
                       const struct begin_quorum_epoch_request *in,
                       struct begin_quorum_epoch_response *out)
{
    wire_default(&wire_begin_quorum_epoch_response, out);
    if (!raft_right_cluster(r, in->cluster_id)) {
        out->error_code = K_INCONSISTENT_CLUSTER_ID;
        return ERR_NONE;
    }
    if (!right_topic(in)) {
        out->error_code = K_INVALID_REQUEST;
        return ERR_NONE;
    }
    struct begin_quorum_epoch_response_topic_data *topic =
        wire_array(&wire_begin_quorum_epoch_response_topic_data, op->arena, 1);
    struct begin_quorum_epoch_response_partition_data *part =
        wire_array(&wire_begin_quorum_epoch_response_partition_data, op->arena, 1);
    struct begin_quorum_epoch_response_node_endpoint *node =
        wire_array(&wire_begin_quorum_epoch_response_node_endpoint, op->arena, 1);
    if (topic == NULL || part == NULL || node == NULL)
        return ERR_NOMEM;
    part->error_code = handle(r, in, &in->topics.v[0].partitions.v[0]);
    part->leader_id = r->leader_id;
    part->leader_epoch = r->epoch;
    topic->topic_name = in->topics.v[0].topic_name;
    topic->partitions.v = part;
    topic->partitions.n = 1;
    out->topics.v = topic;
    out->topics.n = 1;
    out->node_endpoints.v = node;
    out->node_endpoints.n = raft_node_endpoint(r, op, &node->node_id, &node->host, &node->port);
    return ERR_NONE;
}

void raft_begin_quorum_epoch(struct raft *r, struct raft_op *op,
                             const struct begin_quorum_epoch_request *in,
                             struct begin_quorum_epoch_response *out, struct now now)
{
    r->now = now;
    raft_op_begin(r, op, in, out);
    raft_op_ready(r, op, answer(r, op, in, out));
}

/* ------------------------------------------------------------------ sent */

static struct raft_message *make(struct raft *r, struct raft_link *l, int32_t i)
{
    union raft_body *b = &l->body;
    memset(b, 0, sizeof *b);
    wire_default(&wire_begin_quorum_epoch_request, &b->begin.req);
    b->begin.part = (struct begin_quorum_epoch_request_partition_data){
        .voter_directory_id = r->voters.v[i].directory_id,
        .leader_id = r->node_id,
        .leader_epoch = r->epoch,
    };
    b->begin.topic.topic_name = RAFT_TOPIC;
    b->begin.topic.partitions.v = &b->begin.part;
    b->begin.topic.partitions.n = 1;
    b->begin.endpoint = (struct begin_quorum_epoch_request_leader_endpoint){
        r->endpoint.listener, r->endpoint.host, r->endpoint.port};
    b->begin.req.cluster_id = str_of(r->cluster_id);
    b->begin.req.voter_id = r->voters.v[i].id;
    b->begin.req.topics.v = &b->begin.topic;
    b->begin.req.topics.n = 1;
    b->begin.req.leader_endpoints.v = &b->begin.endpoint;
    b->begin.req.leader_endpoints.n = 1;
    return raft_send(r, l, API_BEGIN_QUORUM_EPOCH, &b->begin.req);
}

struct raft_message *raft_next_begin(struct raft *r)
{
    for (int32_t i = 0; i < r->voters.n; i++) {
        if (r->begin_us[i] > r->now.mono_us) {
            raft_talk_at(r, r->begin_us[i]);
            continue;
        }
        struct raft_link *l = raft_voter_link(r, i);
        if (l == NULL)
            continue;
        raft_voter_spoke(r, i); /* as long as if it had fetched */
        return make(r, l, i);
    }
    return NULL;
}

bool raft_begin_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct begin_quorum_epoch_response *resp = response;
    (void)l;
    if (e != ERR_NONE || resp->error_code != K_NONE || resp->topics.n != 1 ||
        resp->topics.v[0].partitions.n != 1)
        return false;
    const struct begin_quorum_epoch_response_partition_data *p = &resp->topics.v[0].partitions.v[0];
    const bool at = resp->node_endpoints.n > 0 && resp->node_endpoints.v[0].node_id == p->leader_id;
    raft_hear(r, p->leader_epoch, p->leader_id, at ? resp->node_endpoints.v[0].host : STR_NULL,
              at ? resp->node_endpoints.v[0].port : 0);
    return true;
}
