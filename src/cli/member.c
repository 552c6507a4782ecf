#include "cli/member.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/member_assign.h"
#include "wire/error.h"

enum {
    SESSION_MS = 10000,
    REBALANCE_MIN_MS = 5000, /* some heartbeats, the first of which tells of it */
    REBALANCE_MAX_MS = 300 * 1000,
    HEARTBEAT_US = 1000 * 1000,
    BY_NAME_VERSION = 9,    /* of OffsetCommit */
    ONE_GROUP_VERSION = 7,  /* of OffsetFetch */
    ONE_MEMBER_VERSION = 2, /* of LeaveGroup */
};

/* How long the others wait for this member to come back; for them it waits as long. */
static int32_t rebalance_ms(const struct member *m)
{
    const int32_t ms = client_timeout_ms(m->client);
    return ms < REBALANCE_MIN_MS ? REBALANCE_MIN_MS : ms > REBALANCE_MAX_MS ? REBALANCE_MAX_MS : ms;
}

static int tell(const struct member *m, int16_t code)
{
    char what[300];
    if (code == K_REBALANCE_IN_PROGRESS) {
        cli_error("group %.*s: its members do not come to rest; --timeout SECONDS allows more",
                  m->group.n, m->group.p);
        return CLI_FAILED;
    }
    snprintf(what, sizeof what, "group %.*s", m->group.n, m->group.p);
    if (code == K_UNKNOWN_MEMBER_ID) /* to others it says something else */
        return client_tell_kafka(what, code, STR_LIT("its coordinator forgets this member"));
    return client_tell_kafka(what, code, STR_NULL);
}

/* What an error says about the member; false: nothing that can be mended. */
static bool learn(struct member *m, int16_t code)
{
    switch (code) {
    case K_UNKNOWN_MEMBER_ID:
    case K_ILLEGAL_GENERATION:
        m->id[0] = '\0';
        m->lost = true;
        return true;
    case K_REBALANCE_IN_PROGRESS:
        m->lost = true;
        return true;
    case K_NOT_COORDINATOR:
    case K_COORDINATOR_NOT_AVAILABLE:
        m->coordinator = NULL;
        return true;
    default:
        return kafka_error_retriable(code);
    }
}

/* ------------------------------------------------------------------ heartbeats */

static void stop_heartbeats(struct member *m)
{
    client_stop_timer(m->client, &m->timer);
    if (m->beating)
        client_stop_call(m->client, &m->call, &m->beating);
}

static void next_heartbeat(struct member *m)
{
    if (!client_start_timer(m->client, &m->timer, client_now(m->client).mono_us + HEARTBEAT_US))
        m->lost = true;
}

static void heartbeat_done(struct peer_call *call, enum err e, const void *response)
{
    struct member *m = CONTAINER_OF(call, struct member, call);
    const struct heartbeat_response *r = response;
    m->beating = false;
    if (e == ERR_CANCELLED)
        return;
    if (e != ERR_NONE) /* the group is told of by the next coordinator */
        m->coordinator = NULL;
    else if (r->error_code != K_NONE && !learn(m, r->error_code))
        m->lost = true;
    if (m->coordinator == NULL)
        m->lost = true;
    /* One that others wait for stays a member until it has given up what it has. */
    if (m->coordinator != NULL && m->id[0] != '\0')
        next_heartbeat(m);
}

static void heartbeat_due(struct timer *t)
{
    struct member *m = CONTAINER_OF(t, struct member, timer);
    if (m->beating || m->id[0] == '\0')
        return;
    if (m->coordinator == NULL) { /* a commit looks for it */
        next_heartbeat(m);
        return;
    }
    wire_default(&wire_heartbeat_request, &m->heartbeat);
    m->heartbeat.group_id = m->group;
    m->heartbeat.generation_id = m->generation;
    m->heartbeat.member_id = str_of(m->id);
    m->beating = true;
    m->call = (struct peer_call){.api_key = API_HEARTBEAT,
                                 .max_version = -1,
                                 .fixed_version = -1,
                                 .request = &m->heartbeat,
                                 .deadline_us =
                                     client_now(m->client).mono_us + SESSION_MS * (int64_t)1000,
                                 .done = heartbeat_done};
    client_start_call(m->client, m->coordinator, &m->call);
}

