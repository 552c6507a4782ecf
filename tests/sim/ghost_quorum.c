/* The invariants of the quorum, but for those of ghost_calls.c and ghost_image.c. */
#include "core/controller/inside.h"
#include "ghost_inside.h"
#include "node/inside.h"

static int64_t synced_end(size_t i)
{
    return ghost.voters[i].mirror.flushed;
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

/* ------------------------------------------------------------------ voters (Q10) */

static bool has_voter(const struct voter_change *c, const struct voter *v)
{
    for (int32_t i = 0; i < c->n; i++)
        if (c->voters[i].id == v->id && uuid_eq(c->voters[i].directory_id, v->directory_id))
            return true;
    return false;
}

static int32_t apart(const struct voter_change *a, const struct voter_change *b)
{
    int32_t n = 0;
    for (int32_t i = 0; i < a->n; i++)
        n += !has_voter(b, &a->voters[i]);
    for (int32_t i = 0; i < b->n; i++)
        n += !has_voter(a, &b->voters[i]);
    return n;
}

static void check_voters(const struct raft *r, size_t i)
{
    const struct voter_history *h = &r->history;
    int32_t open = 0; /* changes that are not committed */
    for (size_t k = 1; k < h->n; k++) {
        const struct voter_change *was = &h->v[k - 1];
        if (was->n == 0 || h->v[k].offset <= r->newest.offset)
            continue; /* nothing was known, or a snapshot leaves out what was between */
        const int32_t n = apart(was, &h->v[k]);
        if (n > 1)
            violation("__cluster_metadata: node %zu: the voters at offset %lld are %d apart from "
                      "those before (Q10)",
                      i + 1, (long long)h->v[k].offset, n);
        open += n > 0 && h->v[k].offset >= ghost.quorum.c;
    }
    if (r->state == RAFT_LEADER && open > 1)
        violation("__cluster_metadata: node %zu has %d changes of voters under way (Q10)", i + 1,
                  open);
}

/* ------------------------------------------------------------------ the controller (Q13) */

/* Who decides leads, and knows all that was decided before. */
static void check_active(const struct node *n, size_t i)
{
    const struct raft *r = n->raft;
    if (n->controller == NULL || n->controller->state != CONTROLLER_ACTIVE)
        return;
    if (r->state != RAFT_LEADER || n->controller->epoch != r->epoch)
        violation("node %zu acts as controller of epoch %d, and is no leader in epoch %d (Q13)",
                  i + 1, n->controller->epoch, r->epoch);
    if (n->image.next_offset <= r->epoch_start_offset)
        violation("node %zu acts as controller with metadata up to %lld, its epoch begins at %lld "
                  "(Q13)",
                  i + 1, (long long)n->image.next_offset, (long long)r->epoch_start_offset);
}

/* ------------------------------------------------------------------ snapshots (Q11) */

static void check_snapshot(const struct raft *r, size_t i)
{
    const int64_t start = log_start_offset(r->log);
    if (start > 0 && r->newest.offset < start)
        violation("__cluster_metadata: node %zu begins at %lld, its newest snapshot ends at %lld "
                  "(Q11)",
                  i + 1, (long long)start, (long long)r->newest.offset);
}

/* ------------------------------------------------------------------ a turn */

void ghost_look_quorum(const struct node *n, struct world *w, size_t i)
{
    struct ghost_voter *v = &ghost.voters[i];
    const struct raft *r = n->raft;
    if (!mirror_look(&v->mirror, &ghost.quorum.book, w, r->log, ghost.quorum.name,
                     &ghost.quorum.committed))
        return;
    if (r->epoch < v->epoch)
        violation("__cluster_metadata: node %zu goes from epoch %d back to %d (Q3)", i + 1,
                  v->epoch, r->epoch);
    if (raft_is_durable(r))
        v->epoch = r->epoch;
    if (r->leader_id >= 0)
        ghost_check_leader(&ghost.quorum, r->epoch, (size_t)r->leader_id - 1, "Q1");
    if (r->state == RAFT_LEADER && v->state != RAFT_LEADER)
        ghost_check_holds(&ghost.quorum, &v->mirror, ghost.quorum.c, i, "Q6");
    if (v->seen && r->high_watermark < v->high_watermark)
        violation("__cluster_metadata: node %zu lowers its high watermark from %lld to %lld (Q7)",
                  i + 1, (long long)v->high_watermark, (long long)r->high_watermark);
    if (r->high_watermark > v->high_watermark || !v->seen) {
        if (r->state == RAFT_LEADER && r->high_watermark > v->high_watermark)
            check_majority(r, r->high_watermark, i);
        if (r->state == RAFT_LEADER && v->state == RAFT_LEADER &&
            r->high_watermark <= r->epoch_start_offset)
            violation("__cluster_metadata: node %zu commits %lld by itself, its epoch begins at "
                      "%lld (Q7)",
                      i + 1, (long long)r->high_watermark, (long long)r->epoch_start_offset);
        if (r->high_watermark > ghost.quorum.c)
            ghost_commit(&ghost.quorum, &v->mirror, r->high_watermark);
        ghost_check_holds(&ghost.quorum, &v->mirror, r->high_watermark, i, "Q5");
    }
    check_voters(r, i);
    check_snapshot(r, i);
    check_active(n, i);
    v->high_watermark = r->high_watermark;
    v->state = r->state;
    v->seen = true;
}
