/* The verbs of dohle cluster, and questions that all brokers are asked. */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "cli/line.h"

extern const struct verb cluster_info, cluster_health;

/* Asks every broker of m and waits; *out has an answer or an error for each. */
int cluster_ask_brokers(struct client *c, const struct metadata *m, enum api_key api,
                        int16_t max_version, const void *request, struct answer **out);
void cluster_free_answers(const struct metadata *m, struct answer *v);
/* -1: there is none. */
int32_t cluster_controller(struct client *c, const struct metadata *m);

#endif
