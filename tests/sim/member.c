/* A member of a classic group: it joins, the leader gives each member its own id as assignment, and
 * each must get its own; heartbeats, commits, leaving, over crashes and from coordinator to
 * coordinator with what it knew before. */
#include "base/check.h"
#include "client.h"
#include "wire/error.h"

enum { SESSION_MS = 10000, REBALANCE_MS = 30000, VERSION_LEAVE_MANY = 3 };
enum { FLEET_SESSION_MS = 6000, FLEET_REBALANCE_MS = 4000 };

static struct str group_name(const struct client *c, struct cluster *cl)
{
    return str_of(cl->groups[c->group].name);
}

static void keep_id(char to[MEMBER_ID_MAX], struct str id)
{
    CHECK(id.n > 0 && id.n < MEMBER_ID_MAX);
    memcpy(to, id.p, (size_t)id.n);
    to[id.n] = '\0';
}

/* What every request of a member may be told; true: it was refused. */
static bool refused(struct client *c, int16_t error)
{
    c->rests &= error == K_NONE;
    switch (error) {
    case K_NONE:
        return false;
    case K_UNKNOWN_MEMBER_ID:
        c->member[0] = '\0';
        c->generation = -1;
        return true;
    case K_ILLEGAL_GENERATION:
    case K_REBALANCE_IN_PROGRESS:
        c->generation = -1;
        return true;
    case K_UNKNOWN_TOPIC_OR_PARTITION:
    case K_UNKNOWN_TOPIC_ID: /* a commit for a topic that was deleted */
        return true;
    default:
        if (!client_not_ready(c, error))
            violation("api %d of a member is answered by error %d", c->api_key, error);
        return true;
    }
}

/* ------------------------------------------------------------------ joining */

static void join(struct client *c, struct world *w, struct cluster *cl)
{
    struct join_group_request_join_group_request_protocol protocols[] = {
        {.name = STR_LIT("range"), .metadata = {(const uint8_t *)"m", 1}},
        {.name = STR_LIT("other"), .metadata = {(const uint8_t *)"o", 1}},
    };
    struct join_group_request req;
    wire_default(&wire_join_group_request, &req);
    req.group_id = group_name(c, cl);
    req.session_timeout_ms = cl->fleet == NULL ? SESSION_MS : FLEET_SESSION_MS;
    req.rebalance_timeout_ms = cl->fleet == NULL ? REBALANCE_MS : FLEET_REBALANCE_MS;
    req.member_id = str_of(c->member);
    req.protocol_type = STR_LIT("consumer");
    req.protocols.v = protocols;
    req.protocols.n = 1 + (int32_t)rng_below(&cl->rng, 2);
    client_send(c, w, API_JOIN_GROUP, client_version(cl, API_JOIN_GROUP, 0), &req);
}

/* The leader's list: each member once, itself too. */
static void lead(struct client *c, const struct join_group_response *resp)
{
    bool self = false;
    CHECK(resp->members.n <= MEMBERS_MAX);
    for (int32_t i = 0; i < resp->members.n; i++) {
        const struct str id = resp->members.v[i].member_id;
        for (int32_t k = 0; k < i; k++)
            if (str_eq(id, resp->members.v[k].member_id))
                violation("a leader is told of a member twice");
        self |= str_eq(id, resp->member_id);
        keep_id(c->led[i], id);
    }
    if (!self)
        violation("a leader is not told of itself");
    c->led_n = resp->members.n;
}

static void joined(struct client *c, const struct join_group_response *resp)
{
    c->synced = c->rests = false;
    c->led_n = 0;
    if (resp->error_code == K_MEMBER_ID_REQUIRED) {
        keep_id(c->member, resp->member_id);
        return;
    }
    if (refused(c, resp->error_code))
        return;
    if (resp->generation_id < 1)
        violation("generation %d was joined", resp->generation_id);
    keep_id(c->member, resp->member_id);
    c->generation = resp->generation_id;
    if (str_eq(resp->leader, resp->member_id))
        lead(c, resp);
}

/* ------------------------------------------------------------------ in a generation */

