/* To another node: bytes are a driver's. The buffer of answers grows to the frame that is coming,
 * by doubling as bytes really come, and what it takes is charged first. One that large answers have
 * made large is kept while they come, for its pages are warm, and freed when they no longer do. */
#include <stdlib.h>

#include "base/backoff.h"
#include "base/check.h"
#include "base/endian.h"
#include "base/limits.h"
#include "rpc/peer_impl.h"

enum {
    RECV_MIN_BYTES = 16 << 10,
    LARGE_MAX_US = 1000 * 1000, /* that a large buffer waits for the next large answer */
    BACKOFF_MIN_US = 50 * 1000,
    BACKOFF_DOUBLINGS = 5,
};

enum remote_state {
    REMOTE_IDLE,
    REMOTE_WANTED, /* calls wait for a connection */
    REMOTE_CONNECTED,
    REMOTE_ENDING, /* to be closed by the driver */
};

struct remote {
    struct peer peer;
    enum remote_state state;
    enum err ended; /* until the next settle */
    struct budget *memory;
    uint32_t answer_max_bytes;
    int64_t filled_us; /* when much of the buffer was last needed */
    int64_t connect_at_us;
    void (*ready)(void *driver);
    void *driver;
};

static struct remote *of(const struct peer *p)
{
    return CONTAINER_OF(p, struct remote, peer);
}

/* ------------------------------------------------------------------ the way of a peer's bytes */

static enum err remote_connect(struct peer *p, struct now now)
{
    struct remote *r = of(p);
    (void)now;
    if (r->state == REMOTE_CONNECTED)
        return ERR_NONE;
    if (r->state == REMOTE_IDLE) {
        r->state = REMOTE_WANTED;
        r->ready(r->driver);
    }
    return ERR_AGAIN;
}

static enum err remote_receive(struct peer *p, struct now now)
{
    return ERR_NONE; /* peer_recv does */
}

static void remote_send(struct peer *p, struct now now)
{
    if (p->out_sent < p->out.n)
        of(p)->ready(of(p)->driver);
}

static enum err remote_ended(const struct peer *p)
{
    return of(p)->ended;
}

static void forget_answers(struct remote *r)
{
    budget_give(r->memory, r->peer.in.cap);
    buf_close(&r->peer.in);
}

static void remote_emptied(struct peer *p, size_t n, struct now now)
{
    struct remote *r = of(p);
    if (p->in.cap <= 2 * RECV_MIN_BYTES || n >= p->in.cap / 4)
        r->filled_us = now.mono_us;
    else if (now.mono_us - r->filled_us >= LARGE_MAX_US)
        forget_answers(r);
}

static void remote_disconnect(struct peer *p, struct now now)
{
    struct remote *r = of(p);
    (void)now;
    r->ended = ERR_NONE;
    forget_answers(r);
    free(p->ranges); /* what answers there next may be another version */
    p->ranges_turn += p->ranges != NULL;
    p->ranges = NULL;
    p->ranges_n = 0;
    p->versions_version = PEER_API_VERSIONS;
    if (r->state != REMOTE_CONNECTED)
        return;
    r->state = REMOTE_ENDING;
    r->ready(r->driver);
}

static void remote_free(struct peer *p)
{
    CHECK(of(p)->state != REMOTE_ENDING); /* nor connected, until a moment ago */
    forget_answers(of(p));
    buf_close(&p->out);
    free(of(p));
}

static const struct peer_way way = {remote_connect, remote_receive,    remote_emptied, remote_send,
                                    remote_ended,   remote_disconnect, remote_free};

/* ------------------------------------------------------------------ driver's side */

enum err peer_new(const struct peer_args *args, struct peer **out)
{
    struct remote *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    CHECK(args->answer_max_bytes <= PEER_ANSWER_MAX_BYTES);
    r->memory = args->memory;
    r->answer_max_bytes = args->answer_max_bytes;
    r->connect_at_us = INT64_MIN;
    r->ready = args->ready;
    r->driver = args->driver;
    peer_init(&r->peer, &way, args->timers, args->memory, args->client_id);
    *out = &r->peer;
    return ERR_NONE;
}

