/* AlterPartition (KIP-497): changes of ISRs on their way to the controller. One request is in
 * flight for this broker, and carries what waits; without a time limit, for what has been sent may
 * be applied however late. */
#include <stdlib.h>

#include "core/broker/channel.h"
#include "core/replica/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

enum { CHANGES_AT_ONCE = 1000, RETRY_US = 50 * 1000 };

struct sent_change {
    struct uuid topic_id;
    int32_t index;
    uint64_t seq;
};

/* Apart from the replicas in memory, so that a call in flight may outlive them. */
struct isr_sender {
    struct replicas *rs;     /* NULL: they are gone; whoever completes the call frees this */
    struct channel *channel; /* NULL: it was closed */
    struct channel_call call;
    bool in_flight;
    struct list queued; /* struct isr_change */
    uint64_t last_seq;
    struct timer retry; /* after an error of a whole request */
    struct arena arena; /* of the request in flight */
    struct alter_partition_request request;
    struct sent_change *sent;
    size_t sent_n;
};

/* ------------------------------------------------------------------ the request */

/* How many changes from l on are of its topic, max at most. */
static size_t run_of(const struct isr_sender *s, const struct list *l, size_t max)
{
    const struct isr_change *first = LIST_ENTRY(l, struct isr_change, link);
    size_t n = 1;
    while (n < max && (l = l->next) != &s->queued &&
           uuid_eq(LIST_ENTRY(l, struct isr_change, link)->p->topic_id, first->p->topic_id))
        n++;
    return n;
}

static enum err fill_partition(struct isr_sender *s, const struct isr_change *c,
                               struct alter_partition_request_partition_data *out)
{
    out->new_isr_with_epochs.v =
        wire_array(&wire_alter_partition_request_broker_state, &s->arena, (size_t)c->n);
    if (out->new_isr_with_epochs.v == NULL)
        return ERR_NOMEM;
    out->new_isr_with_epochs.n = c->n;
    memcpy(out->new_isr_with_epochs.v, c->members, (size_t)c->n * sizeof *c->members);
    out->partition_index = c->p->index;
    out->leader_epoch = c->p->leader_epoch;
    out->partition_epoch = c->p->partition_epoch;
    /* Recovered: that an unclean leader leads is all there is to it. */
    out->leader_recovery_state = 0;
    return ERR_NONE;
}

/* Topics of the first n changes in the queue, which stay there. */
static enum err fill_topics(struct isr_sender *s, size_t n)
{
    struct alter_partition_request *req = &s->request;
    const struct list *l = s->queued.next;
    req->topics.v = wire_array(&wire_alter_partition_request_topic_data, &s->arena, n);
    if (req->topics.v == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n;) {
        struct alter_partition_request_topic_data *t = &req->topics.v[req->topics.n++];
        const size_t run = run_of(s, l, n - i);
        t->topic_id = LIST_ENTRY(l, struct isr_change, link)->p->topic_id;
        t->partitions.v = wire_array(&wire_alter_partition_request_partition_data, &s->arena, run);
        if (t->partitions.v == NULL)
            return ERR_NOMEM;
        t->partitions.n = (int32_t)run;
        for (size_t k = 0; k < run; k++, i++, l = l->next) {
            enum err e =
                fill_partition(s, LIST_ENTRY(l, struct isr_change, link), &t->partitions.v[k]);
            if (e != ERR_NONE)
                return e;
        }
    }
    return ERR_NONE;
}

static enum err make_request(struct isr_sender *s, size_t n)
{
    arena_reset(&s->arena);
    wire_default(&wire_alter_partition_request, &s->request);
    s->request.broker_id = s->rs->node_id;
    s->request.broker_epoch = s->rs->broker_epoch(s->rs->events.ctx);
    s->sent = arena_array(&s->arena, n, sizeof *s->sent);
    return s->sent == NULL ? ERR_NOMEM : fill_topics(s, n);
}

static void take_sent(struct isr_sender *s, size_t n)
{
    for (s->sent_n = 0; s->sent_n < n; s->sent_n++) {
        struct isr_change *c = LIST_ENTRY(list_pop(&s->queued), struct isr_change, link);
        s->sent[s->sent_n] = (struct sent_change){c->p->topic_id, c->p->index, c->seq};
        c->p->sent_seq = c->seq;
    }
}

/* ------------------------------------------------------------------ the answer */

static void retry_due(struct timer *t)
{
    (void)t; /* the settle that follows sends */
}

