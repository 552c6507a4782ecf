/* A peer to the present leader, opened for a call. Whether the leader is another one now is looked
 * at in each settle while there are calls: a call that waits for an answer of a leader that is none
 * any more does not wait for its connection to end. */
#include "core/broker/channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/check.h"
#include "wire/error.h"

enum {
    ANSWER_MAX_BYTES = 64 << 20,
    DOUBLINGS_MAX = 5,
    TRY_MAX_US = 30 * 1000 * 1000, /* for an answer; then the connection is not trusted */
};

struct leader {
    int32_t id;
    struct str host;
    uint16_t port;
};

struct channel {
    struct timers *timers;
    struct rpc *rpc;
    struct dialing *dialing;
    struct budget *memory;
    int32_t node_id;
    char client_id[64];
    const struct raft *raft;
    bool stopped;
    int64_t retry_us;
    struct list waiting; /* to be sent */
    struct list ended;   /* before they were sent; complete at the next settle */
    struct channel_call *in_flight;
    struct peer *peer; /* to the leader below; NULL: none is open */
    uint32_t peers_n;  /* opened and closed, ever */
    int32_t leader_id;
    char host[256];
    uint16_t port;
    bool silent;           /* it did not answer in time: another connection is tried */
    uint32_t failures_n;   /* in a row */
    int64_t not_before_us; /* after a failure */
    struct timer timer;    /* wakes the node then */
    int64_t now_us;        /* of the settle that runs */
};

/* ------------------------------------------------------------------ peers */

static bool is_self(const struct channel *c, int32_t leader_id)
{
    return leader_id == c->node_id;
}

/* Its call in flight completes with ERR_CANCELLED. */
static void close_peer(struct channel *c)
{
    struct peer *p = c->peer;
    c->peer = NULL;
    c->silent = false;
    if (p == NULL)
        return;
    c->peers_n++;
    if (is_self(c, c->leader_id))
        peer_free(p);
    else
        c->dialing->close(c->dialing, p);
}

static enum err open_peer(struct channel *c, const struct leader *l)
{
    if (l->host.n < 0 || (size_t)l->host.n >= sizeof c->host)
        return ERR_INVALID;
    memcpy(c->host, l->host.p, (size_t)l->host.n);
    c->host[l->host.n] = '\0';
    c->port = l->port;
    c->leader_id = l->id;
    c->peers_n++;
    if (is_self(c, l->id))
        return peer_new_loopback(c->rpc, c->timers, -1, str_of(c->client_id), &c->peer);
    if (c->dialing == NULL)
        return ERR_INVALID;
    const struct dialing_args args = {
        .host = c->host,
        .port = c->port,
        .timers = c->timers,
        .memory = c->memory,
        .client_id = str_of(c->client_id),
        .answer_max_bytes = ANSWER_MAX_BYTES,
    };
    return c->dialing->open(c->dialing, &args, &c->peer);
}

static bool is_open_to(const struct channel *c, const struct leader *l)
{
    return c->peer != NULL && c->leader_id == l->id &&
           (is_self(c, l->id) || (c->port == l->port && str_eq(str_of(c->host), l->host)));
}

/* ------------------------------------------------------------------ calls */

static void complete(struct channel_call *call, enum err e, const void *response)
{
    timer_cancel(call->channel->timers, &call->timer);
    call->done(call, e, response);
}

static bool complete_ended(struct channel *c)
{
    struct list *l;
    bool moved = false;
    while ((l = list_pop(&c->ended)) != NULL) {
        struct channel_call *call = LIST_ENTRY(l, struct channel_call, link);
        complete(call, call->ended, NULL);
        moved = true;
    }
    return moved;
}

static void end_call(struct channel_call *call, enum err e)
{
    struct channel *c = call->channel;
    if (call->ended != ERR_NONE)
        return;
    call->ended = e;
    if (c->in_flight == call) {
        peer_cancel(&call->call);
        return;
    }
    list_remove(&call->link);
    list_append(&c->ended, &call->link);
}

static void call_late(struct timer *t)
{
    end_call(CONTAINER_OF(t, struct channel_call, timer), ERR_TIMEOUT);
}

/* Out of memory for the timer that ends the pause: there must be none then. */
static bool pause_sending(struct channel *c)
{
    c->not_before_us = c->now_us + backoff_us(c->retry_us, c->failures_n++, DOUBLINGS_MAX);
    return timer_arm(c->timers, &c->timer, c->not_before_us) == ERR_NONE;
}

/* Another try may end otherwise. */
static bool may_try_again(const struct channel_call *call, enum err e, const void *response)
{
    if (e == ERR_NONE)
        return call->error != NULL && call->error(response) == K_NOT_CONTROLLER;
    return e == ERR_CLOSED || e == ERR_CORRUPT || e == ERR_TIMEOUT;
}

