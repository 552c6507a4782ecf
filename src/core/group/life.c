/* Groups as ids come and go. Only its latest life is spoken to; an older one is kept, with its
 * membership, while the record that ended it may still fail. */
#include <stdlib.h>

#include "base/check.h"
#include "core/group/write.h"

enum { MAP_ENTRY_BYTES = 96 };

struct str group_id(const struct group *g)
{
    return (struct str){g->id, g->id_n};
}

/* ------------------------------------------------------------------ ids */

static size_t group_bytes(int32_t id_n)
{
    return sizeof(struct group) + MAP_ENTRY_BYTES + 2 * (size_t)id_n;
}

enum err group_make(struct shard *sh, struct str id, struct group **out)
{
    *out = map_get_str(&sh->groups, id);
    if (*out != NULL)
        return ERR_NONE;
    const int32_t n = id.n < 0 ? 0 : id.n;
    struct group *g = groups_alloc(sh->gs, group_bytes(n));
    if (g == NULL)
        return ERR_NOMEM;
    g->shard = sh;
    g->serial = sh->gs->next_serial++;
    g->id_n = n;
    if (n > 0)
        memcpy(g->id, id.p, (size_t)n);
    list_init(&g->topics);
    if (map_put(&sh->groups, g->id, (size_t)n, g) != ERR_NONE) {
        groups_release(sh->gs, g, group_bytes(n));
        return ERR_NOMEM;
    }
    list_append(&sh->order, &g->link);
    *out = g;
    return ERR_NONE;
}

void group_tidy(struct group *g)
{
    struct shard *sh = g->shard;
    if (g->life != NULL || !list_empty(&g->topics))
        return;
    sweep_group_gone(g);
    map_remove(&sh->groups, g->id, (size_t)g->id_n);
    list_remove(&g->link);
    groups_release(sh->gs, g, group_bytes(g->id_n));
}

enum group_kind group_kind(const struct group *g)
{
    return g == NULL || g->life == NULL ? GROUP_NONE : g->life->kind;
}

const struct life *group_committed_life(const struct group *g)
{
    const struct life *l = g->life;
    while (l != NULL && l->write != NULL)
        l = l->older;
    return l == NULL || l->kind == GROUP_NONE ? NULL : l;
}

/* Groups of kinds that are not served come from a log of Kafka's: none of their members can send a
 * heartbeat here, so they are gone when their session would be over. */
bool life_is_empty(const struct life *l, struct now now)
{
    if (l->kind == GROUP_CLASSIC)
        return classic_state(l->classic) == CLASSIC_EMPTY;
    return l->members_n == 0 || now.mono_us >= l->members_end_us;
}

/* ------------------------------------------------------------------ lives */

enum err life_begin(struct group *g, struct write *w, enum group_kind kind, struct life **out)
{
    struct groups *gs = g->shard->gs;
    struct life *l = groups_alloc(gs, sizeof *l);
    if (l == NULL)
        return ERR_NOMEM;
    l->gs = gs;
    l->group = g;
    l->write = w;
    l->kind = kind;
    l->stored = BYTES_NULL;
    map_init(&l->records, gs->seed);
    l->older = g->life;
    g->life = l;
    if (w == NULL && l->older != NULL) {
        life_free(l->older, K_NOT_COORDINATOR);
        l->older = NULL;
    }
    *out = l;
    return ERR_NONE;
}

/* A classic group asks to be persisted. */
static int16_t store(void *ctx, struct classic *c, struct now now)
{
    struct life *l = ctx;
    struct write *w;
    CHECK(l->classic == c);
    l->gs->now = now;
    if (l->group == NULL || l->group->life != l) /* deleted, which may still fail */
        return K_COORDINATOR_NOT_AVAILABLE;
    if (l->group->shard->unloading)
        return K_NOT_COORDINATOR;
    if (write_new(l->group->shard, &w) != ERR_NONE)
        return K_COORDINATOR_NOT_AVAILABLE;
    return write_end(w, write_classic(w, l), &w);
}

enum err life_make_classic(struct life *l, struct now now)
{
    struct groups *gs = l->gs;
    const struct classic_args args = {
        .env = gs->env,
        .timers = gs->timers,
        .budget = gs->budget,
        .config = gs->config,
        .seed = gs->seed,
        .ready = &gs->ready,
        .events = {.ctx = l, .store = store},
    };
    return classic_new(&args, group_id(l->group), now, &l->classic);
}

void life_free(struct life *l, int16_t error)
{
    struct groups *gs = l->gs;
    if (l->classic != NULL)
        classic_unload(l->classic, error);
    classic_free(l->classic);
    if (l->stored.n > 0)
        groups_release(gs, (void *)(uintptr_t)l->stored.p, (size_t)l->stored.n);
    for (struct map_entry *it = NULL; (it = map_next(&l->records, it)) != NULL;) {
        size_t n;
        (void)map_key(it, &n);
        budget_give(gs->budget, n + MAP_ENTRY_BYTES);
    }
    map_close(&l->records);
    groups_release(gs, l, sizeof *l);
}

void life_commit(struct life *l)
{
    struct group *g = l->group;
    struct life **at = &g->life;
    l->write = NULL;
    while (l->older != NULL) { /* only one: what is below it was committed before */
        struct life *older = l->older;
        l->older = older->older;
        life_free(older, K_NOT_COORDINATOR);
    }
    if (l->kind != GROUP_NONE)
        return;
    while (*at != l)
        at = &(*at)->older;
    *at = NULL;
    life_free(l, K_NONE);
    group_tidy(g);
}

void life_undo(struct life *l)
{
    struct group *g = l->group;
    CHECK(g->life == l);
    g->life = l->older;
    l->older = NULL;
    l->group = NULL;
    group_tidy(g);
}
