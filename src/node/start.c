/* Starting, one step after the other, each begun by what the one before found:
 *
 *   directory (worker) -> metadata log (worker) -> the quorum has a leader
 *   -> the image is caught up: a controller is ready
 *   -> a broker's logs load, it registers -> unfenced: ready */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/inside.h"

enum { START_TELL_US = 3 * 1000 * 1000 }; /* a start that takes longer tells what it waits for */

void node_ports(const struct node *n, uint16_t *ports)
{
    CHECK(n->endpoints_n <= NODE_PORTS_MAX);
    for (size_t i = 0; i < n->endpoints_n; i++)
        ports[i] = n->endpoints[i].port;
}

static void load_replicas(struct node *n)
{
    struct replicas_found found[LOG_DIRS_MAX];
    const struct node_directory *nd = &n->directory;
    for (size_t i = 0; i < nd->log_dirs_n; i++)
        found[i] = (struct replicas_found){
            .dirs = nd->all[i].dirs,
            .dirs_n = nd->all[i].dirs_n,
            .high_watermarks = &nd->all[i].high_watermarks,
            .recovery_points = &nd->all[i].recovery_points,
            .log_starts = &nd->all[i].log_starts,
            .clean = nd->all[i].clean,
        };
    replicas_load(n->replicas, found, n->now);
}

/* The image holds the cluster's features: this broker can register. */
static void begin_register(struct node *n)
{
    n->phase = PHASE_REGISTER;
    uint16_t ports[NODE_PORTS_MAX];
    node_ports(n, ports);
    broker_start(n->broker, ports, n->endpoints_n, n->now);
    load_replicas(n);
    if (groups_start(n->groups, n->now) != ERR_NONE)
        node_fail(n, false, "no memory for the group coordinator");
}

/* ------------------------------------------------------------------ metadata */

/* What there is up to the leader's high watermark is in the image. A controller that we are
 * ourselves has taken it over first; it may become active without an event: a claim that failed is
 * tried again. */
static bool caught_up(const struct node *n)
{
    const int64_t high_watermark = raft_known_high_watermark(n->raft);
    if (high_watermark < 0 || n->image.next_offset < high_watermark)
        return false;
    if (n->is_controller && raft_leader_id(n->raft) == n->api.node_id &&
        !controller_is_active(n->controller))
        return false;
    return image_feature_level(&n->image, "metadata.version") > 0;
}

void node_become_ready(struct node *n)
{
    timer_cancel(&n->timers, &n->wait_timer);
    n->phase = PHASE_SERVE;
    n->state = NODE_READY;
    env_log(n->env, LOG_INFO, "ready node=%d cluster=%s ms=%lld", n->api.node_id, n->api.cluster_id,
            (long long)((n->now.mono_us - n->started_us) / 1000));
}

bool node_settle_start(struct node *n)
{
    if (n->phase != PHASE_METADATA || n->raft == NULL || !caught_up(n))
        return false;
    if (n->is_broker)
        begin_register(n);
    else
        node_become_ready(n);
    return true;
}

static const char *waits_for(const struct node *n)
{
    if (n->phase == PHASE_REGISTER)
        return broker_epoch(n->broker) < 0 ? "the registration of this broker"
                                           : "its logs and to be unfenced";
    if (n->raft == NULL)
        return "the metadata log of this node";
    if (raft_leader_id(n->raft) < 0)
        return "a leader of the metadata quorum: a majority of its voters must be reached";
    return "the metadata log of the leader";
}

static void start_waits(struct timer *t)
{
    const struct node *n = CONTAINER_OF(t, struct node, wait_timer);
    if (n->state != NODE_STARTING)
        return;
    env_log(n->env, LOG_WARN, "start_waits node=%d leader=%d for=\"%s\"", n->api.node_id,
            n->raft == NULL ? -1 : raft_leader_id(n->raft), waits_for(n));
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
    e = node_make_parts(n);
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
        .retention_bytes = config_int(c, "metadata.max.retention.bytes"),
        .retention_ms = config_int(c, "metadata.max.retention.ms"),
        .auto_join = config_bool(c, "controller.quorum.auto.join.enable"),
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
    n->wait_timer.fire = start_waits;
    if (timer_arm(&n->timers, &n->wait_timer, n->now.mono_us + START_TELL_US) != ERR_NONE) {
        node_fail(n, false, "out of memory");
        return;
    }
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
    rl->endpoint = n->directory.endpoint;
    rl->static_voters = &n->static_voters;
    rl->bootstrap = n->bootstrap;
    rl->bootstrap_n = n->bootstrap_n;
    rl->may_vote = n->is_controller;
    rl->dialing = n->dialing;
    rl->answers = &n->answers;
    rl->now = n->now;
    rl->done = raft_loaded;
    rl->events = node_raft_events(n);
    raft_config_read(n->config, &rl->config);
    raft_load_start(rl);
}

