/* Starting, one step after the other, each begun by what the one before found:
 *
 *   directory (worker) -> metadata log (worker) -> the quorum elects -> the image is caught up and
 * a controller acts -> logs load, the broker registers -> unfenced: ready */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/metadata/broker_config.h"
#include "core/metadata/records.h"
#include "node/inside.h"

/* ------------------------------------------------------------------ replicas, broker */

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
    if (state == BROKER_RUNNING && n->phase == PHASE_REGISTER) {
        n->phase = PHASE_SERVE;
        n->state = NODE_READY;
        env_log(n->env, LOG_INFO, "ready node=%d cluster=%s ms=%lld", n->api.node_id,
                n->api.cluster_id, (long long)((n->now.mono_us - n->started_us) / 1000));
    }
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

/* The controller acts and the image holds its features: this broker can register. */
static void begin_register(struct node *n)
{
    n->phase = PHASE_REGISTER;
    const struct replicas_found found = {
        .dirs = n->directory.dirs,
        .dirs_n = n->directory.dirs_n,
        .high_watermarks = &n->directory.high_watermarks,
        .recovery_points = &n->directory.recovery_points,
        .log_starts = &n->directory.log_starts,
        .clean = n->directory.clean,
    };
    uint16_t ports[64];
    CHECK(n->endpoints_n <= ARRAY_N(ports));
    for (size_t i = 0; i < n->endpoints_n; i++)
        ports[i] = n->endpoints[i].port;
    broker_start(n->broker, ports, n->endpoints_n, n->now);
    replicas_load(n->replicas, &found, n->now);
    if (groups_start(n->groups, n->now) != ERR_NONE)
        node_fail(n, false, "no memory for the group coordinator");
}

/* ------------------------------------------------------------------ metadata */

/* An active controller has given us all records of earlier epochs; a fresh one writes the features
 * first. It may become active without an event: a claim that failed is tried again. */
bool node_settle_start(struct node *n)
{
    if (n->phase != PHASE_METADATA || n->controller == NULL ||
        !controller_is_active(n->controller) ||
        image_feature_level(&n->image, "metadata.version") <= 0)
        return false;
    begin_register(n);
    return true;
}

/* Every publication: first the image (done), then the configuration, then who acts on them. */
static void publish(void *ctx, const struct image_delta *d)
{
    struct node *n = ctx;
    bool topics = false;
    enum err e = broker_config_changed(d, n->api.node_id)
                     ? broker_config_take(n->config, &n->image, n->api.node_id, &topics)
                     : ERR_NONE;
    if (e != ERR_NONE) {
        node_fail(n, false, "committed configuration cannot be taken over: %s", err_name(e));
        return;
    }
    replicas_apply(n->replicas, d, n->now);
    if (topics)
        replicas_defaults_changed(n->replicas, n->now);
    groups_apply(n->groups, d, n->now);
    broker_image_changed(n->broker, n->now);
}

static void raft_snapshot_event(void *ctx, int64_t offset, int32_t epoch, struct bytes batches)
{
    struct node *n = ctx;
    enum err e = loader_snapshot(n->loader, offset, epoch, batches);
    if (e != ERR_NONE) {
        node_fail(n, false, "metadata snapshot %lld-%d cannot be applied: %s", (long long)offset,
                  epoch, err_name(e));
        return;
    }
    controller_committed(n->controller, offset, n->now);
}

static void raft_committed(void *ctx, const struct batch *b)
{
    struct node *n = ctx;
    if (n->state == NODE_FAILED) /* by a batch before: half of it is in the image */
        return;
    enum err e = loader_committed(n->loader, b);
    if (e != ERR_NONE) {
        node_fail(n, false, "metadata batch at offset %lld cannot be applied: %s",
                  (long long)b->base_offset, err_name(e));
        return;
    }
    controller_committed(n->controller, batch_next_offset(b), n->now);
}

static void raft_leader_event(void *ctx, int32_t leader_id, int32_t epoch)
{
    struct node *n = ctx;
    env_log(n->env, LOG_INFO, "quorum leader=%d epoch=%d", leader_id, epoch);
}

