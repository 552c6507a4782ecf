/* UnregisterBroker: a broker that does not come back is forgotten. It leaves the ISRs as if it were
 * fenced; in the ELRs it stays, as in Kafka: what it has may be all there is. */
#include "core/controller/inside.h"

static enum err unregister(struct controller *c, const struct image_broker *b, struct now now)
{
    struct record_list rl;
    const struct unregister_broker_record r = {.broker_id = b->id, .broker_epoch = b->epoch};
    const struct broker_change change = {
        .removed = b->id, .unclean = CONTROLLER_NO_BROKER, .added = CONTROLLER_NO_BROKER};
    record_list_init(&rl);
    enum err e = election_broker_change(c, &change, &rl);
    if (e == ERR_NONE)
        e = record_list_add(&rl, &msg_unregister_broker_record, 0, &r);
    if (e == ERR_NONE && rl.n > CONTROLLER_MAX_RECORDS)
        e = ERR_TOO_LARGE;
    if (e == ERR_NONE)
        e = controller_append(c, &rl, false, now);
    record_list_close(&rl);
    return e;
}

void controller_unregister_broker(struct controller *c, struct controller_op *op,
                                  const struct unregister_broker_request *req, struct now now)
{
    if (!controller_begin(c, op))
        return;
    const struct image_broker *b = image_broker(&c->ahead, req->broker_id);
    if (b == NULL) {
        controller_finish(c, op, K_BROKER_ID_NOT_REGISTERED);
        return;
    }
    enum err e = unregister(c, b, now);
    if (e == ERR_NONE)
        session_forget(c, req->broker_id);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
