/* Connections: bytes become frames, frames requests. See rpc.h for where received bytes live. Every
 * way a connection can go wrong ends in conn_fail: one log line, the driver closes it, its requests
 * are cancelled and complete without it. */
#include "rpc/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/endian.h"
#include "base/limits.h"

enum {
    LENGTH_BYTES = 4,
    FRAME_MIN = 8,                      /* api key, version, correlation id */
    PARTIAL_MIN_CAP = 64,               /* of a buffer for a frame whose length is not known yet */
    KEEP_IN_PLACE = POOL_BUF_BYTES / 2, /* smaller unfinished frames leave the large buffer */
};

static void frame_late(struct timer *t)
{
    conn_fail(CONTAINER_OF(t, struct conn, frame_timer), "a frame was not finished in time");
}

static void idle_check(struct timer *t)
{
    struct conn *c = CONTAINER_OF(t, struct conn, idle_timer);
    int64_t due = c->active_us + c->rpc->idle_max_us;
    if (c->requests_n == 0 && due <= c->rpc->now.mono_us) {
        conn_fail(c, NULL);
        return;
    }
    if (due <= c->rpc->now.mono_us)
        due = c->rpc->now.mono_us + c->rpc->idle_max_us;
    if (timer_arm(c->rpc->timers, t, due) != ERR_NONE)
        conn_fail(c, "out of memory");
}

struct conn *conn_new(struct rpc *rpc, int listener, const char *address, void *driver,
                      struct now now)
{
    rpc->now = now;
    const size_t address_n = strlen(address) + 1;
    if (rpc->stopping || !budget_take(rpc->small, sizeof(struct conn) + address_n))
        return NULL;
    struct conn *c = calloc(1, sizeof *c);
    char *copy = malloc(address_n);
    if (c == NULL || copy == NULL) {
        free(c);
        free(copy);
        budget_give(rpc->small, sizeof(struct conn) + address_n);
        return NULL;
    }
    memcpy(copy, address, address_n);
    c->rpc = rpc;
    c->id = ++rpc->next_conn_id;
    c->listener = listener;
    c->local = listener < 0;
    c->address = copy;
    c->driver = driver;
    c->active_us = now.mono_us;
    c->frame_timer.fire = frame_late;
    c->idle_timer.fire = idle_check;
    list_init(&c->requests);
    list_init(&c->output);
    list_init(&c->close);
    list_init(&c->resume);
    list_init(&c->starved);
    list_init(&c->all);
    list_append(&rpc->conns, &c->all);
    if (rpc->idle_max_us >= 0 && !c->local &&
        timer_arm(rpc->timers, &c->idle_timer, now.mono_us + rpc->idle_max_us) != ERR_NONE) {
        conn_closed(c, now);
        return NULL;
    }
    return c;
}

void *conn_driver(const struct conn *c)
{
    return c->driver;
}

uint64_t conn_id(const struct conn *c)
{
    return c->id;
}

void conn_fail(struct conn *c, const char *reason)
{
    if (c->closing)
        return;
    c->closing = true;
    if (reason != NULL)
        env_log(c->rpc->env, LOG_INFO, "connection_closed client=%s reason=\"%s\"", c->address,
                reason);
    list_remove(&c->output);
    list_remove(&c->starved);
    if (!c->local)
        list_append(&c->rpc->close, &c->close);
}

/* Requests that run go on without the connection and are asked to hurry. */
static void orphan_requests(struct conn *c)
{
    struct rpc *rpc = c->rpc;
    struct list cancelled, *l;
    c->queued = NULL;
    list_init(&cancelled);
    while ((l = list_pop(&c->requests)) != NULL) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        r->conn = NULL;
        r->client_address = "gone";
        if (r->state == REQUEST_RUNNING)
            list_append(&cancelled, &r->link);
        else
            request_free(rpc, r);
    }
    while ((l = list_pop(&cancelled)) != NULL) {
        list_append(&rpc->orphans, l);
        rpc->handler.cancel(rpc->handler.ctx, LIST_ENTRY(l, struct request, link));
    }
}

