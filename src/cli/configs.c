/* dohle configs VERB TYPE NAME ...: TYPE is topic, broker or group; the broker "default" stands for
 * all that have no value of their own. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/configs.h"
#include "cli/report.h"
#include "cli/table.h"
#include "wire/error.h"

enum { OPTION_ALL = 1 };

static int read_resource(const struct verb *v, const struct line *line, struct config_resource *out)
{
    static const struct {
        const char *name;
        enum config_type type;
    } types[] = {
        {"topic", CONFIG_OF_TOPIC}, {"broker", CONFIG_OF_BROKER}, {"group", CONFIG_OF_GROUP}};
    *out = (struct config_resource){.name = str_of(line->operands[1])};
    for (size_t i = 0; i < ARRAY_N(types); i++)
        if (strcmp(types[i].name, line->operands[0]) == 0)
            out->type = types[i].type;
    if (out->type == 0)
        return cli_usage_error(v->name, "the type is topic, broker or group, not %s",
                               line->operands[0]);
    if (out->type == CONFIG_OF_BROKER && str_eq(out->name, STR_LIT("default")))
        out->name = STR_LIT("");
    return CLI_OK;
}

/* ------------------------------------------------------------------ describe */

static const char *
shown_value(const struct describe_configs_response_describe_configs_resource_result *r)
{
    return r->is_sensitive ? "(hidden)" : "(none)";
}

static int print_text(const struct configs *configs, bool all)
{
    static const char *const heads[] = {"KEY", "VALUE", "SOURCE", ""};
    struct table t;
    table_init(&t, heads, ARRAY_N(heads));
    for (size_t i = 0; i < configs->n; i++) {
        if (!all && configs_is_default(configs->v[i].config_source))
            continue;
        table_add_str(&t, configs->v[i].name);
        table_add_str(&t, configs->v[i].value.n < 0 ? str_of(shown_value(&configs->v[i]))
                                                    : configs->v[i].value);
        table_add(&t, "%s", configs_source(configs->v[i].config_source));
        table_add(&t, "%s", configs->v[i].read_only ? "read-only" : "");
    }
    return table_print(&t);
}

static int print_json(const struct configs *configs, bool all)
{
    struct report r;
    report_init(&r, json_array());
    for (size_t i = 0; i < configs->n; i++) {
        if (!all && configs_is_default(configs->v[i].config_source))
            continue;
        json_t *o = report_add_object(&r, r.root);
        report_put(&r, o, "key", report_text(configs->v[i].name));
        report_put(&r, o, "value", report_text(configs->v[i].value));
        report_put(&r, o, "source", json_string(configs_source(configs->v[i].config_source)));
        report_put(&r, o, "read_only", json_boolean(configs->v[i].read_only));
        report_put(&r, o, "sensitive", json_boolean(configs->v[i].is_sensitive));
    }
    return report_print(&r);
}

static int describe(struct client *c, const struct line *line, void *ctx)
{
    const bool all = *(const bool *)ctx;
    struct config_resource r;
    struct configs configs;
    int status = read_resource(&configs_describe, line, &r);
    if (status == CLI_OK)
        status = configs_read(c, &r, &configs);
    if (status != CLI_OK)
        return status;
    status = line->json ? print_json(&configs, all) : print_text(&configs, all);
    configs_close(&configs);
    return status;
}

static int take_all(const struct verb *v, void *ctx, int id, const char *value)
{
    *(bool *)ctx = true;
    return CLI_OK;
}

static int run_describe(const struct verb *v, char **argv, int n)
{
    bool all = false;
    return line_run(v, argv, n, &all, describe);
}

static const struct cli_option describe_options[] = {
    {OPTION_ALL, 'a', "all", NULL, "keys that nobody set too"},
};