static void retry_later(struct isr_sender *s)
{
    if (timer_arm(s->rs->timers, &s->retry, s->rs->now.mono_us + RETRY_US) != ERR_NONE)
        env_log(s->rs->env, LOG_WARN, "alter_partition_retry_now error=NOMEM");
}

static void answer_partition(struct replicas *rs, struct uuid topic_id,
                             const struct alter_partition_response_partition_data *answer)
{
    struct partition *p = replicas_find(rs, topic_id, answer->partition_index);
    if (p == NULL || p->sent_seq == 0)
        return;
    const bool current = p->change != NULL && p->change->seq == p->sent_seq;
    p->sent_seq = 0;
    if (current) /* else newer metadata has settled it (S15) */
        partition_isr_answered(p, answer);
}

/* What has no answer waits for the next request. */
static void take_back(struct isr_sender *s)
{
    for (size_t i = s->sent_n; i > 0; i--) {
        const struct sent_change *sent = &s->sent[i - 1];
        struct partition *p = replicas_find(s->rs, sent->topic_id, sent->index);
        if (p == NULL || p->sent_seq != sent->seq)
            continue;
        p->sent_seq = 0;
        if (p->change != NULL && p->change->seq == sent->seq)
            list_prepend(&s->queued, &p->change->link);
    }
    s->sent_n = 0;
}

static void answered(struct channel_call *call, enum err e, const void *response)
{
    struct isr_sender *s = CONTAINER_OF(call, struct isr_sender, call);
    const struct alter_partition_response *resp = response;
    s->in_flight = false;
    if (s->rs == NULL) {
        arena_close(&s->arena);
        free(s);
        return;
    }
    const bool good = e == ERR_NONE && resp->error_code == K_NONE;
    for (int32_t i = 0; good && i < resp->topics.n; i++)
        for (int32_t k = 0; k < resp->topics.v[i].partitions.n; k++)
            answer_partition(s->rs, resp->topics.v[i].topic_id, &resp->topics.v[i].partitions.v[k]);
    if (e == ERR_CANCELLED) {
        s->channel = NULL;
    } else if (!good) {
        env_log(s->rs->env, LOG_INFO, "alter_partition_failed error=%s code=%d", err_name(e),
                e == ERR_NONE ? resp->error_code : K_NONE);
        retry_later(s);
    }
    take_back(s);
}

static int16_t top_error(const void *response)
{
    return ((const struct alter_partition_response *)response)->error_code;
}

/* ------------------------------------------------------------------ sending */

void isr_sender_submit(struct partition *p)
{
    struct isr_sender *s = p->rs->isr_sender;
    p->change->seq = ++s->last_seq;
    list_append(&s->queued, &p->change->link);
}

static size_t waiting_n(const struct isr_sender *s)
{
    size_t n = 0;
    for (const struct list *l = s->queued.next; l != &s->queued && n < CHANGES_AT_ONCE; l = l->next)
        n++;
    return n;
}

bool isr_sender_settle(struct replicas *rs)
{
    struct isr_sender *s = rs->isr_sender;
    if (s == NULL || s->channel == NULL || s->in_flight || timer_armed(&s->retry) ||
        list_empty(&s->queued) || rs->closing)
        return false;
    const size_t n = waiting_n(s);
    if (rs->broker_epoch(rs->events.ctx) < 0 || make_request(s, n) != ERR_NONE) {
        retry_later(s);
        return false;
    }
    take_sent(s, n);
    s->call = (struct channel_call){
        .api_key = API_ALTER_PARTITION,
        .request = &s->request,
        .deadline_us = INT64_MAX,
        .error = top_error,
        .done = answered,
    };
    s->in_flight = true;
    channel_call(s->channel, &s->call, rs->now);
    return true;
}

/* ------------------------------------------------------------------ life */

enum err isr_sender_new(struct replicas *rs, struct channel *channel)
{
    struct isr_sender *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    s->rs = rs;
    s->channel = channel;
    s->retry.fire = retry_due;
    list_init(&s->queued);
    arena_init(&s->arena, rs->budget);
    rs->isr_sender = s;
    return ERR_NONE;
}

void isr_sender_free(struct replicas *rs)
{
    struct isr_sender *s = rs->isr_sender;
    rs->isr_sender = NULL;
    if (s == NULL)
        return;
    timer_cancel(rs->timers, &s->retry);
    s->rs = NULL;
    if (s->in_flight) {
        channel_cancel(&s->call);
        return;
    }
    arena_close(&s->arena);
    free(s);
}
