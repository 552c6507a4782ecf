#include <stdio.h>

#include "cli/report.h"
#include "cli/table.h"
#include "cli/topics.h"

enum { OPTION_INTERNAL = 1 };

struct list_topics {
    bool internal;
};

static int print_text(const struct metadata *m, bool internal)
{
    static const char *const heads[] = {"TOPIC", ">PARTITIONS", ">REPLICAS"};
    struct table table;
    table_init(&table, heads, ARRAY_N(heads));
    for (size_t i = 0; i < m->topics_n; i++) {
        const struct topic *t = &m->topics[i];
        if (t->internal && !internal)
            continue;
        table_add_str(&table, t->name);
        table_add(&table, "%d", t->partitions_n);
        table_add(&table, "%d", topics_replicas(t));
    }
    return table_print(&table);
}

static int print_json(const struct metadata *m, bool internal)
{
    struct report r;
    report_init(&r, json_array());
    for (size_t i = 0; i < m->topics_n; i++) {
        const struct topic *t = &m->topics[i];
        if (t->internal && !internal)
            continue;
        json_t *o = report_add_object(&r, r.root);
        report_put(&r, o, "name", report_text(t->name));
        report_put(&r, o, "id", report_uuid(t->id));
        report_put(&r, o, "internal", json_boolean(t->internal));
        report_put(&r, o, "partitions", json_integer(t->partitions_n));
        report_put(&r, o, "replication_factor", json_integer(topics_replicas(t)));
    }
    return report_print(&r);
}

static int list(struct client *c, const struct line *line, void *ctx)
{
    const struct list_topics *l = ctx;
    const struct metadata_args args = {.scope = METADATA_ALL_TOPICS};
    struct metadata m;
    int status = client_metadata(c, &args, &m);
    if (status != CLI_OK)
        return status;
    status = line->json ? print_json(&m, l->internal) : print_text(&m, l->internal);
    metadata_close(&m);
    return status;
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    ((struct list_topics *)ctx)->internal = true;
    return CLI_OK;
}

static int run(const struct verb *v, char **argv, int n)
{
    struct list_topics l = {0};
    return line_run(v, argv, n, &l, list);
}

static const struct cli_option options[] = {
    {OPTION_INTERNAL, 0, "internal", NULL, "internal topics too"},
};

const struct verb topics_list = {
    .name = "topics list",
    .usage = "[--internal] [--json]",
    .summary = "names, partitions, replicas",
    .options = options,
    .options_n = ARRAY_N(options),
    .json = true,
    .take = take,
    .run = run,
};