void conn_closed(struct conn *c, struct now now)
{
    struct rpc *rpc = c->rpc;
    rpc->now = now;
    c->closing = true;
    if (c->mark != 0 && rpc->handler.lost != NULL)
        rpc->handler.lost(rpc->handler.ctx, c->mark, now);
    orphan_requests(c);
    timer_cancel(rpc->timers, &c->frame_timer);
    timer_cancel(rpc->timers, &c->idle_timer);
    pool_unref(c->in);
    list_remove(&c->output);
    list_remove(&c->close);
    list_remove(&c->resume);
    list_remove(&c->starved);
    list_remove(&c->all);
    budget_give(rpc->small, sizeof *c + strlen(c->address) + 1);
    free(c->address);
    free(c);
}

/* ------------------------------------------------------------------ the end of input */

/* A client that closed and one that only said all it had to say look alike from here. Both get
 * their answers, at once: none of them shall hold a long poll. A Produce ends by itself. */
static void hasten(struct conn *c)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->requests)
    {
        struct request *r = LIST_ENTRY(l, struct request, link);
        if (r->state == REQUEST_RUNNING && r->api_key != API_PRODUCE)
            c->rpc->handler.cancel(c->rpc->handler.ctx, r);
    }
}

void conn_check_ended(struct conn *c)
{
    if (c->ended && c->requests_n == 0)
        conn_fail(c, NULL);
}

void conn_eof(struct conn *c, struct now now)
{
    c->rpc->now = now;
    if (c->ended || c->closing)
        return;
    c->ended = true;
    pool_unref(c->in); /* a part of a frame */
    c->in = NULL;
    timer_cancel(c->rpc->timers, &c->frame_timer);
    hasten(c);
    conn_check_ended(c);
}

/* ------------------------------------------------------------------ starting requests */

static bool may_start(const struct conn *c, const struct request *r)
{
    return c->running_n == 0 || (r->api_key == API_PRODUCE && c->running_unstaged_n == 0);
}

/* Handlers may complete inside start and come back here: `starting` makes that a loop. */
void conn_start_requests(struct conn *c)
{
    if (c->starting || c->rpc->stopping)
        return;
    c->starting = true;
    while (!c->closing && c->queued != NULL && may_start(c, c->queued)) {
        struct request *r = c->queued;
        struct list *next = r->link.next;
        c->queued = next == &c->requests ? NULL : LIST_ENTRY(next, struct request, link);
        r->state = REQUEST_RUNNING;
        c->running_n++;
        c->rpc->running_n++;
        c->running_unstaged_n++;
        c->rpc->handler.start(c->rpc->handler.ctx, r, c->rpc->now);
        if (c->ended)
            hasten(c);
    }
    c->starting = false;
}

/* ------------------------------------------------------------------ bytes in */

static bool add_request(struct conn *c, const uint8_t *p, size_t n, struct pool_buf *buf)
{
    struct request *r = request_new(c, p, n, buf);
    if (r == NULL) {
        conn_fail(c, "out of memory for a request");
        return false;
    }
    if (!c->rpc->handler.accept(c->rpc->handler.ctx, r)) {
        request_free(c->rpc, r);
        conn_fail(c, NULL); /* accept has told why */
        return false;
    }
    list_append(&c->requests, &r->link);
    c->requests_n++;
    if (c->queued == NULL)
        c->queued = r;
    return true;
}

/* Takes whole frames off [*start, end). False when the connection is to be closed. */
static bool take_frames(struct conn *c, struct pool_buf *buf, size_t *start, size_t end)
{
    while (end - *start >= LENGTH_BYTES) {
        const uint8_t *p = buf->data + *start;
        const int32_t n = (int32_t)be32(p);
        if (n < FRAME_MIN || n > c->rpc->request_max_bytes) {
            char reason[96];
            snprintf(reason, sizeof reason, "frame length %d is not in [%d,%d]", n, FRAME_MIN,
                     c->rpc->request_max_bytes);
            conn_fail(c, reason);
            return false;
        }
        if (end - *start - LENGTH_BYTES < (size_t)n)
            return true;
        *start += LENGTH_BYTES + (size_t)n;
        if (!add_request(c, p + LENGTH_BYTES, (size_t)n, buf))
            return false;
    }
    return true;
}

/* Bytes that the unfinished frame at the start of [p, p + n) will have in all. */
static size_t frame_need(const uint8_t *p, size_t n)
{
    return n < LENGTH_BYTES ? LENGTH_BYTES : LENGTH_BYTES + (size_t)be32(p);
}

