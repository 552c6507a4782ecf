#include <stdio.h>
#include <stdlib.h>

#include "cli/cluster.h"
#include "cli/report.h"
#include "cli/table.h"

struct info {
    const struct metadata *m;
    int32_t controller;
    struct answer *versions; /* of each broker */
};

static const struct api_versions_response *versions_of(const struct info *i, size_t broker)
{
    return i->versions[broker].response;
}

static int by_name(const void *a, const void *b)
{
    const struct api_versions_response_finalized_feature_key *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

static void sort_features(const struct info *info)
{
    for (size_t i = 0; i < info->m->brokers_n; i++) {
        const struct api_versions_response *r = versions_of(info, i);
        if (r != NULL && r->finalized_features.n > 1)
            qsort(r->finalized_features.v, (size_t)r->finalized_features.n,
                  sizeof *r->finalized_features.v, by_name);
    }
}

static int print_text(const struct info *info)
{
    static const char *const heads[] = {">ID", "HOST", ">PORT", "RACK", "STATE"};
    struct table t;
    print_line("cluster     %.*s", info->m->cluster_id.n < 0 ? 0 : info->m->cluster_id.n,
               info->m->cluster_id.p);
    print_line("controller  %d", info->controller);
    for (size_t i = 0; i < info->m->brokers_n; i++) {
        const struct api_versions_response *r = versions_of(info, i);
        if (r == NULL)
            continue;
        for (int32_t k = 0; k < r->finalized_features.n; k++)
            print_line("feature     %.*s=%d", r->finalized_features.v[k].name.n,
                       r->finalized_features.v[k].name.p,
                       r->finalized_features.v[k].max_version_level);
        break;
    }
    printf("\n");
    table_init(&t, heads, ARRAY_N(heads));
    for (size_t i = 0; i < info->m->brokers_n; i++) {
        table_add(&t, "%d", info->m->brokers[i].id);
        table_add_str(&t, info->m->brokers[i].host);
        table_add(&t, "%d", info->m->brokers[i].port);
        table_add_str(&t, info->m->brokers[i].rack);
        table_add(&t, "%s", versions_of(info, i) != NULL ? "answers" : "does not answer");
    }
    return table_print(&t);
}

static void report_versions(struct report *r, json_t *o, const struct api_versions_response *v)
{
    json_t *features = report_put_array(r, o, "features"), *apis = report_put_array(r, o, "apis");
    for (int32_t i = 0; i < v->finalized_features.n; i++) {
        json_t *f = report_add_object(r, features);
        report_put(r, f, "name", report_text(v->finalized_features.v[i].name));
        report_put(r, f, "level", json_integer(v->finalized_features.v[i].max_version_level));
    }
    for (int32_t i = 0; i < v->api_keys.n; i++) {
        const struct wire_message *m = wire_find(WIRE_REQUEST, v->api_keys.v[i].api_key);
        json_t *a = report_add_object(r, apis);
        report_put(r, a, "key", json_integer(v->api_keys.v[i].api_key));
        report_put(r, a, "name",
                   m == NULL ? json_null()
                             : json_stringn(m->name, strlen(m->name) - strlen("Request")));
        report_put(r, a, "min", json_integer(v->api_keys.v[i].min_version));
        report_put(r, a, "max", json_integer(v->api_keys.v[i].max_version));
    }
}

static int print_json(const struct info *info)
{
    struct report r;
    report_init(&r, json_object());
    report_put(&r, r.root, "cluster_id", report_text(info->m->cluster_id));
    report_put(&r, r.root, "controller", json_integer(info->controller));
    json_t *brokers = report_put_array(&r, r.root, "brokers");
    for (size_t i = 0; i < info->m->brokers_n; i++) {
        json_t *o = report_add_object(&r, brokers);
        report_put(&r, o, "id", json_integer(info->m->brokers[i].id));
        report_put(&r, o, "host", report_text(info->m->brokers[i].host));
        report_put(&r, o, "port", json_integer(info->m->brokers[i].port));
        report_put(&r, o, "rack", report_text(info->m->brokers[i].rack));
        report_put(&r, o, "answers", json_boolean(versions_of(info, i) != NULL));
        if (versions_of(info, i) != NULL)
            report_versions(&r, o, versions_of(info, i));
    }
    return report_print(&r);
}

static int info(struct client *c, const struct line *line, void *ctx)
{
    const struct metadata_args args = {.scope = METADATA_BROKERS};
    struct api_versions_request request;
    struct metadata m;
    struct info i = {.m = &m};
    int status = client_metadata(c, &args, &m);
    if (status != CLI_OK)
        return status;
    wire_default(&wire_api_versions_request, &request);
    request.client_software_name = STR_LIT("dohle");
    request.client_software_version = STR_LIT(DOHLE_VERSION);
    i.controller = cluster_controller(c, &m);
    status = cluster_ask_brokers(c, &m, API_API_VERSIONS, -1, &request, &i.versions);
    if (status == CLI_OK)
        sort_features(&i);
    if (status == CLI_OK)
        status = line->json ? print_json(&i) : print_text(&i);
    cluster_free_answers(&m, i.versions);
    metadata_close(&m);
    return status;
}

static int run(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, info);
}

const struct verb cluster_info = {
    .name = "cluster info",
    .usage = "[--json]",
    .summary = "id, controller, features, brokers",
    .about =
        "Tells the cluster's id, its controller, its features and its brokers; with --json the\n"
        "versions of every API that each broker serves too.",
    .json = true,
    .run = run,
};
