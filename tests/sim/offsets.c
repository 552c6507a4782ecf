/* Committed offsets: a client that commits for a group without members, asks what is committed, and
 * now and then deletes the group. What was answered is told, over every crash and election; nothing
 * is told that nobody asked for, and nothing goes back.
 *
 * In a fleet a coordinator whose partition has another leader may not have heard of it, and tell of
 * its own time: what it says counts when nobody of a later epoch was heard before. */
#include "base/check.h"
#include "client.h"
#include "core/group/java_string.h"
#include "wire/error.h"

enum { NOTHING = -1, VERSION_STABLE = 7, VERSION_GROUPS = 8, VERSION_LAST_BY_NAME = 9 };
enum { VERSION_IDS = 10 };
enum { VERIFY_TRIES = 50, VERIFY_PAUSE_STEPS = 2000 };

void offsets_init(struct cluster *cl)
{
    static const char *const names[] = {"simple", "members"};
    for (size_t g = 0; g < GROUPS; g++) {
        cl->groups[g].name = names[g];
        cl->groups[g].epoch = -1;
        for (size_t i = 0; i < TOPICS * PARTITIONS_PER_TOPIC; i++)
            model_number_deleted(
                &cl->groups[g].offsets[i / PARTITIONS_PER_TOPIC][i % PARTITIONS_PER_TOPIC],
                NOTHING);
    }
}

void offsets_topic_deletion_asked(struct cluster *cl, int32_t topic)
{
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t p = 0; p < PARTITIONS_PER_TOPIC; p++)
            model_number_deletion_asked(&cl->groups[g].offsets[topic][p], NOTHING);
}

static struct sim_group *group_of(const struct client *c, struct cluster *cl)
{
    return &cl->groups[c->group];
}

static struct model_number *number_of(const struct client *c, struct cluster *cl)
{
    return &group_of(c, cl)->offsets[c->topic][c->partition];
}

static int16_t version_by_name(struct cluster *cl, int16_t key, int16_t min)
{
    const int16_t version = client_version(cl, key, min);
    return version > VERSION_LAST_BY_NAME ? VERSION_LAST_BY_NAME : version;
}

/* ------------------------------------------------------------------ the coordinator */

bool client_not_ready(struct client *c, int16_t error)
{
    const bool elsewhere = error == K_COORDINATOR_NOT_AVAILABLE || error == K_NOT_COORDINATOR;
    c->coordinated &= !elsewhere;
    c->moves |= elsewhere;
    const bool not_ready = elsewhere || error == K_COORDINATOR_LOAD_IN_PROGRESS;
    c->not_ready |= not_ready;
    return not_ready;
}

/* The leader epoch of the group's partition as w knows it; -1: it knows of none. */
static int32_t epoch_at(const struct world *w, const char *group)
{
    const struct image_topic *t =
        w->node == NULL ? NULL
                        : image_topic_named(node_image(w->node), STR_LIT("__consumer_offsets"));
    const int32_t h = java_hash(str_of(group));
    return t == NULL ? -1 : t->partitions[(h < 0 ? -h : h) % t->partitions_n].leader_epoch;
}

/* Before a request: who answers it is of this epoch, or a later one. */
static void ask_epoch(struct client *c, const struct world *w, struct cluster *cl)
{
    c->epoch = epoch_at(w, group_of(c, cl)->name);
}

/* After an answer: who gave it was of the epoch that the node knows by now, or an earlier one. */
static void heard_epoch(const struct client *c, struct cluster *cl)
{
    struct sim_group *g = group_of(c, cl);
    if (cl->fleet == NULL)
        return;
    const int32_t epoch = epoch_at(&cl->fleet->worlds[c->at], g->name);
    if (epoch > g->epoch)
        g->epoch = epoch;
}

static bool is_late(const struct client *c, struct cluster *cl)
{
    return cl->fleet != NULL && c->epoch < group_of(c, cl)->epoch;
}

