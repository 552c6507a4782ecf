/* What one CreateTopics or CreatePartitions works with; shared by create_topics.c and
 * create_partitions.c (the request and its results), create_plan.c (may a topic be created, and
 * how) and new_partitions.c (where new partitions go, and their records). */
#ifndef CONTROLLER_CREATION_H
#define CONTROLLER_CREATION_H

#include "core/controller/inside.h"

struct creation {
    struct controller *c;
    struct arena *arena; /* of the response */
    struct record_list records;
    struct map unified; /* names with '.' or '_' that this request creates, as they collide */
    struct placement placement;
    bool placed; /* placement is open */
    int16_t version;
};

/* Partitions that a topic may get: [first, first + n). */
struct new_partitions {
    int32_t first, n;
    int32_t rf;         /* of partition 0; 0: not known yet */
    int32_t **replicas; /* of each */
    int32_t *replicas_n;
};

/* One topic that may be created. */
struct plan {
    struct topic_values values;
    struct new_partitions partitions;
};

struct refusal {
    int16_t error; /* K_NONE: none */
    struct str message;
};

void creation_open(struct creation *cr, struct controller *c, struct arena *a, int16_t version);
void creation_close(struct creation *cr);
/* Sets r and answers false, for `return refuse(...)`. */
__attribute__((format(printf, 4, 5))) bool creation_refuse(struct creation *cr, struct refusal *r,
                                                           int16_t error, const char *fmt, ...);
/* The same, the message in a. */
__attribute__((format(printf, 4, 5))) bool refusal_set(struct arena *a, struct refusal *r,
                                                       int16_t error, const char *fmt, ...);
/* False: refused. p lives in the controller's scratch. */
bool creation_plan(struct creation *cr, const struct create_topics_request_creatable_topic *in,
                   struct plan *p, struct refusal *r);
/* Partitions that a topic asks for, for the limit. */
int64_t creation_partitions(const struct controller *c,
                            const struct create_topics_request_creatable_topic *in);

/* ------------------------------------------------------------------ new_partitions.c */

/* May these brokers be a partition's replicas? False: refused, the message in a. */
bool replicas_check(struct controller *c, struct arena *a, const int32_t *v, int32_t n,
                    struct refusal *r);
/* Room for np->n partitions; then each is assigned, or all are placed. */
bool new_partitions_open(struct creation *cr, struct new_partitions *np, struct refusal *r);
/* Partition first + i goes to the brokers v, which stay the request's. */
bool new_partitions_assign(struct creation *cr, struct new_partitions *np, int32_t i, int32_t *v,
                           int32_t n, struct refusal *r);
bool new_partitions_place(struct creation *cr, struct new_partitions *np, struct refusal *r);
/* Their PartitionRecords, each led by its first active replica. */
MUST_USE enum err new_partitions_add(struct creation *cr, struct uuid topic_id,
                                     const struct new_partitions *np);

#endif
