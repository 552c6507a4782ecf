#include "load/idle.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load/connection.h"

#define ANSWER_MS 60000
#define AT_ONCE 32

static void ignore(void *ctx, struct connection *c, int64_t begin_ns)
{
}

static bool ask(struct connection *c)
{
    connection_ask(c, 0, 0, 0);
    return connection_send(c);
}

static bool wait_for_answer(struct connection *c)
{
    const struct connection_events callbacks = {ignore, NULL};
    while (c->answered_n == 0) {
        struct pollfd readable = {c->fd, POLLIN, 0};
        if (poll(&readable, 1, ANSWER_MS) != 1) {
            fprintf(stderr, "no answer\n");
            return false;
        }
        if (!connection_receive(c, &callbacks))
            return false;
    }
    return true;
}

/* A few at a time, or the backlog of a server overflows. How many were opened is added to *n. */
static bool open_some(const struct options *o, const struct request *r, struct answers *as,
                      struct connection *connections, int *n)
{
    const int first = *n;
    while (*n < o->connections && *n < first + AT_ONCE) {
        struct connection *c = &connections[(*n)++];
        if (!connection_open(c, r, as, o->port, 1) || !ask(c))
            return false;
    }
    for (int i = first; i < *n; i++) {
        if (!wait_for_answer(&connections[i]))
            return false;
    }
    return true;
}

static void wait_for_end(void)
{
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

bool idle_hold(const struct options *o)
{
    struct arena arena;
    struct answers answers;
    struct request request;
    struct connection *connections = calloc((size_t)o->connections, sizeof *connections);
    int n = 0;
    arena_init(&arena, NULL);
    answers_init(&answers, o);
    bool good = connections != NULL && request_make(o, 0, &arena, &request);
    while (good && n < o->connections)
        good = open_some(o, &request, &answers, connections, &n);
    if (good)
        wait_for_end();
    while (n > 0)
        connection_close(&connections[--n]);
    free(connections);
    answers_close(&answers);
    arena_close(&arena);
    return good;
}
