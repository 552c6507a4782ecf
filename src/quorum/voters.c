#include "quorum/voters.h"

#include <stdio.h>

static bool parse_number(struct str s, int64_t max, int64_t *out)
{
    int64_t v = 0;
    if (s.n <= 0 || s.n > 10)
        return false;
    for (int32_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (s.p[i] - '0');
    }
    *out = v;
    return v <= max;
}

static int32_t find_char(struct str s, char c)
{
    const char *p = s.n <= 0 ? NULL : memchr(s.p, c, (size_t)s.n);
    return p == NULL ? -1 : (int32_t)(p - s.p);
}

static bool parse_voter(struct str s, struct voter *out)
{
    int64_t id, port;
    const int32_t at = find_char(s, '@');
    int32_t colon = s.n - 1;
    while (colon > at && s.p[colon] != ':')
        colon--;
    if (at < 0 || colon <= at + 1 || !parse_number((struct str){s.p, at}, INT32_MAX, &id) ||
        !parse_number((struct str){s.p + colon + 1, s.n - colon - 1}, UINT16_MAX, &port))
        return false;
    struct str host = {s.p + at + 1, colon - at - 1};
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        host.p++;
        host.n -= 2;
    }
    if ((size_t)host.n >= sizeof out->host)
        return false;
    *out = (struct voter){.id = (int32_t)id, .port = (uint16_t)port};
    memcpy(out->host, host.p, (size_t)host.n);
    return true;
}

enum err voter_set_parse(struct str s, struct voter_set *out)
{
    out->n = 0;
    while (s.n > 0) {
        const int32_t comma = find_char(s, ',');
        const struct str item = {s.p, comma < 0 ? s.n : comma};
        struct voter v;
        if (out->n == VOTERS_MAX || !parse_voter(item, &v) ||
            voter_set_find(out, v.id, (struct uuid){{0}}) != NULL)
            return ERR_INVALID;
        out->v[out->n++] = v;
        const int32_t used = comma < 0 ? s.n : comma + 1;
        s.p += used;
        s.n -= used;
    }
    return out->n > 0 ? ERR_NONE : ERR_INVALID;
}

bool voter_reached_at(struct voter *v, struct str listener, struct str host, uint16_t port)
{
    if (listener.n < 0 || (size_t)listener.n >= sizeof v->listener || host.n < 0 ||
        (size_t)host.n >= sizeof v->host)
        return false;
    memset(v->listener, 0, sizeof v->listener);
    memset(v->host, 0, sizeof v->host);
    memcpy(v->listener, listener.p, (size_t)listener.n);
    memcpy(v->host, host.p, (size_t)host.n);
    v->port = port;
    return true;
}

const struct voter *voter_set_find(const struct voter_set *s, int32_t id, struct uuid directory_id)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->v[i].id == id &&
            (uuid_is_zero(s->v[i].directory_id) || uuid_eq(s->v[i].directory_id, directory_id)))
            return &s->v[i];
    return NULL;
}
