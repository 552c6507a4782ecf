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

static void fetch_done(struct fetch_op *op)
{
    struct fetch_state *st = CONTAINER_OF(op, struct fetch_state, op);
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
