/* What the quorum tells the node: committed records become the image, and who acts on it is told.
 */
#include <stdlib.h>

#include "core/metadata/broker_config.h"
#include "core/metadata/records.h"
#include "node/inside.h"

void node_publish(void *ctx, const struct image_delta *d)
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
    if (n->registration != NULL)
        controller_registration_image_changed(n->registration, n->now);
    if (!n->is_broker)
        return;
    replicas_apply(n->replicas, d, n->now);
    if (topics)
        replicas_defaults_changed(n->replicas, n->now);
    groups_apply(n->groups, d, n->now);
    broker_image_changed(n->broker, d->brokers || d->everything, n->now);
}

static void committed(struct node *n, int64_t offset)
{
    if (n->is_controller)
        controller_committed(n->controller, offset, n->now);
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
    committed(n, offset);
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
    committed(n, batch_next_offset(b));
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

/* One of them may be the one that is wrong; where it is most of them, we are. */
static void raft_stranger(void *ctx, const char *host, uint16_t port, bool most)
{
    struct node *n = ctx;
    env_log(n->env, LOG_WARN, "quorum_stranger address=%s:%u reason=\"it is of another cluster\"",
            host, port);
    if (most && n->phase == PHASE_METADATA)
        node_fail(
            n, true,
            "log.dirs=%s belongs to cluster.id=%s, the controller at %s:%u to another cluster",
            n->directory.metadata->path, n->directory.meta.cluster_id, host, port);
}

static void raft_failed(void *ctx, enum err e, const char *what)
{
    struct node *n = ctx;
    node_fail(n, false, "metadata log in %s failed: %s: %s", n->directory.metadata->path, what,
              err_name(e));
}

struct raft_events node_raft_events(struct node *n)
{
    return (struct raft_events){
        .ctx = n,
        .snapshot = raft_snapshot_event,
        .committed = raft_committed,
        .leader = raft_leader_event,
        .claim = raft_claim,
        .resign = raft_resign,
        .snapshot_due = raft_snapshot_due,
        .stranger = raft_stranger,
        .failed = raft_failed,
    };
}
