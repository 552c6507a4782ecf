/* An operator of a cluster: moves replicas and takes that back, elects leaders, adds partitions,
 * changes configurations, deletes topics, whatever goes wrong meanwhile. */
#include <stdio.h>

#include "base/check.h"
#include "client.h"
#include "ghost.h"
#include "wire/error.h"

enum {
    TIMEOUT_MS = 5000,
    PREFERRED = 0,
    UNCLEAN = 1,
    OP_SET = 0,
    OP_DELETE = 1,
    RESOURCE_TOPIC = 2,
    RESOURCE_BROKER = 4,
    VERSION_TYPE = 1, /* of ElectLeaders: it says which election */
};

static struct str name_of(const struct client *c, struct cluster *cl)
{
    return str_of(cl->topics[c->topic].name);
}

/* ------------------------------------------------------------------ reassignments */

/* Some brokers in some order; not fewer than a topic has at least. */
static int32_t draw_replicas(struct cluster *cl, int32_t out[FLEET_MAX])
{
    const struct fleet *f = cl->fleet;
    int32_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (fleet_is_broker(f, i))
            out[n++] = (int32_t)i + 1;
    for (int32_t i = n - 1; i > 0; i--) {
        const int32_t k = (int32_t)rng_below(&cl->rng, (uint64_t)i + 1), id = out[i];
        out[i] = out[k];
        out[k] = id;
    }
    const int32_t least = n < 2 ? n : 2, most = n < 3 ? n : 3;
    return least + (int32_t)rng_below(&cl->rng, (uint64_t)(most - least) + 1);
}

static void reassign(struct client *c, struct world *w, struct cluster *cl)
{
    int32_t ids[FLEET_MAX];
    struct alter_partition_reassignments_request_reassignable_partition part;
    struct alter_partition_reassignments_request_reassignable_topic topic = {.name =
                                                                                 name_of(c, cl)};
    struct alter_partition_reassignments_request req;
    wire_default(&wire_alter_partition_reassignments_request_reassignable_partition, &part);
    wire_default(&wire_alter_partition_reassignments_request, &req);
    part.partition_index = c->partition;
    if (rng_percent(&cl->rng, 75)) { /* else it is cancelled */
        part.replicas.v = ids;
        part.replicas.n = draw_replicas(cl, ids);
    }
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    req.timeout_ms = TIMEOUT_MS;
    req.topics.v = &topic;
    req.topics.n = 1;
    client_send(c, w, API_ALTER_PARTITION_REASSIGNMENTS,
                client_version(cl, API_ALTER_PARTITION_REASSIGNMENTS, 0), &req);
}

static void list_reassignments(struct client *c, struct world *w, struct cluster *cl)
{
    struct list_partition_reassignments_request req;
    wire_default(&wire_list_partition_reassignments_request, &req);
    req.timeout_ms = TIMEOUT_MS;
    client_send(c, w, API_LIST_PARTITION_REASSIGNMENTS,
                client_version(cl, API_LIST_PARTITION_REASSIGNMENTS, 0), &req);
}

/* Who is added or goes is among the replicas. */
static void reassignments_listed(const struct list_partition_reassignments_response *resp)
{
    for (int32_t t = 0; t < resp->topics.n; t++)
        for (int32_t i = 0; i < resp->topics.v[t].partitions.n; i++)
            if (resp->topics.v[t].partitions.v[i].adding_replicas.n +
                    resp->topics.v[t].partitions.v[i].removing_replicas.n ==
                0)
                violation("a reassignment is listed that adds and removes nobody");
}

/* ------------------------------------------------------------------ leaders */

