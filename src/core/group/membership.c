/* The requests of classic groups' members: which group of which shard they mean (groups.md 1 and 2,
 * steps 1 to 3 of JoinGroup); the group itself answers them. Groups of kinds that are not served
 * can be here from a log of Kafka's: nobody is a member of them that we could know. */
#include "core/group/write.h"

/* ------------------------------------------------------------------ JoinGroup */

static int16_t check_join(const struct groups *gs, const struct join_group_request *req)
{
    const int64_t timeout = req->session_timeout_ms;
    if (req->group_id.n <= 0)
        return K_INVALID_GROUP_ID;
    if (timeout < config_int(gs->config, "group.min.session.timeout.ms") ||
        timeout > config_int(gs->config, "group.max.session.timeout.ms"))
        return K_INVALID_SESSION_TIMEOUT;
    return K_NONE;
}

/* The group that a member joins; made if need be, also in place of an empty one of another kind. */
static int16_t join_where(struct shard *sh, const struct join_group_request *req,
                          struct group **out, bool *made)
{
    const struct now now = sh->gs->now;
    *out = shard_group(sh, req->group_id);
    switch (group_kind(*out)) {
    case GROUP_NONE:
        break;
    case GROUP_CLASSIC:
        return K_NONE;
    case GROUP_CONSUMER:
    case GROUP_STREAMS:
        if (!life_is_empty((*out)->life, now))
            return K_INCONSISTENT_GROUP_PROTOCOL;
        break;
    case GROUP_SHARE:
        return K_INCONSISTENT_GROUP_PROTOCOL;
    }
    if (req->member_id.n > 0)
        return K_UNKNOWN_MEMBER_ID;
    *made = true;
    return group_create_classic(sh, req->group_id, now, out);
}

static void refuse_join(struct groups *gs, struct classic_join_op *op, int16_t error,
                        struct str member_id)
{
    classic_join_refuse(op, error, member_id);
    groups_op_ready(gs, &op->op);
}

/* The refusal stands, whatever becomes of the group. */
static void made_ended(struct group_wait *wait, int16_t error)
{
    (void)wait;
    (void)error;
}

/* A refused protocol makes the group all the same. Its answer waits until others see the group
 * (Kafka's does not): who is told may ask at once. */
static void await_made(struct shard *sh, struct groups_join_op *op)
{
    struct classic_join_op *join = &op->join;
    if (join->response->error_code != K_INCONSISTENT_GROUP_PROTOCOL ||
        list_empty(&join->op.ready) || list_empty(&sh->writes))
        return;
    list_remove(&join->op.ready);
    write_await(LIST_ENTRY(sh->writes.prev, struct write, link), &op->wait, &join->op, made_ended);
}

static int16_t join(struct groups *gs, struct groups_join_op *op)
{
    const struct join_group_request *req = op->join.request;
    struct shard *sh;
    struct group *g;
    bool made = false;
    int16_t error = groups_shard(gs, req->group_id, &sh);
    if (error == K_NONE)
        error = join_where(sh, req, &g, &made);
    if (error != K_NONE)
        return error;
    classic_join(g->life->classic, &op->join, gs->now);
    if (made)
        await_made(sh, op);
    return K_NONE;
}

void groups_join(struct groups *gs, struct groups_join_op *op, struct now now)
{
    const struct join_group_request *req = op->join.request;
    gs->now = now;
    group_wait_init(gs, &op->wait);
    int16_t error = check_join(gs, req);
    if (error != K_NONE) {
        refuse_join(gs, &op->join, error, req->member_id);
        return;
    }
    error = join(gs, op);
    if (error != K_NONE)
        refuse_join(gs, &op->join, error,
                    error == K_UNKNOWN_MEMBER_ID ? req->member_id : STR_LIT(""));
}

void groups_join_cancel(struct groups_join_op *op)
{
    classic_join_cancel(&op->join);
    group_wait_cancel(&op->wait);
}

