/* Reading: one recv per readable socket and turn, as much as the connection has room for. Sending:
 * all that is answered in one sendmsg, slices by sendfile. sendfile has no flag for "more follows",
 * so around slices the socket is corked: header, records and what follows them share segments. A
 * short count means that the socket is full (the kernel then sends what it has, corked or not): it
 * is not tried again but watched for room, which saves the call that says EAGAIN.
 *
 * libev tells epoll of a changed interest once per iteration. Blocked, a socket is watched for room
 * only, else for bytes only, so each change of state costs one epoll_ctl at most; one that is not
 * to be read is left in the set until bytes do come. */
#include "net/sockets.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "os/error.h"
#include "os/vfs.h"

enum { PARTS_MAX = 256 }; /* of one sendmsg; a full pipeline of small answers */
_Static_assert(PARTS_MAX <= IOV_MAX, "one sendmsg takes them");

struct socket {
    ev_io in, out;
    struct sockets *owner;
    struct conn *conn;
    struct list all, blocked, sending;
    int64_t progress_us; /* while blocked: when bytes last went out */
    bool corked;         /* what does not fill a segment waits for more */
    size_t *count;       /* of its kind; or NULL */
};

static int fd_of(const struct socket *s)
{
    return s->in.fd;
}

static bool is_blocked(const struct socket *s)
{
    return !list_empty(&s->blocked);
}

static void socket_close(struct socket *s)
{
    struct sockets *ss = s->owner;
    ev_io_stop(ss->loop->ev, &s->in);
    ev_io_stop(ss->loop->ev, &s->out);
    list_remove(&s->all);
    list_remove(&s->blocked);
    list_remove(&s->sending);
    ss->n--;
    ss->closed_n++;
    if (s->count != NULL)
        (*s->count)--;
    (void)close(fd_of(s));
    conn_closed(s->conn, ss->loop->now);
    free(s);
}

/* ------------------------------------------------------------------ bytes in */

static void read_if_wanted(struct socket *s)
{
    struct ev_loop *ev = s->owner->loop->ev;
    if (!is_blocked(s) && conn_wants_recv(s->conn))
        ev_io_start(ev, &s->in);
    else
        ev_io_stop(ev, &s->in);
}

static void on_readable(struct ev_loop *ev, ev_io *w, int events)
{
    struct socket *s = CONTAINER_OF(w, struct socket, in);
    struct sockets *ss = s->owner;
    uint8_t *p;
    size_t room;
    conn_recv_space(s->conn, &p, &room);
    if (room > 0) {
        ssize_t n = recv(fd_of(s), p, room, 0);
        const bool again = n == -1 && (errno == EAGAIN || errno == EINTR);
        conn_recv(s->conn, n > 0 ? (size_t)n : 0, ss->loop->now);
        if (n == -1 && !again) {
            socket_close(s); /* the connection broke */
            return;
        }
        if (n == 0)
            conn_eof(s->conn, ss->loop->now);
        ss->received_bytes += n > 0 ? (uint64_t)n : 0;
    }
    read_if_wanted(s);
}

static void on_writable(struct ev_loop *ev, ev_io *w, int events)
{
    struct socket *s = CONTAINER_OF(w, struct socket, out);
    if (list_empty(&s->sending))
        list_append(&s->owner->sending, &s->sending);
}

/* ------------------------------------------------------------------ bytes out */

