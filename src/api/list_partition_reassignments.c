/* ListPartitionReassignments (KIP-455): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct list_partition_reassignments_state {
    struct api_forward forward;
    struct list_partition_reassignments_response response;
};

static void list_partition_reassignments_done(struct controller_op *op, int16_t error)
{
    struct list_partition_reassignments_state *st =
        CONTAINER_OF(op, struct list_partition_reassignments_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE) {
        st->response.error_code = error;
        st->response.error_message = str_of(kafka_error_name(error));
    }
    request_answer(r, &msg_list_partition_reassignments_response, &st->response);
}

void api_list_partition_reassignments_start(struct api *api, struct request *r, struct now now)
{
    const struct list_partition_reassignments_request *req = r->message;
    struct list_partition_reassignments_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_list_partition_reassignments_response, &st->response);
    if (api_forward(api, r, &st->forward, list_partition_reassignments_done, req->timeout_ms))
        return;
    if (!api_authorized(api, r, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        list_partition_reassignments_done(&st->forward.op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_list_reassignments(api->controller, &st->forward.op, r->message, &r->arena,
                                  &st->response, now);
}
