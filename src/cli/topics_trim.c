/* Deletes the oldest records: every partition then starts at the place that --before means in it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/offsets.h"
#include "cli/table.h"
#include "cli/topics.h"
#include "wire/error.h"

enum { OPTION_BEFORE = 1, OPTION_PARTITION };

struct trim {
    const char *before;
    int64_t partition; /* -1: all */
};

struct trim_item {
    struct leader_item at;
    int64_t offset, start; /* asked for; as it is then */
};

static struct trim_item *item_of(struct leader_item *at)
{
    return CONTAINER_OF(at, struct trim_item, at);
}

static const void *request(const struct leader_op *op, struct arena *a,
                           struct leader_item *const *v, size_t n)
{
    struct delete_records_request *r = arena_alloc(a, sizeof *r);
    struct delete_records_request_delete_records_topic *topics =
        wire_array(&wire_delete_records_request_delete_records_topic, a, n);
    struct delete_records_request_delete_records_partition *partitions =
        wire_array(&wire_delete_records_request_delete_records_partition, a, n);
    if (r == NULL || topics == NULL || partitions == NULL)
        return NULL;
    wire_default(&wire_delete_records_request, r);
    r->timeout_ms = client_timeout_ms(op->ctx);
    r->topics.v = topics;
    for (size_t i = 0, same; i < n; i += same) {
        struct delete_records_request_delete_records_topic *t = &topics[r->topics.n++];
        same = leaders_same_topic(v + i, n - i);
        t->name = v[i]->topic;
        t->partitions.v = partitions + i;
        t->partitions.n = (int32_t)same;
    }
    for (size_t i = 0; i < n; i++) {
        partitions[i].partition_index = v[i]->partition;
        partitions[i].offset = item_of(v[i])->offset;
    }
    return r;
}

static void answer(const struct leader_op *op, const void *response, struct leader_item *const *v,
                   size_t n)
{
    const struct delete_records_response *r = response;
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++) {
            const struct delete_records_response_delete_records_partition_result *from =
                &r->topics.v[t].partitions.v[p];
            struct leader_item *item =
                leaders_find(v, n, r->topics.v[t].name, from->partition_index);
            if (item == NULL)
                continue;
            item->done = true;
            item->error = from->error_code;
            item_of(item)->start = from->low_watermark;
        }
}

static int tell(const struct trim_item *v, size_t n)
{
    int status = CLI_OK;
    for (size_t i = 0; i < n; i++) {
        char what[300];
        snprintf(what, sizeof what, "%.*s-%d", v[i].at.topic.n, v[i].at.topic.p, v[i].at.partition);
        if (v[i].at.error == K_POLICY_VIOLATION)
            status = client_tell_kafka(what, v[i].at.error,
                                       STR_LIT("its cleanup.policy does not contain delete"));
        else if (v[i].at.error != K_NONE)
            status = client_tell_kafka(what, v[i].at.error, STR_NULL);
        else
            print_line("%s starts at %lld", what, (long long)v[i].start);
    }
    return status != CLI_OK ? status : cli_printed();
}

static int delete_before(struct client *c, const struct place *places, size_t n)
{
    struct trim_item *items = calloc(n + 1, sizeof *items);
    const struct leader_op op = {.api = API_DELETE_RECORDS,
                                 .max_version = -1,
                                 .items = items,
                                 .item_bytes = sizeof *items,
                                 .n = n,
                                 .request = request,
                                 .answer = answer,
                                 .ctx = c};
    if (items == NULL)
        return client_out_of_memory();
    for (size_t i = 0; i < n; i++)
        items[i] = (struct trim_item){.at = {.topic = places[i].topic,
                                             .partition = places[i].partition,
                                             .done = places[i].error != K_NONE,
                                             .final = places[i].error != K_NONE,
                                             .error = places[i].error},
                                      .offset = places[i].offset};
    int status = leaders_ask(c, &op);
    if (status == CLI_OK)
        status = tell(items, n);
    free(items);
    return status;
}

static int trim_topic(struct client *c, const struct topic *t, const struct trim *o,
                      struct position before)
{
    struct place *places = calloc((size_t)t->partitions_n + 1, sizeof *places);
    size_t n = 0;
    if (places == NULL)
        return client_out_of_memory();
    for (int32_t i = 0; i < t->partitions_n; i++)
        if (o->partition < 0 || o->partition == t->partitions[i].index)
            places[n++] = (struct place){.topic = t->name, .partition = t->partitions[i].index};
    int status = CLI_OK;
    if (n == 0) {
        cli_error("%.*s has no partition %lld", t->name.n, t->name.p, (long long)o->partition);
        status = CLI_FAILED;
    }
    if (status == CLI_OK)
        status = offsets_resolve(c, before, places, n, false);
    if (status == CLI_OK)
        status = delete_before(c, places, n);
    free(places);
    return status;
}

static int trim(struct client *c, const struct line *line, void *ctx)
{
    const struct trim *o = ctx;
    struct position before;
    struct metadata m;
    if (o->before == NULL)
        return cli_usage_error("topics trim", "--before is missing");
    if (!position_parse(o->before, client_now(c).wall_ms, &before))
        return cli_usage_error("topics trim", "--before needs " POSITION_FORMS ", not %s",
                               o->before);
    int status = topics_find(c, line->operands, 1, &m);
    if (status != CLI_OK)
        return status;
    status = trim_topic(c, &m.topics[0], o, before);
    metadata_close(&m);
    return status;
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    struct trim *o = ctx;
    if (id == OPTION_PARTITION)
        return line_number(v, "partition", value, 0, INT32_MAX, &o->partition);
    o->before = value;
    return CLI_OK;
}

static int run(const struct verb *v, char **argv, int n)
{
    struct trim o = {.partition = -1};
    return line_run(v, argv, n, &o, trim);
}

static const struct cli_option options[] = {
    {OPTION_BEFORE, 0, "before", "POSITION",
     "delete what is before it: " POSITION_FORMS "\n"
     "(latest: all there is; -N: all but the last N)"},
    {OPTION_PARTITION, 'p', "partition", "N", "this one only"},
};

const struct verb topics_trim = {
    .name = "topics trim",
    .usage = "NAME --before POSITION [-p N]",
    .summary = "delete the oldest records of a topic",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .take = take,
    .run = run,
};