void client_find_coordinator(struct client *c, struct world *w, struct cluster *cl)
{
    struct str name = str_of(group_of(c, cl)->name);
    struct find_coordinator_request req;
    wire_default(&wire_find_coordinator_request, &req);
    req.coordinator_keys.v = &name;
    req.coordinator_keys.n = 1;
    client_send(c, w, API_FIND_COORDINATOR, client_version(cl, API_FIND_COORDINATOR, 4), &req);
}

void client_found(struct client *c, const struct find_coordinator_response *resp)
{
    const struct find_coordinator_response_coordinator *found = &resp->coordinators.v[0];
    c->coordinated = found->error_code == K_NONE;
    c->not_ready |= !c->coordinated;
    if (!c->coordinated && found->node_id != -1)
        violation("node %d is no coordinator and is named", found->node_id);
    c->coordinator = c->coordinated ? (size_t)found->node_id - 1 : 0;
    c->moves |= c->coordinated && c->coordinator != c->at;
}

/* ------------------------------------------------------------------ commits */

void client_commit(struct client *c, struct world *w, struct cluster *cl)
{
    struct model_number *n = number_of(c, cl);
    struct offset_commit_request_offset_commit_request_partition part;
    wire_default(&wire_offset_commit_request_offset_commit_request_partition, &part);
    c->asked = n->most + 1 + (int64_t)rng_below(&cl->rng, 10);
    part.partition_index = c->partition;
    part.committed_offset = c->asked;
    part.committed_metadata = STR_LIT("metadata");
    struct offset_commit_request_offset_commit_request_topic topic = {
        .name = str_of(cl->topics[c->topic].name)};
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    struct offset_commit_request req;
    wire_default(&wire_offset_commit_request, &req);
    req.group_id = str_of(group_of(c, cl)->name);
    req.member_id = str_of(c->member);
    req.generation_id_or_member_epoch = c->generation;
    req.topics.v = &topic;
    req.topics.n = 1;
    model_number_asked(n, c->asked);
    ask_epoch(c, w, cl);
    int16_t version = version_by_name(cl, API_OFFSET_COMMIT, 2);
    if (cl->topics[c->topic].gone_n > 0) { /* the name may still mean another one there */
        version = VERSION_IDS;
        topic.name = STR_LIT("");
        topic.topic_id = c->topic_id;
    }
    client_send(c, w, API_OFFSET_COMMIT, version, &req);
}

/* A node of a fleet may not have heard of the topic yet. */
static bool unknown_topic(const struct cluster *cl, int16_t error)
{
    return cl->fleet != NULL &&
           (error == K_UNKNOWN_TOPIC_OR_PARTITION || error == K_UNKNOWN_TOPIC_ID);
}

/* A topic that was deleted meanwhile takes what was committed for it along. */
static void commit_holds(struct client *c, struct cluster *cl)
{
    heard_epoch(c, cl);
    if (uuid_eq(cl->topics[c->topic].id, c->topic_id))
        model_number_set(number_of(c, cl), c->asked);
}

void client_committed(struct client *c, struct cluster *cl,
                      const struct offset_commit_response *resp)
{
    const int16_t error = resp->topics.v[0].partitions.v[0].error_code;
    if (error == K_NONE) {
        commit_holds(c, cl);
    } else if (!client_not_ready(c, error) && c->kind == CLIENT_COMMITTER &&
               !unknown_topic(cl, error)) {
        violation("a commit without members is answered by error %d", error);
    }
}

/* ------------------------------------------------------------------ fetches */

