/* What was ever committed, and who has it. */
#include "base/check.h"
#include "ghost_inside.h"

/* Of the first batch that begins at offset or behind it; m->n. */
static size_t first_from(const struct mirror *m, int64_t offset)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (m->v[mid].base < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void ghost_commit(struct ghost_partition *gp, const struct mirror *m, int64_t upto)
{
    struct mirror *c = &gp->committed;
    for (size_t k = first_from(m, gp->c); k < m->n && m->v[k].next <= upto; k++)
        mirror_append(c, &m->v[k]);
    gp->c = upto;
}

static void check_batch(const struct ghost_partition *gp, const struct mirror *m,
                        const struct mirror_batch *b, size_t node, const char *rule)
{
    const ptrdiff_t at = mirror_find(m, b->base);
    if (at >= 0 && m->v[at].base == b->base && m->v[at].epoch == b->epoch &&
        m->v[at].hash == b->hash)
        return;
    violation("%s: node %zu, [%lld, %lld), lacks the committed batch at offset %lld of epoch %d: "
              "it has epoch %d there (%s)",
              gp->name, node + 1, (long long)m->start, (long long)m->end, (long long)b->base,
              b->epoch, at < 0 ? -1 : m->v[at].epoch, rule);
}

/* The book knows what stands before each batch: who holds one holds all before it. */
void ghost_check_holds(const struct ghost_partition *gp, const struct mirror *m, int64_t upto,
                       size_t node, const char *rule)
{
    const struct mirror *c = &gp->committed;
    if (gp->lossy || upto <= m->start)
        return;
    if (m->end < upto)
        violation("%s: node %zu ends at %lld, %lld is committed (%s)", gp->name, node + 1,
                  (long long)m->end, (long long)upto, rule);
    const ptrdiff_t at = mirror_find(c, upto - 1);
    const size_t last = at >= 0 ? (size_t)at : c->n - 1;
    if (c->n > 0 && c->v[last].base < upto && c->v[last].base >= m->start)
        check_batch(gp, m, &c->v[last], node, rule);
}

void ghost_check_leader(struct ghost_partition *gp, int32_t epoch, size_t node, const char *rule)
{
    struct world *w = &ghost.f->worlds[node];
    const struct world *first = map_get(&gp->leaders, &epoch, sizeof epoch);
    if (first == NULL)
        CHECK(map_put(&gp->leaders, &epoch, sizeof epoch, w) == ERR_NONE);
    else if (first != w)
        violation("%s: nodes %zu and %zu both lead epoch %d (%s)", gp->name, first->index + 1,
                  node + 1, epoch, rule);
}

void ghost_check_served(struct uuid topic_id, int32_t index, const struct batch *b)
{
    const struct ghost_partition *gp = ghost_find(topic_id, index);
    if (gp == NULL || gp->lossy)
        return;
    for (size_t i = 0; i < ghost.f->n; i++)
        if (gp->replicas[i].blind)
            return;
    const ptrdiff_t at = mirror_find(&gp->committed, b->base_offset);
    if (at < 0 || gp->committed.v[at].base != b->base_offset ||
        gp->committed.v[at].hash != mirror_hash(b))
        violation("%s: the batch at offset %lld of epoch %d is served, and was never committed: "
                  "that is up to %lld (16)",
                  gp->name, (long long)b->base_offset, b->leader_epoch, (long long)gp->c);
}
