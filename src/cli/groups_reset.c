/* Where a group goes on reading: the place that --to means in each partition of the topics. Nothing
 * is changed before --execute is given. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/groups.h"
#include "cli/offsets.h"
#include "cli/table.h"
#include "cli/text.h"
#include "wire/error.h"

enum { OPTION_TO = 1, OPTION_TOPIC, OPTION_ALL_TOPICS, OPTION_EXECUTE, BY_NAME_VERSION = 9 };

struct reset {
    const char *to;
    struct line_pairs topics; /* "TOPIC" or "TOPIC:PARTITION" as keys */
    bool all_topics, execute;
    /* while it runs */
    struct str group;
    struct broker *coordinator;
    struct group_offsets before;
    struct place *places;
    size_t places_n;
};

/* ------------------------------------------------------------------ which partitions */

/* "TOPIC:PARTITION"; -1 without one. No topic's name holds a colon. */
static bool split(struct str text, struct str *topic, int64_t *partition)
{
    *topic = text;
    *partition = -1;
    if (text.n <= 0)
        return false;
    const char *colon = memchr(text.p, ':', (size_t)text.n);
    if (colon == NULL)
        return true;
    topic->n = (int32_t)(colon - text.p);
    return topic->n > 0 && text_int(colon + 1, 0, INT32_MAX, partition);
}

static int by_partition(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int order = str_cmp(x->topic, y->topic);
    return order != 0 ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

/* By topic and partition, each once. */
static void sort_places(struct reset *o)
{
    size_t kept = 0;
    qsort(o->places, o->places_n, sizeof *o->places, by_partition);
    for (size_t i = 0; i < o->places_n; i++)
        if (kept == 0 || by_partition(&o->places[kept - 1], &o->places[i]) != 0)
            o->places[kept++] = o->places[i];
    o->places_n = kept;
}

static void add_place(struct reset *o, struct str topic, int32_t partition)
{
    o->places[o->places_n++] = (struct place){.topic = topic, .partition = partition};
}

static int new_places(struct reset *o, size_t n)
{
    o->places = calloc(n + 1, sizeof *o->places);
    return o->places != NULL ? CLI_OK : client_out_of_memory();
}

static int places_of_group(struct reset *o)
{
    int status = new_places(o, o->before.n);
    for (size_t i = 0; i < o->before.n && status == CLI_OK; i++)
        add_place(o, o->before.v[i].topic, o->before.v[i].partition);
    if (status == CLI_OK && o->places_n == 0) {
        cli_error("group %.*s has committed no offsets; --topic says where it is to begin",
                  o->group.n, o->group.p);
        status = CLI_FAILED;
    }
    return status;
}

/* One --topic; t is NULL when there is none like that. */
static int places_of_topic(struct reset *o, const struct topic *t, struct str name,
                           int64_t partition)
{
    char what[300];
    snprintf(what, sizeof what, "topic %.*s", name.n, name.p);
    if (t == NULL || t->error != K_NONE)
        return client_tell_kafka(what, t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : t->error,
                                 STR_NULL);
    bool found = false;
    for (int32_t i = 0; i < t->partitions_n; i++)
        if (partition < 0 || partition == t->partitions[i].index) {
            add_place(o, t->name, t->partitions[i].index);
            found = true;
        }
    if (found)
        return CLI_OK;
    cli_error("%s has no partition %lld", what, (long long)partition);
    return CLI_FAILED;
}

static int places_of_topics(struct client *c, struct reset *o, struct metadata *m)
{
    struct str *names = calloc(o->topics.n, sizeof *names);
    int64_t *partitions = calloc(o->topics.n, sizeof *partitions);
    size_t all = 0;
    int status = names == NULL || partitions == NULL ? client_out_of_memory() : CLI_OK;
    for (size_t i = 0; i < o->topics.n && status == CLI_OK; i++)
        (void)split(o->topics.v[i].key, &names[i], &partitions[i]); /* checked before */
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = names, .n = o->topics.n};
    if (status == CLI_OK)
        status = client_metadata(c, &args, m);
    for (size_t i = 0; i < o->topics.n && status == CLI_OK; i++) {
        const struct topic *t = metadata_topic(m, names[i]);
        all += t == NULL ? 0 : (size_t)t->partitions_n;
    }
    if (status == CLI_OK)
        status = new_places(o, all);
    for (size_t i = 0; i < o->topics.n && status == CLI_OK; i++)
        status = places_of_topic(o, metadata_topic(m, names[i]), names[i], partitions[i]);
    free(names);
    free(partitions);
    return status;
}

