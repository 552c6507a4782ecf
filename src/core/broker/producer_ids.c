/* Producer ids out of blocks that the controller hands out (KIP-730). The next block is asked for
 * when 90 % of the present one are used, one request at a time. */
#include "base/check.h"
#include "core/broker/inside.h"
#include "wire/error.h"

enum {
    RETRY_US = 50 * 1000,
    TIMEOUT_US = 30 * 1000 * 1000, /* of the call */
    WAIT_MAX_US = 5 * 1000 * 1000, /* for it: shorter than clients do, longer than an election */
};

static bool empty(const struct producer_id_block *block)
{
    return block->next == block->end;
}

static bool take(struct broker *b, int64_t *out)
{
    struct producer_id_block *block = &b->block;
    if (empty(block)) {
        *block = b->next_block;
        b->next_block = (struct producer_id_block){0};
    }
    if (empty(block))
        return false;
    *out = block->next++;
    return true;
}

static void end_waiting(struct broker *b)
{
    struct list *l;
    timer_cancel(b->timers, &b->ids_timer);
    while ((l = list_pop(&b->ids_waiting)) != NULL) {
        struct producer_id_op *op = LIST_ENTRY(l, struct producer_id_op, link);
        int64_t id;
        op->done(op, take(b, &id) ? id : -1);
    }
}

void broker_ids_late(struct timer *t)
{
    end_waiting(CONTAINER_OF(t, struct broker, ids_timer));
}

static void take_block(struct broker *b, enum err e,
                       const struct allocate_producer_ids_response *resp)
{
    if (e != ERR_NONE || resp->error_code != K_NONE || resp->producer_id_start < 0 ||
        resp->producer_id_len <= 0 || resp->producer_id_start > INT64_MAX - resp->producer_id_len) {
        env_log(b->env, LOG_WARN, "producer_ids_failed broker=%d error=%s", b->node_id,
                e != ERR_NONE ? err_name(e) : kafka_error_name(resp->error_code));
        b->ids_not_before_us = b->ids->sent_us + RETRY_US;
        return;
    }
    CHECK(empty(&b->next_block));
    b->next_block = (struct producer_id_block){resp->producer_id_start, resp->producer_id_start,
                                               resp->producer_id_start + resp->producer_id_len};
}

static int16_t ids_error(const void *response)
{
    return ((const struct allocate_producer_ids_response *)response)->error_code;
}

static void ids_done(struct channel_call *call, enum err e, const void *response)
{
    struct broker *b = talk_landed(call);
    if (b == NULL)
        return;
    if (e != ERR_CANCELLED)
        take_block(b, e, response);
    end_waiting(b);
}

static void ask(struct broker *b, struct now now)
{
    struct talk *t = b->ids;
    if (t->in_flight || !empty(&b->next_block) || b->epoch < 0 ||
        now.mono_us < b->ids_not_before_us)
        return;
    t->request.producer_ids = (struct allocate_producer_ids_request){b->node_id, b->epoch};
    t->call.done = ids_done;
    t->call.error = ids_error;
    talk_send(b->forwarding, t, API_ALLOCATE_PRODUCER_IDS, now.mono_us + TIMEOUT_US, now);
}

bool broker_next_producer_id(struct broker *b, struct now now, int64_t *out)
{
    const struct producer_id_block *block = &b->block;
    const bool have = take(b, out);
    const int64_t size = block->end - block->start;
    if (!have || block->next - block->start >= size - size / 10)
        ask(b, now);
    return have;
}

bool broker_wait_producer_id(struct broker *b, struct producer_id_op *op)
{
    if (!b->ids->in_flight)
        return false;
    if (!timer_armed(&b->ids_timer) &&
        timer_arm(b->timers, &b->ids_timer, b->ids->sent_us + WAIT_MAX_US) != ERR_NONE)
        return false;
    list_append(&b->ids_waiting, &op->link);
    return true;
}

void broker_producer_id_cancel(struct producer_id_op *op)
{
    list_remove(&op->link);
    op->done(op, -1);
}
