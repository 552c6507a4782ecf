/* AlterPartitionReassignments (KIP-455, KIP-860): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct alter_partition_reassignments_state {
    struct api_forward forward;
    struct alter_partition_reassignments_response response;
};

/* Every partition answers the same too. */
static bool fail_all(struct request *r, struct alter_partition_reassignments_response *resp,
                     int16_t error)
{
    const struct alter_partition_reassignments_request *req = r->message;
    const struct str message =
        error == K_REQUEST_TIMED_OUT ? STR_NULL : str_of(kafka_error_name(error)); /* Kafka's */
    resp->error_code = error;
    resp->error_message = message;
    resp->responses.v =
        wire_array(&wire_alter_partition_reassignments_response_reassignable_topic_response,
                   &r->arena, (size_t)req->topics.n);
    if (resp->responses.v == NULL)
        return false;
    resp->responses.n = req->topics.n;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct alter_partition_reassignments_request_reassignable_topic *in =
            &req->topics.v[i];
        struct alter_partition_reassignments_response_reassignable_topic_response *out =
            &resp->responses.v[i];
        out->name = in->name;
        out->partitions.v =
            wire_array(&wire_alter_partition_reassignments_response_reassignable_partition_response,
                       &r->arena, (size_t)in->partitions.n);
        if (out->partitions.v == NULL)
            return false;
        out->partitions.n = in->partitions.n;
        for (int32_t j = 0; j < in->partitions.n; j++)
            out->partitions.v[j] =
                (struct alter_partition_reassignments_response_reassignable_partition_response){
                    in->partitions.v[j].partition_index, error, message};
    }
    return true;
}

static void alter_partition_reassignments_done(struct controller_op *op, int16_t error)
{
    struct alter_partition_reassignments_state *st =
        CONTAINER_OF(op, struct alter_partition_reassignments_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE && !fail_all(r, &st->response, error)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_alter_partition_reassignments_response, &st->response);
}

void api_alter_partition_reassignments_start(struct api *api, struct request *r, struct now now)
{
    const struct alter_partition_reassignments_request *req = r->message;
    struct alter_partition_reassignments_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_alter_partition_reassignments_response, &st->response);
    if (api_forward(api, r, &st->forward, alter_partition_reassignments_done, req->timeout_ms))
        return;
    if (!api_authorized(api, r, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        alter_partition_reassignments_done(&st->forward.op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_alter_reassignments(api->controller, &st->forward.op, r->message, &r->arena,
                                   &st->response, now);
}
