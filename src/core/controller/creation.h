/* What one CreateTopics works with; shared by create_topics.c (the request, results, records) and
 * create_plan.c (may a topic be created, and how). */
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

/* One topic that may be created. */
struct plan {
    struct topic_values values;
    int32_t partitions_n;
    int32_t rf;         /* of partition 0 */
    int32_t **replicas; /* of each partition */
    int32_t *replicas_n;
};

struct refusal {
    int16_t error; /* K_NONE: none */
    struct str message;
};

/* Sets r and answers false, for `return refuse(...)`. */
__attribute__((format(printf, 4, 5))) bool creation_refuse(struct creation *cr, struct refusal *r,
                                                           int16_t error, const char *fmt, ...);
/* False: refused. p lives in the controller's scratch. */
bool creation_plan(struct creation *cr, const struct create_topics_request_creatable_topic *in,
                   struct plan *p, struct refusal *r);
/* Partitions that a topic asks for, for the limit. */
int64_t creation_partitions(const struct controller *c,
                            const struct create_topics_request_creatable_topic *in);

#endif
