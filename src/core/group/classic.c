/* A classic group's life: made, taken over from its log, unloaded. Memory is counted by its owner,
 * the group, to the byte; what is freed gives back what was charged. */
#include "core/group/classic_impl.h"

#include <stdlib.h>

#include "base/check.h"

/* ------------------------------------------------------------------ memory */

void *classic_alloc(struct classic *g, size_t n)
{
    if (!budget_take(g->args.budget, n + CLASSIC_OVERHEAD_BYTES))
        return NULL;
    void *p = calloc(1, n == 0 ? 1 : n);
    if (p == NULL)
        budget_give(g->args.budget, n + CLASSIC_OVERHEAD_BYTES);
    return p;
}

void classic_release(struct classic *g, void *p, size_t n)
{
    if (p == NULL)
        return;
    free(p);
    budget_give(g->args.budget, n + CLASSIC_OVERHEAD_BYTES);
}

static enum err copy(struct classic *g, const void *from, int32_t n, void **out)
{
    *out = NULL;
    if (n <= 0)
        return ERR_NONE;
    *out = classic_alloc(g, (size_t)n);
    if (*out == NULL)
        return ERR_NOMEM;
    memcpy(*out, from, (size_t)n);
    return ERR_NONE;
}

enum err classic_copy(struct classic *g, struct str s, struct str *out)
{
    void *p;
    *out = STR_NULL;
    enum err e = copy(g, s.p, s.n, &p);
    if (e == ERR_NONE)
        *out = (struct str){p == NULL ? "" : p, s.n};
    return e;
}

void classic_drop(struct classic *g, struct str *s)
{
    if (s->n > 0)
        classic_release(g, (void *)(uintptr_t)s->p, (size_t)s->n);
    *s = STR_NULL;
}

enum err classic_copy_bytes(struct classic *g, struct bytes b, struct bytes *out)
{
    void *p;
    *out = (struct bytes){NULL, 0};
    enum err e = copy(g, b.p, b.n, &p);
    if (e == ERR_NONE)
        *out = (struct bytes){p, b.n < 0 ? 0 : b.n};
    return e;
}

void classic_drop_bytes(struct classic *g, struct bytes *b)
{
    if (b->n > 0)
        classic_release(g, (void *)(uintptr_t)b->p, (size_t)b->n);
    *b = (struct bytes){NULL, 0};
}

bool classic_show(struct arena *a, struct str s, struct str *out)
{
    *out = s;
    if (s.n < 0)
        return true;
    out->p = arena_strdup(a, s);
    return out->p != NULL;
}

bool classic_show_bytes(struct arena *a, struct bytes b, struct bytes *out)
{
    const int32_t n = b.n < 0 ? 0 : b.n;
    uint8_t *p = arena_memdup(a, b.p, (size_t)n);
    if (p == NULL)
        return false;
    *out = (struct bytes){p, n};
    return true;
}

/* ------------------------------------------------------------------ time */

/* Timers are told no time. The wall clock is taken to have gone as the monotonic one did. */
struct now classic_timer_now(const struct classic *g)
{
    const int64_t mono_us = g->args.timers->floor_us;
    return (struct now){mono_us, g->now.wall_ms + (mono_us - g->now.mono_us) / 1000};
}

void classic_rearm(struct classic *g, struct timer *t, int64_t at_us)
{
    CHECK(timer_armed(t));
    CHECK(timer_arm(g->args.timers, t, at_us) == ERR_NONE);
}

/* The heap has its place left. */
void classic_keep_armed(struct classic *g, struct timer *t)
{
    CHECK(timer_arm(g->args.timers, t, CLASSIC_NEVER) == ERR_NONE);
}

int64_t classic_after_ms(const struct classic *g, int64_t ms)
{
    return g->now.mono_us + ms * 1000;
}

/* ------------------------------------------------------------------ states */

