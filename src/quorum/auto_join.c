/* A controller that is no voter becomes one by itself (KIP-1186,
 * controller.quorum.auto.join.enable): it asks its leader, every so often, to remove the voter of
 * its id with another directory, which was its disk before, then to add it. Who has been a voter in
 * this life was removed by somebody, and stays away (KAFKA-19850). */
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

enum { JOIN_TIMEOUT_MS = 30000 };

/* The voter of our id, with whatever directory; -1. */
static int32_t namesake(const struct raft *r)
{
    for (int32_t i = 0; i < r->voters.n; i++)
        if (r->voters.v[i].id == r->node_id)
            return i;
    return -1;
}

void raft_note_membership(struct raft *r)
{
    r->was_voter |= raft_is_voter(r);
}

bool raft_join_is_due(struct raft *r)
{
    if (!r->config.auto_join || !r->may_vote || r->was_voter || r->kraft_version == 0 ||
        r->state != RAFT_FOLLOWER || !r->fetched || r->high_watermark < log_end_offset(r->log))
        return false;
    if (r->update_us <= r->now.mono_us)
        return true;
    raft_talk_at(r, r->update_us);
    return false;
}

static struct raft_message *ask_remove(struct raft *r, struct raft_link *l, int32_t i)
{
    union raft_body *b = &l->body;
    wire_default(&wire_remove_raft_voter_request, &b->remove);
    b->remove.cluster_id = str_of(r->cluster_id);
    b->remove.voter_id = r->node_id;
    b->remove.voter_directory_id = r->voters.v[i].directory_id;
    return raft_send(r, l, API_REMOVE_RAFT_VOTER, &b->remove);
}

/* The answer must not wait for the commit: that may need our own next fetch. */
static struct raft_message *ask_add(struct raft *r, struct raft_link *l)
{
    union raft_body *b = &l->body;
    wire_default(&wire_add_raft_voter_request, &b->add.req);
    b->add.listener = (struct add_raft_voter_request_listener){r->endpoint.listener,
                                                               r->endpoint.host, r->endpoint.port};
    b->add.req.cluster_id = str_of(r->cluster_id);
    b->add.req.timeout_ms = JOIN_TIMEOUT_MS;
    b->add.req.voter_id = r->node_id;
    b->add.req.voter_directory_id = r->directory_id;
    b->add.req.listeners.v = &b->add.listener;
    b->add.req.listeners.n = 1;
    b->add.req.ack_when_committed = false;
    return raft_send(r, l, API_ADD_RAFT_VOTER, &b->add.req);
}

struct raft_message *raft_ask_join(struct raft *r, struct raft_link *l)
{
    const int32_t i = namesake(r);
    memset(&l->body, 0, sizeof l->body);
    raft_update_later(r);
    return i >= 0 ? ask_remove(r, l, i) : ask_add(r, l);
}

bool raft_join_answered(struct raft *r, const struct raft_link *l, enum err e, const void *response)
{
    const bool adding = l->message.api_key == API_ADD_RAFT_VOTER;
    if (e != ERR_NONE)
        return false;
    const int16_t error = adding
                              ? ((const struct add_raft_voter_response *)response)->error_code
                              : ((const struct remove_raft_voter_response *)response)->error_code;
    env_log(r->env, error == K_NONE ? LOG_INFO : LOG_WARN,
            "quorum_auto_join node=%d leader=%d step=%s error=%s", r->node_id, l->id,
            adding ? "add" : "remove", kafka_error_name(error));
    return true; /* it is asked again after a while, unless the log shows us */
}
