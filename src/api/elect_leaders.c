/* ElectLeaders (KIP-183, KIP-460): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct elect_leaders_state {
    struct api_forward forward;
    struct elect_leaders_response response;
};

/* Version 0 has no error of the whole: each partition tells it. */
static bool fail_all(struct request *r, struct elect_leaders_response *resp, int16_t error)
{
    const struct elect_leaders_request *req = r->message;
    const int32_t n = req->topic_partitions.n < 0 ? 0 : req->topic_partitions.n;
    if (r->api_version >= 1)
        resp->error_code = error;
    resp->replica_election_results.v =
        wire_array(&wire_elect_leaders_response_replica_election_result, &r->arena, (size_t)n);
    if (resp->replica_election_results.v == NULL)
        return false;
    resp->replica_election_results.n = n;
    for (int32_t i = 0; i < n; i++) {
        const struct elect_leaders_request_topic_partitions *in = &req->topic_partitions.v[i];
        struct elect_leaders_response_replica_election_result *out =
            &resp->replica_election_results.v[i];
        out->topic = in->topic;
        out->partition_result.v = wire_array(&wire_elect_leaders_response_partition_result,
                                             &r->arena, (size_t)in->partitions.n);
        if (out->partition_result.v == NULL)
            return false;
        out->partition_result.n = in->partitions.n;
        for (int32_t j = 0; j < in->partitions.n; j++)
            out->partition_result.v[j] = (struct elect_leaders_response_partition_result){
                in->partitions.v[j], error,
                error == K_REQUEST_TIMED_OUT ? STR_NULL : str_of(kafka_error_name(error))};
    }
    return true;
}

static void elect_leaders_done(struct controller_op *op, int16_t error)
{
    struct elect_leaders_state *st = CONTAINER_OF(op, struct elect_leaders_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE && !fail_all(r, &st->response, error)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_elect_leaders_response, &st->response);
}

void api_elect_leaders_start(struct api *api, struct request *r, struct now now)
{
    const struct elect_leaders_request *req = r->message;
    struct elect_leaders_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_elect_leaders_response, &st->response);
    if (api_forward(api, r, &st->forward, elect_leaders_done, req->timeout_ms))
        return;
    if (!api_authorized(api, r, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        elect_leaders_done(&st->forward.op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_elect_leaders(api->controller, &st->forward.op, r->message, &r->arena, &st->response,
                             now);
}