/* ------------------------------------------------------------------ joining */

static int find_coordinator(struct member *m)
{
    return m->coordinator != NULL ? CLI_OK
                                  : client_coordinator(m->client, m->group, &m->coordinator);
}

/* Asks the coordinator; *code stays as it is when there is an answer. */
static int ask(struct member *m, struct answer *a, enum api_key api, int16_t max_version,
               const void *request, int64_t deadline_us, int16_t *code)
{
    client_ask_until(m->client, m->coordinator, a, api, max_version, request, deadline_us);
    client_wait(m->client, a, 1);
    if (a->err == ERR_NONE)
        return CLI_OK;
    if (a->err != ERR_CLOSED && a->err != ERR_TIMEOUT)
        return client_tell(a);
    const bool held = (api == API_JOIN_GROUP || api == API_SYNC_GROUP) && a->call.sent;
    *code = a->err == ERR_CLOSED ? K_COORDINATOR_NOT_AVAILABLE
            : held               ? K_REBALANCE_IN_PROGRESS
                                 : K_REQUEST_TIMED_OUT;
    m->coordinator = NULL;
    return CLI_OK;
}

static void keep_id(struct member *m, struct str id)
{
    if (id.n >= 0 && (size_t)id.n < sizeof m->id)
        snprintf(m->id, sizeof m->id, "%.*s", id.n, id.p);
}

/* K_NONE in *code: joined holds the answer. */
static int join(struct member *m, struct answer *joined, int64_t deadline_us, int16_t *code)
{
    struct join_group_request request;
    struct join_group_request_join_group_request_protocol range = {.name = STR_LIT("range")};
    struct arena arena;
    arena_init(&arena, client_memory(m->client));
    range.metadata = member_subscription(&arena, m->topic);
    wire_default(&wire_join_group_request, &request);
    request.group_id = m->group;
    request.session_timeout_ms = SESSION_MS;
    request.rebalance_timeout_ms = rebalance_ms(m);
    request.member_id = str_of(m->id);
    request.protocol_type = STR_LIT("consumer");
    request.protocols.v = &range;
    request.protocols.n = 1;
    int status = range.metadata.p == NULL
                     ? client_out_of_memory()
                     : ask(m, joined, API_JOIN_GROUP, -1, &request, deadline_us, code);
    arena_close(&arena);
    const struct join_group_response *r = joined->response;
    if (r == NULL)
        return status;
    *code = r->error_code;
    if (*code == K_NONE || *code == K_MEMBER_ID_REQUIRED)
        keep_id(m, r->member_id);
    m->generation = r->generation_id;
    m->leads = str_eq(r->leader, r->member_id);
    return status;
}

static int take_assignment(struct member *m, struct bytes assignment)
{
    struct arena arena;
    size_t n;
    arena_init(&arena, client_memory(m->client));
    const int32_t *v = member_assigned(&arena, assignment, m->topic, &n);
    int32_t *copy = calloc(n + 1, sizeof *copy);
    if (copy != NULL && v != NULL && n > 0)
        memcpy(copy, v, n * sizeof *copy);
    const bool ok = copy != NULL && v != NULL;
    arena_close(&arena);
    free(m->partitions);
    m->partitions = copy;
    m->n = ok ? n : 0;
    return ok ? CLI_OK : client_out_of_memory();
}

