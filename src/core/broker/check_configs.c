#include "core/broker/check_configs.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/map.h"
#include "core/metadata/broker_config.h"

struct check {
    const struct config *config;
    int32_t node_id;
    uint64_t seed;
    struct arena *arena;
};

/* ------------------------------------------------------------------ named twice */

static enum err resource_key(struct buf *key, const struct config_change *ch)
{
    key->n = 0;
    enum err e = buf_append(key, &ch->type, sizeof ch->type);
    return e == ERR_NONE && ch->name.n > 0 ? buf_append(key, ch->name.p, (size_t)ch->name.n) : e;
}

static void refuse_twice(struct check *c, struct config_change *ch)
{
    if (!ch->settled)
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                             "Each resource must appear at most once");
}

/* All of them are refused, not only the later ones. */
static enum err check_resources(struct check *c, struct config_change *v, int32_t n)
{
    struct map seen;
    struct buf key;
    enum err e = ERR_NONE;
    map_init(&seen, c->seed);
    buf_init(&key);
    for (int32_t i = 0; i < n && e == ERR_NONE; i++) {
        e = resource_key(&key, &v[i]);
        struct config_change *first = e == ERR_NONE ? map_get(&seen, key.p, key.n) : NULL;
        if (first != NULL) {
            refuse_twice(c, first);
            refuse_twice(c, &v[i]);
        } else if (e == ERR_NONE) {
            e = map_put(&seen, key.p, key.n, &v[i]);
        }
    }
    map_close(&seen);
    buf_close(&key);
    return e;
}

static enum err check_keys(struct check *c, struct config_change *ch)
{
    struct map seen;
    enum err e = ERR_NONE;
    if (ch->ops_n < 2)
        return ERR_NONE;
    map_init(&seen, c->seed);
    for (int32_t i = 0; i < ch->ops_n && e == ERR_NONE && !ch->settled; i++) {
        const struct str name = ch->ops[i].name;
        if (map_get_str(&seen, name) != NULL)
            config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                                 "The request names configuration %.*s twice", name.n, name.p);
        else
            e = map_put(&seen, name.p, (size_t)name.n, &ch->ops[i]);
    }
    map_close(&seen);
    return e;
}

/* ------------------------------------------------------------------ a broker's keys */

/* Names in a message, cut where it is full. */
struct names {
    char text[256];
    size_t n;
    bool any;
};

static void add_name(struct names *l, struct str name)
{
    const size_t room = sizeof l->text - l->n;
    const int n = snprintf(l->text + l->n, room, "%s%.*s", l->any ? ", " : "", name.n, name.p);
    l->any = true;
    l->n = n > 0 && (size_t)n < room ? l->n + (size_t)n : sizeof l->text - 1;
}

static bool sets(const struct config_op *op)
{
    return op->operation == CONFIG_OPERATION_SET || op->operation == CONFIG_OPERATION_APPEND;
}

/* Keys that the file alone may set, or that belong to one broker. Custom ones are nobody's. */
static void check_dynamic(struct check *c, struct config_change *ch)
{
    struct names fixed = {.n = 0}, own = {.n = 0};
    for (int32_t i = 0; i < ch->ops_n; i++) {
        const struct config_key *k = config_find_dynamic(ch->ops[i].name);
        if (k == NULL || !sets(&ch->ops[i]))
            continue;
        if (config_dynamic(k) == CONFIG_READ_ONLY)
            add_name(&fixed, ch->ops[i].name);
        else if (config_dynamic(k) == CONFIG_DYNAMIC_BROKER && ch->name.n == 0)
            add_name(&own, ch->ops[i].name);
    }
    if (fixed.any)
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                             "Cannot update these configs dynamically: [%s]", fixed.text);
    else if (own.any)
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                             "These configs belong to one broker, not to the cluster: [%s]",
                             own.text);
}

static void check_cordoned(struct check *c, struct config_change *ch, struct str list)
{
    const struct str stranger = config_cordons_stranger(c->config, list);
    if (stranger.n >= 0)
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                             "cordoned.log.dirs names %.*s, which is not in log.dirs", stranger.n,
                             stranger.p);
}

