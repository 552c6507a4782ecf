#include <stdio.h>

#include "cli/groups.h"
#include "cli/report.h"
#include "cli/table.h"
#include "wire/error.h"

struct described {
    struct group group;
    struct group_offsets offsets;
    const struct broker *coordinator;
};

static int64_t lag_of(const struct group_offset *o)
{
    if (o->committed < 0 || o->end < 0)
        return -1;
    return o->end > o->committed ? o->end - o->committed : 0;
}

static int64_t all_lag(const struct described *d)
{
    int64_t sum = 0;
    for (size_t i = 0; i < d->offsets.n; i++) {
        const int64_t lag = lag_of(&d->offsets.v[i]);
        if (lag > 0 && sum <= INT64_MAX - lag)
            sum += lag;
    }
    return sum;
}

/* ------------------------------------------------------------------ text */

static void add_number(struct table *t, int64_t n)
{
    if (n < 0)
        table_add_str(t, STR_NULL);
    else
        table_add(t, "%lld", (long long)n);
}

static int print_offsets(const struct described *d)
{
    static const char *const heads[] = {"TOPIC", ">PARTITION", ">COMMITTED", ">END",
                                        ">LAG",  "MEMBER",     "HOST"};
    struct table t;
    table_init(&t, heads, ARRAY_N(heads));
    for (size_t i = 0; i < d->offsets.n; i++) {
        const struct group_offset *o = &d->offsets.v[i];
        table_add_str(&t, o->topic);
        table_add(&t, "%d", o->partition);
        add_number(&t, o->committed);
        add_number(&t, o->end);
        add_number(&t, lag_of(o));
        table_add_str(&t, o->member);
        table_add_str(&t, o->host);
    }
    return table_print(&t);
}

static int print_text(const struct described *d)
{
    const struct group *g = &d->group;
    print_line("group        %.*s", g->name.n, g->name.p);
    print_line("type         %.*s", g->kind.n, g->kind.p);
    print_line("state        %.*s", g->state.n, g->state.p);
    print_line("coordinator  %d (%s)", broker_id(d->coordinator), broker_name(d->coordinator));
    if (g->assignor.n > 0)
        print_line("assignor     %.*s", g->assignor.n, g->assignor.p);
    print_line("members      %zu", g->members_n);
    print_line("lag          %lld", (long long)all_lag(d));
    if (d->offsets.n > 0)
        printf("\n");
    return print_offsets(d);
}

/* ------------------------------------------------------------------ JSON */

static json_t *number(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static void report_group(struct report *r, const struct described *d)
{
    const struct group *g = &d->group;
    json_t *o = report_add_object(r, r->root);
    report_put(r, o, "group", report_text(g->name));
    report_put(r, o, "type", report_text(g->kind));
    report_put(r, o, "state", report_text(g->state));
    report_put(r, o, "coordinator", json_integer(broker_id(d->coordinator)));
    report_put(r, o, "assignor", report_text(g->assignor.n > 0 ? g->assignor : STR_NULL));
    report_put(r, o, "lag", json_integer(all_lag(d)));
    json_t *members = report_put_array(r, o, "members");
    for (size_t i = 0; i < g->members_n; i++) {
        json_t *m = report_add_object(r, members);
        report_put(r, m, "id", report_text(g->members[i].id));
        report_put(r, m, "instance", report_text(g->members[i].instance));
        report_put(r, m, "client", report_text(g->members[i].client));
        report_put(r, m, "host", report_text(g->members[i].host));
    }
    json_t *offsets = report_put_array(r, o, "offsets");
    for (size_t i = 0; i < d->offsets.n; i++) {
        const struct group_offset *from = &d->offsets.v[i];
        json_t *p = report_add_object(r, offsets);
        report_put(r, p, "topic", report_text(from->topic));
        report_put(r, p, "partition", json_integer(from->partition));
        report_put(r, p, "committed", number(from->committed));
        report_put(r, p, "end", number(from->end));
        report_put(r, p, "lag", number(lag_of(from)));
        report_put(r, p, "member", report_text(from->member));
    }
}

/* ------------------------------------------------------------------ asking */

static int look(struct client *c, struct str name, struct described *d)
{
    char what[300];
    struct broker *coordinator;
    int status = client_coordinator(c, name, &coordinator);
    if (status != CLI_OK)
        return status;
    d->coordinator = coordinator;
    status = group_offsets_committed(c, coordinator, name, &d->offsets);
    if (status == CLI_OK)
        status = group_look(c, coordinator, name, &d->offsets, &d->group);
    if (status == CLI_OK && d->group.state.n < 0) {
        snprintf(what, sizeof what, "group %.*s", name.n, name.p);
        status = client_tell_kafka(what, K_GROUP_ID_NOT_FOUND, STR_NULL);
    }
    if (status == CLI_OK)
        status = group_offsets_find_ends(c, &d->offsets);
    return status;
}

static int describe(struct client *c, const struct line *line, void *ctx)
{
    struct report r;
    int status = CLI_OK;
    bool printed = false;
    if (line->json)
        report_init(&r, json_array());
    for (size_t i = 0; i < line->operands_n; i++) {
        struct described d = {0};
        int one = look(c, str_of(line->operands[i]), &d);
        if (one == CLI_OK && line->json)
            report_group(&r, &d);
        if (one == CLI_OK && !line->json) {
            printf("%s", printed ? "\n" : "");
            printed = true;
            one = print_text(&d);
        }
        if (one != CLI_OK)
            status = CLI_FAILED;
        group_close(&d.group);
        group_offsets_close(&d.offsets);
    }
    if (line->json && report_print(&r) != CLI_OK)
        status = CLI_FAILED;
    return status;
}

static int run(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, describe);
}

const struct verb verb_groups_describe = {
    .name = "groups describe",
    .usage = "GROUP... [--json]",
    .summary = "state, members, offsets, lag",
    .json = true,
    .operand = "GROUP",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = run,
};
