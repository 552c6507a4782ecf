/* Vote (KIP-595, KIP-853, KIP-996): the checks in Kafka's order, then the table of who grants
 * what in which state. The answer carries the epoch after adoption. */
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

/* Candidate's log is at least as new as ours: epoch first, then end. */
static bool log_ok(const struct raft *r, int32_t last_epoch, int64_t end)
{
    const int32_t own = raft_last_epoch(r);
    return last_epoch > own || (last_epoch == own && end >= log_end_offset(r->log));
}

static bool grants_vote(const struct raft *r, const struct vote_request_partition_data *p)
{
    if (r->state != RAFT_UNATTACHED && r->state != RAFT_PROSPECTIVE)
        return false;
    if (r->voted_id >= 0)
        return r->voted_id == p->replica_id &&
               (uuid_is_zero(r->voted_directory_id) ||
                uuid_eq(r->voted_directory_id, p->replica_directory_id));
    return r->leader_id < 0 && log_ok(r, p->last_offset_epoch, p->last_offset);
}

static bool grants_pre_vote(const struct raft *r, const struct vote_request_partition_data *p)
{
    const bool ok = log_ok(r, p->last_offset_epoch, p->last_offset);
    switch (r->state) {
    case RAFT_LEADER:
        return false;
    case RAFT_FOLLOWER:
        return ok && !r->fetched;
    case RAFT_UNATTACHED:
    case RAFT_PROSPECTIVE:
    case RAFT_CANDIDATE:
    case RAFT_RESIGNED:
        return ok;
    }
    return false;
}

static int16_t check(const struct raft *r, const struct vote_request_partition_data *p)
{
    const bool bad_epoch = p->pre_vote ? p->last_offset_epoch > p->replica_epoch
                                       : p->last_offset_epoch >= p->replica_epoch;
    if (p->last_offset < 0 || p->last_offset_epoch < 0 || bad_epoch ||
        p->replica_epoch > RAFT_EPOCH_MAX)
        return K_INVALID_REQUEST;
    if (p->replica_epoch < r->epoch)
        return K_FENCED_LEADER_EPOCH;
    return p->replica_id < 0 ? K_INVALID_REQUEST : K_NONE;
}

static bool right_topic(const struct vote_request *in)
{
    return in->topics.n == 1 && raft_is_metadata_topic(in->topics.v[0].topic_name) &&
           in->topics.v[0].partitions.n == 1 &&
           in->topics.v[0].partitions.v[0].partition_index == 0;
}

/* Who asks for pre-votes has lost the leader too: what it refused us before, it may grant now. That
 * our log is the newer one keeps two from asking each other for ever. */
static void ask_again(struct raft *r, const struct vote_request_partition_data *p)
{
    const int32_t i = raft_voter_index(r, p->replica_id, p->replica_directory_id);
    if (r->state == RAFT_PROSPECTIVE && i >= 0 && r->votes[i] == VOTE_REFUSED)
        r->votes[i] = VOTE_NONE;
}

static void handle(struct raft *r, const struct vote_request *in,
                   const struct vote_request_partition_data *p,
                   struct vote_response_partition_data *out)
{
    out->error_code = check(r, p);
    if (out->error_code != K_NONE)
        return;
    raft_check_is_voter(r, DISAGREE_CANDIDATE, p->replica_id);
    if (p->replica_epoch > r->epoch)
        raft_become_unattached(r, p->replica_epoch, -1);
    if (raft_meant_for_other(r, in->voter_id, p->voter_directory_id)) {
        out->error_code = K_INVALID_VOTER_KEY;
        return;
    }
    out->vote_granted = p->pre_vote ? grants_pre_vote(r, p) : grants_vote(r, p);
    if (p->pre_vote && !out->vote_granted)
        ask_again(r, p);
    if (out->vote_granted && !p->pre_vote && r->voted_id < 0)
        raft_add_vote(r, p->replica_id, p->replica_directory_id);
}