/* What may come before: the table of groups.md 2. */
void classic_enter(struct classic *g, enum classic_state s)
{
    switch (s) {
    case CLASSIC_EMPTY:
    case CLASSIC_COMPLETING:
        CHECK(g->state == CLASSIC_PREPARING);
        break;
    case CLASSIC_PREPARING:
        CHECK(g->state == CLASSIC_EMPTY || g->state == CLASSIC_COMPLETING ||
              g->state == CLASSIC_STABLE);
        break;
    case CLASSIC_STABLE:
        CHECK(g->state == CLASSIC_COMPLETING);
        break;
    case CLASSIC_DEAD:
        break;
    }
    g->state = s;
    g->since_ms = g->now.wall_ms;
}

const char *classic_state_name(enum classic_state s)
{
    switch (s) {
    case CLASSIC_EMPTY:
        return "Empty";
    case CLASSIC_PREPARING:
        return "PreparingRebalance";
    case CLASSIC_COMPLETING:
        return "CompletingRebalance";
    case CLASSIC_STABLE:
        return "Stable";
    case CLASSIC_DEAD:
        return "Dead";
    }
    return "Unknown";
}

enum classic_state classic_state(const struct classic *g)
{
    return g->state;
}

int64_t classic_state_since_ms(const struct classic *g)
{
    return g->since_ms;
}

struct str classic_protocol_type(const struct classic *g)
{
    return g->protocol_type;
}

int32_t classic_generation(const struct classic *g)
{
    return g->generation;
}

size_t classic_members_n(const struct classic *g)
{
    return g->members_n;
}

/* ------------------------------------------------------------------ new and free */

enum err classic_new(const struct classic_args *args, struct str id, struct now now,
                     struct classic **out)
{
    if (!budget_take(args->budget, sizeof(struct classic) + CLASSIC_OVERHEAD_BYTES))
        return ERR_NOMEM;
    struct classic *g = calloc(1, sizeof *g);
    if (g == NULL) {
        budget_give(args->budget, sizeof *g + CLASSIC_OVERHEAD_BYTES);
        return ERR_NOMEM;
    }
    g->args = *args;
    g->now = now;
    g->since_ms = now.wall_ms;
    g->protocol_type = STR_NULL;
    g->phase.fire = classic_phase_fire;
    list_init(&g->members);
    list_init(&g->pending);
    list_init(&g->stores);
    map_init(&g->by_id, args->seed);
    map_init(&g->by_instance, args->seed);
    map_init(&g->pending_by_id, args->seed);
    map_init(&g->supports, args->seed);
    if (classic_copy(g, id, &g->id) != ERR_NONE) {
        classic_free(g);
        return ERR_NOMEM;
    }
    *out = g;
    return ERR_NONE;
}

void classic_clear(struct classic *g)
{
    struct list *l, *tmp;
    while (!list_empty(&g->stores))
        classic_store_free(g, LIST_ENTRY(g->stores.next, struct classic_store, link));
    LIST_EACH(l, tmp, &g->pending)
    {
        classic_pending_remove(LIST_ENTRY(l, struct classic_pending, link));
    }
    LIST_EACH(l, tmp, &g->members)
    {
        classic_member_remove(LIST_ENTRY(l, struct classic_member, link));
    }
    classic_choose(g, NULL);
    classic_drop(g, &g->protocol_type);
    timer_cancel(g->args.timers, &g->phase);
}

void classic_free(struct classic *g)
{
    if (g == NULL)
        return;
    CHECK(list_empty(&g->stores));
    struct budget *budget = g->args.budget;
    classic_clear(g);
    classic_drop(g, &g->id);
    map_close(&g->by_id);
    map_close(&g->by_instance);
    map_close(&g->pending_by_id);
    map_close(&g->supports);
    free(g);
    budget_give(budget, sizeof *g + CLASSIC_OVERHEAD_BYTES);
}

void classic_unload(struct classic *g, int16_t error)
{
    struct list *l, *tmp;
    if (g->state == CLASSIC_DEAD)
        return;
    classic_stores_drop(g, error);
    LIST_EACH(l, tmp, &g->members)
    {
        struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        classic_end_join(m, error, m->id);
        classic_end_sync(m, error);
    }
    classic_clear(g);
    classic_enter(g, CLASSIC_DEAD);
}
