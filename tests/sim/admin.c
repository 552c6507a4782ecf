/* The administrator: creates topics, deletes records, changes a topic's configuration. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "client.h"
#include "wire/error.h"

/* Changes nothing that the others see. */
static const char changed_key[] = "delete.retention.ms";
enum { RESOURCE_TOPIC = 2, OP_SET = 0, OP_DELETE = 1, DEFAULT_MS = 86400000 };

static void create(struct client *c, struct world *w, struct cluster *cl)
{
    struct create_topics_request_creatable_topic topic;
    wire_default(&wire_create_topics_request_creatable_topic, &topic);
    topic.name = str_of(cl->topics[c->topic].name);
    topic.num_partitions = PARTITIONS_PER_TOPIC;
    topic.replication_factor = cl->fleet == NULL ? 1 : -1; /* the default */
    struct create_topics_request req;
    wire_default(&wire_create_topics_request, &req);
    req.topics.v = &topic;
    req.topics.n = 1;
    client_send(c, w, API_CREATE_TOPICS, 7, &req);
}

static void created(struct client *c, struct cluster *cl, const struct create_topics_response *resp)
{
    const struct create_topics_response_creatable_topic_result *t = &resp->topics.v[0];
    if (t->error_code == K_NONE)
        sim_topic_found(&cl->topics[c->topic], t->topic_id, PARTITIONS_PER_TOPIC);
}

static void look(struct client *c, struct world *w, struct cluster *cl)
{
    struct metadata_request_metadata_request_topic topic;
    wire_default(&wire_metadata_request_metadata_request_topic, &topic);
    topic.name = str_of(cl->topics[c->topic].name);
    struct metadata_request req;
    wire_default(&wire_metadata_request, &req);
    req.topics.v = &topic;
    req.topics.n = 1;
    req.allow_auto_topic_creation = false;
    client_send(c, w, API_METADATA, 12, &req);
}

static void looked(struct client *c, struct cluster *cl, const struct metadata_response *resp)
{
    const struct metadata_response_metadata_response_topic *t = &resp->topics.v[0];
    struct sim_topic *known = &cl->topics[c->topic];
    if (t->error_code == K_NONE) {
        /* a lost answer may have created it */
        sim_topic_found(known, t->topic_id, t->partitions.n);
    } else if (t->error_code == K_UNKNOWN_TOPIC_OR_PARTITION && !uuid_is_zero(known->id) &&
               cl->fleet == NULL) { /* else the node may not have heard of it yet */
        violation("topic %s was created and is gone", known->name);
    }
}

static void delete_records(struct client *c, struct world *w, struct cluster *cl)
{
    struct model_partition *p = client_model(c, cl);
    const int64_t known = (int64_t)p->n - p->deleted_to;
    struct delete_records_request_delete_records_partition part = {
        .partition_index = c->partition,
        .offset = p->deleted_to + (int64_t)rng_below(&cl->rng, (uint64_t)known / 4 + 3),
    };
    if (rng_percent(&cl->rng, 5))
        part.offset = -1;
    struct delete_records_request_delete_records_topic topic = {
        .name = str_of(cl->topics[c->topic].name)};
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    struct delete_records_request req;
    wire_default(&wire_delete_records_request, &req);
    req.timeout_ms = 1000;
    req.topics.v = &topic;
    req.topics.n = 1;
    model_delete_asked(p, part.offset);
    client_send(c, w, API_DELETE_RECORDS, client_version(cl, API_DELETE_RECORDS, 0), &req);
}

static void records_deleted(struct client *c, struct cluster *cl,
                            const struct delete_records_response *resp)
{
    const struct delete_records_response_delete_records_partition_result *p =
        &resp->topics.v[0].partitions.v[0];
    /* a follower that is killed forgets a start that it has told its leader, as Kafka's */
    if (p->error_code == K_NONE && cl->fleet == NULL)
        model_deleted(client_model(c, cl), p->low_watermark);
}

/* ------------------------------------------------------------------ configuration */

static void alter_config(struct client *c, struct world *w, struct cluster *cl)
{
    struct model_number *n = &cl->topics[c->topic].config;
    char value[24];
    struct incremental_alter_configs_request_alterable_config config = {.name = str_of(changed_key),
                                                                        .config_operation = OP_SET};
    struct incremental_alter_configs_request_alter_configs_resource resource = {
        .resource_type = RESOURCE_TOPIC, .resource_name = str_of(cl->topics[c->topic].name)};
    struct incremental_alter_configs_request req;
    wire_default(&wire_incremental_alter_configs_request, &req);
    resource.configs.v = &config;
    resource.configs.n = 1;
    req.resources.v = &resource;
    req.resources.n = 1;
    c->asked = n->most + 1;
    snprintf(value, sizeof value, "%lld", (long long)c->asked);
    config.value = str_of(value);
    if (rng_percent(&cl->rng, 20)) {
        c->asked = DEFAULT_MS;
        config.config_operation = OP_DELETE;
        config.value = STR_NULL;
        model_number_deletion_asked(n, DEFAULT_MS);
    } else {
        model_number_asked(n, c->asked);
    }
    client_send(c, w, API_INCREMENTAL_ALTER_CONFIGS,
                client_version(cl, API_INCREMENTAL_ALTER_CONFIGS, 0), &req);
}