/* ------------------------------------------------------------------ commit */

static int send_commit(struct client *c, struct reset *o,
                       struct offset_commit_request_offset_commit_request_topic *topics,
                       struct offset_commit_request_offset_commit_request_partition *partitions,
                       struct answer *a)
{
    struct offset_commit_request request;
    wire_default(&wire_offset_commit_request, &request);
    request.group_id = o->group;
    request.generation_id_or_member_epoch = -1;
    request.topics.v = topics;
    for (size_t i = 0; i < o->places_n; i++) { /* places are sorted by topic */
        if (i == 0 || !str_eq(o->places[i].topic, o->places[i - 1].topic)) {
            struct offset_commit_request_offset_commit_request_topic *t =
                &topics[request.topics.n++];
            t->name = o->places[i].topic;
            t->partitions.v = &partitions[i];
        }
        topics[request.topics.n - 1].partitions.n++;
        partitions[i].partition_index = o->places[i].partition;
        partitions[i].committed_offset = o->places[i].offset;
        partitions[i].committed_leader_epoch = -1;
        partitions[i].committed_metadata = STR_LIT("");
    }
    return client_call(c, o->coordinator, a, API_OFFSET_COMMIT, BY_NAME_VERSION, &request);
}

static int tell_refused(const struct offset_commit_response *r)
{
    int status = CLI_OK;
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t p = 0; p < r->topics.v[t].partitions.n; p++) {
            char what[300];
            if (r->topics.v[t].partitions.v[p].error_code == K_NONE)
                continue;
            snprintf(what, sizeof what, "%.*s-%d", r->topics.v[t].name.n, r->topics.v[t].name.p,
                     r->topics.v[t].partitions.v[p].partition_index);
            status = client_tell_kafka(what, r->topics.v[t].partitions.v[p].error_code, STR_NULL);
        }
    return status;
}

static int commit(struct client *c, struct reset *o)
{
    struct offset_commit_request_offset_commit_request_topic *topics =
        calloc(o->places_n, sizeof *topics);
    struct offset_commit_request_offset_commit_request_partition *partitions =
        calloc(o->places_n, sizeof *partitions);
    struct answer a = {0};
    int status = CLI_FAILED;
    if (topics == NULL || partitions == NULL)
        status = client_out_of_memory();
    else
        status = send_commit(c, o, topics, partitions, &a);
    if (status == CLI_OK)
        status = tell_refused(a.response);
    answer_close(&a);
    free(topics);
    free(partitions);
    return status;
}

/* ------------------------------------------------------------------ all of it */

/* A committed offset outside the log would be reset by the reader in its own way. */
static int check_places(struct reset *o)
{
    for (size_t i = 0; i < o->places_n; i++) {
        struct place *p = &o->places[i];
        char what[300];
        snprintf(what, sizeof what, "%.*s-%d", p->topic.n, p->topic.p, p->partition);
        if (p->error != K_NONE)
            return client_tell_kafka(what, p->error, STR_NULL);
        const int64_t wanted = p->offset;
        p->offset = wanted < p->start ? p->start : wanted > p->end ? p->end : wanted;
        if (p->offset != wanted)
            cli_error("%s holds %lld to %lld: %lld is taken for %lld", what, (long long)p->start,
                      (long long)p->end, (long long)p->offset, (long long)wanted);
    }
    return CLI_OK;
}

static int print_places(struct reset *o)
{
    static const char *const heads[] = {"TOPIC", ">PARTITION", ">BEFORE", ">AFTER"};
    struct table t;
    table_init(&t, heads, ARRAY_N(heads));
    for (size_t i = 0; i < o->places_n; i++) {
        const struct group_offset *before =
            group_offsets_find(&o->before, o->places[i].topic, o->places[i].partition);
        table_add_str(&t, o->places[i].topic);
        table_add(&t, "%d", o->places[i].partition);
        if (before == NULL || before->committed < 0)
            table_add_str(&t, STR_NULL);
        else
            table_add(&t, "%lld", (long long)before->committed);
        table_add(&t, "%lld", (long long)o->places[i].offset);
    }
    const int status = table_print(&t);
    if (status == CLI_OK && !o->execute)
        print_line("nothing is changed yet: --execute does it");
    return status == CLI_OK ? cli_printed() : status;
}

