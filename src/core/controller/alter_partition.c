/* AlterPartition (KIP-497, KIP-704, KIP-841, KIP-903): a leader asks for new in-sync replicas. What
 * it asks was decided on what it knew: every epoch must still hold. */
#include "core/controller/partition_change.h"

struct alteration {
    struct controller *c;
    const struct alter_partition_request *req;
    int16_t version;
    struct arena *arena; /* of the response */
    struct record_list records;
    struct partition_set seen; /* of this request */
};

/* ------------------------------------------------------------------ checks */

static int16_t check_epochs(const struct image_partition *p,
                            const struct alter_partition_request_partition_data *in,
                            int32_t broker_id)
{
    if (in->leader_epoch > p->leader_epoch || in->partition_epoch > p->partition_epoch)
        return K_NOT_CONTROLLER; /* it knows more than we do */
    if (in->leader_epoch < p->leader_epoch)
        return K_FENCED_LEADER_EPOCH;
    if (broker_id != p->leader)
        return K_INVALID_REQUEST;
    return in->partition_epoch < p->partition_epoch ? K_INVALID_UPDATE_VERSION : K_NONE;
}

static bool twice(struct replica_set s)
{
    for (int32_t i = 1; i < s.n; i++)
        if (replica_set_has((struct replica_set){s.v, i}, s.v[i]))
            return true;
    return false;
}

static int16_t check_isr(const struct image_partition *p,
                         const struct alter_partition_request_partition_data *in,
                         struct replica_set isr)
{
    const struct replica_set replicas = {p->replicas, p->replicas_n};
    if (isr.n > replicas.n || !replica_set_covers(replicas, isr) || twice(isr) ||
        !replica_set_has(isr, p->leader))
        return K_INVALID_REQUEST;
    if (in->leader_recovery_state != RECOVERED && in->leader_recovery_state != RECOVERING)
        return K_INVALID_REQUEST;
    if (in->leader_recovery_state == RECOVERING &&
        (isr.n > 1 || p->leader_recovery_state == RECOVERED))
        return K_INVALID_REQUEST;
    return K_NONE;
}

static int64_t epoch_of(const struct alteration *a,
                        const struct alter_partition_request_partition_data *in, int32_t i)
{
    return a->version >= 3 ? in->new_isr_with_epochs.v[i].broker_epoch : -1;
}

/* A member must be as it was when the leader saw it catch up: not fenced, not about to leave, and
 * the same life of the broker (-1: it is a member already, and was not heard yet). */
static int16_t check_members(const struct alteration *a,
                             const struct alter_partition_request_partition_data *in,
                             struct replica_set isr)
{
    for (int32_t i = 0; i < isr.n; i++) {
        const struct image_broker *b = image_broker(&a->c->ahead, isr.v[i]);
        const int64_t epoch = epoch_of(a, in, i);
        if (b == NULL || b->in_controlled_shutdown || b->fenced ||
            (epoch != -1 && epoch != b->epoch))
            return K_INELIGIBLE_REPLICA;
    }
    return K_NONE;
}

static int16_t check(const struct alteration *a, const struct image_partition *p,
                     const struct alter_partition_request_partition_data *in,
                     struct replica_set isr)
{
    int16_t error = check_epochs(p, in, a->req->broker_id);
    if (error == K_NONE)
        error = check_isr(p, in, isr);
    return error != K_NONE ? error : check_members(a, in, isr);
}

/* ------------------------------------------------------------------ one partition */

static bool ids_of(const struct alteration *a,
                   const struct alter_partition_request_partition_data *in, struct replica_set *out)
{
    if (a->version < 3) {
        *out = (struct replica_set){in->new_isr.v, in->new_isr.n};
        return true;
    }
    *out = (struct replica_set){
        arena_array(a->arena, (size_t)in->new_isr_with_epochs.n, sizeof(int32_t)),
        in->new_isr_with_epochs.n};
    for (int32_t i = 0; out->v != NULL && i < out->n; i++)
        out->v[i] = in->new_isr_with_epochs.v[i].broker_id;
    return out->v != NULL;
}

static bool answer(struct alteration *a, const struct partition_change *pc,
                   struct alter_partition_response_partition_data *out)
{
    out->leader_id = pc->leader;
    out->leader_epoch = pc->leader_epoch;
    out->leader_recovery_state = pc->recovery;
    out->partition_epoch = pc->partition_epoch;
    return replica_set_copy(a->arena, pc->isr, &out->isr.v, &out->isr.n);
}