static void elect(struct client *c, struct world *w, struct cluster *cl)
{
    struct elect_leaders_request_topic_partitions topic = {.topic = name_of(c, cl)};
    struct elect_leaders_request req;
    const int16_t version = client_version(cl, API_ELECT_LEADERS, 0);
    wire_default(&wire_elect_leaders_request, &req);
    topic.partitions.v = &c->partition;
    topic.partitions.n = 1;
    req.topic_partitions.v = &topic;
    req.topic_partitions.n = 1;
    req.timeout_ms = TIMEOUT_MS;
    if (cl->operations.unclean && version >= VERSION_TYPE && rng_percent(&cl->rng, 20)) {
        req.election_type = UNCLEAN;
        ghost_allow_unclean();
    }
    client_send(c, w, API_ELECT_LEADERS, version, &req);
}

/* ------------------------------------------------------------------ topics */

static void grow(struct client *c, struct world *w, struct cluster *cl)
{
    struct create_partitions_request_create_partitions_topic topic;
    struct create_partitions_request req;
    wire_default(&wire_create_partitions_request_create_partitions_topic, &topic);
    wire_default(&wire_create_partitions_request, &req);
    topic.name = name_of(c, cl);
    topic.count = cl->topics[c->topic].partitions_n + 1;
    c->asked = topic.count;
    req.topics.v = &topic;
    req.topics.n = 1;
    req.timeout_ms = TIMEOUT_MS;
    client_send(c, w, API_CREATE_PARTITIONS, client_version(cl, API_CREATE_PARTITIONS, 0), &req);
}

static void grown(struct client *c, struct cluster *cl,
                  const struct create_partitions_response *resp)
{
    struct sim_topic *t = &cl->topics[c->topic];
    if (resp->results.v[0].error_code == K_NONE && uuid_eq(t->id, c->topic_id))
        sim_topic_found(t, t->id, (int32_t)c->asked);
}

static void delete_topic(struct client *c, struct world *w, struct cluster *cl, struct uuid id)
{
    struct delete_topics_request_delete_topic_state topic;
    struct delete_topics_request req;
    wire_default(&wire_delete_topics_request_delete_topic_state, &topic);
    wire_default(&wire_delete_topics_request, &req);
    topic.name = STR_NULL;
    topic.topic_id = id;
    req.topics.v = &topic;
    req.topics.n = 1;
    req.timeout_ms = TIMEOUT_MS;
    client_send(c, w, API_DELETE_TOPICS, 6, &req);
}

/* One that lives; or one of which nobody knows whether it does, so that its name is free. */
static bool perhaps_delete(struct client *c, struct world *w, struct cluster *cl)
{
    const int32_t topic = (int32_t)rng_below(&cl->rng, TOPICS);
    struct sim_topic *t = &cl->topics[topic];
    if (!cl->operations.deletion)
        return false;
    if (uuid_is_zero(t->id)) {
        if (t->gone_n == 0)
            return false;
        offsets_topic_deletion_asked(cl, topic);
        delete_topic(c, w, cl, t->gone[t->gone_n - 1]);
        return true;
    }
    if (t->gone_n == TOPIC_LIVES_MAX || !rng_percent(&cl->rng, 20))
        return false;
    sim_topic_leaves(t);
    offsets_topic_deletion_asked(cl, topic);
    delete_topic(c, w, cl, t->gone[t->gone_n - 1]);
    return true;
}

/* ------------------------------------------------------------------ configuration */

static const struct setting {
    const char *topic_key, *broker_key; /* NULL: there is none */
    const char *values[2];
    enum { ALWAYS, IF_MIN_ISR, IF_UNCLEAN } when;
} setting_table[] = {
    {"segment.bytes", "log.segment.bytes", {"1048576", "65536"}, ALWAYS},
    {"retention.ms", "log.retention.ms", {"604800000", "-1"}, ALWAYS},
    {"max.message.bytes", NULL, {"1048588", "2097152"}, ALWAYS},
    {"leader.replication.throttled.replicas", NULL, {"", "*"}, ALWAYS},
    {NULL, "leader.replication.throttled.rate", {"1000000", "100000000"}, ALWAYS},
    {"min.insync.replicas", "min.insync.replicas", {"1", "2"}, IF_MIN_ISR},
    {"unclean.leader.election.enable", NULL, {"true", "false"}, IF_UNCLEAN},
};

