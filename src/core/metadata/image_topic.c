#include <stdlib.h>

#include "core/metadata/image_impl.h"

static void partition_close(struct image_partition *p)
{
    free(p->replicas);
    free(p->isr);
    free(p->elr);
    free(p->last_known_elr);
    free(p->removing);
    free(p->adding);
    free(p->directories);
    *p = (struct image_partition){0};
}

void image_topic_free(struct image_topic *t)
{
    if (t == NULL)
        return;
    for (int32_t i = 0; i < t->partitions_n; i++)
        partition_close(&t->partitions[i]);
    free(t->partitions);
    free(t->name);
    free(t);
}

enum err image_add_topic(struct image *img, const struct topic_record *r)
{
    if (r->name.n <= 0 || image_topic_named(img, r->name) != NULL ||
        image_topic_by_id(img, r->topic_id) != NULL)
        return ERR_CORRUPT;
    struct image_topic *t = calloc(1, sizeof *t);
    if (t == NULL)
        return ERR_NOMEM;
    t->id = r->topic_id;
    t->name = image_text(r->name);
    if (t->name == NULL ||
        map_put(&img->topics_by_name, r->name.p, (size_t)r->name.n, t) != ERR_NONE) {
        image_topic_free(t);
        return ERR_NOMEM;
    }
    if (map_put(&img->topics_by_id, t->id.b, sizeof t->id.b, t) != ERR_NONE) {
        (void)map_remove(&img->topics_by_name, r->name.p, (size_t)r->name.n);
        image_topic_free(t);
        return ERR_NOMEM;
    }
    return ERR_NONE;
}

