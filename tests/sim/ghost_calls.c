/* What is looked at inside a turn, for afterwards it is too late: each decision of a controller,
 * each record as it is applied, each vote. The linker's --wrap puts these functions between caller
 * and callee; what they do is nothing that the node could see. */
#include "base/check.h"
#include "core/controller/inside.h"
#include "core/metadata/records.h"
#include "ghost_inside.h"
#include "node/inside.h"

enum { RECOVERING = 1, NO_LEADER_CHANGE = -2, ANSWERS = 512 };

/* ------------------------------------------------------------------ a partition before and after
 */

struct kept_partition {
    struct uuid topic_id;
    int32_t index;
    int32_t leader, leader_epoch, partition_epoch, isr_n, elr_n, last_known_n;
    int32_t isr[FLEET_MAX], elr[FLEET_MAX], last_known[FLEET_MAX];
};

static void keep_ids(int32_t *to, int32_t *to_n, const int32_t *v, int32_t n)
{
    CHECK(n <= FLEET_MAX);
    *to_n = n;
    for (int32_t i = 0; i < n; i++)
        to[i] = v[i];
}

static struct kept_partition keep(const struct image_topic *t, int32_t index)
{
    const struct image_partition *p = &t->partitions[index];
    struct kept_partition k = {
        .topic_id = t->id,
        .index = index,
        .leader = p->leader,
        .leader_epoch = p->leader_epoch,
        .partition_epoch = p->partition_epoch,
    };
    keep_ids(k.isr, &k.isr_n, p->isr, p->isr_n);
    keep_ids(k.elr, &k.elr_n, p->elr, p->elr_n);
    keep_ids(k.last_known, &k.last_known_n, p->last_known_elr, p->last_known_elr_n);
    return k;
}

static const struct image_partition *now_of(const struct image *img, const struct kept_partition *k)
{
    struct image_topic *t = image_topic_by_id(img, k->topic_id);
    return t == NULL ? NULL : image_partition(t, k->index);
}

static const char *name_of(const struct image *img, const struct kept_partition *k)
{
    const struct image_topic *t = image_topic_by_id(img, k->topic_id);
    return t == NULL ? "?" : t->name;
}

/* ------------------------------------------------------------------ records (20) */

/* The winner was not in sync: what was committed may be gone. The last known leader had it all.
 * Whom the same change adds to the ISR, to end a reassignment, has it too: that is looked at later
 * (8). */
static void look_at_election(const struct image *img, const struct kept_partition *was,
                             const struct image_partition *is)
{
    struct ghost_partition *gp = ghost_find(was->topic_id, was->index);
    if (is->leader < 0 || is->leader == was->leader || is->leader_recovery_state != RECOVERING ||
        ghost_among(was->last_known, was->last_known_n, is->leader))
        return;
    if (!ghost.unclean_allowed)
        violation("%s-%d: %d leads by an unclean election, which no topic allows (7)",
                  name_of(img, was), was->index, is->leader);
    if (gp != NULL)
        gp->lossy = true;
}

static void check_change(const struct image *img, const struct kept_partition *was,
                         const struct partition_change_record *r)
{
    const struct image_partition *is = now_of(img, was);
    const bool leads = r->leader != NO_LEADER_CHANGE;
    if (is->partition_epoch != was->partition_epoch + 1 ||
        is->leader_epoch != was->leader_epoch + leads)
        violation("%s-%d: a change takes it from epochs %d/%d to %d/%d (20)", name_of(img, was),
                  was->index, was->leader_epoch, was->partition_epoch, is->leader_epoch,
                  is->partition_epoch);
    look_at_election(img, was, is);
}

/* Every partition that had somebody in its ELR, or a last known leader, has nobody any more. */
static void check_cleared(const struct image *img, const struct kept_partition *was)
{
    const struct image_partition *is = now_of(img, was);
    struct ghost_partition *gp = ghost_find(was->topic_id, was->index);
    const bool had = was->elr_n + was->last_known_n > 0;
    if (is->elr_n + is->last_known_elr_n > 0 || is->partition_epoch != was->partition_epoch + had)
        violation("%s-%d: its ELR is cleared, and it goes from epoch %d to %d (20)",
                  name_of(img, was), was->index, was->partition_epoch, is->partition_epoch);
    if (gp != NULL)
        gp->cleared |= had;
}

__typeof__(image_apply) __real_image_apply, __wrap_image_apply;

static enum err apply_change(struct image *img, int16_t version,
                             const struct partition_change_record *r, struct bytes framed,
                             struct image_delta *d)
{
    struct image_topic *t = image_topic_by_id(img, r->topic_id);
    const bool there = t != NULL && image_partition(t, r->partition_id) != NULL;
    const struct kept_partition was =
        there ? keep(t, r->partition_id) : (struct kept_partition){.index = -1};
    const enum err e = __real_image_apply(img, RECORD_PARTITION_CHANGE, version, r, framed, d);
    if (there && e == ERR_NONE)
        check_change(img, &was, r);
    return e;
}

