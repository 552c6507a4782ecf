/* OffsetCommit (groups.md 3): may this member commit; then each partition's offset. */
#include "core/group/java_string.h"
#include "core/group/write.h"

enum { VERSION_CURRENT_ERRORS = 9 }; /* from here on a missing group is GROUP_ID_NOT_FOUND */

static bool any_left(const struct groups_commit_op *op)
{
    for (int32_t i = 0; i < op->parts_n; i++)
        if (op->parts[i].error == K_NONE)
            return true;
    return false;
}

static void refuse(struct groups_commit_op *op, int16_t error)
{
    for (int32_t i = 0; i < op->parts_n; i++)
        if (op->parts[i].error == K_NONE)
            op->parts[i].error = error;
}

/* No member of a group of a kind that is not served can be a member here. */
static int16_t check_foreign(const struct groups_commit_op *op, const struct life *l,
                             struct now now)
{
    if (l->kind == GROUP_SHARE)
        return K_GROUP_ID_NOT_FOUND;
    return op->generation < 0 && life_is_empty(l, now) ? K_NONE : K_UNKNOWN_MEMBER_ID;
}

static int16_t check_group(const struct groups_commit_op *op, struct group *g, struct now now)
{
    switch (group_kind(g)) {
    case GROUP_NONE:
        if (op->generation < 0)
            return K_NONE;
        return op->version >= VERSION_CURRENT_ERRORS ? K_GROUP_ID_NOT_FOUND : K_ILLEGAL_GENERATION;
    case GROUP_CLASSIC:
        return classic_check_commit(g->life->classic, op->member, op->instance, op->generation,
                                    false, now);
    case GROUP_CONSUMER:
    case GROUP_SHARE:
    case GROUP_STREAMS:
        return check_foreign(op, g->life, now);
    }
    return K_UNKNOWN_SERVER_ERROR;
}

static enum err write_parts(struct write *w, struct group *g, struct groups_commit_op *op)
{
    const struct groups *gs = w->gs;
    const int64_t now_ms = gs->now.wall_ms;
    const int64_t expire_ms =
        op->retention_ms == -1 ? -1 : (int64_t)((uint64_t)now_ms + (uint64_t)op->retention_ms);
    enum err e = ERR_NONE;
    for (int32_t i = 0; i < op->parts_n && e == ERR_NONE; i++) {
        struct commit_part *part = &op->parts[i];
        if (part->error != K_NONE)
            continue;
        if (java_length(part->metadata) > gs->metadata_max) {
            part->error = K_OFFSET_METADATA_TOO_LARGE;
            continue;
        }
        const struct committed value = {
            .offset = part->offset,
            .leader_epoch = part->leader_epoch,
            .metadata = part->metadata,
            .commit_ms = now_ms,
            .expire_ms = expire_ms,
            .topic_id = part->topic_id,
        };
        if (group_kind(g) == GROUP_NONE)
            e = write_simple_group(w, g);
        if (e == ERR_NONE)
            e = write_offset(w, g, part->topic, part->index, &value);
    }
    return e;
}

static void ended(struct group_wait *wait, int16_t error)
{
    struct groups_commit_op *op = CONTAINER_OF(wait, struct groups_commit_op, wait);
    if (error != K_NONE)
        refuse(op, error);
}

static int16_t commit(struct groups *gs, struct groups_commit_op *op, struct write **out)
{
    struct shard *sh;
    struct group *g;
    struct write *w;
    *out = NULL;
    int16_t error = groups_shard(gs, op->group, &sh);
    if (error == K_NONE)
        error = check_group(op, shard_group(sh, op->group), gs->now);
    if (error != K_NONE)
        return error;
    if (write_new(sh, &w) != ERR_NONE)
        return K_COORDINATOR_NOT_AVAILABLE;
    enum err e = group_make(sh, op->group, &g);
    if (e == ERR_NONE)
        e = write_parts(w, g, op);
    error = write_end(w, e, out);
    g = map_get_str(&sh->groups, op->group);
    if (g != NULL)
        group_tidy(g); /* all of it was refused */
    return error;
}

void groups_commit(struct groups *gs, struct groups_commit_op *op, struct now now)
{
    struct write *w = NULL;
    gs->now = now;
    group_wait_init(gs, &op->wait);
    const int16_t error = any_left(op) ? commit(gs, op, &w) : K_NONE;
    if (error != K_NONE)
        refuse(op, error);
    if (w != NULL)
        write_await(w, &op->wait, &op->op, ended);
    else
        groups_op_ready(gs, &op->op);
}

void groups_commit_cancel(struct groups_commit_op *op)
{
    group_wait_cancel(&op->wait);
}
