/* UpdateFeatures (KIP-584, KIP-778): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct update_features_state {
    struct api_forward forward;
    struct update_features_response response;
};

/* Up to version 1 each feature has a result too, but only when all went well. */
static bool fill_results(struct request *r, struct update_features_response *resp)
{
    const struct update_features_request *req = r->message;
    if (r->api_version > 1)
        return true;
    resp->results.v = wire_array(&wire_update_features_response_updatable_feature_result, &r->arena,
                                 (size_t)req->feature_updates.n);
    if (resp->results.v == NULL)
        return false;
    resp->results.n = req->feature_updates.n;
    for (int32_t i = 0; i < req->feature_updates.n; i++)
        resp->results.v[i] = (struct update_features_response_updatable_feature_result){
            req->feature_updates.v[i].feature, K_NONE, str_of(kafka_error_name(K_NONE))};
    return true;
}

static void update_features_done(struct controller_op *op, int16_t error)
{
    struct update_features_state *st = CONTAINER_OF(op, struct update_features_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    st->response.error_code = error;
    if (error != K_NONE && st->response.error_message.n <= 0)
        st->response.error_message = str_of(kafka_error_name(error));
    if (error == K_NONE && !fill_results(r, &st->response)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_update_features_response, &st->response);
}

void api_update_features_start(struct api *api, struct request *r, struct now now)
{
    const struct update_features_request *req = r->message;
    struct update_features_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_update_features_response, &st->response);
    if (api_forward(api, r, &st->forward, update_features_done, req->timeout_ms))
        return;
    if (!api_authorized(api, r, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        update_features_done(&st->forward.op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_update_features(api->controller, &st->forward.op, r->message, &st->response, now);
}