static int sync(struct member *m, const struct join_group_response *joined, int64_t deadline_us,
                int16_t *code)
{
    struct sync_group_request request;
    struct answer a = {0};
    struct arena arena;
    int status = CLI_OK;
    arena_init(&arena, client_memory(m->client));
    wire_default(&wire_sync_group_request, &request);
    request.group_id = m->group;
    request.generation_id = m->generation;
    request.member_id = str_of(m->id);
    request.protocol_type = STR_LIT("consumer");
    request.protocol_name = STR_LIT("range");
    if (m->leads)
        status = member_assign(m->client, &arena, joined, m->topic, &request, &m->topic_partitions);
    if (status == CLI_OK)
        status = ask(m, &a, API_SYNC_GROUP, -1, &request, deadline_us, code);
    const struct sync_group_response *r = a.response;
    if (r != NULL)
        *code = r->error_code;
    if (r != NULL && *code == K_NONE)
        status = take_assignment(m, r->assignment);
    answer_close(&a);
    arena_close(&arena);
    return status;
}

/* One try. */
static int join_and_sync(struct member *m, int64_t deadline_us, int16_t *code)
{
    struct answer joined = {0};
    int status = find_coordinator(m);
    *code = K_UNKNOWN_SERVER_ERROR;
    if (status == CLI_OK)
        status = join(m, &joined, deadline_us, code);
    if (status == CLI_OK && *code == K_NONE)
        status = sync(m, joined.response, deadline_us, code);
    answer_close(&joined);
    return status;
}

int member_join(struct member *m)
{
    const int64_t last_us = client_deadline_us(m->client) + rebalance_ms(m) * (int64_t)1000;
    int64_t deadline_us = client_deadline_us(m->client);
    int16_t code = K_NONE, before;
    stop_heartbeats(m);
    m->n = 0;
    for (;;) {
        before = code;
        const int status = join_and_sync(m, last_us, &code);
        if (status != CLI_OK)
            return status;
        if (code == K_NONE)
            break;
        if (code == K_MEMBER_ID_REQUIRED && before != code) /* it has an id now */
            continue;
        if (code == K_REBALANCE_IN_PROGRESS) /* others come and go: no failure */
            deadline_us = last_us;
        if (!learn(m, code) || !client_pause(m->client, deadline_us))
            return tell(m, code);
    }
    m->lost = false;
    next_heartbeat(m);
    return CLI_OK;
}

/* ------------------------------------------------------------------ offsets */

static void take_committed(const struct member *m, const struct offset_fetch_response *r,
                           struct member_commit *out)
{
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++) {
            const struct offset_fetch_response_offset_fetch_response_partition *from =
                &r->topics.v[t].partitions.v[p];
            for (size_t i = 0; i < m->n && str_eq(r->topics.v[t].name, m->topic); i++)
                if (out[i].partition == from->partition_index && from->error_code == K_NONE &&
                    from->committed_offset >= 0)
                    out[i].offset = from->committed_offset;
        }
}

static int16_t first_error(const struct offset_fetch_response *r)
{
    for (int32_t t = 0; t < r->topics.n && r->error_code == K_NONE; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++)
            if (r->topics.v[t].partitions.v[p].error_code != K_NONE)
                return r->topics.v[t].partitions.v[p].error_code;
    return r->error_code;
}

int member_committed(struct member *m, struct member_commit *out)
{
    const int64_t deadline_us = client_deadline_us(m->client);
    struct offset_fetch_request request;
    struct offset_fetch_request_offset_fetch_request_topic topic;
    wire_default(&wire_offset_fetch_request, &request);
    wire_default(&wire_offset_fetch_request_offset_fetch_request_topic, &topic);
    topic.name = m->topic;
    topic.partition_indexes.v = m->partitions;
    topic.partition_indexes.n = (int32_t)m->n;
    request.group_id = m->group;
    request.topics.v = &topic;
    request.topics.n = 1;
    for (size_t i = 0; i < m->n; i++)
        out[i] = (struct member_commit){m->partitions[i], -1};
    while (m->n > 0) {
        struct answer a = {0};
        int16_t code = K_UNKNOWN_SERVER_ERROR;
        int status = find_coordinator(m);
        if (status == CLI_OK)
            status = ask(m, &a, API_OFFSET_FETCH, ONE_GROUP_VERSION, &request,
                         client_deadline_us(m->client), &code);
        if (a.response != NULL)
            code = first_error(a.response);
        if (status == CLI_OK && code == K_NONE)
            take_committed(m, a.response, out);
        answer_close(&a);
        if (status != CLI_OK || code == K_NONE)
            return status;
        if (!learn(m, code) || !client_pause(m->client, deadline_us))
            return tell(m, code);
    }
    return CLI_OK;
}

