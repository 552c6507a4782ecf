#include "core/controller/partition_index.h"

#include <stdlib.h>

struct host {
    struct partition_set partitions;
    int64_t leads;
};

void partition_index_init(struct partition_index *x, uint64_t seed)
{
    map_init(&x->brokers, seed);
    partition_set_init(&x->leaderless, seed);
    partition_set_init(&x->not_preferred, seed);
    partition_set_init(&x->reassigning, seed);
}

void partition_index_close(struct partition_index *x)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&x->brokers, e)) != NULL) {
        struct host *h = map_value(e);
        partition_set_close(&h->partitions);
        free(h);
    }
    map_close(&x->brokers);
    partition_set_close(&x->leaderless);
    partition_set_close(&x->not_preferred);
    partition_set_close(&x->reassigning);
}

static struct host *find(const struct partition_index *x, int32_t id)
{
    return map_get(&x->brokers, &id, sizeof id);
}

/* Stays when it hosts nothing any more: as many as there are brokers. */
static struct host *find_or_new(struct partition_index *x, int32_t id)
{
    struct host *h = find(x, id);
    if (h != NULL)
        return h;
    h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    partition_set_init(&h->partitions, x->brokers.seed);
    if (map_put(&x->brokers, &id, sizeof id, h) == ERR_NONE)
        return h;
    free(h);
    return NULL;
}

void partition_index_remove(struct partition_index *x, struct uuid topic_id, int32_t index,
                            const struct image_partition *p, bool replicas)
{
    for (int32_t i = 0; replicas && i < p->replicas_n; i++) {
        struct host *h = find(x, p->replicas[i]);
        if (h != NULL)
            partition_set_remove(&h->partitions, topic_id, index);
    }
    struct host *leader = find(x, p->leader);
    if (leader != NULL)
        leader->leads--;
    partition_set_remove(&x->leaderless, topic_id, index);
    partition_set_remove(&x->not_preferred, topic_id, index);
    partition_set_remove(&x->reassigning, topic_id, index);
}

static enum err add_replicas(struct partition_index *x, struct uuid topic_id, int32_t index,
                             const struct image_partition *p)
{
    for (int32_t i = 0; i < p->replicas_n; i++) {
        struct host *h = find_or_new(x, p->replicas[i]);
        if (h == NULL || partition_set_add(&h->partitions, topic_id, index) != ERR_NONE)
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

static enum err add_leader(struct partition_index *x, struct uuid topic_id, int32_t index,
                           const struct image_partition *p)
{
    if (p->leader < 0)
        return partition_set_add(&x->leaderless, topic_id, index);
    struct host *leader = find_or_new(x, p->leader);
    if (leader == NULL)
        return ERR_NOMEM;
    leader->leads++;
    return ERR_NONE;
}

enum err partition_index_add(struct partition_index *x, struct uuid topic_id, int32_t index,
                             const struct image_partition *p, bool replicas)
{
    enum err e = replicas ? add_replicas(x, topic_id, index, p) : ERR_NONE;
    if (e == ERR_NONE)
        e = add_leader(x, topic_id, index, p);
    if (e == ERR_NONE && p->leader != p->replicas[0])
        e = partition_set_add(&x->not_preferred, topic_id, index);
    if (e == ERR_NONE && (p->removing_n > 0 || p->adding_n > 0))
        e = partition_set_add(&x->reassigning, topic_id, index);
    return e;
}

enum err partition_index_fill(struct partition_index *x, const struct image *img)
{
    const struct map_entry *it = NULL;
    while ((it = map_next(&img->topics_by_id, it)) != NULL) {
        const struct image_topic *t = map_value(it);
        enum err e = ERR_NONE;
        for (int32_t i = 0; i < t->partitions_n && e == ERR_NONE; i++)
            if (t->partitions[i].replicas_n > 0)
                e = partition_index_add(x, t->id, i, &t->partitions[i], true);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}

const struct partition_set *partition_index_hosted(const struct partition_index *x,
                                                   int32_t broker_id)
{
    const struct host *h = find(x, broker_id);
    return h == NULL ? NULL : &h->partitions;
}

bool partition_index_leads(const struct partition_index *x, int32_t broker_id)
{
    const struct host *h = find(x, broker_id);
    return h != NULL && h->leads > 0;
}
