/* A full process must not spin on a listening socket that stays readable: accepting pauses, with
 * one log line, until a connection ends, or a second later when it was an error of the machine. */
#include "net/acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "os/error.h"

enum { RETRY_US = 1000 * 1000, TELL_AGAIN_US = 60 * 1000 * 1000, ADDRESS_BYTES = 64 };

struct accept_watcher {
    ev_io io;
    struct acceptor *owner;
    const struct listen_socket *from;
    bool allowed;
};

/* "127.0.0.1:1234", "[::1]:1234"; an IPv4 client of an IPv6 socket by its IPv4 address. */
static void print_address(const struct sockaddr_storage *a, char out[ADDRESS_BYTES])
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)a;
        (void)inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
        snprintf(out, ADDRESS_BYTES, "%s:%u", text, ntohs(four->sin_port));
        return;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
    if (mapped)
        (void)inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, sizeof text);
    else
        (void)inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    snprintf(out, ADDRESS_BYTES, mapped ? "%s:%u" : "[%s]:%u", text, ntohs(six->sin6_port));
}

static bool full(const struct acceptor *a)
{
    return a->conns_n >= a->conns_max;
}

static void pause_accepting(struct acceptor *a, const char *reason)
{
    struct sockets *ss = a->sockets;
    const int64_t now_us = ss->loop->now.mono_us;
    a->paused = true;
    a->closed_n = ss->closed_n;
    a->retry_us = full(a) ? INT64_MAX : now_us + RETRY_US;
    for (size_t i = 0; i < a->n; i++)
        ev_io_stop(ss->loop->ev, &a->watchers[i].io);
    if (a->told_us != 0 && now_us - a->told_us < TELL_AGAIN_US)
        return;
    a->told_us = now_us;
    env_log(ss->env, LOG_WARN, "accept_paused reason=\"%s\" connections=%zu connections_max=%zu",
            reason, a->conns_n, a->conns_max);
}

/* The connection was gone before it was taken, or its network is: others may come. */
static bool of_one_connection(int errnum)
{
    return errnum == EINTR || errnum == ECONNABORTED || errnum == EPROTO || errnum == EPERM ||
           errnum == ENETDOWN || errnum == ENETUNREACH || errnum == EHOSTDOWN ||
           errnum == EHOSTUNREACH || errnum == ENONET || errnum == ENOPROTOOPT ||
           errnum == EOPNOTSUPP || errnum == ETIMEDOUT;
}

static void on_connection(struct ev_loop *ev, ev_io *w, int events)
{
    struct accept_watcher *watcher = CONTAINER_OF(w, struct accept_watcher, io);
    struct acceptor *a = watcher->owner;
    for (int i = 0; i < LIMIT_TURN_ACCEPTS; i++) {
        if (full(a)) {
            pause_accepting(a, "too many connections");
            return;
        }
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        int fd = accept4(w->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd != -1) {
            char address[ADDRESS_BYTES];
            print_address(&from, address);
            if (!pacing_is_needless(&from))
                pacing_give_back(fd, watcher->from->pacing);
            sockets_add(a->sockets, fd, watcher->from->listener, address, &a->conns_n);
        } else if (errno == EAGAIN) {
            return;
        } else if (!of_one_connection(errno)) {
            pause_accepting(a, err_name(os_error(errno)));
            return;
        }
    }
}

enum err acceptor_init(struct acceptor *a, const struct listeners *ls, bool controllers,
                       struct sockets *sockets, size_t conns_max)
{
    *a = (struct acceptor){.sockets = sockets, .conns_max = conns_max};
    a->watchers = calloc(ls->n, sizeof *a->watchers);
    if (a->watchers == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < ls->n; i++) {
        if (ls->sockets[i].controller != controllers)
            continue;
        struct accept_watcher *w = &a->watchers[a->n++];
        w->owner = a;
        w->from = &ls->sockets[i];
        ev_io_init(&w->io, on_connection, ls->sockets[i].fd, EV_READ);
    }
    return ERR_NONE;
}

static void start_accepting(struct acceptor *a)
{
    a->paused = false;
    for (size_t i = 0; i < a->n; i++)
        if (a->watchers[i].allowed)
            ev_io_start(a->sockets->loop->ev, &a->watchers[i].io);
}

void acceptor_allow(struct acceptor *a, int listener, bool allowed)
{
    for (size_t i = 0; i < a->n; i++) {
        struct accept_watcher *w = &a->watchers[i];
        if (w->from->listener != listener || w->allowed == allowed)
            continue;
        w->allowed = allowed;
        if (!allowed)
            ev_io_stop(a->sockets->loop->ev, &w->io);
        else if (!a->paused)
            ev_io_start(a->sockets->loop->ev, &w->io);
    }
}

void acceptor_set_max(struct acceptor *a, size_t conns_max)
{
    const bool was_full = a->paused && full(a);
    a->conns_max = conns_max;
    if (was_full && !full(a))
        start_accepting(a);
}

int64_t acceptor_settle(struct acceptor *a)
{
    if (!a->paused)
        return INT64_MAX;
    const struct sockets *ss = a->sockets;
    if (full(a) || (ss->closed_n == a->closed_n && ss->loop->now.mono_us < a->retry_us))
        return a->retry_us;
    start_accepting(a);
    return INT64_MAX;
}

void acceptor_close(struct acceptor *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (ev_is_active(&a->watchers[i].io))
            ev_io_stop(a->sockets->loop->ev, &a->watchers[i].io);
    free(a->watchers);
    *a = (struct acceptor){.conns_n = a->conns_n}; /* those that are there count themselves out */
}