void client_fetch_offset(struct client *c, struct world *w, struct cluster *cl)
{
    const int16_t version = version_by_name(cl, API_OFFSET_FETCH, 1);
    struct offset_fetch_request req;
    struct offset_fetch_request_offset_fetch_request_topic topic = {
        .name = str_of(cl->topics[c->topic].name)};
    struct offset_fetch_request_offset_fetch_request_topics grouped = {
        .name = str_of(cl->topics[c->topic].name)};
    struct offset_fetch_request_offset_fetch_request_group group;
    wire_default(&wire_offset_fetch_request, &req);
    wire_default(&wire_offset_fetch_request_offset_fetch_request_group, &group);
    topic.partition_indexes.v = grouped.partition_indexes.v = &c->partition;
    topic.partition_indexes.n = grouped.partition_indexes.n = 1;
    group.group_id = str_of(group_of(c, cl)->name);
    group.topics.v = &grouped;
    group.topics.n = 1;
    if (version >= VERSION_GROUPS) {
        req.groups.v = &group;
        req.groups.n = 1;
    } else {
        req.group_id = group.group_id;
        req.topics.v = &topic;
        req.topics.n = 1;
    }
    req.require_stable = version >= VERSION_STABLE && rng_percent(&cl->rng, 50);
    ask_epoch(c, w, cl);
    client_send(c, w, API_OFFSET_FETCH, version, &req);
}

/* K_NONE: *told is the offset. */
static int16_t offset_told(const struct client *c, const struct offset_fetch_response *resp,
                           int64_t *told)
{
    if (c->version >= VERSION_GROUPS) {
        const struct offset_fetch_response_offset_fetch_response_group *g = &resp->groups.v[0];
        if (g->error_code != K_NONE)
            return g->error_code;
        *told = g->topics.v[0].partitions.v[0].committed_offset;
        return g->topics.v[0].partitions.v[0].error_code;
    }
    if (resp->error_code != K_NONE)
        return resp->error_code;
    *told = resp->topics.v[0].partitions.v[0].committed_offset;
    return resp->topics.v[0].partitions.v[0].error_code;
}

bool client_offset_fetched(struct client *c, struct cluster *cl,
                           const struct offset_fetch_response *resp)
{
    int64_t told;
    const int16_t error = offset_told(c, resp, &told);
    if (error != K_NONE && !client_not_ready(c, error))
        violation("a committed offset is answered by error %d", error);
    if (error != K_NONE || is_late(c, cl))
        return false;
    heard_epoch(c, cl);
    model_number_told(&cl->model, number_of(c, cl), told, "a committed offset");
    return true;
}

/* ------------------------------------------------------------------ deletions */

static void delete_group(struct client *c, struct world *w, struct cluster *cl)
{
    struct str name = str_of(group_of(c, cl)->name);
    struct delete_groups_request req;
    wire_default(&wire_delete_groups_request, &req);
    req.groups_names.v = &name;
    req.groups_names.n = 1;
    for (size_t t = 0; t < TOPICS; t++)
        for (size_t p = 0; p < PARTITIONS_PER_TOPIC; p++)
            model_number_deletion_asked(&group_of(c, cl)->offsets[t][p], NOTHING);
    ask_epoch(c, w, cl);
    client_send(c, w, API_DELETE_GROUPS, client_version(cl, API_DELETE_GROUPS, 0), &req);
}

/* That there was no group need not be committed: in a fleet it may be late news. */
static void group_deleted(struct client *c, struct cluster *cl,
                          const struct delete_groups_response *resp)
{
    const int16_t error = resp->results.v[0].error_code;
    const bool not_ready = client_not_ready(c, error);
    if (error != K_NONE && error != K_GROUP_ID_NOT_FOUND && !not_ready)
        violation("the deletion of a group without members is answered by error %d", error);
    if (not_ready || (error != K_NONE && cl->fleet != NULL))
        return;
    heard_epoch(c, cl);
    for (size_t t = 0; t < TOPICS; t++)
        for (size_t p = 0; p < PARTITIONS_PER_TOPIC; p++)
            model_number_deleted(&group_of(c, cl)->offsets[t][p], NOTHING);
}

/* ------------------------------------------------------------------ the committer */

void committer_begin(struct client *c, struct world *w, struct cluster *cl)
{
    const uint64_t what = rng_below(&cl->rng, 100);
    if (!client_pick_partition(c, w, cl))
        return;
    if (!c->coordinated)
        client_find_coordinator(c, w, cl);
    else if (what < 50)
        client_commit(c, w, cl);
    else if (what < 95)
        client_fetch_offset(c, w, cl);
    else
        delete_group(c, w, cl);
}

