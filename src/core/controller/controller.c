/* The active controller keeps a second image, ahead of the committed one by what it has appended.
 * Every decision is made against that image, becomes records, is appended and replayed at once;
 * the answer waits in `pending` until the records are committed. An operation without records
 * waits too, for what it has read.
 *
 * When a replay fails (no memory) the image ahead is thrown away and made again from the committed
 * one once that has caught up; until then we answer NOT_CONTROLLER, as during a claim. */
#include <stdlib.h>

#include "base/check.h"
#include "core/controller/collisions.h"
#include "core/controller/inside.h"
#include "core/metadata/broker_config.h"
#include "core/metadata/kafka_error.h"

/* A turn follows every timer, and tries. */
static void claim_due(struct timer *t)
{
    (void)t;
}

enum err controller_new(const struct controller_args *args, struct controller **out)
{
    struct controller *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    enum err e = config_over(args->config, &c->config);
    if (e != ERR_NONE) {
        free(c);
        return e;
    }
    c->env = args->env;
    c->timers = args->timers;
    c->raft = args->raft;
    c->committed = args->committed;
    c->cluster_id = args->cluster_id;
    c->node_id = args->node_id;
    c->dialing = args->dialing;
    c->appended_offset = -1;
    c->claim_timer.fire = claim_due;
    image_init(&c->ahead, args->seed);
    map_init(&c->collisions, args->seed);
    partition_index_init(&c->index, args->seed);
    map_init(&c->sessions, args->seed);
    list_init(&c->expired);
    list_init(&c->probes);
    list_init(&c->pending);
    list_init(&c->ready);
    arena_init(&c->scratch, args->budget);
    arena_init(&c->replay, args->budget);
    *out = c;
    return ERR_NONE;
}

void controller_free(struct controller *c)
{
    if (c == NULL)
        return;
    timer_cancel(c->timers, &c->claim_timer);
    probes_close(c);
    balance_close(c);
    sessions_close(c);
    collisions_close(c);
    partition_index_close(&c->index);
    image_close(&c->ahead);
    map_close(&c->sessions);
    map_close(&c->collisions);
    arena_close(&c->scratch);
    arena_close(&c->replay);
    config_free(c->config);
    free(c);
}

bool controller_is_active(const struct controller *c)
{
    return c->state == CONTROLLER_ACTIVE;
}

/* ------------------------------------------------------------------ operations */

static void move_ready(struct controller *c, struct controller_op *op)
{
    list_remove(&op->link);
    list_append(&c->ready, &op->link);
}

bool controller_begin(struct controller *c, struct controller_op *op)
{
    list_init(&op->link);
    op->offset = -1;
    op->epoch = c->epoch;
    op->error = K_NONE;
    if (c->state == CONTROLLER_ACTIVE) {
        arena_reset(&c->scratch);
        return true;
    }
    op->error = K_NOT_CONTROLLER;
    list_append(&c->ready, &op->link);
    return false;
}

void controller_finish(struct controller *c, struct controller_op *op, int16_t error)
{
    op->error = error;
    op->offset = c->appended_offset;
    list_append(op->offset < c->committed_offset ? &c->ready : &c->pending, &op->link);
}

void controller_committed(struct controller *c, int64_t offset, struct now now)
{
    (void)now;
    c->committed_offset = offset;
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &c->pending)
    {
        struct controller_op *op = LIST_ENTRY(it, struct controller_op, link);
        if (op->offset >= offset)
            break;
        move_ready(c, op);
    }
}

static bool complete_ready(struct controller *c)
{
    struct list *l;
    bool moved = false;
    while ((l = list_pop(&c->ready)) != NULL) {
        struct controller_op *op = LIST_ENTRY(l, struct controller_op, link);
        op->done(op, op->error);
        moved = true;
    }
    return moved;
}

/* ------------------------------------------------------------------ appending */

int64_t controller_next_offset(const struct controller *c)
{
    return log_staged_end(raft_log(c->raft));
}

/* Defaults of topics are looked up when they are needed: nobody has to be told of a change. */
static enum err take_config(struct controller *c)
{
    bool topics = false;
    c->config_stale = false;
    return broker_config_take(c->config, &c->ahead, c->node_id, &topics);
}

static bool is_own_config(const struct controller *c, int16_t type, const void *record)
{
    const struct config_record *r = record;
    return type == RECORD_CONFIG && r->resource_type == CONFIG_RESOURCE_BROKER &&
           broker_config_is_of(r->resource_name, c->node_id);
}