static void directory_run(struct job *j, struct disk *d)
{
    struct node_directory *nd = CONTAINER_OF(j, struct node_directory, job);
    nd->err = node_directory_read(nd, d);
}

/* Of those that the worker could not read; false: the last one. */
static bool tell_offline(struct node *n)
{
    for (size_t i = 0; i < n->directory.all_n; i++) {
        const struct node_log_dir *ld = &n->directory.all[i];
        if (ld->offline == ERR_NONE || !ld->locked)
            continue;
        env_log(n->env, LOG_ERROR, "log_dir_offline path=%s reason=\"%s\"", ld->path, ld->why);
    }
    if (n->is_broker && node_log_dirs_online_n(n) == 0)
        node_fail(n, false, "none of log.dirs can be read");
    return n->state != NODE_FAILED;
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
    if (!tell_offline(n))
        return;
    begin_metadata(n);
}

/* Where the other controllers reach this one; a node without a listener for them is alone. One that
 * is no controller is not reached, but names the listener of those it reaches. */
static struct raft_endpoint own_endpoint(const struct node *n)
{
    const char *name = config_controller_listener(n->config);
    const struct api_endpoint *at = &n->endpoints[0];
    for (size_t i = 0; i < n->endpoints_n; i++) {
        const struct api_endpoint *e = &n->endpoints[i];
        if (strcmp(e->listener, name) == 0 || (e->controller && !at->controller))
            at = e;
    }
    if (!n->is_controller)
        return (struct raft_endpoint){str_of(name), STR_LIT(""), 0};
    return (struct raft_endpoint){str_of(at->listener), str_of(at->host), at->port};
}

static enum err read_bootstrap(struct node *n)
{
    const struct str all = str_of(config_text(n->config, "controller.quorum.bootstrap.servers"));
    struct str list = all, item;
    size_t count = 0;
    while (config_next_item(&list, &item))
        count++;
    n->bootstrap_hosts = calloc(count + 1, sizeof *n->bootstrap_hosts);
    n->bootstrap = calloc(count + 1, sizeof *n->bootstrap);
    if (n->bootstrap_hosts == NULL || n->bootstrap == NULL)
        return ERR_NOMEM;
    for (list = all; config_next_item(&list, &item); n->bootstrap_n++) {
        struct config_address *a = &n->bootstrap_hosts[n->bootstrap_n];
        CHECK(config_parse_address(item, a)); /* config_finish looked */
        n->bootstrap[n->bootstrap_n] =
            (struct raft_endpoint){STR_LIT(""), str_of(a->host), a->port};
    }
    return ERR_NONE;
}

static enum node_format_kind format_kind(const struct node *n)
{
    if (!n->is_controller)
        return FORMAT_BROKER;
    if (!config_in_cluster(n->config))
        return FORMAT_STANDALONE;
    return n->static_voters.n > 0 ? FORMAT_STATIC : FORMAT_NO_VOTERS;
}

void node_start_directory(struct node *n)
{
    struct node_directory *nd = &n->directory;
    const char *cluster_id = config_text(n->config, "cluster.id");
    if (config_voters(n->config, &n->static_voters) != ERR_NONE || read_bootstrap(n) != ERR_NONE) {
        node_fail(n, false, "out of memory");
        return;
    }
    nd->node = n;
    nd->node_id = (int32_t)config_int(n->config, "node.id");
    if (cluster_id != NULL)
        snprintf(nd->cluster_id, sizeof nd->cluster_id, "%s", cluster_id);
    snprintf(nd->metadata_dir, sizeof nd->metadata_dir, "%s/" NODE_METADATA_DIR,
             nd->metadata->path);
    n->env->random(n->env, &nd->fresh_cluster_id, sizeof nd->fresh_cluster_id);
    for (size_t i = 0; i < nd->all_n; i++)
        n->env->random(n->env, &nd->all[i].fresh_id, sizeof nd->all[i].fresh_id);
    nd->kind = format_kind(n);
    nd->endpoint = own_endpoint(n);
    nd->now = n->now;
    nd->job = (struct job){.lane = JOB_BULK, .run = directory_run, .done = directory_done};
    n->env->submit(n->env, &nd->job);
}
