/* Produce at the leader (replication.md 2, log.md 2): every part is checked, validated and staged
 * in the call; it completes when its batch is promised: written (acks 0 and 1; synced where
 * flush.messages asks), or below the high watermark (acks -1). The frame stays until every batch of
 * it is written or cut, also when the client's time is over before. */
#include "base/check.h"
#include "core/metadata/kafka_error.h"
#include "core/metadata/topic_name.h"
#include "core/replica/inside.h"

/* ------------------------------------------------------------------ completion */

static void op_maybe_ready(struct produce_op *op)
{
    if (op->waiting_n == 0 && list_empty(&op->ready))
        list_append(&op->rs->ready_produce, &op->ready);
}

static void part_done(struct produce_part *part, int16_t error)
{
    CHECK(part->waiting);
    part->waiting = false;
    list_remove(&part->link);
    if (error != K_NONE) {
        part->error = error;
        part->base_offset = part->log_append_time_ms = -1;
    }
    part->op->waiting_n--;
    op_maybe_ready(part->op);
}

bool produce_complete_ready(struct replicas *rs)
{
    struct list *l;
    bool moved = false;
    while ((l = list_pop(&rs->ready_produce)) != NULL) {
        struct produce_op *op = LIST_ENTRY(l, struct produce_op, ready);
        timer_cancel(rs->timers, &op->timer);
        op->done(op);
        moved = true;
    }
    return moved;
}

/* Acknowledged by all: enough of them? */
static int16_t replicated_error(const struct partition *p)
{
    return partition_maximal_isr_n(p) >= partition_effective_min_isr(p)
               ? K_NONE
               : K_NOT_ENOUGH_REPLICAS_AFTER_APPEND;
}

static bool part_promised(const struct partition *p, const struct produce_part *part,
                          int16_t *error)
{
    *error = K_NONE;
    if (part->op->acks != -1)
        return p->promised >= part->required_offset;
    if (p->high_watermark < part->required_offset)
        return false;
    *error = replicated_error(p);
    return true;
}

void produce_settle(struct partition *p)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->produce_waits)
    {
        struct produce_part *part = LIST_ENTRY(l, struct produce_part, link);
        const bool written = log_end_offset(p->log) >= part->required_offset;
        int16_t error;
        if (written && (!p->leading || part->leader_epoch != p->leader_epoch))
            part_done(part, K_NOT_LEADER_OR_FOLLOWER); /* KAFKA-20634 */
        else if (part_promised(p, part, &error))
            part_done(part, error);
        else if (part->op->late && written)
            part_done(part, K_REQUEST_TIMED_OUT);
        else if (p->promised < part->required_offset)
            break; /* required offsets rise: nothing behind it is written either */
    }
}

void produce_cut(struct partition *p, int16_t e)
{
    const int64_t end = log_end_offset(p->log);
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->produce_waits)
    {
        struct produce_part *part = LIST_ENTRY(l, struct produce_part, link);
        if (part->required_offset > end)
            part_done(part, e);
    }
}

void produce_fail(struct partition *p, int16_t e)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->produce_waits)
    part_done(LIST_ENTRY(l, struct produce_part, link), e);
}

void produce_step_down(struct partition *p, int16_t e)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->produce_waits)
    {
        struct produce_part *part = LIST_ENTRY(l, struct produce_part, link);
        if (p->log == NULL || part->required_offset <= log_end_offset(p->log))
            part_done(part, e); /* of others the bytes may still be in their frame */
    }
}

/* ------------------------------------------------------------------ one part */

static void name_leader(const struct partition *p, struct produce_part *part)
{
    part->current_leader = p->leader;
    part->current_leader_epoch = p->leader_epoch;
}

static int16_t check_part(struct produce_op *op, struct produce_part *part, struct partition **out)
{
    struct partition *p = replicas_find(op->rs, part->topic_id, part->index);
    if (part->facts.error == K_INVALID_RECORD || part->facts.malformed)
        return part->facts.error;
    if (op->acks < -1 || op->acks > 1)
        return K_INVALID_REQUIRED_ACKS;
    if (p == NULL) {
        const struct image_topic *t = image_topic_by_id(op->rs->image, part->topic_id);
        return t != NULL && part->index >= 0 && part->index < t->partitions_n
                   ? K_NOT_LEADER_OR_FOLLOWER
                   : K_UNKNOWN_TOPIC_OR_PARTITION;
    }
    *out = p;
    if (!op->internal_allowed && topic_is_internal(str_of(p->topic)))
        return K_INVALID_TOPIC_EXCEPTION;
    const int16_t error = partition_leader_error(p);
    if (error == K_NOT_LEADER_OR_FOLLOWER)
        name_leader(p, part);
    if (error != K_NONE)
        return error;
    if (op->acks == -1 && p->isr_n < partition_effective_min_isr(p))
        return K_NOT_ENOUGH_REPLICAS;
    return K_NONE;
}

