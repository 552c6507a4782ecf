/* Where the value of a broker key comes from (KIP-226's synonyms), and the keys that stand in for
 * another in a coarser unit: log.roll.ms, when it is not set, is log.roll.hours in its own unit. */
#include <stdio.h>

#include "base/check.h"
#include "core/config/inside.h"

/* The first of a fine key's rows that is set counts. */
static const struct {
    const char *fine, *coarse;
    int64_t factor;
} units[] = {
    {"log.roll.ms", "log.roll.hours", 3600000},
    {"log.roll.jitter.ms", "log.roll.jitter.hours", 3600000},
    {"log.retention.ms", "log.retention.minutes", 60000},
    {"log.retention.ms", "log.retention.hours", 3600000},
    {"log.flush.interval.ms", "log.flush.scheduler.interval.ms", 1},
};

static bool is_set(const struct config *c, const char *key)
{
    return config_source(c, key) != CONFIG_DEFAULT;
}

/* A value that was put there by an earlier conversion has no source of its own. */
enum err config_convert_units(struct config *c, char *message, size_t message_n)
{
    const char *last = "";
    for (size_t i = 0; i < ARRAY_N(units); i++) {
        if (!is_set(c, units[i].coarse) || is_set(c, units[i].fine) ||
            strcmp(units[i].fine, last) == 0)
            continue;
        char text[24];
        const int64_t v = config_int(c, units[i].coarse); /* at most 32 bits where it is scaled */
        const int n =
            snprintf(text, sizeof text, "%lld", (long long)(v < 0 ? v : v * units[i].factor));
        enum err e = config_put(c, config_find(CONFIG_BROKER, str_of(units[i].fine)),
                                (struct str){text, n}, CONFIG_DEFAULT, message, message_n);
        if (e != ERR_NONE)
            return e;
        last = units[i].fine;
    }
    return ERR_NONE;
}

struct origins {
    const struct config *config;
    struct config_origin *v;
    size_t n;
};

static void add(struct origins *o, const struct config_key *k, const char *text,
                enum config_from from)
{
    if (text != NULL)
        o->v[o->n++] = (struct config_origin){k->name, text, from};
}

static void add_static(struct origins *o, const struct config_key *k)
{
    const struct config *c = config_statics(o->config);
    const size_t i = (size_t)(k - c->keys);
    if (c->sources[i] != CONFIG_DEFAULT)
        add(o, k, c->values[i], CONFIG_FROM_STATIC);
}

static void add_dynamic(struct origins *o, const struct config_key *k, enum config_level level,
                        enum config_from from)
{
    const struct config *c = o->config;
    if (c->base != NULL)
        add(o, k, c->dynamic[level][k - c->keys], from);
}

/* The coarse keys that stand in for a fine one. */
static void add_coarse(struct origins *o, const struct config_key *k, enum config_from from)
{
    for (size_t i = 0; i < ARRAY_N(units); i++) {
        if (strcmp(units[i].fine, k->name) != 0)
            continue;
        const struct config_key *coarse = config_find(CONFIG_BROKER, str_of(units[i].coarse));
        if (from == CONFIG_FROM_STATIC)
            add_static(o, coarse);
        else
            add(o, coarse, coarse->def, from);
    }
}

size_t config_origins(const struct config *c, const char *key,
                      struct config_origin out[CONFIG_ORIGINS_MAX])
{
    struct origins o = {c, out, 0};
    const struct config_key *k = config_find(CONFIG_BROKER, str_of(key));
    CHECK(k != NULL);
    add_dynamic(&o, k, CONFIG_OF_BROKER, CONFIG_FROM_BROKER);
    add_dynamic(&o, k, CONFIG_OF_CLUSTER, CONFIG_FROM_CLUSTER);
    add_static(&o, k);
    add_coarse(&o, k, CONFIG_FROM_STATIC);
    add(&o, k, k->def, CONFIG_FROM_DEFAULT);
    if (o.n > 0) /* a default in another unit is told only below a value */
        add_coarse(&o, k, CONFIG_FROM_DEFAULT);
    return o.n;
}
