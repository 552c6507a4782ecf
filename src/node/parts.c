/* What a node is made of, by its roles: a controller, a broker with its replicas and groups. */
#include <stdio.h>

#include "node/inside.h"

static void log_dir_failed(void *ctx, enum err e, const char *what)
{
    struct node *n = ctx;
    /* The only log directory: nothing is left to serve (Kafka exits too). */
    node_fail(n, false, "log directory %s failed: %s: %s", n->log_dir, what, err_name(e));
}

static void logs_loaded(void *ctx)
{
    struct node *n = ctx;
    if (n->broker != NULL && n->phase == PHASE_REGISTER)
        broker_logs_loaded(n->broker, n->now);
}

static void broker_changed(void *ctx, enum broker_state state)
{
    struct node *n = ctx;
    env_log(n->env, LOG_INFO, "broker state=%d", state);
    if (state == BROKER_RUNNING && n->phase == PHASE_REGISTER)
        node_become_ready(n);
}

static int64_t own_broker_epoch(void *ctx)
{
    const struct node *n = ctx;
    return n->broker == NULL ? -1 : broker_epoch(n->broker);
}

static enum err new_replicas(struct node *n)
{
    const struct replicas_args args = {
        .env = n->env,
        .timers = &n->timers,
        .budget = &n->state_memory,
        .config = n->config,
        .image = &n->image,
        .node_id = n->api.node_id,
        .seed = n->image.seed,
        .log_dir = n->log_dir,
        .events = {.ctx = n, .loaded = logs_loaded, .log_dir_failed = log_dir_failed},
        .dialing = n->dialing,
        .alter_partition = n->channels[CHANNEL_ALTER_PARTITION],
        .answers = &n->answers,
        .broker_epoch = own_broker_epoch,
    };
    enum err e = replicas_new(&args, &n->replicas);
    n->api.replicas = n->replicas;
    return e;
}

static enum err new_groups(struct node *n)
{
    const struct groups_args args = {
        .env = n->env,
        .timers = &n->timers,
        .budget = &n->state_memory,
        .config = n->config,
        .image = &n->image,
        .replicas = n->replicas,
        .node_id = n->api.node_id,
        .seed = n->image.seed,
    };
    enum err e = groups_new(&args, &n->groups);
    n->api.groups = n->groups;
    return e;
}

/* Client ids are Kafka's names of these channels. */
static enum err new_channels(struct node *n)
{
    static const char *const names[NODE_CHANNELS] = {
        [CHANNEL_LIFE] = "heartbeat",
        [CHANNEL_ALTER_PARTITION] = "alter-partition",
        [CHANNEL_FORWARDING] = "forwarding",
    };
    enum err e = ERR_NONE;
    for (size_t i = 0; i < NODE_CHANNELS && e == ERR_NONE; i++) {
        char client_id[64];
        snprintf(client_id, sizeof client_id, "broker-%d-%s", n->api.node_id, names[i]);
        const struct channel_args args = {
            .env = n->env,
            .timers = &n->timers,
            .rpc = n->rpc,
            .dialing = n->dialing,
            .memory = &n->answers,
            .node_id = n->api.node_id,
            .client_id = str_of(client_id),
            .raft = n->raft,
            .retry_ms = (int32_t)config_int(n->config, "controller.quorum.retry.backoff.ms"),
        };
        e = channel_new(&args, &n->channels[i]);
    }
    return e;
}

static enum err new_broker(struct node *n)
{
    const struct broker_args args = {
        .env = n->env,
        .timers = &n->timers,
        .life = n->channels[CHANNEL_LIFE],
        .forwarding = n->channels[CHANNEL_FORWARDING],
        .config = n->config,
        .image = &n->image,
        .node_id = n->api.node_id,
        .cluster_id = n->directory.meta.cluster_id,
        .directory_id = n->directory.meta.directory_id,
        .previous_broker_epoch = n->directory.clean ? n->directory.clean_broker_epoch : -1,
        .changed = broker_changed,
        .ctx = n,
    };
    enum err e = broker_new(&args, &n->broker);
    n->api.broker = n->broker;
    return e;
}

static enum err new_controller(struct node *n)
{
    const struct controller_args args = {
        .env = n->env,
        .timers = &n->timers,
        .budget = &n->state_memory,
        .raft = n->raft,
        .config = n->static_config,
        .committed = &n->image,
        .node_id = n->api.node_id,
        .cluster_id = n->directory.meta.cluster_id,
        .seed = n->image.seed,
    };
    enum err e = controller_new(&args, &n->controller);
    n->api.controller = n->controller;
    return e;
}

static enum err new_parts_of_broker(struct node *n)
{
    enum err e = new_channels(n);
    if (e == ERR_NONE)
        e = new_replicas(n);
    if (e == ERR_NONE)
        e = new_groups(n);
    return e == ERR_NONE ? new_broker(n) : e;
}

enum err node_make_parts(struct node *n)
{
    enum err e = n->is_controller ? new_controller(n) : ERR_NONE;
    if (e == ERR_NONE)
        e = loader_new(&n->image, node_publish, n, &n->loader);
    if (e == ERR_NONE && n->is_broker)
        e = new_parts_of_broker(n);
    return e;
}
