#include "net/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>

socklen_t resolve_size(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void take(struct resolve *r, const struct addrinfo *list)
{
    for (const struct addrinfo *a = list; a != NULL && r->n < RESOLVE_MAX; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
            memcpy(&r->addresses[r->n++], a->ai_addr, a->ai_addrlen);
}

static void look_up(struct resolve *r, int flags)
{
    char port[8];
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    snprintf(port, sizeof port, "%u", r->port);
    r->n = 0;
    const int e = getaddrinfo(r->host, port, &hints, &list);
    if (e == 0) {
        take(r, list);
        freeaddrinfo(list);
    }
    if (r->n == 0)
        snprintf(r->reason, sizeof r->reason, "%s",
                 e == EAI_SYSTEM ? "the name look-up failed" : gai_strerror(e));
}

bool resolve_digits(struct resolve *r)
{
    look_up(r, AI_NUMERICHOST);
    return r->n > 0;
}

static void run(struct job *j, struct disk *d)
{
    look_up(CONTAINER_OF(j, struct resolve, job), 0);
}

static void done(struct job *j)
{
    struct resolve *r = CONTAINER_OF(j, struct resolve, job);
    r->done(r);
}

void resolve_start(struct resolve *r, struct env *env)
{
    r->job = (struct job){.lane = JOB_BULK, .run = run, .done = done};
    env->submit(env, &r->job);
}
