/* Kafka's checks of a topic to be created, in its order: name, configuration, then the assignment
 * or the counts. */
#include "core/controller/collisions.h"
#include "core/controller/creation.h"
#include "core/metadata/topic_name.h"

/* ------------------------------------------------------------------ name */

static bool check_name(struct creation *cr, struct str name, struct refusal *r)
{
    char unified[COLLISION_MAX];
    if (!topic_name_valid(name))
        return creation_refuse(cr, r, K_INVALID_TOPIC_EXCEPTION,
                               "A topic name has 1 to 249 characters out of a-z, A-Z, 0-9, '.', "
                               "'_' and '-', and is neither '.' nor '..'");
    if (image_topic_named(&cr->c->ahead, name) != NULL)
        return creation_refuse(cr, r, K_TOPIC_ALREADY_EXISTS, "Topic %.*s exists", name.n, name.p);
    if (!collisions_unify(name, unified))
        return true;
    const char *other = collisions_find(cr->c, name);
    if (other == NULL)
        other = map_get(&cr->unified, unified, (size_t)name.n);
    if (other != NULL)
        return creation_refuse(cr, r, K_INVALID_TOPIC_EXCEPTION,
                               "Topic %.*s differs from topic %s only in '.' and '_'", name.n,
                               name.p, other);
    return true;
}

/* ------------------------------------------------------------------ partitions */

static bool plan_assignments(struct creation *cr,
                             const struct create_topics_request_creatable_topic *in,
                             struct new_partitions *np, struct refusal *r)
{
    if (in->replication_factor != -1 || in->num_partitions != -1)
        return creation_refuse(cr, r, K_INVALID_REQUEST,
                               "With assignments, partitions and replication factor must be -1");
    np->n = in->assignments.n;
    if (!new_partitions_open(cr, np, r))
        return false;
    for (int32_t i = 0; i < in->assignments.n; i++) {
        const int32_t index = in->assignments.v[i].partition_index;
        if (index < 0 || index >= np->n)
            return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "Partitions must be numbered from 0 without a gap");
        if (np->replicas[index] != NULL)
            return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "Partition %d is assigned twice", index);
        if (!new_partitions_assign(cr, np, index, in->assignments.v[i].broker_ids.v,
                                   in->assignments.v[i].broker_ids.n, r))
            return false;
    }
    return true;
}

static int64_t default_partitions(const struct controller *c)
{
    return config_int(c->config, "num.partitions");
}

int64_t creation_partitions(const struct controller *c,
                            const struct create_topics_request_creatable_topic *in)
{
    if (in->assignments.n > 0)
        return in->assignments.n;
    return in->num_partitions == -1 ? default_partitions(c) : in->num_partitions;
}

static bool plan_counts(struct creation *cr, const struct create_topics_request_creatable_topic *in,
                        struct new_partitions *np, struct refusal *r)
{
    if (in->replication_factor < -1 || in->replication_factor == 0)
        return creation_refuse(cr, r, K_INVALID_REPLICATION_FACTOR,
                               "Replication factor %d is neither positive nor -1",
                               in->replication_factor);
    if (in->num_partitions < -1 || in->num_partitions == 0)
        return creation_refuse(cr, r, K_INVALID_PARTITIONS,
                               "Number of partitions %d is neither positive nor -1",
                               in->num_partitions);
    np->n = (int32_t)creation_partitions(cr->c, in);
    np->rf = in->replication_factor == -1
                 ? (int32_t)config_int(cr->c->config, "default.replication.factor")
                 : in->replication_factor;
    return new_partitions_open(cr, np, r) && new_partitions_place(cr, np, r);
}

bool creation_plan(struct creation *cr, const struct create_topics_request_creatable_topic *in,
                   struct plan *p, struct refusal *r)
{
    *r = (struct refusal){K_NONE, STR_NULL};
    *p = (struct plan){0};
    if (!check_name(cr, in->name, r))
        return false;
    r->error = topic_values_check(cr->c, in, cr->arena, &p->values, &r->message);
    if (r->error != K_NONE)
        return false;
    return in->assignments.n > 0 ? plan_assignments(cr, in, &p->partitions, r)
                                 : plan_counts(cr, in, &p->partitions, r);
}
