/* Who is in the group: members by id and by instance, pending ids, the leader. A static member that
 * is being replaced stands under both ids in the map until that is stored; only the present one
 * counts. */
#include "core/group/classic_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/metadata/random_uuid.h"

/* ------------------------------------------------------------------ look-ups */

struct classic_member *classic_member(const struct classic *g, struct str id)
{
    struct classic_member *m = map_get_str(&g->by_id, id);
    return m != NULL && str_eq(m->id, id) ? m : NULL;
}

struct classic_member *classic_static_member(const struct classic *g, struct str instance)
{
    return instance.n < 0 ? NULL : map_get_str(&g->by_instance, instance);
}

struct classic_pending *classic_pending(const struct classic *g, struct str id)
{
    return map_get_str(&g->pending_by_id, id);
}

int16_t classic_validate(const struct classic *g, struct str id, struct str instance)
{
    if (instance.n >= 0) {
        const struct classic_member *owner = classic_static_member(g, instance);
        if (owner == NULL)
            return K_UNKNOWN_MEMBER_ID;
        if (!str_eq(owner->id, id))
            return K_FENCED_INSTANCE_ID;
    }
    return classic_member(g, id) == NULL ? K_UNKNOWN_MEMBER_ID : K_NONE;
}

int32_t classic_rebalance_timeout_ms(const struct classic *g)
{
    struct list *l, *tmp;
    int32_t max = 0;
    LIST_EACH(l, tmp, &g->members)
    {
        const struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        if (m->rebalance_timeout_ms > max)
            max = m->rebalance_timeout_ms;
    }
    return max;
}

/* ------------------------------------------------------------------ ids */

struct str classic_fresh_id(struct classic *g, struct str prefix, struct arena *a)
{
    enum { UUID_DASHED = 36 };
    const size_t n = prefix.n < 0 ? 0 : (size_t)prefix.n;
    char *id = arena_alloc(a, n + 1 + UUID_DASHED + 1);
    if (id == NULL)
        return STR_NULL;
    if (n > 0)
        memcpy(id, prefix.p, n);
    const struct uuid u = uuid_random(g->args.env);
    char *at = id + n;
    *at++ = '-';
    for (size_t i = 0; i < sizeof u.b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        snprintf(at, 3, "%02x", u.b[i]);
        at += 2;
    }
    return (struct str){id, (int32_t)(n + 1 + UUID_DASHED)};
}

/* A place in a map is charged with its copy of the key. */
enum err classic_index(struct classic *g, struct map *m, struct str key, void *value)
{
    const uint64_t cost = (uint64_t)(key.n < 0 ? 0 : key.n) + CLASSIC_OVERHEAD_BYTES;
    if (!budget_take(g->args.budget, cost))
        return ERR_NOMEM;
    enum err e = map_put(m, key.p, key.n < 0 ? 0 : (size_t)key.n, value);
    if (e != ERR_NONE)
        budget_give(g->args.budget, cost);
    return e;
}

void classic_unindex(struct classic *g, struct map *m, struct str key)
{
    const size_t n = key.n < 0 ? 0 : (size_t)key.n;
    if (map_remove(m, key.p, n) != NULL)
        budget_give(g->args.budget, n + CLASSIC_OVERHEAD_BYTES);
}

/* ------------------------------------------------------------------ coming */

static enum err copy_strings(struct classic_member *m, const struct classic_newcomer *in)
{
    struct classic *g = m->group;
    if (classic_copy(g, in->id, &m->id) != ERR_NONE ||
        classic_copy(g, in->instance, &m->instance) != ERR_NONE ||
        classic_copy(g, in->client_id, &m->client_id) != ERR_NONE ||
        classic_copy(g, in->client_host, &m->client_host) != ERR_NONE)
        return ERR_NOMEM;
    return ERR_NONE;
}

static enum err enlist(struct classic_member *m)
{
    struct classic *g = m->group;
    enum err e = classic_index(g, &g->by_id, m->id, m);
    if (e != ERR_NONE)
        return e;
    if (m->instance.n >= 0)
        e = classic_index(g, &g->by_instance, m->instance, m);
    if (e == ERR_NONE)
        e = timer_arm(g->args.timers, &m->session, CLASSIC_NEVER);
    if (e == ERR_NONE)
        e = classic_phase_arm(g);
    return e;
}

static void free_member(struct classic_member *m)
{
    struct classic *g = m->group;
    if (classic_member(g, m->id) == m)
        classic_unindex(g, &g->by_id, m->id);
    if (classic_static_member(g, m->instance) == m)
        classic_unindex(g, &g->by_instance, m->instance);
    timer_cancel(g->args.timers, &m->session);
    classic_drop(g, &m->id);
    classic_drop(g, &m->instance);
    classic_drop(g, &m->client_id);
    classic_drop(g, &m->client_host);
    classic_drop_bytes(g, &m->assignment);
    classic_drop_bytes(g, &m->next_assignment);
    classic_protocols_free(g, m->protocols);
    classic_release(g, m, sizeof *m);
}