/* Members would commit over it. */
static int check_members(struct client *c, struct reset *o)
{
    struct group g;
    int status = group_look(c, o->coordinator, o->group, &o->before, &g);
    if (status == CLI_OK && g.members_n > 0) {
        cli_error("group %.*s has members (%zu): stop them first", o->group.n, o->group.p,
                  g.members_n);
        status = CLI_FAILED;
    }
    group_close(&g);
    return status;
}

static int reset_group(struct client *c, struct reset *o, struct position to)
{
    struct metadata m = {0};
    int status = client_coordinator(c, o->group, &o->coordinator);
    if (status == CLI_OK)
        status = group_offsets_committed(c, o->coordinator, o->group, &o->before);
    if (status == CLI_OK)
        status = check_members(c, o);
    if (status == CLI_OK)
        status = o->all_topics ? places_of_group(o) : places_of_topics(c, o, &m);
    if (status == CLI_OK)
        sort_places(o);
    if (status == CLI_OK)
        status = offsets_resolve(c, to, o->places, o->places_n, false);
    if (status == CLI_OK)
        status = check_places(o);
    if (status == CLI_OK && o->execute)
        status = commit(c, o);
    if (status == CLI_OK)
        status = print_places(o);
    free(o->places);
    group_offsets_close(&o->before);
    metadata_close(&m);
    return status;
}

static int reset(struct client *c, const struct line *line, void *ctx)
{
    struct reset *o = ctx;
    struct position to;
    if (o->to == NULL)
        return cli_usage_error("groups reset", "--to is missing");
    if (!position_parse(o->to, client_now(c).wall_ms, &to))
        return cli_usage_error("groups reset", "--to needs " POSITION_FORMS ", not %s", o->to);
    if ((o->topics.n == 0) == !o->all_topics)
        return cli_usage_error("groups reset", "either --topic or --all-topics is needed");
    o->group = str_of(line->operands[0]);
    return reset_group(c, o, to);
}

static int take_topic(const struct verb *v, struct reset *o, const char *value)
{
    struct str topic;
    int64_t partition;
    if (!split(str_of(value), &topic, &partition))
        return cli_usage_error(v->name, "--topic needs TOPIC or TOPIC:PARTITION, not %s", value);
    return line_add_pair(v, "topic", value, true, &o->topics);
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    struct reset *o = ctx;
    switch (id) {
    case OPTION_TO:
        o->to = value;
        return CLI_OK;
    case OPTION_TOPIC:
        return take_topic(v, o, value);
    case OPTION_ALL_TOPICS:
        o->all_topics = true;
        return CLI_OK;
    case OPTION_EXECUTE:
        o->execute = true;
        return CLI_OK;
    }
    return CLI_USAGE;
}

static int run(const struct verb *v, char **argv, int n)
{
    struct reset o = {0};
    const int status = line_run(v, argv, n, &o, reset);
    line_pairs_close(&o.topics);
    return status;
}

static const struct cli_option options[] = {
    {OPTION_TO, 0, "to", "POSITION",
     POSITION_FORMS "; TIME is\nmilliseconds, 2026-01-31T10:00Z, or -2h from now"},
    {OPTION_TOPIC, 't', "topic", "TOPIC[:PARTITION]", "this topic or partition; may be repeated"},
    {OPTION_ALL_TOPICS, 0, "all-topics", NULL, "all that the group has committed offsets for"},
    {OPTION_EXECUTE, 0, "execute", NULL, "do it; else only show what would be done"},
};

const struct verb verb_groups_reset = {
    .name = "groups reset",
    .usage = "GROUP --to POSITION (--topic TOPIC... | --all-topics) [--execute]",
    .summary = "move a group's offsets",
    .about =
        "Shows where the offsets of a group without members would be moved; with --execute moves\n"
        "them.",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "GROUP",
    .operands_min = 1,
    .operands_max = 1,
    .take = take,
    .run = run,
};
