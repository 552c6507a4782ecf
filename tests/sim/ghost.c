#include "ghost.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"
#include "mirror.h"
#include "node/inside.h"
#include "quorum/inside.h"
#include "support/node/model.h"
#include "support/real_alloc.h"

enum { GHOST_PARTITIONS = 64, NAME_MAX_BYTES = 64 };

/* What we know of one replica. */
struct ghost_replica {
    struct mirror mirror;
    bool seen; /* by this process */
    bool leading;
    int32_t leader_epoch, partition_epoch;
    int64_t high_watermark;
};

/* The newest that any node ever knew as committed. */
struct ghost_state {
    int32_t leader_epoch, partition_epoch; /* -1: nothing yet */
    int32_t isr[FLEET_MAX], elr[FLEET_MAX], isr_n, elr_n;
};

struct ghost_partition {
    char name[NAME_MAX_BYTES];
    struct uuid topic_id;
    int32_t index;
    struct mirror_book book;
    struct ghost_replica replicas[FLEET_MAX];
    /* Everything below the largest HW that a leader ever had, C: batches in order. */
    struct mirror committed;
    int64_t c;
    /* Who led an epoch first. */
    struct map leaders; /* epoch -> struct ghost_leader */
    struct ghost_state state;
};

struct ghost_leader {
    size_t node;
};

/* A node as a member of the quorum; epochs and votes outlive its process. */
struct ghost_voter {
    struct mirror mirror;
    bool seen;
    int32_t epoch;
    int64_t high_watermark;
    enum raft_state state;
    int64_t image_offset;
};

static struct {
    struct fleet *f;
    struct ghost_rules rules;
    struct ghost_partition *partitions;
    size_t n;
    struct ghost_partition quorum; /* book, committed, leaders: of the metadata log */
    struct ghost_voter voters[FLEET_MAX];
    const struct image *newest; /* of the node that has applied most; within one look */
    uint64_t looks;
} g;

/* ------------------------------------------------------------------ begin and end */

static void partition_init(struct ghost_partition *p)
{
    mirror_book_init(&p->book);
    map_init(&p->leaders, 1);
    p->state.leader_epoch = p->state.partition_epoch = -1;
}

static void partition_close(struct ghost_partition *p)
{
    const struct map_entry *e = NULL;
    for (size_t i = 0; i < FLEET_MAX; i++)
        mirror_close(&p->replicas[i].mirror);
    mirror_close(&p->committed);
    mirror_book_close(&p->book);
    while ((e = map_next(&p->leaders, e)) != NULL)
        free(map_value(e));
    map_close(&p->leaders);
}

void ghost_begin(struct fleet *f, struct ghost_rules rules)
{
    memset(&g, 0, sizeof g);
    g.f = f;
    g.rules = rules;
    g.partitions = calloc(GHOST_PARTITIONS, sizeof *g.partitions);
    CHECK(g.partitions != NULL);
    snprintf(g.quorum.name, sizeof g.quorum.name, "__cluster_metadata");
    partition_init(&g.quorum);
}

void ghost_end(void)
{
    for (size_t i = 0; i < g.n; i++)
        partition_close(&g.partitions[i]);
    for (size_t i = 0; i < FLEET_MAX; i++)
        mirror_close(&g.voters[i].mirror);
    partition_close(&g.quorum);
    free(g.partitions);
    g.f = NULL;
}

uint64_t ghost_looks(void)
{
    return g.looks;
}

static struct ghost_partition *find_partition(struct uuid topic_id, int32_t index)
{
    for (size_t i = 0; i < g.n; i++)
        if (g.partitions[i].index == index && uuid_eq(g.partitions[i].topic_id, topic_id))
            return &g.partitions[i];
    return NULL;
}