/* The first one brings the group's type. */
static enum err take_type(struct classic *g, struct str type)
{
    struct str copy;
    if (g->members_n > 0 || str_eq(g->protocol_type, type))
        return ERR_NONE;
    if (classic_copy(g, type, &copy) != ERR_NONE)
        return ERR_NOMEM;
    classic_drop(g, &g->protocol_type);
    g->protocol_type = copy;
    return ERR_NONE;
}

static struct classic_member *new_member(struct classic *g, const struct classic_newcomer *in)
{
    struct classic_member *m = classic_alloc(g, sizeof *m);
    if (m == NULL)
        return NULL;
    m->group = g;
    m->id = m->instance = m->client_id = m->client_host = STR_NULL;
    m->session_timeout_ms = in->session_timeout_ms;
    m->rebalance_timeout_ms = in->rebalance_timeout_ms;
    m->session.fire = classic_session_fire;
    m->deadline_us = CLASSIC_NEVER;
    list_init(&m->link);
    return m;
}

enum err classic_member_add(struct classic *g, const struct classic_newcomer *in,
                            struct classic_member **out)
{
    struct classic_member *m = new_member(g, in);
    if (m == NULL)
        return ERR_NOMEM;
    if (copy_strings(m, in) != ERR_NONE || enlist(m) != ERR_NONE ||
        classic_support_add(g, in->protocols) != ERR_NONE) {
        free_member(m);
        return ERR_NOMEM;
    }
    if (take_type(g, in->protocol_type) != ERR_NONE) {
        classic_support_remove(g, in->protocols);
        free_member(m);
        return ERR_NOMEM;
    }
    m->protocols = in->protocols;
    list_append(&g->members, &m->link);
    g->members_n++;
    if (g->leader == NULL)
        g->leader = m;
    *out = m;
    return ERR_NONE;
}

enum err classic_member_update(struct classic_member *m, struct classic_protocols *p,
                               int32_t session_timeout_ms, int32_t rebalance_timeout_ms)
{
    struct classic *g = m->group;
    if (classic_support_add(g, p) != ERR_NONE)
        return ERR_NOMEM;
    classic_support_remove(g, m->protocols);
    classic_protocols_free(g, m->protocols);
    m->protocols = p;
    m->session_timeout_ms = session_timeout_ms;
    m->rebalance_timeout_ms = rebalance_timeout_ms;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ going */

/* Any member leads on: the oldest. */
static void hand_on_leadership(struct classic *g)
{
    g->leader =
        list_empty(&g->members) ? NULL : LIST_ENTRY(g->members.next, struct classic_member, link);
}

void classic_member_remove(struct classic_member *m)
{
    struct classic *g = m->group;
    classic_replace_forget(m);
    classic_end_join(m, K_UNKNOWN_MEMBER_ID, STR_LIT(""));
    classic_end_sync(m, K_UNKNOWN_MEMBER_ID);
    classic_support_remove(g, m->protocols);
    list_remove(&m->link);
    g->members_n--;
    if (g->leader == m)
        hand_on_leadership(g);
    free_member(m);
}

/* ------------------------------------------------------------------ pending ids */

static void free_pending(struct classic_pending *p)
{
    struct classic *g = p->group;
    timer_cancel(g->args.timers, &p->timer);
    classic_drop(g, &p->id);
    classic_release(g, p, sizeof *p);
}

enum err classic_pending_add(struct classic *g, struct str id, int32_t timeout_ms)
{
    struct classic_pending *p = classic_alloc(g, sizeof *p);
    if (p == NULL)
        return ERR_NOMEM;
    p->group = g;
    p->timer.fire = classic_pending_fire;
    if (classic_copy(g, id, &p->id) != ERR_NONE ||
        timer_arm(g->args.timers, &p->timer, classic_after_ms(g, timeout_ms)) != ERR_NONE ||
        classic_index(g, &g->pending_by_id, p->id, p) != ERR_NONE) {
        free_pending(p);
        return ERR_NOMEM;
    }
    list_append(&g->pending, &p->link);
    g->pending_n++;
    return ERR_NONE;
}

void classic_pending_remove(struct classic_pending *p)
{
    struct classic *g = p->group;
    classic_unindex(g, &g->pending_by_id, p->id);
    list_remove(&p->link);
    g->pending_n--;
    free_pending(p);
}
