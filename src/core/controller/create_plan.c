/* Kafka's checks of a topic to be created, in its order: name, configuration, then the assignment
 * or the counts. */
#include <stdarg.h>
#include <stdio.h>

#include "core/controller/collisions.h"
#include "core/controller/creation.h"
#include "core/metadata/topic_name.h"

bool creation_refuse(struct creation *cr, struct refusal *r, int16_t error, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *copy = arena_strdup(cr->arena, str_of(text));
    r->error = error;
    r->message = copy == NULL ? STR_NULL : str_of(copy);
    return false;
}

static bool no_memory(struct creation *cr, struct refusal *r)
{
    return creation_refuse(cr, r, K_UNKNOWN_SERVER_ERROR, "out of memory");
}

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

/* ------------------------------------------------------------------ assignment */

static bool active_in(const struct controller *c, const int32_t *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (election_broker_active(&c->ahead, v[i]))
            return true;
    return false;
}

static bool check_brokers(struct creation *cr, const int32_t *v, int32_t n, struct refusal *r)
{
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < i; j++)
            if (v[j] == v[i])
                return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                       "An assignment names broker %d twice", v[i]);
        const struct image_broker *b = image_broker(&cr->c->ahead, v[i]);
        if (b == NULL)
            return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "An assignment names broker %d, which is not registered", v[i]);
        if (placement_cordoned(b))
            return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "All log directories of broker %d are cordoned", v[i]);
    }
    return true;
}

static bool take_assignment(struct creation *cr, struct plan *p, int32_t index, int32_t *v,
                            int32_t n, struct refusal *r)
{
    if (n <= 0)
        return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "An assignment has no replicas");
    if (!check_brokers(cr, v, n, r))
        return false;
    if (p->rf != 0 && p->rf != n)
        return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "An assignment has %d replicas, another %d", n, p->rf);
    if (!active_in(cr->c, v, n))
        return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "No broker of the assignment of partition %d is active", index);
    p->rf = n;
    p->replicas[index] = v;
    p->replicas_n[index] = n;
    return true;
}

static bool new_arrays(struct creation *cr, struct plan *p)
{
    const size_t n = (size_t)p->partitions_n;
    p->replicas = arena_array(&cr->c->scratch, n, sizeof *p->replicas);
    p->replicas_n = arena_array(&cr->c->scratch, n, sizeof *p->replicas_n);
    return p->replicas != NULL && p->replicas_n != NULL;
}

static bool plan_assignments(struct creation *cr,
                             const struct create_topics_request_creatable_topic *in, struct plan *p,
                             struct refusal *r)
{
    if (in->replication_factor != -1 || in->num_partitions != -1)
        return creation_refuse(cr, r, K_INVALID_REQUEST,
                               "With assignments, partitions and replication factor must be -1");
    p->partitions_n = in->assignments.n;
    if (!new_arrays(cr, p))
        return no_memory(cr, r);
    for (int32_t i = 0; i < in->assignments.n; i++) {
        const int32_t index = in->assignments.v[i].partition_index;
        if (index < 0 || index >= p->partitions_n)
            return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "Partitions must be numbered from 0 without a gap");
        if (p->replicas[index] != NULL)
            return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "Partition %d is assigned twice", index);
        if (!take_assignment(cr, p, index, in->assignments.v[i].broker_ids.v,
                             in->assignments.v[i].broker_ids.n, r))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ counts */

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

static bool place(struct creation *cr, struct plan *p, struct refusal *r)
{
    if (!cr->placed && placement_open(cr->c, &cr->placement) != ERR_NONE)
        return no_memory(cr, r);
    cr->placed = true;
    if (p->rf > cr->placement.usable_n)
        return creation_refuse(cr, r, K_INVALID_REPLICATION_FACTOR,
                               "Replication factor %d, but brokers that can take replicas: %d",
                               p->rf, cr->placement.usable_n);
    if (!new_arrays(cr, p))
        return no_memory(cr, r);
    for (int32_t i = 0; i < p->partitions_n; i++) {
        p->replicas_n[i] = p->rf;
        p->replicas[i] = arena_array(&cr->c->scratch, (size_t)p->rf, sizeof(int32_t));
        if (p->replicas[i] == NULL)
            return no_memory(cr, r);
        placement_partition(&cr->placement, i, p->rf, p->replicas[i]);
        if (!active_in(cr->c, p->replicas[i], p->rf))
            return creation_refuse(cr, r, K_INVALID_REPLICATION_FACTOR,
                                   "All brokers are fenced or shutting down");
    }
    return true;
}

static bool plan_counts(struct creation *cr, const struct create_topics_request_creatable_topic *in,
                        struct plan *p, struct refusal *r)
{
    if (in->replication_factor < -1 || in->replication_factor == 0)
        return creation_refuse(cr, r, K_INVALID_REPLICATION_FACTOR,
                               "Replication factor %d is neither positive nor -1",
                               in->replication_factor);
    if (in->num_partitions < -1 || in->num_partitions == 0)
        return creation_refuse(cr, r, K_INVALID_PARTITIONS,
                               "Number of partitions %d is neither positive nor -1",
                               in->num_partitions);
    p->partitions_n = (int32_t)creation_partitions(cr->c, in);
    p->rf = in->replication_factor == -1
                ? (int32_t)config_int(cr->c->config, "default.replication.factor")
                : in->replication_factor;
    return place(cr, p, r);
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
    return in->assignments.n > 0 ? plan_assignments(cr, in, p, r) : plan_counts(cr, in, p, r);
}
