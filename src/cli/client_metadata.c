/* Metadata as the commands use it: sorted, every name and number once, what cannot be left out. So
 * no command has to mistrust it again. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/client_impl.h"
#include "os/clocks.h"
#include "wire/error.h"

enum { GRACE_US = 500 * 1000 };

/* ------------------------------------------------------------------ brokers */

static int by_id(const void *a, const void *b)
{
    const struct metadata_broker *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static enum err take_brokers(struct client *c, struct metadata *m,
                             const struct metadata_response *r)
{
    const size_t n = r->brokers.n < 0 ? 0 : (size_t)r->brokers.n;
    size_t kept = 0;
    m->brokers = arena_array(&m->answer.arena, n, sizeof *m->brokers);
    if (m->brokers == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct broker *b;
        const enum err e = client_add_broker(c, r->brokers.v[i].node_id, r->brokers.v[i].host,
                                             r->brokers.v[i].port, &b);
        if (e == ERR_NOMEM)
            return e;
        if (e == ERR_NONE)
            m->brokers[m->brokers_n++] =
                (struct metadata_broker){r->brokers.v[i].node_id, r->brokers.v[i].port,
                                         r->brokers.v[i].host, r->brokers.v[i].rack};
    }
    qsort(m->brokers, m->brokers_n, sizeof *m->brokers, by_id);
    for (size_t i = 0; i < m->brokers_n; i++)
        if (kept == 0 || m->brokers[kept - 1].id != m->brokers[i].id)
            m->brokers[kept++] = m->brokers[i];
    m->brokers_n = kept;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ topics */

static int by_index(const void *a, const void *b)
{
    const struct topic_partition *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct topic *)a)->name, ((const struct topic *)b)->name);
}

static int32_t count(int32_t n)
{
    return n < 0 ? 0 : n;
}

static enum err take_partitions(struct arena *arena, struct topic *t,
                                const struct metadata_response_metadata_response_topic *from)
{
    int32_t n = 0, kept = 0;
    t->partitions = arena_array(arena, (size_t)count(from->partitions.n), sizeof *t->partitions);
    if (t->partitions == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < from->partitions.n; i++) {
        const struct metadata_response_metadata_response_partition *p = &from->partitions.v[i];
        if (p->partition_index < 0)
            continue;
        t->partitions[n++] = (struct topic_partition){
            .index = p->partition_index,
            .leader = p->leader_id,
            .leader_epoch = p->leader_epoch,
            .error = p->error_code,
            .replicas = p->replica_nodes.v,
            .isr = p->isr_nodes.v,
            .offline = p->offline_replicas.v,
            .replicas_n = count(p->replica_nodes.n),
            .isr_n = count(p->isr_nodes.n),
            .offline_n = count(p->offline_replicas.n),
        };
    }
    qsort(t->partitions, (size_t)n, sizeof *t->partitions, by_index);
    for (int32_t i = 0; i < n; i++)
        if (kept == 0 || t->partitions[kept - 1].index != t->partitions[i].index)
            t->partitions[kept++] = t->partitions[i];
    t->partitions_n = kept;
    return ERR_NONE;
}

static enum err take_topics(struct metadata *m, const struct metadata_response *r)
{
    struct arena *arena = &m->answer.arena;
    size_t kept = 0;
    m->topics = arena_array(arena, (size_t)count(r->topics.n), sizeof *m->topics);
    if (m->topics == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < r->topics.n; i++) {
        const struct metadata_response_metadata_response_topic *from = &r->topics.v[i];
        struct topic *t = &m->topics[m->topics_n];
        if (from->name.n < 1)
            continue;
        *t = (struct topic){.name = from->name,
                            .id = from->topic_id,
                            .error = from->error_code,
                            .internal = from->is_internal};
        enum err e = take_partitions(arena, t, from);
        if (e != ERR_NONE)
            return e;
        m->topics_n++;
    }
    qsort(m->topics, m->topics_n, sizeof *m->topics, by_name);
    for (size_t i = 0; i < m->topics_n; i++)
        if (kept == 0 || !str_eq(m->topics[kept - 1].name, m->topics[i].name))
            m->topics[kept++] = m->topics[i];
    m->topics_n = kept;
    return ERR_NONE;
}

const struct topic *metadata_topic(const struct metadata *m, struct str name)
{
    const struct topic key = {.name = name};
    return m->topics_n == 0 ? NULL
                            : bsearch(&key, m->topics, m->topics_n, sizeof *m->topics, by_name);
}

/* ------------------------------------------------------------------ asking */

