/* In-sync replicas as their leader changes them (replication.md 3): a follower joins by a fetch
 * that shows it caught up, and leaves when the shrink task finds it behind. A change is pending
 * from when it was decided until the controller's answer, or newer metadata, says what became of
 * it; one at a time. What it adds counts for the high watermark at once, what it takes away goes on
 * counting. */
#include <stdlib.h>

#include "core/replica/inside.h"
#include "wire/error.h"

enum { SHRINK_PARTITIONS = 64 }; /* of a settle */

bool partition_in_isr(const struct partition *p, int32_t id)
{
    for (int32_t i = 0; i < p->isr_n; i++)
        if (p->isr[i] == id)
            return true;
    return false;
}

/* ------------------------------------------------------------------ one change */

/* While an older change of this partition is under way, a newer one could overtake its answer. */
static bool may_change(const struct partition *p)
{
    return p->rs->isr_sender != NULL && !p->rs->closing && p->leading && p->log != NULL &&
           p->isr_state == ISR_COMMITTED && p->sent_seq == 0;
}

static struct isr_change *change_new(struct partition *p, int32_t members_n)
{
    struct isr_change *c = calloc(
        1, sizeof *c + (size_t)members_n * sizeof(struct alter_partition_request_broker_state));
    if (c == NULL)
        return NULL;
    list_init(&c->link);
    c->p = p;
    return c;
}

/* The epoch of the life that its last fetch came from (KIP-903), so that what is sent is what was
 * looked at (KAFKA-15221); -1, unknown, for one that has not fetched from us yet. */
static int64_t member_epoch(const struct partition *p, int32_t id)
{
    const struct replicas *rs = p->rs;
    const struct follower *f = partition_follower(p, id);
    if (id == rs->node_id)
        return rs->broker_epoch(rs->events.ctx);
    return f != NULL ? f->broker_epoch : -1;
}

static void add_member(struct isr_change *c, int32_t id)
{
    c->members[c->n++] = (struct alter_partition_request_broker_state){
        .broker_id = id, .broker_epoch = member_epoch(c->p, id)};
}

static void begin_change(struct partition *p, struct isr_change *c, enum isr_state state)
{
    p->change = c;
    p->isr_state = state;
    isr_sender_submit(p);
}

void partition_drop_isr_change(struct partition *p)
{
    if (p->change != NULL)
        list_remove(&p->change->link);
    free(p->change);
    p->change = NULL;
    p->isr_state = ISR_COMMITTED;
}

/* ------------------------------------------------------------------ expanding */

/* It has all that may be committed, and was heard in this epoch (S5). While the high watermark is
 * frozen under min ISR, having reached it says little (KAFKA-19996). */
static bool in_sync(const struct partition *p, const struct follower *f)
{
    const struct replicas *rs = p->rs;
    const bool frozen = p->isr_n < partition_effective_min_isr(p);
    return f->end_offset >= p->high_watermark && f->end_offset >= p->leader_epoch_start &&
           (!frozen ||
            follower_caught_up(f, log_end_offset(p->log), rs->now.mono_us, rs->lag_max_us));
}

void partition_maybe_expand_isr(struct partition *p, const struct follower *f)
{
    if (!may_change(p) || partition_in_isr(p, f->id) || !partition_eligible(p, f) || !in_sync(p, f))
        return;
    struct isr_change *c = change_new(p, p->isr_n + 1);
    if (c == NULL)
        return; /* its next fetch tries again */
    for (int32_t i = 0; i < p->isr_n; i++)
        add_member(c, p->isr[i]);
    add_member(c, f->id);
    p->pending_member = f->id;
    begin_change(p, c, ISR_PENDING_EXPAND);
}

/* ------------------------------------------------------------------ shrinking */

/* A member that is not assigned has no books: it goes too (KAFKA-9672). */
static bool stays(const struct partition *p, int32_t id)
{
    const struct replicas *rs = p->rs;
    const struct follower *f = partition_follower(p, id);
    return id == rs->node_id || (f != NULL && follower_caught_up(f, log_end_offset(p->log),
                                                                 rs->now.mono_us, rs->lag_max_us));
}

void partition_maybe_shrink_isr(struct partition *p)
{
    int32_t n = 0;
    if (!may_change(p))
        return;
    for (int32_t i = 0; i < p->isr_n; i++)
        n += stays(p, p->isr[i]);
    if (n == p->isr_n)
        return;
    struct isr_change *c = change_new(p, n);
    if (c == NULL)
        return; /* the next look tries again */
    for (int32_t i = 0; i < p->isr_n; i++)
        if (stays(p, p->isr[i]))
            add_member(c, p->isr[i]);
    env_log(p->rs->env, LOG_INFO, "isr_shrink partition=%s-%d from=%d to=%d", p->topic, p->index,
            p->isr_n, n);
    begin_change(p, c, ISR_PENDING_SHRINK);
}

