/* Blocks of producer ids (KIP-730): the record says which id comes next. */
#include "core/controller/inside.h"

static int16_t allocate(struct controller *c, const struct allocate_producer_ids_request *req,
                        struct allocate_producer_ids_response *resp, struct now now)
{
    const struct image_broker *b = image_broker(&c->ahead, req->broker_id);
    if (b == NULL || b->epoch != req->broker_epoch)
        return K_STALE_BROKER_EPOCH;
    const int64_t next = c->ahead.next_producer_id < 0 ? 0 : c->ahead.next_producer_id;
    if (next > INT64_MAX - CONTROLLER_PRODUCER_ID_BLOCK)
        return K_UNKNOWN_SERVER_ERROR;
    const struct producer_ids_record r = {req->broker_id, req->broker_epoch,
                                          next + CONTROLLER_PRODUCER_ID_BLOCK};
    struct record_list rl;
    record_list_init(&rl);
    enum err e = record_list_add(&rl, &msg_producer_ids_record, 0, &r);
    if (e == ERR_NONE)
        e = controller_append(c, &rl, true, now);
    record_list_close(&rl);
    if (e != ERR_NONE)
        return controller_error_of(e);
    resp->producer_id_start = next;
    resp->producer_id_len = CONTROLLER_PRODUCER_ID_BLOCK;
    return K_NONE;
}

void controller_allocate_producer_ids(struct controller *c, struct controller_op *op,
                                      const struct allocate_producer_ids_request *req,
                                      struct allocate_producer_ids_response *resp, struct now now)
{
    if (controller_begin(c, op))
        controller_finish(c, op, allocate(c, req, resp, now));
}