static void raft_claim(void *ctx, int32_t epoch)
{
    struct node *n = ctx;
    if (n->state == NODE_FAILED)
        return;
    controller_claim(n->controller, epoch, n->now);
}

static void raft_resign(void *ctx, int32_t epoch)
{
    struct node *n = ctx;
    env_log(n->env, LOG_INFO, "controller resigned epoch=%d", epoch);
    controller_resign(n->controller);
}

static enum err add_record(void *ctx, struct bytes framed)
{
    return record_list_add_framed(ctx, framed);
}

static void raft_snapshot_due(void *ctx)
{
    struct node *n = ctx;
    struct record_list records;
    struct bytes *values = NULL;
    if (n->state == NODE_FAILED || n->image.in_transaction) /* the image is between two offsets */
        return;
    record_list_init(&records);
    enum err e = image_snapshot(&n->image, add_record, &records);
    if (e == ERR_NONE && (values = calloc(records.n + 1, sizeof *values)) == NULL)
        e = ERR_NOMEM;
    for (size_t i = 0; e == ERR_NONE && i < records.n; i++)
        values[i] = record_list_get(&records, i);
    if (e == ERR_NONE)
        e = raft_snapshot(n->raft, n->image.next_offset, values, records.n, n->now);
    if (e != ERR_NONE)
        env_log(n->env, LOG_WARN, "metadata_snapshot_failed offset=%lld error=%s",
                (long long)n->image.next_offset, err_name(e));
    free(values);
    record_list_close(&records);
}

