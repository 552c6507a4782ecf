#include "load/idle.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load/connection.h"

#define ANSWER_MS 60000

static void ignore(void *ctx, struct connection *c, int64_t begin_ns)
{
}

static bool one_call(struct connection *c)
{
    const struct connection_events callbacks = {ignore, NULL};
    connection_ask(c, 0, 0, 0);
    if (!connection_send(c))
        return false;
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
    while (good && n < o->connections) {
        good = connection_open(&connections[n], &request, &answers, o->port, 1) &&
               one_call(&connections[n]);
        n++;
    }
    if (good)
        wait_for_end();
    while (n > 0)
        connection_close(&connections[--n]);
    free(connections);
    answers_close(&answers);
    arena_close(&arena);
    return good;
}
