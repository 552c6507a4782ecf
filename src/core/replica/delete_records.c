/* DeleteRecords (log.md 6): the log start rises at once, segments below it go. A part is done when
 * the low watermark has reached what it asked for: the smallest log start of all live replicas,
 * ours counted as the checkpoint file has it, so that what was answered holds after kill -9
 * (Kafka's file follows within a minute). The client's time is for the others: our own file is
 * waited for, unless it cannot be written. */
#include "base/check.h"
#include "core/metadata/kafka_error.h"
#include "core/metadata/topic_name.h"
#include "core/replica/inside.h"
#include "core/replica/mentions.h"

enum { TO_HIGH_WATERMARK = -1 }; /* an offset */

struct delete_part {
    struct list link; /* in its partition's deleting, or waits for nothing */
    struct delete_state *st;
    struct uuid topic_id;
    int32_t index;
    int64_t required;
    struct delete_records_response_delete_records_partition_result *out;
};

struct delete_state {
    struct replicas *rs;
    struct delete_records_op *op;
    struct delete_part *parts;
    size_t parts_n;
    struct timer timer;
    struct list ready, fresh;
    int32_t waiting_n;
    bool late; /* cancelled, or its time is over */
};

/* ------------------------------------------------------------------ the log start */

int64_t partition_low_watermark(const struct partition *p)
{
    int64_t low = p->saved_start;
    for (int32_t i = 0; i < p->followers_n; i++) {
        const struct follower *f = &p->followers[i];
        const struct image_broker *b = image_broker(p->rs->image, f->id);
        if (b != NULL && !b->fenced && f->log_start < low)
            low = f->log_start;
    }
    return low;
}

enum err partition_raise_start(struct partition *p, int64_t offset)
{
    enum err e = log_raise_start(p->log, offset);
    if (e != ERR_NONE)
        return e;
    p->rs->starts_changed = p->rs->recovery_changed = true;
    if (list_empty(&p->raised))
        list_append(&p->rs->raised, &p->raised);
    replicas_mark_dirty(p); /* its old segments go when it settles */
    follow_log_start_moved(p);
    partition_changed(p);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ completion */

static void maybe_ready(struct delete_state *st)
{
    if (st->waiting_n == 0 && list_empty(&st->ready))
        list_append(&st->rs->ready_delete, &st->ready);
}

static void part_done(struct delete_part *part, int16_t error, int64_t low_watermark)
{
    CHECK(!list_empty(&part->link));
    list_remove(&part->link);
    part->out->error_code = error;
    part->out->low_watermark = low_watermark;
    part->st->waiting_n--;
    maybe_ready(part->st);
}

/* As Kafka: with the low watermark of when it was asked for. */
static void part_late(struct delete_part *part)
{
    part_done(part, K_REQUEST_TIMED_OUT, part->out->low_watermark);
}

static struct delete_part *part_of(struct list *l)
{
    return LIST_ENTRY(l, struct delete_part, link);
}

void delete_records_settle(struct partition *p)
{
    if (list_empty(&p->deleting))
        return;
    const int64_t low = partition_low_watermark(p);
    while (!list_empty(&p->deleting) && part_of(p->deleting.next)->required <= low)
        part_done(part_of(p->deleting.next), K_NONE, low);
}

/* Nothing that it could still do in time: the others did not follow, or our own file failed. */
static bool given_up(const struct partition *p, const struct delete_part *part)
{
    return part->st->late &&
           (part->required <= p->saved_start || !checkpoints_saving_starts(p->rs));
}

void delete_records_saved(struct partition *p)
{
    struct list *l, *tmp;
    delete_records_settle(p);
    LIST_EACH(l, tmp, &p->deleting)
    if (given_up(p, part_of(l)))
        part_late(part_of(l));
}

void delete_records_fail(struct partition *p, int16_t e)
{
    while (!list_empty(&p->deleting))
        part_done(part_of(p->deleting.next), e, -1);
}

/* ------------------------------------------------------------------ one part */

/* Kafka's checks, in its order. */
static int16_t find_part(const struct delete_state *st, struct str topic, int32_t index,
                         struct partition **out)
{
    struct image_topic *t = image_topic_named(st->rs->image, topic);
    if (st->op->allowed != NULL && !st->op->allowed(st->op->allowed_ctx, topic))
        return K_TOPIC_AUTHORIZATION_FAILED;
    if (t == NULL || image_partition(t, index) == NULL)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    if (topic_is_internal(topic))
        return K_INVALID_TOPIC_EXCEPTION;
    *out = replicas_find(st->rs, t->id, index);
    return *out == NULL ? K_NOT_LEADER_OR_FOLLOWER : partition_leader_error(*out);
}

static int16_t raise_to(struct partition *p, int64_t offset, int64_t *required)
{
    if (p->config.compact && !p->config.delete_)
        return K_POLICY_VIOLATION;
    *required = offset == TO_HIGH_WATERMARK ? p->high_watermark : offset;
    if (*required < 0 || *required > p->high_watermark)
        return K_OFFSET_OUT_OF_RANGE;
    if (*required <= log_start_offset(p->log))
        return K_NONE;
    enum err e = partition_raise_start(p, *required);
    return e == ERR_NONE ? K_NONE : kafka_error_of(e);
}

/* Required starts rise in the list. From the end, where most belong. */
static void wait_for(struct partition *p, struct delete_part *part)
{
    struct list *at = &p->deleting;
    while (at->prev != &p->deleting && part_of(at->prev)->required > part->required)
        at = at->prev;
    list_append(at, &part->link);
    part->st->waiting_n++;
    replicas_mark_dirty(p);
}

static void delete_part(struct delete_part *part, struct str topic, int64_t offset)
{
    struct partition *p = NULL;
    part->out->partition_index = part->index;
    part->out->error_code = find_part(part->st, topic, part->index, &p);
    if (part->out->error_code == K_NONE)
        part->out->error_code = raise_to(p, offset, &part->required);
    part->out->low_watermark = part->out->error_code == K_NONE ? partition_low_watermark(p) : -1;
    if (part->out->error_code != K_NONE || part->out->low_watermark >= part->required)
        return;
    part->topic_id = p->topic_id;
    wait_for(p, part);
}

/* ------------------------------------------------------------------ the operation */

/* Of a partition named twice the last mention counts (Kafka). */
struct asked {
    struct mention *mentions;
    const struct delete_records_request_delete_records_partition **entries;
    size_t n; /* mentions left */
};

static enum err take_request(const struct delete_records_op *op, struct asked *out)
{
    const struct delete_records_request *req = op->request;
    size_t n = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        n += (size_t)req->topics.v[i].partitions.n;
    out->mentions = arena_array(op->arena, n, sizeof *out->mentions);
    out->entries = arena_array(op->arena, n, sizeof(void *));
    if (out->mentions == NULL || out->entries == NULL)
        return ERR_NOMEM;
    n = 0;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct delete_records_request_delete_records_topic *t = &req->topics.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++) {
            out->entries[n] = &t->partitions.v[k];
            out->mentions[n++] =
                (struct mention){.topic = t->name, .index = t->partitions.v[k].partition_index};
        }
    }
    out->n = mentions_merge(out->mentions, n);
    return ERR_NONE;
}

