/* EndQuorumEpoch (KIP-595, KIP-853): a leader that resigned tells the voters who of them should
 * stand next, the one with the longest log first. */
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ served */

static bool right_topic(const struct end_quorum_epoch_request *in)
{
    return in->topics.n == 1 && raft_is_metadata_topic(in->topics.v[0].topic_name) &&
           in->topics.v[0].partitions.n == 1 &&
           in->topics.v[0].partitions.v[0].partition_index == 0;
}

/* Our place in the list; -1: not in it. Version 0 lists ids only. */
static int32_t place(const struct raft *r, const struct end_quorum_epoch_request_partition_data *p,
                     int32_t *n)
{
    *n = p->preferred_candidates.n > 0 ? p->preferred_candidates.n : p->preferred_successors.n;
    for (int32_t i = 0; i < p->preferred_candidates.n; i++) {
        const struct end_quorum_epoch_request_replica_info *c = &p->preferred_candidates.v[i];
        if (c->candidate_id == r->node_id && (uuid_is_zero(c->candidate_directory_id) ||
                                              uuid_eq(c->candidate_directory_id, r->directory_id)))
            return i;
    }
    for (int32_t i = 0; p->preferred_candidates.n <= 0 && i < p->preferred_successors.n; i++)
        if (p->preferred_successors.v[i] == r->node_id)
            return i;
    return -1;
}

static int64_t wait_us(const struct raft *r,
                       const struct end_quorum_epoch_request_partition_data *p)
{
    int32_t n;
    const int32_t at = place(r, p, &n);
    const int64_t most = r->config.election_backoff_max_ms;
    if (n <= 0 || at == 0)
        return 0;
    if (at < 0)
        return most * 1000;
    const int64_t least = n > 62 ? 0 : most >> (n - 1);
    const int64_t ms = at > 31 ? most : least << (at - 1);
    return (ms < most ? ms : most) * 1000;
}

static int16_t handle(struct raft *r, const struct end_quorum_epoch_request *in,
                      const struct end_quorum_epoch_request_partition_data *p)
{
    const bool at = in->leader_endpoints.n > 0;
    const int16_t error = raft_check_other_leader(r, p->leader_epoch, p->leader_id);
    if (error != K_NONE)
        return error;
    raft_hear(r, p->leader_epoch, p->leader_id, at ? in->leader_endpoints.v[0].host : STR_NULL,
              at ? in->leader_endpoints.v[0].port : 0);
    if (r->state == RAFT_FOLLOWER && r->leader_id == p->leader_id)
        raft_end_fetching(r, wait_us(r, p));
    return K_NONE;
}

static enum err answer(struct raft *r, struct raft_op *op,
                       const struct end_quorum_epoch_request *in,
                       struct end_quorum_epoch_response *out)
{
    wire_default(&wire_end_quorum_epoch_response, out);
    if (!raft_right_cluster(r, in->cluster_id)) {
        out->error_code = K_INCONSISTENT_CLUSTER_ID;
        return ERR_NONE;
    }
    if (!right_topic(in)) {
        out->error_code = K_INVALID_REQUEST;
        return ERR_NONE;
    }
    struct end_quorum_epoch_response_topic_data *topic =
        wire_array(&wire_end_quorum_epoch_response_topic_data, op->arena, 1);
    struct end_quorum_epoch_response_partition_data *part =
        wire_array(&wire_end_quorum_epoch_response_partition_data, op->arena, 1);
    struct end_quorum_epoch_response_node_endpoint *node =
        wire_array(&wire_end_quorum_epoch_response_node_endpoint, op->arena, 1);
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

void raft_end_quorum_epoch(struct raft *r, struct raft_op *op,
                           const struct end_quorum_epoch_request *in,
                           struct end_quorum_epoch_response *out, struct now now)
{
    r->now = now;
    raft_op_begin(r, op, in, out);
    raft_op_ready(r, op, answer(r, op, in, out));
}

/* ------------------------------------------------------------------ sent */

void raft_find_successors(struct raft *r)
{
    int64_t ends[VOTERS_MAX];
    int32_t n = 0;
    for (int32_t i = 0; i < r->voters.n; i++) {
        if (r->voters.v[i].id == r->node_id)
            continue;
        const int64_t end = r->progress[i].end;
        int32_t k = n++;
        for (; k > 0 && ends[k - 1] < end; k--) {
            ends[k] = ends[k - 1];
            r->successors[k] = r->successors[k - 1];
        }
        ends[k] = end;
        r->successors[k] = i;
    }
    r->successors_n = n;
}

static void add_candidates(const struct raft *r, union raft_body *b)
{
    for (int32_t i = 0; i < r->successors_n; i++) {
        const struct voter *v = &r->voters.v[r->successors[i]];
        b->end.ids[i] = v->id;
        b->end.candidates[i] =
            (struct end_quorum_epoch_request_replica_info){v->id, v->directory_id};
    }
    b->end.part.preferred_successors.v = b->end.ids;
    b->end.part.preferred_successors.n = r->successors_n;
    b->end.part.preferred_candidates.v = b->end.candidates;
    b->end.part.preferred_candidates.n = r->successors_n;
}

static struct raft_message *make(struct raft *r, struct raft_link *l)
{
    union raft_body *b = &l->body;
    memset(b, 0, sizeof *b);
    wire_default(&wire_end_quorum_epoch_request, &b->end.req);
    b->end.part.leader_id = r->node_id;
    b->end.part.leader_epoch = r->epoch;
    add_candidates(r, b);
    b->end.topic.topic_name = RAFT_TOPIC;
    b->end.topic.partitions.v = &b->end.part;
    b->end.topic.partitions.n = 1;
    b->end.req.cluster_id = str_of(r->cluster_id);
    b->end.req.topics.v = &b->end.topic;
    b->end.req.topics.n = 1;
    return raft_send(r, l, API_END_QUORUM_EPOCH, &b->end.req);
}

struct raft_message *raft_next_end(struct raft *r)
{
    for (int32_t i = 0; i < r->voters.n; i++) {
        struct raft_link *l = r->ended[i] ? NULL : raft_voter_link(r, i);
        if (l != NULL)
            return make(r, l);
    }
    return NULL;
}

static void acknowledged(struct raft *r, int32_t id)
{
    for (int32_t i = 0; i < r->voters.n; i++)
        r->ended[i] |= r->voters.v[i].id == id;
}

bool raft_end_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct end_quorum_epoch_response *resp = response;
    if (r->handing_over)
        acknowledged(r, l->id); /* whatever it said: we are going */
    if (e != ERR_NONE || resp->error_code != K_NONE || resp->topics.n != 1 ||
        resp->topics.v[0].partitions.n != 1)
        return false;
    const struct end_quorum_epoch_response_partition_data *p = &resp->topics.v[0].partitions.v[0];
    const bool at = resp->node_endpoints.n > 0 && resp->node_endpoints.v[0].node_id == p->leader_id;
    if (p->error_code == K_NONE)
        acknowledged(r, l->id);
    raft_hear(r, p->leader_epoch, p->leader_id, at ? resp->node_endpoints.v[0].host : STR_NULL,
              at ? resp->node_endpoints.v[0].port : 0);
    return p->error_code == K_NONE;
}
