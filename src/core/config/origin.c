/* Where the value of a broker key comes from (KIP-226's synonyms), and the keys that stand in for
 * another in a coarser unit: log.roll.ms, when it is not set, is log.roll.hours in its own unit. */
#include <stdio.h>

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
    struct config_origin *v;
    size_t n;
};

static void add(struct origins *o, const char *key, const char *text, enum config_from from)
{
    if (text != NULL)
        o->v[o->n++] = (struct config_origin){key, text, from};
}

static void add_static(struct origins *o, const struct config *c, const char *key)
{
    if (is_set(c, key))
        add(o, key, config_static_text(c, key), CONFIG_FROM_STATIC);
}

static void add_default(struct origins *o, const char *key)
{
    add(o, key, config_find(CONFIG_BROKER, str_of(key))->def, CONFIG_FROM_DEFAULT);
}

size_t config_origins(const struct config *c, const char *key,
                      struct config_origin out[CONFIG_ORIGINS_MAX])
{
    struct origins o = {out, 0};
    add(&o, key, config_dynamic_text(c, CONFIG_OF_BROKER, key), CONFIG_FROM_BROKER);
    add(&o, key, config_dynamic_text(c, CONFIG_OF_CLUSTER, key), CONFIG_FROM_CLUSTER);
    add_static(&o, c, key);
    for (size_t i = 0; i < ARRAY_N(units); i++)
        if (strcmp(units[i].fine, key) == 0)
            add_static(&o, c, units[i].coarse);
    add_default(&o, key);
    /* A default in another unit is told only below a value. */
    for (size_t i = 0; o.n > 0 && i < ARRAY_N(units); i++)
        if (strcmp(units[i].fine, key) == 0)
            add_default(&o, units[i].coarse);
    return o.n;
}