static struct ghost_partition *partition_of(const struct partition *p)
{
    struct ghost_partition *gp = find_partition(p->topic_id, p->index);
    if (gp != NULL)
        return gp;
    CHECK(g.n < GHOST_PARTITIONS);
    gp = &g.partitions[g.n++];
    snprintf(gp->name, sizeof gp->name, "%s-%d", p->topic, p->index);
    gp->topic_id = p->topic_id;
    gp->index = p->index;
    partition_init(gp);
    return gp;
}

static const struct node *node_at(size_t i)
{
    return g.f->worlds[i].node;
}

/* ------------------------------------------------------------------ what is committed */

/* The batches of m below `upto` are for good. */
static void commit(struct ghost_partition *gp, const struct mirror *m, int64_t upto, size_t node)
{
    struct mirror *c = &gp->committed;
    if (c->n == 0)
        c->start = m->start;
    for (ptrdiff_t k = mirror_find(m, c->n > 0 ? c->v[c->n - 1].next : c->start);
         k >= 0 && (size_t)k < m->n && m->v[k].next <= upto; k++) {
        if (c->n == c->cap) {
            c->cap = c->cap == 0 ? 64 : c->cap * 2;
            c->v = __real_realloc(c->v, c->cap * sizeof *c->v);
            CHECK(c->v != NULL);
        }
        c->v[c->n++] = m->v[k];
    }
    (void)node;
}

/* Does m hold every committed batch from its own start to `upto`? */
static void check_holds(const struct ghost_partition *gp, const struct mirror *m, int64_t upto,
                        size_t node, const char *rule)
{
    const struct mirror *c = &gp->committed;
    if (upto <= m->start)
        return;
    if (m->end < upto)
        violation("%s: node %zu ends at %lld, %lld is committed (%s)", gp->name, node + 1,
                  (long long)m->end, (long long)upto, rule);
    for (size_t k = 0; k < c->n && c->v[k].base < upto; k++) {
        if (c->v[k].base < m->start)
            continue;
        const ptrdiff_t at = mirror_find(m, c->v[k].base);
        if (at < 0 || m->v[at].base != c->v[k].base || m->v[at].epoch != c->v[k].epoch ||
            m->v[at].hash != c->v[k].hash)
            violation(
                "%s: node %zu, [%lld, %lld), lacks the committed batch at offset %lld of epoch "
                "%d: it has epoch %d there (%s)",
                gp->name, node + 1, (long long)m->start, (long long)m->end, (long long)c->v[k].base,
                c->v[k].epoch, at < 0 ? -1 : m->v[at].epoch, rule);
    }
}

static void check_leader(struct ghost_partition *gp, int32_t epoch, size_t node, const char *rule)
{
    struct ghost_leader *l = map_get(&gp->leaders, &epoch, sizeof epoch);
    if (l == NULL) {
        l = calloc(1, sizeof *l);
        CHECK(l != NULL && map_put(&gp->leaders, &epoch, sizeof epoch, l) == ERR_NONE);
        l->node = node;
    }
    if (l->node != node)
        violation("%s: nodes %zu and %zu both lead epoch %d (%s)", gp->name, l->node + 1, node + 1,
                  epoch, rule);
}

/* ------------------------------------------------------------------ the quorum */

static int64_t synced_end(size_t i)
{
    return g.voters[i].mirror.flushed;
}

/* Q7: a majority of voters has synced what is committed. */
static void check_majority(const struct raft *r, int64_t hw, size_t node)
{
    int32_t have = 0;
    for (int32_t k = 0; k < r->voters.n; k++)
        have += synced_end((size_t)r->voters.v[k].id - 1) >= hw;
    if (have <= r->voters.n / 2)
        violation(
            "__cluster_metadata: node %zu commits %lld, which %d of %d voters have synced (Q7)",
            node + 1, (long long)hw, have, r->voters.n);
}

