/* The broker's configuration: texts by key, checked when they are set. */
#include "core/config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/config/inside.h"

/* The tables are sorted by name. */
const struct config_key *config_find(enum config_scope scope, struct str name)
{
    size_t n;
    const struct config_key *keys = config_keys(scope, &n);
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        const int c = str_cmp(str_of(keys[mid].name), name);
        if (c == 0)
            return &keys[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

enum err config_new(struct config **out)
{
    struct config *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    c->keys = config_keys(CONFIG_BROKER, &c->keys_n);
    c->values = calloc(c->keys_n, sizeof *c->values);
    c->sources = calloc(c->keys_n, sizeof *c->sources);
    if (c->values == NULL || c->sources == NULL) {
        config_free(c);
        return ERR_NOMEM;
    }
    *out = c;
    return ERR_NONE;
}

void config_free(struct config *c)
{
    if (c == NULL)
        return;
    config_free_dynamic(c);
    for (size_t i = 0; c->values != NULL && i < c->keys_n; i++)
        free(c->values[i]);
    free(c->values);
    free(c->sources);
    config_free_log_dirs(c);
    free(c);
}

enum err config_set(struct config *c, struct str key, struct str value, enum config_source source,
                    void (*warn)(void *ctx, struct str key), void *ctx, char *message,
                    size_t message_n)
{
    const struct config_key *k = config_find(CONFIG_BROKER, key);
    CHECK(c->base == NULL);
    if (k == NULL) {
        if (warn != NULL)
            warn(ctx, key);
        return ERR_NONE;
    }
    enum err e = config_check(k, value, message, message_n);
    return e == ERR_NONE ? config_put(c, k, value, source, message, message_n) : e;
}

enum err config_put(struct config *c, const struct config_key *k, struct str value,
                    enum config_source source, char *message, size_t message_n)
{
    char *copy = malloc((size_t)value.n + 1);
    if (copy == NULL) {
        snprintf(message, message_n, "out of memory");
        return ERR_NOMEM;
    }
    memcpy(copy, value.p, (size_t)value.n);
    copy[value.n] = '\0';
    const size_t i = (size_t)(k - c->keys);
    free(c->values[i]);
    c->values[i] = copy;
    c->sources[i] = source;
    return ERR_NONE;
}

static size_t index_of(const struct config *c, const char *key)
{
    const struct config_key *k = config_find(CONFIG_BROKER, str_of(key));
    CHECK(k != NULL);
    return (size_t)(k - c->keys);
}

const char *config_static_text(const struct config *c, const char *key)
{
    const size_t i = index_of(c, key);
    const char *own = config_statics(c)->values[i];
    return own != NULL ? own : c->keys[i].def;
}

const char *config_own_text(const struct config *c, const char *key)
{
    const size_t i = index_of(c, key);
    for (int level = 0; c->base != NULL && level < CONFIG_LEVELS; level++)
        if (c->dynamic[level][i] != NULL)
            return c->dynamic[level][i];
    return config_statics(c)->values[i];
}

const char *config_text(const struct config *c, const char *key)
{
    const char *own = config_own_text(c, key);
    return own != NULL ? own : c->keys[index_of(c, key)].def;
}

int64_t config_int(const struct config *c, const char *key)
{
    const char *text = config_text(c, key);
    int64_t v;
    if (text == NULL) /* number keys without a default: -1, as Kafka's "not set" */
        return -1;
    CHECK(config_parse_int(str_of(text), &v));
    return v;
}

bool config_bool(const struct config *c, const char *key)
{
    return config_is_true(str_of(config_text(c, key)));
}

enum config_source config_source(const struct config *c, const char *key)
{
    return config_statics(c)->sources[index_of(c, key)];
}

const struct listener *config_listeners(const struct config *c, size_t *n)
{
    *n = config_statics(c)->listeners_n;
    return config_statics(c)->listeners;
}

const char *config_inter_broker_listener(const struct config *c)
{
    return config_statics(c)->inter_broker;
}

const char *config_controller_listener(const struct config *c)
{
    return config_statics(c)->controller_listener;
}

const char *const *config_log_dirs(const struct config *c, size_t *n)
{
    *n = config_statics(c)->log_dirs_n;
    return (const char *const *)config_statics(c)->log_dirs;
}

const char *config_metadata_log_dir(const struct config *c)
{
    return config_statics(c)->metadata_log_dir;
}