static int16_t commit_error(const struct offset_commit_response *r)
{
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++)
            if (r->topics.v[t].partitions.v[p].error_code != K_NONE)
                return r->topics.v[t].partitions.v[p].error_code;
    return K_NONE;
}

static int send_commit(struct member *m,
                       struct offset_commit_request_offset_commit_request_topic *topic,
                       int16_t *code)
{
    struct offset_commit_request request;
    struct answer a = {0};
    *code = K_UNKNOWN_SERVER_ERROR;
    wire_default(&wire_offset_commit_request, &request);
    request.group_id = m->group;
    request.generation_id_or_member_epoch = m->generation;
    request.member_id = str_of(m->id);
    request.topics.v = topic;
    request.topics.n = 1;
    int status = find_coordinator(m);
    if (status == CLI_OK)
        status = ask(m, &a, API_OFFSET_COMMIT, BY_NAME_VERSION, &request,
                     client_deadline_us(m->client), code);
    if (a.response != NULL)
        *code = commit_error(a.response);
    answer_close(&a);
    return status;
}

int member_commit(struct member *m, const struct member_commit *v, size_t n, bool *done)
{
    const int64_t deadline_us = client_deadline_us(m->client);
    struct offset_commit_request_offset_commit_request_topic topic;
    struct offset_commit_request_offset_commit_request_partition *partitions =
        calloc(n + 1, sizeof *partitions);
    *done = false;
    if (partitions == NULL)
        return client_out_of_memory();
    wire_default(&wire_offset_commit_request_offset_commit_request_topic, &topic);
    topic.name = m->topic;
    topic.partitions.v = partitions;
    for (size_t i = 0; i < n; i++) {
        if (v[i].offset < 0)
            continue;
        struct offset_commit_request_offset_commit_request_partition *p =
            &partitions[topic.partitions.n++];
        wire_default(&wire_offset_commit_request_offset_commit_request_partition, p);
        p->partition_index = v[i].partition;
        p->committed_offset = v[i].offset;
        p->committed_metadata = STR_LIT("");
    }
    int status = CLI_OK;
    while (status == CLI_OK && topic.partitions.n > 0 && m->id[0] != '\0') {
        int16_t code;
        status = send_commit(m, &topic, &code);
        *done = status == CLI_OK && code == K_NONE;
        if (status != CLI_OK || *done)
            break;
        if (!learn(m, code) || !client_pause(m->client, deadline_us))
            status = tell(m, code);
        if (m->lost) /* whoever gets the partitions reads again what is not committed */
            break;
    }
    free(partitions);
    return status;
}

/* ------------------------------------------------------------------ beginning and end */

void member_init(struct member *m, struct client *c, struct str group, struct str topic)
{
    *m = (struct member){.client = c,
                         .group = group,
                         .topic = topic,
                         .generation = -1,
                         .timer = {.fire = heartbeat_due}};
}

void member_close(struct member *m)
{
    struct leave_group_request request;
    struct answer a = {0};
    stop_heartbeats(m);
    if (m->id[0] != '\0' && m->coordinator != NULL) {
        wire_default(&wire_leave_group_request, &request);
        request.group_id = m->group;
        request.member_id = str_of(m->id);
        client_ask(m->client, m->coordinator, &a, API_LEAVE_GROUP, ONE_MEMBER_VERSION, &request);
        client_wait(m->client, &a, 1);
        answer_close(&a);
    }
    free(m->partitions);
    m->partitions = NULL;
}
