#include <stdio.h>

#include "cli/groups.h"
#include "cli/table.h"
#include "wire/error.h"

static int delete_one(struct client *c, const char *name)
{
    char what[300];
    struct delete_groups_request request;
    struct str group = str_of(name);
    struct answer a = {0};
    struct broker *coordinator;
    wire_default(&wire_delete_groups_request, &request);
    request.groups_names.v = &group;
    request.groups_names.n = 1;
    int status = client_coordinator(c, group, &coordinator);
    if (status == CLI_OK)
        status = client_call(c, coordinator, &a, API_DELETE_GROUPS, -1, &request);
    const struct delete_groups_response *r = a.response;
    snprintf(what, sizeof what, "group %s", name);
    if (status == CLI_OK && r->results.n != 1)
        status = client_tell_kafka(what, K_UNKNOWN_SERVER_ERROR, STR_NULL);
    else if (status == CLI_OK && r->results.v[0].error_code != K_NONE)
        status = client_tell_kafka(what, r->results.v[0].error_code, STR_NULL);
    answer_close(&a);
    if (status == CLI_OK)
        print_line("deleted %s", name);
    return status;
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
