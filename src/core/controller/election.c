/* Who leads, and who is in sync, when a broker comes or goes: of the partitions that this concerns,
 * what becomes of each (partition_change.c). */
#include "core/controller/partition_change.h"
#include "core/controller/partition_index.h"

bool election_broker_active(const struct image *img, int32_t broker_id)
{
    const struct image_broker *b = image_broker(img, broker_id);
    return b != NULL && !b->fenced && !b->in_controlled_shutdown;
}

static bool concerned(const struct image_partition *p, const struct broker_change *ch)
{
    const struct replica_set isr = {p->isr, p->isr_n}, elr = {p->elr, p->elr_n};
    if (ch->removed >= 0 && replica_set_has(isr, ch->removed))
        return ch->dir == NULL || uuid_eq(image_replica_directory(p, ch->removed), *ch->dir);
    if (ch->unclean >= 0 &&
        (replica_set_has(isr, ch->unclean) || replica_set_has(elr, ch->unclean)))
        return true;
    return ch->added >= 0 && p->leader < 0;
}

/* The partitions of one set that are concerned. */
struct walk {
    struct controller *c;
    const struct broker_change *change;
    struct record_list *rl;
    const struct image_topic *topic; /* of the rules */
    struct topic_rules rules;
};

static enum err change_partition(struct walk *w, const struct image_topic *t, int32_t index)
{
    struct partition_change pc;
    const struct broker_change *ch = w->change;
    const struct image_partition *p = &t->partitions[index];
    if (!concerned(p, ch))
        return ERR_NONE;
    if (w->topic != t)
        w->rules = topic_rules_of(w->c, t);
    w->topic = t;
    partition_change_open(&pc, w->c, t, index, &w->rules);
    pc.brokers = *ch;
    struct replica_set gone = {(int32_t[]){ch->removed, ch->unclean}, 2};
    if (!replica_set_minus(w->c, pc.isr, gone, &pc.isr))
        return ERR_NOMEM;
    return partition_change_add(&pc, w->rl);
}

static enum err change_set(struct walk *w, const struct partition_set *set)
{
    struct partition_at at = {0};
    while (partition_set_next(set, &at)) {
        enum err e = change_partition(w, image_topic_by_id(&w->c->ahead, at.topic_id), at.index);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

/* A set may be missing: the broker hosts nothing. */
static enum err change_hosted(struct walk *w, int32_t broker_id)
{
    const struct partition_set *hosted = partition_index_hosted(&w->c->index, broker_id);
    return broker_id < 0 || hosted == NULL ? ERR_NONE : change_set(w, hosted);
}

enum err election_broker_change(struct controller *c, const struct broker_change *change,
                                struct record_list *rl)
{
    struct walk w = {.c = c, .change = change, .rl = rl};
    enum err e = change_hosted(&w, change->removed);
    if (e == ERR_NONE)
        e = change_hosted(&w, change->unclean);
    if (e == ERR_NONE && change->added >= 0)
        e = change_set(&w, &c->index.leaderless);
    return e;
}