static int call_any(struct client *c, struct answer *a, enum api_key api, int16_t max_version,
                    const void *request)
{
    const int64_t deadline_us = client_deadline_us(c);
    const bool quiet = c->quiet;
    bool last = quiet || !c->patient;
    for (;;) {
        c->quiet = quiet || !last;
        const int status = client_call_any(c, a, api, max_version, request);
        c->quiet = quiet;
        if (status == CLI_OK || last)
            return status;
        last = !client_pause(c, deadline_us);
    }
}

static int ask(struct client *c, const struct metadata_args *args, struct metadata *out)
{
    struct metadata_request request;
    struct metadata_request_metadata_request_topic *topics = NULL;
    wire_default(&wire_metadata_request, &request);
    request.allow_auto_topic_creation = args->create;
    request.topics.n = args->scope == METADATA_ALL_TOPICS ? -1 : 0;
    if (args->scope == METADATA_TOPICS) {
        topics = calloc(args->n + 1, sizeof *topics);
        if (topics == NULL)
            return client_out_of_memory();
        for (size_t i = 0; i < args->n; i++)
            topics[i].name = args->topics[i];
        request.topics.v = topics;
        request.topics.n = (int32_t)args->n;
    }
    const int status = call_any(c, &out->answer, API_METADATA, -1, &request);
    free(topics);
    return status;
}

/* A topic made a moment ago may not have come round to this broker. */
static bool lacks_topic(const struct metadata_response *r)
{
    for (int32_t i = 0; i < r->topics.n; i++)
        if (r->topics.v[i].error_code == K_UNKNOWN_TOPIC_OR_PARTITION)
            return true;
    return false;
}

static int ask_with_grace(struct client *c, const struct metadata_args *args, struct metadata *out)
{
    const int64_t until_us = os_now().mono_us + GRACE_US;
    for (;;) {
        *out = (struct metadata){0};
        const int status = ask(c, args, out);
        if (status != CLI_OK || args->scope != METADATA_TOPICS ||
            !lacks_topic(out->answer.response) || !client_pause(c, until_us))
            return status;
        answer_close(&out->answer);
    }
}

int client_metadata(struct client *c, const struct metadata_args *args, struct metadata *out)
{
    const int status = ask_with_grace(c, args, out);
    if (status != CLI_OK)
        return status;
    const struct metadata_response *r = out->answer.response;
    if (r->error_code != K_NONE) {
        const int16_t code = r->error_code;
        metadata_close(out);
        return c->quiet ? CLI_FAILED : client_tell_kafka("metadata", code, STR_NULL);
    }
    out->cluster_id = r->cluster_id;
    out->controller_id = r->controller_id;
    enum err e = take_brokers(c, out, r);
    if (e == ERR_NONE)
        e = take_topics(out, r);
    if (e == ERR_NONE)
        return CLI_OK;
    metadata_close(out);
    return client_out_of_memory();
}

void metadata_close(struct metadata *m)
{
    answer_close(&m->answer);
    *m = (struct metadata){0};
}

int client_controller(struct client *c, struct broker **out)
{
    const struct metadata_args args = {.scope = METADATA_BROKERS};
    struct metadata m;
    const int status = client_metadata(c, &args, &m);
    if (status != CLI_OK)
        return status;
    *out = client_broker(c, m.controller_id);
    if (*out == NULL) /* any passes it on */
        *out = LIST_ENTRY(c->brokers.next, struct broker, link);
    metadata_close(&m);
    return CLI_OK;
}

/* ------------------------------------------------------------------ coordinators */

int client_coordinator(struct client *c, struct str group, struct broker **out)
{
    const int64_t deadline_us = client_deadline_us(c);
    char what[300];
    for (;;) {
        struct find_coordinator_request request;
        struct answer a;
        wire_default(&wire_find_coordinator_request, &request);
        request.key = group;
        int status = call_any(c, &a, API_FIND_COORDINATOR, 3, &request); /* one key */
        if (status != CLI_OK)
            return status;
        const struct find_coordinator_response *r = a.response;
        const int16_t code = r->error_code;
        enum err e = ERR_NONE;
        if (code == K_NONE)
            e = client_add_broker(c, r->node_id, r->host, r->port, out);
        answer_close(&a);
        if (code == K_NONE && e == ERR_NONE)
            return CLI_OK;
        if (e == ERR_NOMEM)
            return client_out_of_memory();
        if (!kafka_error_retriable(code) || !client_pause(c, deadline_us)) {
            snprintf(what, sizeof what, "group %.*s", group.n, group.p);
            return client_tell_kafka(what, code == K_NONE ? K_COORDINATOR_NOT_AVAILABLE : code,
                                     STR_NULL);
        }
    }
}
