/* Parts of a fetch and who tells whom: a partition tells the parts that watch it, a part its set, a
 * set the fetches that wait on it. */
#include "core/replica/inside.h"

void fetch_set_init(struct fetch_set *set, struct replicas *rs, bool by_id)
{
    set->rs = rs;
    set->by_id = by_id;
    set->silent_replica = -1;
    set->fetched_us = 0;
    list_init(&set->hot);
    list_init(&set->fetches);
}

void fetch_part_init(struct fetch_part *part, struct fetch_set *set)
{
    *part = (struct fetch_part){.set = set, .told_high_watermark = -1, .told_log_start = -1};
    list_init(&part->hot);
    list_init(&part->watch);
}

void fetch_part_ask(struct fetch_part *part, const struct fetch_request_fetch_partition *in)
{
    /* Who asks in another epoch has thrown away what was told to it in the last one. */
    if (in->current_leader_epoch != part->current_leader_epoch)
        part->told_high_watermark = part->told_log_start = -1;
    part->index = in->partition;
    part->current_leader_epoch = in->current_leader_epoch;
    part->fetch_offset = in->fetch_offset;
    part->last_fetched_epoch = in->last_fetched_epoch;
    part->log_start_offset = in->log_start_offset;
    part->max_bytes = in->partition_max_bytes;
}

/* A part is cold when its follower asked for our end, and anything that moves heats it: so it was
 * caught up at every fetch until then. */
void fetch_part_speak(struct fetch_part *part)
{
    const struct fetch_set *set = part->set;
    if (set->silent_replica < 0 || !list_empty(&part->hot) || list_empty(&part->watch))
        return;
    struct partition *p = replicas_find(set->rs, part->topic_id, part->index);
    struct follower *f = p == NULL ? NULL : partition_follower(p, set->silent_replica);
    if (f != NULL && f->end_offset == part->fetch_offset)
        follower_repeated(f, set->fetched_us);
}

void fetch_part_heat(struct fetch_part *part)
{
    struct fetch_set *set = part->set;
    struct list *l, *tmp;
    if (list_empty(&part->hot)) {
        fetch_part_speak(part);
        list_append(&set->hot, &part->hot);
    }
    LIST_EACH(l, tmp, &set->fetches)
    {
        struct fetch_state *st = LIST_ENTRY(l, struct fetch_state, waiting);
        if (list_empty(&st->woken))
            list_append(&set->rs->woken_fetch, &st->woken);
    }
}

void fetch_part_watch(struct fetch_part *part, struct partition *p)
{
    if (list_empty(&part->watch))
        list_append(&p->watchers, &part->watch);
}

void fetch_part_leave(struct fetch_part *part)
{
    list_remove(&part->hot);
    list_remove(&part->watch);
}

void partition_changed(struct partition *p)
{
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &p->watchers)
    fetch_part_heat(LIST_ENTRY(l, struct fetch_part, watch));
    coordinator_partition_changed(p);
}

void partition_gone(struct partition *p)
{
    struct list *l;
    while ((l = list_pop(&p->watchers)) != NULL)
        fetch_part_heat(LIST_ENTRY(l, struct fetch_part, watch));
    coordinator_partition_gone(p);
}
