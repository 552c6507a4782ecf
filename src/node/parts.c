/* What a node is made of, by its roles: a controller, a broker with its replicas and groups. */
#include <stdio.h>

#include "node/inside.h"

static void log_dir_failed(void *ctx, size_t dir, enum err e, const char *what)
{
    node_log_dir_failed(ctx, dir, e, what);
}

static void replicas_failed(void *ctx, enum err e, const char *what)
{
    struct node *n = ctx;
    node_fail(n, false, "%s: %s", what, err_name(e));
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

static void broker_refused(void *ctx, int16_t error)
{
    struct node *n = ctx;
    const char *cluster_id = n->directory.meta.cluster_id;
    switch (error) {
    case K_DUPLICATE_BROKER_REGISTRATION:
        node_fail(n, true, "node.id=%d is in use: another broker with it is alive (%s)",
                  n->api.node_id, kafka_error_name(error));
        return;
    case K_INCONSISTENT_CLUSTER_ID:
        node_fail(n, true,
                  "log.dirs=%s belongs to cluster.id=%s, the controller to another cluster (%s)",
                  n->directory.metadata->path, cluster_id, kafka_error_name(error));
        return;
    default:
        node_fail(n, true, "the controller does not register this broker, node.id=%d: %s",
                  n->api.node_id, kafka_error_name(error));
    }
}

static void directory_unheard(void *ctx, const char *path)
{
    struct node *n = ctx;
    node_fail(n, false, "no controller could be told that log directory %s failed", path);
}

static int64_t own_broker_epoch(void *ctx)
{
    const struct node *n = ctx;
    return n->broker == NULL ? -1 : broker_epoch(n->broker);
}

static enum err new_replicas(struct node *n)
{
    struct replicas_dir dirs[LOG_DIRS_MAX];
    for (size_t i = 0; i < n->directory.log_dirs_n; i++) {
        const struct node_log_dir *ld = &n->directory.all[i];
        dirs[i] = (struct replicas_dir){ld->path, ld->configured, ld->meta.directory_id,
                                        ld->offline != ERR_NONE};
    }
    const struct replicas_args args = {
        .env = n->env,
        .timers = &n->timers,
        .budget = &n->state_memory,
        .config = n->config,
        .image = &n->image,
        .node_id = n->api.node_id,
        .seed = n->image.seed,
        .dirs = dirs,
        .dirs_n = n->directory.log_dirs_n,
        .events = {.ctx = n,
                   .loaded = logs_loaded,
                   .log_dir_failed = log_dir_failed,
                   .failed = replicas_failed},
        .dialing = n->dialing,
        .alter_partition = n->channels[CHANNEL_ALTER_PARTITION],
        .directories = n->channels[CHANNEL_DIRECTORIES],
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
static enum err new_channel(struct node *n, enum node_channel which)
{
    static const char *const names[NODE_CHANNELS] = {
        [CHANNEL_LIFE] = "heartbeat",
        [CHANNEL_ALTER_PARTITION] = "alter-partition",
        [CHANNEL_DIRECTORIES] = "directory-assignments",
        [CHANNEL_FORWARDING] = "forwarding",
        [CHANNEL_REGISTRATION] = "registration",
    };
    char client_id[64];
    const char *role = which == CHANNEL_REGISTRATION ? "controller" : "broker";
    snprintf(client_id, sizeof client_id, "%s-%d-%s", role, n->api.node_id, names[which]);
    const struct channel_args args = {
        .timers = &n->timers,
        .rpc = n->rpc,
        .dialing = n->dialing,
        .memory = &n->answers,
        .node_id = n->api.node_id,
        .client_id = str_of(client_id),
        .raft = n->raft,
        .retry_ms = (int32_t)config_int(n->config, "controller.quorum.retry.backoff.ms"),
    };
    return channel_new(&args, &n->channels[which]);
}

static enum err new_channels(struct node *n)
{
    static const enum node_channel kinds[] = {CHANNEL_LIFE, CHANNEL_ALTER_PARTITION,
                                              CHANNEL_DIRECTORIES, CHANNEL_FORWARDING};
    enum err e = ERR_NONE;
    for (size_t i = 0; i < ARRAY_N(kinds) && e == ERR_NONE; i++)
        e = new_channel(n, kinds[i]);
    n->api.forwarding = n->channels[CHANNEL_FORWARDING];
    return e;
}

static enum err new_broker(struct node *n)
{
    struct broker_directory dirs[LOG_DIRS_MAX];
    for (size_t i = 0; i < n->directory.log_dirs_n; i++) {
        const struct node_log_dir *ld = &n->directory.all[i];
        dirs[i] = (struct broker_directory){ld->configured, ld->meta.directory_id,
                                            ld->offline != ERR_NONE};
    }
    const struct broker_args args = {
        .env = n->env,
        .timers = &n->timers,
        .life = n->channels[CHANNEL_LIFE],
        .forwarding = n->channels[CHANNEL_FORWARDING],
        .config = n->config,
        .image = &n->image,
        .node_id = n->api.node_id,
        .cluster_id = n->directory.meta.cluster_id,
        .directories = dirs,
        .directories_n = n->directory.log_dirs_n,
        .previous_broker_epoch = node_previous_broker_epoch(n),
        .changed = broker_changed,
        .refused = broker_refused,
        .unheard = directory_unheard,
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
        .dialing = n->dialing,
        .seed = n->image.seed,
    };
    enum err e = controller_new(&args, &n->controller);
    n->api.controller = n->controller;
    return e;
}

/* Only a controller that others can reach makes itself known to them. */
static enum err new_registration(struct node *n)
{
    uint16_t ports[NODE_PORTS_MAX];
    bool reached = false;
    for (size_t i = 0; i < n->endpoints_n; i++)
        reached |= n->endpoints[i].controller;
    if (!reached)
        return ERR_NONE;
    node_ports(n, ports);
    enum err e = new_channel(n, CHANNEL_REGISTRATION);
    const struct controller_registration_args args = {
        .env = n->env,
        .timers = &n->timers,
        .channel = n->channels[CHANNEL_REGISTRATION],
        .config = n->static_config,
        .image = &n->image,
        .node_id = n->api.node_id,
        .ports = ports,
    };
    return e == ERR_NONE ? controller_registration_new(&args, &n->registration) : e;
}

static enum err new_parts_of_controller(struct node *n)
{
    enum err e = new_controller(n);
    return e == ERR_NONE ? new_registration(n) : e;
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
    enum err e = n->is_controller ? new_parts_of_controller(n) : ERR_NONE;
    if (e == ERR_NONE)
        e = loader_new(&n->image, node_publish, n, &n->loader);
    if (e == ERR_NONE && n->is_broker)
        e = new_parts_of_broker(n);
    return e;
}
