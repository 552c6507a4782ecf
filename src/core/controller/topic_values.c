/* Topic configuration as the controller sees it. Sources in Kafka's order: the topic itself, the
 * broker's dynamic values, the cluster's dynamic values, the static configuration, the default. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/controller/inside.h"

enum {
    SOURCE_TOPIC = 1,
    SOURCE_BROKER = 2,
    SOURCE_CLUSTER = 3,
    SOURCE_STATIC = 4,
    SOURCE_DEFAULT = 5
};

struct lookup {
    const struct controller *c;
    const char *topic; /* or NULL */
};

static const char *cluster_value(const struct controller *c, const struct config_key *k,
                                 int8_t *source)
{
    char id[16];
    if (k->broker_synonym == NULL)
        return NULL;
    const struct str synonym = str_of(k->broker_synonym);
    snprintf(id, sizeof id, "%d", c->node_id);
    *source = SOURCE_BROKER;
    const char *text = image_config_value(&c->ahead, CONFIG_RESOURCE_BROKER, str_of(id), synonym);
    if (text != NULL)
        return text;
    *source = SOURCE_CLUSTER;
    return image_config_value(&c->ahead, CONFIG_RESOURCE_BROKER, STR_LIT(""), synonym);
}

static const char *dynamic_value(void *ctx, const char *key)
{
    const struct lookup *l = ctx;
    int8_t source;
    const struct config_key *k = config_find(CONFIG_TOPIC, str_of(key));
    CHECK(k != NULL);
    const char *text = l->topic == NULL ? NULL
                                        : image_config_value(&l->c->ahead, CONFIG_RESOURCE_TOPIC,
                                                             str_of(l->topic), str_of(key));
    return text != NULL ? text : cluster_value(l->c, k, &source);
}

const char *topic_value(const struct controller *c, const char *topic, const char *key)
{
    struct lookup l = {c, topic};
    return topic_config_text(c->config, key, dynamic_value, &l);
}

int32_t topic_min_isr(const struct controller *c, const struct image_topic *t)
{
    const char *text = topic_value(c, t->name, "min.insync.replicas");
    return (int32_t)strtol(text, NULL, 10); /* checked when it was set */
}

/* ------------------------------------------------------------------ creation */

static struct str message_of(struct arena *a, const char *text)
{
    const char *copy = arena_strdup(a, str_of(text));
    return copy == NULL ? STR_NULL : str_of(copy);
}

int16_t topic_values_check(const struct create_topics_request_creatable_topic *in, struct arena *a,
                           struct topic_values *out, struct str *message)
{
    char text[512];
    size_t keys_n;
    const struct config_key *keys = config_keys(CONFIG_TOPIC, &keys_n);
    CHECK(keys_n <= ARRAY_N(out->v));
    for (size_t i = 0; i < keys_n; i++)
        out->v[i] = STR_NULL;
    for (int32_t i = 0; i < in->configs.n; i++) {
        const struct create_topics_request_creatable_topic_config *own = &in->configs.v[i];
        const struct config_key *k = config_find(CONFIG_TOPIC, own->name);
        text[0] = '\0';
        if (own->value.n < 0)
            snprintf(text, sizeof text, "Topic configuration %.*s has no value", own->name.n,
                     own->name.p);
        else if (k == NULL)
            snprintf(text, sizeof text, "Unknown topic configuration %.*s", own->name.n,
                     own->name.p);
        else if (config_check(k, own->value, text, sizeof text) == ERR_NONE)
            text[0] = '\0';
        if (text[0] != '\0') {
            *message = message_of(a, text);
            return K_INVALID_CONFIG;
        }
        out->v[k - keys] = own->value; /* the last one counts */
    }
    return K_NONE;
}

/* ------------------------------------------------------------------ description */

/* log.retention.hours and the like, where set and the finer key is not. NULL: none. */
static const char *coarse_value(const struct controller *c, const char *key, struct arena *a)
{
    static const struct {
        const char *fine, *coarse;
        int64_t factor_ms;
    } units[] = {
        {"log.roll.ms", "log.roll.hours", 3600000},
        {"log.roll.jitter.ms", "log.roll.jitter.hours", 3600000},
        {"log.retention.ms", "log.retention.minutes", 60000},
        {"log.retention.ms", "log.retention.hours", 3600000},
    };
    char text[24];
    for (size_t i = 0; i < ARRAY_N(units); i++) {
        if (strcmp(units[i].fine, key) != 0 ||
            config_source(c->config, units[i].coarse) == CONFIG_DEFAULT)
            continue;
        snprintf(text, sizeof text, "%lld",
                 (long long)(config_int(c->config, units[i].coarse) * units[i].factor_ms));
        return arena_strdup(a, str_of(text));
    }
    return NULL;
}

static const char *static_value(const struct controller *c, const struct config_key *k,
                                struct arena *a, int8_t *source)
{
    *source = SOURCE_STATIC;
    if (k->broker_synonym != NULL) {
        if (config_source(c->config, k->broker_synonym) != CONFIG_DEFAULT)
            return topic_config_text(c->config, k->name, NULL, NULL);
        const char *text = coarse_value(c, k->broker_synonym, a);
        if (text != NULL)
            return text;
    }
    *source = SOURCE_DEFAULT;
    return k->def;
}

enum err topic_values_describe(const struct controller *c, const struct topic_values *own,
                               struct arena *a,
                               struct create_topics_response_creatable_topic_result *out)
{
    size_t n;
    const struct config_key *keys = config_keys(CONFIG_TOPIC, &n);
    out->configs.v = wire_array(&wire_create_topics_response_creatable_topic_configs, a, n);
    if (out->configs.v == NULL)
        return ERR_NOMEM;
    out->configs.n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct create_topics_response_creatable_topic_configs *to = &out->configs.v[i];
        to->name = str_of(keys[i].name);
        to->value = own->v[i];
        to->config_source = SOURCE_TOPIC;
        if (own->v[i].n >= 0)
            continue;
        const char *text = cluster_value(c, &keys[i], &to->config_source);
        if (text == NULL)
            text = static_value(c, &keys[i], a, &to->config_source);
        else if ((text = arena_strdup(a, str_of(text))) == NULL) /* the image may go before it */
            return ERR_NOMEM;
        to->value = str_of(text);
    }
    return ERR_NONE;
}
