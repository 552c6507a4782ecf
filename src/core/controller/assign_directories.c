/* AssignReplicasToDirs (KIP-858): a broker tells in which of its log directories replicas are. */
#include "core/controller/partition_change.h"

struct assignment {
    struct controller *c;
    const struct assign_replicas_to_dirs_request *req;
    const struct image_broker *broker;
    struct arena *arena; /* of the response */
    struct record_list records;
    struct uuid dir; /* the one at hand */
    bool offline;
};

static enum err assign(struct assignment *a, const struct image_topic *t, int32_t index)
{
    struct partition_change pc;
    const struct topic_rules rules = topic_rules_of(a->c, t);
    partition_change_open(&pc, a->c, t, index, &rules);
    pc.election = ELECTION_ONLINE;
    pc.moved = a->broker->id;
    pc.directory = a->dir;
    if (a->offline) { /* and with it goes the replica */
        struct replica_set gone = {&pc.moved, 1};
        pc.brokers.removed = a->broker->id;
        pc.election = rules.unclean_allowed ? ELECTION_UNCLEAN : ELECTION_ONLINE;
        if (!replica_set_minus(a->c, pc.isr, gone, &pc.isr))
            return ERR_NOMEM;
    }
    return partition_change_add(&pc, &a->records);
}

static int16_t check(const struct assignment *a, struct image_topic *t, int32_t index)
{
    if (t == NULL)
        return K_UNKNOWN_TOPIC_ID;
    const struct image_partition *p = image_partition(t, index);
    if (p == NULL)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    return replica_set_has((struct replica_set){p->replicas, p->replicas_n}, a->broker->id)
               ? K_NONE
               : K_NOT_LEADER_OR_FOLLOWER;
}

static enum err take_topic(struct assignment *a,
                           const struct assign_replicas_to_dirs_request_topic_data *in,
                           struct assign_replicas_to_dirs_response_topic_data *out)
{
    struct image_topic *t = image_topic_by_id(&a->c->ahead, in->topic_id);
    enum err e = ERR_NONE;
    out->topic_id = in->topic_id;
    out->partitions.v = wire_array(&wire_assign_replicas_to_dirs_response_partition_data, a->arena,
                                   (size_t)in->partitions.n);
    if (out->partitions.v == NULL)
        return ERR_NOMEM;
    out->partitions.n = in->partitions.n;
    for (int32_t i = 0; e == ERR_NONE && i < in->partitions.n; i++) {
        const int32_t index = in->partitions.v[i].partition_index;
        out->partitions.v[i].partition_index = index;
        out->partitions.v[i].error_code = check(a, t, index);
        if (out->partitions.v[i].error_code == K_NONE)
            e = assign(a, t, index);
    }
    return e;
}

static enum err take_directory(struct assignment *a,
                               const struct assign_replicas_to_dirs_request_directory_data *in,
                               struct assign_replicas_to_dirs_response_directory_data *out)
{
    enum err e = ERR_NONE;
    out->id = a->dir = in->id;
    a->offline = !image_broker_serves(a->broker, in->id);
    out->topics.v = wire_array(&wire_assign_replicas_to_dirs_response_topic_data, a->arena,
                               (size_t)in->topics.n);
    if (out->topics.v == NULL)
        return ERR_NOMEM;
    out->topics.n = in->topics.n;
    for (int32_t i = 0; e == ERR_NONE && i < in->topics.n; i++)
        e = take_topic(a, &in->topics.v[i], &out->topics.v[i]);
    return e;
}

/* Directory by directory, so that one that is named for two of them ends where the last says. */
static enum err take_all(struct assignment *a, struct assign_replicas_to_dirs_response *resp,
                         struct now now)
{
    const int32_t n = a->req->directories.n;
    enum err e = ERR_NONE;
    resp->directories.v =
        wire_array(&wire_assign_replicas_to_dirs_response_directory_data, a->arena, (size_t)n);
    if (resp->directories.v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; e == ERR_NONE && i < n; i++) {
        e = take_directory(a, &a->req->directories.v[i], &resp->directories.v[i]);
        if (e == ERR_NONE)
            e = controller_append(a->c, &a->records, false, now);
        if (e == ERR_NONE && a->c->state != CONTROLLER_ACTIVE)
            e = ERR_NOMEM; /* the image ahead was lost */
        record_list_cut(&a->records, 0);
    }
    if (e == ERR_NONE)
        resp->directories.n = n;
    return e;
}

void controller_assign_replicas_to_dirs(struct controller *c, struct controller_op *op,
                                        const struct assign_replicas_to_dirs_request *req,
                                        struct arena *arena,
                                        struct assign_replicas_to_dirs_response *resp,
                                        struct now now)
{
    if (!controller_begin(c, op))
        return;
    struct assignment a = {.c = c, .req = req, .arena = arena};
    a.broker = image_broker(&c->ahead, req->broker_id);
    if (image_metadata_version(&c->ahead) < METADATA_VERSION_DIRECTORIES) {
        controller_finish(c, op, K_UNSUPPORTED_VERSION);
        return;
    }
    if (a.broker == NULL || a.broker->epoch != req->broker_epoch) {
        controller_finish(c, op, K_STALE_BROKER_EPOCH);
        return;
    }
    record_list_init(&a.records);
    enum err e = take_all(&a, resp, now);
    record_list_close(&a.records);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
