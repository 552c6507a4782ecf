/* Topic configuration as the controller sees it: a topic's own values in the image ahead, else
 * those of the configuration, over which the image ahead lies too. */
#include <stdio.h>

#include "base/check.h"
#include "core/controller/inside.h"

struct lookup {
    const struct image *image;
    struct str topic;
};

static const char *own_value(void *ctx, const char *key)
{
    const struct lookup *l = ctx;
    return image_config_value(l->image, CONFIG_RESOURCE_TOPIC, l->topic, str_of(key));
}

bool topic_unclean_allowed(const struct controller *c, const struct image_topic *t)
{
    struct lookup l = {&c->ahead, str_of(t->name)};
    return topic_config_bool(c->config, "unclean.leader.election.enable", own_value, &l);
}

int32_t topic_min_isr(const struct controller *c, const struct image_topic *t)
{
    struct lookup l = {&c->ahead, str_of(t->name)};
    return (int32_t)topic_config_int(c->config, "min.insync.replicas", own_value, &l);
}

/* ------------------------------------------------------------------ creation */

static struct str message_of(struct arena *a, const char *text)
{
    const char *copy = arena_strdup(a, str_of(text));
    return copy == NULL ? STR_NULL : str_of(copy);
}

struct future {
    const struct topic_values *values;
    struct arena *arena;
};

static const char *future_value(void *ctx, const char *key)
{
    const struct future *f = ctx;
    size_t n;
    const struct str own =
        f->values->v[config_find(CONFIG_TOPIC, str_of(key)) - config_keys(CONFIG_TOPIC, &n)];
    return own.n < 0 ? NULL : arena_strdup(f->arena, own);
}

int16_t topic_values_check(const struct controller *c,
                           const struct create_topics_request_creatable_topic *in, struct arena *a,
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
    struct future future = {out, a};
    if (topic_config_check(c->config, future_value, &future, text, sizeof text) != ERR_NONE) {
        *message = message_of(a, text);
        return K_INVALID_CONFIG;
    }
    return K_NONE;
}

/* ------------------------------------------------------------------ description */

static int8_t source_of(const struct controller *c, const struct config_key *k)
{
    struct config_origin origins[CONFIG_ORIGINS_MAX];
    const size_t n =
        k->broker_synonym == NULL ? 0 : config_origins(c->config, k->broker_synonym, origins);
    return (int8_t)(n == 0 ? CONFIG_FROM_DEFAULT : origins[0].from);
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
        const bool set = own->v[i].n >= 0;
        const char *text = set ? NULL : config_value(c->config, &keys[i], NULL, NULL);
        const char *copy = set ? NULL : arena_strdup(a, str_of(text)); /* it may change meanwhile */
        if (!set && copy == NULL)
            return ERR_NOMEM;
        to->name = str_of(keys[i].name);
        to->value = set ? own->v[i] : str_of(copy);
        to->config_source = (int8_t)(set ? CONFIG_FROM_TOPIC : source_of(c, &keys[i]));
    }
    return ERR_NONE;
}
