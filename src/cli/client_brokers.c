/* Brokers by address: one of the command line that turns out to have an id keeps its connection.
 * One whose address changed stays until the end, for a command may still wait for its answer. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/client_impl.h"
#include "cli/text.h"

enum { PORT_DEFAULT = 9092, BROKERS_MAX = 4096 };

#define ANSWER_MAX_BYTES (256u << 20)

int32_t broker_id(const struct broker *b)
{
    return b->id;
}

const char *broker_name(const struct broker *b)
{
    return dial_name(b->dial);
}

struct broker *client_broker(struct client *c, int32_t id)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->brokers)
    {
        struct broker *b = LIST_ENTRY(l, struct broker, link);
        if (b->id == id && id >= 0)
            return b;
    }
    return NULL;
}

/* With that id or none: two ids at one address are two brokers, of which one cannot be right. */
static struct broker *at_address(struct client *c, int32_t id, const char *host, uint16_t port)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &c->brokers)
    {
        struct broker *b = LIST_ENTRY(l, struct broker, link);
        if ((b->id == id || b->id == -1) && b->port == port && strcmp(b->host, host) == 0)
            return b;
    }
    return NULL;
}

static enum err new_broker(struct client *c, const char *host, uint16_t port, struct broker **out)
{
    const struct dialing_args args = {.host = host,
                                      .port = port,
                                      .timers = &c->timers,
                                      .client_id = STR_LIT("dohle"),
                                      .memory = &c->memory,
                                      .answer_max_bytes = ANSWER_MAX_BYTES};
    if (c->brokers_n == BROKERS_MAX)
        return ERR_TOO_LARGE;
    struct broker *b = calloc(1, sizeof *b);
    if (b == NULL)
        return ERR_NOMEM;
    enum err e = dial_new(&c->dialer, &args, &b->dial);
    if (e != ERR_NONE) {
        free(b);
        return e;
    }
    b->client = c;
    b->port = port;
    snprintf(b->host, sizeof b->host, "%s", host);
    list_append(&c->brokers, &b->link);
    c->brokers_n++;
    *out = b;
    return ERR_NONE;
}

enum err client_add_broker(struct client *c, int32_t id, struct str host, int32_t port,
                           struct broker **out)
{
    char name[RESOLVE_HOST_BYTES];
    if (id < 0 || port < 1 || port > UINT16_MAX || host.n < 1 || (size_t)host.n >= sizeof name ||
        memchr(host.p, '\0', (size_t)host.n) != NULL)
        return ERR_INVALID;
    snprintf(name, sizeof name, "%.*s", host.n, host.p);
    struct broker *before = client_broker(c, id), *b = at_address(c, id, name, (uint16_t)port);
    enum err e = b != NULL ? ERR_NONE : new_broker(c, name, (uint16_t)port, &b);
    if (e != ERR_NONE)
        return e;
    if (before != NULL)
        before->id = -1;
    b->id = id;
    *out = b;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ of the command line */

/* "HOST", "HOST:PORT", "[V6]", "[V6]:PORT" into host and port. */
static bool parse_address(const char *p, size_t n, char host[RESOLVE_HOST_BYTES], uint16_t *port)
{
    char text[RESOLVE_HOST_BYTES + 16];
    int64_t number = PORT_DEFAULT;
    if (n >= sizeof text)
        return false;
    memcpy(text, p, n);
    text[n] = '\0';
    char *begin = text, *rest = strchr(text, ':');
    if (text[0] == '[') {
        begin++;
        rest = strchr(text, ']');
        if (rest == NULL)
            return false;
        *rest++ = '\0';
        if (*rest == '\0')
            rest = NULL;
        else if (*rest != ':')
            return false;
    }
    if (rest != NULL) {
        *rest = '\0';
        if (!text_int(rest + 1, 1, UINT16_MAX, &number))
            return false;
    }
    const size_t host_n = strlen(begin);
    if (host_n == 0 || host_n >= RESOLVE_HOST_BYTES)
        return false;
    memcpy(host, begin, host_n + 1);
    *port = (uint16_t)number;
    return true;
}

enum err client_add_brokers(struct client *c, const char *list)
{
    struct broker *b;
    for (const char *end; list != NULL; list = *end == '\0' ? NULL : end + 1) {
        char host[RESOLVE_HOST_BYTES];
        uint16_t port;
        end = list + strcspn(list, ",");
        if (end == list) /* an empty element does no harm */
            continue;
        if (!parse_address(list, (size_t)(end - list), host, &port))
            return ERR_INVALID;
        if (at_address(c, -1, host, port) != NULL)
            continue;
        enum err e = new_broker(c, host, port, &b);
        if (e != ERR_NONE)
            return e == ERR_TOO_LARGE ? ERR_INVALID : e;
        b->id = -1;
    }
    return c->brokers_n > 0 ? ERR_NONE : ERR_INVALID;
}
