/* The protocols (assignors) that members bring, and how many members have each: a group goes on
 * only with one that all have. A name that a member lists twice counts once: in Kafka it makes the
 * join hang. Requests list what they like, so nothing here is quadratic in their length. */
#include "core/group/classic_impl.h"

#include <stdlib.h>

#include "base/check.h"

/* ------------------------------------------------------------------ a member's list */

/* Sizes of the copy, each name once: `once` gets the names. */
static enum err measure(const struct join_group_request_join_group_request_protocol *v, int32_t n,
                        struct map *once, size_t *count, size_t *bytes)
{
    *count = 0;
    *bytes = sizeof(struct classic_protocols);
    for (int32_t i = 0; i < n; i++) {
        const struct str name = v[i].name;
        if (map_get_str(once, name) != NULL)
            continue;
        /* the value says which one is meant; any pointer but NULL */
        if (map_put(once, name.p, (size_t)name.n, (void *)(uintptr_t)&v[i]) != ERR_NONE)
            return ERR_NOMEM;
        ++*count;
        *bytes += sizeof(struct classic_protocol) + (size_t)name.n;
        *bytes += v[i].metadata.n < 0 ? 0 : (size_t)v[i].metadata.n;
    }
    return ERR_NONE;
}

static uint8_t *put(uint8_t *at, const void *p, int32_t n)
{
    if (n > 0)
        memcpy(at, p, (size_t)n);
    return at + (n > 0 ? n : 0);
}

static void fill(struct classic_protocols *p, const struct map *once)
{
    uint8_t *at = (uint8_t *)&p->v[p->n];
    size_t i = 0;
    for (struct map_entry *e = map_next(once, NULL); e != NULL; e = map_next(once, e), i++) {
        const struct join_group_request_join_group_request_protocol *from = map_value(e);
        p->v[i].name = (struct str){(char *)at, from->name.n};
        at = put(at, from->name.p, from->name.n);
        p->v[i].metadata = (struct bytes){at, from->metadata.n < 0 ? 0 : from->metadata.n};
        at = put(at, from->metadata.p, from->metadata.n);
    }
    CHECK(i == p->n && at == (uint8_t *)p + p->bytes);
}

struct classic_protocols *
classic_protocols_new(struct classic *g,
                      const struct join_group_request_join_group_request_protocol *v, int32_t n)
{
    struct map once;
    size_t count, bytes;
    struct classic_protocols *p = NULL;
    map_init(&once, g->args.seed);
    if (measure(v, n, &once, &count, &bytes) == ERR_NONE)
        p = classic_alloc(g, bytes);
    if (p != NULL) {
        p->bytes = bytes;
        p->n = count;
        fill(p, &once);
    }
    map_close(&once);
    return p;
}

void classic_protocols_free(struct classic *g, struct classic_protocols *p)
{
    if (p != NULL)
        classic_release(g, p, p->bytes);
}

static bool bytes_eq(struct bytes a, struct bytes b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

bool classic_protocols_equal(const struct classic_protocols *a, const struct classic_protocols *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i].name, b->v[i].name) || !bytes_eq(a->v[i].metadata, b->v[i].metadata))
            return false;
    return true;
}

struct bytes classic_protocols_metadata(const struct classic_protocols *p, struct str name)
{
    for (size_t i = 0; i < p->n; i++)
        if (str_eq(p->v[i].name, name))
            return p->v[i].metadata;
    return BYTES_NULL;
}

/* ------------------------------------------------------------------ what is supported */

static struct classic_support *find(const struct classic *g, struct str name)
{
    return map_get_str(&g->supports, name);
}

static size_t support_bytes(struct str name)
{
    return sizeof(struct classic_support) + 2 * (size_t)name.n;
}

static struct classic_support *get(struct classic *g, struct str name)
{
    struct classic_support *s = find(g, name);
    if (s != NULL)
        return s;
    s = classic_alloc(g, support_bytes(name));
    if (s == NULL)
        return NULL;
    char *copy = (char *)(s + 1);
    if (name.n > 0)
        memcpy(copy, name.p, (size_t)name.n);
    s->name = (struct str){copy, name.n};
    if (map_put(&g->supports, name.p, (size_t)name.n, s) != ERR_NONE) {
        classic_release(g, s, support_bytes(name));
        return NULL;
    }
    return s;
}

static void free_unused(struct classic *g, struct classic_support *s)
{
    if (s->members_n > 0 || s->kept_n > 0 || s->chosen)
        return;
    map_remove(&g->supports, s->name.p, (size_t)s->name.n);
    classic_release(g, s, support_bytes(s->name));
}

static void count_down(struct classic *g, const struct classic_protocols *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct classic_support *s = find(g, p->v[i].name);
        CHECK(s != NULL && s->members_n > 0);
        s->members_n--;
        free_unused(g, s);
    }
}

enum err classic_support_add(struct classic *g, const struct classic_protocols *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct classic_support *s = get(g, p->v[i].name);
        if (s == NULL) {
            count_down(g, p, i);
            return ERR_NOMEM;
        }
        s->members_n++;
    }
    return ERR_NONE;
}

void classic_support_remove(struct classic *g, const struct classic_protocols *p)
{
    count_down(g, p, p->n);
}

static struct classic_support *kept(struct classic *g, struct str name)
{
    struct classic_support *s = find(g, name);
    CHECK(s != NULL && s->kept_n > 0);
    s->kept_n--;
    return s;
}

void classic_support_keep(struct classic *g, const struct classic_protocols *p)
{
    for (size_t i = 0; i < p->n; i++)
        find(g, p->v[i].name)->kept_n++;
    classic_support_remove(g, p);
}

void classic_support_return(struct classic *g, const struct classic_protocols *p)
{
    for (size_t i = 0; i < p->n; i++)
        kept(g, p->v[i].name)->members_n++;
}

void classic_support_forget(struct classic *g, const struct classic_protocols *p)
{
    for (size_t i = 0; i < p->n; i++)
        free_unused(g, kept(g, p->v[i].name));
}

bool classic_supported(const struct classic *g, struct str name)
{
    const struct classic_support *s = find(g, name);
    return (s == NULL ? 0 : s->members_n) == g->members_n;
}

enum err classic_choose_named(struct classic *g, struct str name)
{
    struct classic_support *s = get(g, name);
    if (s == NULL)
        return ERR_NOMEM;
    classic_choose(g, s);
    return ERR_NONE;
}

void classic_choose(struct classic *g, struct classic_support *s)
{
    struct classic_support *old = g->protocol;
    if (old == s)
        return;
    if (s != NULL)
        s->chosen = true;
    g->protocol = s;
    if (old != NULL) {
        old->chosen = false;
        free_unused(g, old);
    }
}

struct str classic_protocol_name(const struct classic *g)
{
    return g->protocol == NULL ? STR_NULL : g->protocol->name;
}