static void raft_failed(void *ctx, enum err e, const char *what)
{
    struct node *n = ctx;
    node_fail(n, false, "metadata log in %s failed: %s: %s", n->log_dir, what, err_name(e));
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

static void raft_loaded(struct raft_load *rl)
{
    struct node *n = CONTAINER_OF(rl, struct node, raft_load);
    if (n->state == NODE_FAILED) /* stopped meanwhile */
        return;
    if (rl->err != ERR_NONE) {
        node_fail(n, rl->err == ERR_INVALID, "%s", rl->message);
        return;
    }
    enum err e = raft_open(rl, &n->raft);
    if (e != ERR_NONE) {
        node_fail(n, e == ERR_INVALID, "%s", rl->message);
        return;
    }
    n->api.raft = n->raft;
    e = new_controller(n);
    if (e == ERR_NONE)
        e = new_channels(n);
    if (e == ERR_NONE)
        e = loader_new(&n->image, publish, n, &n->loader);
    if (e == ERR_NONE)
        e = new_replicas(n);
    if (e == ERR_NONE)
        e = new_groups(n);
    if (e == ERR_NONE)
        e = new_broker(n);
    if (e != ERR_NONE)
        node_fail(n, false, "the node cannot start: %s", err_name(e));
}

/* ------------------------------------------------------------------ directory */

static void raft_config_read(const struct config *c, struct raft_config *out)
{
    *out = (struct raft_config){
        .election_timeout_ms = (int32_t)config_int(c, "controller.quorum.election.timeout.ms"),
        .fetch_timeout_ms = (int32_t)config_int(c, "controller.quorum.fetch.timeout.ms"),
        .election_backoff_max_ms =
            (int32_t)config_int(c, "controller.quorum.election.backoff.max.ms"),
        .request_timeout_ms = (int32_t)config_int(c, "controller.quorum.request.timeout.ms"),
        .retry_backoff_ms = (int32_t)config_int(c, "controller.quorum.retry.backoff.ms"),
        .fetch_max_bytes = (int32_t)config_int(c, "controller.quorum.fetch.max.bytes"),
        .fetch_snapshot_max_bytes =
            (int32_t)config_int(c, "controller.quorum.fetch.snapshot.max.bytes"),
        .snapshot_max_new_bytes = config_int(c, "metadata.log.max.record.bytes.between.snapshots"),
        .snapshot_max_interval_ms = config_int(c, "metadata.log.max.snapshot.interval.ms"),
        .log =
            {
                .segment_bytes = (int32_t)config_int(c, "metadata.log.segment.bytes"),
                .segment_ms = config_int(c, "metadata.log.segment.ms"),
                .segment_index_bytes = (int32_t)config_int(c, "log.index.size.max.bytes"),
                .index_interval_bytes = (int32_t)config_int(c, "log.index.interval.bytes"),
                .flush_messages = INT64_MAX, /* raft asks for each flush itself */
                .flush_ms = INT64_MAX,
                .max_compaction_lag_ms = INT64_MAX,
                .producer_id_expiration_ms = INT64_MAX,
            },
    };
}

static void begin_metadata(struct node *n)
{
    n->phase = PHASE_METADATA;
    n->api.node_id = n->directory.meta.node_id;
    n->api.cluster_id = n->directory.meta.cluster_id;
    struct raft_load *rl = &n->raft_load;
    rl->env = n->env;
    rl->timers = &n->timers;
    rl->budget = &n->state_memory;
    rl->dir = n->directory.metadata_dir;
    rl->node_id = n->directory.meta.node_id;
    rl->directory_id = n->directory.meta.directory_id;
    rl->cluster_id = n->directory.meta.cluster_id;
    rl->endpoint = n->directory.format.endpoint;
    rl->static_voters = &n->static_voters;
    rl->may_vote = true;
    rl->now = n->now;
    rl->done = raft_loaded;
    rl->events = (struct raft_events){
        .ctx = n,
        .snapshot = raft_snapshot_event,
        .committed = raft_committed,
        .leader = raft_leader_event,
        .claim = raft_claim,
        .resign = raft_resign,
        .snapshot_due = raft_snapshot_due,
        .failed = raft_failed,
    };
    raft_config_read(n->config, &rl->config);
    raft_load_start(rl);
}

static void directory_run(struct job *j, struct disk *d)
{
    struct node_directory *nd = CONTAINER_OF(j, struct node_directory, job);
    nd->err = node_directory_read(nd, d);
}

static void directory_done(struct job *j)
{
    struct node_directory *nd = CONTAINER_OF(j, struct node_directory, job);
    struct node *n = nd->node;
    if (n->state == NODE_FAILED) /* stopped meanwhile */
        return;
    if (nd->err != ERR_NONE) {
        node_fail(n, nd->bad_config, "%s", nd->message);
        return;
    }
    begin_metadata(n);
}

/* The voter's endpoint: the controller listener where there is one, else the broker's. */
static void voter_endpoint(const struct node *n, struct raft_format *f)
{
    size_t count;
    const struct listener *ls = config_listeners(n->config, &count);
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        if (ls[i].controller)
            at = i;
    f->endpoint = (struct raft_endpoint){str_of(n->endpoints[at].listener),
                                         str_of(n->endpoints[at].host), n->endpoints[at].port};
}

static bool read_voters(struct node *n)
{
    const char *text = config_text(n->config, "controller.quorum.voters");
    n->static_voters.n = 0;
    return text == NULL || text[0] == '\0' ||
           voter_set_parse(str_of(text), &n->static_voters) == ERR_NONE;
}

void node_start_directory(struct node *n)
{
    struct node_directory *nd = &n->directory;
    const char *cluster_id = config_text(n->config, "cluster.id");
    offset_checkpoint_init(&nd->high_watermarks);
    offset_checkpoint_init(&nd->recovery_points);
    offset_checkpoint_init(&nd->log_starts);
    if (!read_voters(n)) {
        node_fail(n, true, "controller.quorum.voters=%s is not id@host:port,...",
                  config_text(n->config, "controller.quorum.voters"));
        return;
    }
    nd->node = n;
    nd->path = n->log_dir;
    nd->node_id = (int32_t)config_int(n->config, "node.id");
    if (cluster_id != NULL)
        snprintf(nd->cluster_id, sizeof nd->cluster_id, "%s", cluster_id);
    snprintf(nd->metadata_dir, sizeof nd->metadata_dir, "%s/__cluster_metadata-0", n->log_dir);
    n->env->random(n->env, &nd->fresh_cluster_id, sizeof nd->fresh_cluster_id);
    n->env->random(n->env, &nd->fresh_directory_id, sizeof nd->fresh_directory_id);
    voter_endpoint(n, &nd->format);
    nd->format.now = n->now;
    nd->job = (struct job){.lane = JOB_BULK, .run = directory_run, .done = directory_done};
    n->env->submit(n->env, &nd->job);
}
