/* ListPartitionReassignments (KIP-455): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct list_partition_reassignments_state {
    struct controller_op op;
    struct list_partition_reassignments_response response;
    struct request *r;
};

static void list_partition_reassignments_done(struct controller_op *op, int16_t error)
{
    struct list_partition_reassignments_state *st =
        CONTAINER_OF(op, struct list_partition_reassignments_state, op);
    if (api_forward_again(st->r, error))
        return;
    if (error != K_NONE) {
        st->response.error_code = error;
        st->response.error_message = str_of(kafka_error_name(error));
    }
    request_answer(st->r, &msg_list_partition_reassignments_response, &st->response);
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
    st->r = r;
    st->op.done = list_partition_reassignments_done;
    if (api_forward(api, r, &st->op, req->timeout_ms))
        return;
    if (!api_authorized(api, r, ACL_DESCRIBE, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        list_partition_reassignments_done(&st->op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_list_reassignments(api->controller, &st->op, r->message, &r->arena, &st->response,
                                  now);
}
