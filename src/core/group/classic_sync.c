/* SyncGroup (groups.md 2). The leader's one brings all assignments: they are kept beside the
 * present ones until the group's record is committed, then all parked Syncs are answered. */
#include "core/group/classic_impl.h"

#include "base/check.h"

/* ------------------------------------------------------------------ answers */

void classic_sync_refuse(struct classic_sync_op *op, int16_t error)
{
    wire_default(&wire_sync_group_response, op->response);
    op->response->error_code = error;
    op->member = NULL;
}

static void finish(struct classic_sync_op *op)
{
    op->member = NULL;
    list_append(op->group->args.ready, &op->op.ready);
}

static void fail(struct classic_sync_op *op, int16_t error)
{
    classic_sync_refuse(op, error);
    finish(op);
}

static void succeed(const struct classic_member *m, struct classic_sync_op *op)
{
    const struct classic *g = m->group;
    struct sync_group_response *r = op->response;
    wire_default(&wire_sync_group_response, r);
    if (classic_show(op->arena, g->protocol_type, &r->protocol_type) &&
        classic_show(op->arena, classic_protocol_name(g), &r->protocol_name) &&
        classic_show_bytes(op->arena, m->assignment, &r->assignment))
        finish(op);
    else
        fail(op, CLASSIC_NO_MEMORY);
}

/* ------------------------------------------------------------------ parking */

static void park(struct classic_member *m, struct classic_sync_op *op)
{
    struct classic_sync_op *old = m->sync;
    m->syncing = true;
    m->sync = op;
    op->member = m;
    if (old != NULL)
        fail(old, K_REBALANCE_IN_PROGRESS);
}

static struct classic_sync_op *unpark(struct classic_member *m)
{
    struct classic_sync_op *op = m->sync;
    m->syncing = false;
    m->sync = NULL;
    return op;
}

void classic_end_sync(struct classic_member *m, int16_t error)
{
    struct classic_sync_op *op = unpark(m);
    if (op != NULL)
        fail(op, error);
}

void classic_sync_cancel(struct classic_sync_op *op)
{
    struct classic_member *m = op->member;
    if (m == NULL)
        return;
    m->sync = NULL;
    fail(op, K_NOT_COORDINATOR);
}

/* m is not waited for any more in the sync phase. */
static void came(struct classic_member *m)
{
    struct classic *g = m->group;
    if (!m->sync_due)
        return;
    m->sync_due = false;
    if (--g->sync_due_n == 0)
        classic_rearm(g, &g->phase, CLASSIC_NEVER);
}

/* ------------------------------------------------------------------ assignments */

static void drop_next(struct classic *g)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->members)
    {
        classic_drop_bytes(g, &LIST_ENTRY(l, struct classic_member, link)->next_assignment);
    }
}

/* Those of strangers are ignored, the last one of a member counts, who has none gets no bytes. */
static enum err take_next(struct classic *g, const struct sync_group_request *req)
{
    for (int32_t i = 0; i < req->assignments.n; i++) {
        const struct sync_group_request_sync_group_request_assignment *in = &req->assignments.v[i];
        struct classic_member *m = classic_member(g, in->member_id);
        if (m == NULL)
            continue;
        classic_drop_bytes(g, &m->next_assignment);
        if (classic_copy_bytes(g, in->assignment, &m->next_assignment) != ERR_NONE) {
            drop_next(g);
            return ERR_NOMEM;
        }
    }
    return ERR_NONE;
}

/* A parked Sync is through; its session begins anew, which ended unseen while it was parked. */
static void answer(struct classic_member *m, int16_t error)
{
    if (!m->syncing)
        return;
    struct classic_sync_op *op = unpark(m);
    if (op != NULL && error != K_NONE)
        fail(op, error);
    else if (op != NULL)
        succeed(m, op);
    classic_session_reset(m, m->session_timeout_ms);
}

