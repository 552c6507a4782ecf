/* JoinGroup, from the check of the group's size on (groups.md 2, steps 4 to 7). A Join that waits
 * for the next generation is parked with its member. */
#include "core/group/classic_impl.h"

#include "base/check.h"

/* Kafka's: a new member whose Join is parked is forgotten after that, its session does not count */
enum { NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000 };
/* from here on a member without an id is sent away to come back with one (KIP-394) */
enum { VERSION_ID_REQUIRED = 4 };

/* ------------------------------------------------------------------ answers */

void classic_join_refuse(struct classic_join_op *op, int16_t error, struct str member_id)
{
    struct join_group_response *r = op->response;
    wire_default(&wire_join_group_response, r);
    r->error_code = error;
    r->protocol_name = op->version >= 7 ? STR_NULL : STR_LIT("");
    if (!classic_show(op->arena, member_id, &r->member_id))
        r->member_id = STR_LIT("");
    op->member = NULL;
}

static void finish(struct classic_join_op *op)
{
    op->member = NULL;
    list_append(op->group->args.ready, &op->op.ready);
}

static void fail(struct classic_join_op *op, int16_t error, struct str member_id)
{
    classic_join_refuse(op, error, member_id);
    finish(op);
}

static bool list_members(const struct classic *g, struct arena *a, struct join_group_response *r)
{
    struct list *l, *tmp;
    const struct str protocol = classic_protocol_name(g);
    r->members.v =
        wire_array(&wire_join_group_response_join_group_response_member, a, g->members_n);
    if (r->members.v == NULL)
        return false;
    LIST_EACH(l, tmp, &g->members)
    {
        const struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        struct join_group_response_join_group_response_member *out = &r->members.v[r->members.n++];
        if (!classic_show(a, m->id, &out->member_id) ||
            !classic_show(a, m->instance, &out->group_instance_id) ||
            !classic_show_bytes(a, classic_protocols_metadata(m->protocols, protocol),
                                &out->metadata))
            return false;
    }
    return true;
}

static bool describe(const struct classic_member *m, const struct classic_joined *j,
                     struct arena *a, struct join_group_response *r)
{
    const struct classic *g = m->group;
    wire_default(&wire_join_group_response, r);
    r->generation_id = g->generation;
    r->skip_assignment = j->skip_assignment;
    return classic_show(a, g->protocol_type, &r->protocol_type) &&
           classic_show(a, classic_protocol_name(g), &r->protocol_name) &&
           classic_show(a, j->leader, &r->leader) && classic_show(a, m->id, &r->member_id) &&
           (!j->members || list_members(g, a, r));
}

/* m's present generation. */
static void succeed(const struct classic_member *m, struct classic_join_op *op,
                    const struct classic_joined *j)
{
    if (describe(m, j, op->arena, op->response))
        finish(op);
    else
        fail(op, CLASSIC_NO_MEMORY, m->id);
}

/* ------------------------------------------------------------------ parking */

void classic_park_join(struct classic_member *m, struct classic_join_op *op)
{
    struct classic_join_op *old = m->join;
    if (!m->joining)
        m->group->joining_n++;
    m->joining = true;
    m->join = op;
    op->member = m;
    if (old != NULL)
        fail(old, K_REBALANCE_IN_PROGRESS, m->id);
}

/* The Join to answer, if its client is still there. */
static struct classic_join_op *unpark(struct classic_member *m)
{
    struct classic_join_op *op = m->join;
    if (m->joining)
        m->group->joining_n--;
    m->joining = false;
    m->join = NULL;
    return op;
}

void classic_end_join(struct classic_member *m, int16_t error, struct str member_id)
{
    struct classic_join_op *op = unpark(m);
    if (op != NULL)
        fail(op, error, member_id);
}

void classic_answer_join(struct classic_member *m, const struct classic_joined *j)
{
    struct classic_join_op *op = unpark(m);
    if (op != NULL)
        succeed(m, op, j);
}

void classic_join_cancel(struct classic_join_op *op)
{
    struct classic_member *m = op->member;
    if (m == NULL)
        return;
    m->join = NULL;
    fail(op, K_NOT_COORDINATOR, m->id);
}

