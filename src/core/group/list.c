/* ListGroups (groups.md 2): the groups that are committed; a classic group's membership is as it is
 * now. */
#include "core/group/inside.h"

static const char *const type_names[] = {
    [GROUP_CLASSIC] = "classic",
    [GROUP_CONSUMER] = "consumer",
    [GROUP_SHARE] = "share",
    [GROUP_STREAMS] = "streams",
};

static struct listed_group listed(const struct group *g, const struct life *l, struct now now)
{
    struct listed_group out = {.id = group_id(g), .type = type_names[l->kind]};
    switch (l->kind) {
    case GROUP_CLASSIC:
        out.state = classic_state_name(classic_state(l->classic));
        out.protocol_type = classic_protocol_type(l->classic);
        break;
    case GROUP_CONSUMER:
    case GROUP_SHARE:
    case GROUP_STREAMS:
        out.state = life_is_empty(l, now) ? "Empty" : "Stable";
        out.protocol_type = str_of(type_names[l->kind]);
        break;
    case GROUP_NONE:
        break;
    }
    if (out.protocol_type.n < 0)
        out.protocol_type = STR_LIT("");
    return out;
}

enum err groups_list(const struct groups *gs,
                     enum err (*each)(void *ctx, const struct listed_group *g), void *ctx,
                     int16_t *error)
{
    *error = K_NONE;
    for (int32_t i = 0; i < gs->shards_n; i++) {
        const struct shard *sh = &gs->shards[i];
        struct list *l, *tmp;
        if (sh->state == SHARD_LOADING)
            *error = K_COORDINATOR_LOAD_IN_PROGRESS;
        if (sh->state != SHARD_ACTIVE)
            continue;
        LIST_EACH(l, tmp, &sh->order)
        {
            const struct group *g = LIST_ENTRY(l, struct group, link);
            const struct life *life = group_committed_life(g);
            if (life == NULL)
                continue;
            const struct listed_group out = listed(g, life, gs->now);
            enum err e = each(ctx, &out);
            if (e != ERR_NONE)
                return e;
        }
    }
    return ERR_NONE;
}
