/* What a node is and who the others are: process.roles, node.id, controller.quorum.voters and
 * controller.quorum.bootstrap.servers. The rules are Kafka's, but for a node that is all of its
 * cluster: it may leave out every one of these keys. */
#include <stdio.h>

#include "core/config/inside.h"

#define BAD(...) (snprintf(message, message_n, __VA_ARGS__), ERR_INVALID)

static bool lists(const char *text, const char *word)
{
    struct str list = str_of(text == NULL ? "" : text), item;
    while (config_next_item(&list, &item))
        if (str_eq(item, str_of(word)))
            return true;
    return false;
}

static bool empty(const char *text)
{
    struct str list = str_of(text == NULL ? "" : text), item;
    return !config_next_item(&list, &item);
}

static bool has_role(const struct config *c, const char *role)
{
    const char *text = config_text(c, "process.roles");
    return empty(text) || lists(text, role);
}

bool config_is_broker(const struct config *c)
{
    return has_role(c, "broker");
}

bool config_is_controller(const struct config *c)
{
    return has_role(c, "controller");
}

enum err config_voters(const struct config *c, struct voter_set *out)
{
    struct str list = str_of(config_text(c, "controller.quorum.voters")), item;
    *out = (struct voter_set){0};
    while (config_next_item(&list, &item)) {
        struct voter_set one;
        if (out->n == VOTERS_MAX || voter_set_parse(item, &one) != ERR_NONE ||
            voter_set_find(out, one.v[0].id, (struct uuid){{0}}) != NULL)
            return ERR_INVALID;
        out->v[out->n++] = one.v[0];
    }
    return ERR_NONE;
}

bool config_in_cluster(const struct config *c)
{
    struct voter_set voters;
    return !config_is_broker(c) || !config_is_controller(c) ||
           !empty(config_text(c, "controller.quorum.bootstrap.servers")) ||
           (config_voters(c, &voters) == ERR_NONE && voters.n > 1);
}

static enum err set_node_id(struct config *c, struct str id, char *message, size_t message_n)
{
    return config_put(c, config_find(CONFIG_BROKER, STR_LIT("node.id")), id, CONFIG_DEFAULT,
                      message, message_n);
}

/* node.id, else the older broker.id, else a sole voter's. */
static enum err read_id(struct config *c, const struct voter_set *voters, char *message,
                        size_t message_n)
{
    const int64_t node_id = config_int(c, "node.id"), broker_id = config_int(c, "broker.id");
    if (broker_id >= 0 && node_id >= 0 && broker_id != node_id)
        return BAD("broker.id=%lld differs from node.id=%lld: set one of them",
                   (long long)broker_id, (long long)node_id);
    if (node_id >= 0)
        return ERR_NONE;
    if (broker_id >= 0)
        return set_node_id(c, str_of(config_text(c, "broker.id")), message, message_n);
    if (config_in_cluster(c))
        return BAD("node.id must be set: in a cluster every node has its own");
    if (voters->n == 0)
        return ERR_NONE;
    char text[16];
    snprintf(text, sizeof text, "%d", voters->v[0].id);
    return set_node_id(c, str_of(text), message, message_n);
}

static enum err check_membership(const struct config *c, const struct voter_set *voters,
                                 char *message, size_t message_n)
{
    const int32_t node_id = (int32_t)config_int(c, "node.id");
    const char *text = config_text(c, "controller.quorum.voters");
    const bool named = voter_set_find(voters, node_id, (struct uuid){{0}}) != NULL;
    if (voters->n > 0 && config_is_controller(c) && !named)
        return BAD("controller.quorum.voters=%s must include this node, node.id=%d, which has the "
                   "controller role",
                   text, node_id);
    if (!config_is_controller(c) && named)
        return BAD("controller.quorum.voters=%s must not include this node, node.id=%d, which has "
                   "the broker role only",
                   text, node_id);
    if (voters->n == 0 && empty(config_text(c, "controller.quorum.bootstrap.servers")) &&
        config_in_cluster(c))
        return BAD("process.roles=%s: controller.quorum.bootstrap.servers or "
                   "controller.quorum.voters must say where the controllers are",
                   config_text(c, "process.roles"));
    return ERR_NONE;
}

static enum err check_bootstrap(const struct config *c, char *message, size_t message_n)
{
    struct str list = str_of(config_text(c, "controller.quorum.bootstrap.servers")), item;
    while (config_next_item(&list, &item)) {
        struct config_address a;
        if (!config_parse_address(item, &a) || a.host[0] == '\0' || a.port == 0)
            return BAD("controller.quorum.bootstrap.servers: not host:port: %.*s", item.n, item.p);
    }
    return ERR_NONE;
}

enum err config_check_roles(struct config *c, char *message, size_t message_n)
{
    struct voter_set voters;
    if (config_voters(c, &voters) != ERR_NONE)
        return BAD("controller.quorum.voters=%s: must be id@host:port,... with each id once",
                   config_text(c, "controller.quorum.voters"));
    enum err e = read_id(c, &voters, message, message_n);
    if (e == ERR_NONE)
        e = check_bootstrap(c, message, message_n);
    return e == ERR_NONE ? check_membership(c, &voters, message, message_n) : e;
}
