/* The turn. What came in since the last one (frames, job results, deadlines) has been taken when
 * settling begins; settling repeats until nothing moves: raft commits, the image and with it the
 * controller and the replicas follow, logs are written, requests complete. */
#include "node/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/limits.h"

void node_fail(struct node *n, bool bad_config, const char *fmt, ...)
{
    if (n->state == NODE_FAILED || n->state == NODE_STOPPED)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(n->message, sizeof n->message, fmt, ap);
    va_end(ap);
    n->bad_config = bad_config;
    n->state = NODE_FAILED;
    n->phase = PHASE_END; /* what the turn still brings leads to no next one */
    env_log(n->env, LOG_ERROR, "node_failed reason=\"%s\"", n->message);
}

struct rpc *node_rpc(struct node *n)
{
    return n->rpc;
}

enum node_state node_state(const struct node *n)
{
    return n->state;
}

bool node_accepts(const struct node *n, size_t listener)
{
    if (n->state == NODE_FAILED || n->phase >= PHASE_DRAIN)
        return false;
    return n->endpoints[listener].controller ? n->raft != NULL : n->phase >= PHASE_SERVE;
}

const char *node_message(const struct node *n, bool *bad_config)
{
    *bad_config = n->bad_config;
    return n->message;
}

const struct api_endpoint *node_endpoints(const struct node *n, size_t *count)
{
    *count = n->endpoints_n;
    return n->endpoints;
}

const struct image *node_image(const struct node *n)
{
    return &n->image;
}

const struct config *node_config(const struct node *n)
{
    return n->config;
}

int32_t node_id(const struct node *n)
{
    return n->api.node_id;
}

uint64_t node_memory_peak(const struct node *n)
{
    return n->memory.peak_bytes;
}

/* ------------------------------------------------------------------ memory */

/* Shares of the whole: any may fill while others have room, none can starve the others. */
static void init_budgets(struct node *n)
{
    const uint64_t all = (uint64_t)config_int(n->config, "dohle.memory.max.bytes");
    budget_init(&n->memory, NULL, all);
    budget_init(&n->frames, &n->memory, all / 2);
    budget_init(&n->small, &n->memory, all / 8);
    budget_init(&n->answers, &n->memory, all / 4);
    budget_init(&n->state_memory, &n->memory, all / 2);
}

/* ------------------------------------------------------------------ new and free */

static enum err copy_endpoints(struct node *n, const struct node_args *args)
{
    size_t count;
    const struct listener *ls = config_listeners(n->config, &count);
    CHECK(count == args->ports_n);
    n->endpoints = calloc(count, sizeof *n->endpoints);
    if (n->endpoints == NULL)
        return ERR_NOMEM;
    n->endpoints_n = count;
    for (size_t i = 0; i < count; i++) {
        const uint16_t real = args->ports[i];
        n->endpoints[i] = (struct api_endpoint){
            ls[i].name, ls[i].advertised_host,
            ls[i].advertised_port != 0 ? ls[i].advertised_port : real, ls[i].controller};
    }
    return ERR_NONE;
}

static enum err new_rpc(struct node *n)
{
    n->api = (struct api){
        .env = n->env,
        .timers = &n->timers,
        .config = n->config,
        .image = &n->image,
        .node_id = -1,
        .endpoints = n->endpoints,
        .endpoints_n = n->endpoints_n,
    };
    authorizer_init(&n->api.authorizer, n->config);
    const struct rpc_args args = {
        .env = n->env,
        .timers = &n->timers,
        .frames = &n->frames,
        .small = &n->small,
        .answers = &n->answers,
        .request_max_bytes = (int32_t)config_int(n->config, "socket.request.max.bytes"),
        .idle_max_ms = config_int(n->config, "connections.max.idle.ms"),
        .handler = api_handler(&n->api),
    };
    enum err e = rpc_new(&args, &n->rpc);
    n->api.rpc = n->rpc;
    return e;
}

