#include "cli/configs.h"
#include "cli/table.h"
#include "cli/topics.h"

enum { OPTION_CONFIG = 1, OPTION_UNSET };

static int alter(struct client *c, const struct line *line, void *ctx)
{
    const struct line_pairs *pairs = ctx;
    int status = CLI_OK;
    if (pairs->n == 0)
        return cli_usage_error("topics alter", "--config or --unset is missing");
    for (size_t i = 0; i < line->operands_n && status == CLI_OK; i++) {
        const struct config_resource r = {CONFIG_OF_TOPIC, str_of(line->operands[i])};
        status = configs_change(c, &r, pairs);
        if (status == CLI_OK)
            print_line("altered %s", line->operands[i]);
    }
    return status != CLI_OK ? status : cli_printed();
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    return line_add_pair(v, id == OPTION_CONFIG ? "config" : "unset", value, id == OPTION_UNSET,
                         ctx);
}

static int run(const struct verb *v, char **argv, int n)
{
    struct line_pairs pairs = {0};
    const int status = line_run(v, argv, n, &pairs, alter);
    line_pairs_close(&pairs);
    return status;
}

static const struct cli_option options[] = {
    {OPTION_CONFIG, 'c', "config", "KEY=VALUE", "set a key; may be repeated"},
    {OPTION_UNSET, 0, "unset", "KEY", "back to the broker's value; may be repeated"},
};

const struct verb topics_alter = {
    .name = "topics alter",
    .usage = "NAME... [-c KEY=VALUE]... [--unset KEY]...",
    .summary = "change topics' configurations",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "NAME",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .take = take,
    .run = run,
};
