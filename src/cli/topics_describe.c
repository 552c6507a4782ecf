/* One topic after the other: what it is, what is configured for it alone, its partitions with their
 * bounds. Bounds and configurations that a broker does not tell are left out. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/configs.h"
#include "cli/offsets.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/topics.h"
#include "wire/error.h"

/* A topic with all that is told of it. */
struct described {
    const struct topic *topic;
    const struct place *places; /* one for each partition */
    const struct configs *configs;
};

static void add_nodes(struct table *t, const int32_t *v, int32_t n)
{
    struct buf b;
    enum err e = ERR_NONE;
    buf_init(&b);
    for (int32_t i = 0; i < n && e == ERR_NONE; i++)
        e = buf_printf(&b, "%s%d", i > 0 ? "," : "", v[i]);
    t->failed |= e != ERR_NONE;
    table_add_str(t, n == 0 ? STR_NULL : (struct str){(const char *)b.p, (int32_t)b.n});
    buf_close(&b);
}

static int print_partitions(const struct described *d)
{
    static const char *const heads[] = {">PARTITION", ">LEADER", ">EPOCH", "REPLICAS",
                                        "ISR",        "OFFLINE", ">START", ">END"};
    struct table table;
    table_init(&table, heads, ARRAY_N(heads));
    for (int32_t i = 0; i < d->topic->partitions_n; i++) {
        const struct topic_partition *p = &d->topic->partitions[i];
        const struct place *place = &d->places[i];
        table_add(&table, "%d", p->index);
        if (p->leader < 0)
            table_add_str(&table, STR_NULL);
        else
            table_add(&table, "%d", p->leader);
        table_add(&table, "%d", p->leader_epoch);
        add_nodes(&table, p->replicas, p->replicas_n);
        add_nodes(&table, p->isr, p->isr_n);
        add_nodes(&table, p->offline, p->offline_n);
        if (place->error != K_NONE) {
            table_add_str(&table, STR_NULL);
            table_add_str(&table, STR_NULL);
            continue;
        }
        table_add(&table, "%lld", (long long)place->start);
        table_add(&table, "%lld", (long long)place->end);
    }
    return table_print(&table);
}

static int print_text(const struct described *d)
{
    const struct config_resource r = {CONFIG_OF_TOPIC, d->topic->name};
    const struct topic *t = d->topic;
    char id[UUID_TEXT_N + 1];
    uuid_print(t->id, id);
    print_line("topic       %.*s%s", t->name.n, t->name.p, t->internal ? " (internal)" : "");
    if (!uuid_is_zero(t->id))
        print_line("id          %s", id);
    print_line("partitions  %d", t->partitions_n);
    print_line("replicas    %d", topics_replicas(t));
    for (size_t i = 0; i < d->configs->n; i++)
        if (configs_is_own(&r, d->configs->v[i].config_source))
            print_line("config      %.*s=%.*s", d->configs->v[i].name.n, d->configs->v[i].name.p,
                       d->configs->v[i].value.n < 0 ? 0 : d->configs->v[i].value.n,
                       d->configs->v[i].value.p);
    printf("\n");
    return print_partitions(d);
}

static void report_partitions(struct report *r, json_t *array, const struct described *d)
{
    for (int32_t i = 0; i < d->topic->partitions_n; i++) {
        const struct topic_partition *p = &d->topic->partitions[i];
        const struct place *place = &d->places[i];
        json_t *o = report_add_object(r, array);
        report_put(r, o, "partition", json_integer(p->index));
        report_put(r, o, "leader", json_integer(p->leader));
        report_put(r, o, "leader_epoch", json_integer(p->leader_epoch));
        report_put(r, o, "replicas", report_ints(p->replicas, p->replicas_n));
        report_put(r, o, "isr", report_ints(p->isr, p->isr_n));
        report_put(r, o, "offline", report_ints(p->offline, p->offline_n));
        report_put(r, o, "start",
                   place->error != K_NONE ? json_null() : json_integer(place->start));
        report_put(r, o, "end", place->error != K_NONE ? json_null() : json_integer(place->end));
    }
}

static void report_topic(struct report *r, const struct described *d)
{
    const struct config_resource resource = {CONFIG_OF_TOPIC, d->topic->name};
    json_t *o = report_add_object(r, r->root), *configs = json_object();
    report_put(r, o, "name", report_text(d->topic->name));
    report_put(r, o, "id", report_uuid(d->topic->id));
    report_put(r, o, "internal", json_boolean(d->topic->internal));
    report_put(r, o, "replication_factor", json_integer(topics_replicas(d->topic)));
    report_put(r, o, "configs", configs);
    for (size_t i = 0; i < d->configs->n && !r->failed; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", d->configs->v[i].name.n, d->configs->v[i].name.p);
        if (configs_is_own(&resource, d->configs->v[i].config_source))
            report_put(r, configs, name, report_text(d->configs->v[i].value));
    }
    report_partitions(r, report_put_array(r, o, "partitions"), d);
}

/* Where each partition begins and ends; without an answer all have an error. */
static struct place *find_places(struct client *c, const struct topic *t)
{
    const struct position latest = {.kind = POSITION_LATEST};
    struct place *places = calloc((size_t)t->partitions_n + 1, sizeof *places);
    if (places == NULL)
        return NULL;
    for (int32_t i = 0; i < t->partitions_n; i++) {
        places[i] = (struct place){.topic = t->name, .partition = t->partitions[i].index};
        if (client_broker(c, t->partitions[i].leader) == NULL) /* not worth waiting for */
            places[i].error = K_LEADER_NOT_AVAILABLE;
    }
    if (offsets_resolve(c, latest, places, (size_t)t->partitions_n, false) != CLI_OK)
        for (int32_t i = 0; i < t->partitions_n; i++)
            places[i].error = K_UNKNOWN_SERVER_ERROR;
    return places;
}

static int describe_one(struct client *c, const struct topic *t, struct report *r)
{
    const struct config_resource resource = {CONFIG_OF_TOPIC, t->name};
    struct configs configs;
    struct place *places = find_places(c, t);
    if (places == NULL)
        return client_out_of_memory();
    int status = configs_read(c, &resource, &configs);
    const struct described d = {t, places, &configs};
    if (r != NULL)
        report_topic(r, &d);
    else if (print_text(&d) != CLI_OK)
        status = CLI_FAILED;
    configs_close(&configs);
    free(places);
    return status;
}

static int describe(struct client *c, const struct line *line, void *ctx)
{
    struct metadata m;
    struct report r;
    int status = topics_find(c, line->operands, line->operands_n, &m);
    if (status != CLI_OK)
        return status;
    if (line->json)
        report_init(&r, json_array());
    for (size_t i = 0; i < m.topics_n; i++) {
        if (i > 0 && !line->json)
            printf("\n");
        if (describe_one(c, &m.topics[i], line->json ? &r : NULL) != CLI_OK)
            status = CLI_FAILED;
    }
    if (line->json && report_print(&r) != CLI_OK)
        status = CLI_FAILED;
    metadata_close(&m);
    return status;
}

static int run(const struct verb *v, char **argv, int n)
{
    return line_run(v, argv, n, NULL, describe);
}

const struct verb topics_describe = {
    .name = "topics describe",
    .usage = "NAME... [--json]",
    .summary = "partitions, leaders, replicas, offsets, configuration",
    .json = true,
    .operand = "NAME",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = run,
};