enum err image_remove_topic(struct image *img, const struct remove_topic_record *r,
                            struct image_delta *d)
{
    struct image_topic *t = image_topic_by_id(img, r->topic_id);
    if (t == NULL)
        return ERR_CORRUPT;
    if (d != NULL) {
        enum err e = image_delta_add_deleted(d, t->id, t->name, t->partitions_n);
        if (e != ERR_NONE)
            return e;
    }
    const struct str name = str_of(t->name);
    enum err e = image_remove_config(img, CONFIG_RESOURCE_TOPIC, name);
    if (e != ERR_NONE)
        return e;
    for (int32_t i = 0; i < t->partitions_n; i++)
        img->partitions_n -= t->partitions[i].replicas_n > 0;
    (void)map_remove(&img->topics_by_name, name.p, (size_t)name.n);
    (void)map_remove(&img->topics_by_id, t->id.b, sizeof t->id.b);
    image_topic_free(t);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ partitions */

/* Makes room up to index; the new ones are not there yet. */
static enum err reach(struct image_topic *t, int32_t index)
{
    if (index < 0 || index >= IMAGE_PARTITIONS_MAX)
        return ERR_CORRUPT;
    if (index >= t->partitions_cap) {
        int32_t cap = t->partitions_cap * 2 > index + 1 ? t->partitions_cap * 2 : index + 1;
        struct image_partition *p = realloc(t->partitions, (size_t)cap * sizeof *p);
        if (p == NULL)
            return ERR_NOMEM;
        t->partitions = p;
        t->partitions_cap = cap;
    }
    while (t->partitions_n <= index)
        t->partitions[t->partitions_n++] = (struct image_partition){0};
    return ERR_NONE;
}

static enum err fill(struct image_partition *p, const struct partition_record *r)
{
    *p = (struct image_partition){
        .replicas_n = r->replicas.n,
        .isr_n = r->isr.n,
        .elr_n = r->eligible_leader_replicas.n < 0 ? 0 : r->eligible_leader_replicas.n,
        .last_known_elr_n = r->last_known_elr.n < 0 ? 0 : r->last_known_elr.n,
        .removing_n = r->removing_replicas.n,
        .adding_n = r->adding_replicas.n,
        .leader = r->leader,
        .leader_epoch = r->leader_epoch,
        .partition_epoch = r->partition_epoch,
        .leader_recovery_state = r->leader_recovery_state,
    };
    if (r->replicas.n <= 0 || (r->directories.n > 0 && r->directories.n != r->replicas.n))
        return ERR_CORRUPT;
    enum err e = image_ints(r->replicas.v, r->replicas.n, &p->replicas);
    if (e == ERR_NONE)
        e = image_ints(r->isr.v, r->isr.n, &p->isr);
    if (e == ERR_NONE)
        e = image_ints(r->eligible_leader_replicas.v, p->elr_n, &p->elr);
    if (e == ERR_NONE)
        e = image_ints(r->last_known_elr.v, p->last_known_elr_n, &p->last_known_elr);
    if (e == ERR_NONE)
        e = image_ints(r->removing_replicas.v, p->removing_n, &p->removing);
    if (e == ERR_NONE)
        e = image_ints(r->adding_replicas.v, p->adding_n, &p->adding);
    if (e == ERR_NONE)
        e = image_uuids(r->directories.v, r->directories.n, &p->directories);
    return e;
}

enum err image_set_partition(struct image *img, const struct partition_record *r,
                             struct image_delta *d)
{
    struct image_topic *t = image_topic_by_id(img, r->topic_id);
    if (t == NULL)
        return ERR_CORRUPT;
    struct image_partition p;
    enum err e = fill(&p, r);
    if (e == ERR_NONE)
        e = reach(t, r->partition_id);
    if (e == ERR_NONE && d != NULL)
        e = image_delta_add_partition(d, t->id, r->partition_id);
    if (e != ERR_NONE) {
        partition_close(&p);
        return e;
    }
    struct image_partition *at = &t->partitions[r->partition_id];
    img->partitions_n += at->replicas_n == 0;
    partition_close(at);
    *at = p;
    return ERR_NONE;
}

/* n < 0: the record does not change it. */
static enum err change_ints(int32_t **have, int32_t *have_n, const int32_t *v, int32_t n)
{
    if (n < 0)
        return ERR_NONE;
    int32_t *copy;
    enum err e = image_ints(v, n, &copy);
    if (e != ERR_NONE)
        return e;
    free(*have);
    *have = copy;
    *have_n = n;
    return ERR_NONE;
}

/* Directories that a record does not name stay, with the replicas that they belong to. */
static enum err change_replicas(struct image_partition *p, const struct partition_change_record *r)
{
    struct uuid *dirs = NULL;
    const int32_t n = r->replicas.n < 0 ? p->replicas_n : r->replicas.n;
    const bool stay = r->directories.n < 0 && n == p->replicas_n;
    if (n == 0 || (r->directories.n > 0 && r->directories.n != n))
        return ERR_CORRUPT;
    enum err e = stay ? ERR_NONE : image_uuids(r->directories.v, r->directories.n, &dirs);
    if (e != ERR_NONE)
        return e;
    e = change_ints(&p->replicas, &p->replicas_n, r->replicas.v, r->replicas.n);
    if (e != ERR_NONE) {
        free(dirs);
        return e;
    }
    if (!stay) {
        free(p->directories);
        p->directories = dirs;
    }
    return ERR_NONE;
}

enum err image_change_partition(struct image *img, const struct partition_change_record *r,
                                struct image_delta *d)
{
    struct image_topic *t = image_topic_by_id(img, r->topic_id);
    struct image_partition *p = t == NULL ? NULL : image_partition(t, r->partition_id);
    if (p == NULL)
        return ERR_CORRUPT;
    enum err e = change_replicas(p, r);
    if (e == ERR_NONE)
        e = change_ints(&p->isr, &p->isr_n, r->isr.v, r->isr.n);
    if (e == ERR_NONE)
        e = change_ints(&p->elr, &p->elr_n, r->eligible_leader_replicas.v,
                        r->eligible_leader_replicas.n);
    if (e == ERR_NONE)
        e = change_ints(&p->last_known_elr, &p->last_known_elr_n, r->last_known_elr.v,
                        r->last_known_elr.n);
    if (e == ERR_NONE)
        e = change_ints(&p->removing, &p->removing_n, r->removing_replicas.v,
                        r->removing_replicas.n);
    if (e == ERR_NONE)
        e = change_ints(&p->adding, &p->adding_n, r->adding_replicas.v, r->adding_replicas.n);
    if (e == ERR_NONE && d != NULL)
        e = image_delta_add_partition(d, t->id, r->partition_id);
    if (e != ERR_NONE)
        return e;
    if (r->leader != -2) {
        p->leader = r->leader;
        p->leader_epoch++;
    }
    if (r->leader_recovery_state >= 0)
        p->leader_recovery_state = r->leader_recovery_state;
    p->partition_epoch++;
    return ERR_NONE;
}

static enum err clear_topic(struct image_topic *t, struct image_delta *d)
{
    for (int32_t i = 0; i < t->partitions_n; i++) {
        struct image_partition *p = &t->partitions[i];
        if (p->elr_n == 0 && p->last_known_elr_n == 0)
            continue;
        if (d != NULL) {
            enum err e = image_delta_add_partition(d, t->id, i);
            if (e != ERR_NONE)
                return e;
        }
        free(p->elr);
        free(p->last_known_elr);
        p->elr = p->last_known_elr = NULL;
        p->elr_n = p->last_known_elr_n = 0;
        p->partition_epoch++;
    }
    return ERR_NONE;
}

/* Without a name: in every topic (KIP-966). */
enum err image_clear_elr(struct image *img, struct str topic, struct image_delta *d)
{
    if (topic.n > 0) {
        struct image_topic *t = image_topic_named(img, topic);
        return t == NULL ? ERR_CORRUPT : clear_topic(t, d);
    }
    const struct map_entry *it = NULL;
    while ((it = map_next(&img->topics_by_id, it)) != NULL) {
        enum err e = clear_topic(map_value(it), d);
        if (e != ERR_NONE)
            return e;
    }
    return ERR_NONE;
}