/* The memory at the beginning of parts, in one call; *want is how much that is. */
static ssize_t send_memory(int fd, const struct wire_part *parts, size_t parts_n, size_t *want)
{
    struct iovec iov[PARTS_MAX];
    size_t n = 0;
    *want = 0;
    for (; n < parts_n && parts[n].s.f == NULL; n++) {
        iov[n] = (struct iovec){(void *)(uintptr_t)parts[n].p, parts[n].n};
        *want += parts[n].n;
    }
    const bool more = n < parts_n || n == PARTS_MAX;
    const struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
    return sendmsg(fd, &msg, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

/* Part of a file. -1 and errno; ENODATA: the file ends before the slice does. */
static ssize_t send_slice(int fd, const struct slice *s, size_t *want)
{
    int from;
    *want = s->n;
    if (os_file_fd(s->f, &from) != ERR_NONE) {
        errno = EIO;
        return -1;
    }
    off_t off = (off_t)s->off;
    ssize_t n = sendfile(fd, from, &off, s->n);
    if (n == 0 && s->n > 0) {
        errno = ENODATA;
        return -1;
    }
    return n;
}

/* Two calls for an answer, but a segment costs more than ten of them. */
static void cork(struct socket *s, bool on)
{
    const int value = on;
    if (s->corked == on)
        return;
    s->corked = on;
    (void)setsockopt(fd_of(s), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

/* The connection is over when sending fails: quietly if it broke, else with the reason. */
static void send_failed(struct socket *s, int errnum)
{
    if (errnum != EPIPE && errnum != ECONNRESET && errnum != ETIMEDOUT)
        env_log(s->owner->env, LOG_WARN, "send_failed connection=%llu error=%s",
                (unsigned long long)conn_id(s->conn),
                errnum == ENODATA ? "SHORT_FILE" : err_name(os_error(errnum)));
    socket_close(s);
}

static void block(struct socket *s, bool progress)
{
    struct sockets *ss = s->owner;
    if (progress || !is_blocked(s)) {
        s->progress_us = ss->loop->now.mono_us;
        list_remove(&s->blocked);
        list_append(&ss->blocked, &s->blocked);
    }
    ev_io_stop(ss->loop->ev, &s->in);
    ev_io_start(ss->loop->ev, &s->out);
}

static void unblock(struct socket *s)
{
    if (!is_blocked(s))
        return;
    list_remove(&s->blocked);
    ev_io_stop(s->owner->loop->ev, &s->out);
    read_if_wanted(s);
}

/* Sends until nothing is left, the socket is full, or its share of the turn is used. */
static void flush(struct socket *s)
{
    struct sockets *ss = s->owner;
    struct wire_part parts[PARTS_MAX];
    size_t total = 0, n;
    while ((n = conn_peek(s->conn, parts, PARTS_MAX)) > 0) {
        if (total >= LIMIT_TURN_SEND_BYTES) {
            if (is_blocked(s))
                block(s, true);
            list_append(&ss->sending, &s->sending);
            return;
        }
        if (parts[n - 1].s.f != NULL)
            cork(s, true);
        size_t want;
        ssize_t sent = parts[0].s.f == NULL ? send_memory(fd_of(s), parts, n, &want)
                                            : send_slice(fd_of(s), &parts[0].s, &want);
        if (sent == -1 && errno == EINTR)
            continue;
        if (sent == -1 && errno != EAGAIN) {
            send_failed(s, errno);
            return;
        }
        if (sent != -1) {
            conn_sent(s->conn, (size_t)sent, ss->loop->now);
            total += (size_t)sent;
            ss->sent_bytes += (size_t)sent;
        }
        if (sent == -1)
            cork(s, false); /* full, though this call gave it nothing: what it has goes out */
        if (sent < (ssize_t)want) {
            block(s, total > 0);
            return;
        }
    }
    cork(s, false);
    unblock(s);
}

/* ------------------------------------------------------------------ the turn */

static void close_stuck(struct sockets *ss)
{
    const int64_t since_us = ss->loop->now.mono_us - (int64_t)LIMIT_SEND_DEADLINE_MS * 1000;
    while (!list_empty(&ss->blocked)) {
        struct socket *s = LIST_ENTRY(ss->blocked.next, struct socket, blocked);
        if (s->progress_us > since_us)
            return;
        env_log(ss->env, LOG_INFO,
                "connection_closed connection=%llu reason=\"the client took no bytes for %d ms\"",
                (unsigned long long)conn_id(s->conn), LIMIT_SEND_DEADLINE_MS);
        socket_close(s);
    }
}

static void send_all(struct sockets *ss)
{
    struct list ready, *l;
    struct conn *c;
    list_init(&ready);
    while ((l = list_pop(&ss->sending)) != NULL) /* who uses its share goes back to sending */
        list_append(&ready, l);
    while ((l = list_pop(&ready)) != NULL)
        flush(LIST_ENTRY(l, struct socket, sending));
    while ((c = rpc_next_output(ss->rpc)) != NULL) {
        struct socket *s = conn_driver(c);
        if (!is_blocked(s) && list_empty(&s->sending))
            flush(s);
    }
}

int64_t sockets_settle(struct sockets *ss)
{
    struct conn *c;
    send_all(ss);
    close_stuck(ss);
    while ((c = rpc_next_close(ss->rpc)) != NULL)
        socket_close(conn_driver(c));
    while ((c = rpc_next_resume(ss->rpc)) != NULL)
        read_if_wanted(conn_driver(c));
    if (!list_empty(&ss->sending))
        return ss->loop->now.mono_us;
    if (list_empty(&ss->blocked))
        return INT64_MAX;
    return LIST_ENTRY(ss->blocked.next, struct socket, blocked)->progress_us +
           (int64_t)LIMIT_SEND_DEADLINE_MS * 1000;
}

/* ------------------------------------------------------------------ beginning and end */

void sockets_init(struct sockets *ss, struct loop *loop, struct rpc *rpc, struct env *env)
{
    *ss = (struct sockets){.loop = loop, .rpc = rpc, .env = env};
    list_init(&ss->all);
    list_init(&ss->blocked);
    list_init(&ss->sending);
}

void sockets_add(struct sockets *ss, int fd, int listener, const char *address, size_t *count)
{
    struct socket *s = malloc(sizeof *s);
    struct conn *c = s == NULL ? NULL : conn_new(ss->rpc, listener, address, s, ss->loop->now);
    if (c == NULL) {
        env_log(ss->env, LOG_WARN, "connection_refused client=%s reason=\"out of memory\"",
                address);
        free(s);
        (void)close(fd);
        return;
    }
    *s = (struct socket){.owner = ss, .conn = c, .count = count};
    list_init(&s->blocked);
    list_init(&s->sending);
    list_init(&s->all);
    list_append(&ss->all, &s->all);
    ss->n++;
    if (count != NULL)
        (*count)++;
    ev_io_init(&s->in, on_readable, fd, EV_READ);
    ev_io_init(&s->out, on_writable, fd, EV_WRITE);
    read_if_wanted(s);
}

void sockets_close(struct sockets *ss)
{
    while (!list_empty(&ss->all))
        socket_close(LIST_ENTRY(ss->all.next, struct socket, all));
}