void committer_handle(struct client *c, struct cluster *cl, const void *answer)
{
    switch (c->api_key) {
    case API_FIND_COORDINATOR:
        client_found(c, answer);
        break;
    case API_OFFSET_COMMIT:
        client_committed(c, cl, answer);
        break;
    case API_OFFSET_FETCH:
        (void)client_offset_fetched(c, cl, answer);
        break;
    case API_DELETE_GROUPS:
        group_deleted(c, cl, answer);
        break;
    default:
        CHECK(false);
    }
}

/* ------------------------------------------------------------------ the last look */

static bool verify_one(struct client *c, struct world *w, struct cluster *cl)
{
    bool told = false, got = true;
    for (int i = 0; i < 10000 && got && !told; i++) {
        struct arena a;
        const void *answer;
        arena_init(&a, NULL);
        client_fetch_offset(c, w, cl);
        got = client_await(c, w, cl, &a, &answer);
        told = got && client_offset_fetched(c, cl, answer);
        arena_close(&a);
    }
    return told;
}

/* Nobody may have made the coordinator be. */
static bool find(struct client *c, struct world *w, struct cluster *cl)
{
    bool got = true;
    for (int i = 0; i < 10000 && got && !c->coordinated; i++) {
        struct arena a;
        const void *answer;
        arena_init(&a, NULL);
        client_find_coordinator(c, w, cl);
        got = client_await(c, w, cl, &a, &answer);
        if (got)
            client_found(c, answer);
        arena_close(&a);
    }
    return c->coordinated;
}

bool offsets_verify(struct client *c, struct world *w, struct cluster *cl)
{
    for (c->group = 0; c->group < GROUPS; c->group++)
        for (c->topic = 0; c->topic < TOPICS; c->topic++)
            for (c->partition = 0; c->partition < PARTITIONS_PER_TOPIC; c->partition++)
                if (!uuid_is_zero(cl->topics[c->topic].id) &&
                    !(find(c, w, cl) && verify_one(c, w, cl)))
                    return false;
    return true;
}

/* ------------------------------------------------------------------ the same in a fleet */

/* One question to the coordinator, or about it; true: the offset is told. */
static bool verify_step(struct client *c, struct world *w, struct cluster *cl)
{
    struct arena a;
    const void *answer;
    bool told = false;
    const bool found = c->coordinated;
    arena_init(&a, NULL);
    if (found)
        client_fetch_offset(c, w, cl);
    else
        client_find_coordinator(c, w, cl);
    if (client_await(c, w, cl, &a, &answer) && found)
        told = client_offset_fetched(c, cl, answer);
    else if (answer != NULL)
        client_found(c, answer);
    arena_close(&a);
    return told;
}

static bool verify_coordinated(struct client *c, struct cluster *cl)
{
    bool told = false;
    c->coordinated = false;
    for (int tries = 0; tries < VERIFY_TRIES && !told; tries++) {
        const bool asked = c->coordinated; /* and told that it loads, perhaps */
        c->at = asked ? c->coordinator : rng_below(&cl->rng, cl->fleet->n);
        struct world *w = &cl->fleet->worlds[c->at];
        c->moves = false;
        if (world_connect(w, c->conn)) {
            told = verify_step(c, w, cl);
            world_disconnect(w, c->conn);
        }
        w->links[c->conn].closed = false;
        for (int i = 0; i < VERIFY_PAUSE_STEPS && !told && (asked || !c->coordinated); i++)
            fleet_step(cl->fleet);
    }
    return told;
}

bool offsets_verify_fleet(struct client *c, struct cluster *cl)
{
    for (c->group = 0; c->group < GROUPS; c->group++)
        for (c->topic = 0; c->topic < TOPICS; c->topic++)
            for (c->partition = 0; c->partition < PARTITIONS_PER_TOPIC; c->partition++)
                if (!uuid_is_zero(cl->topics[c->topic].id) && !verify_coordinated(c, cl))
                    return false;
    return true;
}
