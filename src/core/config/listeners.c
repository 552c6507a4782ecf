/* listeners, advertised.listeners, listener.security.protocol.map, controller.listener.names become
 * one list. An empty element in a list is tolerated (users.md); a listener bound to all addresses
 * advertises localhost unless told otherwise: a name that reaches this machine from itself. */
#include <ctype.h>
#include <stdio.h>

#include "core/config/inside.h"

#define BAD(...) (snprintf(message, message_n, __VA_ARGS__), ERR_INVALID)

struct endpoint {
    char name[64];
    char host[256];
    uint16_t port;
};

/* NAME://host:port, NAME://[v6]:port, NAME://:port */
static bool parse_endpoint(struct str s, struct endpoint *out)
{
    int32_t i = 0;
    while (i < s.n && s.p[i] != ':')
        i++;
    if (i == 0 || (size_t)i >= sizeof out->name || i + 3 > s.n || memcmp(s.p + i, "://", 3) != 0)
        return false;
    for (int32_t k = 0; k < i; k++)
        out->name[k] = (char)toupper((unsigned char)s.p[k]);
    out->name[i] = '\0';
    struct str rest = {s.p + i + 3, s.n - i - 3};
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

static enum err add_listeners(struct config *c, char *message, size_t message_n)
{
    struct str list = str_of(config_text(c, "listeners")), item;
    c->listeners_n = 0;
    while (config_next_item(&list, &item)) {
        struct endpoint e;
        if (!parse_endpoint(item, &e))
            return BAD("listeners=%s: %.*s is not NAME://host:port", config_text(c, "listeners"),
                       item.n, item.p);
        if (find(c, e.name) != NULL)
            return BAD("listeners=%s names %s twice", config_text(c, "listeners"), e.name);
        if (c->listeners_n == LISTENERS_MAX)
            return BAD("listeners: at most %d", LISTENERS_MAX);
        struct listener *l = &c->listeners[c->listeners_n++];
        *l = (struct listener){.port = e.port};
        snprintf(l->name, sizeof l->name, "%s", e.name);
        snprintf(l->host, sizeof l->host, "%s",
                 any_address(e.host) && e.host[0] != ':' ? "" : e.host);
        snprintf(l->advertised_host, sizeof l->advertised_host, "%s",
                 any_address(e.host) ? "localhost" : e.host);
    }
    if (c->listeners_n == 0)
        return BAD("listeners=%s names no listener", config_text(c, "listeners"));
    return ERR_NONE;
}

static enum err mark_controllers(struct config *c, char *message, size_t message_n)
{
    const char *text = config_text(c, "controller.listener.names");
    struct str list = str_of(text == NULL ? "" : text), item;
    size_t controllers = 0;
    while (config_next_item(&list, &item)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", item.n, item.p);
        for (char *p = name; *p != '\0'; p++)
            *p = (char)toupper((unsigned char)*p);
        struct listener *l = find(c, name);
        if (l == NULL)
            return BAD("controller.listener.names=%s: %s is not in listeners", text, name);
        controllers += !l->controller;
        l->controller = true;
    }
    if (controllers == c->listeners_n)
        return BAD("listeners=%s has controller listeners only: clients need one too",
                   config_text(c, "listeners"));
    return ERR_NONE;
}

static enum err advertise(struct config *c, char *message, size_t message_n)
{
    const char *text = config_text(c, "advertised.listeners");
    struct str list = str_of(text == NULL ? "" : text), item;
    while (config_next_item(&list, &item)) {
        struct endpoint e;
        if (!parse_endpoint(item, &e) || any_address(e.host))
            return BAD("advertised.listeners=%s: %.*s is not NAME://host:port with a host that "
                       "clients can reach",
                       text, item.n, item.p);
        struct listener *l = find(c, e.name);
        if (l == NULL)
            return BAD("advertised.listeners=%s: %s is not in listeners", text, e.name);
        memcpy(l->advertised_host, e.host, sizeof e.host);
        l->advertised_port = e.port;
    }
    return ERR_NONE;
}

/* The protocol that a listener's name means: by the map, else the name itself. */
static bool protocol_of(const struct config *c, const char *name, char out[32])
{
    struct str map = str_of(config_text(c, "listener.security.protocol.map")), item;
    snprintf(out, 32, "%s", strcmp(name, "CONTROLLER") == 0 ? "PLAINTEXT" : name);
    while (config_next_item(&map, &item)) {
        const char *colon = memchr(item.p, ':', (size_t)item.n);
        const size_t n = colon == NULL ? 0 : (size_t)(colon - item.p);
        if (n == 0 || n != strlen(name))
            continue;
        size_t i = 0;
        while (i < n && toupper((unsigned char)item.p[i]) == name[i])
            i++;
        if (i < n)
            continue;
        snprintf(out, 32, "%.*s", item.n - (int32_t)n - 1, colon + 1);
        for (char *p = out; *p != '\0'; p++)
            *p = (char)toupper((unsigned char)*p);
        return true;
    }
    return config_own_text(c, "listener.security.protocol.map") == NULL;
}

static enum err check_protocols(struct config *c, char *message, size_t message_n)
{
    for (size_t i = 0; i < c->listeners_n; i++) {
        char protocol[32];
        if (!protocol_of(c, c->listeners[i].name, protocol))
            return BAD("listener.security.protocol.map has no protocol for listener %s",
                       c->listeners[i].name);
        if (strcmp(protocol, "PLAINTEXT") != 0)
            return BAD("listener %s: security protocol %s is not served yet, only PLAINTEXT",
                       c->listeners[i].name, protocol);
    }
    return ERR_NONE;
}

enum err config_read_listeners(struct config *c, char *message, size_t message_n)
{
    enum err e = add_listeners(c, message, message_n);
    if (e == ERR_NONE)
        e = mark_controllers(c, message, message_n);
    if (e == ERR_NONE)
        e = advertise(c, message, message_n);
    if (e == ERR_NONE)
        e = check_protocols(c, message, message_n);
    return e;
}
