/* Well is a cluster with a controller, whose brokers all answer and whose partitions all have a
 * leader and their replicas in sync. The exit status says it, for scripts. */
#include <stdio.h>

#include "cli/cluster.h"
#include "cli/report.h"
#include "cli/table.h"

struct health {
    int32_t controller;
    size_t brokers_n, answering_n;
    int64_t partitions_n, leaderless_n, short_n; /* short: with fewer in sync than replicas */
    bool well;
};

static void count_partitions(struct client *c, const struct metadata *m, struct health *h)
{
    for (size_t t = 0; t < m->topics_n; t++)
        for (int32_t p = 0; p < m->topics[t].partitions_n; p++) {
            const struct topic_partition *part = &m->topics[t].partitions[p];
            h->partitions_n++;
            h->leaderless_n += client_broker(c, part->leader) == NULL;
            h->short_n += part->isr_n < part->replicas_n;
        }
}

static int print_text(const struct health *h)
{
    print_line("brokers     %zu of %zu answer", h->answering_n, h->brokers_n);
    if (h->controller < 0)
        print_line("controller  none");
    else
        print_line("controller  %d", h->controller);
    print_line("partitions  %lld, %lld without a leader, %lld with replicas out of sync",
               (long long)h->partitions_n, (long long)h->leaderless_n, (long long)h->short_n);
    print_line("health      %s", h->well ? "well" : "not well");
    return cli_printed();
}

static int print_json(const struct health *h)
{
    struct report r;
    report_init(&r, json_object());
    report_put(&r, r.root, "well", json_boolean(h->well));
    report_put(&r, r.root, "controller", json_integer(h->controller));
    report_put(&r, r.root, "brokers", json_integer((json_int_t)h->brokers_n));
    report_put(&r, r.root, "brokers_answering", json_integer((json_int_t)h->answering_n));
    report_put(&r, r.root, "partitions", json_integer(h->partitions_n));
    report_put(&r, r.root, "partitions_without_leader", json_integer(h->leaderless_n));
    report_put(&r, r.root, "partitions_out_of_sync", json_integer(h->short_n));
    return report_print(&r);
}

static int look(struct client *c, const struct metadata *m, struct health *h)
{
    struct api_versions_request request;
    struct answer *versions = NULL;
    wire_default(&wire_api_versions_request, &request);
    request.client_software_name = STR_LIT("dohle");
    request.client_software_version = STR_LIT(DOHLE_VERSION);
    const int status = cluster_ask_brokers(c, m, API_API_VERSIONS, -1, &request, &versions);
    for (size_t i = 0; i < m->brokers_n && status == CLI_OK; i++)
        h->answering_n += versions[i].response != NULL;
    cluster_free_answers(m, versions);
    h->brokers_n = m->brokers_n;
    h->controller = cluster_controller(c, m);
    count_partitions(c, m, h);
    h->well = h->brokers_n > 0 && h->answering_n == h->brokers_n && h->controller >= 0 &&
              h->leaderless_n == 0 && h->short_n == 0;
    return status;
}

static int health(struct client *c, const struct line *line, void *ctx)
{
    const struct metadata_args args = {.scope = METADATA_ALL_TOPICS};
    struct metadata m;
    struct health h = {0};
    int status = client_metadata(c, &args, &m);
    if (status != CLI_OK)
        return status;
    status = look(c, &m, &h);
    metadata_close(&m);
    if (status == CLI_OK)
        status = line->json ? print_json(&h) : print_text(&h);
    return status == CLI_OK && !h.well ? CLI_FAILED : status;
}

static int run(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, health);
}

const struct verb cluster_health = {
    .name = "cluster health",
    .usage = "[--json]",
    .summary = "brokers, controller, partitions; status 1 when not well",
    .about = "Well is a cluster with a controller, whose brokers all answer and whose partitions "
             "all have\n"
             "a leader and their replicas in sync. Exit status 1 when it is not.",
    .json = true,
    .run = run,
};