static void config_altered(struct client *c, struct cluster *cl,
                           const struct incremental_alter_configs_response *resp)
{
    struct model_number *n = &cl->topics[c->topic].config;
    if (resp->responses.v[0].error_code != K_NONE)
        return;
    if (c->asked == DEFAULT_MS)
        model_number_deleted(n, DEFAULT_MS);
    else
        model_number_set(n, c->asked);
}

static void describe_config(struct client *c, struct world *w, struct cluster *cl)
{
    struct str key = str_of(changed_key);
    struct describe_configs_request_describe_configs_resource resource = {
        .resource_type = RESOURCE_TOPIC, .resource_name = str_of(cl->topics[c->topic].name)};
    struct describe_configs_request req;
    wire_default(&wire_describe_configs_request, &req);
    resource.configuration_keys.v = &key;
    resource.configuration_keys.n = 1;
    req.resources.v = &resource;
    req.resources.n = 1;
    client_send(c, w, API_DESCRIBE_CONFIGS, client_version(cl, API_DESCRIBE_CONFIGS, 0), &req);
}

static void config_described(struct client *c, struct cluster *cl,
                             const struct describe_configs_response *resp)
{
    const struct describe_configs_response_describe_configs_result *r = &resp->results.v[0];
    char value[24] = "";
    if (cl->fleet != NULL) /* each node tells what it has heard of */
        return;
    if (r->error_code != K_NONE || r->configs.n != 1)
        violation("topic %s does not tell its configuration: error %d, %d keys",
                  cl->topics[c->topic].name, r->error_code, r->configs.n);
    const struct str told = r->configs.v[0].value;
    CHECK(told.n > 0 && (size_t)told.n < sizeof value);
    memcpy(value, told.p, (size_t)told.n);
    model_number_told(&cl->model, &cl->topics[c->topic].config, strtoll(value, NULL, 10),
                      changed_key);
}

/* ------------------------------------------------------------------ requests */

void admin_init(struct cluster *cl)
{
    for (size_t i = 0; i < TOPICS; i++)
        model_number_deleted(&cl->topics[i].config, DEFAULT_MS);
}

static void change(struct client *c, struct world *w, struct cluster *cl)
{
    switch (rng_below(&cl->rng, 3)) {
    case 0:
        delete_records(c, w, cl);
        break;
    case 1:
        alter_config(c, w, cl);
        break;
    default:
        describe_config(c, w, cl);
        break;
    }
}

void admin_begin(struct client *c, struct world *w, struct cluster *cl)
{
    if (rng_percent(&cl->rng, 50) && client_pick_partition(c, w, cl)) {
        change(c, w, cl);
        return;
    }
    c->topic = (int32_t)rng_below(&cl->rng, TOPICS);
    if (uuid_is_zero(cl->topics[c->topic].id) && rng_percent(&cl->rng, 50))
        create(c, w, cl);
    else
        look(c, w, cl);
}

void admin_handle(struct client *c, struct cluster *cl, const void *answer)
{
    switch (c->api_key) {
    case API_CREATE_TOPICS:
        created(c, cl, answer);
        break;
    case API_METADATA:
        looked(c, cl, answer);
        break;
    case API_DELETE_RECORDS:
        records_deleted(c, cl, answer);
        break;
    case API_INCREMENTAL_ALTER_CONFIGS:
        config_altered(c, cl, answer);
        break;
    case API_DESCRIBE_CONFIGS:
        config_described(c, cl, answer);
        break;
    default:
        CHECK(false);
    }
}

bool admin_verify(struct client *c, struct world *w, struct cluster *cl)
{
    for (c->topic = 0; c->topic < TOPICS; c->topic++) {
        struct arena a;
        const void *answer;
        if (uuid_is_zero(cl->topics[c->topic].id))
            continue;
        arena_init(&a, NULL);
        describe_config(c, w, cl);
        const bool got = client_await(c, w, cl, &a, &answer);
        if (got)
            config_described(c, cl, answer);
        arena_close(&a);
        if (!got)
            return false;
    }
    return true;
}
