/* LeaveGroup (groups.md 2, KIP-345): members by their ids, static ones by their instances too. All
 * leave first, then the group rebalances once. */
#include "core/group/classic_impl.h"

static void finish(struct classic *g, struct classic_leave_op *op)
{
    list_append(g->args.ready, &op->op.ready);
}

/* One that was there: its parked requests end with UNKNOWN_MEMBER_ID. */
static void leave_member(struct classic *g, struct classic_member *m, struct str reason)
{
    if (reason.n < 0)
        reason = STR_LIT("not provided");
    env_log(g->args.env, LOG_INFO, "group_member_left group=%.*s member=%.*s reason=\"%.*s\"",
            (int)g->id.n, g->id.p, (int)m->id.n, m->id.p, (int)reason.n, reason.p);
    classic_member_remove(m);
}

static int16_t leave_one(struct classic *g, struct str id, struct str instance, struct str reason)
{
    struct classic_pending *pending = classic_pending(g, id);
    struct classic_member *m = classic_static_member(g, instance);
    if (id.n <= 0) {
        if (m == NULL)
            return K_UNKNOWN_MEMBER_ID;
    } else if (pending != NULL) {
        classic_pending_remove(pending);
        return K_NONE;
    } else {
        const int16_t error = classic_validate(g, id, instance);
        if (error != K_NONE)
            return error;
        m = classic_member(g, id);
    }
    leave_member(g, m, reason);
    return K_NONE;
}

/* How many left. */
static int32_t leave_all(struct classic *g, struct classic_leave_op *op)
{
    const struct leave_group_request *req = op->request;
    struct leave_group_response *r = op->response;
    int32_t left_n = 0;
    for (int32_t i = 0; i < req->members.n; i++) {
        const struct leave_group_request_member_identity *in = &req->members.v[i];
        struct leave_group_response_member_response *out = &r->members.v[r->members.n++];
        out->member_id = in->member_id;
        out->group_instance_id = in->group_instance_id;
        out->error_code = leave_one(g, in->member_id, in->group_instance_id, in->reason);
        left_n += out->error_code == K_NONE;
    }
    return left_n;
}

/* Versions 0 to 2: one member, whose error is the answer's. */
static int32_t leave_only(struct classic *g, struct classic_leave_op *op)
{
    op->response->error_code = leave_one(g, op->request->member_id, STR_NULL, STR_NULL);
    return op->response->error_code == K_NONE;
}

void classic_left(struct classic_leave_op *op, int16_t error)
{
    op->store = NULL;
    if (error != K_NONE) {
        op->response->error_code = error;
        op->response->members.n = 0;
    }
    finish(op->group, op);
}

static bool make_answer(struct classic_leave_op *op)
{
    struct leave_group_response *r = op->response;
    wire_default(&wire_leave_group_response, r);
    if (op->version <= 2)
        return true;
    r->members.v = wire_array(&wire_leave_group_response_member_response, op->arena,
                              (size_t)op->request->members.n);
    return r->members.v != NULL;
}

void classic_leave_refuse(struct classic_leave_op *op, int16_t error)
{
    const struct leave_group_request *req = op->request;
    struct leave_group_response *r = op->response;
    const bool each = error == K_UNKNOWN_MEMBER_ID && op->version > 2;
    if (!make_answer(op))
        error = CLASSIC_NO_MEMORY;
    if (!each || error != K_UNKNOWN_MEMBER_ID) {
        r->error_code = error;
        return;
    }
    for (int32_t i = 0; i < req->members.n; i++) {
        r->members.v[i].member_id = req->members.v[i].member_id;
        r->members.v[i].group_instance_id = req->members.v[i].group_instance_id;
        r->members.v[i].error_code = error;
    }
    r->members.n = req->members.n;
}

static void await(struct classic_leave_op *op, struct classic_store *s)
{
    s->leave = op;
    op->store = s;
}

void classic_leave_cancel(struct classic_leave_op *op)
{
    if (op->store == NULL)
        return;
    op->store->leave = NULL;
    classic_left(op, K_NOT_COORDINATOR);
}

/* The group rebalances; when nobody is left, the answer waits until it is stored that it is Empty.
 */
static void go_on(struct classic *g, struct classic_leave_op *op)
{
    const enum classic_state before = g->state;
    classic_rebalance(g, "members left");
    if (before == CLASSIC_EMPTY || g->state != CLASSIC_EMPTY)
        classic_left(op, K_NONE);
    else if (g->empty_refused != K_NONE)
        classic_left(op, g->empty_refused);
    else
        await(op, LIST_ENTRY(g->stores.prev, struct classic_store, link));
}

void classic_leave(struct classic *g, struct classic_leave_op *op, struct now now)
{
    g->now = now;
    op->group = g;
    op->store = NULL;
    list_init(&op->op.ready);
    if (g->state == CLASSIC_DEAD || !make_answer(op)) {
        classic_leave_refuse(op, K_COORDINATOR_NOT_AVAILABLE);
        finish(g, op);
        return;
    }
    const int32_t left_n = op->version <= 2 ? leave_only(g, op) : leave_all(g, op);
    if (left_n > 0 && g->state != CLASSIC_EMPTY)
        go_on(g, op);
    else
        classic_left(op, K_NONE);
}