/* ------------------------------------------------------------------ the shrink task */

static void arm(struct replicas *rs)
{
    const int64_t floor_us = rs->timers->floor_us; /* of the turn that fires it */
    const int64_t now_us = rs->now.mono_us > floor_us ? rs->now.mono_us : floor_us;
    if (timer_arm(rs->timers, &rs->shrink_timer, now_us + rs->lag_max_us / 2) != ERR_NONE)
        env_log(rs->env, LOG_WARN, "isr_shrink_skipped error=NOMEM");
}

static void shrink_due(struct timer *t)
{
    struct replicas *rs = CONTAINER_OF(t, struct replicas, shrink_timer);
    if (list_empty(&rs->led))
        return;                       /* who comes next arms it */
    if (list_empty(&rs->shrink_walk)) /* else the last round still goes on */
        list_prepend(&rs->led, &rs->shrink_walk);
    arm(rs);
}

void isr_init(struct replicas *rs)
{
    list_init(&rs->led);
    list_init(&rs->shrink_walk);
    rs->shrink_timer.fire = shrink_due;
}

void isr_led_changed(struct partition *p)
{
    struct replicas *rs = p->rs;
    const bool led = p->leading && p->followers_n > 0;
    if (!led)
        list_remove(&p->led);
    else if (list_empty(&p->led))
        list_append(&rs->led, &p->led);
    if (led && rs->isr_sender != NULL && !timer_armed(&rs->shrink_timer))
        arm(rs);
}

bool isr_settle(struct replicas *rs)
{
    if (list_empty(&rs->shrink_walk))
        return false;
    for (int i = 0; i < SHRINK_PARTITIONS && rs->shrink_walk.next != &rs->led; i++) {
        struct list *next = rs->shrink_walk.next;
        list_remove(&rs->shrink_walk);
        list_prepend(next, &rs->shrink_walk);
        partition_maybe_shrink_isr(LIST_ENTRY(next, struct partition, led));
    }
    if (rs->shrink_walk.next == &rs->led)
        list_remove(&rs->shrink_walk);
    return true;
}

/* ------------------------------------------------------------------ answers */

/* Of another epoch than ours: metadata that is on its way says what holds. */
static void committed(struct partition *p,
                      const struct alter_partition_response_partition_data *answer)
{
    if (answer->leader_epoch != p->leader_epoch || answer->partition_epoch < p->partition_epoch)
        return;
    int32_t *isr = malloc(((size_t)answer->isr.n + 1) * sizeof *isr);
    if (isr == NULL)
        return; /* pending still, until the metadata comes */
    for (int32_t i = 0; i < answer->isr.n; i++)
        isr[i] = answer->isr.v[i];
    free(p->isr);
    p->isr = isr;
    p->isr_n = answer->isr.n;
    p->partition_epoch = answer->partition_epoch;
    partition_drop_isr_change(p);
    env_log(p->rs->env, LOG_INFO, "isr partition=%s-%d members=%d partition_epoch=%d", p->topic,
            p->index, p->isr_n, p->partition_epoch);
    replicas_mark_dirty(p); /* the high watermark may rise (S14) */
    partition_changed(p);
}

void partition_isr_answered(struct partition *p,
                            const struct alter_partition_response_partition_data *answer)
{
    switch (answer->error_code) {
    case K_NONE:
        committed(p, answer);
        return;
    case K_INELIGIBLE_REPLICA: /* provably not applied */
    case K_OPERATION_NOT_ATTEMPTED:
        partition_drop_isr_change(p);
        replicas_mark_dirty(p);
        return;
    case K_UNKNOWN_TOPIC_OR_PARTITION:
    case K_UNKNOWN_TOPIC_ID:
    case K_FENCED_LEADER_EPOCH:
    case K_INVALID_UPDATE_VERSION:
    case K_INVALID_REQUEST:
    case K_NEW_LEADER_ELECTED:
        env_log(p->rs->env, LOG_INFO, "isr_refused partition=%s-%d error=%d", p->topic, p->index,
                answer->error_code);
        return; /* pending until metadata says more: it may have been applied */
    default:
        isr_sender_submit(p);
    }
}