static void look_quorum(struct ghost_voter *v, const struct raft *r, struct world *w, size_t i)
{
    if (!mirror_look(&v->mirror, &g.quorum.book, w, r->log, g.quorum.name, &g.quorum.committed))
        return;
    if (r->epoch < v->epoch)
        violation("__cluster_metadata: node %zu goes from epoch %d back to %d (Q3)", i + 1,
                  v->epoch, r->epoch);
    if (raft_is_durable(r))
        v->epoch = r->epoch;
    if (r->leader_id >= 0)
        check_leader(&g.quorum, r->epoch, (size_t)r->leader_id - 1, "Q1");
    if (r->state == RAFT_LEADER && v->state != RAFT_LEADER)
        check_holds(&g.quorum, &v->mirror, g.quorum.c, i, "Q6");
    if (v->seen && r->high_watermark < v->high_watermark)
        violation("__cluster_metadata: node %zu lowers its high watermark from %lld to %lld (Q7)",
                  i + 1, (long long)v->high_watermark, (long long)r->high_watermark);
    if (r->high_watermark > v->high_watermark || !v->seen) {
        if (r->state == RAFT_LEADER && r->high_watermark > v->high_watermark)
            check_majority(r, r->high_watermark, i);
        if (r->high_watermark > g.quorum.c) {
            commit(&g.quorum, &v->mirror, r->high_watermark, i);
            g.quorum.c = r->high_watermark;
        }
        check_holds(&g.quorum, &v->mirror, r->high_watermark, i, "Q5");
    }
    v->high_watermark = r->high_watermark;
    v->state = r->state;
    v->seen = true;
}

/* ------------------------------------------------------------------ partitions */

static bool among(const int32_t *v, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (v[i] == id)
            return true;
    return false;
}

static const struct image_partition *newest_of(const struct ghost_partition *gp)
{
    struct image_topic *t = g.newest == NULL ? NULL : image_topic_by_id(g.newest, gp->topic_id);
    return t == NULL ? NULL : image_partition(t, gp->index);
}

/* 11: what the leader counts has what it says. */
static void check_in_sync(const struct ghost_partition *gp, const struct partition *p, size_t i)
{
    const int64_t hw = p->high_watermark;
    for (size_t k = 0; k < g.f->n; k++) {
        if (k == i || !partition_in_maximal_isr(p, (int32_t)k + 1))
            continue;
        const struct mirror *m = &gp->replicas[k].mirror;
        if (m->life == MIRROR_NEW && m->n == 0)
            continue; /* its disk was taken away: it is in this ISR until somebody notices */
        check_holds(gp, m, hw, k, "11");
    }
}

static void check_rise(struct ghost_partition *gp, const struct ghost_replica *gr,
                       const struct partition *p, size_t i)
{
    if (p->leading && gr->leading && p->isr_n < partition_effective_min_isr(p))
        violation("%s: node %zu raises the high watermark to %lld under min ISR (12)", gp->name,
                  i + 1, (long long)p->high_watermark);
    if (!p->leading || !g.rules.clean)
        return;
    if (p->high_watermark > gp->c) {
        commit(gp, &gr->mirror, p->high_watermark, i);
        gp->c = p->high_watermark;
    }
    check_in_sync(gp, p, i);
}

