/* UpdateRaftVoter (KIP-853): a voter tells its leader where it is reached now and which
 * kraft.version it knows. With kraft.version 0 the leader only remembers that. */
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ served */

static const struct update_raft_voter_request_listener *
default_listener(const struct raft *r, const struct update_raft_voter_request *in)
{
    for (int32_t i = 0; i < in->listeners.n; i++)
        if (str_eq(in->listeners.v[i].name, r->endpoint.listener))
            return &in->listeners.v[i];
    return NULL;
}

static int16_t check(const struct raft *r, const struct update_raft_voter_request *in)
{
    const int16_t min = in->k_raft_version_feature.min_supported_version,
                  max = in->k_raft_version_feature.max_supported_version;
    if (!raft_right_cluster(r, in->cluster_id))
        return K_INCONSISTENT_CLUSTER_ID;
    const int16_t error = raft_check_leader(r, in->current_leader_epoch);
    if (error != K_NONE)
        return error;
    if (in->voter_id < 0 || uuid_is_zero(in->voter_directory_id) ||
        default_listener(r, in) == NULL || min < 0 || max < min)
        return K_INVALID_REQUEST;
    return K_NONE;
}

static bool describe(struct voter *v, const struct update_raft_voter_request *in,
                     const struct update_raft_voter_request_listener *at)
{
    v->directory_id = in->voter_directory_id;
    v->kraft_min = in->k_raft_version_feature.min_supported_version;
    v->kraft_max = in->k_raft_version_feature.max_supported_version;
    return voter_reached_at(v, at->name, at->host, at->port);
}

/* With kraft.version 0 it is written nowhere, but kept for an upgrade. */
static int16_t note(struct raft *r, int32_t i, const struct update_raft_voter_request *in)
{
    raft_check_is_voter(r, DISAGREE_VOTER, in->voter_id);
    if (i < 0)
        return K_VOTER_NOT_FOUND;
    struct voter v = r->voters.v[i];
    if (!describe(&v, in, default_listener(r, in)))
        return K_INVALID_REQUEST;
    raft_voter_told(r, i, &v);
    return K_NONE;
}

static int16_t update(struct raft *r, const struct update_raft_voter_request *in)
{
    const struct update_raft_voter_request_listener *at = default_listener(r, in);
    const int16_t min = in->k_raft_version_feature.min_supported_version,
                  max = in->k_raft_version_feature.max_supported_version;
    const int32_t i = raft_voter_index(r, in->voter_id, in->voter_directory_id);
    if (r->kraft_version == 0)
        return note(r, i, in);
    if (!raft_may_change_voters(r))
        return K_REQUEST_TIMED_OUT;
    if (r->kraft_version < min || r->kraft_version > max)
        return K_INVALID_REQUEST;
    if (i < 0)
        return K_VOTER_NOT_FOUND;
    struct voter_set set = r->voters;
    int64_t last;
    if (!describe(&set.v[i], in, at))
        return K_INVALID_REQUEST;
    enum err e = raft_put_voters(r, &set, &last);
    return e == ERR_NONE ? K_NONE : K_REQUEST_TIMED_OUT;
}

void raft_update_voter(struct raft *r, struct raft_op *op,
                       const struct update_raft_voter_request *in,
                       struct update_raft_voter_response *out, struct now now)
{
    struct str host;
    uint16_t port;
    int32_t id;
    r->now = now;
    raft_op_begin(r, op, in, out);
    wire_default(&wire_update_raft_voter_response, out);
    out->error_code = check(r, in);
    if (out->error_code == K_NONE) {
        raft_heard(r, in->voter_id, in->voter_directory_id);
        out->error_code = update(r, in);
    }
    out->current_leader.leader_id = r->leader_id;
    out->current_leader.leader_epoch = r->epoch;
    if (raft_node_endpoint(r, op, &id, &host, &port)) {
        out->current_leader.host = host;
        out->current_leader.port = port;
    }
    raft_op_ready(r, op, ERR_NONE);
}

/* ------------------------------------------------------------------ sent */

/* Static voters are asked once in each leadership, others when their entry is not what they are. */
bool raft_update_is_due(struct raft *r)
{
    const bool wanted = !r->update_done && raft_is_voter(r) &&
                        (r->kraft_version == 0 || !raft_own_entry_current(r));
    if (!wanted || r->state != RAFT_FOLLOWER)
        return false;
    if (r->update_us <= r->now.mono_us)
        return true;
    raft_talk_at(r, r->update_us);
    return false;
}

struct raft_message *raft_ask_update(struct raft *r, struct raft_link *l)
{
    union raft_body *b = &l->body;
    memset(b, 0, sizeof *b);
    wire_default(&wire_update_raft_voter_request, &b->update.req);
    b->update.listener = (struct update_raft_voter_request_listener){
        r->endpoint.listener, r->endpoint.host, r->endpoint.port};
    b->update.req.cluster_id = str_of(r->cluster_id);
    b->update.req.current_leader_epoch = r->epoch;
    b->update.req.voter_id = r->node_id;
    b->update.req.voter_directory_id = r->directory_id;
    b->update.req.listeners.v = &b->update.listener;
    b->update.req.listeners.n = 1;
    b->update.req.k_raft_version_feature.max_supported_version = RAFT_KRAFT_VERSION_MAX;
    raft_update_later(r);
    return raft_send(r, l, API_UPDATE_RAFT_VOTER, &b->update.req);
}

bool raft_update_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct update_raft_voter_response *resp = response;
    const uint64_t turn = r->turn;
    if (e == ERR_UNSUPPORTED)
        r->update_done = true; /* nobody there who could keep it */
    if (e != ERR_NONE)
        return e == ERR_UNSUPPORTED;
    const bool at = resp->current_leader.host.n > 0 && resp->current_leader.port > 0 &&
                    resp->current_leader.port <= UINT16_MAX;
    raft_hear(r, resp->current_leader.leader_epoch, resp->current_leader.leader_id,
              at ? resp->current_leader.host : STR_NULL,
              at ? (uint16_t)resp->current_leader.port : 0);
    if (resp->error_code == K_VOTER_NOT_FOUND)
        raft_tell_disagreement(r, DISAGREE_OURSELVES, l->id);
    if (turn == r->turn && resp->error_code == K_NONE)
        r->update_done = r->kraft_version == 0;
    return turn != r->turn || resp->error_code == K_NONE;
}
