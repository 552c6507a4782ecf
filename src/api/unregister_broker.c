/* UnregisterBroker (KIP-631): the controller decides. */
#include "api/forward.h"
#include "wire/error.h"

struct unregister_broker_state {
    struct api_forward forward;
    struct unregister_broker_response response;
};

static void unregister_broker_done(struct controller_op *op, int16_t error)
{
    struct unregister_broker_state *st =
        CONTAINER_OF(op, struct unregister_broker_state, forward.op);
    struct request *r = st->forward.r;
    if (api_forward_again(&st->forward, error))
        return;
    if (error != K_NONE) {
        st->response.error_code = error;
        st->response.error_message = str_of(kafka_error_name(error));
    }
    request_answer(r, &msg_unregister_broker_response, &st->response);
}

void api_unregister_broker_start(struct api *api, struct request *r, struct now now)
{
    struct unregister_broker_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    wire_default(&wire_unregister_broker_response, &st->response);
    if (api_forward(api, r, &st->forward, unregister_broker_done, -1))
        return;
    if (!api_authorized(api, r, ACL_ALTER, ACL_CLUSTER, ACL_CLUSTER_NAME)) {
        unregister_broker_done(&st->forward.op, K_CLUSTER_AUTHORIZATION_FAILED);
        return;
    }
    controller_unregister_broker(api->controller, &st->forward.op, r->message, now);
}