static void look_partition(struct partition *p, struct world *w, size_t i)
{
    struct ghost_partition *gp = partition_of(p);
    struct ghost_replica *gr = &gp->replicas[i];
    if (p->log == NULL || log_is_offline(p->log))
        return;
    if (!mirror_look(&gr->mirror, &gp->book, w, p->log, gp->name, &gp->committed))
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
        check_leader(gp, p->leader_epoch, i, "4");
    /* one that hears late of a lead that is over lacks what came after it */
    if (p->leading && g.rules.clean && p->leader_epoch >= gp->state.leader_epoch &&
        (!gr->leading || gr->leader_epoch != p->leader_epoch))
        check_holds(gp, &gr->mirror, gp->c, i, "7");
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

/* 8: whoever may be elected has all that is committed. A broker whose new life is not registered
 * yet stands in the ISR with its old one. */
static void check_candidate(const struct ghost_partition *gp, size_t i)
{
    const struct ghost_state *st = &gp->state;
    const struct node *n = node_at(i);
    const int32_t id = (int32_t)i + 1;
    if (!among(st->isr, st->isr_n, id) && !among(st->elr, st->elr_n, id))
        return;
    const struct image_broker *b = image_broker(g.newest, id);
    if (b == NULL || n->broker == NULL || broker_epoch(n->broker) != b->epoch ||
        !gp->replicas[i].seen)
        return;
    check_holds(gp, &gp->replicas[i].mirror, gp->c, i, "8");
}

/* ------------------------------------------------------------------ images */

static void check_partition_state(const struct image *img, const struct image_topic *t, int32_t k,
                                  size_t i)
{
    const struct image_partition *p = &t->partitions[k];
    if (p->replicas_n == 0)
        return;
    for (int32_t j = 0; j < p->isr_n; j++) {
        if (!among(p->replicas, p->replicas_n, p->isr[j]))
            violation("%s-%d: node %zu: %d is in the ISR and no replica (17)", t->name, k, i + 1,
                      p->isr[j]);
        if (among(p->elr, p->elr_n, p->isr[j]))
            violation("%s-%d: node %zu: %d is in ISR and ELR (19)", t->name, k, i + 1, p->isr[j]);
    }
    if (p->leader >= 0 && !among(p->isr, p->isr_n, p->leader))
        violation("%s-%d: node %zu: leader %d is not in the ISR (17)", t->name, k, i + 1,
                  p->leader);
    for (int32_t j = 0; j < p->isr_n; j++) {
        const struct image_broker *b = image_broker(img, p->isr[j]);
        if (b != NULL && (b->fenced || b->in_controlled_shutdown) && p->isr_n > 1)
            violation("%s-%d: node %zu: broker %d is fenced or stops and in the ISR (18)", t->name,
                      k, i + 1, b->id);
    }
}

static void take_state(const struct image_topic *t, int32_t k)
{
    const struct image_partition *p = &t->partitions[k];
    struct ghost_partition *gp = find_partition(t->id, k);
    if (gp == NULL || p->partition_epoch <= gp->state.partition_epoch)
        return;
    struct ghost_state *st = &gp->state;
    CHECK(p->isr_n <= FLEET_MAX && p->elr_n <= FLEET_MAX);
    st->partition_epoch = p->partition_epoch;
    st->leader_epoch = p->leader_epoch;
    st->isr_n = p->isr_n;
    st->elr_n = p->elr_n;
    for (int32_t j = 0; j < p->isr_n; j++)
        st->isr[j] = p->isr[j];
    for (int32_t j = 0; j < p->elr_n; j++)
        st->elr[j] = p->elr[j];
}

static void look_image(const struct image *img, size_t i)
{
    struct map_entry *e = NULL;
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t k = 0; k < t->partitions_n; k++) {
            check_partition_state(img, t, k, i);
            take_state(t, k);
        }
    }
}

static void find_newest(void)
{
    g.newest = NULL;
    for (size_t i = 0; i < g.f->n; i++) {
        const struct node *n = node_at(i);
        if (n != NULL && (g.newest == NULL || n->image.next_offset > g.newest->next_offset))
            g.newest = &n->image;
    }
}

/* ------------------------------------------------------------------ all */

void ghost_look(size_t i)
{
    struct world *w = &g.f->worlds[i];
    struct node *n = w->node;
    if (g.f == NULL || n == NULL || n->state == NODE_FAILED)
        return;
    g.looks++;
    if (n->raft != NULL && n->raft->log != NULL)
        look_quorum(&g.voters[i], n->raft, w, i);
    find_newest();
    if (n->image.next_offset != g.voters[i].image_offset && !n->image.in_transaction) {
        g.voters[i].image_offset = n->image.next_offset;
        look_image(&n->image, i);
    }
    if (n->replicas == NULL || n->replicas->closing)
        return;
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &n->replicas->all)
    {
        if (l == &n->replicas->walk)
            continue;
        struct partition *p = LIST_ENTRY(l, struct partition, all);
        look_partition(p, w, i);
        if (g.rules.clean)
            check_candidate(partition_of(p), i);
    }
}