static bool is_allowed(const struct setting *s, const struct sim_operations *ops)
{
    return s->when == ALWAYS || (s->when == IF_MIN_ISR ? ops->min_isr : ops->unclean);
}

/* Of a topic, of all brokers, or of one. */
static void configure(struct client *c, struct world *w, struct cluster *cl)
{
    const struct setting *s = &setting_table[rng_below(&cl->rng, ARRAY_N(setting_table))];
    const bool broker =
        s->topic_key == NULL || (s->broker_key != NULL && rng_percent(&cl->rng, 40));
    char id[8] = "";
    struct incremental_alter_configs_request_alterable_config config = {
        .name = str_of(broker ? s->broker_key : s->topic_key),
        .config_operation = rng_percent(&cl->rng, 70) ? OP_SET : OP_DELETE,
    };
    struct incremental_alter_configs_request_alter_configs_resource resource = {
        .resource_type = broker ? RESOURCE_BROKER : RESOURCE_TOPIC};
    struct incremental_alter_configs_request req;
    if (!is_allowed(s, &cl->operations))
        return;
    if (s->when == IF_UNCLEAN)
        ghost_allow_unclean();
    if (rng_percent(&cl->rng, 50)) /* a broker answers for itself alone, or for all */
        snprintf(id, sizeof id, "%d", node_id(w->node));
    wire_default(&wire_incremental_alter_configs_request, &req);
    config.value =
        config.config_operation == OP_SET ? str_of(s->values[rng_below(&cl->rng, 2)]) : STR_NULL;
    resource.resource_name = broker ? str_of(id) : name_of(c, cl);
    resource.configs.v = &config;
    resource.configs.n = 1;
    req.resources.v = &resource;
    req.resources.n = 1;
    client_send(c, w, API_INCREMENTAL_ALTER_CONFIGS,
                client_version(cl, API_INCREMENTAL_ALTER_CONFIGS, 0), &req);
}

/* ------------------------------------------------------------------ requests */

/* Any partition, whoever leads it. */
static bool pick(struct client *c, struct cluster *cl)
{
    c->topic = (int32_t)rng_below(&cl->rng, TOPICS);
    c->topic_id = cl->topics[c->topic].id;
    if (uuid_is_zero(c->topic_id))
        return false;
    c->partition = (int32_t)rng_below(&cl->rng, (uint64_t)cl->topics[c->topic].partitions_n);
    return true;
}

void operator_begin(struct client *c, struct world *w, struct cluster *cl)
{
    const uint64_t what = rng_below(&cl->rng, 1000);
    if (what >= 120)
        return; /* it takes its time */
    if ((what < 5 && perhaps_delete(c, w, cl)) ||
        (what >= 100 && operator_change_voters(c, w, cl)) || !pick(c, cl))
        return;
    if (what < 40)
        reassign(c, w, cl);
    else if (what < 45)
        list_reassignments(c, w, cl);
    else if (what < 70)
        elect(c, w, cl);
    else if (what < 95)
        configure(c, w, cl);
    else if (cl->topics[c->topic].partitions_n < PARTITIONS_MAX)
        grow(c, w, cl);
}

void operator_handle(struct client *c, struct cluster *cl, const void *answer)
{
    switch (c->api_key) {
    case API_LIST_PARTITION_REASSIGNMENTS:
        reassignments_listed(answer);
        break;
    case API_CREATE_PARTITIONS:
        grown(c, cl, answer);
        break;
    case API_ALTER_PARTITION_REASSIGNMENTS:
    case API_ELECT_LEADERS:
    case API_DELETE_TOPICS:
    case API_INCREMENTAL_ALTER_CONFIGS:
    case API_ADD_RAFT_VOTER:
    case API_REMOVE_RAFT_VOTER:
        break; /* done or refused: both may be */
    default:
        CHECK(false);
    }
    c->moves = rng_percent(&cl->rng, 30);
}
