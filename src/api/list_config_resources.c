/* ListConfigResources (KIP-1142; version 0 is KIP-714's ListClientMetricsResources): what there is
 * that has a configuration. */
#include <stdio.h>

#include "api/api.h"
#include "wire/error.h"

struct listing {
    struct api *api;
    struct arena *arena;
    struct list_config_resources_response resp;
    bool memory; /* there was enough so far */
};

static const int8_t types[] = {CONFIG_RESOURCE_CLIENT_METRICS, CONFIG_RESOURCE_BROKER_LOGGER,
                               CONFIG_RESOURCE_BROKER, CONFIG_RESOURCE_TOPIC,
                               CONFIG_RESOURCE_GROUP};

/* Versions without types ask for client metrics; without any named, all are meant. */
static bool asked(const struct list_config_resources_request *req, int16_t version, int8_t type)
{
    if (version == 0)
        return type == CONFIG_RESOURCE_CLIENT_METRICS;
    return req->resource_types.n == 0 ||
           memchr(req->resource_types.v, type, (size_t)req->resource_types.n) != NULL;
}

static bool types_known(const struct list_config_resources_request *req)
{
    for (int32_t i = 0; i < req->resource_types.n; i++)
        if (memchr(types, req->resource_types.v[i], sizeof types) == NULL)
            return false;
    return true;
}

/* ------------------------------------------------------------------ what there is */

static void add(struct listing *l, int8_t type, struct str name)
{
    const char *copy = arena_strdup(l->arena, name);
    l->memory &= copy != NULL;
    l->resp.config_resources.v[l->resp.config_resources.n++] =
        (struct list_config_resources_response_config_resource){str_of(copy), type};
}

static void add_brokers(struct listing *l, int8_t type)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&l->api->image->brokers, it)) != NULL) {
        const struct image_broker *b = map_value(it);
        char id[16];
        if (!b->fenced)
            add(l, type, (struct str){id, snprintf(id, sizeof id, "%d", b->id)});
    }
}

static void add_topics(struct listing *l)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&l->api->image->topics_by_id, it)) != NULL)
        add(l, CONFIG_RESOURCE_TOPIC, str_of(((const struct image_topic *)map_value(it))->name));
}

/* Groups and subscriptions of client metrics are there by what is set for them. */
static void add_configured(struct listing *l, int8_t type)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&l->api->image->configs, it)) != NULL) {
        const struct image_config *c = map_value(it);
        if (c->resource_type == type)
            add(l, type, str_of(c->name));
    }
}

static void add_type(struct listing *l, int8_t type)
{
    switch (type) {
    case CONFIG_RESOURCE_BROKER:
    case CONFIG_RESOURCE_BROKER_LOGGER:
        add_brokers(l, type);
        break;
    case CONFIG_RESOURCE_TOPIC:
        add_topics(l);
        break;
    default:
        add_configured(l, type);
    }
}

static bool list(struct listing *l, const struct list_config_resources_request *req,
                 int16_t version)
{
    const struct image *img = l->api->image;
    const size_t most = 2 * img->brokers.n + img->topics_by_id.n + img->configs.n;
    l->resp.config_resources.v =
        wire_array(&wire_list_config_resources_response_config_resource, l->arena, most);
    l->memory = l->resp.config_resources.v != NULL;
    for (size_t i = 0; i < ARRAY_N(types) && l->memory; i++)
        if (asked(req, version, types[i]))
            add_type(l, types[i]);
    return l->memory;
}

void api_list_config_resources_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    struct listing l = {.api = api, .arena = &r->arena};
    wire_default(&wire_list_config_resources_response, &l.resp);
    if (!api_authorized(api, r, ACL_DESCRIBE_CONFIGS, ACL_CLUSTER, ACL_CLUSTER_NAME))
        l.resp.error_code = K_CLUSTER_AUTHORIZATION_FAILED;
    else if (r->api_version > 0 && !types_known(r->message))
        l.resp.error_code = K_UNSUPPORTED_VERSION;
    else if (!list(&l, r->message, r->api_version)) {
        request_close(r, "out of memory");
        return;
    }
    request_answer(r, &msg_list_config_resources_response, &l.resp);
}