const struct verb configs_describe = {
    .name = "configs describe",
    .usage = "(topic|broker|group) NAME [--all] [--json]",
    .summary = "values that were set, and where",
    .about =
        "Shows the values that were set and where: topic, broker and group (for this one),\n"
        "brokers (for all), static (in a broker's file). NAME of a broker is its id, or default.",
    .options = describe_options,
    .options_n = ARRAY_N(describe_options),
    .json = true,
    .operand = "a type or NAME",
    .operands_min = 2,
    .operands_max = 2,
    .take = take_all,
    .run = run_describe,
};

/* ------------------------------------------------------------------ get */

static int print_value(const struct configs *configs, const char *key)
{
    for (size_t i = 0; i < configs->n; i++) {
        if (!str_eq(configs->v[i].name, str_of(key)))
            continue;
        if (configs->v[i].is_sensitive) {
            cli_error("the value of %s is secret", key);
            return CLI_FAILED;
        }
        printf("%.*s\n", configs->v[i].value.n < 0 ? 0 : configs->v[i].value.n,
               configs->v[i].value.p);
        return CLI_OK;
    }
    cli_error("no key %s", key);
    return CLI_FAILED;
}

static int get(struct client *c, const struct line *line, void *ctx)
{
    struct config_resource r;
    struct configs configs;
    int status = read_resource(&configs_get, line, &r);
    if (status == CLI_OK)
        status = configs_read(c, &r, &configs);
    if (status != CLI_OK)
        return status;
    for (size_t i = 2; i < line->operands_n; i++)
        if (print_value(&configs, line->operands[i]) != CLI_OK)
            status = CLI_FAILED;
    configs_close(&configs);
    return cli_printed() == CLI_OK ? status : CLI_FAILED;
}

static int run_get(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, get);
}

const struct verb configs_get = {
    .name = "configs get",
    .usage = "(topic|broker|group) NAME KEY...",
    .summary = "the values of keys, one a line",
    .operand = "a type, NAME or KEY",
    .operands_min = 3,
    .operands_max = SIZE_MAX,
    .run = run_get,
};

/* ------------------------------------------------------------------ set, unset */

static int change(struct client *c, const struct line *line, const struct verb *v, bool unset)
{
    struct config_resource r;
    struct line_pairs pairs = {0};
    char what[CONFIGS_WHAT_BYTES];
    int status = read_resource(v, line, &r);
    for (size_t i = 2; i < line->operands_n && status == CLI_OK; i++)
        status = line_add_pair(v, NULL, line->operands[i], unset, &pairs);
    if (status == CLI_OK)
        status = configs_change(c, &r, &pairs);
    line_pairs_close(&pairs);
    if (status != CLI_OK)
        return status;
    print_line("altered %s", configs_what(&r, what));
    return cli_printed();
}

static int set(struct client *c, const struct line *line, void *ctx)
{
    return change(c, line, &configs_set, false);
}

static int unset(struct client *c, const struct line *line, void *ctx)
{
    return change(c, line, &configs_unset, true);
}

static int run_set(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, set);
}

static int run_unset(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, unset);
}

const struct verb configs_set = {
    .name = "configs set",
    .usage = "(topic|broker|group) NAME KEY=VALUE...",
    .summary = "set keys",
    .about =
        "Sets keys, all or none. NAME of a broker is its id, or default: all brokers that have no\n"
        "value of their own.",
    .operand = "a type, NAME or KEY=VALUE",
    .operands_min = 3,
    .operands_max = SIZE_MAX,
    .run = run_set,
};

const struct verb configs_unset = {
    .name = "configs unset",
    .usage = "(topic|broker|group) NAME KEY...",
    .summary = "give keys up, so that the next source counts",
    .operand = "a type, NAME or KEY",
    .operands_min = 3,
    .operands_max = SIZE_MAX,
    .run = run_unset,
};

static const struct verb *const verbs[] = {&configs_describe, &configs_get, &configs_set,
                                           &configs_unset};

static int run(char **argv, int n)
{
    return line_verbs("configs", "Shows and changes configurations of topics, brokers and groups.",
                      verbs, ARRAY_N(verbs), argv, n);
}

const struct cli_command cli_configs = {"configs", "show and set configurations", run};
