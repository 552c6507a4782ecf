/* dohle cluster: what the cluster is, and whether it is well. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cluster.h"

static const struct verb *const verbs[] = {&cluster_info, &cluster_health};

static int run(char **argv, int n)
{
    return line_verbs("cluster", "Tells what the cluster is, and whether it is well.", verbs,
                      ARRAY_N(verbs), argv, n);
}

const struct cli_command cli_cluster = {"cluster", "what the cluster is, and whether it is well",
                                        run};

/* ------------------------------------------------------------------ brokers */

int cluster_ask_brokers(struct client *c, const struct metadata *m, enum api_key api,
                        int16_t max_version, const void *request, struct answer **out)
{
    struct answer *v = calloc(m->brokers_n + 1, sizeof *v);
    if (v == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < m->brokers_n; i++)
        client_ask(c, client_broker(c, m->brokers[i].id), &v[i], api, max_version, request);
    client_wait(c, v, m->brokers_n);
    *out = v;
    return CLI_OK;
}

void cluster_free_answers(const struct metadata *m, struct answer *v)
{
    for (size_t i = 0; i < m->brokers_n && v != NULL; i++)
        answer_close(&v[i]);
    free(v);
}

/* ------------------------------------------------------------------ the controller */

/* The leader of the metadata quorum; what Metadata calls the controller is any broker that passes
 * requests on to it. */
int32_t cluster_controller(struct client *c, const struct metadata *m)
{
    struct describe_quorum_request request;
    struct describe_quorum_request_topic_data topic;
    struct describe_quorum_request_partition_data partition;
    struct answer a;
    struct broker *b = m->brokers_n == 0 ? NULL : client_broker(c, m->controller_id);
    int32_t leader = -1;
    if (b == NULL && m->brokers_n > 0)
        b = client_broker(c, m->brokers[0].id);
    if (b == NULL)
        return m->controller_id;
    wire_default(&wire_describe_quorum_request, &request);
    wire_default(&wire_describe_quorum_request_topic_data, &topic);
    wire_default(&wire_describe_quorum_request_partition_data, &partition);
    topic.topic_name = STR_LIT("__cluster_metadata");
    topic.partitions.v = &partition;
    topic.partitions.n = 1;
    request.topics.v = &topic;
    request.topics.n = 1;
    client_ask(c, b, &a, API_DESCRIBE_QUORUM, -1, &request);
    client_wait(c, &a, 1);
    const struct describe_quorum_response *r = a.response;
    if (r != NULL && r->error_code == 0 && r->topics.n == 1 && r->topics.v[0].partitions.n == 1 &&
        r->topics.v[0].partitions.v[0].error_code == 0)
        leader = r->topics.v[0].partitions.v[0].leader_id;
    const bool served = a.err != ERR_UNSUPPORTED;
    answer_close(&a);
    return served ? leader : m->controller_id;
}