static enum err apply_clear(struct image *img, int16_t version, const struct clear_elr_record *r,
                            struct bytes framed, struct image_delta *d)
{
    static struct kept_partition was[GHOST_PARTITIONS];
    const struct map_entry *e = NULL;
    size_t n = 0;
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        if (r->topic_name.n > 0 && !str_eq(r->topic_name, str_of(t->name)))
            continue;
        for (int32_t k = 0; k < t->partitions_n; k++) {
            CHECK(n < GHOST_PARTITIONS);
            was[n++] = keep(t, k);
        }
    }
    const enum err err = __real_image_apply(img, RECORD_CLEAR_ELR, version, r, framed, d);
    for (size_t k = 0; k < n && err == ERR_NONE; k++)
        check_cleared(img, &was[k]);
    return err;
}

enum err __wrap_image_apply(struct image *img, int16_t type, int16_t version, const void *record,
                            struct bytes framed, struct image_delta *d)
{
    if (ghost.f != NULL && type == RECORD_PARTITION_CHANGE)
        return apply_change(img, version, record, framed, d);
    if (ghost.f != NULL && type == RECORD_CLEAR_ELR)
        return apply_clear(img, version, record, framed, d);
    return __real_image_apply(img, type, version, record, framed, d);
}

/* ------------------------------------------------------------------ AlterPartition (21, 22) */

struct asked {
    struct kept_partition was;
    const struct alter_partition_request_partition_data *in;
    bool there, fits;
    bool
        registered[FLEET_MAX]; /* each member that is added, with the epoch that it is added with */
};

__typeof__(controller_alter_partition) __real_controller_alter_partition,
    __wrap_controller_alter_partition;

static bool is_registered(const struct image *img, const struct kept_partition *was,
                          const struct alter_partition_request_broker_state *m)
{
    const struct image_broker *b = image_broker(img, m->broker_id);
    const bool known = m->broker_epoch < 0 && ghost_among(was->isr, was->isr_n, m->broker_id);
    return b != NULL && !b->fenced && !b->in_controlled_shutdown &&
           (known || b->epoch == m->broker_epoch);
}

static struct asked keep_asked(const struct controller *c,
                               const struct alter_partition_request *req, struct uuid topic_id,
                               const struct alter_partition_request_partition_data *in)
{
    struct asked a = {.in = in};
    struct image_topic *t = image_topic_by_id(&c->ahead, topic_id);
    const struct image_broker *b = image_broker(&c->ahead, req->broker_id);
    a.there = t != NULL && image_partition(t, in->partition_index) != NULL;
    if (!a.there)
        return a;
    a.was = keep(t, in->partition_index);
    a.fits = c->state == CONTROLLER_ACTIVE && b != NULL && b->epoch == req->broker_epoch &&
             a.was.leader == req->broker_id && a.was.leader_epoch == in->leader_epoch &&
             a.was.partition_epoch == in->partition_epoch;
    for (int32_t i = 0; i < in->new_isr_with_epochs.n && i < FLEET_MAX; i++)
        a.registered[i] = is_registered(&c->ahead, &a.was, &in->new_isr_with_epochs.v[i]);
    return a;
}

static void check_asked(const struct controller *c, const struct asked *a,
                        const struct alter_partition_response_partition_data *out)
{
    const struct image_partition *is = now_of(&c->ahead, &a->was);
    const bool applied = is != NULL && is->partition_epoch != a->was.partition_epoch;
    if (applied && !a->fits)
        violation("%s-%d: an AlterPartition of epochs %d/%d is applied at %d/%d (21)",
                  name_of(&c->ahead, &a->was), a->was.index, a->in->leader_epoch,
                  a->in->partition_epoch, a->was.leader_epoch, a->was.partition_epoch);
    for (int32_t i = 0; applied && i < a->in->new_isr_with_epochs.n; i++)
        if (i >= FLEET_MAX || !a->registered[i])
            violation("%s-%d: broker %d joins the ISR with epoch %lld, which is not what is "
                      "registered (22)",
                      name_of(&c->ahead, &a->was), a->was.index,
                      a->in->new_isr_with_epochs.v[i].broker_id,
                      (long long)a->in->new_isr_with_epochs.v[i].broker_epoch);
    if (a->fits && out != NULL &&
        (out->error_code == K_FENCED_LEADER_EPOCH || out->error_code == K_INVALID_UPDATE_VERSION ||
         out->error_code == K_NOT_CONTROLLER))
        violation("%s-%d: an AlterPartition of the right epochs is refused with error %d (21)",
                  name_of(&c->ahead, &a->was), a->was.index, out->error_code);
}

