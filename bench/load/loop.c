#include "load/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "load/clocks.h"
#include "load/connection.h"

#define DRAIN_NS 60000000000
#define EVENTS_MAX 256
#define OPEN_SLOTS 1024 /* an open loop waits for room, not for answers */

enum phase { WARMING, COUNTING, DRAINING };

struct load {
    const struct options *o;
    struct arena arena;
    struct answers answers;
    struct request *requests; /* one, or one per connection where those differ */
    struct connection *connections;
    int connections_n; /* open */
    int epoll;

    enum phase phase;
    int64_t now_ns, phase_end_ns, begin_ns;
    double broker_cpu, own_cpu; /* when counting began */
    uint64_t asked_n;           /* ever */
    int64_t plan_begin_ns;      /* open loop: of request 0 */
    struct result *result;
};

/* ------------------------------------------------------------------ set-up */

static bool make_requests(struct load *l)
{
    int n = l->o->kind == LOAD_COMMIT ? l->o->connections : 1;
    l->requests = calloc((size_t)n, sizeof *l->requests);
    if (l->requests == NULL)
        return false;
    for (int i = 0; i < n; i++) {
        if (!request_make(l->o, i, &l->arena, &l->requests[i]))
            return false;
    }
    return true;
}

static bool watch(struct load *l, struct connection *c, int op, bool writable)
{
    struct epoll_event e = {.events = EPOLLIN | (writable ? EPOLLOUT : 0u), .data.ptr = c};
    return epoll_ctl(l->epoll, op, c->fd, &e) == 0;
}

static bool open_connections(struct load *l)
{
    uint32_t slots = l->o->rate > 0 ? OPEN_SLOTS : (uint32_t)l->o->in_flight;
    l->connections = calloc((size_t)l->o->connections, sizeof *l->connections);
    if (l->connections == NULL)
        return false;
    while (l->connections_n < l->o->connections) {
        int i = l->connections_n;
        const struct request *r = &l->requests[l->o->kind == LOAD_COMMIT ? i : 0];
        l->connections_n++;
        if (!connection_open(&l->connections[i], r, &l->answers, l->o->port, slots) ||
            !watch(l, &l->connections[i], EPOLL_CTL_ADD, false))
            return false;
    }
    return true;
}

