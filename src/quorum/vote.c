/* Vote (KIP-595, KIP-853, KIP-996): the checks in Kafka's order, then the table of who grants
 * what in which state. The answer carries the epoch after adoption. */
#include "quorum/inside.h"
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
    if (p->last_offset < 0 || p->last_offset_epoch < 0 || bad_epoch)
        return K_INVALID_REQUEST;
    if (p->replica_epoch < r->epoch)
        return K_FENCED_LEADER_EPOCH;
    return p->replica_id < 0 ? K_INVALID_REQUEST : K_NONE;
}

static bool right_topic(const struct vote_request *in)
{
    return in->topics.n == 1 && str_eq(in->topics.v[0].topic_name, STR_LIT("__cluster_metadata")) &&
           in->topics.v[0].partitions.n == 1 &&
           in->topics.v[0].partitions.v[0].partition_index == 0;
}

static bool other_voter(const struct raft *r, const struct vote_request *in,
                        const struct vote_request_partition_data *p)
{
    return (in->voter_id >= 0 && in->voter_id != r->node_id) ||
           (!uuid_is_zero(p->voter_directory_id) &&
            !uuid_eq(p->voter_directory_id, r->directory_id));
}

static void handle(struct raft *r, const struct vote_request *in,
                   const struct vote_request_partition_data *p,
                   struct vote_response_partition_data *out)
{
    out->error_code = check(r, p);
    if (out->error_code != K_NONE)
        return;
    if (p->replica_epoch > r->epoch)
        raft_become_unattached(r, p->replica_epoch, -1);
    if (other_voter(r, in, p)) {
        out->error_code = K_INVALID_VOTER_KEY;
        return;
    }
    out->vote_granted = p->pre_vote ? grants_pre_vote(r, p) : grants_vote(r, p);
    if (out->vote_granted && !p->pre_vote && r->voted_id < 0)
        raft_add_vote(r, p->replica_id, p->replica_directory_id);
}

void raft_handle_vote(struct raft *r, const struct vote_request *in, struct now now,
                      struct arena *a, struct vote_response *out)
{
    r->now = now;
    wire_default(&wire_vote_response, out);
    if (in->cluster_id.n >= 0 && !str_eq(in->cluster_id, str_of(r->cluster_id))) {
        out->error_code = K_INCONSISTENT_CLUSTER_ID;
        return;
    }
    if (!right_topic(in)) {
        out->error_code = K_INVALID_REQUEST;
        return;
    }
    struct vote_response_topic_data *topic = wire_array(&wire_vote_response_topic_data, a, 1);
    struct vote_response_partition_data *part =
        wire_array(&wire_vote_response_partition_data, a, 1);
    if (topic == NULL || part == NULL) {
        out->error_code = K_UNKNOWN_SERVER_ERROR;
        return;
    }
    handle(r, in, &in->topics.v[0].partitions.v[0], part);
    part->leader_id = r->leader_id;
    part->leader_epoch = r->epoch;
    topic->topic_name = in->topics.v[0].topic_name;
    topic->partitions.v = part;
    topic->partitions.n = 1;
    out->topics.v = topic;
    out->topics.n = 1;
}

/* ------------------------------------------------------------------ answers */

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

void raft_handle_vote_response(struct raft *r, int32_t from_id, struct uuid from_directory_id,
                               bool pre_vote, int32_t request_epoch, bool granted, int32_t epoch,
                               int32_t leader_id, struct now now)
{
    r->now = now;
    if (epoch < r->epoch)
        return;
    if (epoch > r->epoch) {
        if (leader_id >= 0 && leader_id != r->node_id)
            raft_become_follower(r, epoch, leader_id);
        else
            raft_become_unattached(r, epoch, -1);
        return;
    }
    if (leader_id >= 0 && leader_id != r->node_id && r->leader_id < 0) {
        raft_become_follower(r, epoch, leader_id);
        return;
    }
    const int32_t i = raft_voter_index(r, from_id, from_directory_id);
    const enum raft_state asked = pre_vote ? RAFT_PROSPECTIVE : RAFT_CANDIDATE;
    if (i < 0 || r->state != asked || request_epoch != r->epoch)
        return;
    r->votes[i] = granted ? VOTE_GRANTED : VOTE_REFUSED;
    if (pre_vote)
        prospective_result(r); /* a candidate's majority is counted by settle, once it is durable */
}

struct raft_message *raft_next_message(struct raft *r)
{
    if (!raft_is_durable(r))
        return NULL;
    struct list *l = list_pop(&r->outbox);
    return l == NULL ? NULL : LIST_ENTRY(l, struct raft_message, link);
}