void classic_reset_assignments(struct classic *g, int16_t error)
{
    struct list *l, *tmp;
    drop_next(g);
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        classic_drop_bytes(g, &m->assignment);
        answer(m, error);
    }
}

static void assign(struct classic *g)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        classic_drop_bytes(g, &m->assignment);
        m->assignment = m->next_assignment;
        m->next_assignment = (struct bytes){NULL, 0};
        answer(m, K_NONE);
    }
    classic_enter(g, CLASSIC_STABLE);
}

static void not_stored(struct classic *g, int16_t error)
{
    env_log(g->args.env, LOG_WARN, "group_assignment_not_stored group=%.*s generation=%d error=%d",
            (int)g->id.n, g->id.p, g->generation, error);
    classic_reset_assignments(g, error);
    classic_rebalance(g, "assignment could not be stored");
}

/* A rebalance meanwhile has dropped what was to be assigned. */
void classic_synced(struct classic *g, struct classic_store *s, int16_t error)
{
    if (g->state != CLASSIC_COMPLETING || s->generation != g->generation)
        return;
    if (error != K_NONE)
        not_stored(g, error);
    else
        assign(g);
}

/* ------------------------------------------------------------------ the request */

static bool being_stored(const struct classic *g)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->stores)
    {
        const struct classic_store *s = LIST_ENTRY(l, struct classic_store, link);
        if (s->kind == CLASSIC_STORE_SYNC && s->generation == g->generation)
            return true;
    }
    return false;
}

/* A leader that asks twice gets what is being stored, as it would in Stable. */
static void sync_leader(struct classic_member *m, struct classic_sync_op *op)
{
    struct classic *g = m->group;
    struct classic_store *s = NULL;
    const bool first = !being_stored(g);
    if (first) {
        s = classic_store_new(g, CLASSIC_STORE_SYNC);
        if (s == NULL || take_next(g, op->request) != ERR_NONE) {
            if (s != NULL)
                classic_store_free(g, s);
            fail(op, CLASSIC_NO_MEMORY);
            return;
        }
    }
    park(m, op);
    came(m);
    if (!first)
        return;
    const int16_t error = classic_store_begin(g, s);
    if (error != K_NONE) {
        classic_store_free(g, s);
        not_stored(g, error);
    }
}

static void sync_member(struct classic_member *m, struct classic_sync_op *op)
{
    struct classic *g = m->group;
    switch (g->state) {
    case CLASSIC_PREPARING:
        fail(op, K_REBALANCE_IN_PROGRESS);
        return;
    case CLASSIC_COMPLETING:
        if (g->leader == m) {
            sync_leader(m, op);
        } else {
            park(m, op);
            came(m);
        }
        return;
    case CLASSIC_STABLE:
        came(m);
        succeed(m, op);
        return;
    case CLASSIC_EMPTY:
    case CLASSIC_DEAD:
        break;
    }
    CHECK(false); /* neither has members */
}

static bool differs(struct str given, struct str ours)
{
    return given.n >= 0 && ours.n >= 0 && !str_eq(given, ours);
}

static int16_t check(const struct classic *g, const struct sync_group_request *req)
{
    if (g->state == CLASSIC_DEAD)
        return K_COORDINATOR_NOT_AVAILABLE;
    const int16_t error = classic_validate(g, req->member_id, req->group_instance_id);
    if (error != K_NONE)
        return error;
    if (req->generation_id != g->generation)
        return K_ILLEGAL_GENERATION;
    if (differs(req->protocol_type, g->protocol_type) ||
        differs(req->protocol_name, classic_protocol_name(g)))
        return K_INCONSISTENT_GROUP_PROTOCOL;
    return K_NONE;
}

void classic_sync(struct classic *g, struct classic_sync_op *op, struct now now)
{
    g->now = now;
    op->group = g;
    op->member = NULL;
    list_init(&op->op.ready);
    const int16_t error = check(g, op->request);
    if (error != K_NONE)
        fail(op, error);
    else
        sync_member(classic_member(g, op->request->member_id), op);
}
