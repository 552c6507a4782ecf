#include "ghost_inside.h"
#include "node/inside.h"

/* ------------------------------------------------------------------ partitions */

typedef bool (*partition_rule)(const struct image_partition *p, int32_t id, int32_t min_isr);

/* Of all that node i has a replica of. */
static bool each_replica(size_t i, int32_t min_isr, partition_rule rule)
{
    const int32_t id = (int32_t)i + 1;
    const struct map_entry *e = NULL;
    while ((e = map_next(&ghost.newest->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t k = 0; k < t->partitions_n; k++) {
            const struct image_partition *p = &t->partitions[k];
            if (ghost_among(p->replicas, p->replicas_n, id) && !rule(p, id, min_isr))
                return false;
        }
    }
    return true;
}

static int32_t others(const int32_t *v, int32_t n, int32_t id)
{
    return n - ghost_among(v, n, id);
}

/* Somebody else may lead who has all that is committed (8), and stays one who may: under min ISR
 * the ELR keeps whoever leaves the ISR but by an unclean restart. */
static bool is_kept(const struct image_partition *p, int32_t id, int32_t min_isr)
{
    return min_isr > 1 && p->replicas_n > 1 &&
           others(p->isr, p->isr_n, id) + others(p->elr, p->elr_n, id) > 0;
}

static bool is_in_sync(const struct image_partition *p, int32_t id, int32_t min_isr)
{
    (void)min_isr;
    return ghost_among(p->isr, p->isr_n, id);
}

/* ------------------------------------------------------------------ nodes */

static bool broker_lives(size_t i)
{
    const struct image_broker *b = image_broker(ghost.newest, (int32_t)i + 1);
    return !fleet_is_broker(ghost.f, i) ||
           (ghost_registered(ghost.newest, i) && !b->fenced && !b->in_controlled_shutdown);
}

static bool is_well(size_t i)
{
    const struct world *w = &ghost.f->worlds[i];
    return world_ready(w) && !w->paused && w->crash_at_op == 0 && w->fs.fault.nth == 0 &&
           !w->disk_fills && broker_lives(i);
}

int32_t ghost_recovering(void)
{
    return ghost.recovering;
}

bool ghost_may_lose(size_t i, int32_t min_isr)
{
    ghost_find_newest();
    if (ghost.recovering >= 0 || ghost.newest == NULL)
        return false;
    for (size_t k = 0; k < ghost.f->n; k++)
        if (k != i && !is_well(k))
            return false;
    return each_replica(i, min_isr, is_kept);
}

void ghost_loses(size_t i)
{
    ghost.recovering = (int32_t)i;
}

bool ghost_recovered(void)
{
    if (ghost.recovering < 0)
        return true;
    const size_t i = (size_t)ghost.recovering;
    ghost_find_newest();
    if (ghost.newest == NULL || !world_ready(&ghost.f->worlds[i]) || !broker_lives(i) ||
        !each_replica(i, 0, is_in_sync))
        return false;
    ghost.recovering = -1;
    return true;
}

/* ------------------------------------------------------------------ the quorum */

/* It has what the other had, and follows or leads as late an epoch. */
static bool stands_in(const struct raft *r, const struct ghost_voter *v,
                      const struct ghost_voter *gone)
{
    const struct mirror *m = &gone->mirror;
    const ptrdiff_t at = m->n == 0 ? -1 : mirror_find(&v->mirror, m->v[m->n - 1].base);
    if (r == NULL || r->leader_id < 0 || r->epoch < gone->epoch || v->mirror.flushed < m->end)
        return false;
    return m->n == 0 || (at >= 0 && v->mirror.v[at].hash == m->v[m->n - 1].hash);
}

/* A static voter that forgets its votes and its log: all others know already who won, and hold what
 * it may have acknowledged. */
static bool may_forget(size_t i)
{
    int32_t epoch = -1;
    for (size_t k = 0; k < ghost.f->n; k++) {
        if (k == i || !fleet_is_controller(ghost.f, k))
            continue;
        const struct node *n = ghost_node(k);
        if (n == NULL || n->raft == NULL ||
            !stands_in(n->raft, &ghost.voters[k], &ghost.voters[i]) ||
            (epoch >= 0 && epoch != n->raft->epoch))
            return false;
        epoch = n->raft->epoch;
    }
    return epoch >= 0;
}

/* With another directory it is no voter any more: that leaves fewer. */
static bool may_retire(void)
{
    int32_t n = 0;
    for (size_t k = 0; k < ghost.f->n; k++)
        n += fleet_is_controller(ghost.f, k);
    return ghost.wiped_n < (n - 1) / 2;
}

bool ghost_may_be_wiped(size_t i, int32_t min_isr)
{
    ghost_find_newest();
    if (ghost.newest == NULL || !each_replica(i, min_isr, is_kept))
        return false;
    if (!fleet_is_controller(ghost.f, i))
        return true;
    if (!ghost.f->shape.dynamic)
        return may_forget(i);
    return may_retire();
}
