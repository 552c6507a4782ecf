/* A connection is tried at each address of its host in turn, each within a deadline. A socket is
 * read whenever bytes come, as much as the peer has room for and at most a turn's share; what it
 * cannot take is sent when there is room again. */
#include "net/dialer.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "net/pacing.h"

enum dial_state {
    DIAL_IDLE,
    DIAL_WAITING, /* after a failure, until the peer wants to try again */
    DIAL_LOOKING_UP,
    DIAL_CONNECTING,
    DIAL_CONNECTED,
};

struct dial {
    struct dialer *owner;
    struct peer *peer; /* NULL: freed while the host is looked up */
    struct list all, due;
    enum dial_state state;
    int fd;
    ev_io in, out;
    struct timer timer; /* of waiting and connecting */
    struct resolve resolve;
    size_t address; /* that is tried; the next one */
    size_t refused; /* addresses where nobody listens */
    char name[RESOLVE_HOST_BYTES + 16];
    char reason[RESOLVE_REASON_BYTES];
};

static void make_due(struct dial *dl)
{
    if (list_empty(&dl->due))
        list_append(&dl->owner->due, &dl->due);
}

static void peer_ready(void *driver)
{
    make_due(driver);
}

static void say(struct dial *dl, const char *reason)
{
    snprintf(dl->reason, sizeof dl->reason, "%s", reason);
}

static void say_errno(struct dial *dl, int errnum)
{
    char text[RESOLVE_REASON_BYTES];
    say(dl, strerror_r(errnum, text, sizeof text));
}

static void close_socket(struct dial *dl)
{
    ev_io_stop(dl->owner->loop->ev, &dl->in);
    ev_io_stop(dl->owner->loop->ev, &dl->out);
    timer_cancel(dl->owner->timers, &dl->timer);
    if (dl->fd != -1)
        (void)close(dl->fd);
    dl->fd = -1;
}

static void ended(struct dial *dl)
{
    close_socket(dl);
    dl->state = DIAL_IDLE;
    dl->owner->lost = true;
}

/* The peer hears of it and wants the next connection when it has calls. */
static void lose(struct dial *dl)
{
    ended(dl);
    peer_disconnected(dl->peer, dl->owner->loop->now);
}

/* Nobody listens at any of its addresses. */
static void refused(struct dial *dl)
{
    ended(dl);
    peer_refused(dl->peer, dl->owner->loop->now);
}

/* ------------------------------------------------------------------ connecting */

static void connected(struct dial *dl)
{
    timer_cancel(dl->owner->timers, &dl->timer);
    ev_io_stop(dl->owner->loop->ev, &dl->out);
    ev_io_set(&dl->in, dl->fd, EV_READ);
    ev_io_start(dl->owner->loop->ev, &dl->in);
    dl->state = DIAL_CONNECTED;
    dl->reason[0] = '\0';
    peer_connected(dl->peer, dl->owner->loop->now);
}

static void failed(struct dial *dl, int errnum)
{
    dl->refused += errnum == ECONNREFUSED;
    say_errno(dl, errnum);
}

