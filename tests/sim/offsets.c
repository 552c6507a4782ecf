/* Committed offsets: a client that commits for a group without members, asks what is committed, and
 * now and then deletes the group. What was answered is told, over every crash; nothing is told that
 * nobody asked for. */
#include "base/check.h"
#include "client.h"
#include "wire/error.h"

enum { NOTHING = -1, VERSION_GROUPS = 8, VERSION_LAST_BY_NAME = 9 };

void offsets_init(struct cluster *cl)
{
    static const char *const names[] = {"simple", "members"};
    for (size_t g = 0; g < GROUPS; g++) {
        cl->groups[g].name = names[g];
        for (size_t i = 0; i < TOPICS * PARTITIONS_PER_TOPIC; i++)
            model_number_deleted(
                &cl->groups[g].offsets[i / PARTITIONS_PER_TOPIC][i % PARTITIONS_PER_TOPIC],
                NOTHING);
    }
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

bool client_not_ready(int16_t error)
{
    return error == K_COORDINATOR_LOAD_IN_PROGRESS || error == K_COORDINATOR_NOT_AVAILABLE ||
           error == K_NOT_COORDINATOR;
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
    c->coordinated = resp->coordinators.v[0].error_code == K_NONE;
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
    client_send(c, w, API_OFFSET_COMMIT, version_by_name(cl, API_OFFSET_COMMIT, 2), &req);
}

void client_committed(struct client *c, struct cluster *cl,
                      const struct offset_commit_response *resp)
{
    const int16_t error = resp->topics.v[0].partitions.v[0].error_code;
    if (error == K_NONE)
        model_number_set(number_of(c, cl), c->asked);
    else if (c->kind == CLIENT_COMMITTER && !client_not_ready(error))
        violation("a commit without members is answered by error %d", error);
}

/* ------------------------------------------------------------------ fetches */

static void fetch(struct client *c, struct world *w, struct cluster *cl)
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

/* False: not yet. */
static bool fetched(struct client *c, struct cluster *cl, const struct offset_fetch_response *resp)
{
    int64_t told;
    const int16_t error = offset_told(c, resp, &told);
    if (error == K_NONE)
        model_number_told(&cl->model, number_of(c, cl), told, "a committed offset");
    else if (!client_not_ready(error))
        violation("a committed offset is answered by error %d", error);
    return error == K_NONE;
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
    client_send(c, w, API_DELETE_GROUPS, client_version(cl, API_DELETE_GROUPS, 0), &req);
}

static void group_deleted(struct client *c, struct cluster *cl,
                          const struct delete_groups_response *resp)
{
    const int16_t error = resp->results.v[0].error_code;
    if (error != K_NONE && error != K_GROUP_ID_NOT_FOUND && !client_not_ready(error))
        violation("the deletion of a group without members is answered by error %d", error);
    if (client_not_ready(error))
        return;
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
        fetch(c, w, cl);
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
        (void)fetched(c, cl, answer);
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
        fetch(c, w, cl);
        got = client_await(c, w, cl, &a, &answer);
        told = got && fetched(c, cl, answer);
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
