/* DeleteTopics (KIP-4, KIP-516): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct delete_topics_state {
    struct api_forward forward;
    struct delete_topics_response response;
};

static bool fail_all(struct request *r, struct delete_topics_response *resp, int16_t error)
{
    const struct delete_topics_request *req = r->message;
    const bool structs = r->api_version >= 6;
    const int32_t n = structs ? req->topics.n : req->topic_names.n;
    resp->responses.v =
        wire_array(&wire_delete_topics_response_deletable_topic_result, &r->arena, (size_t)n);
    if (resp->responses.v == NULL)
        return false;
    resp->responses.n = n;
    for (int32_t i = 0; i < n; i++) {
        resp->responses.v[i].name = structs ? req->topics.v[i].name : req->topic_names.v[i];
        if (structs)
            resp->responses.v[i].topic_id = req->topics.v[i].topic_id;
        resp->responses.v[i].error_code = error;
    }
    return true;
}

static void delete_done(struct controller_op *op, int16_t error)
{
    struct delete_topics_state *st = CONTAINER_OF(op, struct delete_topics_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE && !fail_all(r, &st->response, error)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_delete_topics_response, &st->response);
}

void api_delete_topics_start(struct api *api, struct request *r, struct now now)
{
    const struct delete_topics_request *req = r->message;
    struct delete_topics_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_delete_topics_response, &st->response);
    if (api_forward(api, r, &st->forward, delete_done, req->timeout_ms))
        return;
    if (!config_bool(api->config, "delete.topic.enable")) {
        delete_done(&st->forward.op,
                    r->api_version < 3 ? K_INVALID_REQUEST : K_TOPIC_DELETION_DISABLED);
        return;
    }
    if (req->timeout_ms <= 0) {
        delete_done(&st->forward.op, K_REQUEST_TIMED_OUT);
        return;
    }
    if (!api_authorized(api, r, ACL_DELETE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        delete_done(&st->forward.op, K_TOPIC_AUTHORIZATION_FAILED);
        return;
    }
    controller_delete_topics(api->controller, &st->forward.op, req, r->api_version, &r->arena,
                             &st->response, now);
}
