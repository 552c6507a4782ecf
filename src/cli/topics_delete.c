#include <stdio.h>
#include <stdlib.h>

#include "cli/table.h"
#include "cli/topics.h"
#include "wire/error.h"

enum { OPTION_IF_EXISTS = 1, BY_NAME_VERSION = 5 };

struct delete_topics {
    bool if_exists;
};

static int tell(const struct delete_topics_response *r, const char *name, bool if_exists)
{
    char what[300];
    snprintf(what, sizeof what, "topic %s", name);
    for (int32_t i = 0; i < r->responses.n; i++) {
        const struct delete_topics_response_deletable_topic_result *t = &r->responses.v[i];
        if (!str_eq(t->name, str_of(name)))
            continue;
        if (t->error_code == K_NONE)
            print_line("deleted %s", name);
        else if (t->error_code != K_UNKNOWN_TOPIC_OR_PARTITION)
            return client_tell_kafka(what, t->error_code, t->error_message);
        else if (!if_exists)
            return client_tell_kafka(what, t->error_code, STR_NULL);
        return CLI_OK;
    }
    return client_tell_kafka(what, K_UNKNOWN_SERVER_ERROR, STR_NULL);
}

static int delete_topics(struct client *c, const struct line *line, void *ctx)
{
    const struct delete_topics *d = ctx;
    struct delete_topics_request request;
    struct answer a = {0};
    struct broker *b;
    struct str *names = calloc(line->operands_n, sizeof *names);
    if (names == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < line->operands_n; i++)
        names[i] = str_of(line->operands[i]);
    wire_default(&wire_delete_topics_request, &request);
    request.topic_names.v = names;
    request.topic_names.n = (int32_t)line->operands_n;
    request.timeout_ms = client_timeout_ms(c);
    int status = client_controller(c, &b);
    if (status == CLI_OK)
        status = client_call(c, b, &a, API_DELETE_TOPICS, BY_NAME_VERSION, &request);
    for (size_t i = 0; i < line->operands_n && a.response != NULL; i++)
        if (tell(a.response, line->operands[i], d->if_exists) != CLI_OK)
            status = CLI_FAILED;
    answer_close(&a);
    free(names);
    return status != CLI_OK ? status : cli_printed();
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    ((struct delete_topics *)ctx)->if_exists = true;
    return CLI_OK;
}

static int run(const struct verb *v, char **argv, int n)
{
    struct delete_topics d = {0};
    return line_run(v, argv, n, &d, delete_topics);
}

static const struct cli_option options[] = {
    {OPTION_IF_EXISTS, 0, "if-exists", NULL, "a topic that is not there is no failure"},
};

const struct verb topics_delete = {
    .name = "topics delete",
    .usage = "NAME... [--if-exists]",
    .summary = "delete topics and all that is in them",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "NAME",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .take = take,
    .run = run,
};
