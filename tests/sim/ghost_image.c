/* The invariants of what the controllers decided, as images tell it. */
#include <stdlib.h>

#include "base/check.h"
#include "ghost_inside.h"

static void check_partition_state(const struct image *img, const struct image_topic *t, int32_t k,
                                  size_t i)
{
    const struct image_partition *p = &t->partitions[k];
    if (p->replicas_n == 0)
        return;
    for (int32_t j = 0; j < p->isr_n; j++) {
        if (!ghost_among(p->replicas, p->replicas_n, p->isr[j]))
            violation("%s-%d: node %zu: %d is in the ISR and no replica (17)", t->name, k, i + 1,
                      p->isr[j]);
        if (ghost_among(p->elr, p->elr_n, p->isr[j]))
            violation("%s-%d: node %zu: %d is in ISR and ELR (19)", t->name, k, i + 1, p->isr[j]);
    }
    if (p->leader >= 0 && !ghost_among(p->isr, p->isr_n, p->leader))
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
    struct ghost_partition *gp = ghost_find(t->id, k);
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

static void look_partitions(const struct image *img, size_t i)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t k = 0; k < t->partitions_n; k++) {
            check_partition_state(img, t, k, i);
            take_state(t, k);
        }
    }
}

/* ------------------------------------------------------------------ all of an image (Q11, Q12) */

/* What the first node said that came this far. */
struct ghost_image {
    uint64_t hash;
    size_t node;
};

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_ids(uint64_t h, const int32_t *v, int32_t n)
{
    return hash_bytes(hash_bytes(h, &n, sizeof n), v, n > 0 ? (size_t)n * sizeof *v : 0);
}

enum { HASH_SEED = 0x811c9dc5 };

static uint64_t hash_partition(const struct image_topic *t, int32_t k)
{
    const struct image_partition *p = &t->partitions[k];
    const int32_t numbers[] = {
        k, p->leader, p->leader_epoch, p->partition_epoch, p->leader_recovery_state, p->replicas_n,
    };
    uint64_t h = hash_bytes(HASH_SEED, &t->id, sizeof t->id);
    h = hash_bytes(h, numbers, sizeof numbers);
    h = hash_ids(h, p->replicas, p->replicas_n);
    h = hash_ids(h, p->isr, p->isr_n);
    h = hash_ids(h, p->elr, p->elr_n);
    h = hash_ids(h, p->last_known_elr, p->last_known_elr_n);
    h = hash_ids(h, p->removing, p->removing_n);
    return hash_ids(h, p->adding, p->adding_n);
}

static uint64_t hash_broker(const struct image_broker *b)
{
    const bool states[] = {b->fenced, b->in_controlled_shutdown};
    uint64_t h = hash_bytes(HASH_SEED, &b->id, sizeof b->id);
    h = hash_bytes(h, &b->epoch, sizeof b->epoch);
    h = hash_bytes(h, &b->incarnation_id, sizeof b->incarnation_id);
    return hash_bytes(h, states, sizeof states);
}

static enum err add_record(void *ctx, struct bytes framed)
{
    uint64_t *sum = ctx;
    *sum += hash_bytes(HASH_SEED, framed.p, (size_t)framed.n);
    return ERR_NONE;
}

/* A sum: a snapshot and a log may give things another order. By what is there, and by what a
 * snapshot would say. */
static uint64_t hash_of(const struct image *img)
{
    const struct map_entry *e = NULL;
    uint64_t sum = 0;
    CHECK(image_snapshot(img, add_record, &sum) == ERR_NONE);
    while ((e = map_next(&img->topics_by_id, e)) != NULL) {
        const struct image_topic *t = map_value(e);
        for (int32_t k = 0; k < t->partitions_n; k++)
            sum += hash_partition(t, k);
    }
    while ((e = map_next(&img->brokers, e)) != NULL)
        sum += hash_broker(map_value(e));
    return sum;
}

static void check_same(const struct image *img, uint64_t hash, size_t i)
{
    struct ghost_image *first = map_get(&ghost.images, &img->next_offset, sizeof img->next_offset);
    if (first == NULL) {
        first = calloc(1, sizeof *first);
        CHECK(first != NULL && map_put(&ghost.images, &img->next_offset, sizeof img->next_offset,
                                       first) == ERR_NONE);
        *first = (struct ghost_image){hash, i};
    }
    if (first->hash != hash)
        violation("at offset %lld of the metadata log nodes %zu and %zu have different images "
                  "(Q11, Q12)",
                  (long long)img->next_offset, first->node + 1, i + 1);
}

void ghost_free_images(void)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&ghost.images, e)) != NULL)
        free(map_value(e));
    map_close(&ghost.images);
}

/* Of a transaction nothing is seen before its end. */
static void check_unchanged(const struct image *img, uint64_t hash, size_t i)
{
    if (hash != ghost.voters[i].image_hash)
        violation("node %zu shows half a transaction at offset %lld of the metadata log (Q12)",
                  i + 1, (long long)img->next_offset);
}

void ghost_look_image(const struct image *img, size_t i)
{
    struct ghost_voter *v = &ghost.voters[i];
    const uint64_t hash = hash_of(img);
    if (img->next_offset < v->image_offset)
        violation("node %zu goes back from offset %lld of the metadata log to %lld (Q12)", i + 1,
                  (long long)v->image_offset, (long long)img->next_offset);
    v->image_offset = img->next_offset;
    if (img->in_transaction) {
        check_unchanged(img, hash, i);
        return;
    }
    check_same(img, hash, i);
    v->image_hash = hash;
    look_partitions(img, i);
}
