#include <stdio.h>

#include "cli/groups.h"
#include "cli/table.h"
#include "wire/error.h"

static int ask(struct client *c, struct str group, int16_t *code)
{
    struct delete_groups_request request;
    struct answer a = {0};
    struct broker *coordinator;
    wire_default(&wire_delete_groups_request, &request);
    request.groups_names.v = &group;
    request.groups_names.n = 1;
    int status = client_coordinator(c, group, &coordinator);
    if (status == CLI_OK)
        status = client_call(c, coordinator, &a, API_DELETE_GROUPS, -1, &request);
    const struct delete_groups_response *r = a.response;
    if (status == CLI_OK)
        *code = r->results.n == 1 ? r->results.v[0].error_code : K_UNKNOWN_SERVER_ERROR;
    answer_close(&a);
    return status;
}

/* A coordinator that starts or moved is asked again. */
static int delete_one(struct client *c, const char *name)
{
    const int64_t deadline_us = client_deadline_us(c);
    char what[300];
    int16_t code;
    int status;
    do
        status = ask(c, str_of(name), &code);
    while (status == CLI_OK && kafka_error_retriable(code) && client_pause(c, deadline_us));
    if (status != CLI_OK)
        return status;
    snprintf(what, sizeof what, "group %s", name);
    if (code != K_NONE)
        return client_tell_kafka(what, code, STR_NULL);
    print_line("deleted %s", name);
    return CLI_OK;
}

static int delete_groups(struct client *c, const struct line *line, void *ctx)
{
    int status = CLI_OK;
    for (size_t i = 0; i < line->operands_n; i++)
        if (delete_one(c, line->operands[i]) != CLI_OK)
            status = CLI_FAILED;
    return cli_printed() == CLI_OK ? status : CLI_FAILED;
}

static int run(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, delete_groups);
}

const struct verb verb_groups_delete = {
    .name = "groups delete",
    .usage = "GROUP...",
    .summary = "delete groups without members, and their offsets",
    .operand = "GROUP",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = run,
};
