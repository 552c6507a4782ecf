/* The descriptor is shared with whoever started us, so it is not made non-blocking: poll says when
 * a pipe takes PIPE_BUF bytes without waiting, and no more than that is written at a time. */
#include "cli/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/loop.h"

static struct output *of_room(ev_io *w)
{
    return CONTAINER_OF(w, struct output, room);
}

static void on_room(struct ev_loop *ev, ev_io *w, int events)
{
    ev_io_stop(ev, &of_room(w)->room);
}

/* The writing end of a pipe is never readable: an event is its reader's end. */
static void on_gone(struct ev_loop *ev, ev_io *w, int events)
{
    struct output *o = CONTAINER_OF(w, struct output, gone);
    o->closed = true;
    ev_io_stop(ev, &o->gone);
}

void output_init(struct output *o, struct client *c)
{
    struct stat st;
    *o = (struct output){.client = c};
    buf_init(&o->buf);
    const bool known = fstat(STDOUT_FILENO, &st) != -1;
    o->polled = !known || S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode) || S_ISSOCK(st.st_mode);
    (void)signal(SIGPIPE, SIG_IGN);
    ev_io_init(&o->room, on_room, STDOUT_FILENO, EV_WRITE);
    ev_io_init(&o->gone, on_gone, STDOUT_FILENO, EV_READ);
    if (known && S_ISFIFO(st.st_mode))
        ev_io_start(client_loop(c)->ev, &o->gone);
}

void output_close(struct output *o)
{
    ev_io_stop(client_loop(o->client)->ev, &o->room);
    ev_io_stop(client_loop(o->client)->ev, &o->gone);
    buf_close(&o->buf);
}

static bool takes_bytes(const struct output *o)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return !o->polled || (poll(&p, 1, 0) == 1 && (p.revents & (POLLOUT | POLLERR | POLLHUP)) != 0);
}

bool output_pump(struct output *o)
{
    while (!o->closed && o->failed == 0 && o->sent < o->buf.n && takes_bytes(o)) {
        size_t n = o->buf.n - o->sent;
        if (o->polled && n > PIPE_BUF)
            n = PIPE_BUF;
        const ssize_t wrote = write(STDOUT_FILENO, o->buf.p + o->sent, n);
        if (wrote > 0) {
            o->sent += (size_t)wrote;
            o->gone_bytes += (size_t)wrote;
        } else if (wrote == -1 && errno == EPIPE)
            o->closed = true;
        else if (wrote == -1 && errno == EAGAIN)
            break;
        else if (wrote == -1 && errno != EINTR)
            o->failed = errno;
    }
    if (o->sent == o->buf.n)
        o->buf.n = o->sent = 0;
    return !o->closed && o->failed == 0;
}

/* What is gone makes room at the beginning. */
static void compact(struct output *o)
{
    memmove(o->buf.p, o->buf.p + o->sent, o->buf.n - o->sent);
    o->buf.n -= o->sent;
    o->sent = 0;
}

bool output_wait(struct output *o, size_t max)
{
    while (output_pump(o)) {
        if (o->buf.n - o->sent <= max) {
            if (o->sent > OUTPUT_WAIT_BYTES)
                compact(o);
            return true;
        }
        if (o->hurried)
            return false;
        ev_io_start(client_loop(o->client)->ev, &o->room);
        client_turn(o->client, INT64_MAX);
    }
    return false;
}
