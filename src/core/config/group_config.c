/* A group's own values must lie in the range that the broker allows groups:
 * consumer.session.timeout.ms between group.consumer.min.session.timeout.ms and
 * group.consumer.max.session.timeout.ms, and so on. */
#include <stdio.h>

#include "core/config/inside.h"

enum { NAME_MAX_BYTES = 96 };

/* "consumer.x" and "min" -> "group.consumer.min.x"; NULL if there is no such broker key. */
static const struct config_key *bound(const char *key, const char *which)
{
    char name[NAME_MAX_BYTES];
    const char *dot = strchr(key, '.');
    snprintf(name, sizeof name, "group.%.*s.%s%s", (int)(dot - key), key, which, dot);
    return config_find(CONFIG_BROKER, str_of(name));
}

static enum err check_range(const struct config *c, const struct config_key *k, struct str value,
                            char *message, size_t message_n)
{
    const struct config_key *min = bound(k->name, "min"), *max = bound(k->name, "max");
    int64_t v;
    if (strcmp(k->name, "streams.num.standby.replicas") == 0)
        max = config_find(CONFIG_BROKER, STR_LIT("group.streams.max.standby.replicas"));
    if (max == NULL || !config_parse_int(value, &v))
        return ERR_NONE;
    const int64_t lowest = min == NULL ? 0 : config_int(c, min->name);
    const int64_t highest = config_int(c, max->name);
    if (v >= lowest && v <= highest)
        return ERR_NONE;
    snprintf(message, message_n,
             "Invalid value %lld for configuration %s: this broker allows %lld to %lld",
             (long long)v, k->name, (long long)lowest, (long long)highest);
    return ERR_INVALID;
}

static enum err check_assignor(const struct config *c, struct str value, char *message,
                               size_t message_n)
{
    struct str list = str_of(config_text(c, "group.streams.assignors")), item;
    while (config_next_item(&list, &item))
        if (str_eq(item, config_trim(value)))
            return ERR_NONE;
    snprintf(message, message_n,
             "Invalid value %.*s for configuration streams.assignor.name: not in "
             "group.streams.assignors",
             value.n, value.p);
    return ERR_INVALID;
}

enum err config_check_group(const struct config *c, const struct config_key *k, struct str value,
                            char *message, size_t message_n)
{
    enum err e = config_check(k, value, message, message_n);
    if (e == ERR_NONE && strcmp(k->name, "streams.assignor.name") == 0)
        return check_assignor(c, value, message, message_n);
    return e == ERR_NONE ? check_range(c, k, value, message, message_n) : e;
}
