/* CreatePartitions (KIP-195): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct create_partitions_state {
    struct api_forward forward;
    struct create_partitions_response response;
    struct api_topic_check check;
};

static bool fail_all(struct request *r, struct create_partitions_response *resp, int16_t error)
{
    const struct create_partitions_request *req = r->message;
    resp->results.v = wire_array(&wire_create_partitions_response_create_partitions_topic_result,
                                 &r->arena, (size_t)req->topics.n);
    if (resp->results.v == NULL)
        return false;
    resp->results.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        resp->results.v[i].name = req->topics.v[i].name;
        resp->results.v[i].error_code = error;
    }
    return true;
}

static void create_partitions_done(struct controller_op *op, int16_t error)
{
    struct create_partitions_state *st =
        CONTAINER_OF(op, struct create_partitions_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE && !fail_all(r, &st->response, error)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_create_partitions_response, &st->response);
}

void api_create_partitions_start(struct api *api, struct request *r, struct now now)
{
    const struct create_partitions_request *req = r->message;
    struct create_partitions_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_create_partitions_response, &st->response);
    st->check = (struct api_topic_check){api, r, ACL_ALTER};
    if (api_forward(api, r, &st->forward, create_partitions_done, req->timeout_ms))
        return;
    controller_create_partitions(api->controller, &st->forward.op, r->message, api_topic_allowed,
                                 &st->check, &r->arena, &st->response, now);
}
