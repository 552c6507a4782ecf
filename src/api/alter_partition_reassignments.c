/* AlterPartitionReassignments (KIP-455, KIP-860): the controller decides. */
#include "api/api.h"
#include "wire/error.h"

struct alter_partition_reassignments_state {
    struct controller_op op;
    struct alter_partition_reassignments_response response;
    struct request *r;
};

static void alter_partition_reassignments_done(struct controller_op *op, int16_t error)
{
    struct alter_partition_reassignments_state *st =
        CONTAINER_OF(op, struct alter_partition_reassignments_state, op);
    if (error != K_NONE) {
        st->response.error_code = error;
        st->response.error_message = str_of(kafka_error_name(error));
    }
    request_answer(st->r, &msg_alter_partition_reassignments_response, &st->response);
}

void api_alter_partition_reassignments_start(struct api *api, struct request *r, struct now now)
{
    struct alter_partition_reassignments_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_alter_partition_reassignments_response, &st->response);
    st->r = r;
    st->op.done = alter_partition_reassignments_done;
    if (!api_authorized(api, r, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        alter_partition_reassignments_done(&st->op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_alter_reassignments(api->controller, &st->op, r->message, &r->arena, &st->response,
                                   now);
}
