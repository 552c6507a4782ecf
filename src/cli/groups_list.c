/* Every broker knows the groups that it coordinates. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cluster.h"
#include "cli/groups.h"
#include "cli/report.h"
#include "cli/table.h"
#include "os/clocks.h"
#include "wire/error.h"

struct listed {
    const struct list_groups_response_listed_group **v;
    size_t n;
};

static int by_name(const void *a, const void *b)
{
    const struct list_groups_response_listed_group *x =
        *(const struct list_groups_response_listed_group *const *)a;
    const struct list_groups_response_listed_group *y =
        *(const struct list_groups_response_listed_group *const *)b;
    return str_cmp(x->group_id, y->group_id);
}

static int32_t groups_of(const struct answer *a)
{
    const struct list_groups_response *r = a->response;
    return r == NULL || r->groups.n < 0 ? 0 : r->groups.n;
}

static int collect(const struct answer *answers, size_t n, struct listed *out)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += (size_t)groups_of(&answers[i]);
    *out = (struct listed){.v = calloc(all + 1, sizeof *out->v)};
    if (out->v == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < n; i++)
        for (int32_t k = 0; k < groups_of(&answers[i]); k++)
            out->v[out->n++] =
                &((const struct list_groups_response *)answers[i].response)->groups.v[k];
    qsort(out->v, out->n, sizeof *out->v, by_name);
    return CLI_OK;
}

static struct str known(struct str s)
{
    return s.n > 0 ? s : STR_NULL;
}

static int print_text(const struct listed *l)
{
    static const char *const heads[] = {"GROUP", "TYPE", "PROTOCOL", "STATE"};
    struct table t;
    table_init(&t, heads, ARRAY_N(heads));
    for (size_t i = 0; i < l->n; i++) {
        table_add_str(&t, l->v[i]->group_id);
        table_add_str(&t, known(l->v[i]->group_type));
        table_add_str(&t, known(l->v[i]->protocol_type));
        table_add_str(&t, known(l->v[i]->group_state));
    }
    return table_print(&t);
}

static int print_json(const struct listed *l)
{
    struct report r;
    report_init(&r, json_array());
    for (size_t i = 0; i < l->n; i++) {
        json_t *o = report_add_object(&r, r.root);
        report_put(&r, o, "group", report_text(l->v[i]->group_id));
        report_put(&r, o, "type", report_text(known(l->v[i]->group_type)));
        report_put(&r, o, "protocol", report_text(known(l->v[i]->protocol_type)));
        report_put(&r, o, "state", report_text(known(l->v[i]->group_state)));
    }
    return report_print(&r);
}

/* One that fails does not hide what the others say. */
static int tell_failures(const struct answer *v, size_t n)
{
    int status = CLI_OK;
    for (size_t i = 0; i < n; i++) {
        const struct list_groups_response *r = v[i].response;
        if (r == NULL)
            status = client_tell(&v[i]);
        else if (r->error_code != K_NONE)
            status = client_tell_kafka(broker_name(v[i].broker), r->error_code, STR_NULL);
    }
    return status;
}

static bool still_loading(const struct answer *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct list_groups_response *r = v[i].response;
        if (r != NULL && kafka_error_retriable(r->error_code))
            return true;
    }
    return false;
}

static int ask_all(struct client *c, const struct metadata *m, struct answer **answers)
{
    const int64_t deadline_us = client_deadline_us(c);
    struct list_groups_request request;
    wire_default(&wire_list_groups_request, &request);
    for (;;) {
        const int status = cluster_ask_brokers(c, m, API_LIST_GROUPS, -1, &request, answers);
        if (status != CLI_OK || !still_loading(*answers, m->brokers_n) ||
            !client_pause(c, deadline_us))
            return status;
        cluster_free_answers(m, *answers);
        *answers = NULL;
    }
}

static int list(struct client *c, const struct line *line, void *ctx)
{
    const struct metadata_args args = {.scope = METADATA_BROKERS};
    struct metadata m;
    struct answer *answers = NULL;
    struct listed l = {0};
    int status = client_metadata(c, &args, &m);
    if (status != CLI_OK)
        return status;
    status = ask_all(c, &m, &answers);
    if (status == CLI_OK)
        status = collect(answers, m.brokers_n, &l);
    if (status == CLI_OK)
        status = line->json ? print_json(&l) : print_text(&l);
    if (status == CLI_OK)
        status = tell_failures(answers, m.brokers_n);
    free(l.v);
    cluster_free_answers(&m, answers);
    metadata_close(&m);
    return status;
}

static int run(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, list);
}

const struct verb verb_groups_list = {
    .name = "groups list",
    .usage = "[--json]",
    .summary = "groups and their states",
    .json = true,
    .run = run,
};
