/* Where the new partitions of a topic go, assigned by the client or placed, and their records. */
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "core/controller/creation.h"

void creation_open(struct creation *cr, struct controller *c, struct arena *a, int16_t version)
{
    *cr = (struct creation){.c = c, .arena = a, .version = version};
    record_list_init(&cr->records);
    map_init(&cr->unified, c->ahead.seed);
}

void creation_close(struct creation *cr)
{
    map_close(&cr->unified);
    record_list_close(&cr->records);
}

__attribute__((format(printf, 4, 0))) static bool refuse(struct arena *a, struct refusal *r,
                                                         int16_t error, const char *fmt, va_list ap)
{
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    const char *copy = arena_strdup(a, str_of(text));
    r->error = error;
    r->message = copy == NULL ? STR_NULL : str_of(copy);
    return false;
}

bool refusal_set(struct arena *a, struct refusal *r, int16_t error, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    refuse(a, r, error, fmt, ap);
    va_end(ap);
    return false;
}

bool creation_refuse(struct creation *cr, struct refusal *r, int16_t error, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    refuse(cr->arena, r, error, fmt, ap);
    va_end(ap);
    return false;
}

static bool no_memory(struct creation *cr, struct refusal *r)
{
    return creation_refuse(cr, r, K_UNKNOWN_SERVER_ERROR, "out of memory");
}

bool new_partitions_open(struct creation *cr, struct new_partitions *np, struct refusal *r)
{
    const size_t n = (size_t)np->n;
    np->replicas = arena_array(&cr->c->scratch, n, sizeof *np->replicas);
    np->replicas_n = arena_array(&cr->c->scratch, n, sizeof *np->replicas_n);
    return (np->replicas != NULL && np->replicas_n != NULL) || no_memory(cr, r);
}

static bool active_in(const struct controller *c, const int32_t *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (election_broker_active(&c->ahead, v[i]))
            return true;
    return false;
}

/* ------------------------------------------------------------------ assigned */

bool replicas_check(struct controller *c, struct arena *a, const int32_t *v, int32_t n,
                    struct refusal *r)
{
    if (n <= 0)
        return refusal_set(a, r, K_INVALID_REPLICA_ASSIGNMENT, "An assignment has no replicas");
    for (int32_t i = 0; i < n; i++) {
        const struct image_broker *b = image_broker(&c->ahead, v[i]);
        if (b == NULL)
            return refusal_set(a, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "An assignment names broker %d, which is not registered", v[i]);
        for (int32_t j = 0; j < i; j++)
            if (v[j] == v[i])
                return refusal_set(a, r, K_INVALID_REPLICA_ASSIGNMENT,
                                   "An assignment names broker %d twice", v[i]);
        if (placement_cordoned(b))
            return refusal_set(a, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "All log directories of broker %d are cordoned", v[i]);
    }
    return true;
}

bool new_partitions_assign(struct creation *cr, struct new_partitions *np, int32_t i, int32_t *v,
                           int32_t n, struct refusal *r)
{
    if (!replicas_check(cr->c, cr->arena, v, n, r))
        return false;
    if (np->rf != 0 && np->rf != n)
        return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "An assignment has %d replicas, another %d", n, np->rf);
    if (!active_in(cr->c, v, n))
        return creation_refuse(cr, r, K_INVALID_REPLICA_ASSIGNMENT,
                               "No broker of the assignment of partition %d is active",
                               np->first + i);
    np->rf = n;
    np->replicas[i] = v;
    np->replicas_n[i] = n;
    return true;
}

/* ------------------------------------------------------------------ placed */

bool new_partitions_place(struct creation *cr, struct new_partitions *np, struct refusal *r)
{
    if (!cr->placed && placement_open(cr->c, &cr->placement) != ERR_NONE)
        return no_memory(cr, r);
    cr->placed = true;
    if (np->rf > cr->placement.usable_n)
        return creation_refuse(cr, r, K_INVALID_REPLICATION_FACTOR,
                               "Replication factor %d, but brokers that can take replicas: %d",
                               np->rf, cr->placement.usable_n);
    for (int32_t i = 0; i < np->n; i++) {
        np->replicas_n[i] = np->rf;
        np->replicas[i] = arena_array(&cr->c->scratch, (size_t)np->rf, sizeof(int32_t));
        if (np->replicas[i] == NULL)
            return no_memory(cr, r);
        placement_partition(&cr->placement, np->first + i, np->rf, np->replicas[i]);
        if (!active_in(cr->c, np->replicas[i], np->rf))
            return creation_refuse(cr, r, K_INVALID_REPLICATION_FACTOR,
                                   "All brokers are fenced or shutting down");
    }
    return true;
}

/* ------------------------------------------------------------------ records */

static enum err add_partition(struct creation *cr, struct uuid topic_id, int32_t index,
                              int32_t *replicas, int32_t n)
{
    const struct image *img = &cr->c->ahead;
    const int16_t version = record_version_partition(image_metadata_version(img));
    struct partition_record r;
    struct uuid *dirs = arena_array(&cr->c->scratch, (size_t)n, sizeof *dirs);
    int32_t *isr = arena_array(&cr->c->scratch, (size_t)n, sizeof *isr);
    if (dirs == NULL || isr == NULL)
        return ERR_NOMEM;
    wire_default(&wire_partition_record, &r);
    for (int32_t i = 0; i < n; i++) {
        dirs[i] = image_default_directory(img, replicas[i]);
        if (election_broker_active(img, replicas[i]))
            isr[r.isr.n++] = replicas[i];
    }
    CHECK(r.isr.n > 0);
    r.partition_id = index;
    r.topic_id = topic_id;
    r.replicas.v = replicas;
    r.replicas.n = n;
    r.isr.v = isr;
    r.leader = isr[0];
    r.leader_epoch = r.partition_epoch = 0;
    if (version >= 1) {
        r.directories.v = dirs;
        r.directories.n = n;
    }
    return record_list_add(&cr->records, &msg_partition_record, version, &r);
}

enum err new_partitions_add(struct creation *cr, struct uuid topic_id,
                            const struct new_partitions *np)
{
    enum err e = ERR_NONE;
    for (int32_t i = 0; e == ERR_NONE && i < np->n; i++)
        e = add_partition(cr, topic_id, np->first + i, np->replicas[i], np->replicas_n[i]);
    return e;
}
