/* How many there are to be is said without doubt: --to or --by, for partitions cannot be taken away
 * again. */
#include <stdio.h>

#include "cli/table.h"
#include "cli/topics.h"
#include "wire/error.h"

enum { OPTION_TO = 1, OPTION_BY };

struct add_partitions {
    int64_t to, by; /* 0: not given */
};

static int send(struct client *c, const char *name, int32_t before, int32_t total)
{
    char what[300];
    struct create_partitions_request request;
    struct create_partitions_request_create_partitions_topic topic;
    struct answer a = {0};
    struct broker *b;
    wire_default(&wire_create_partitions_request, &request);
    wire_default(&wire_create_partitions_request_create_partitions_topic, &topic);
    topic.name = str_of(name);
    topic.count = total;
    topic.assignments.n = -1; /* the controller places them */
    request.topics.v = &topic;
    request.topics.n = 1;
    request.timeout_ms = client_timeout_ms(c);
    int status = client_controller(c, &b);
    if (status == CLI_OK)
        status = client_call(c, b, &a, API_CREATE_PARTITIONS, -1, &request);
    const struct create_partitions_response *r = a.response;
    snprintf(what, sizeof what, "topic %s", name);
    if (status == CLI_OK && r->results.n != 1)
        status = client_tell_kafka(what, K_UNKNOWN_SERVER_ERROR, STR_NULL);
    else if (status == CLI_OK && r->results.v[0].error_code != K_NONE)
        status = client_tell_kafka(what, r->results.v[0].error_code, r->results.v[0].error_message);
    answer_close(&a);
    if (status != CLI_OK)
        return status;
    print_line("%s has %d partitions (had %d)", name, total, before);
    return cli_printed();
}

static int add(struct client *c, const struct line *line, void *ctx)
{
    const struct add_partitions *o = ctx;
    struct metadata m;
    if ((o->to == 0) == (o->by == 0))
        return cli_usage_error("topics add-partitions", "one of --to and --by is needed");
    int status = topics_find(c, line->operands, 1, &m);
    if (status != CLI_OK)
        return status;
    const int32_t before = m.topics[0].partitions_n;
    metadata_close(&m);
    const int64_t total = o->to > 0 ? o->to : before + o->by;
    if (total > INT32_MAX)
        return cli_usage_error("topics add-partitions", "there cannot be that many partitions");
    return send(c, line->operands[0], before, (int32_t)total);
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    struct add_partitions *o = ctx;
    return line_number(v, id == OPTION_TO ? "to" : "by", value, 1, INT32_MAX,
                       id == OPTION_TO ? &o->to : &o->by);
}

static int run(const struct verb *v, char **argv, int n)
{
    struct add_partitions o = {0};
    return line_run(v, argv, n, &o, add);
}

static const struct cli_option options[] = {
    {OPTION_TO, 0, "to", "TOTAL", "so many partitions there are to be"},
    {OPTION_BY, 0, "by", "N", "so many more partitions"},
};

const struct verb topics_add_partitions = {
    .name = "topics add-partitions",
    .usage = "NAME (--to TOTAL | --by N)",
    .summary = "give a topic more partitions",
    .about =
        "Gives a topic more partitions. They cannot be taken away again, and keys go to other\n"
        "partitions than before.",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .take = take,
    .run = run,
};