static void answered(struct peer_call *pc, enum err e, const void *response)
{
    struct channel_call *call = CONTAINER_OF(pc, struct channel_call, call);
    struct channel *c = call->channel;
    c->in_flight = NULL;
    c->silent = e == ERR_TIMEOUT;
    if (call->ended != ERR_NONE) {
        complete(call, call->ended, NULL);
    } else if (e == ERR_CANCELLED) { /* the leader is another one */
        list_prepend(&c->waiting, &call->link);
    } else if (!may_try_again(call, e, response)) {
        c->failures_n = 0;
        complete(call, e, response);
    } else if (pause_sending(c)) {
        list_prepend(&c->waiting, &call->link);
    } else {
        complete(call, ERR_NOMEM, NULL);
    }
}

static void send_call(struct channel *c, struct channel_call *call, struct now now)
{
    list_remove(&call->link);
    c->in_flight = call;
    call->call = (struct peer_call){.api_key = call->api_key,
                                    .max_version = -1,
                                    .fixed_version = -1,
                                    .request = call->request,
                                    .keep = call->keep,
                                    .deadline_us = now.mono_us + TRY_MAX_US,
                                    .done = answered};
    peer_call(c->peer, &call->call, now);
}

/* To the leader of now; a peer to another one is closed, and what it has not answered waits. */
static bool send_next(struct channel *c, struct now now)
{
    struct leader l;
    if (c->stopped || (c->in_flight == NULL && list_empty(&c->waiting)))
        return false;
    if (!raft_leader_endpoint(c->raft, &l.id, &l.host, &l.port))
        return false;
    if (c->peer != NULL && !is_open_to(c, &l)) {
        close_peer(c);
        c->failures_n = 0; /* they were another one's */
        c->not_before_us = INT64_MIN;
    }
    if (c->silent)
        close_peer(c);
    if (c->in_flight != NULL || list_empty(&c->waiting) || now.mono_us < c->not_before_us)
        return false;
    struct channel_call *call = LIST_ENTRY(c->waiting.next, struct channel_call, link);
    if (c->peer == NULL && open_peer(c, &l) != ERR_NONE) {
        if (!pause_sending(c))
            end_call(call, ERR_NOMEM);
        return true;
    }
    send_call(c, call, now);
    return true;
}

void channel_call(struct channel *c, struct channel_call *call, struct now now)
{
    (void)now;
    call->channel = c;
    call->ended = ERR_NONE;
    call->timer = (struct timer){.fire = call_late};
    list_init(&call->link);
    list_append(&c->waiting, &call->link);
    if (c->stopped)
        end_call(call, ERR_CANCELLED);
    else if (call->deadline_us != INT64_MAX &&
             timer_arm(c->timers, &call->timer, call->deadline_us) != ERR_NONE)
        end_call(call, ERR_NOMEM);
}

void channel_cancel(struct channel_call *call)
{
    end_call(call, ERR_CANCELLED);
}

bool channel_cut_range(const struct channel *c, int16_t api_key, int16_t *min, int16_t *max)
{
    bool told;
    int16_t least, most;
    struct leader l;
    if (c->peer == NULL || is_self(c, c->leader_id) ||
        !raft_leader_endpoint(c->raft, &l.id, &l.host, &l.port) || !is_open_to(c, &l))
        return true;
    if (!peer_range(c->peer, api_key, &told, &least, &most))
        return !told;
    *min = least > *min ? least : *min;
    *max = most < *max ? most : *max;
    return *min <= *max;
}

uint64_t channel_ranges_turn(const struct channel *c)
{
    return (uint64_t)c->peers_n << 32 | (c->peer == NULL ? 0 : peer_ranges_turn(c->peer));
}

bool channel_settle(struct channel *c, struct now now)
{
    c->now_us = now.mono_us;
    bool moved = complete_ended(c);
    moved |= send_next(c, now);
    if (c->peer != NULL)
        moved |= peer_settle(c->peer, now);
    return moved;
}

/* ------------------------------------------------------------------ new, free */

/* Waking up is all there is to do: the settle looks at the clock. */
static void pause_over(struct timer *t)
{
    (void)t;
}

enum err channel_new(const struct channel_args *args, struct channel **out)
{
    struct channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    if (args->client_id.n < 0 || (size_t)args->client_id.n >= sizeof c->client_id) {
        free(c);
        return ERR_INVALID;
    }
    c->timers = args->timers;
    c->rpc = args->rpc;
    c->dialing = args->dialing;
    c->memory = args->memory;
    c->node_id = args->node_id;
    memcpy(c->client_id, args->client_id.p, (size_t)args->client_id.n);
    c->raft = args->raft;
    c->retry_us = (int64_t)args->retry_ms * 1000;
    c->not_before_us = INT64_MIN;
    c->timer.fire = pause_over;
    list_init(&c->waiting);
    list_init(&c->ended);
    *out = c;
    return ERR_NONE;
}

void channel_stop(struct channel *c)
{
    c->stopped = true;
    if (c->in_flight != NULL)
        c->in_flight->ended = ERR_CANCELLED;
    close_peer(c);
    CHECK(c->in_flight == NULL);
    while (!list_empty(&c->waiting))
        end_call(LIST_ENTRY(c->waiting.next, struct channel_call, link), ERR_CANCELLED);
    timer_cancel(c->timers, &c->timer);
}

void channel_free(struct channel *c)
{
    if (c == NULL)
        return;
    channel_stop(c);
    (void)complete_ended(c);
    free(c);
}
