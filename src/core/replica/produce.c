/* Produce at the leader (replication.md 2, log.md 2): every part is checked, validated and staged
 * in the call. Its batch is then written, with all that its log has staged, when the turn settles;
 * acks 0 and 1 are done when that is promised (synced where flush.messages asks), acks -1 when the
 * high watermark has passed it. The frame stays until every batch of it is written or cut, also
 * when the client's time is over before: such an operation is late, its parts end as they are
 * written. */
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
    CHECK(!list_empty(&part->link));
    list_remove(&part->link);
    part->error = error;
    part->op->waiting_n--;
    op_maybe_ready(part->op);
}

/* The batch is not in the log: neither are its offsets. */
static void part_lost(struct produce_part *part, int16_t error)
{
    part->base_offset = part->log_append_time_ms = part->log_start_offset = -1;
    part_done(part, error);
}

/* Required offsets rise in each list. From the end, where most belong. */
static void insert(struct list *waits, struct produce_part *part)
{
    struct list *at = waits;
    while (at->prev != waits &&
           LIST_ENTRY(at->prev, struct produce_part, link)->required_offset > part->required_offset)
        at = at->prev;
    list_append(at, &part->link);
}

/* Replicated to all in sync: enough of them? A coordinator does not ask. */
static int16_t replicated_error(const struct partition *p, const struct produce_part *part)
{
    return part->op->acks == PRODUCE_COORDINATOR ||
                   partition_maximal_isr_n(p) >= partition_effective_min_isr(p)
               ? K_NONE
               : K_NOT_ENOUGH_REPLICAS_AFTER_APPEND;
}

static struct produce_part *first_under(struct list *waits, int64_t end)
{
    if (list_empty(waits))
        return NULL;
    struct produce_part *part = LIST_ENTRY(waits->next, struct produce_part, link);
    return part->required_offset <= end ? part : NULL;
}

/* A coordinator's part takes its place behind earlier ones even when it is through: they end in
 * order. */
static void written(struct partition *p, struct produce_part *part)
{
    const bool all = part->op->acks < 0;
    const int64_t reached = all ? p->high_watermark : p->promised;
    if (!p->leading || part->leader_epoch != p->leader_epoch) {
        part_done(part, K_NOT_LEADER_OR_FOLLOWER); /* KAFKA-20634 */
    } else if (reached >= part->required_offset && part->op->acks != PRODUCE_COORDINATOR) {
        part_done(part, all ? replicated_error(p, part) : K_NONE);
    } else if (part->op->late) {
        part_done(part, K_REQUEST_TIMED_OUT);
    } else {
        list_remove(&part->link);
        insert(all ? &p->replicating : &p->promising, part);
    }
}

void produce_settle(struct partition *p)
{
    struct produce_part *part;
    while ((part = first_under(&p->writing, p->seen_end)) != NULL)
        written(p, part);
    while ((part = first_under(&p->promising, p->promised)) != NULL)
        part_done(part, K_NONE);
    while ((part = first_under(&p->replicating, p->high_watermark)) != NULL)
        part_done(part, replicated_error(p, part));
}

static void lose_all(struct list *waits, int16_t e)
{
    while (!list_empty(waits))
        part_lost(LIST_ENTRY(waits->next, struct produce_part, link), e);
}

void produce_cut(struct partition *p, int16_t e)
{
    const int64_t end = log_end_offset(p->log);
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->writing)
    {
        struct produce_part *part = LIST_ENTRY(l, struct produce_part, link);
        if (part->required_offset > end)
            part_lost(part, e);
    }
}

void produce_fail(struct partition *p, int16_t e)
{
    lose_all(&p->writing, e);
    lose_all(&p->promising, e);
    lose_all(&p->replicating, e);
}

static void end_all(struct list *waits, int16_t e)
{
    while (!list_empty(waits))
        part_done(LIST_ENTRY(waits->next, struct produce_part, link), e);
}

void produce_step_down(struct partition *p, int16_t e)
{
    end_all(&p->promising, e);
    end_all(&p->replicating, e);
}

/* ------------------------------------------------------------------ one part */

/* Row 3 of the produce checks, before anything is looked at in the batch. */
static int16_t check_exists(const struct produce_op *op, const struct produce_part *part)
{
    struct image_topic *t = image_topic_by_id(op->rs->image, part->topic_id);
    const bool exists = t != NULL && image_partition(t, part->index) != NULL;
    return exists ? K_NONE : K_UNKNOWN_TOPIC_OR_PARTITION;
}

static void name_leader(const struct produce_op *op, struct produce_part *part)
{
    struct image_topic *t = image_topic_by_id(op->rs->image, part->topic_id);
    const struct image_partition *ip = t == NULL ? NULL : image_partition(t, part->index);
    if (ip == NULL)
        return;
    part->current_leader = ip->leader;
    part->current_leader_epoch = ip->leader_epoch;
}

static int16_t check_part(const struct produce_op *op, struct produce_part *part,
                          struct partition **out)
{
    int16_t error = check_exists(op, part);
    if (error != K_NONE)
        return error;
    error = part->facts.error;
    if (error == K_INVALID_RECORD || (error != K_NONE && part->facts.malformed))
        return error;
    if (op->acks < -1 || op->acks > 1)
        return K_INVALID_REQUIRED_ACKS;
    if (!op->internal_allowed && topic_is_internal(part->topic))
        return K_INVALID_TOPIC_EXCEPTION;
    struct partition *p = replicas_find(op->rs, part->topic_id, part->index);
    error = p == NULL ? K_NOT_LEADER_OR_FOLLOWER : partition_leader_error(p);
    if (error == K_NOT_LEADER_OR_FOLLOWER)
        name_leader(op, part);
    if (error != K_NONE)
        return error;
    if (op->acks == -1 && p->isr_n < partition_effective_min_isr(p))
        return K_NOT_ENOUGH_REPLICAS;
    *out = p;
    return K_NONE;
}

