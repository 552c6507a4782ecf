/* A group of the old kind says which partitions a member has in the consumers' own format; one of
 * the new kind is told by an API of its own, which is asked when the old one knows no such group.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/endian.h"
#include "cli/groups.h"
#include "wire/error.h"

static int take_partition(struct group_offsets *offsets, struct str topic, int32_t partition,
                          const struct group_member *m)
{
    if (partition < 0)
        return CLI_OK;
    struct group_offset *o = group_offsets_add(offsets, topic, partition);
    if (o == NULL)
        return client_out_of_memory();
    o->member = m->id;
    o->host = m->host;
    return CLI_OK;
}

/* ------------------------------------------------------------------ the old kind */

/* An int16 version, then a ConsumerProtocolAssignment. What is not one says nothing. */
static int take_assignment(struct group *g, struct bytes b, struct group_offsets *offsets,
                           const struct group_member *m)
{
    struct consumer_protocol_assignment assignment;
    int status = CLI_OK;
    if (b.n < 2 || (int16_t)be16(b.p) < 0)
        return CLI_OK;
    int16_t version = (int16_t)be16(b.p);
    if (version > msg_consumer_protocol_assignment.max_version)
        version = msg_consumer_protocol_assignment.max_version;
    if (wire_decode(&msg_consumer_protocol_assignment, version, (struct bytes){b.p + 2, b.n - 2},
                    &g->classic.arena, &assignment) != ERR_NONE)
        return CLI_OK;
    for (int32_t t = 0; t < assignment.assigned_partitions.n; t++)
        for (int32_t p = 0; p < assignment.assigned_partitions.v[t].partitions.n; p++)
            if (status == CLI_OK)
                status = take_partition(offsets, assignment.assigned_partitions.v[t].topic,
                                        assignment.assigned_partitions.v[t].partitions.v[p], m);
    return status;
}

static struct group_member *new_members(struct group *g, struct arena *a, int32_t n)
{
    g->members = arena_array(a, n < 0 ? 0 : (size_t)n, sizeof *g->members);
    return g->members;
}

static int take_classic(struct group *g, struct group_offsets *offsets)
{
    const struct describe_groups_response *r = g->classic.response;
    const struct describe_groups_response_described_group *from = r->groups.v;
    int status = CLI_OK;
    if (new_members(g, &g->classic.arena, from->members.n) == NULL)
        return client_out_of_memory();
    g->state = from->group_state;
    g->kind = STR_LIT("classic");
    g->assignor = from->protocol_data;
    for (int32_t i = 0; i < from->members.n && status == CLI_OK; i++) {
        const struct describe_groups_response_described_group_member *m = &from->members.v[i];
        g->members[g->members_n++] =
            (struct group_member){m->member_id, m->group_instance_id, m->client_id, m->client_host};
        if (str_eq(from->protocol_type, STR_LIT("consumer")))
            status = take_assignment(g, m->member_assignment, offsets, &g->members[i]);
    }
    return status;
}

/* ------------------------------------------------------------------ the new kind */

static int take_consumer(struct group *g, struct group_offsets *offsets)
{
    const struct consumer_group_describe_response *r = g->consumer.response;
    const struct consumer_group_describe_response_described_group *from = r->groups.v;
    int status = CLI_OK;
    if (new_members(g, &g->consumer.arena, from->members.n) == NULL)
        return client_out_of_memory();
    g->state = from->group_state;
    g->kind = STR_LIT("consumer");
    g->assignor = from->assignor_name;
    for (int32_t i = 0; i < from->members.n && status == CLI_OK; i++) {
        const struct consumer_group_describe_response_member *m = &from->members.v[i];
        g->members[g->members_n++] =
            (struct group_member){m->member_id, m->instance_id, m->client_id, m->client_host};
        for (int32_t t = 0; t < m->assignment.topic_partitions.n; t++)
            for (int32_t p = 0; p < m->assignment.topic_partitions.v[t].partitions.n; p++)
                if (status == CLI_OK)
                    status = take_partition(offsets, m->assignment.topic_partitions.v[t].topic_name,
                                            m->assignment.topic_partitions.v[t].partitions.v[p],
                                            &g->members[i]);
    }
    return status;
}

/* ------------------------------------------------------------------ asking */

static int tell(const struct group *g, int16_t code, struct str message)
{
    char what[300];
    snprintf(what, sizeof what, "group %.*s", g->name.n, g->name.p);
    return client_tell_kafka(what, code, message);
}

static int ask_classic(struct client *c, struct broker *coordinator, struct group *g)
{
    const int64_t deadline_us = client_deadline_us(c);
    struct describe_groups_request request;
    wire_default(&wire_describe_groups_request, &request);
    request.groups.v = &g->name;
    request.groups.n = 1;
    for (;;) {
        const int status =
            client_call(c, coordinator, &g->classic, API_DESCRIBE_GROUPS, -1, &request);
        if (status != CLI_OK)
            return status;
        const struct describe_groups_response *r = g->classic.response;
        const int16_t code = r->groups.n == 1 ? r->groups.v[0].error_code : K_UNKNOWN_SERVER_ERROR;
        if (code == K_NONE || code == K_GROUP_ID_NOT_FOUND)
            return CLI_OK;
        if (!kafka_error_retriable(code) || !client_pause(c, deadline_us))
            return tell(g, code, r->groups.n == 1 ? r->groups.v[0].error_message : STR_NULL);
        answer_close(&g->classic);
    }
}

/* False: no such group of the new kind, or a broker that knows no such kind. */
static bool ask_consumer(struct client *c, struct broker *coordinator, struct group *g)
{
    struct consumer_group_describe_request request;
    wire_default(&wire_consumer_group_describe_request, &request);
    request.group_ids.v = &g->name;
    request.group_ids.n = 1;
    client_ask(c, coordinator, &g->consumer, API_CONSUMER_GROUP_DESCRIBE, -1, &request);
    client_wait(c, &g->consumer, 1);
    const struct consumer_group_describe_response *r = g->consumer.response;
    return r != NULL && r->groups.n == 1 && r->groups.v[0].error_code == K_NONE;
}

int group_look(struct client *c, struct broker *coordinator, struct str name,
               struct group_offsets *offsets, struct group *out)
{
    *out = (struct group){.name = name, .state = STR_NULL};
    int status = ask_classic(c, coordinator, out);
    if (status != CLI_OK)
        return status;
    const struct describe_groups_response *r = out->classic.response;
    const bool dead =
        r->groups.v[0].error_code != K_NONE || str_eq(r->groups.v[0].group_state, STR_LIT("Dead"));
    if (!dead)
        status = take_classic(out, offsets);
    else if (ask_consumer(c, coordinator, out))
        status = take_consumer(out, offsets);
    group_offsets_merge(offsets);
    return status;
}

void group_close(struct group *g)
{
    answer_close(&g->classic);
    answer_close(&g->consumer);
}
