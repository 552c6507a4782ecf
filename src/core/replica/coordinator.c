/* Partitions as their coordinators use them. A coordinator's batch waits in the same lists as the
 * batches of Produce, so that it is written with them and ends in order of offsets. */
#include "core/metadata/kafka_error.h"
#include "core/replica/inside.h"
#include "wire/error.h"

static int16_t find(const struct replicas *rs, struct uuid topic_id, int32_t index,
                    struct partition **out)
{
    *out = replicas_find(rs, topic_id, index);
    return *out == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : partition_leader_error(*out);
}

int16_t replicas_ends(const struct replicas *rs, struct uuid topic_id, int32_t index,
                      struct replicas_ends *out)
{
    struct partition *p;
    const int16_t error = find(rs, topic_id, index, &p);
    if (error != K_NONE)
        return error;
    *out = (struct replicas_ends){
        .leader_epoch = p->leader_epoch,
        .start = log_start_offset(p->log),
        .staged_end = log_staged_end(p->log),
        .end = log_end_offset(p->log),
        .high_watermark = p->high_watermark,
    };
    return K_NONE;
}

enum err replicas_read(struct replicas *rs, struct uuid topic_id, int32_t index, int64_t offset,
                       uint32_t max_bytes, struct log_span *out)
{
    struct partition *p;
    if (find(rs, topic_id, index, &p) != K_NONE)
        return ERR_OFFLINE;
    return log_read(p->log, offset, log_end_offset(p->log), max_bytes, true, out);
}

/* ------------------------------------------------------------------ watching */

bool replicas_watch(struct replicas *rs, struct uuid topic_id, int32_t index,
                    struct replicas_watch *w)
{
    struct partition *p = replicas_find(rs, topic_id, index);
    if (p == NULL)
        return false;
    list_append(&p->coordinators, &w->link);
    return true;
}

void replicas_unwatch(struct replicas_watch *w)
{
    list_remove(&w->link);
}

void coordinator_partition_changed(struct partition *p)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->coordinators)
    {
        struct replicas_watch *w = LIST_ENTRY(l, struct replicas_watch, link);
        w->changed(w);
    }
}

void coordinator_partition_gone(struct partition *p)
{
    struct list *l;
    while ((l = list_pop(&p->coordinators)) != NULL) {
        struct replicas_watch *w = LIST_ENTRY(l, struct replicas_watch, link);
        w->changed(w);
    }
}

/* ------------------------------------------------------------------ appending */

static void appended(struct produce_op *po)
{
    struct append_op *op = CONTAINER_OF(po, struct append_op, op);
    op->done(op, op->part.error);
}

static int16_t stage(struct append_op *op, struct partition *p, const struct batch *facts,
                     struct now now)
{
    struct log_staged staged;
    enum err e = log_stage_leader(p->log, (uint8_t *)(uintptr_t)op->batch.p, facts, p->leader_epoch,
                                  LOG_COORDINATOR, now, &staged);
    if (e != ERR_NONE)
        return produce_stage_error(p, e, &staged);
    op->base_offset = staged.base_offset;
    op->part.required_offset = staged.last_offset + 1;
    op->part.leader_epoch = p->leader_epoch;
    return K_NONE;
}

static int16_t check(const struct append_op *op, const struct partition *p)
{
    if (op->leader_epoch != p->leader_epoch)
        return K_NOT_LEADER_OR_FOLLOWER;
    if (op->batch.n > p->config.validate.max_message_bytes)
        return K_MESSAGE_TOO_LARGE;
    return op->batch.n > p->config.validate.segment_bytes ? K_RECORD_LIST_TOO_LARGE : K_NONE;
}

int16_t replicas_append(struct replicas *rs, struct append_op *op, struct now now)
{
    struct partition *p;
    struct batch facts;
    rs->now = now;
    int16_t error = find(rs, op->topic_id, op->index, &p);
    if (error == K_NONE)
        error = check(op, p);
    if (error == K_NONE)
        error = kafka_error_of(batch_parse(op->batch, &facts));
    op->op = (struct produce_op){.acks = PRODUCE_COORDINATOR, .done = appended, .rs = rs};
    op->part = (struct produce_part){
        .topic_id = op->topic_id, .index = op->index, .records = op->batch, .op = &op->op};
    list_init(&op->op.ready);
    list_init(&op->op.fresh);
    list_init(&op->part.link);
    if (error == K_NONE)
        error = stage(op, p, &facts, now);
    if (error == K_NONE)
        produce_wait(&op->op, &op->part, p);
    return error;
}