enum err node_new(const struct node_args *args, struct node **out, char *message, size_t message_n)
{
    struct node *n = calloc(1, sizeof *n);
    snprintf(message, message_n, "out of memory");
    if (n == NULL)
        return ERR_NOMEM;
    enum err e = config_over(args->config, &n->config);
    if (e != ERR_NONE) {
        free(n);
        return e;
    }
    n->env = args->env;
    n->dialing = args->dialing;
    n->static_config = args->config;
    n->is_broker = config_is_broker(args->config);
    n->is_controller = config_is_controller(args->config);
    n->now = args->now;
    n->started_us = args->now.mono_us;
    timers_init(&n->timers);
    init_budgets(n);
    image_init(&n->image, env_random_u64(n->env));
    e = copy_endpoints(n, args);
    if (e == ERR_NONE)
        e = new_rpc(n);
    if (e == ERR_NONE)
        e = node_open_log_dirs(n, message, message_n);
    if (e != ERR_NONE) {
        node_free(n);
        return e;
    }
    node_start_directory(n);
    *out = n;
    return ERR_NONE;
}

/* Of a failed node: who still waits is answered (nobody listens any more), the files stay as they
 * are. */
static void abandon(struct node *n)
{
    rpc_stop(n->rpc, n->now);
    if (n->controller != NULL) {
        controller_resign(n->controller);
        (void)controller_settle(n->controller, n->now);
    }
    if (n->replicas != NULL)
        replicas_abandon(n->replicas, n->now);
    if (n->groups != NULL) {
        groups_close(n->groups, n->now);
        (void)groups_settle(n->groups, n->now);
    }
    raft_drop(n->raft);
}

void node_free(struct node *n)
{
    if (n == NULL)
        return;
    if (n->state == NODE_FAILED)
        abandon(n);
    controller_registration_free(n->registration);
    broker_free(n->broker);
    for (size_t i = 0; i < NODE_CHANNELS; i++)
        channel_free(n->channels[i]);
    groups_free(n->groups);
    replicas_free(n->replicas);
    controller_free(n->controller);
    loader_free(n->loader);
    rpc_free(n->rpc);
    api_close(&n->api);
    raft_load_close(&n->raft_load);
    image_close(&n->image);
    node_close_log_dirs(n);
    timers_close(&n->timers);
    config_free(n->config);
    free(n->bootstrap);
    free(n->bootstrap_hosts);
    free(n->endpoints);
    free(n);
}

/* ------------------------------------------------------------------ the turn */

static void reap_jobs(struct node *n)
{
    struct job *j;
    while ((j = n->env->reap(n->env)) != NULL)
        j->done(j);
}

static bool settle_once(struct node *n)
{
    bool moved = false;
    if (n->raft != NULL)
        moved |= raft_settle(n->raft, n->now);
    if (n->state == NODE_FAILED)
        return true;
    if (n->controller != NULL)
        moved |= controller_settle(n->controller, n->now);
    moved |= node_settle_start(n);
    for (size_t i = 0; i < NODE_CHANNELS; i++)
        if (n->channels[i] != NULL)
            moved |= channel_settle(n->channels[i], n->now);
    if (n->replicas != NULL)
        moved |= replicas_settle(n->replicas, n->now);
    if (n->groups != NULL)
        moved |= groups_settle(n->groups, n->now);
    if (n->state == NODE_STOPPING)
        moved |= node_settle_stop(n);
    return moved;
}

int64_t node_turn(struct node *n, struct now now)
{
    n->now = now;
    reap_jobs(n);
    timers_run(&n->timers, now.mono_us);
    for (int i = 0; i < LIMIT_SETTLE_ROUNDS; i++) {
        if (n->state == NODE_FAILED || n->state == NODE_STOPPED)
            return INT64_MAX;
        if (!settle_once(n))
            return timers_next_us(&n->timers);
    }
    return now.mono_us;
}
