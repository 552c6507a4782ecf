/* OffsetFetch (groups.md 3). A plain one reads what is committed. One that requires stable offsets
 * reads the latest and waits until these are committed; where a transaction may still commit
 * another, there is no stable offset. */
#include "core/group/write.h"

static void none(struct fetched_part *part)
{
    part->offset = -1;
    part->leader_epoch = -1;
    part->metadata = STR_LIT("");
    part->error = K_NONE;
}

static const struct version *look(const struct groups_fetch_op *op, const struct offset *o)
{
    return op->require_stable ? offset_latest(o) : offset_committed(o);
}

/* Copies what the answer shows: the version may be gone before it is written. */
static enum err fill(const struct groups_fetch_op *op, const struct offset *o,
                     struct fetched_part *part)
{
    const struct version *v = look(op, o);
    if (op->require_stable && !list_empty(&o->pending)) {
        part->error = K_UNSTABLE_OFFSET_COMMIT;
        return ERR_NONE;
    }
    if (v == NULL)
        return ERR_NONE;
    if (op->by_id && !uuid_is_zero(v->value.topic_id) && !op->all &&
        !uuid_eq(v->value.topic_id, part->topic_id))
        return ERR_NONE;
    part->offset = v->value.offset;
    part->leader_epoch = v->value.leader_epoch;
    if (v->value.metadata.n > 0) {
        const char *copy = arena_strdup(op->arena, v->value.metadata);
        if (copy == NULL)
            return ERR_NOMEM;
        part->metadata = (struct str){copy, v->value.metadata.n};
    }
    return ERR_NONE;
}

static enum err fetch_asked(struct groups_fetch_op *op, const struct group *g)
{
    enum err e = ERR_NONE;
    for (int32_t i = 0; i < op->parts_n && e == ERR_NONE; i++) {
        struct fetched_part *part = &op->parts[i];
        const struct offset *o = g == NULL ? NULL : group_offset(g, part->topic, part->index);
        if (part->error == K_NONE && o != NULL)
            e = fill(op, o, part);
    }
    return e;
}

/* ------------------------------------------------------------------ all of a group */

static size_t count_all(const struct group *g)
{
    size_t n = 0;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &g->topics)
    n += LIST_ENTRY(l, struct topic_offsets, link)->n;
    return n;
}

static enum err add_topic(struct groups_fetch_op *op, const struct topic_offsets *t)
{
    const char *name = arena_strdup(op->arena, topic_name(t));
    enum err e = name == NULL ? ERR_NOMEM : ERR_NONE;
    for (size_t i = 0; i < t->n && e == ERR_NONE; i++) {
        const struct version *v = look(op, t->v[i]);
        struct fetched_part *part = &op->parts[op->parts_n];
        if (v == NULL)
            continue;
        none(part);
        part->topic = (struct str){name, t->name_n};
        part->topic_id = v->value.topic_id;
        part->index = t->v[i]->partition;
        e = fill(op, t->v[i], part);
        op->parts_n++;
    }
    return e;
}

static enum err fetch_all(struct groups_fetch_op *op, const struct group *g)
{
    enum err e = ERR_NONE;
    struct list *l, *tmp;
    op->parts_n = 0;
    if (g == NULL)
        return ERR_NONE;
    op->parts = arena_array(op->arena, count_all(g), sizeof *op->parts);
    if (op->parts == NULL)
        return ERR_NOMEM;
    LIST_EACH(l, tmp, &g->topics)
    if (e == ERR_NONE)
        e = add_topic(op, LIST_ENTRY(l, struct topic_offsets, link));
    return e;
}

/* ------------------------------------------------------------------ the operation */

/* Who names a member of a group of a kind that is not served names none that could be one. */
static int16_t check_member(const struct groups_fetch_op *op, const struct group *g)
{
    const enum group_kind kind = group_kind(g);
    const bool named = op->member.n >= 0 || op->member_epoch >= 0;
    return named && (kind == GROUP_CONSUMER || kind == GROUP_STREAMS) ? K_UNKNOWN_MEMBER_ID
                                                                      : K_NONE;
}

/* A group that only this request sees: for others it may not be there yet. */
static const struct group *visible(const struct groups_fetch_op *op, const struct shard *sh)
{
    const struct group *g = map_get_str(&sh->groups, op->group);
    if (g == NULL || group_kind(g) == GROUP_SHARE)
        return NULL;
    if (op->require_stable)
        return group_kind(g) == GROUP_NONE ? NULL : g;
    return group_committed_life(g) == NULL ? NULL : g;
}

static int16_t fetch(struct groups *gs, struct groups_fetch_op *op, struct shard **out)
{
    struct shard *sh;
    int16_t error = groups_shard(gs, op->group, &sh);
    if (error == K_COORDINATOR_NOT_AVAILABLE && op->require_stable)
        return K_NOT_COORDINATOR;
    if (error != K_NONE && error != K_COORDINATOR_NOT_AVAILABLE)
        return error;
    const struct group *g = visible(op, sh);
    error = check_member(op, g);
    if (error != K_NONE)
        return error;
    *out = sh;
    return (op->all ? fetch_all(op, g) : fetch_asked(op, g)) == ERR_NONE
               ? K_NONE
               : K_COORDINATOR_NOT_AVAILABLE;
}

/* Kafka: what could not be written makes this one ask who the coordinator is. */
static void ended(struct group_wait *wait, int16_t error)
{
    struct groups_fetch_op *op = CONTAINER_OF(wait, struct groups_fetch_op, wait);
    op->error = error == K_COORDINATOR_NOT_AVAILABLE ? K_NOT_COORDINATOR : error;
}

void groups_fetch(struct groups *gs, struct groups_fetch_op *op, struct now now)
{
    struct shard *sh = NULL;
    gs->now = now;
    group_wait_init(gs, &op->wait);
    for (int32_t i = 0; i < op->parts_n; i++)
        if (op->parts[i].error == K_NONE)
            none(&op->parts[i]);
    op->error = fetch(gs, op, &sh);
    if (op->error == K_NONE && op->require_stable && !list_empty(&sh->writes))
        write_await(LIST_ENTRY(sh->writes.prev, struct write, link), &op->wait, &op->op, ended);
    else
        groups_op_ready(gs, &op->op);
}

void groups_fetch_cancel(struct groups_fetch_op *op)
{
    group_wait_cancel(&op->wait);
}