static enum err alter(struct alteration *a, const struct image_topic *t, int32_t index,
                      const struct alter_partition_request_partition_data *in,
                      struct replica_set isr, struct alter_partition_response_partition_data *out)
{
    struct partition_change pc;
    const struct topic_rules rules = topic_rules_of(a->c, t);
    partition_change_open(&pc, a->c, t, index, &rules);
    pc.isr = isr;
    pc.recovery = in->leader_recovery_state;
    enum err e = partition_set_add(&a->seen, t->id, index);
    if (e == ERR_NONE)
        e = partition_change_add(&pc, &a->records);
    if (e != ERR_NONE)
        return e;
    if (pc.leader != a->req->broker_id) {
        out->error_code = K_NEW_LEADER_ELECTED; /* by the end of a reassignment */
        return ERR_NONE;
    }
    return answer(a, &pc, out) ? ERR_NONE : ERR_NOMEM;
}

static enum err take_partition(struct alteration *a, struct image_topic *t,
                               const struct alter_partition_request_partition_data *in,
                               struct alter_partition_response_partition_data *out)
{
    struct replica_set isr;
    out->partition_index = in->partition_index;
    const struct image_partition *p = t == NULL ? NULL : image_partition(t, in->partition_index);
    if (!ids_of(a, in, &isr))
        return ERR_NOMEM;
    if (t == NULL)
        out->error_code = K_UNKNOWN_TOPIC_ID;
    else if (p == NULL)
        out->error_code = K_UNKNOWN_TOPIC_OR_PARTITION;
    else if (partition_set_has(&a->seen, t->id, in->partition_index))
        out->error_code = K_INVALID_UPDATE_VERSION; /* by an entry before this one */
    else
        out->error_code = check(a, p, in, isr);
    return out->error_code != K_NONE ? ERR_NONE : alter(a, t, in->partition_index, in, isr, out);
}

/* ------------------------------------------------------------------ the request */

static enum err take_topic(struct alteration *a,
                           const struct alter_partition_request_topic_data *in,
                           struct alter_partition_response_topic_data *out)
{
    out->topic_id = in->topic_id;
    out->partitions.v = wire_array(&wire_alter_partition_response_partition_data, a->arena,
                                   (size_t)in->partitions.n);
    if (out->partitions.v == NULL)
        return ERR_NOMEM;
    out->partitions.n = in->partitions.n;
    struct image_topic *t = image_topic_by_id(&a->c->ahead, in->topic_id);
    enum err e = ERR_NONE;
    for (int32_t i = 0; e == ERR_NONE && i < in->partitions.n; i++)
        e = take_partition(a, t, &in->partitions.v[i], &out->partitions.v[i]);
    return e;
}

static enum err take_all(struct alteration *a, struct alter_partition_response *resp,
                         struct now now)
{
    const int32_t n = a->req->topics.n;
    resp->topics.v = wire_array(&wire_alter_partition_response_topic_data, a->arena, (size_t)n);
    if (resp->topics.v == NULL)
        return ERR_NOMEM;
    enum err e = ERR_NONE;
    for (int32_t i = 0; e == ERR_NONE && i < n; i++)
        e = take_topic(a, &a->req->topics.v[i], &resp->topics.v[i]);
    if (e == ERR_NONE)
        e = controller_append(a->c, &a->records, false, now);
    if (e == ERR_NONE)
        resp->topics.n = n;
    return e;
}

void controller_alter_partition(struct controller *c, struct controller_op *op,
                                const struct alter_partition_request *req, int16_t version,
                                struct arena *arena, struct alter_partition_response *resp,
                                struct now now)
{
    if (!controller_begin(c, op))
        return;
    const struct image_broker *b = image_broker(&c->ahead, req->broker_id);
    if (b == NULL || b->epoch != req->broker_epoch) {
        controller_finish(c, op, K_STALE_BROKER_EPOCH);
        return;
    }
    struct alteration a = {.c = c, .req = req, .version = version, .arena = arena};
    record_list_init(&a.records);
    partition_set_init(&a.seen, c->ahead.seed);
    enum err e = take_all(&a, resp, now);
    record_list_close(&a.records);
    partition_set_close(&a.seen);
    controller_finish(c, op, e == ERR_NONE ? K_NONE : controller_error_of(e));
}
