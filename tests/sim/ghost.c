#include "ghost.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"
#include "ghost_inside.h"
#include "node/inside.h"

struct ghost ghost;

/* ------------------------------------------------------------------ begin and end */

static void partition_init(struct ghost_partition *p)
{
    mirror_book_init(&p->book);
    map_init(&p->leaders, 1);
    p->state.leader_epoch = p->state.partition_epoch = -1;
}

static void partition_close(struct ghost_partition *p)
{
    for (size_t i = 0; i < FLEET_MAX; i++)
        mirror_close(&p->replicas[i].mirror);
    mirror_close(&p->committed);
    mirror_book_close(&p->book);
    map_close(&p->leaders);
}

void ghost_begin(struct fleet *f)
{
    memset(&ghost, 0, sizeof ghost);
    ghost.f = f;
    ghost.recovering = -1;
    map_init(&ghost.images, 1);
    ghost.partitions = calloc(GHOST_PARTITIONS, sizeof *ghost.partitions);
    CHECK(ghost.partitions != NULL);
    snprintf(ghost.quorum.name, sizeof ghost.quorum.name, "__cluster_metadata");
    partition_init(&ghost.quorum);
}

void ghost_end(void)
{
    for (size_t i = 0; i < ghost.n; i++)
        partition_close(&ghost.partitions[i]);
    for (size_t i = 0; i < FLEET_MAX; i++)
        mirror_close(&ghost.voters[i].mirror);
    partition_close(&ghost.quorum);
    ghost_free_images();
    free(ghost.partitions);
    memset(&ghost, 0, sizeof ghost); /* nobody is looked at */
}

struct ghost_partition *ghost_find(struct uuid topic_id, int32_t index)
{
    for (size_t i = 0; i < ghost.n; i++)
        if (ghost.partitions[i].index == index && uuid_eq(ghost.partitions[i].topic_id, topic_id))
            return &ghost.partitions[i];
    return NULL;
}

static struct ghost_partition *partition_of(const struct partition *p)
{
    struct ghost_partition *gp = ghost_find(p->topic_id, p->index);
    if (gp != NULL)
        return gp;
    CHECK(ghost.n < GHOST_PARTITIONS);
    gp = &ghost.partitions[ghost.n++];
    snprintf(gp->name, sizeof gp->name, "%s-%d", p->topic, p->index);
    gp->topic_id = p->topic_id;
    gp->index = p->index;
    partition_init(gp);
    return gp;
}

const struct node *ghost_node(size_t i)
{
    return ghost.f->worlds[i].node;
}

bool ghost_registered(const struct image *img, size_t i)
{
    const struct node *n = ghost_node(i);
    const struct image_broker *b = image_broker(img, (int32_t)i + 1);
    return b != NULL && n != NULL && n->broker != NULL && broker_epoch(n->broker) == b->epoch;
}

/* ------------------------------------------------------------------ images */

bool ghost_among(const int32_t *v, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (v[i] == id)
            return true;
    return false;
}

const struct image_partition *ghost_newest(const struct ghost_partition *gp)
{
    struct image_topic *t =
        ghost.newest == NULL ? NULL : image_topic_by_id(ghost.newest, gp->topic_id);
    return t == NULL ? NULL : image_partition(t, gp->index);
}

void ghost_find_newest(void)
{
    ghost.newest = NULL;
    for (size_t i = 0; i < ghost.f->n; i++) {
        const struct node *n = ghost_node(i);
        if (n != NULL && (ghost.newest == NULL || n->image.next_offset > ghost.newest->next_offset))
            ghost.newest = &n->image;
    }
}

/* ------------------------------------------------------------------ all */

static void look_image(struct node *n, size_t i)
{
    struct ghost_voter *v = &ghost.voters[i];
    if (n->image.next_offset != v->image_offset)
        ghost_look_image(&n->image, i);
}

static void look_partitions(const struct replicas *rs, struct world *w, size_t i)
{
    for (const struct list *l = rs->all.next; l != &rs->all; l = l->next) {
        if (l == &rs->walk)
            continue;
        struct partition *p = LIST_ENTRY(l, struct partition, all);
        struct ghost_partition *gp = partition_of(p);
        ghost_look_partition(gp, p, w, i);
        ghost_check_candidate(gp, i);
    }
}

void ghost_look(size_t i)
{
    if (ghost.f == NULL)
        return;
    struct world *w = &ghost.f->worlds[i];
    struct node *n = w->node;
    if (n == NULL || n->state == NODE_FAILED)
        return;
    if (n->raft != NULL && n->raft->log != NULL)
        ghost_look_quorum(n, w, i);
    ghost_find_newest();
    look_image(n, i);
    if (n->replicas != NULL && !n->replicas->closing)
        look_partitions(n->replicas, w, i);
}

static void end_life(struct mirror *m, enum mirror_life life)
{
    if (life == MIRROR_KILLED && m->behind)
        life = MIRROR_CRASHED;
    if (life > m->life)
        m->life = life;
}

static void gone(size_t i, enum mirror_life life)
{
    for (size_t k = 0; k < ghost.n; k++) {
        struct ghost_replica *gr = &ghost.partitions[k].replicas[i];
        gr->seen = gr->leading = gr->blind = false;
        end_life(&gr->mirror, life);
    }
    struct ghost_voter *v = &ghost.voters[i];
    v->seen = false;
    v->state = RAFT_UNATTACHED;
    v->high_watermark = -1;
    v->image_offset = 0;
    v->image_hash = 0;
    end_life(&v->mirror, life);
    ghost_forget_answers(i);
}

