/* One loop, one thread; names are looked up by a worker that is started when the first name needs
 * one. */
#include "cli/client.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/client_impl.h"
#include "os/clocks.h"

enum { TRY_MIN_US = 2000 * 1000, HURRY_MS = 2000 };

#define MEMORY_MAX_BYTES (1u << 30)

/* ------------------------------------------------------------------ names */

static void on_name_found(struct ev_loop *ev, ev_io *w, int events)
{
}

static bool start_names(struct client *c)
{
    const struct os_pool_config config = {1, 1, 4};
    if (os_pool_init(&c->names, &config) != ERR_NONE)
        return false;
    c->names_started = true;
    ev_io_init(&c->name_found, on_name_found, c->names.wake_fd, EV_READ);
    ev_io_start(c->loop.ev, &c->name_found);
    return true;
}

/* Without a thread to be had the look-up is done here: late, but done. */
static void submit_job(struct env *e, struct job *j)
{
    struct client *c = CONTAINER_OF(e, struct client, env);
    if (c->names_started || start_names(c)) {
        os_pool_submit(&c->names, j);
        return;
    }
    j->run(j, NULL);
    list_init(&j->link);
    list_append(&c->finished, &j->link);
}

static void reap_jobs(struct client *c)
{
    struct job *j;
    struct list *l;
    while (c->names_started && (j = os_pool_reap(&c->names)) != NULL)
        j->done(j);
    while ((l = list_pop(&c->finished)) != NULL) {
        j = LIST_ENTRY(l, struct job, link);
        j->done(j);
    }
}

/* ------------------------------------------------------------------ the turn */

static bool settle(struct client *c)
{
    bool moved = false, again = true;
    for (int i = 0; again && i < LIMIT_SETTLE_ROUNDS; i++) {
        struct list *l, *tmp;
        again = !list_empty(&c->finished);
        reap_jobs(c);
        LIST_EACH(l, tmp, &c->brokers)
        {
            struct broker *b = LIST_ENTRY(l, struct broker, link);
            again |= peer_settle(dial_peer(b->dial), c->loop.now);
        }
        again |= dialer_settle(&c->dialer);
        moved |= again;
    }
    return moved;
}

void client_turn(struct client *c, int64_t deadline_us)
{
    const int64_t next_us = timers_next_us(&c->timers);
    if (settle(c)) /* what was just asked goes out before anybody waits */
        deadline_us = INT64_MIN;
    else if (next_us < deadline_us)
        deadline_us = next_us;
    loop_turn(&c->loop, deadline_us);
    timers_run(&c->timers, c->loop.now.mono_us);
    reap_jobs(c);
    (void)settle(c);
}

struct now client_now(const struct client *c)
{
    return c->loop.now;
}

int64_t client_deadline_us(const struct client *c)
{
    return os_now().mono_us + c->timeout_ms * 1000;
}

int32_t client_timeout_ms(const struct client *c)
{
    return (int32_t)c->timeout_ms;
}

struct loop *client_loop(struct client *c)
{
    return &c->loop;
}

struct budget *client_memory(struct client *c)
{
    return &c->memory;
}

bool client_pause(struct client *c, int64_t deadline_us)
{
    const int64_t until_us = os_now().mono_us + CLIENT_RETRY_MS * 1000;
    if (until_us >= deadline_us)
        return false;
    while (c->loop.now.mono_us < until_us)
        client_turn(c, until_us);
    return true;
}

/* ------------------------------------------------------------------ calls */

static void answered(struct peer_call *call, enum err e, const void *response)
{
    struct answer *a = CONTAINER_OF(call, struct answer, call);
    a->open = false;
    a->err = e;
    a->response = response;
}

void answer_close(struct answer *a)
{
    CHECK(!a->open);
    arena_close(&a->arena);
    a->response = NULL;
}

void client_ask_until(struct client *c, struct broker *b, struct answer *a, enum api_key api,
                      int16_t max_version, const void *request, int64_t deadline_us)
{
    *a = (struct answer){.broker = b, .open = true};
    arena_init(&a->arena, &c->memory);
    a->call = (struct peer_call){.api_key = (int16_t)api,
                                 .max_version = max_version,
                                 .fixed_version = -1,
                                 .request = request,
                                 .keep = &a->arena,
                                 .deadline_us = deadline_us,
                                 .done = answered};
    peer_call(dial_peer(b->dial), &a->call, c->loop.now);
}

void client_ask(struct client *c, struct broker *b, struct answer *a, enum api_key api,
                int16_t max_version, const void *request)
{
    client_ask_until(c, b, a, api, max_version, request, client_deadline_us(c));
}

void client_start_call(struct client *c, struct broker *b, struct peer_call *call)
{
    peer_call(dial_peer(b->dial), call, c->loop.now);
}

void client_stop_call(struct client *c, struct peer_call *call, const bool *open)
{
    peer_cancel(call);
    while (*open)
        client_turn(c, INT64_MAX);
}