static enum err answer(struct raft *r, const struct raft_op *op, const struct vote_request *in,
                       struct vote_response *out)
{
    wire_default(&wire_vote_response, out);
    if (!raft_right_cluster(r, in->cluster_id)) {
        out->error_code = K_INCONSISTENT_CLUSTER_ID;
        return ERR_NONE;
    }
    if (!right_topic(in)) {
        out->error_code = K_INVALID_REQUEST;
        return ERR_NONE;
    }
    struct vote_response_topic_data *topic =
        wire_array(&wire_vote_response_topic_data, op->arena, 1);
    struct vote_response_partition_data *part =
        wire_array(&wire_vote_response_partition_data, op->arena, 1);
    struct vote_response_node_endpoint *node =
        wire_array(&wire_vote_response_node_endpoint, op->arena, 1);
    if (topic == NULL || part == NULL || node == NULL)
        return ERR_NOMEM;
    handle(r, in, &in->topics.v[0].partitions.v[0], part);
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

void raft_vote(struct raft *r, struct raft_op *op, const struct vote_request *in,
               struct vote_response *out, struct now now)
{
    r->now = now;
    raft_op_begin(r, op, in, out);
    raft_op_ready(r, op, answer(r, op, in, out));
}

/* ------------------------------------------------------------------ sent */

int32_t raft_votes_n(const struct raft *r, enum vote_result what)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->voters.n; i++)
        n += r->votes[i] == what;
    return n;
}

static void prospective_result(struct raft *r)
{
    if (raft_majority(r, raft_votes_n(r, VOTE_GRANTED)))
        raft_become_candidate(r);
    else if (!raft_majority(r, r->voters.n - raft_votes_n(r, VOTE_REFUSED)))
        raft_end_prospective(r);
}

static void count_vote(struct raft *r, int32_t i, bool granted)
{
    const bool pre_vote = r->state == RAFT_PROSPECTIVE;
    r->votes[i] = granted ? VOTE_GRANTED : VOTE_REFUSED;
    if (pre_vote)
        prospective_result(r); /* a candidate's majority is counted by settle, once it is durable */
}

static struct raft_message *make(struct raft *r, struct raft_link *l, int32_t i)
{
    union raft_body *b = &l->body;
    memset(b, 0, sizeof *b);
    wire_default(&wire_vote_request, &b->vote.req);
    b->vote.part = (struct vote_request_partition_data){
        .replica_epoch = r->epoch,
        .replica_id = r->node_id,
        .replica_directory_id = r->directory_id,
        .voter_directory_id = r->voters.v[i].directory_id,
        .last_offset_epoch = raft_last_epoch(r),
        .last_offset = log_end_offset(r->log),
        .pre_vote = r->state == RAFT_PROSPECTIVE,
    };
    b->vote.topic.topic_name = RAFT_TOPIC;
    b->vote.topic.partitions.v = &b->vote.part;
    b->vote.topic.partitions.n = 1;
    b->vote.req.cluster_id = str_of(r->cluster_id);
    b->vote.req.voter_id = r->voters.v[i].id;
    b->vote.req.topics.v = &b->vote.topic;
    b->vote.req.topics.n = 1;
    return raft_send(r, l, API_VOTE, &b->vote.req);
}

struct raft_message *raft_next_vote(struct raft *r)
{
    for (int32_t i = 0; i < r->voters.n; i++) {
        struct raft_link *l = r->votes[i] == VOTE_NONE ? raft_voter_link(r, i) : NULL;
        if (l != NULL)
            return make(r, l, i);
    }
    return NULL;
}

bool raft_vote_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct vote_response *resp = response;
    const uint64_t turn = r->turn;
    if (e == ERR_UNSUPPORTED && r->state == RAFT_PROSPECTIVE) {
        raft_become_candidate(r); /* it knows no pre-vote (KIP-996) */
        return true;
    }
    if (e != ERR_NONE || resp->error_code != K_NONE || resp->topics.n != 1 ||
        resp->topics.v[0].partitions.n != 1)
        return false;
    const struct vote_response_partition_data *p = &resp->topics.v[0].partitions.v[0];
    const bool at = resp->node_endpoints.n > 0 && resp->node_endpoints.v[0].node_id == p->leader_id;
    raft_hear(r, p->leader_epoch, p->leader_id, at ? resp->node_endpoints.v[0].host : STR_NULL,
              at ? resp->node_endpoints.v[0].port : 0);
    if (turn != r->turn)
        return true;
    const int32_t i = raft_voter_index(r, l->id, l->body.vote.part.voter_directory_id);
    if (p->error_code == K_INVALID_VOTER_KEY)
        raft_tell_disagreement(r, DISAGREE_ADDRESS, l->id);
    if (i < 0 || p->error_code != K_NONE || p->leader_epoch != r->epoch)
        return false;
    count_vote(r, i, p->vote_granted);
    return true;
}
