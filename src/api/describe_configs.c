/* DescribeConfigs (KIP-133, KIP-226, KIP-524): every key of a resource with its value, where that
 * is from, and what lies below it. No documentation: Kafka's texts are Kafka's, and null is what
 * Kafka answers for keys without one. */
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "core/metadata/broker_config.h"
#include "core/metadata/topic_name.h"
#include "wire/error.h"

struct describing {
    struct api *api;
    struct request *r;
    const struct describe_configs_request_describe_configs_resource *in;
    struct describe_configs_response_describe_configs_result *out;
    bool synonyms;
    bool memory; /* there was enough so far */
};

static void refuse(struct describing *d, int16_t error, const char *message)
{
    d->out->error_code = error;
    d->out->error_message = str_of(message);
}

/* ------------------------------------------------------------------ which keys */

static int compare(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sorted: requests may name many. */
static void sort_keys(struct describing *d)
{
    if (d->in->configuration_keys.n > 1)
        qsort(d->in->configuration_keys.v, (size_t)d->in->configuration_keys.n, sizeof(struct str),
              compare);
}

/* None are all. */
static bool wanted(const struct describing *d, struct str key)
{
    const int32_t n = d->in->configuration_keys.n;
    return n <= 0 ||
           bsearch(&key, d->in->configuration_keys.v, (size_t)n, sizeof key, compare) != NULL;
}

static bool make_room(struct describing *d, size_t n)
{
    d->out->configs.v = wire_array(&wire_describe_configs_response_describe_configs_resource_result,
                                   &d->r->arena, n);
    d->memory = d->out->configs.v != NULL;
    return d->memory;
}

/* ------------------------------------------------------------------ one key */

static int8_t type_of(const struct config_key *k)
{
    static const int8_t types[] = {
        [CONFIG_BOOLEAN] = 1, [CONFIG_STRING] = 2, [CONFIG_INT] = 3,
        [CONFIG_SHORT] = 4,   [CONFIG_LONG] = 5,   [CONFIG_DOUBLE] = 6,
        [CONFIG_LIST] = 7,    [CONFIG_CLASS] = 8,  [CONFIG_PASSWORD] = 9};
    return k == NULL ? 0 : types[k->type];
}

/* Passwords, and what nobody knows the type of. */
static bool is_sensitive(const struct config_key *k)
{
    return k == NULL || k->type == CONFIG_PASSWORD;
}

static struct str shown(struct describing *d, const struct config_key *k, const char *text)
{
    if (text == NULL || is_sensitive(k))
        return STR_NULL;
    const char *printed = config_print(k, text, &d->r->arena);
    d->memory &= printed != NULL;
    return str_of(printed);
}

static void add_synonym(struct describe_configs_response_describe_configs_resource_result *e,
                        const char *key, struct str value, enum config_from from)
{
    e->synonyms.v[e->synonyms.n++] = (struct describe_configs_response_describe_configs_synonym){
        str_of(key), value, (int8_t)from};
}

/* The value that counts and its origins; own: at a level of the resource itself, or NULL. */
static void add_entry(struct describing *d, const char *name, const struct config_key *k,
                      const char *text, const struct config_origin *own,
                      const struct config_origin *origins, size_t n)
{
    struct describe_configs_response_describe_configs_resource_result *e =
        &d->out->configs.v[d->out->configs.n++];
    const size_t all = n + (own != NULL ? 1 : 0);
    wire_default(&wire_describe_configs_response_describe_configs_resource_result, e);
    e->name = str_of(name);
    e->value = shown(d, k, text);
    e->is_sensitive = is_sensitive(k);
    e->config_type = type_of(k);
    e->documentation = STR_NULL;
    e->config_source = (int8_t)(own != NULL ? own->from
                                : n > 0     ? origins[0].from
                                            : CONFIG_FROM_DEFAULT);
    if (!d->synonyms || all == 0)
        return;
    e->synonyms.v =
        wire_array(&wire_describe_configs_response_describe_configs_synonym, &d->r->arena, all);
    d->memory &= e->synonyms.v != NULL;
    if (e->synonyms.v == NULL)
        return;
    if (own != NULL)
        add_synonym(e, own->key, shown(d, k, own->text), own->from);
    for (size_t i = 0; i < n; i++)
        add_synonym(e, origins[i].key, is_sensitive(k) ? STR_NULL : str_of(origins[i].text),
                    origins[i].from);
}

/* ------------------------------------------------------------------ topics, groups, client metrics
 */

struct own_values {
    const struct image *image;
    int8_t type;
    struct str name;
};

static const char *own_value(void *ctx, const char *key)
{
    const struct own_values *v = ctx;
    return image_config_value(v->image, v->type, v->name, str_of(key));
}

/* NULL when it is not set, or is what no broker would have taken. */
static const char *valid_own_value(struct own_values *v, const struct config_key *k)
{
    char why[8];
    const char *text = own_value(v, k->name);
    return text != NULL && config_check(k, str_of(text), why, sizeof why) == ERR_NONE ? text : NULL;
}

/* Below a topic's value lies the broker's; a group key without one has its own default there. */
static size_t origins_below(const struct describing *d, const struct config_key *k,
                            struct config_origin out[CONFIG_ORIGINS_MAX])
{
    if (k->broker_synonym != NULL)
        return config_origins(d->api->config, k->broker_synonym, out);
    if (k->scope != CONFIG_GROUP)
        return 0;
    out[0] = (struct config_origin){k->name, k->def, CONFIG_FROM_DEFAULT};
    return 1;
}

static void describe_keys(struct describing *d, enum config_scope scope, enum config_from from)
{
    size_t n, count = 0;
    const struct config_key *keys = config_keys(scope, &n);
    struct own_values own = {d->api->image, d->in->resource_type, d->in->resource_name};
    for (size_t i = 0; i < n; i++)
        count += wanted(d, str_of(keys[i].name));
    if (!make_room(d, count))
        return;
    for (size_t i = 0; i < n && d->memory; i++) {
        const struct config_key *k = &keys[i];
        struct config_origin origins[CONFIG_ORIGINS_MAX];
        if (!wanted(d, str_of(k->name)))
            continue;
        const struct config_origin mine = {k->name, valid_own_value(&own, k), from};
        add_entry(d, k->name, k, config_value(d->api->config, k, own_value, &own),
                  mine.text != NULL ? &mine : NULL, origins, origins_below(d, k, origins));
    }
}

static void describe_topic(struct describing *d)
{
    const struct str name = d->in->resource_name;
    if (!topic_name_valid(name))
        refuse(d, K_INVALID_TOPIC_EXCEPTION, "The topic's name is not valid");
    else if (image_topic_named(d->api->image, name) == NULL)
        refuse(d, K_UNKNOWN_TOPIC_OR_PARTITION, ""); /* Kafka has no more to say */
    else
        describe_keys(d, CONFIG_TOPIC, CONFIG_FROM_TOPIC);
}

static void describe_named(struct describing *d, enum config_scope scope, enum config_from from)
{
    if (d->in->resource_name.n == 0)
        refuse(d, K_INVALID_REQUEST, "The name must not be empty");
    else
        describe_keys(d, scope, from);
}

/* ------------------------------------------------------------------ brokers */

/* node.id and broker.id are this node's, wherever it has them from. */
static const char *id_text(struct describing *d, const struct config_key *k)
{
    char text[16];
    if (strcmp(k->name, "node.id") != 0 && strcmp(k->name, "broker.id") != 0)
        return NULL;
    snprintf(text, sizeof text, "%d", d->api->node_id);
    const char *copy = arena_strdup(&d->r->arena, str_of(text));
    d->memory &= copy != NULL;
    return copy;
}

static void describe_key(struct describing *d, const struct config_key *k)
{
    struct config_origin v[CONFIG_ORIGINS_MAX];
    const size_t n = config_origins(d->api->config, k->name, v);
    const bool set = n > 0 && strcmp(v[0].key, k->name) == 0; /* else by a coarser key at most */
    const char *id = id_text(d, k);
    add_entry(d, k->name, k, id != NULL ? id : set ? v[0].text : NULL, NULL, v, set ? n : 0);
    d->out->configs.v[d->out->configs.n - 1].read_only = config_dynamic(k) == CONFIG_READ_ONLY;
}

/* What the image holds under names that no file may use: quotas, keys of one listener, unknown
 * ones. */
static bool is_custom(const char *name)
{
    return config_find(CONFIG_BROKER, str_of(name)) == NULL;
}

static void describe_custom(struct describing *d, const char *name, struct config_origin *v,
                            size_t n)
{
    const struct config_key *k = config_find_dynamic(str_of(name));
    char why[8];
    if (k != NULL && config_check(k, str_of(v[0].text), why, sizeof why) != ERR_NONE)
        k = NULL; /* nobody reads it */
    add_entry(d, name, k, v[0].text, NULL, v, n);
    d->out->configs.v[d->out->configs.n - 1].read_only = k == NULL || strcmp(k->name, name) != 0;
}

struct broker_values {
    const struct image_config *own, *cluster; /* or NULL */
};

static const char *value_in(const struct image_config *c, const char *name)
{
    return c == NULL ? NULL : map_get_str(&c->values, str_of(name));
}

static void describe_custom_of(struct describing *d, const struct broker_values *b,
                               const char *name)
{
    struct config_origin v[2];
    size_t n = 0;
    if (value_in(b->own, name) != NULL)
        v[n++] = (struct config_origin){name, value_in(b->own, name), CONFIG_FROM_BROKER};
    if (value_in(b->cluster, name) != NULL)
        v[n++] = (struct config_origin){name, value_in(b->cluster, name), CONFIG_FROM_CLUSTER};
    describe_custom(d, name, v, n);
}

/* The next custom name of c that is wanted, and not in other; a copy. NULL: no more. */
static const char *next_custom(struct describing *d, const struct image_config *c,
                               const struct image_config *other, const struct map_entry **it)
{
    while (c != NULL && d->memory && (*it = map_next(&c->values, *it)) != NULL) {
        size_t n;
        const char *key = map_key(*it, &n);
        if (!wanted(d, (struct str){key, (int32_t)n}))
            continue;
        const char *name = arena_strdup(&d->r->arena, (struct str){key, (int32_t)n});
        d->memory &= name != NULL;
        if (name != NULL && is_custom(name) && value_in(other, name) == NULL)
            return name;
    }
    return NULL;
}

static struct broker_values broker_values_of(const struct describing *d)
{
    const struct image *img = d->api->image;
    char id[16];
    const int n = snprintf(id, sizeof id, "%d", d->api->node_id);
    return (struct broker_values){
        image_config(img, CONFIG_RESOURCE_BROKER, (struct str){id, n}),
        image_config(img, CONFIG_RESOURCE_BROKER, STR_LIT("")),
    };
}

static void describe_broker(struct describing *d)
{
    size_t n, count = 0;
    const struct config_key *keys = config_keys(CONFIG_BROKER, &n);
    const struct broker_values b = broker_values_of(d);
    const struct map_entry *it = NULL;
    const char *name;
    for (size_t i = 0; i < n; i++)
        count += wanted(d, str_of(keys[i].name));
    count += (b.own != NULL ? b.own->values.n : 0) + (b.cluster != NULL ? b.cluster->values.n : 0);
    if (!make_room(d, count))
        return;
    for (size_t i = 0; i < n && d->memory; i++)
        if (wanted(d, str_of(keys[i].name)))
            describe_key(d, &keys[i]);
    while ((name = next_custom(d, b.own, NULL, &it)) != NULL)
        describe_custom_of(d, &b, name);
    it = NULL;
    while ((name = next_custom(d, b.cluster, b.own, &it)) != NULL)
        describe_custom_of(d, &b, name);
}

/* The cluster-wide values alone. */
static void describe_cluster(struct describing *d)
{
    const struct image_config *c = image_config(d->api->image, CONFIG_RESOURCE_BROKER, STR_LIT(""));
    const struct map_entry *it = NULL;
    if (!make_room(d, c == NULL ? 0 : c->values.n))
        return;
    while (c != NULL && d->memory && (it = map_next(&c->values, it)) != NULL) {
        size_t n;
        const char *key = map_key(it, &n);
        if (!wanted(d, (struct str){key, (int32_t)n}))
            continue;
        const char *name = arena_strdup(&d->r->arena, (struct str){key, (int32_t)n});
        struct config_origin v = {name, map_value(it), CONFIG_FROM_CLUSTER};
        d->memory &= name != NULL;
        if (name != NULL)
            describe_custom(d, name, &v, 1);
    }
}

static void describe_brokers(struct describing *d)
{
    if (!broker_config_is_of(d->in->resource_name, d->api->node_id))
        refuse(d, K_INVALID_REQUEST, "This broker knows its own configuration alone");
    else if (d->in->resource_name.n == 0)
        describe_cluster(d);
    else
        describe_broker(d);
}

/* As a Kafka broker without log4j: it has no loggers. */
static void describe_loggers(struct describing *d)
{
    if (d->in->resource_name.n == 0 || !broker_config_is_of(d->in->resource_name, d->api->node_id))
        refuse(d, K_INVALID_REQUEST, "This broker knows its own loggers alone");
}

/* ------------------------------------------------------------------ the request */

static bool allowed(struct describing *d)
{
    const struct str cluster = ACL_CLUSTER_NAME;
    switch (d->in->resource_type) {
    case CONFIG_RESOURCE_TOPIC:
        d->out->error_code = K_TOPIC_AUTHORIZATION_FAILED;
        return api_authorized(d->api, d->r, ACL_DESCRIBE_CONFIGS, ACL_TOPIC, d->in->resource_name);
    case CONFIG_RESOURCE_GROUP:
        d->out->error_code = K_GROUP_AUTHORIZATION_FAILED;
        return api_authorized(d->api, d->r, ACL_DESCRIBE_CONFIGS, ACL_GROUP, d->in->resource_name);
    default:
        d->out->error_code = K_CLUSTER_AUTHORIZATION_FAILED;
        return api_authorized(d->api, d->r, ACL_DESCRIBE_CONFIGS, ACL_CLUSTER, cluster);
    }
}

static void describe(struct describing *d)
{
    d->out->resource_type = d->in->resource_type;
    d->out->resource_name = d->in->resource_name;
    d->out->error_message = STR_NULL;
    if (!allowed(d))
        return;
    d->out->error_code = K_NONE;
    d->out->error_message = STR_LIT("");
    sort_keys(d);
    switch (d->in->resource_type) {
    case CONFIG_RESOURCE_TOPIC:
        describe_topic(d);
        break;
    case CONFIG_RESOURCE_BROKER:
        describe_brokers(d);
        break;
    case CONFIG_RESOURCE_BROKER_LOGGER:
        describe_loggers(d);
        break;
    case CONFIG_RESOURCE_CLIENT_METRICS:
        describe_named(d, CONFIG_CLIENT_METRICS, CONFIG_FROM_CLIENT_METRICS);
        break;
    case CONFIG_RESOURCE_GROUP:
        describe_named(d, CONFIG_GROUP, CONFIG_FROM_GROUP);
        break;
    default:
        refuse(d, K_INVALID_REQUEST, "Unknown resource type");
    }
}

void api_describe_configs_start(struct api *api, struct request *r, struct now now)
{
    (void)now;
    const struct describe_configs_request *req = r->message;
    struct describe_configs_response resp;
    wire_default(&wire_describe_configs_response, &resp);
    resp.results.v = wire_array(&wire_describe_configs_response_describe_configs_result, &r->arena,
                                (size_t)req->resources.n);
    struct describing d = {
        .api = api, .r = r, .synonyms = req->include_synonyms, .memory = resp.results.v != NULL};
    for (int32_t i = 0; i < req->resources.n && d.memory; i++) {
        d.in = &req->resources.v[i];
        d.out = &resp.results.v[resp.results.n++];
        describe(&d);
    }
    if (d.memory)
        request_answer(r, &msg_describe_configs_response, &resp);
    else
        request_close(r, "out of memory");
}