/* ------------------------------------------------------------------ a new member */

static int32_t rebalance_timeout(const struct classic_join_op *op)
{
    return op->version == 0 ? op->request->session_timeout_ms : op->request->rebalance_timeout_ms;
}

static struct classic_protocols *copy_protocols(struct classic *g, const struct classic_join_op *op)
{
    return classic_protocols_new(g, op->request->protocols.v, op->request->protocols.n);
}

static enum err new_member(struct classic *g, const struct classic_join_op *op, struct str id,
                           struct classic_member **out)
{
    const struct join_group_request *req = op->request;
    const struct classic_newcomer in = {
        .id = id,
        .instance = req->group_instance_id,
        .client_id = op->client_id.n < 0 ? STR_LIT("") : op->client_id,
        .client_host = op->client_host,
        .protocol_type = req->protocol_type,
        .session_timeout_ms = req->session_timeout_ms,
        .rebalance_timeout_ms = rebalance_timeout(op),
        .protocols = copy_protocols(g, op),
    };
    if (in.protocols == NULL)
        return ERR_NOMEM;
    enum err e = classic_member_add(g, &in, out);
    if (e != ERR_NONE)
        classic_protocols_free(g, in.protocols);
    return e;
}

/* pending: whose id it is, or NULL. */
static void add_member(struct classic *g, struct classic_join_op *op, struct str id,
                       struct classic_pending *pending)
{
    struct classic_member *m;
    if (new_member(g, op, id, &m) != ERR_NONE) {
        fail(op, CLASSIC_NO_MEMORY, op->request->member_id);
        return;
    }
    if (pending != NULL)
        classic_pending_remove(pending);
    m->fresh = true;
    g->member_added = true;
    classic_park_join(m, op);
    classic_session_reset(m, NEW_MEMBER_TIMEOUT_MS);
    classic_rebalance(g, "member added");
}

static void require_id(struct classic *g, struct classic_join_op *op, struct str id)
{
    if (classic_pending_add(g, id, op->request->session_timeout_ms) == ERR_NONE)
        fail(op, K_MEMBER_ID_REQUIRED, id);
    else
        fail(op, CLASSIC_NO_MEMORY, op->request->member_id);
}

static void replace_member(struct classic *g, struct classic_join_op *op, struct str id,
                           struct classic_member *m)
{
    struct classic_protocols *p = copy_protocols(g, op);
    if (p == NULL || classic_replace(m, op, id, p, rebalance_timeout(op)) != ERR_NONE) {
        classic_protocols_free(g, p);
        fail(op, CLASSIC_NO_MEMORY, op->request->member_id);
    }
}

static void join_without_id(struct classic *g, struct classic_join_op *op)
{
    const struct str instance = op->request->group_instance_id;
    const struct str id =
        classic_fresh_id(g, instance.n >= 0 ? instance : op->client_id, op->arena);
    struct classic_member *m = classic_static_member(g, instance);
    if (id.n < 0)
        fail(op, CLASSIC_NO_MEMORY, op->request->member_id);
    else if (m != NULL)
        replace_member(g, op, id, m);
    else if (instance.n < 0 && op->version >= VERSION_ID_REQUIRED)
        require_id(g, op, id);
    else
        add_member(g, op, id, NULL);
}

/* ------------------------------------------------------------------ a known one */

static void rejoin(struct classic_member *m, struct classic_join_op *op,
                   struct classic_protocols *p, const char *reason)
{
    struct classic *g = m->group;
    if (classic_member_update(m, p, op->request->session_timeout_ms, rebalance_timeout(op)) !=
        ERR_NONE) {
        classic_protocols_free(g, p);
        fail(op, CLASSIC_NO_MEMORY, m->id);
        return;
    }
    classic_park_join(m, op);
    classic_rebalance(g, reason);
}

/* Nothing changes: the answer of the present generation, which the client may have missed. */
static void tell_again(struct classic_member *m, struct classic_join_op *op,
                       struct classic_protocols *p)
{
    struct classic *g = m->group;
    const struct classic_joined joined = {
        .leader = g->leader->id,
        .members = g->leader == m,
    };
    classic_protocols_free(g, p);
    succeed(m, op, &joined);
}

