/* The invariants of one partition as each of its nodes holds it. */
#include "core/replica/inside.h"
#include "ghost_inside.h"
#include "node/inside.h"

/* A disk was taken away, or what was not synced on it: until node i hears of k's new life it takes
 * it for the old one. */
static bool may_lack(size_t k, size_t i)
{
    return ghost_recovering() == (int32_t)k && !ghost_registered(&ghost_node(i)->image, k);
}

/* It is in the ISR no more, or the topic is gone, and the leader has not heard of that: its log may
 * be gone too. */
static bool has_left(const struct ghost_partition *gp, const struct partition *p, int32_t id)
{
    const struct ghost_state *st = &gp->state;
    return ghost_newest(gp) == NULL ||
           (p->partition_epoch < st->partition_epoch && !ghost_among(st->isr, st->isr_n, id));
}

/* 11: what the leader counts has what it says. */
static void check_in_sync(const struct ghost_partition *gp, const struct partition *p, size_t i)
{
    const int64_t hw = p->high_watermark;
    for (size_t k = 0; k < ghost.f->n; k++) {
        const int32_t id = (int32_t)k + 1;
        if (k == i || !partition_in_maximal_isr(p, id) || may_lack(k, i) || has_left(gp, p, id))
            continue;
        ghost_check_holds(gp, &gp->replicas[k].mirror, hw, k, "11");
    }
}

static void check_rise(struct ghost_partition *gp, const struct ghost_replica *gr,
                       const struct partition *p, size_t i)
{
    if (p->leading && gr->leading && p->isr_n < partition_effective_min_isr(p))
        violation("%s: node %zu raises the high watermark to %lld under min ISR (12)", gp->name,
                  i + 1, (long long)p->high_watermark);
    if (!p->leading)
        return;
    if (p->high_watermark > gp->c && !gp->lossy)
        ghost_commit(gp, &gr->mirror, p->high_watermark);
    check_in_sync(gp, p, i);
}

void ghost_look_partition(struct ghost_partition *gp, struct partition *p, struct world *w,
                          size_t i)
{
    static const struct mirror nothing;
    struct ghost_replica *gr = &gp->replicas[i];
    if (p->log == NULL || log_is_offline(p->log))
        return;
    gr->blind = !mirror_look(&gr->mirror, &gp->book, w, p->log, gp->name,
                             gp->lossy ? &nothing : &gp->committed);
    if (gr->blind)
        return;
    const int64_t lso = log_last_stable_offset(p->log, p->high_watermark);
    const int64_t start = log_start_offset(p->log), end = log_end_offset(p->log);
    if (start < 0 || start > lso || lso > p->high_watermark || p->high_watermark > end)
        violation("%s: node %zu has start %lld, LSO %lld, HW %lld, end %lld (1)", gp->name, i + 1,
                  (long long)start, (long long)lso, (long long)p->high_watermark, (long long)end);
    if (gr->seen &&
        (p->partition_epoch < gr->partition_epoch || p->leader_epoch < gr->leader_epoch))
        violation("%s: node %zu goes from epochs %d/%d back to %d/%d (20)", gp->name, i + 1,
                  gr->leader_epoch, gr->partition_epoch, p->leader_epoch, p->partition_epoch);
    const bool same_tenure = gr->seen && gr->leading && p->leading;
    if (p->leading)
        ghost_check_leader(gp, p->leader_epoch, i, "4");
    /* one that hears late of a lead that is over lacks what came after it */
    if (p->leading && p->leader_epoch >= gp->state.leader_epoch && !may_lack(i, i) &&
        ghost_newest(gp) != NULL && (!gr->leading || gr->leader_epoch != p->leader_epoch))
        ghost_check_holds(gp, &gr->mirror, gp->c, i, "7");
    if (same_tenure && p->high_watermark < gr->high_watermark)
        violation(
            "%s: node %zu leads epoch %d and lowers its high watermark from %lld to %lld (10)",
            gp->name, i + 1, p->leader_epoch, (long long)gr->high_watermark,
            (long long)p->high_watermark);
    if (p->high_watermark > gr->high_watermark || !gr->seen)
        check_rise(gp, gr, p, i);
    gr->seen = true;
    gr->leading = p->leading;
    gr->leader_epoch = p->leader_epoch;
    gr->partition_epoch = p->partition_epoch;
    gr->high_watermark = p->high_watermark;
}

void ghost_check_candidate(const struct ghost_partition *gp, size_t i)
{
    const struct ghost_state *st = &gp->state;
    const int32_t id = (int32_t)i + 1;
    if (!ghost_among(st->isr, st->isr_n, id) && !ghost_among(st->elr, st->elr_n, id))
        return;
    if (!gp->replicas[i].seen || gp->replicas[i].blind || ghost_newest(gp) == NULL ||
        !ghost_registered(ghost.newest, i))
        return;
    ghost_check_holds(gp, &gp->replicas[i].mirror, gp->c, i, "8");
}

/* ------------------------------------------------------------------ replicas that are removed */

static void forget(struct ghost_partition *gp, size_t i)
{
    mirror_close(&gp->replicas[i].mirror);
    gp->replicas[i] = (struct ghost_replica){0};
}

__typeof__(partition_free) __real_partition_free, __wrap_partition_free;

/* While its node runs on, the log and its directory go. (--wrap, as in ghost_calls.c.) */
void __wrap_partition_free(struct partition *p)
{
    struct ghost_partition *gp = ghost.f == NULL ? NULL : ghost_find(p->topic_id, p->index);
    const size_t i = (size_t)p->rs->node_id - 1;
    if (gp != NULL && !p->rs->closing && ghost_node(i)->state != NODE_STOPPED)
        forget(gp, i);
    __real_partition_free(p);
}

__typeof__(leaving_stray) __real_leaving_stray, __wrap_leaving_stray;

/* The directory of one that went while the node was down. */
void __wrap_leaving_stray(struct log_dir *ld, const char *name)
{
    for (size_t k = 0; ghost.f != NULL && k < ghost.n; k++)
        if (strcmp(ghost.partitions[k].name, name) == 0)
            forget(&ghost.partitions[k], (size_t)ld->rs->node_id - 1);
    __real_leaving_stray(ld, name);
}