static void check_value(struct check *c, struct config_change *ch, const struct config_op *op)
{
    char text[512];
    const struct config_key *k = config_find_dynamic(op->name);
    const bool list =
        op->operation == CONFIG_OPERATION_APPEND || op->operation == CONFIG_OPERATION_SUBTRACT;
    if (k == NULL)
        return;
    if (list && k->type != CONFIG_LIST)
        config_change_refuse(ch, c->arena, K_INVALID_CONFIG, "%.*s is not a list", op->name.n,
                             op->name.p);
    else if (sets(op) && config_check_broker(k, op->value, text, sizeof text) != ERR_NONE)
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST, "%s", text);
    else if (sets(op) && strcmp(k->name, "cordoned.log.dirs") == 0)
        check_cordoned(c, ch, op->value);
}

static void check_broker(struct check *c, struct config_change *ch)
{
    if (!broker_config_is_of(ch->name, c->node_id)) {
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                             "Unexpected broker id, expected %d, but received %.*s", c->node_id,
                             ch->name.n, ch->name.p);
        return;
    }
    check_dynamic(c, ch);
    for (int32_t i = 0; i < ch->ops_n && !ch->settled; i++)
        check_value(c, ch, &ch->ops[i]);
}

/* ------------------------------------------------------------------ loggers */

static void check_logger(struct check *c, struct config_change *ch)
{
    if (ch->replace) {
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST, "Unknown resource type %d", ch->type);
        return;
    }
    if (ch->name.n == 0 || !broker_config_is_of(ch->name, c->node_id)) {
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST,
                             "Unexpected node id, expected %d, but received %.*s", c->node_id,
                             ch->name.n, ch->name.p);
        return;
    }
    for (int32_t i = 0; i < ch->ops_n && !ch->settled; i++) {
        const struct config_op *op = &ch->ops[i];
        const bool list =
            op->operation == CONFIG_OPERATION_APPEND || op->operation == CONFIG_OPERATION_SUBTRACT;
        config_change_refuse(ch, c->arena, list ? K_INVALID_REQUEST : K_INVALID_CONFIG,
                             list ? "The level of logger %.*s is not a list"
                                  : "Logger %.*s does not exist: this broker has none",
                             op->name.n, op->name.p);
    }
    ch->settled = true;
}

/* ------------------------------------------------------------------ one resource */

static void check_operations(struct check *c, struct config_change *ch)
{
    struct names missing = {.n = 0};
    for (int32_t i = 0; i < ch->ops_n && !ch->settled; i++) {
        const struct config_op *op = &ch->ops[i];
        if (op->operation < CONFIG_OPERATION_SET || op->operation > CONFIG_OPERATION_SUBTRACT)
            config_change_refuse(ch, c->arena, K_INVALID_REQUEST, "Unknown operation %d on %.*s",
                                 op->operation, op->name.n, op->name.p);
        else if (op->operation != CONFIG_OPERATION_DELETE && op->value.n < 0)
            add_name(&missing, op->name);
    }
    if (!ch->settled && missing.any)
        config_change_refuse(ch, c->arena, K_INVALID_REQUEST, "Null value not supported for : %s",
                             missing.text);
}

static enum err check_change(struct check *c, struct config_change *ch)
{
    enum err e = check_keys(c, ch);
    if (e != ERR_NONE)
        return e;
    if (!ch->settled)
        check_operations(c, ch);
    if (!ch->settled && c->node_id >= 0 && ch->type == CONFIG_RESOURCE_BROKER)
        check_broker(c, ch);
    if (!ch->settled && c->node_id >= 0 && ch->type == CONFIG_RESOURCE_BROKER_LOGGER)
        check_logger(c, ch);
    return ERR_NONE;
}

enum err broker_check_configs(const struct config *config, int32_t node_id, uint64_t seed,
                              struct config_change *changes, int32_t n, struct arena *a)
{
    struct check c = {config, node_id, seed, a};
    enum err e = check_resources(&c, changes, n);
    for (int32_t i = 0; i < n && e == ERR_NONE; i++)
        if (!changes[i].settled)
            e = check_change(&c, &changes[i]);
    return e;
}