static void join_member(struct classic_member *m, struct classic_join_op *op)
{
    struct classic *g = m->group;
    struct classic_protocols *p = copy_protocols(g, op);
    if (p == NULL) {
        fail(op, CLASSIC_NO_MEMORY, m->id);
        return;
    }
    const bool same = classic_protocols_equal(p, m->protocols);
    switch (g->state) {
    case CLASSIC_PREPARING:
        rejoin(m, op, p, "member rejoins");
        return;
    case CLASSIC_COMPLETING:
        if (same)
            tell_again(m, op, p);
        else
            rejoin(m, op, p, "member changed");
        return;
    case CLASSIC_STABLE:
        if (g->leader == m)
            rejoin(m, op, p, "leader rejoins");
        else if (same)
            tell_again(m, op, p);
        else
            rejoin(m, op, p, "member changed");
        return;
    case CLASSIC_EMPTY:
    case CLASSIC_DEAD:
        break;
    }
    CHECK(false); /* neither has members */
}

static void join_with_id(struct classic *g, struct classic_join_op *op)
{
    const struct join_group_request *req = op->request;
    struct classic_pending *pending = classic_pending(g, req->member_id);
    if (pending != NULL && req->group_instance_id.n >= 0) {
        fail(op, K_UNKNOWN_SERVER_ERROR, STR_LIT("")); /* as Kafka, which did not expect it */
    } else if (pending != NULL) {
        add_member(g, op, req->member_id, pending);
    } else {
        const int16_t error = classic_validate(g, req->member_id, req->group_instance_id);
        if (error != K_NONE)
            fail(op, error, req->member_id);
        else
            join_member(classic_member(g, req->member_id), op);
    }
}

/* ------------------------------------------------------------------ the way in */

/* group.max.size: in Preparing those count who are there already, so that the last to rejoin of a
 * group that is too large are sent away. */
static bool has_room(const struct classic *g, struct str id)
{
    const size_t max = (size_t)config_int(g->args.config, "group.max.size");
    const struct classic_member *m = classic_member(g, id);
    switch (g->state) {
    case CLASSIC_EMPTY:
    case CLASSIC_DEAD:
        return true;
    case CLASSIC_PREPARING:
        return (m != NULL && m->joining) || g->joining_n < max;
    case CLASSIC_COMPLETING:
    case CLASSIC_STABLE:
        return m != NULL || g->members_n < max;
    }
    return true;
}

/* The member is not wanted any more: in Preparing it may be the one that the others wait for. */
static void turn_away(struct classic *g, struct str id)
{
    struct classic_member *m = classic_member(g, id);
    struct classic_pending *p = classic_pending(g, id);
    if (m != NULL)
        classic_member_remove(m);
    if (p != NULL)
        classic_pending_remove(p);
    classic_maybe_complete(g);
}

static bool speaks(const struct classic *g, const struct join_group_request *req)
{
    if (g->state == CLASSIC_EMPTY)
        return req->protocol_type.n > 0 && req->protocols.n > 0;
    if (!str_eq(req->protocol_type, g->protocol_type))
        return false;
    for (int32_t i = 0; i < req->protocols.n; i++)
        if (classic_supported(g, req->protocols.v[i].name))
            return true;
    return false;
}

void classic_join(struct classic *g, struct classic_join_op *op, struct now now)
{
    const struct join_group_request *req = op->request;
    g->now = now;
    op->group = g;
    op->member = NULL;
    list_init(&op->op.ready);
    if (g->state == CLASSIC_DEAD) {
        fail(op, K_COORDINATOR_NOT_AVAILABLE, req->member_id);
    } else if (!has_room(g, req->member_id)) {
        fail(op, K_GROUP_MAX_SIZE_REACHED, STR_LIT(""));
        turn_away(g, req->member_id);
    } else if (!speaks(g, req)) {
        fail(op, K_INCONSISTENT_GROUP_PROTOCOL, req->member_id);
    } else if (req->member_id.n <= 0) {
        join_without_id(g, op);
    } else {
        join_with_id(g, op);
    }
}