static int16_t stage_error(struct partition *p, enum err e, const struct log_staged *staged)
{
    if (e == ERR_INVALID)
        return staged->kafka_error;
    if (e == ERR_NOSPC) { /* a write before a roll failed: all that was staged is cut */
        produce_cut(p, K_KAFKA_STORAGE_ERROR);
        return K_KAFKA_STORAGE_ERROR;
    }
    if (e == ERR_IO)
        replicas_log_failed(p->rs, e, "a write failed");
    return kafka_error_of(e);
}

static int16_t stage_part(struct produce_op *op, struct produce_part *part, struct partition *p)
{
    struct replicas *rs = op->rs;
    struct validated v;
    struct log_staged staged;
    uint8_t *records = (uint8_t *)(uintptr_t)part->records.p; /* the request's own frame */
    part->log_start_offset = log_start_offset(p->log);
    const int16_t error =
        batch_validate(&p->config.validate, &part->facts, records, rs->now.wall_ms,
                       str_of(p->topic), p->index, op->arena, &v);
    if (error != K_NONE) {
        if (error == K_CORRUPT_MESSAGE || error == K_MESSAGE_TOO_LARGE ||
            error == K_RECORD_LIST_TOO_LARGE)
            part->log_start_offset = -1; /* Kafka tells it with other errors only */
        part->record_errors = v.record_errors;
        part->record_errors_n = v.record_errors_n;
        part->error_message = v.error_message;
        return error;
    }
    enum err e = log_stage_leader(p->log, (uint8_t *)(uintptr_t)v.batch.p, &v.facts,
                                  p->leader_epoch, LOG_CLIENT, rs->now, &staged);
    if (e != ERR_NONE)
        return stage_error(p, e, &staged);
    part->base_offset = staged.base_offset;
    part->log_append_time_ms =
        staged.duplicate ? staged.duplicate_max_timestamp : v.log_append_time_ms;
    part->required_offset = staged.last_offset + 1;
    part->leader_epoch = p->leader_epoch;
    return K_NONE;
}

/* Required offsets rise in the list: a duplicate's may be lower than those before it. */
static void wait_for(struct partition *p, struct produce_part *part)
{
    struct list *at = &p->produce_waits;
    while (at->prev != &p->produce_waits &&
           LIST_ENTRY(at->prev, struct produce_part, link)->required_offset > part->required_offset)
        at = at->prev;
    list_append(at, &part->link);
    part->waiting = true;
    part->op->waiting_n++;
}

static void produce_part(struct produce_op *op, struct produce_part *part)
{
    struct partition *p = NULL;
    part->op = op;
    list_init(&part->link);
    if (part->error == K_NONE)
        part->error = check_part(op, part, &p);
    if (part->error == K_NONE)
        part->error = stage_part(op, part, p);
    if (part->error != K_NONE)
        return;
    wait_for(p, part);
    replicas_mark_dirty(p);
}

/* ------------------------------------------------------------------ the operation */

/* Time is over: what is written and not promised answers so; what is not written yet will. */
static void give_up(struct produce_op *op)
{
    op->late = true;
    for (int32_t i = 0; i < op->parts_n; i++) {
        struct produce_part *part = &op->parts[i];
        struct partition *p =
            part->waiting ? replicas_find(op->rs, part->topic_id, part->index) : NULL;
        if (p != NULL && p->log != NULL && log_end_offset(p->log) >= part->required_offset)
            part_done(part, K_REQUEST_TIMED_OUT);
    }
}

static void produce_late(struct timer *t)
{
    give_up(CONTAINER_OF(t, struct produce_op, timer));
}

void replicas_produce(struct replicas *rs, struct produce_op *op, struct now now)
{
    rs->now = now;
    op->rs = rs;
    op->waiting_n = 0;
    op->late = false;
    op->timer = (struct timer){.fire = produce_late};
    list_init(&op->ready);
    for (int32_t i = 0; i < op->parts_n; i++)
        produce_part(op, &op->parts[i]);
    /* Only what waits for other replicas outlives this turn for long. */
    if (op->waiting_n > 0 && op->acks == -1 &&
        timer_arm(rs->timers, &op->timer,
                  now.mono_us + (op->timeout_ms > 0 ? (int64_t)op->timeout_ms * 1000 : 0)) !=
            ERR_NONE)
        op->late = true;
    op_maybe_ready(op);
}

void replicas_produce_cancel(struct produce_op *op)
{
    if (op->waiting_n > 0)
        give_up(op);
}