bool client_start_timer(struct client *c, struct timer *t, int64_t at_us)
{
    return timer_arm(&c->timers, t, at_us) == ERR_NONE;
}

void client_stop_timer(struct client *c, struct timer *t)
{
    timer_cancel(&c->timers, t);
}

void client_hurry(struct client *c)
{
    if (c->timeout_ms > HURRY_MS)
        c->timeout_ms = HURRY_MS;
}

void client_wait(struct client *c, const struct answer *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        while (v[i].open)
            client_turn(c, INT64_MAX);
}

void client_cancel(struct client *c, struct answer *a)
{
    if (!a->open)
        return;
    peer_cancel(&a->call);
    client_wait(c, a, 1);
}

int client_call(struct client *c, struct broker *b, struct answer *a, enum api_key api,
                int16_t max_version, const void *request)
{
    client_ask(c, b, a, api, max_version, request);
    client_wait(c, a, 1);
    return a->err == ERR_NONE ? CLI_OK : client_tell(a);
}

/* Each broker in turn: the first of those that fail does not use up the time of the others, and
 * many that do not answer take no more than all the time. What they said is told when none is left.
 */
static bool try_brokers(struct client *c, struct answer *v, size_t n, enum api_key api,
                        int16_t max_version, const void *request)
{
    const int64_t deadline_us = client_deadline_us(c);
    size_t i = 0;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->brokers)
    {
        const int64_t now_us = os_now().mono_us, left_us = deadline_us - now_us;
        if (i > 0 && left_us <= 0)
            break;
        int64_t share_us = left_us / (int64_t)(n - i);
        if (share_us < TRY_MIN_US)
            share_us = left_us < TRY_MIN_US ? left_us : TRY_MIN_US;
        client_ask_until(c, LIST_ENTRY(l, struct broker, link), &v[i], api, max_version, request,
                         now_us + share_us);
        client_wait(c, &v[i], 1);
        if (v[i++].err != ERR_NONE)
            continue;
        list_remove(l);
        list_prepend(&c->brokers, l);
        return true;
    }
    return false;
}

int client_call_any(struct client *c, struct answer *a, enum api_key api, int16_t max_version,
                    const void *request)
{
    const size_t n = c->brokers_n;
    struct answer *v = calloc(n, sizeof *v);
    *a = (struct answer){0};
    if (v == NULL)
        return client_out_of_memory();
    const bool ok = try_brokers(c, v, n, api, max_version, request);
    for (size_t i = 0; i < n && v[i].broker != NULL; i++) {
        if (v[i].err == ERR_NONE) {
            *a = v[i];
            break;
        }
        if (!ok)
            (void)client_tell(&v[i]);
        answer_close(&v[i]);
    }
    free(v);
    return ok ? CLI_OK : CLI_FAILED;
}

/* ------------------------------------------------------------------ beginning and end */

static const char *brokers_of(const struct client_options *o)
{
    const char *env = getenv("DOHLE_BROKERS");
    if (o->brokers != NULL)
        return o->brokers;
    return env != NULL && env[0] != '\0' ? env : CLIENT_BROKERS_DEFAULT;
}

int client_open(const struct client_options *o, const char *command, struct client **out)
{
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return client_out_of_memory();
    enum err e = loop_init(&c->loop);
    if (e != ERR_NONE) {
        free(c);
        cli_error("no event loop: %s", err_name(e));
        return CLI_FAILED;
    }
    timers_init(&c->timers);
    budget_init(&c->memory, NULL, MEMORY_MAX_BYTES);
    c->env.submit = submit_job;
    c->timeout_ms = o->timeout_ms;
    list_init(&c->brokers);
    list_init(&c->finished);
    dialer_init(&c->dialer, &c->loop, &c->timers, &c->env);
    const char *brokers = brokers_of(o);
    e = client_add_brokers(c, brokers);
    *out = c;
    if (e == ERR_NONE)
        return CLI_OK;
    client_close(c);
    *out = NULL;
    if (e == ERR_NOMEM)
        return client_out_of_memory();
    return cli_usage_error(command, "the brokers are HOST[:PORT][,...], not %s", brokers);
}

static bool looking_up(const struct client *c)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->brokers)
    {
        if (dial_looking_up(LIST_ENTRY(l, struct broker, link)->dial))
            return true;
    }
    return false;
}

/* A look-up that still runs cannot be stopped: the command ends soon and leaves it alone. */
void client_close(struct client *c)
{
    if (c == NULL || looking_up(c))
        return;
    struct list *l;
    while ((l = list_pop(&c->brokers)) != NULL) {
        struct broker *b = LIST_ENTRY(l, struct broker, link);
        dial_free(b->dial);
        free(b);
    }
    if (c->names_started) {
        ev_io_stop(c->loop.ev, &c->name_found);
        os_pool_stop(&c->names);
        os_pool_close(&c->names);
    }
    dialer_close(&c->dialer);
    timers_close(&c->timers);
    loop_close(&c->loop);
    free(c);
}