/* The `have` bytes at p, which may lie in c->in, go to a buffer of their own. */
static void move_partial(struct conn *c, struct pool_buf *to, const uint8_t *p, size_t have)
{
    memcpy(to->data, p, have);
    pool_unref(c->in);
    c->in = to;
    c->in_start = 0;
    c->in_end = have;
}

/* For the whole of a large frame: a warm buffer where one is not too large for it. */
static struct pool_buf *frame_buf(struct rpc *rpc, size_t need)
{
    struct pool_buf *b =
        need >= KEEP_IN_PLACE && need <= POOL_BUF_BYTES ? pool_get(&rpc->pool) : NULL;
    return b != NULL ? b : pool_get_exact(&rpc->pool, rpc->pool.budget, need);
}

/* Puts an unfinished frame where it can be completed. Without memory for the whole of a large one,
 * what came is kept and the connection is not read until there is. */
static void keep_partial(struct conn *c, struct pool_buf *buf, size_t start, size_t end)
{
    struct rpc *rpc = c->rpc;
    const size_t have = end - start;
    const size_t need = frame_need(buf->data + start, have);
    const bool stays = buf == c->in || (buf != rpc->reserve && need >= KEEP_IN_PLACE);
    if (stays && start + need <= buf->cap) {
        if (c->in != buf) {
            pool_unref(c->in);
            c->in = pool_ref(buf);
        }
        c->in_start = start;
        c->in_end = end;
        return;
    }
    size_t cap = need < PARTIAL_MIN_CAP ? PARTIAL_MIN_CAP : need;
    struct pool_buf *to = need > LIMIT_SMALL_FRAME_BYTES
                              ? frame_buf(rpc, need)
                              : pool_get_exact(&rpc->pool, rpc->small, cap);
    if (to == NULL) {
        to = pool_get_exact(&rpc->pool, rpc->small, have);
        if (to != NULL && list_empty(&c->starved))
            list_append(&rpc->starved, &c->starved);
    }
    if (to == NULL) {
        conn_fail(c, "out of memory for a frame");
        return;
    }
    move_partial(c, to, buf->data + start, have);
}

bool conn_grow_partial(struct conn *c)
{
    const size_t have = c->in_end - c->in_start;
    const size_t need = frame_need(c->in->data + c->in_start, have);
    struct pool_buf *to = frame_buf(c->rpc, need);
    if (to == NULL)
        return false;
    move_partial(c, to, c->in->data + c->in_start, have);
    return true;
}

bool conn_wants_recv(const struct conn *c)
{
    return !c->closing && !c->ended && !c->paused && list_empty(&c->starved) && !c->rpc->stopping;
}

void conn_recv_space(struct conn *c, uint8_t **p, size_t *n)
{
    struct rpc *rpc = c->rpc;
    *p = NULL;
    *n = 0;
    if (!conn_wants_recv(c))
        return;
    if (c->in != NULL) { /* the rest of this frame, no more: the next one starts a fresh buffer */
        const size_t have = c->in_end - c->in_start;
        const size_t need = frame_need(c->in->data + c->in_start, have);
        *p = c->in->data + c->in_end;
        *n = (need < PARTIAL_MIN_CAP ? c->in->cap - c->in_start : need) - have;
    } else {
        if (rpc->scratch == NULL && (rpc->scratch = pool_get(&rpc->pool)) == NULL)
            rpc->scratch = pool_ref(rpc->reserve);
        *p = rpc->scratch->data;
        *n = rpc->scratch->cap;
    }
    if (*n > LIMIT_TURN_READ_BYTES + (64u << 10))
        *n = LIMIT_TURN_READ_BYTES;
}

/* The shared buffer is kept for the next connection unless frames in it are still in use. */
static void settle_scratch(struct rpc *rpc)
{
    if (rpc->scratch != NULL && (rpc->scratch->refs > 1 || rpc->scratch == rpc->reserve)) {
        pool_unref(rpc->scratch);
        rpc->scratch = NULL;
    }
}

