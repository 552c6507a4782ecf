/* Unloading a shard: from here on nobody is answered out of it. What it held is freed in slices,
 * one a turn, before anything is loaded in its place; what waits in a group, a Join or a Sync, ends
 * with it. Until then sessions may still end and phases pass, but nothing of that is written. */
#include "base/check.h"
#include "core/group/write.h"

/* A slice frees groups until it has freed so many things: members, partitions, groups. */
enum { SLICE_FREED = 2048 };

static void drop_lives(struct group *g, size_t *freed_n)
{
    while (g->life != NULL) {
        struct life *l = g->life;
        g->life = l->older;
        if (l->classic != NULL)
            *freed_n += classic_members_n(l->classic);
        life_free(l, K_NOT_COORDINATOR);
    }
}

/* The first group; false: there is none. */
static bool drop_group(struct shard *sh, size_t *freed_n)
{
    if (list_empty(&sh->order))
        return false;
    struct group *g = LIST_ENTRY(sh->order.next, struct group, link);
    drop_lives(g, freed_n);
    *freed_n += 1 + group_drop_offsets(g);
    group_tidy(g);
    return true;
}

static void end(struct shard *sh)
{
    CHECK(sh->groups.n == 0 && sh->topics.n == 0 && sh->producers.n == 0);
    sh->unloading = false;
    list_remove(&sh->dropping);
    if (sh->state == SHARD_LOADING)
        shard_wake(sh);
}

void shard_unload(struct shard *sh)
{
    sh->state = SHARD_NONE;
    load_end(sh);
    sweep_end(sh);
    list_remove(&sh->loading);
    replicas_unwatch(&sh->watch);
    while (!list_empty(&sh->writes))
        write_abandon(LIST_ENTRY(sh->writes.next, struct write, link), K_NOT_COORDINATOR);
    if (list_empty(&sh->order) || sh->unloading)
        return;
    sh->unloading = true;
    list_append(&sh->gs->dropping, &sh->dropping);
    groups_work_soon(sh->gs);
}

void shard_unload_step(struct shard *sh)
{
    size_t freed_n = 0;
    CHECK(sh->unloading);
    while (freed_n < SLICE_FREED && drop_group(sh, &freed_n)) {
    }
    if (list_empty(&sh->order))
        end(sh);
    else
        list_append(&sh->gs->dropping, &sh->dropping);
}

void shard_unload_now(struct shard *sh)
{
    size_t freed_n = 0;
    shard_unload(sh);
    while (drop_group(sh, &freed_n)) {
    }
    if (sh->unloading)
        end(sh);
}
