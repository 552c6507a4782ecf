/* CreateTopics (KIP-4, KIP-464, KIP-525): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct create_topics_state {
    struct api_forward forward;
    struct create_topics_response response;
};

static void create_done(struct controller_op *op, int16_t error)
{
    struct create_topics_state *st = CONTAINER_OF(op, struct create_topics_state, forward.op);
    struct request *r = st->forward.r;
    const struct create_topics_request *req = r->message;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE) {
        st->response.topics.v = wire_array(&wire_create_topics_response_creatable_topic_result,
                                           &r->arena, (size_t)req->topics.n);
        if (st->response.topics.v == NULL) {
            request_close(r, "out of memory");
            return;
        }
        st->response.topics.n = req->topics.n;
        for (int32_t i = 0; i < req->topics.n; i++) {
            st->response.topics.v[i].name = req->topics.v[i].name;
            st->response.topics.v[i].error_code = error;
            st->response.topics.v[i].error_message =
                error == K_REQUEST_TIMED_OUT ? STR_NULL
                                             : str_of(kafka_error_name(error)); /* Kafka's */
        }
    }
    request_answer(r, &msg_create_topics_response, &st->response);
}

void api_create_topics_start(struct api *api, struct request *r, struct now now)
{
    const struct create_topics_request *req = r->message;
    struct create_topics_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_create_topics_response, &st->response);
    if (api_forward(api, r, &st->forward, create_done, req->timeout_ms))
        return;
    if (req->timeout_ms <= 0) {
        create_done(&st->forward.op, K_REQUEST_TIMED_OUT);
        return;
    }
    if (!api_authorized(api, r, ACL_CREATE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        create_done(&st->forward.op, K_TOPIC_AUTHORIZATION_FAILED);
        return;
    }
    controller_create_topics(api->controller, &st->forward.op, req, r->api_version, &r->arena,
                             &st->response, now);
}