void ghost_stopped(size_t i)
{
    if (ghost.f != NULL)
        gone(i, MIRROR_CRASHED); /* its last turn was not looked at */
}

void ghost_gone(size_t i, bool power, bool inside)
{
    if (ghost.f == NULL)
        return;
    const struct node *n = ghost_node(i);
    ghost.voters[i].unclean |= n != NULL && n->broker != NULL && broker_epoch(n->broker) >= 0;
    gone(i, power ? MIRROR_POWER : inside ? MIRROR_CRASHED : MIRROR_KILLED);
}

void ghost_wiped(size_t i)
{
    if (ghost.f == NULL)
        return;
    for (size_t k = 0; k < ghost.n; k++) {
        struct ghost_replica *gr = &ghost.partitions[k].replicas[i];
        mirror_close(&gr->mirror);
        *gr = (struct ghost_replica){.mirror = {.life = MIRROR_NEW}};
    }
    ghost.wiped_n += ghost.f->shape.dynamic && fleet_is_controller(ghost.f, i);
    mirror_close(&ghost.voters[i].mirror);
    ghost.voters[i] =
        (struct ghost_voter){.mirror = {.life = MIRROR_NEW}, .high_watermark = -1, .unclean = true};
}

void ghost_allow_unclean(void)
{
    ghost.unclean_allowed = true;
}

bool ghost_is_lossy(struct uuid topic_id, int32_t index)
{
    const struct ghost_partition *gp = ghost_find(topic_id, index);
    return gp != NULL && gp->lossy;
}

/* min.insync.replicas was changed while everybody was out of the ISR. */
static bool is_stuck(const struct ghost_partition *gp, const struct image_partition *ip)
{
    return gp->cleared && ip->leader < 0 && ip->isr_n + ip->elr_n + ip->last_known_elr_n == 0;
}

bool ghost_is_stuck(struct uuid topic_id, int32_t index)
{
    const struct ghost_partition *gp = ghost_find(topic_id, index);
    ghost_find_newest();
    const struct image_partition *ip = gp == NULL ? NULL : ghost_newest(gp);
    return ip != NULL && is_stuck(gp, ip);
}

void ghost_allow_loss(void)
{
    ghost.unclean_allowed = true;
    for (size_t k = 0; k < ghost.n; k++)
        ghost.partitions[k].lossy = true;
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

/* Who is added is also to go: what Kafka makes of a reassignment that takes back one before it, and
 * that ends only when it is cancelled. */
static bool is_contradiction(const struct image_partition *ip)
{
    for (int32_t i = 0; i < ip->adding_n; i++)
        if (ghost_among(ip->removing, ip->removing_n, ip->adding[i]))
            return true;
    return false;
}

static void add_ids(char *why, size_t why_n, const char *what, const int32_t *v, int32_t n)
{
    size_t at = strlen(why);
    at += (size_t)snprintf(why + at, why_n - at, " %s[", what);
    for (int32_t i = 0; i < n && at < why_n; i++)
        at += (size_t)snprintf(why + at, why_n - at, "%s%d", i == 0 ? "" : " ", v[i]);
    if (at < why_n)
        snprintf(why + at, why_n - at, "]");
}

static bool is_whole(const struct ghost_partition *gp, const struct image_partition *ip, char *why,
                     size_t why_n)
{
    const bool reassigned = ip->adding_n + ip->removing_n == 0 || is_contradiction(ip);
    if (reassigned && ip->isr_n == ip->replicas_n)
        return true;
    snprintf(why, why_n, "%s: leader %d", gp->name, ip->leader);
    add_ids(why, why_n, "replicas", ip->replicas, ip->replicas_n);
    add_ids(why, why_n, "ISR", ip->isr, ip->isr_n);
    add_ids(why, why_n, "ELR", ip->elr, ip->elr_n);
    add_ids(why, why_n, "last known", ip->last_known_elr, ip->last_known_elr_n);
    add_ids(why, why_n, "adding", ip->adding, ip->adding_n);
    add_ids(why, why_n, "removing", ip->removing, ip->removing_n);
    return false;
}

static bool is_up(size_t i, char *why, size_t why_n)
{
    const struct node *n = ghost_node(i);
    if (n == NULL || n->state != NODE_READY) {
        snprintf(why, why_n, "node %zu is not ready", i + 1);
        return false;
    }
    if (n->image.next_offset != ghost.newest->next_offset) {
        snprintf(why, why_n, "node %zu has metadata up to %lld of %lld", i + 1,
                 (long long)n->image.next_offset, (long long)ghost.newest->next_offset);
        return false;
    }
    return true;
}

bool ghost_settled(char *why, size_t why_n)
{
    ghost_find_newest();
    for (size_t i = 0; i < ghost.f->n; i++)
        if (!is_up(i, why, why_n))
            return false;
    for (size_t k = 0; k < ghost.n; k++) {
        const struct ghost_partition *gp = &ghost.partitions[k];
        const struct image_partition *ip = ghost_newest(gp);
        if (ip == NULL || ip->replicas_n == 0 || is_stuck(gp, ip))
            continue;
        if (!is_whole(gp, ip, why, why_n) || !same_logs(gp, ip, why, why_n))
            return false;
    }
    return true;
}