static void watch_partial(struct conn *c)
{
    struct rpc *rpc = c->rpc;
    if (c->in == NULL) {
        timer_cancel(rpc->timers, &c->frame_timer);
        return;
    }
    if (!timer_armed(&c->frame_timer) &&
        timer_arm(rpc->timers, &c->frame_timer,
                  rpc->now.mono_us + (int64_t)LIMIT_FRAME_DEADLINE_MS * 1000) != ERR_NONE)
        conn_fail(c, "out of memory");
}

void conn_recv(struct conn *c, size_t n, struct now now)
{
    struct rpc *rpc = c->rpc;
    rpc->now = now;
    if (n > 0)
        c->active_us = now.mono_us;
    struct pool_buf *buf = c->in != NULL ? c->in : rpc->scratch;
    size_t start = c->in != NULL ? c->in_start : 0;
    size_t end = (c->in != NULL ? c->in_end : 0) + n;
    if (n == 0 || c->closing) {
        settle_scratch(rpc);
        return;
    }
    CHECK(buf != NULL && end <= buf->cap);
    pool_ref(buf);
    if (take_frames(c, buf, &start, end)) {
        if (start == end) {
            pool_unref(c->in);
            c->in = NULL;
        } else {
            keep_partial(c, buf, start, end);
        }
        watch_partial(c);
    }
    pool_unref(buf);
    settle_scratch(rpc);
    c->paused = c->requests_n >= LIMIT_PIPELINE;
    conn_start_requests(c);
}

void conn_check_resume(struct conn *c)
{
    if (c->paused && c->requests_n < LIMIT_PIPELINE / 2) {
        c->paused = false;
        if (!c->local && list_empty(&c->resume))
            list_append(&c->rpc->resume, &c->resume);
    }
}

/* ------------------------------------------------------------------ bytes out */

static struct request *first_answered(const struct conn *c)
{
    if (list_empty(&c->requests))
        return NULL;
    struct request *r = LIST_ENTRY(c->requests.next, struct request, link);
    return r->state == REQUEST_ANSWERED ? r : NULL;
}

void conn_check_output(struct conn *c)
{
    if (!c->closing && !c->local && list_empty(&c->output) && first_answered(c) != NULL)
        list_append(&c->rpc->output, &c->output);
}

size_t conn_peek(struct conn *c, struct wire_part *parts, size_t max)
{
    size_t n = 0;
    struct list *l;
    for (l = c->requests.next; l != &c->requests && n < max && !c->closing; l = l->next) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        if (r->state != REQUEST_ANSWERED)
            break;
        for (size_t i = r->answer_sent_n; i < r->answer.n && n < max; i++) {
            struct wire_part part = r->answer.v[i];
            if (part.s.f != NULL && part.s.generation != part.s.f->generation) {
                if (n == 0) /* what is before it may still go out */
                    conn_fail(c, "the log was truncated under an answer");
                return n;
            }
            const size_t skip = i == r->answer_sent_n ? r->answer_sent_bytes : 0;
            part.n -= skip;
            if (part.s.f != NULL) {
                part.s.off += skip;
                part.s.n -= (uint32_t)skip;
            } else {
                part.p += skip;
            }
            parts[n++] = part;
            if (part.s.f != NULL) /* goes out by itself: what is behind it is looked at then */
                return n;
        }
    }
    return n;
}

/* Consumes up to n bytes of one answer; true when all of it is out. */
static bool answer_consume(struct request *r, size_t *n)
{
    while (r->answer_sent_n < r->answer.n) {
        struct wire_part *part = &r->answer.v[r->answer_sent_n];
        const size_t left = part->n - r->answer_sent_bytes;
        if (*n < left) {
            r->answer_sent_bytes += *n;
            *n = 0;
            return false;
        }
        *n -= left;
        file_unref(part->s.f);
        r->answer_sent_n++;
        r->answer_sent_bytes = 0;
    }
    return true;
}

void conn_sent(struct conn *c, size_t n, struct now now)
{
    struct rpc *rpc = c->rpc;
    rpc->now = now;
    c->active_us = now.mono_us;
    struct request *r;
    while ((r = first_answered(c)) != NULL && answer_consume(r, &n)) {
        c->requests_n--;
        request_free(rpc, r);
    }
    CHECK(n == 0);
    conn_check_resume(c);
    conn_check_ended(c);
}
