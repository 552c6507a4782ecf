/* bench-limit: the least a broker can do, for the load generator's requests. It reads, checks the
 * CRC, writes the batch to its partition's file and answers from a template; it sends fetched
 * batches from that file. It has no log, no topics, no recovery: what a broker costs more than this
 * is its own.
 *
 *   bench-limit DIRECTORY TOPIC [sync]
 *
 * prints its port on a line and serves until it is ended. With sync, one fdatasync per file and
 * turn. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "limit/client.h"

#define EVENTS_MAX 256
#define SEND_BUFFER 102400 /* Kafka's; the kernel's own costs more than twice the CPU time */

struct server {
    int listener, epoll;
    struct answers answers;
};

static struct files files;

static bool listen_on_any_port(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t at_n = sizeof at;
    int send_buffer = SEND_BUFFER;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->listener == -1 || s->epoll == -1 ||
        setsockopt(s->listener, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer) == -1 ||
        bind(s->listener, (const struct sockaddr *)&at, sizeof at) == -1 ||
        listen(s->listener, 1024) == -1 ||
        getsockname(s->listener, (struct sockaddr *)&at, &at_n) == -1 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &e) == -1)
        return false;
    printf("%d\n", ntohs(at.sin_port));
    return fflush(stdout) == 0;
}

static void accept_one(struct server *s)
{
    int on = 1, fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd == -1)
        return;
    struct client *c = client_new(fd, &s->answers, &files);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (c == NULL)
        close(fd);
    else if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == -1)
        client_free(c);
}

/* Sends; watches for room while there is none, and then does not read. */
static bool settle(struct server *s, struct client *c)
{
    if (!client_send(c))
        return false;
    bool waits = client_waits_for_room(c);
    if (waits == c->watched_for_room)
        return true;
    struct epoll_event e = {.events = waits ? EPOLLOUT : EPOLLIN, .data.ptr = c};
    c->watched_for_room = waits;
    return epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &e) == 0;
}

/* Reads of all connections, one write per file, then the answers. */
static bool turn(struct server *s)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(s->epoll, events, EVENTS_MAX, -1);
    if (n == -1)
        return errno == EINTR;
    for (int i = 0; i < n; i++) {
        struct client *c = events[i].data.ptr;
        if (c == NULL) {
            accept_one(s);
        } else if (!c->watched_for_room && !client_receive(c)) {
            client_free(c);
            events[i].data.ptr = NULL;
        }
    }
    if (!files_settle(&files))
        return false;
    for (int i = 0; i < n; i++) {
        struct client *c = events[i].data.ptr;
        if (c != NULL && !settle(s, c))
            client_free(c);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct server s;
    if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "sync") != 0)) {
        fprintf(stderr, "usage: bench-limit DIRECTORY TOPIC [sync]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* sendfile has no flag against it */
    arena_init(&s.answers.arena, NULL);
    s.answers.topic = str_of(argv[2]);
    bool good = files_open(&files, argv[1], argc == 4) && listen_on_any_port(&s);
    while (good)
        good = turn(&s);
    perror("bench-limit");
    return 1;
}
