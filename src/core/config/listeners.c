/* listeners, advertised.listeners, listener.security.protocol.map, controller.listener.names become
 * one list. An empty element in a list is tolerated, as scripts that build one leave it.
 *
 * A listener bound to all addresses advertises 127.0.0.1 unless advertised.listeners says more.
 * Kafka takes the machine's name for NAME://:port, which other machines may not resolve, and
 * refuses 0.0.0.0; localhost would be ::1 to some clients and 127.0.0.1 to others. Only a client
 * elsewhere needs more, and whoever starts the broker is warned (cli). */
#include <ctype.h>
#include <stdio.h>

#include "core/config/inside.h"

#define BAD(...) (snprintf(message, message_n, __VA_ARGS__), ERR_INVALID)
#define PROTOCOL_MAX 32

struct endpoint {
    char name[64];
    struct config_address at;
};

/* Upper case; false if it does not fit or is empty. */
static bool copy_upper(struct str s, char *out, size_t out_n)
{
    if (s.n <= 0 || (size_t)s.n >= out_n)
        return false;
    for (int32_t i = 0; i < s.n; i++)
        out[i] = (char)toupper((unsigned char)s.p[i]);
    out[s.n] = '\0';
    return true;
}

bool config_parse_address(struct str rest, struct config_address *out)
{
    int32_t colon = rest.n - 1;
    while (colon >= 0 && rest.p[colon] != ':')
        colon--;
    int64_t port;
    if (colon < 0 ||
        !config_parse_int((struct str){rest.p + colon + 1, rest.n - colon - 1}, &port) ||
        port < 0 || port > UINT16_MAX)
        return false;
    struct str host = {rest.p, colon};
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        host.p++;
        host.n -= 2;
    } else if (host.n > 0 && memchr(host.p, ':', (size_t)host.n) != NULL) {
        return false; /* an IPv6 address wants brackets */
    }
    if ((size_t)host.n >= sizeof out->host)
        return false;
    memcpy(out->host, host.p, (size_t)host.n);
    out->host[host.n] = '\0';
    out->port = (uint16_t)port;
    return true;
}

/* NAME://address */
static bool parse_endpoint(struct str s, struct endpoint *out)
{
    const char *colon = memchr(s.p, ':', (size_t)s.n);
    const struct str name = {s.p, colon == NULL ? 0 : (int32_t)(colon - s.p)};
    return s.n - name.n > 3 && memcmp(s.p + name.n, "://", 3) == 0 &&
           copy_upper(name, out->name, sizeof out->name) &&
           config_parse_address((struct str){s.p + name.n + 3, s.n - name.n - 3}, &out->at);
}

static struct listener *find(struct config *c, const char *name)
{
    for (size_t i = 0; i < c->listeners_n; i++)
        if (strcmp(c->listeners[i].name, name) == 0)
            return &c->listeners[i];
    return NULL;
}

static bool any_address(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool bound_already(const struct config *c, const struct endpoint *e)
{
    for (size_t i = 0; i < c->listeners_n; i++)
        if (e->at.port != 0 && c->listeners[i].port == e->at.port &&
            strcmp(c->listeners[i].host, e->at.host) == 0)
            return true;
    return false;
}

static enum err add_listeners(struct config *c, char *message, size_t message_n)
{
    struct str list = str_of(config_text(c, "listeners")), item;
    c->listeners_n = 0;
    while (config_next_item(&list, &item)) {
        struct endpoint e;
        if (!parse_endpoint(item, &e))
            return BAD("listeners: not NAME://host:port: %.*s", item.n, item.p);
        if (find(c, e.name) != NULL)
            return BAD("listeners=%s names %s twice", config_text(c, "listeners"), e.name);
        if (bound_already(c, &e))
            return BAD("listeners=%s binds %s:%u twice", config_text(c, "listeners"), e.at.host,
                       e.at.port);
        if (c->listeners_n == LISTENERS_MAX)
            return BAD("listeners: at most %d", LISTENERS_MAX);
        struct listener *l = &c->listeners[c->listeners_n++];
        *l = (struct listener){.port = e.at.port};
        snprintf(l->name, sizeof l->name, "%s", e.name);
        memcpy(l->host, e.at.host, sizeof e.at.host);
        if (strcmp(e.at.host, "0.0.0.0") == 0)
            l->host[0] = '\0';
        snprintf(l->advertised_host, sizeof l->advertised_host, "%s",
                 strcmp(e.at.host, "::") == 0 ? "::1"
                 : any_address(e.at.host)     ? "127.0.0.1"
                                              : e.at.host);
    }
    if (c->listeners_n == 0)
        return BAD("listeners=%s names no listener", config_text(c, "listeners"));
    return ERR_NONE;
}

/* Those that this node has; of the others it is told where they are by the quorum. */
static enum err mark_controllers(struct config *c, char *message, size_t message_n)
{
    const char *text = config_text(c, "controller.listener.names");
    struct str list = str_of(text == NULL ? "" : text), item;
    c->controller_listener[0] = '\0';
    while (config_next_item(&list, &item)) {
        char name[sizeof c->controller_listener];
        const bool fits = copy_upper(item, name, sizeof name);
        struct listener *l = fits ? find(c, name) : NULL;
        if (fits && c->controller_listener[0] == '\0')
            memcpy(c->controller_listener, name, sizeof name);
        if (l == NULL && !config_in_cluster(c))
            return BAD("controller.listener.names=%s: %.*s is not in listeners", text, item.n,
                       item.p);
        if (l != NULL)
            l->controller = true;
    }
    return ERR_NONE;
}

static size_t controllers_n(const struct config *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->listeners_n; i++)
        n += c->listeners[i].controller;
    return n;
}