static bool is_unclean_config(int16_t type, const void *record)
{
    const struct config_record *r = record;
    return type == RECORD_CONFIG && str_eq(r->name, STR_LIT("unclean.leader.election.enable"));
}

/* The partition that a record is about. */
struct subject {
    struct uuid topic_id;
    int32_t index;
    bool replicas; /* the record may change them */
};

static bool subject_of(int16_t type, const void *record, struct subject *s)
{
    if (type == RECORD_PARTITION) {
        const struct partition_record *r = record;
        *s = (struct subject){r->topic_id, r->partition_id, true};
        return true;
    }
    if (type == RECORD_PARTITION_CHANGE) {
        const struct partition_change_record *r = record;
        *s = (struct subject){r->topic_id, r->partition_id, r->replicas.n >= 0};
        return true;
    }
    return false;
}

static const struct image_partition *partition_of(const struct controller *c,
                                                  const struct subject *s)
{
    struct image_topic *t = image_topic_by_id(&c->ahead, s->topic_id);
    return t == NULL ? NULL : image_partition(t, s->index);
}

static void forget_topic(struct controller *c, struct uuid topic_id)
{
    const struct image_topic *t = image_topic_by_id(&c->ahead, topic_id);
    collisions_remove(c, topic_id);
    for (int32_t i = 0; t != NULL && i < t->partitions_n; i++)
        if (t->partitions[i].replicas_n > 0)
            partition_index_remove(&c->index, topic_id, i, &t->partitions[i], true);
}

/* Applies it to the image and what hangs on that. */
static enum err replay_decoded(struct controller *c, int16_t type, int16_t version,
                               const void *record, struct bytes framed)
{
    struct subject s;
    const bool about = subject_of(type, record, &s);
    const struct image_partition *before = about ? partition_of(c, &s) : NULL;
    if (before != NULL)
        partition_index_remove(&c->index, s.topic_id, s.index, before, s.replicas);
    if (type == RECORD_REMOVE_TOPIC)
        forget_topic(c, ((const struct remove_topic_record *)record)->topic_id);
    enum err e = image_apply(&c->ahead, type, version, record, framed, NULL);
    if (e == ERR_NONE && about)
        e = partition_index_add(&c->index, s.topic_id, s.index, partition_of(c, &s), s.replicas);
    if (e == ERR_NONE && type == RECORD_TOPIC)
        e = collisions_add(c, ((const struct topic_record *)record)->name);
    c->config_stale |= e == ERR_NONE && is_own_config(c, type, record);
    c->unclean_due |= e == ERR_NONE && is_unclean_config(type, record);
    return e;
}

static enum err replay_record(struct controller *c, struct bytes framed)
{
    int16_t type, version;
    void *record;
    arena_reset(&c->replay);
    enum err e = record_decode(framed, &c->replay, &type, &version, &record);
    return e != ERR_NONE ? e : replay_decoded(c, type, version, record, framed);
}

static void replay(struct controller *c, const struct record_list *rl, size_t from, size_t to)
{
    enum err e = ERR_NONE;
    for (size_t i = from; i < to && e == ERR_NONE; i++)
        e = replay_record(c, record_list_get(rl, i));
    if (e == ERR_NONE && c->config_stale)
        e = take_config(c);
    if (e != ERR_NONE) {
        CHECK(e == ERR_NOMEM); /* else we appended what no node can apply */
        env_log(c->env, LOG_WARN, "controller_image_lost epoch=%d error=%s", c->epoch, err_name(e));
        c->state = CONTROLLER_CLAIMING;
        return;
    }
    c->ahead.next_offset = c->appended_offset + 1;
}

/* Where the batch that begins at `from` ends. */
static size_t batch_end(const struct record_list *rl, size_t from, bool atomic)
{
    size_t to = from, bytes = 0;
    if (atomic)
        return rl->n;
    while (to < rl->n && to - from < CONTROLLER_MAX_RECORDS) {
        bytes += (size_t)record_list_get(rl, to).n;
        if (to > from && bytes > CONTROLLER_MAX_BATCH_BYTES)
            break;
        to++;
    }
    return to;
}