int16_t produce_stage_error(struct partition *p, enum err e, const struct log_staged *staged)
{
    if (e == ERR_INVALID)
        return staged->kafka_error;
    if (e == ERR_NOSPC) { /* a write before a roll failed: all that was staged is cut */
        produce_cut(p, K_KAFKA_STORAGE_ERROR);
        return K_KAFKA_STORAGE_ERROR;
    }
    if (e == ERR_IO)
        partition_log_fail(p, e, "a write failed");
    return kafka_error_of(e);
}

/* Kafka tells the log's start with the errors of a batch's contents and of its producer only. */
static bool tells_log_start(int16_t error)
{
    return error != K_CORRUPT_MESSAGE && error != K_MESSAGE_TOO_LARGE &&
           error != K_RECORD_LIST_TOO_LARGE && error != K_KAFKA_STORAGE_ERROR;
}

static int16_t stage_part(struct produce_op *op, struct produce_part *part, struct partition *p)
{
    struct replicas *rs = op->rs;
    struct validated v;
    struct log_staged staged;
    uint8_t *records = (uint8_t *)(uintptr_t)part->records.p; /* the request's own frame */
    const int16_t error = batch_validate(&p->config.validate, &part->facts, records,
                                         rs->now.wall_ms, p->topic, p->index, op->arena, &v);
    if (error != K_NONE) {
        part->record_errors = v.record_errors;
        part->record_errors_n = v.record_errors_n;
        part->error_message = v.error_message;
        return error;
    }
    enum err e = log_stage_leader(p->log, (uint8_t *)(uintptr_t)v.batch.p, &v.facts,
                                  p->leader_epoch, LOG_CLIENT, rs->now, &staged);
    if (e != ERR_NONE)
        return produce_stage_error(p, e, &staged);
    part->base_offset = staged.base_offset;
    part->log_append_time_ms =
        staged.duplicate ? staged.duplicate_max_timestamp : v.log_append_time_ms;
    part->required_offset = staged.last_offset + 1;
    part->leader_epoch = p->leader_epoch;
    return K_NONE;
}

void produce_wait(struct produce_op *op, struct produce_part *part, struct partition *p)
{
    if (part->required_offset <= log_end_offset(p->log)) /* an old duplicate */
        list_prepend(&p->writing, &part->link);
    else
        insert(&p->writing, part);
    op->waiting_n++;
    replicas_mark_dirty(p);
}

static void produce_part(struct produce_op *op, struct produce_part *part)
{
    struct partition *p = NULL;
    part->op = op;
    list_init(&part->link);
    if (part->error == K_NONE)
        part->error = check_part(op, part, &p);
    if (part->error != K_NONE)
        return;
    const int64_t log_start = log_start_offset(p->log);
    part->error = stage_part(op, part, p);
    if (part->error == K_NONE || tells_log_start(part->error))
        part->log_start_offset = log_start;
    if (part->error == K_NONE)
        produce_wait(op, part, p);
}

/* ------------------------------------------------------------------ the operation */

/* What is written and not acknowledged ends now; what is not written yet will. */
static void give_up(struct produce_op *op)
{
    op->late = true;
    for (int32_t i = 0; i < op->parts_n; i++) {
        struct produce_part *part = &op->parts[i];
        struct partition *p =
            list_empty(&part->link) ? NULL : replicas_find(op->rs, part->topic_id, part->index);
        if (p != NULL && p->log != NULL && log_end_offset(p->log) >= part->required_offset)
            part_done(part, K_REQUEST_TIMED_OUT);
    }
}

static void produce_late(struct timer *t)
{
    give_up(CONTAINER_OF(t, struct produce_op, timer));
}

/* Those that the turn which brought them has not completed get their deadline. */
static void arm_fresh(struct replicas *rs)
{
    struct list *l;
    while ((l = list_pop(&rs->fresh_produce)) != NULL) {
        struct produce_op *op = LIST_ENTRY(l, struct produce_op, fresh);
        const int64_t wait_us = op->timeout_ms > 0 ? (int64_t)op->timeout_ms * 1000 : 0;
        if (op->waiting_n > 0 &&
            timer_arm(rs->timers, &op->timer, rs->now.mono_us + wait_us) != ERR_NONE)
            give_up(op);
    }
}

bool produce_complete_ready(struct replicas *rs)
{
    struct list *l;
    bool moved = false;
    arm_fresh(rs);
    while ((l = list_pop(&rs->ready_produce)) != NULL) {
        struct produce_op *op = LIST_ENTRY(l, struct produce_op, ready);
        timer_cancel(rs->timers, &op->timer);
        list_remove(&op->fresh);
        op->done(op);
        moved = true;
    }
    return moved;
}

void replicas_produce(struct replicas *rs, struct produce_op *op, struct now now)
{
    rs->now = now;
    op->rs = rs;
    op->waiting_n = 0;
    op->late = false;
    op->timer = (struct timer){.fire = produce_late};
    list_init(&op->ready);
    list_init(&op->fresh);
    for (int32_t i = 0; i < op->parts_n; i++)
        produce_part(op, &op->parts[i]);
    if (op->waiting_n > 0 && op->acks == -1)
        list_append(&rs->fresh_produce, &op->fresh);
    op_maybe_ready(op);
}

void replicas_produce_cancel(struct produce_op *op)
{
    if (op->waiting_n > 0)
        give_up(op);
}