static bool open_load(struct load *l, const struct options *o, struct result *result)
{
    *l = (struct load){.o = o, .result = result, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    *result = (struct result){.requests = 0};
    arena_init(&l->arena, NULL);
    answers_init(&l->answers, o);
    /* Waking up for the next planned request: as exactly as the kernel can. */
    prctl(PR_SET_TIMERSLACK, 1);
    return l->epoll != -1 && make_requests(l) && open_connections(l);
}

static void close_load(struct load *l)
{
    for (int i = 0; i < l->connections_n; i++)
        connection_close(&l->connections[i]);
    free(l->connections);
    free(l->requests);
    if (l->epoll != -1)
        close(l->epoll);
    answers_close(&l->answers);
    arena_close(&l->arena);
}

/* ------------------------------------------------------------------ requests */

static void ask(struct load *l, struct connection *c, int64_t begin_ns)
{
    const struct options *o = l->o;
    int32_t partition = (int32_t)(l->asked_n % (uint64_t)o->partitions);
    int64_t offset = (int64_t)l->asked_n;
    if (o->kind == LOAD_FETCH)
        offset = offset % o->batches * o->records;
    connection_ask(c, begin_ns, partition, offset);
    l->asked_n++;
}

static bool send_asked(struct load *l, struct connection *c)
{
    bool was_blocked = c->blocked;
    if (!connection_send(c))
        return false;
    return c->blocked == was_blocked || watch(l, c, EPOLL_CTL_MOD, c->blocked);
}

static bool ask_first(struct load *l)
{
    for (int i = 0; i < l->connections_n; i++) {
        struct connection *c = &l->connections[i];
        while (connection_has_slot(c))
            ask(l, c, l->now_ns);
        if (!send_asked(l, c))
            return false;
    }
    return true;
}

static int64_t planned_ns(const struct load *l, uint64_t i)
{
    return l->plan_begin_ns + (int64_t)((double)i * 1e9 / l->o->rate);
}

/* All that should have been sent by now, each connection in its turn. */
static bool ask_planned(struct load *l)
{
    while (planned_ns(l, l->asked_n) <= l->now_ns) {
        struct connection *c = &l->connections[l->asked_n % (uint64_t)l->connections_n];
        if (!connection_has_slot(c))
            return true;
        ask(l, c, planned_ns(l, l->asked_n));
        if (!c->blocked && !send_asked(l, c))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ phases */

static void begin_counting(struct load *l)
{
    l->phase = COUNTING;
    l->begin_ns = l->now_ns;
    l->phase_end_ns = l->now_ns + l->o->run_ns;
    l->broker_cpu = clocks_cpu_seconds(l->o->pid);
    l->own_cpu = clocks_cpu_seconds(getpid());
}

static void end_counting(struct load *l)
{
    struct result *r = l->result;
    l->phase = DRAINING;
    l->phase_end_ns = l->now_ns + DRAIN_NS;
    r->seconds = (double)(l->now_ns - l->begin_ns) / 1e9;
    r->broker_cpu_seconds = clocks_cpu_seconds(l->o->pid) - l->broker_cpu;
    r->own_cpu_seconds = clocks_cpu_seconds(getpid()) - l->own_cpu;
}

static bool had_enough(const struct load *l)
{
    const struct options *o = l->o;
    return l->now_ns >= l->phase_end_ns ||
           (o->requests > 0 && l->result->requests >= o->requests) ||
           (o->bytes > 0 && l->result->bytes >= o->bytes);
}

static void answered(void *ctx, struct connection *c, int64_t begin_ns)
{
    struct load *l = ctx;
    if (l->phase == COUNTING) {
        l->result->requests++;
        l->result->bytes += l->o->kind == LOAD_FETCH ? (uint64_t)l->o->batch_bytes
                                                     : (uint64_t)c->request->batch_bytes;
        histogram_add(&l->result->latency, l->now_ns - begin_ns);
        if (had_enough(l))
            end_counting(l);
    }
    if (l->phase != DRAINING && l->o->rate <= 0)
        ask(l, c, l->now_ns);
}

static bool all_answered(const struct load *l)
{
    for (int i = 0; i < l->connections_n; i++) {
        if (l->connections[i].asked_n != l->connections[i].answered_n)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ the loop */

static struct timespec wait_time(const struct load *l)
{
    int64_t until = l->phase_end_ns, left;
    if (l->o->rate > 0 && l->phase != DRAINING && planned_ns(l, l->asked_n) < until)
        until = planned_ns(l, l->asked_n);
    left = until > l->now_ns ? until - l->now_ns : 0;
    return (struct timespec){left / 1000000000, left % 1000000000};
}

static bool turn(struct load *l)
{
    struct epoll_event events[EVENTS_MAX];
    const struct connection_events callbacks = {answered, l};
    struct timespec wait = wait_time(l);
    int n = epoll_pwait2(l->epoll, events, EVENTS_MAX, &wait, NULL);
    if (n == -1 && errno != EINTR)
        return false;
    for (int i = 0; i < n; i++) {
        struct connection *c = events[i].data.ptr;
        l->now_ns = clocks_now_ns();
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && !connection_receive(c, &callbacks))
            return false;
        if (!send_asked(l, c))
            return false;
    }
    l->now_ns = clocks_now_ns();
    return l->o->rate <= 0 || l->phase == DRAINING || ask_planned(l);
}

static bool run(struct load *l)
{
    l->now_ns = l->plan_begin_ns = clocks_now_ns();
    l->phase_end_ns = l->now_ns + l->o->warm_ns;
    if (l->o->warm_ns == 0)
        begin_counting(l);
    if (l->o->rate <= 0 && !ask_first(l))
        return false;
    while (l->phase != DRAINING || !all_answered(l)) {
        if (!turn(l))
            return false;
        if (l->phase == WARMING && l->now_ns >= l->phase_end_ns)
            begin_counting(l);
        else if (l->phase == COUNTING && had_enough(l))
            end_counting(l);
        else if (l->phase == DRAINING && l->now_ns >= l->phase_end_ns) {
            fprintf(stderr, "answers are missing\n");
            return false;
        }
    }
    return true;
}

bool load_run(const struct options *o, struct result *out)
{
    struct load l;
    bool good = open_load(&l, o, out) && run(&l);
    if (good && (out->broker_cpu_seconds < 0 || out->requests == 0)) {
        fprintf(stderr, out->requests == 0 ? "nothing was answered\n" : "the process is gone\n");
        good = false;
    }
    close_load(&l);
    return good;
}