/* Which listeners a node of its roles has. */
static enum err check_controllers(struct config *c, char *message, size_t message_n)
{
    const char *names = config_text(c, "controller.listener.names");
    const char *listeners = config_text(c, "listeners");
    struct str list = str_of(names == NULL ? "" : names), first;
    const size_t n = controllers_n(c);
    if (!config_in_cluster(c))
        return n < c->listeners_n
                   ? ERR_NONE
                   : BAD("listeners=%s has controller listeners only: clients need one too",
                         listeners);
    if (!config_next_item(&list, &first))
        return BAD("controller.listener.names must be set: in a cluster it names the listener of "
                   "the controllers");
    if (!config_is_controller(c) && n > 0)
        return BAD("controller.listener.names=%s must not be in listeners=%s of a node with the "
                   "broker role only",
                   names, listeners);
    if (!config_is_broker(c) && n < c->listeners_n)
        return BAD("listeners=%s must contain only listeners of controller.listener.names=%s on a "
                   "node with the controller role only",
                   listeners, names == NULL ? "" : names);
    if (config_is_controller(c) && n == 0)
        return BAD("controller.listener.names=%s must contain a listener of listeners=%s on a node "
                   "with the controller role",
                   names, listeners);
    if (config_is_broker(c) && n == c->listeners_n)
        return BAD("listeners=%s has controller listeners only: brokers and clients need one too",
                   listeners);
    return ERR_NONE;
}

static bool names_controller(const struct config *c, const char *name)
{
    const char *text = config_text(c, "controller.listener.names");
    struct str list = str_of(text == NULL ? "" : text), item;
    char upper[sizeof c->listeners[0].name];
    while (config_next_item(&list, &item))
        if (copy_upper(item, upper, sizeof upper) && strcmp(upper, name) == 0)
            return true;
    return false;
}

static enum err advertise(struct config *c, char *message, size_t message_n)
{
    const char *text = config_text(c, "advertised.listeners");
    struct str list = str_of(text == NULL ? "" : text), item;
    while (config_next_item(&list, &item)) {
        struct endpoint e;
        if (!parse_endpoint(item, &e) || any_address(e.at.host))
            return BAD("advertised.listeners: not NAME://host:port with a host that clients can "
                       "reach: %.*s",
                       item.n, item.p);
        struct listener *l = find(c, e.name);
        if (l == NULL && names_controller(c, e.name))
            continue; /* of other nodes: the same text may be given to all */
        if (l == NULL)
            return BAD("advertised.listeners=%s: %s is not in listeners", text, e.name);
        memcpy(l->advertised_host, e.at.host, sizeof e.at.host);
        l->advertised_port = e.at.port;
    }
    return ERR_NONE;
}

