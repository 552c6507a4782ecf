/* OffsetDelete and DeleteGroups (groups.md 2 and 3). */
#include "core/group/write.h"

/* ------------------------------------------------------------------ OffsetDelete */

static int16_t check_group(const struct group *g, struct now now)
{
    if (group_kind(g) == GROUP_NONE || group_kind(g) == GROUP_SHARE)
        return K_GROUP_ID_NOT_FOUND;
    if (group_kind(g) != GROUP_CLASSIC || life_is_empty(g->life, now))
        return K_NONE;
    return str_eq(classic_protocol_type(g->life->classic), STR_LIT("consumer")) ? K_NONE
                                                                                : K_NON_EMPTY_GROUP;
}

static enum err delete_parts(struct write *w, struct group *g, struct groups_offset_delete_op *op)
{
    struct classic_topics subscribed = {.n = 0};
    struct arena a;
    enum err e = ERR_NONE;
    arena_init(&a, w->gs->budget);
    if (group_kind(g) == GROUP_CLASSIC)
        e = classic_subscriptions(g->life->classic, &a, &subscribed);
    else /* as if its members subscribed to everything */
        subscribed.all = !life_is_empty(g->life, w->gs->now);
    for (int32_t i = 0; i < op->parts_n && e == ERR_NONE; i++) {
        struct commit_part *part = &op->parts[i];
        struct offset *o = group_offset(g, part->topic, part->index);
        if (part->error != K_NONE)
            continue;
        if (classic_topics_has(&subscribed, part->topic))
            part->error = K_GROUP_SUBSCRIBED_TO_TOPIC;
        else if (o != NULL && (offset_latest(o) != NULL || !list_empty(&o->pending)))
            e = write_offset_deletion(w, o);
    }
    arena_close(&a);
    return e;
}

static int16_t offset_delete_all(struct groups *gs, struct groups_offset_delete_op *op,
                                 struct write **out)
{
    struct shard *sh;
    struct group *g = NULL;
    struct write *w;
    int16_t error = op->group.n <= 0 ? K_INVALID_GROUP_ID : groups_shard(gs, op->group, &sh);
    if (error == K_NONE) {
        g = shard_group(sh, op->group);
        error = check_group(g, gs->now);
    }
    if (error != K_NONE)
        return error;
    if (write_new(sh, &w) != ERR_NONE)
        return K_COORDINATOR_NOT_AVAILABLE;
    return write_end(w, delete_parts(w, g, op), out);
}

static void offset_delete_ended(struct group_wait *wait, int16_t error)
{
    CONTAINER_OF(wait, struct groups_offset_delete_op, wait)->error = error;
}

void groups_offset_delete(struct groups *gs, struct groups_offset_delete_op *op, struct now now)
{
    struct write *w = NULL;
    gs->now = now;
    group_wait_init(gs, &op->wait);
    op->error = offset_delete_all(gs, op, &w);
    if (w != NULL)
        write_await(w, &op->wait, &op->op, offset_delete_ended);
    else
        groups_op_ready(gs, &op->op);
}

void groups_offset_delete_cancel(struct groups_offset_delete_op *op)
{
    group_wait_cancel(&op->wait);
}

/* ------------------------------------------------------------------ DeleteGroups */

static enum err delete_offsets(struct write *w, struct group *g)
{
    enum err e = ERR_NONE;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->topics)
    {
        const struct topic_offsets *t = LIST_ENTRY(l, struct topic_offsets, link);
        for (size_t i = 0; i < t->n && e == ERR_NONE; i++)
            if (offset_latest(t->v[i]) != NULL || !list_empty(&t->v[i]->pending))
                e = write_offset_deletion(w, t->v[i]);
    }
    return e;
}

static int16_t delete_group(struct groups *gs, struct groups_delete_op *op, struct write **out)
{
    struct shard *sh;
    struct write *w;
    const int16_t error = groups_shard(gs, op->group, &sh);
    if (error != K_NONE)
        return error;
    struct group *g = shard_group(sh, op->group);
    if (g == NULL)
        return K_GROUP_ID_NOT_FOUND;
    if (!life_is_empty(g->life, gs->now))
        return K_NON_EMPTY_GROUP;
    if (write_new(sh, &w) != ERR_NONE)
        return K_COORDINATOR_NOT_AVAILABLE;
    enum err e = delete_offsets(w, g);
    if (e == ERR_NONE)
        e = write_group_deletion(w, g);
    return write_end(w, e, out);
}

static void delete_ended(struct group_wait *wait, int16_t error)
{
    CONTAINER_OF(wait, struct groups_delete_op, wait)->error = error;
}

void groups_delete(struct groups *gs, struct groups_delete_op *op, struct now now)
{
    struct write *w = NULL;
    gs->now = now;
    group_wait_init(gs, &op->wait);
    op->error = delete_group(gs, op, &w);
    if (w != NULL)
        write_await(w, &op->wait, &op->op, delete_ended);
    else
        groups_op_ready(gs, &op->op);
}

void groups_delete_cancel(struct groups_delete_op *op)
{
    group_wait_cancel(&op->wait);
}