static enum mirror_life worse(enum mirror_life a, enum mirror_life b)
{
    return a > b ? a : b;
}

void ghost_gone(size_t i, bool power, bool inside)
{
    const enum mirror_life life = power ? MIRROR_POWER : inside ? MIRROR_CRASHED : MIRROR_KILLED;
    if (g.f == NULL)
        return;
    for (size_t k = 0; k < g.n; k++) {
        struct ghost_replica *gr = &g.partitions[k].replicas[i];
        gr->seen = gr->leading = false;
        gr->mirror.life = worse(gr->mirror.life, life);
    }
    struct ghost_voter *v = &g.voters[i];
    v->seen = false;
    v->state = RAFT_UNATTACHED;
    v->high_watermark = -1;
    v->image_offset = 0;
    v->mirror.life = worse(v->mirror.life, life);
}

void ghost_wiped(size_t i)
{
    for (size_t k = 0; k < g.n; k++) {
        struct ghost_replica *gr = &g.partitions[k].replicas[i];
        mirror_close(&gr->mirror);
        *gr = (struct ghost_replica){.mirror = {.life = MIRROR_NEW}};
    }
    mirror_close(&g.voters[i].mirror);
    g.voters[i] = (struct ghost_voter){.mirror = {.life = MIRROR_NEW}, .high_watermark = -1};
}

/* ------------------------------------------------------------------ quiet at last */

static bool same_logs(const struct ghost_partition *gp, const struct image_partition *ip, char *why,
                      size_t why_n)
{
    const struct mirror *first = NULL;
    for (int32_t k = 0; k < ip->replicas_n; k++) {
        const struct ghost_replica *gr = &gp->replicas[ip->replicas[k] - 1];
        const struct mirror *m = &gr->mirror;
        if (!gr->seen || gr->high_watermark != m->end) {
            snprintf(why, why_n, "%s: HW %lld, end %lld at node %d", gp->name,
                     (long long)gr->high_watermark, (long long)m->end, ip->replicas[k]);
            return false;
        }
        if (first == NULL)
            first = m;
        if (m->end != first->end ||
            (m->n > 0 && first->n > 0 && m->v[m->n - 1].hash != first->v[first->n - 1].hash)) {
            snprintf(why, why_n, "%s: ends %lld and %lld", gp->name, (long long)first->end,
                     (long long)m->end);
            return false;
        }
    }
    return true;
}

bool ghost_settled(char *why, size_t why_n)
{
    find_newest();
    for (size_t i = 0; i < g.f->n; i++) {
        const struct node *n = node_at(i);
        if (n == NULL || n->state != NODE_READY) {
            snprintf(why, why_n, "node %zu is not ready", i + 1);
            return false;
        }
        if (n->image.next_offset != g.newest->next_offset) {
            snprintf(why, why_n, "node %zu has metadata up to %lld of %lld", i + 1,
                     (long long)n->image.next_offset, (long long)g.newest->next_offset);
            return false;
        }
    }
    for (size_t k = 0; k < g.n; k++) {
        const struct image_partition *ip = newest_of(&g.partitions[k]);
        if (ip == NULL || ip->replicas_n == 0)
            continue;
        if (ip->isr_n != ip->replicas_n) {
            snprintf(why, why_n, "%s: ISR of %d, %d replicas", g.partitions[k].name, ip->isr_n,
                     ip->replicas_n);
            return false;
        }
        if (!same_logs(&g.partitions[k], ip, why, why_n))
            return false;
    }
    return true;
}
