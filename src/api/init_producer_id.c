/* InitProducerId without a transactional id (KIP-98): a fresh id from the broker's block; the
 * timeout and any (id, epoch) are ignored, as in Kafka. The first ones after a start wait for their
 * block, where Kafka sends the client away once. With a transactional id, this broker is no
 * transaction coordinator. */
#include "api/api.h"
#include "wire/error.h"

static int16_t check_request(struct api *api, const struct request *r,
                             const struct init_producer_id_request *req)
{
    if (req->transactional_id.n == 0)
        return K_INVALID_REQUEST;
    if (req->transactional_id.n > 0 &&
        !api_authorized(api, r, ACL_WRITE, ACL_TRANSACTIONAL_ID, req->transactional_id))
        return K_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    if (!api_authorized(api, r, ACL_IDEMPOTENT_WRITE, ACL_CLUSTER, ACL_CLUSTER_NAME))
        return K_CLUSTER_AUTHORIZATION_FAILED;
    if ((req->producer_id < 0) != (req->producer_epoch < 0))
        return K_INVALID_REQUEST;
    return req->transactional_id.n > 0 ? K_NOT_COORDINATOR : K_NONE;
}

struct init_producer_id_state {
    struct producer_id_op op;
    struct request *r;
};

static void answer(struct request *r, int16_t error, int64_t id)
{
    struct init_producer_id_response resp;
    wire_default(&wire_init_producer_id_response, &resp);
    resp.error_code = error;
    resp.producer_id = id;
    resp.producer_epoch = error == K_NONE ? 0 : -1;
    request_answer(r, &msg_init_producer_id_response, &resp);
}

static void id_done(struct producer_id_op *op, int64_t id)
{
    struct request *r = CONTAINER_OF(op, struct init_producer_id_state, op)->r;
    answer(r, id >= 0 ? K_NONE : K_COORDINATOR_LOAD_IN_PROGRESS, id);
}

void api_init_producer_id_start(struct api *api, struct request *r, struct now now)
{
    const int16_t error = check_request(api, r, r->message);
    int64_t id;
    if (error != K_NONE) {
        answer(r, error, -1);
        return;
    }
    if (broker_next_producer_id(api->broker, now, &id)) {
        answer(r, K_NONE, id);
        return;
    }
    struct init_producer_id_state *st = arena_zalloc(&r->arena, sizeof *st);
    if (st == NULL) {
        request_close(r, "out of memory");
        return;
    }
    *st = (struct init_producer_id_state){{.done = id_done}, r};
    r->handler_state = st;
    if (!broker_wait_producer_id(api->broker, &st->op))
        answer(r, K_COORDINATOR_LOAD_IN_PROGRESS, -1);
}

void api_init_producer_id_cancel(struct request *r)
{
    struct init_producer_id_state *st = r->handler_state;
    broker_producer_id_cancel(&st->op);
}
