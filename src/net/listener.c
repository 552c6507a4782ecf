/* A listener without a host is one IPv6 socket that takes IPv4 too, or an IPv4 socket where there
 * is no IPv6. A name such as localhost may have several addresses: each gets a socket, those that
 * this machine cannot bind are left out as long as one is bound. With port 0 the first one's port
 * is for all, and if another process has it on a later address the whole is tried again. */
#include "net/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/error.h"

enum { ADDRESSES_MAX = 16, FREE_PORT_TRIES = 16 };

/* What bind and listen need besides the address. */
struct options {
    int send_bytes, receive_bytes; /* -1: the kernel's own */
    int backlog;
};

static struct options options_of(const struct config *c)
{
    struct options o = {
        .send_bytes = (int)config_int(c, "socket.send.buffer.bytes"),
        .receive_bytes = -1,
        .backlog = SOMAXCONN,
    };
    if (config_source(c, "socket.receive.buffer.bytes") != CONFIG_DEFAULT)
        o.receive_bytes = (int)config_int(c, "socket.receive.buffer.bytes");
    if (config_source(c, "socket.listen.backlog.size") != CONFIG_DEFAULT)
        o.backlog = (int)config_int(c, "socket.listen.backlog.size");
    return o;
}

static bool set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) != -1;
}

static bool set_options(int fd, const struct options *o)
{
    return set(fd, SOL_SOCKET, SO_REUSEADDR, 1) && set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
           set(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
           (o->send_bytes < 0 || set(fd, SOL_SOCKET, SO_SNDBUF, o->send_bytes)) &&
           (o->receive_bytes < 0 || set(fd, SOL_SOCKET, SO_RCVBUF, o->receive_bytes));
}

static uint16_t *port_of(struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)a)->sin6_port
                                    : &((struct sockaddr_in *)a)->sin_port;
}

static bool any_v6(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* A listening socket at *a, whose port becomes the real one; -1 and errno. */
static int listen_at(struct sockaddr_storage *a, const struct options *o)
{
    socklen_t n =
        a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(a->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    if (set_options(fd, o) &&
        (a->ss_family != AF_INET6 || set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !any_v6(a))) &&
        bind(fd, (struct sockaddr *)a, n) != -1 && listen(fd, o->backlog) != -1 &&
        getsockname(fd, (struct sockaddr *)a, &n) != -1)
        return fd;
    int errnum = errno;
    (void)close(fd);
    errno = errnum;
    return -1;
}

/* ------------------------------------------------------------------ addresses */

struct addresses {
    struct sockaddr_storage v[ADDRESSES_MAX];
    size_t n;
    bool alternatives; /* one is enough, in order */
};

static void any_addresses(struct addresses *out)
{
    *out = (struct addresses){.n = 2, .alternatives = true};
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&out->v[0];
    struct sockaddr_in *four = (struct sockaddr_in *)&out->v[1];
    *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
}

/* 0, or an error of getaddrinfo. Names are looked up here only, before anything runs. */
static int find_addresses(const char *host, struct addresses *out)
{
    if (host[0] == '\0') {
        any_addresses(out);
        return 0;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed != 0)
        return failed;
    *out = (struct addresses){0};
    for (const struct addrinfo *i = found; i != NULL && out->n < ADDRESSES_MAX; i = i->ai_next) {
        if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
            memcpy(&out->v[out->n++], i->ai_addr, i->ai_addrlen);
    }
    freeaddrinfo(found);
    return out->n > 0 ? 0 : EAI_NONAME;
}

/* ------------------------------------------------------------------ one listener */

/* This machine has no such address. */
static bool absent(int errnum)
{
    return errnum == EADDRNOTAVAIL || errnum == EAFNOSUPPORT;
}

static void close_from(struct listeners *l, size_t n)
{
    while (l->n > n)
        (void)close(l->sockets[--l->n].fd);
}

/* 0 or an errno, with nothing bound. *port: wanted, then real. */
static int bind_addresses(struct listeners *l, int listener, const struct addresses *as,
                          const struct options *o, uint16_t *port)
{
    const size_t before = l->n;
    int errnum = EADDRNOTAVAIL;
    for (size_t i = 0; i < as->n && !(as->alternatives && l->n > before); i++) {
        struct sockaddr_storage a = as->v[i];
        *port_of(&a) = htons(*port);
        int fd = listen_at(&a, o);
        if (fd == -1 && absent(errno))
            continue;
        if (fd == -1) {
            errnum = errno;
            close_from(l, before);
            return errnum;
        }
        struct listen_socket *s = &l->sockets[l->n++];
        *s = (struct listen_socket){.fd = fd, .listener = listener};
        pacing_stop(fd, s->pacing);
        *port = ntohs(*port_of(&a));
    }
    return l->n > before ? 0 : errnum;
}

static enum err bind_failed(const struct config *c, const struct listener *at, int errnum,
                            char *message, size_t message_n)
{
    const char *text = config_text(c, "listeners");
    switch (errnum) {
    case EADDRINUSE:
        snprintf(message, message_n, "listeners=%s: port %u is in use", text, at->port);
        return ERR_INVALID;
    case EADDRNOTAVAIL:
        snprintf(message, message_n, "listeners=%s: %s is not an address of this machine", text,
                 at->host);
        return ERR_INVALID;
    case EACCES:
        snprintf(message, message_n, "listeners=%s: no permission to listen on port %u", text,
                 at->port);
        return ERR_INVALID;
    default:
        snprintf(message, message_n, "listeners=%s: cannot listen on %s port %u: %s", text,
                 at->host, at->port, strerror(errnum));
        return os_error(errnum);
    }
}

static enum err bind_listener(struct listeners *l, const struct config *c, int listener,
                              const struct listener *at, char *message, size_t message_n)
{
    const struct options o = options_of(c);
    struct addresses as;
    int failed = find_addresses(at->host, &as);
    if (failed != 0) {
        snprintf(message, message_n, "listeners=%s: host %s: %s", config_text(c, "listeners"),
                 at->host, gai_strerror(failed));
        return ERR_INVALID;
    }
    struct listen_socket *grown = realloc(l->sockets, (l->n + as.n) * sizeof *grown);
    if (grown == NULL) {
        snprintf(message, message_n, "out of memory");
        return ERR_NOMEM;
    }
    l->sockets = grown;
    const size_t before = l->n;
    uint16_t port = at->port;
    int errnum = bind_addresses(l, listener, &as, &o, &port);
    for (int i = 1; errnum == EADDRINUSE && at->port == 0 && i < FREE_PORT_TRIES; i++) {
        port = 0;
        errnum = bind_addresses(l, listener, &as, &o, &port);
    }
    if (errnum != 0)
        return bind_failed(c, at, errnum, message, message_n);
    l->ports[l->ports_n++] = port;
    for (size_t i = before; i < l->n; i++)
        l->sockets[i].controller = at->controller;
    return ERR_NONE;
}

enum err listeners_bind(const struct config *config, struct listeners *out, char *message,
                        size_t message_n)
{
    size_t n;
    const struct listener *at = config_listeners(config, &n);
    *out = (struct listeners){.ports = calloc(n, sizeof *out->ports)};
    if (out->ports == NULL) {
        snprintf(message, message_n, "out of memory");
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        enum err err = bind_listener(out, config, (int)i, &at[i], message, message_n);
        if (err != ERR_NONE) {
            listeners_close(out);
            return err;
        }
    }
    return ERR_NONE;
}

void listeners_close(struct listeners *l)
{
    close_from(l, 0);
    free(l->sockets);
    free(l->ports);
    *l = (struct listeners){0};
}