/* A node without others needs none, so it may be left out there. */
static enum err check_inter_broker(struct config *c, char *message, size_t message_n)
{
    const char *text = config_text(c, "inter.broker.listener.name");
    const char *protocol = config_text(c, "security.inter.broker.protocol");
    const bool named = text != NULL && text[0] != '\0';
    char *name = c->inter_broker;
    if (named && config_own_text(c, "security.inter.broker.protocol") != NULL)
        return BAD(
            "inter.broker.listener.name=%s and security.inter.broker.protocol=%s: set one of "
            "them",
            text, protocol);
    const bool fits = copy_upper(str_of(named ? text : protocol), name, sizeof c->inter_broker);
    if (!config_is_broker(c) || (!named && !config_in_cluster(c)))
        return ERR_NONE;
    const struct listener *l = fits ? find(c, name) : NULL;
    if (l == NULL && named)
        return BAD("inter.broker.listener.name=%s is not in listeners", text);
    if (l == NULL)
        return BAD("inter.broker.listener.name must name the listener of listeners=%s that other "
                   "brokers use",
                   config_text(c, "listeners"));
    if (l->controller)
        return BAD("inter.broker.listener.name=%s is a controller listener", name);
    return ERR_NONE;
}

static bool known_protocol(const char *protocol)
{
    static const char *const known[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};
    for (size_t i = 0; i < ARRAY_N(known); i++)
        if (strcmp(known[i], protocol) == 0)
            return true;
    return false;
}

/* "NAME:PROTOCOL", both in upper case then. */
static bool parse_mapping(struct str item, char *name, size_t name_n, char protocol[PROTOCOL_MAX])
{
    const char *colon = memchr(item.p, ':', (size_t)item.n);
    const int32_t n = colon == NULL ? 0 : (int32_t)(colon - item.p);
    return copy_upper((struct str){item.p, n}, name, name_n) &&
           copy_upper((struct str){colon + 1, item.n - n - 1}, protocol, PROTOCOL_MAX) &&
           known_protocol(protocol);
}

/* The protocol of a listener: by the map, else the protocol of that name; a controller listener
 * that no map names is PLAINTEXT, as in Kafka. "" when there is none. */
static enum err protocol_of(const struct config *c, const char *listener, bool controller,
                            char protocol[PROTOCOL_MAX], char *message, size_t message_n)
{
    struct str map = str_of(config_text(c, "listener.security.protocol.map")), item;
    char name[sizeof c->listeners[0].name];
    while (config_next_item(&map, &item)) {
        if (!parse_mapping(item, name, sizeof name, protocol))
            return BAD(
                "listener.security.protocol.map: not LISTENER:PROTOCOL with one of PLAINTEXT, "
                "SSL, SASL_PLAINTEXT, SASL_SSL: %.*s",
                item.n, item.p);
        if (strcmp(name, listener) == 0)
            return ERR_NONE;
    }
    protocol[0] = '\0';
    if (controller && config_own_text(c, "listener.security.protocol.map") == NULL)
        memcpy(protocol, "PLAINTEXT", sizeof "PLAINTEXT");
    return ERR_NONE;
}

static enum err check_protocol(const struct config *c, const char *listener, bool controller,
                               char *message, size_t message_n)
{
    char protocol[PROTOCOL_MAX];
    enum err e = protocol_of(c, listener, controller, protocol, message, message_n);
    if (e != ERR_NONE)
        return e;
    if (protocol[0] == '\0')
        return BAD("listener.security.protocol.map has no protocol for listener %s", listener);
    if (strcmp(protocol, "PLAINTEXT") != 0)
        return BAD("listener %s: security protocol %s is not served yet, only PLAINTEXT", listener,
                   protocol);
    return ERR_NONE;
}

/* Of our listeners, and of the one that other controllers are spoken to on. */
static enum err check_protocols(struct config *c, char *message, size_t message_n)
{
    for (size_t i = 0; i < c->listeners_n; i++) {
        const struct listener *l = &c->listeners[i];
        enum err e = check_protocol(c, l->name, l->controller, message, message_n);
        if (e != ERR_NONE)
            return e;
    }
    return c->controller_listener[0] != '\0'
               ? check_protocol(c, c->controller_listener, true, message, message_n)
               : ERR_NONE;
}

enum err config_read_listeners(struct config *c, char *message, size_t message_n)
{
    static enum err (*const steps[])(struct config *, char *, size_t) = {
        add_listeners, mark_controllers,   check_controllers,
        advertise,     check_inter_broker, check_protocols};
    for (size_t i = 0; i < ARRAY_N(steps); i++) {
        enum err e = steps[i](c, message, message_n);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}