enum peer_want peer_wants(const struct peer *p)
{
    switch (of(p)->state) {
    case REMOTE_IDLE:
        return PEER_WANTS_NOTHING;
    case REMOTE_WANTED:
        return PEER_WANTS_CONNECTION;
    case REMOTE_CONNECTED:
        return p->out_sent < p->out.n ? PEER_WANTS_SEND : PEER_WANTS_NOTHING;
    case REMOTE_ENDING:
        return PEER_WANTS_END;
    }
    return PEER_WANTS_NOTHING;
}

void *peer_driver(const struct peer *p)
{
    return of(p)->driver;
}

int64_t peer_connect_at_us(const struct peer *p)
{
    return of(p)->connect_at_us;
}

void peer_connected(struct peer *p, struct now now)
{
    (void)now;
    CHECK(of(p)->state == REMOTE_WANTED);
    of(p)->state = REMOTE_CONNECTED;
    p->refused = false;
}

void peer_disconnected(struct peer *p, struct now now)
{
    struct remote *r = of(p);
    CHECK(r->state != REMOTE_IDLE);
    if (r->state != REMOTE_ENDING) /* its calls have been told */
        r->ended = ERR_CLOSED;
    r->state = REMOTE_IDLE;
    p->refused = false;
    r->connect_at_us = now.mono_us + backoff_us(BACKOFF_MIN_US, p->failures_n++, BACKOFF_DOUBLINGS);
}

void peer_refused(struct peer *p, struct now now)
{
    peer_disconnected(p, now);
    p->refused = true;
}

/* Bytes still to come of the last frame in the buffer, which may begin with whole ones; 0: its
 * length is not known. False: one is longer than allowed. */
static bool frame_rest(const struct remote *r, size_t *rest)
{
    const struct buf *in = &r->peer.in;
    size_t pos = 0;
    *rest = 0;
    while (in->n - pos >= PEER_LENGTH_BYTES) {
        const uint32_t n = be32(in->p + pos);
        if (n > r->answer_max_bytes)
            return false;
        pos += PEER_LENGTH_BYTES + (size_t)n;
        if (pos > in->n) {
            *rest = pos - in->n;
            return true;
        }
    }
    return true;
}

/* Room for n more bytes, charged first. */
static enum err reserve(struct remote *r, size_t n)
{
    struct buf *in = &r->peer.in;
    const size_t before = in->cap;
    if (n <= in->cap - in->n)
        return ERR_NONE;
    const size_t cap = in->n + n > 2 * before ? in->n + n : 2 * before; /* as buf_reserve */
    if (!budget_take(r->memory, cap - before))
        return ERR_NOMEM;
    enum err e = buf_reserve(in, cap - in->n);
    budget_give(r->memory, cap - in->cap); /* nothing, or all when malloc refused */
    return e;
}

void peer_recv_space(struct peer *p, uint8_t **to, size_t *room)
{
    struct remote *r = of(p);
    *to = NULL;
    *room = 0;
    if (r->state != REMOTE_CONNECTED || r->ended != ERR_NONE)
        return;
    size_t n;
    (void)frame_rest(r, &n);
    n = n < LIMIT_TURN_READ_BYTES ? n : LIMIT_TURN_READ_BYTES;
    r->ended = reserve(r, n > RECV_MIN_BYTES ? n : RECV_MIN_BYTES);
    if (r->ended != ERR_NONE)
        return;
    *to = p->in.p + p->in.n;
    *room =
        p->in.cap - p->in.n < LIMIT_TURN_READ_BYTES ? p->in.cap - p->in.n : LIMIT_TURN_READ_BYTES;
}

void peer_recv(struct peer *p, size_t n)
{
    struct remote *r = of(p);
    size_t rest;
    if (r->state != REMOTE_CONNECTED)
        return;
    p->in.n += n;
    CHECK(p->in.n <= p->in.cap);
    if (!frame_rest(r, &rest))
        r->ended = ERR_TOO_LARGE;
}

struct bytes peer_peek(const struct peer *p)
{
    const size_t left = p->out.n - p->out_sent;
    const int32_t n = left > INT32_MAX ? INT32_MAX : (int32_t)left;
    return (struct bytes){n == 0 ? NULL : p->out.p + p->out_sent, n};
}

void peer_sent(struct peer *p, size_t n)
{
    peer_out_gone(p, n);
}
