/* InitProducerId without a transactional id (KIP-98): a fresh id from the broker's block; the
 * timeout and any (id, epoch) are ignored, as in Kafka. With one, this broker is no transaction
 * coordinator. */
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
    if (!api_authorized(api, r, ACL_IDEMPOTENT_WRITE, ACL_CLUSTER, STR_LIT("kafka-cluster")))
        return K_CLUSTER_AUTHORIZATION_FAILED;
    if ((req->producer_id < 0) != (req->producer_epoch < 0))
        return K_INVALID_REQUEST;
    return req->transactional_id.n > 0 ? K_NOT_COORDINATOR : K_NONE;
}

void api_init_producer_id_start(struct api *api, struct request *r, struct now now)
{
    struct init_producer_id_response resp;
    wire_default(&wire_init_producer_id_response, &resp);
    resp.error_code = check_request(api, r, r->message);
    resp.producer_epoch = -1;
    if (resp.error_code == K_NONE) {
        if (broker_next_producer_id(api->broker, now, &resp.producer_id))
            resp.producer_epoch = 0;
        else
            resp.error_code = K_COORDINATOR_LOAD_IN_PROGRESS;
    }
    request_answer(r, &msg_init_producer_id_response, &resp);
}
