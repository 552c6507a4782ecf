/* What the nodes of the metadata quorum ask each other (KIP-595, KIP-630, KIP-853). The answers are
 * raft's own; here only the principal is looked at. */
#include "api/forward.h"
#include "wire/error.h"

struct quorum_state {
    struct raft_op op;
    struct request *r;
    const struct wire_message *response_message;
    union {
        struct vote_response vote;
        struct begin_quorum_epoch_response begin;
        struct end_quorum_epoch_response end;
        struct fetch_response fetch;
        struct fetch_snapshot_response snapshot;
        struct update_raft_voter_response update;
        struct add_raft_voter_response add;
        struct remove_raft_voter_response remove;
    } response;
};

static struct str text_of(int16_t error)
{
    return error == K_NONE ? STR_NULL : str_of(kafka_error_name(error));
}

/* Answers about changed voters have a text beside their error. */
static void add_text(struct quorum_state *st)
{
    struct add_raft_voter_response *add = &st->response.add;
    struct remove_raft_voter_response *remove = &st->response.remove;
    if (st->response_message == &msg_add_raft_voter_response)
        add->error_message = text_of(add->error_code);
    else if (st->response_message == &msg_remove_raft_voter_response)
        remove->error_message = text_of(remove->error_code);
}

static void quorum_done(struct raft_op *op)
{
    struct quorum_state *st = CONTAINER_OF(op, struct quorum_state, op);
    st->r->handler_state = NULL;
    add_text(st);
    if (op->err == ERR_NONE)
        request_answer(st->r, st->response_message, &st->response);
    else
        request_close(st->r, err_name(op->err));
}

static struct quorum_state *state_new(struct api *api, struct request *r,
                                      const struct wire_message *response)
{
    struct quorum_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return NULL;
    }
    wire_default(response->body, &st->response);
    st->r = r;
    st->response_message = response;
    st->op.done = quorum_done;
    st->op.arena = &r->arena;
    st->op.listener = r->listener < 0 ? STR_LIT("") : str_of(api->endpoints[r->listener].listener);
    return st;
}

/* Is r refused before raft sees it? error: the response's; the answer is then sent. */
static bool refused(struct api *api, struct quorum_state *st, enum acl_operation op, int16_t *error)
{
    if (!api_authorized(api, st->r, op, ACL_CLUSTER, ACL_CLUSTER_NAME))
        *error = K_CLUSTER_AUTHORIZATION_FAILED;
    else if (api->raft == NULL)
        *error = K_BROKER_NOT_AVAILABLE;
    else
        return false;
    add_text(st);
    request_answer(st->r, st->response_message, &st->response);
    return true;
}

void api_vote_start(struct api *api, struct request *r, struct now now)
{
    struct quorum_state *st = state_new(api, r, &msg_vote_response);
    if (st != NULL && !refused(api, st, ACL_CLUSTER_ACTION, &st->response.vote.error_code))
        raft_vote(api->raft, &st->op, r->message, &st->response.vote, now);
}

void api_begin_quorum_epoch_start(struct api *api, struct request *r, struct now now)
{
    struct quorum_state *st = state_new(api, r, &msg_begin_quorum_epoch_response);
    if (st != NULL && !refused(api, st, ACL_CLUSTER_ACTION, &st->response.begin.error_code))
        raft_begin_quorum_epoch(api->raft, &st->op, r->message, &st->response.begin, now);
}

void api_end_quorum_epoch_start(struct api *api, struct request *r, struct now now)
{
    struct quorum_state *st = state_new(api, r, &msg_end_quorum_epoch_response);
    if (st != NULL && !refused(api, st, ACL_CLUSTER_ACTION, &st->response.end.error_code))
        raft_end_quorum_epoch(api->raft, &st->op, r->message, &st->response.end, now);
}

/* Fetch between controllers: of the metadata log alone. */
void api_metadata_fetch_start(struct api *api, struct request *r, struct now now)
{
    struct quorum_state *st = state_new(api, r, &msg_fetch_response);
    if (st == NULL || refused(api, st, ACL_CLUSTER_ACTION, &st->response.fetch.error_code))
        return;
    r->handler_state = st;
    raft_fetch(api->raft, &st->op, r->message, &st->response.fetch, now);
}

void api_metadata_fetch_cancel(struct request *r)
{
    struct quorum_state *st = r->handler_state;
    if (st != NULL)
        raft_op_hasten(&st->op);
}

void api_fetch_snapshot_start(struct api *api, struct request *r, struct now now)
{
    struct quorum_state *st = state_new(api, r, &msg_fetch_snapshot_response);
    if (st != NULL && !refused(api, st, ACL_CLUSTER_ACTION, &st->response.snapshot.error_code))
        raft_fetch_snapshot(api->raft, &st->op, r->message, &st->response.snapshot, now);
}

void api_update_raft_voter_start(struct api *api, struct request *r, struct now now)
{
    struct quorum_state *st = state_new(api, r, &msg_update_raft_voter_response);
    if (st != NULL && !refused(api, st, ACL_CLUSTER_ACTION, &st->response.update.error_code))
        raft_update_voter(api->raft, &st->op, r->message, &st->response.update, now);
}

static void refuse_add(struct request *r, int16_t error)
{
    struct add_raft_voter_response resp;
    wire_default(&wire_add_raft_voter_response, &resp);
    resp.error_code = error;
    resp.error_message = text_of(error);
    request_answer(r, &msg_add_raft_voter_response, &resp);
}

void api_add_raft_voter_start(struct api *api, struct request *r, struct now now)
{
    const struct add_raft_voter_request *req = r->message;
    if (api_forward_to_leader(api, r, req->timeout_ms, refuse_add))
        return;
    struct quorum_state *st = state_new(api, r, &msg_add_raft_voter_response);
    if (st != NULL && !refused(api, st, ACL_ALTER, &st->response.add.error_code))
        raft_add_voter(api->raft, &st->op, r->message, &st->response.add, now);
}

static void refuse_remove(struct request *r, int16_t error)
{
    struct remove_raft_voter_response resp;
    wire_default(&wire_remove_raft_voter_response, &resp);
    resp.error_code = error;
    resp.error_message = text_of(error);
    request_answer(r, &msg_remove_raft_voter_response, &resp);
}

void api_remove_raft_voter_start(struct api *api, struct request *r, struct now now)
{
    if (api_forward_to_leader(api, r, -1, refuse_remove))
        return;
    struct quorum_state *st = state_new(api, r, &msg_remove_raft_voter_response);
    if (st != NULL && !refused(api, st, ACL_ALTER, &st->response.remove.error_code))
        raft_remove_voter(api->raft, &st->op, r->message, &st->response.remove, now);
}
