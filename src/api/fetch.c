/* Fetch (KIP-74, KIP-227, KIP-320, KIP-392, KIP-516): all of it is the replica manager's. */
#include "api/api.h"

struct fetch_state {
    struct fetch_op op;
    struct api_topic_check check;
    struct fetch_response response;
    struct request *r;
};

static void release_slices(const struct fetch_response *resp)
{
    for (int32_t i = 0; i < resp->responses.n; i++) {
        const struct fetch_response_fetchable_topic_response *t = &resp->responses.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++)
            for (int32_t s = 0; s < t->partitions.v[k].records.slices_n; s++)
                file_unref(t->partitions.v[k].records.slices[s].f);
    }
}

static bool is_named(const struct fetch_response *resp, int32_t id)
{
    for (int32_t i = 0; i < resp->node_endpoints.n; i++)
        if (resp->node_endpoints.v[i].node_id == id)
            return true;
    return false;
}

/* Where the leaders are that the answer names; false: out of memory. */
static bool name_leader(struct fetch_state *st, int32_t id)
{
    struct fetch_response *resp = &st->response;
    struct fetch_response_node_endpoint to;
    wire_default(&wire_fetch_response_node_endpoint, &to);
    const struct image_broker *b = api_live_broker(st->check.api, st->r, id, &to.host, &to.port);
    if (b == NULL || is_named(resp, id))
        return true;
    if (resp->node_endpoints.v == NULL)
        resp->node_endpoints.v = wire_array(&wire_fetch_response_node_endpoint, &st->r->arena,
                                            st->check.api->image->brokers.n);
    if (resp->node_endpoints.v == NULL)
        return false;
    to.node_id = id;
    to.rack = api_text(b->rack);
    resp->node_endpoints.v[resp->node_endpoints.n++] = to;
    return true;
}

static bool name_leaders(struct fetch_state *st)
{
    const struct fetch_response *resp = &st->response;
    for (int32_t i = 0; i < resp->responses.n; i++) {
        const struct fetch_response_fetchable_topic_response *t = &resp->responses.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++)
            if (t->partitions.v[k].current_leader.leader_id >= 0 &&
                !name_leader(st, t->partitions.v[k].current_leader.leader_id))
                return false;
    }
    return true;
}

static void fetch_done(struct fetch_op *op)
{
    struct fetch_state *st = CONTAINER_OF(op, struct fetch_state, op);
    (void)name_leaders(st); /* without memory for them the client asks for metadata */
    struct fetch_response resp = st->response; /* the state dies with the answered request */
    if (!request_answer(st->r, &msg_fetch_response, &resp))
        release_slices(&resp);
}

void api_fetch_start(struct api *api, struct request *r, struct now now)
{
    struct fetch_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_fetch_response, &st->response);
    st->r = r;
    st->check = (struct api_topic_check){api, r, ACL_READ};
    st->op = (struct fetch_op){
        .arena = &r->arena,
        .request = r->message,
        .version = r->api_version,
        .client_id = r->client_id,
        .connection = r->conn,
        .allowed = api_topic_allowed,
        .allowed_ctx = &st->check,
        .response = &st->response,
        .done = fetch_done,
    };
    r->handler_state = st;
    if (replicas_fetch(api->replicas, &st->op, now) != ERR_NONE)
        request_close(r, "out of memory");
}

void api_fetch_cancel(struct request *r)
{
    struct fetch_state *st = r->handler_state;
    replicas_fetch_cancel(&st->op);
}