void __wrap_controller_alter_partition(struct controller *c, struct controller_op *op,
                                       const struct alter_partition_request *req, int16_t version,
                                       struct arena *a, struct alter_partition_response *resp,
                                       struct now now)
{
    static struct asked asked[GHOST_PARTITIONS];
    size_t n = 0, k = 0;
    for (int32_t t = 0; ghost.f != NULL && t < req->topics.n; t++)
        for (int32_t i = 0; i < req->topics.v[t].partitions.n && n < GHOST_PARTITIONS; i++)
            asked[n++] =
                keep_asked(c, req, req->topics.v[t].topic_id, &req->topics.v[t].partitions.v[i]);
    __real_controller_alter_partition(c, op, req, version, a, resp, now);
    for (int32_t t = 0; ghost.f != NULL && t < req->topics.n; t++)
        for (int32_t i = 0; i < req->topics.v[t].partitions.n && k < n; i++, k++)
            if (asked[k].there)
                check_asked(c, &asked[k],
                            t < resp->topics.n ? &resp->topics.v[t].partitions.v[i] : NULL);
}

/* ------------------------------------------------------------------ registrations (23) */

__typeof__(controller_register_broker) __real_controller_register_broker,
    __wrap_controller_register_broker;

static void check_left(const struct image *img, int32_t id)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t k = 0; k < t->partitions_n; k++) {
            const struct image_partition *p = &t->partitions[k];
            if (ghost_among(p->isr, p->isr_n, id) || ghost_among(p->elr, p->elr_n, id))
                violation("%s-%d: broker %d restarted uncleanly and is in ISR or ELR (23)", t->name,
                          k, id);
        }
    }
}

void __wrap_controller_register_broker(struct controller *c, struct controller_op *op,
                                       const struct broker_registration_request *req,
                                       struct broker_registration_response *resp, struct now now)
{
    const int32_t id = req->broker_id;
    const struct image_broker *b = image_broker(&c->ahead, id);
    const int64_t was = b == NULL ? -1 : b->epoch;
    __real_controller_register_broker(c, op, req, resp, now);
    b = image_broker(&c->ahead, id);
    if (ghost.f == NULL || c->state != CONTROLLER_ACTIVE || b == NULL || b->epoch == was)
        return;
    CHECK(id >= 1 && (size_t)id <= ghost.f->n);
    struct ghost_voter *v = &ghost.voters[id - 1];
    if (v->unclean)
        check_left(&c->ahead, id);
    v->unclean = false;
}

/* ------------------------------------------------------------------ answers (Q13) */

/* An operation that succeeds, and whom to tell. */
static struct answer {
    struct controller_op *op;
    void (*done)(struct controller_op *op, int16_t error);
    int32_t node_id;
} answers[ANSWERS];

__typeof__(controller_finish) __real_controller_finish, __wrap_controller_finish;

static void answer_done(struct controller_op *op, int16_t error)
{
    struct answer *a = answers;
    while (a < answers + ANSWERS && a->op != op)
        a++;
    CHECK(a < answers + ANSWERS);
    const struct answer mine = *a;
    *a = (struct answer){0};
    const struct node *n = ghost_node((size_t)mine.node_id - 1);
    if (error == K_NONE && op->offset >= n->raft->high_watermark)
        violation("node %d answers what stands at offset %lld of the metadata log, which is "
                  "committed to %lld (Q13)",
                  mine.node_id, (long long)op->offset, (long long)n->raft->high_watermark);
    op->done = mine.done;
    op->done(op, error);
}

void __wrap_controller_finish(struct controller *c, struct controller_op *op, int16_t error)
{
    __real_controller_finish(c, op, error);
    if (ghost.f == NULL || error != K_NONE)
        return;
    for (struct answer *a = answers; a < answers + ANSWERS; a++) {
        if (a->op != NULL)
            continue;
        *a = (struct answer){op, op->done, c->node_id};
        op->done = answer_done;
        return;
    }
}

void ghost_forget_answers(size_t i)
{
    for (struct answer *a = answers; a < answers + ANSWERS; a++)
        if (a->op != NULL && a->node_id == (int32_t)i + 1)
            *a = (struct answer){0};
}

/* ------------------------------------------------------------------ pre-votes (Q14) */

__typeof__(raft_vote) __real_raft_vote, __wrap_raft_vote;

void __wrap_raft_vote(struct raft *r, struct raft_op *op, const struct vote_request *in,
                      struct vote_response *out, struct now now)
{
    const struct raft_persist was = r->persist;
    const int32_t epoch = r->epoch, voted_id = r->voted_id;
    const bool persisting = r->persisting, again = r->persist_again;
    const bool pre_vote = in->topics.n == 1 && in->topics.v[0].partitions.n == 1 &&
                          in->topics.v[0].partitions.v[0].pre_vote &&
                          in->topics.v[0].partitions.v[0].replica_epoch <= r->epoch;
    __real_raft_vote(r, op, in, out, now);
    if (ghost.f != NULL && pre_vote &&
        (r->epoch != epoch || r->voted_id != voted_id || r->persisting != persisting ||
         r->persist_again != again || memcmp(&was.state, &r->persist.state, sizeof was.state) != 0))
        violation("node %d answers a pre-vote in epoch %d and is in epoch %d then, its vote for %d "
                  "(Q14)",
                  r->node_id, epoch, r->epoch, r->voted_id);
}
