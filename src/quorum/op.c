/* Requests of other nodes: what all of them have in common. Their answers wait together for the
 * disk, since each may tell of a state that is not on it yet. */
#include "quorum/inside.h"
#include "wire/error.h"

bool raft_right_cluster(const struct raft *r, struct str cluster_id)
{
    return cluster_id.n < 0 || str_eq(cluster_id, str_of(r->cluster_id));
}

bool raft_is_metadata_topic(struct str name)
{
    return str_eq(name, RAFT_TOPIC);
}

bool raft_meant_for_other(const struct raft *r, int32_t voter_id, struct uuid directory_id)
{
    return (voter_id >= 0 && voter_id != r->node_id) ||
           (!uuid_is_zero(directory_id) && !uuid_eq(directory_id, r->directory_id));
}

int16_t raft_check_other_leader(const struct raft *r, int32_t epoch, int32_t leader_id)
{
    if (epoch < r->epoch)
        return K_FENCED_LEADER_EPOCH;
    if (leader_id < 0 || leader_id == r->node_id || epoch > RAFT_EPOCH_MAX ||
        (epoch == r->epoch && r->leader_id >= 0 && r->leader_id != leader_id))
        return K_INVALID_REQUEST;
    return K_NONE;
}

bool raft_node_endpoint(const struct raft *r, const struct raft_op *op, int32_t *id,
                        struct str *host, uint16_t *port)
{
    /* every node is known by one listener: the first that all of them name */
    if (op->listener.n > 0 && r->endpoint.listener.n > 0 &&
        !str_eq(op->listener, r->endpoint.listener))
        return false;
    return raft_leader_endpoint(r, id, host, port);
}

void raft_op_begin(struct raft *r, struct raft_op *op, const void *in, void *out)
{
    op->raft = r;
    op->err = ERR_NONE;
    op->in = in;
    op->out = out;
    op->timer = (struct timer){0};
    op->counted = op->hastened = false;
    list_init(&op->link);
}

void raft_op_ready(struct raft *r, struct raft_op *op, enum err e)
{
    op->err = e;
    list_append(&r->done_ops, &op->link);
}

void raft_op_hasten(struct raft_op *op)
{
    op->hastened = true;
    op->raft->parked_look = true;
}

bool raft_finish_ops(struct raft *r)
{
    struct list *l;
    bool moved = false;
    while (raft_is_durable(r) && (l = list_pop(&r->done_ops)) != NULL) {
        struct raft_op *op = LIST_ENTRY(l, struct raft_op, link);
        op->done(op);
        moved = true;
    }
    return moved;
}

static void abandon(struct raft *r, struct list *ops)
{
    struct list *l;
    while ((l = list_pop(ops)) != NULL) {
        struct raft_op *op = LIST_ENTRY(l, struct raft_op, link);
        timer_cancel(r->timers, &op->timer);
        op->err = ERR_CLOSED;
        op->done(op);
    }
}

void raft_abandon_ops(struct raft *r)
{
    raft_abort_change(r);
    abandon(r, &r->done_ops);
    abandon(r, &r->parked);
}