/* ------------------------------------------------------------------ members' other requests */

/* The classic group that a member speaks of. K_NONE, or the error that it gets. */
static int16_t find_classic(struct groups *gs, struct str id, struct classic **out)
{
    struct shard *sh;
    int16_t error = id.n <= 0 ? K_INVALID_GROUP_ID : groups_shard(gs, id, &sh);
    if (error != K_NONE)
        return error;
    const struct group *g = shard_group(sh, id);
    if (group_kind(g) != GROUP_CLASSIC)
        return K_UNKNOWN_MEMBER_ID;
    *out = g->life->classic;
    return K_NONE;
}

void groups_sync(struct groups *gs, struct classic_sync_op *op, struct now now)
{
    struct classic *c;
    gs->now = now;
    const int16_t error = find_classic(gs, op->request->group_id, &c);
    if (error == K_NONE) {
        classic_sync(c, op, now);
        return;
    }
    classic_sync_refuse(op, error);
    groups_op_ready(gs, &op->op);
}

void groups_leave(struct groups *gs, struct classic_leave_op *op, struct now now)
{
    struct classic *c;
    gs->now = now;
    const int16_t error = find_classic(gs, op->request->group_id, &c);
    if (error == K_NONE) {
        classic_leave(c, op, now);
        return;
    }
    classic_leave_refuse(op, error);
    groups_op_ready(gs, &op->op);
}

/* While the group loads its members are not to worry. */
int16_t groups_heartbeat(struct groups *gs, const struct heartbeat_request *req, struct now now)
{
    struct classic *c;
    gs->now = now;
    const int16_t error = find_classic(gs, req->group_id, &c);
    if (error == K_COORDINATOR_LOAD_IN_PROGRESS)
        return K_NONE;
    return error != K_NONE ? error
                           : classic_heartbeat(c, req->member_id, req->group_instance_id,
                                               req->generation_id, now);
}

/* ------------------------------------------------------------------ DescribeGroups */

enum { VERSION_NOT_FOUND = 6 }; /* from here on a missing group is an error (KIP-1043) */

static enum err not_found(struct str id, const char *why, int16_t version, struct arena *a,
                          struct describe_groups_response_described_group *out)
{
    const struct str head = STR_LIT("Group "), tail = str_of(why);
    out->group_state = str_of(classic_state_name(CLASSIC_DEAD));
    if (version < VERSION_NOT_FOUND)
        return ERR_NONE;
    const int32_t id_n = id.n < 0 ? 0 : id.n;
    char *text = arena_alloc(a, (size_t)(head.n + id_n + tail.n));
    if (text == NULL)
        return ERR_NOMEM;
    memcpy(text, head.p, (size_t)head.n);
    if (id_n > 0)
        memcpy(text + head.n, id.p, (size_t)id_n);
    memcpy(text + head.n + id_n, tail.p, (size_t)tail.n);
    out->error_code = K_GROUP_ID_NOT_FOUND;
    out->error_message = (struct str){text, head.n + id_n + tail.n};
    return ERR_NONE;
}

enum err groups_describe(struct groups *gs, struct str id, int16_t version, struct arena *a,
                         struct describe_groups_response_described_group *out)
{
    struct shard *sh;
    wire_default(&wire_describe_groups_response_described_group, out);
    out->group_id = id;
    const int16_t error = groups_shard(gs, id, &sh);
    if (error != K_NONE) {
        out->error_code = error;
        return ERR_NONE;
    }
    const struct group *g = map_get_str(&sh->groups, id);
    const struct life *l = g == NULL ? NULL : group_committed_life(g);
    if (l == NULL)
        return not_found(id, " not found.", version, a, out);
    if (l->kind != GROUP_CLASSIC)
        return not_found(id, " is not a classic group.", version, a, out);
    return classic_describe(l->classic, a, out);
}