/* The answer's topics, and in results the place of each partition. */
static enum err
new_response(const struct delete_records_op *op, const struct asked *asked,
             struct delete_records_response_delete_records_partition_result **results)
{
    struct delete_records_response *resp = op->response;
    resp->topics.v = wire_array(&wire_delete_records_response_delete_records_topic_result,
                                op->arena, (size_t)op->request->topics.n);
    *results = wire_array(&wire_delete_records_response_delete_records_partition_result, op->arena,
                          asked->n);
    if (resp->topics.v == NULL || *results == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < asked->n; i++) {
        if (i == 0 || !str_eq(asked->mentions[i].topic, asked->mentions[i - 1].topic)) {
            resp->topics.v[resp->topics.n].name = asked->mentions[i].topic;
            resp->topics.v[resp->topics.n++].partitions.v = *results + i;
        }
        resp->topics.v[resp->topics.n - 1].partitions.n++;
    }
    return ERR_NONE;
}

static void give_up(struct delete_state *st)
{
    st->late = true;
    for (size_t i = 0; i < st->parts_n; i++) {
        struct delete_part *part = &st->parts[i];
        if (list_empty(&part->link))
            continue;
        const struct partition *p = replicas_find(st->rs, part->topic_id, part->index);
        CHECK(p != NULL);
        if (given_up(p, part))
            part_late(part);
    }
}

static void delete_late(struct timer *t)
{
    give_up(CONTAINER_OF(t, struct delete_state, timer));
}

/* Those that the turn which brought them has not completed get their deadline. */
static void arm_fresh(struct replicas *rs)
{
    struct list *l;
    while ((l = list_pop(&rs->fresh_delete)) != NULL) {
        struct delete_state *st = LIST_ENTRY(l, struct delete_state, fresh);
        const int32_t timeout_ms = st->op->request->timeout_ms;
        const int64_t wait_us = timeout_ms > 0 ? (int64_t)timeout_ms * 1000 : 0;
        if (st->waiting_n > 0 &&
            timer_arm(rs->timers, &st->timer, rs->now.mono_us + wait_us) != ERR_NONE)
            give_up(st);
    }
}

bool delete_records_complete_ready(struct replicas *rs)
{
    struct list *l;
    bool moved = false;
    arm_fresh(rs);
    while ((l = list_pop(&rs->ready_delete)) != NULL) {
        struct delete_state *st = LIST_ENTRY(l, struct delete_state, ready);
        timer_cancel(rs->timers, &st->timer);
        list_remove(&st->fresh);
        st->op->done(st->op);
        moved = true;
    }
    return moved;
}

enum err replicas_delete_records(struct replicas *rs, struct delete_records_op *op, struct now now)
{
    struct delete_state *st = arena_zalloc(op->arena, sizeof *st);
    struct delete_records_response_delete_records_partition_result *results;
    struct asked asked;
    rs->now = now;
    if (st == NULL || take_request(op, &asked) != ERR_NONE ||
        new_response(op, &asked, &results) != ERR_NONE)
        return ERR_NOMEM;
    st->parts = arena_array(op->arena, asked.n, sizeof *st->parts);
    if (st->parts == NULL)
        return ERR_NOMEM;
    op->impl = st;
    st->rs = rs;
    st->op = op;
    st->timer.fire = delete_late;
    list_init(&st->ready);
    list_init(&st->fresh);
    for (; st->parts_n < asked.n; st->parts_n++) {
        const struct mention *m = &asked.mentions[st->parts_n];
        struct delete_part *part = &st->parts[st->parts_n];
        *part = (struct delete_part){.st = st, .index = m->index, .out = &results[st->parts_n]};
        list_init(&part->link);
        delete_part(part, m->topic, asked.entries[m->last]->offset);
    }
    if (rs->starts_changed)
        checkpoints_request_starts(rs);
    if (st->waiting_n > 0)
        list_append(&rs->fresh_delete, &st->fresh);
    maybe_ready(st);
    return ERR_NONE;
}

void replicas_delete_records_cancel(struct delete_records_op *op)
{
    struct delete_state *st = op->impl;
    if (st->waiting_n > 0)
        give_up(st);
}