static void sync_group(struct client *c, struct world *w, struct cluster *cl)
{
    struct sync_group_request_sync_group_request_assignment given[MEMBERS_MAX];
    struct sync_group_request req;
    wire_default(&wire_sync_group_request, &req);
    for (int32_t i = 0; i < c->led_n; i++) {
        const struct str id = str_of(c->led[i]);
        given[i] = (struct sync_group_request_sync_group_request_assignment){
            .member_id = id, .assignment = {(const uint8_t *)id.p, id.n}};
    }
    req.group_id = group_name(c, cl);
    req.member_id = str_of(c->member);
    req.generation_id = c->generation;
    req.protocol_type = STR_LIT("consumer");
    req.protocol_name = STR_LIT("range");
    req.assignments.v = given;
    req.assignments.n = c->led_n;
    client_send(c, w, API_SYNC_GROUP, client_version(cl, API_SYNC_GROUP, 0), &req);
}

static void synced(struct client *c, const struct sync_group_response *resp)
{
    const struct str id = str_of(c->member);
    if (refused(c, resp->error_code))
        return;
    if (resp->assignment.n != id.n || memcmp(resp->assignment.p, id.p, (size_t)id.n) != 0)
        violation("member %s is assigned %.*s", c->member, resp->assignment.n,
                  (const char *)resp->assignment.p);
    c->synced = true;
}

static void beat(struct client *c, struct world *w, struct cluster *cl)
{
    struct heartbeat_request req;
    wire_default(&wire_heartbeat_request, &req);
    req.group_id = group_name(c, cl);
    req.member_id = str_of(c->member);
    req.generation_id = c->generation;
    client_send(c, w, API_HEARTBEAT, client_version(cl, API_HEARTBEAT, 0), &req);
}

static void beaten(struct client *c, const struct heartbeat_response *resp)
{
    if (!refused(c, resp->error_code))
        c->rests = c->synced;
}

static void leave(struct client *c, struct world *w, struct cluster *cl)
{
    const int16_t version = client_version(cl, API_LEAVE_GROUP, 0);
    struct leave_group_request_member_identity who;
    struct leave_group_request req;
    wire_default(&wire_leave_group_request_member_identity, &who);
    wire_default(&wire_leave_group_request, &req);
    req.group_id = group_name(c, cl);
    if (version >= VERSION_LEAVE_MANY) {
        who.member_id = str_of(c->member);
        req.members.v = &who;
        req.members.n = 1;
    } else {
        req.member_id = str_of(c->member);
    }
    client_send(c, w, API_LEAVE_GROUP, version, &req);
}

static void left(struct client *c, const struct leave_group_response *resp)
{
    if (refused(c, resp->error_code))
        return;
    c->member[0] = '\0';
    c->generation = -1;
}

/* ------------------------------------------------------------------ requests */

/* A partition that is this member's alone to commit for. */
static bool pick_own(struct client *c, struct world *w, struct cluster *cl)
{
    if (!client_pick_partition(c, w, cl))
        return false;
    c->partition = (int32_t)(c->id % PARTITIONS_PER_TOPIC);
    return true;
}

void member_begin(struct client *c, struct world *w, struct cluster *cl)
{
    const uint64_t what = rng_below(&cl->rng, cl->calm ? 95 : 100);
    if (!c->coordinated)
        client_find_coordinator(c, w, cl);
    else if (c->generation < 0)
        join(c, w, cl);
    else if (!c->synced)
        sync_group(c, w, cl);
    else if (what < 30 && pick_own(c, w, cl))
        client_commit(c, w, cl);
    else if (what < 40 && pick_own(c, w, cl))
        client_fetch_offset(c, w, cl);
    else if (what < 95)
        beat(c, w, cl);
    else if (what < 98)
        join(c, w, cl);
    else
        leave(c, w, cl);
}

void member_handle(struct client *c, struct cluster *cl, const void *answer)
{
    switch (c->api_key) {
    case API_FIND_COORDINATOR:
        client_found(c, answer);
        break;
    case API_JOIN_GROUP:
        joined(c, answer);
        break;
    case API_SYNC_GROUP:
        synced(c, answer);
        break;
    case API_HEARTBEAT:
        beaten(c, answer);
        break;
    case API_OFFSET_FETCH:
        (void)client_offset_fetched(c, cl, answer);
        break;
    case API_OFFSET_COMMIT: {
        const struct offset_commit_response *resp = answer;
        client_committed(c, cl, resp);
        (void)refused(c, resp->topics.v[0].partitions.v[0].error_code);
        break;
    }
    case API_LEAVE_GROUP:
        left(c, answer);
        break;
    default:
        CHECK(false);
    }
}

bool members_rest(const struct client *clients, size_t n)
{
    const struct client *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct client *c = &clients[i];
        if (c->kind != CLIENT_MEMBER)
            continue;
        if (!c->rests || c->generation != (first == NULL ? c : first)->generation)
            return false;
        first = c;
    }
    return true;
}