enum err controller_append(struct controller *c, const struct record_list *rl, bool atomic,
                           struct now now)
{
    if (rl->n == 0)
        return ERR_NONE;
    if (atomic && rl->n > CONTROLLER_MAX_RECORDS)
        return ERR_TOO_LARGE;
    struct bytes *values = arena_array(&c->scratch, rl->n, sizeof *values);
    if (values == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < rl->n; i++)
        values[i] = record_list_get(rl, i);
    for (size_t from = 0, to; from < rl->n && c->state == CONTROLLER_ACTIVE; from = to) {
        to = batch_end(rl, from, atomic);
        const int64_t first = controller_next_offset(c);
        int64_t last;
        enum err e = raft_append(c->raft, c->epoch, values + from, to - from, now, &last);
        if (e != ERR_NONE)
            return e;
        CHECK(last == first + (int64_t)(to - from) - 1);
        c->appended_offset = last;
        replay(c, rl, from, to);
    }
    return ERR_NONE;
}

int16_t controller_error_of(enum err e)
{
    switch (e) {
    case ERR_BUSY: /* raft leads no more */
        return K_NOT_CONTROLLER;
    case ERR_TOO_LARGE:
        return K_POLICY_VIOLATION;
    default:
        return kafka_error_of(e);
    }
}

/* ------------------------------------------------------------------ leading */

static void drop_ahead(struct controller *c)
{
    probes_close(c);
    balance_close(c);
    sessions_close(c);
    collisions_close(c);
    partition_index_close(&c->index);
    partition_index_init(&c->index, c->ahead.seed);
    image_reset(&c->ahead);
}

static enum err open_ahead(struct controller *c, struct now now)
{
    struct record_list rl;
    drop_ahead(c);
    enum err e = image_copy(c->committed, &c->ahead);
    if (e == ERR_NONE)
        e = take_config(c);
    if (e == ERR_NONE)
        e = collisions_open(c);
    if (e == ERR_NONE)
        e = partition_index_fill(&c->index, &c->ahead);
    if (e != ERR_NONE)
        return e;
    record_list_init(&rl);
    arena_reset(&c->scratch);
    e = controller_activation_records(c, &rl);
    if (e == ERR_NONE) {
        c->state = CONTROLLER_ACTIVE;
        e = controller_append(c, &rl, true, now);
    }
    record_list_close(&rl);
    if (e == ERR_NONE && c->state == CONTROLLER_ACTIVE)
        e = sessions_open(c, now);
    if (e == ERR_NONE && c->state == CONTROLLER_ACTIVE)
        e = balance_open(c, now);
    if (e == ERR_NONE && c->state == CONTROLLER_ACTIVE)
        probes_open(c, now);
    return e;
}

/* Becomes active once all that we appended before is in the committed image. After a failure some
 * time has to pass, or at least a turn. True if there is reason for another round. */
static bool try_claim(struct controller *c, struct now now)
{
    if (c->committed_offset <= c->appended_offset || timer_armed(&c->claim_timer))
        return false;
    enum err e = open_ahead(c, now);
    if (e == ERR_NONE && c->state == CONTROLLER_ACTIVE) {
        env_log(c->env, LOG_INFO, "controller_active epoch=%d offset=%lld", c->epoch,
                (long long)c->ahead.next_offset);
        return true;
    }
    c->state = CONTROLLER_CLAIMING;
    env_log(c->env, LOG_WARN, "controller_claim_failed epoch=%d error=%s", c->epoch, err_name(e));
    return e != ERR_NONE && timer_arm(c->timers, &c->claim_timer,
                                      now.mono_us + CONTROLLER_CLAIM_RETRY_US) != ERR_NONE;
}

void controller_claim(struct controller *c, int32_t epoch, struct now now)
{
    c->epoch = epoch;
    c->appended_offset = -1;
    c->state = CONTROLLER_CLAIMING;
    timer_cancel(c->timers, &c->claim_timer);
    (void)try_claim(c, now); /* else at each settle */
}

void controller_resign(struct controller *c)
{
    struct list *it, *tmp;
    c->state = CONTROLLER_STANDBY;
    c->appended_offset = -1;
    timer_cancel(c->timers, &c->claim_timer);
    drop_ahead(c);
    LIST_EACH(it, tmp, &c->pending)
    {
        struct controller_op *op = LIST_ENTRY(it, struct controller_op, link);
        op->error = K_NOT_CONTROLLER;
        move_ready(c, op);
    }
}

bool controller_settle(struct controller *c, struct now now)
{
    bool moved = false;
    if (c->state == CONTROLLER_CLAIMING)
        moved |= try_claim(c, now);
    if (c->state == CONTROLLER_ACTIVE)
        moved |= probes_settle(c, now);
    if (c->state == CONTROLLER_ACTIVE)
        moved |= sessions_settle(c, now);
    if (c->state == CONTROLLER_ACTIVE)
        moved |= balance_settle(c, now);
    moved |= complete_ready(c);
    return moved;
}
