#include <stdio.h>
#include <stdlib.h>

#include "cli/table.h"
#include "cli/topics.h"
#include "wire/error.h"

enum { OPTION_PARTITIONS = 1, OPTION_REPLICAS, OPTION_CONFIG, OPTION_IF_NOT_EXISTS };

struct create_topics {
    int64_t partitions, replicas; /* -1: as the broker is configured */
    struct line_pairs configs;
    bool if_not_exists;
};

static const struct create_topics_response_creatable_topic_result *
find(const struct create_topics_response *r, const char *name)
{
    for (int32_t i = 0; i < r->topics.n; i++)
        if (str_eq(r->topics.v[i].name, str_of(name)))
            return &r->topics.v[i];
    return NULL;
}

static int tell(const struct create_topics_response *r, const char *name, bool if_not_exists)
{
    char what[300];
    const struct create_topics_response_creatable_topic_result *t = find(r, name);
    snprintf(what, sizeof what, "topic %s", name);
    if (t == NULL)
        return client_tell_kafka(what, K_UNKNOWN_SERVER_ERROR, STR_NULL);
    if (t->error_code == K_TOPIC_ALREADY_EXISTS && if_not_exists) {
        print_line("exists %s", name);
        return CLI_OK;
    }
    if (t->error_code != K_NONE)
        return client_tell_kafka(what, t->error_code, t->error_message);
    if (t->num_partitions < 0)
        print_line("created %s", name);
    else
        print_line("created %s: %d partition%s, %d replica%s", name, t->num_partitions,
                   t->num_partitions == 1 ? "" : "s", t->replication_factor,
                   t->replication_factor == 1 ? "" : "s");
    return CLI_OK;
}

static int send(struct client *c, const struct create_topics_request *request,
                const struct line *line, bool if_not_exists)
{
    struct broker *b;
    struct answer a = {0};
    int status = client_controller(c, &b);
    if (status == CLI_OK)
        status = client_call(c, b, &a, API_CREATE_TOPICS, -1, request);
    for (size_t i = 0; i < line->operands_n && a.response != NULL; i++)
        if (tell(a.response, line->operands[i], if_not_exists) != CLI_OK)
            status = CLI_FAILED;
    answer_close(&a);
    return status != CLI_OK ? status : cli_printed();
}

static int create(struct client *c, const struct line *line, void *ctx)
{
    const struct create_topics *t = ctx;
    struct create_topics_request request;
    struct create_topics_request_creatable_topic *topics = calloc(line->operands_n, sizeof *topics);
    struct create_topics_request_creatable_topic_config *configs =
        calloc(t->configs.n + 1, sizeof *configs);
    int status = CLI_FAILED;
    wire_default(&wire_create_topics_request, &request);
    for (size_t i = 0; i < t->configs.n && configs != NULL; i++)
        configs[i] = (struct create_topics_request_creatable_topic_config){t->configs.v[i].key,
                                                                           t->configs.v[i].value};
    for (size_t i = 0; i < line->operands_n && topics != NULL; i++) {
        topics[i].name = str_of(line->operands[i]);
        topics[i].num_partitions = (int32_t)t->partitions;
        topics[i].replication_factor = (int16_t)t->replicas;
        topics[i].configs.v = configs;
        topics[i].configs.n = (int32_t)t->configs.n;
    }
    request.topics.v = topics;
    request.topics.n = (int32_t)line->operands_n;
    request.timeout_ms = client_timeout_ms(c);
    if (topics == NULL || configs == NULL)
        status = client_out_of_memory();
    else
        status = send(c, &request, line, t->if_not_exists);
    free(topics);
    free(configs);
    return status;
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    struct create_topics *t = ctx;
    switch (id) {
    case OPTION_PARTITIONS:
        return line_number(v, "partitions", value, 1, INT32_MAX, &t->partitions);
    case OPTION_REPLICAS:
        return line_number(v, "replicas", value, 1, INT16_MAX, &t->replicas);
    case OPTION_CONFIG:
        return line_add_pair(v, "config", value, false, &t->configs);
    case OPTION_IF_NOT_EXISTS:
        t->if_not_exists = true;
        return CLI_OK;
    }
    return CLI_USAGE;
}

static int run(const struct verb *v, char **argv, int n)
{
    struct create_topics t = {.partitions = -1, .replicas = -1};
    const int status = line_run(v, argv, n, &t, create);
    line_pairs_close(&t.configs);
    return status;
}

static const struct cli_option options[] = {
    {OPTION_PARTITIONS, 'p', "partitions", "N", "partitions; else the broker's num.partitions"},
    {OPTION_REPLICAS, 'r', "replicas", "N",
     "replicas of each; else the broker's\ndefault.replication.factor"},
    {OPTION_CONFIG, 'c', "config", "KEY=VALUE", "configure it; may be repeated"},
    {OPTION_IF_NOT_EXISTS, 0, "if-not-exists", NULL, "a topic that exists is no failure"},
};

const struct verb topics_create = {
    .name = "topics create",
    .usage = "NAME... [-p N] [-r N] [-c KEY=VALUE]...",
    .summary = "make topics",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "NAME",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .take = take,
    .run = run,
};