/* A socket on its way to the address; false with errno. */
static bool begin_connect(struct dial *dl, const struct sockaddr_storage *a)
{
    const int on = 1;
    char pacing[PACING_NAME_BYTES];
    const unsigned silent_ms = LIMIT_CONNECT_MS;
    dl->fd = socket(a->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (dl->fd == -1)
        return false;
    (void)setsockopt(dl->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(dl->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (pacing_is_needless(a))
        pacing_stop(dl->fd, pacing);
    (void)setsockopt(dl->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    return connect(dl->fd, (const struct sockaddr *)a, resolve_size(a)) != -1 ||
           errno == EINPROGRESS;
}

static void try_next_address(struct dial *dl)
{
    struct dialer *d = dl->owner;
    const int64_t deadline_us = d->loop->now.mono_us + (int64_t)LIMIT_CONNECT_MS * 1000;
    while (dl->address < dl->resolve.n) {
        close_socket(dl);
        if (!begin_connect(dl, &dl->resolve.addresses[dl->address++])) {
            failed(dl, errno);
            continue;
        }
        if (timer_arm(d->timers, &dl->timer, deadline_us) != ERR_NONE) {
            say_errno(dl, ENOMEM);
            break;
        }
        dl->state = DIAL_CONNECTING;
        ev_io_set(&dl->out, dl->fd, EV_WRITE);
        ev_io_start(d->loop->ev, &dl->out);
        return;
    }
    if (dl->refused > 0 && dl->refused == dl->resolve.n)
        refused(dl);
    else
        lose(dl);
}

static void connect_ended(struct dial *dl)
{
    int errnum = 0;
    socklen_t n = sizeof errnum;
    if (getsockopt(dl->fd, SOL_SOCKET, SO_ERROR, &errnum, &n) == -1)
        errnum = errno;
    if (errnum == 0) {
        connected(dl);
        return;
    }
    failed(dl, errnum);
    try_next_address(dl);
}

static void looked_up(struct resolve *r)
{
    struct dial *dl = CONTAINER_OF(r, struct dial, resolve);
    if (dl->peer == NULL) {
        free(dl);
        return;
    }
    if (r->n == 0)
        say(dl, r->reason);
    dl->address = dl->refused = 0;
    try_next_address(dl);
}

static void begin(struct dial *dl)
{
    dl->state = DIAL_LOOKING_UP;
    if (resolve_digits(&dl->resolve))
        looked_up(&dl->resolve);
    else
        resolve_start(&dl->resolve, dl->owner->env);
}

static void timer_fired(struct timer *t)
{
    struct dial *dl = CONTAINER_OF(t, struct dial, timer);
    if (dl->state == DIAL_CONNECTING) {
        say_errno(dl, ETIMEDOUT);
        try_next_address(dl);
        return;
    }
    dl->state = DIAL_IDLE;
    make_due(dl);
}

/* Now, or when the peer's pause is over. */
static void connect_or_wait(struct dial *dl)
{
    struct dialer *d = dl->owner;
    const int64_t at_us = peer_connect_at_us(dl->peer);
    if (dl->state != DIAL_IDLE)
        return;
    if (at_us <= d->loop->now.mono_us || timer_arm(d->timers, &dl->timer, at_us) != ERR_NONE)
        begin(dl);
    else
        dl->state = DIAL_WAITING;
}

/* ------------------------------------------------------------------ bytes */

static void on_readable(struct ev_loop *ev, ev_io *w, int events)
{
    struct dial *dl = CONTAINER_OF(w, struct dial, in);
    uint8_t *to;
    size_t room, total = 0;
    while (total < LIMIT_TURN_READ_BYTES) {
        peer_recv_space(dl->peer, &to, &room);
        if (room == 0)
            return; /* the peer is about to end it */
        const ssize_t n = recv(dl->fd, to, room, 0);
        if (n > 0) {
            peer_recv(dl->peer, (size_t)n);
            total += (size_t)n;
        }
        if (n == -1 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            if (n == 0)
                say(dl, "the broker closed the connection");
            else
                say_errno(dl, errno);
            lose(dl);
            return;
        }
        if ((size_t)n < room)
            return;
    }
}

static void on_writable(struct ev_loop *ev, ev_io *w, int events)
{
    struct dial *dl = CONTAINER_OF(w, struct dial, out);
    if (dl->state == DIAL_CONNECTING) {
        connect_ended(dl);
        return;
    }
    ev_io_stop(ev, &dl->out);
    make_due(dl);
}

static void flush(struct dial *dl)
{
    struct bytes left;
    if (ev_is_active(&dl->out)) /* there was no room a moment ago */
        return;
    while ((left = peer_peek(dl->peer)).n > 0) {
        const ssize_t n = send(dl->fd, left.p, (size_t)left.n, MSG_NOSIGNAL);
        if (n > 0)
            peer_sent(dl->peer, (size_t)n);
        if (n == left.n || (n == -1 && errno == EINTR))
            continue;
        if (n == -1 && errno != EAGAIN) {
            say_errno(dl, errno);
            lose(dl);
            return;
        }
        ev_io_set(&dl->out, dl->fd, EV_WRITE);
        ev_io_start(dl->owner->loop->ev, &dl->out);
        return;
    }
}

/* ------------------------------------------------------------------ the turn */

bool dialer_settle(struct dialer *d)
{
    struct list *l;
    d->lost = false;
    while ((l = list_pop(&d->due)) != NULL) {
        struct dial *dl = LIST_ENTRY(l, struct dial, due);
        switch (peer_wants(dl->peer)) {
        case PEER_WANTS_NOTHING:
            break;
        case PEER_WANTS_CONNECTION:
            connect_or_wait(dl);
            break;
        case PEER_WANTS_SEND:
            flush(dl);
            break;
        case PEER_WANTS_END:
            lose(dl);
            break;
        }
    }
    return d->lost;
}

/* ------------------------------------------------------------------ beginning and end */

static enum err open_peer(struct dialing *dialing, const struct dialing_args *args,
                          struct peer **out)
{
    struct dial *dl;
    enum err e = dial_new(CONTAINER_OF(dialing, struct dialer, dialing), args, &dl);
    if (e == ERR_NONE)
        *out = dl->peer;
    return e;
}

static void close_peer(struct dialing *dialing, struct peer *p)
{
    (void)dialing;
    dial_free(peer_driver(p));
}

void dialer_init(struct dialer *d, struct loop *loop, struct timers *timers, struct env *env)
{
    *d = (struct dialer){
        .dialing = {.open = open_peer, .close = close_peer},
        .loop = loop,
        .timers = timers,
        .env = env,
    };
    list_init(&d->all);
    list_init(&d->due);
}

enum err dial_new(struct dialer *d, const struct dialing_args *args, struct dial **out)
{
    struct dial *dl = calloc(1, sizeof *dl);
    if (dl == NULL)
        return ERR_NOMEM;
    if (args->host[0] == '\0' || strlen(args->host) >= sizeof dl->resolve.host) {
        free(dl);
        return ERR_INVALID;
    }
    const struct peer_args peer_args = {.timers = args->timers,
                                        .memory = args->memory,
                                        .client_id = args->client_id,
                                        .answer_max_bytes = args->answer_max_bytes,
                                        .ready = peer_ready,
                                        .driver = dl};
    dl->owner = d;
    dl->fd = -1;
    dl->timer.fire = timer_fired;
    dl->resolve.port = args->port;
    dl->resolve.done = looked_up;
    snprintf(dl->resolve.host, sizeof dl->resolve.host, "%s", args->host);
    const bool v6 = strchr(args->host, ':') != NULL;
    snprintf(dl->name, sizeof dl->name, "%s%s%s:%u", v6 ? "[" : "", args->host, v6 ? "]" : "",
             args->port);
    ev_io_init(&dl->in, on_readable, -1, EV_READ);
    ev_io_init(&dl->out, on_writable, -1, EV_WRITE);
    list_init(&dl->all);
    list_init(&dl->due);
    enum err e = peer_new(&peer_args, &dl->peer);
    if (e != ERR_NONE) {
        free(dl);
        return e;
    }
    list_append(&d->all, &dl->all);
    *out = dl;
    return ERR_NONE;
}

struct peer *dial_peer(struct dial *dl)
{
    return dl->peer;
}

const char *dial_name(const struct dial *dl)
{
    return dl->name;
}

const char *dial_reason(const struct dial *dl)
{
    return dl->reason;
}

bool dial_looking_up(const struct dial *dl)
{
    return dl->state == DIAL_LOOKING_UP;
}

void dial_free(struct dial *dl)
{
    if (dl->state == DIAL_CONNECTING || dl->state == DIAL_CONNECTED)
        lose(dl);
    close_socket(dl);
    list_remove(&dl->all);
    list_remove(&dl->due);
    peer_free(dl->peer);
    dl->peer = NULL;
    if (!dial_looking_up(dl))
        free(dl);
}

void dialer_close(struct dialer *d)
{
    while (!list_empty(&d->all))
        dial_free(LIST_ENTRY(d->all.next, struct dial, all));
}
