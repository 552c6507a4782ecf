/* dohle consume: the records of a topic on stdout, as text or as lines of JSON that dohle produce
 * takes. What waits for stdout is bounded: nothing is fetched into memory for a reader that does
 * not read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/consume.h"
#include "cli/record_json.h"
#include "cli/signals.h"
#include "wire/error.h"

enum { LATE_US = 3000 * 1000 };

enum {
    OPTION_FROM = 1,
    OPTION_PARTITION,
    OPTION_COUNT,
    OPTION_END,
    OPTION_KEY,
    OPTION_DELIMITER,
    OPTION_NULL,
    OPTION_ISOLATION,
    OPTION_GROUP,
};

/* ------------------------------------------------------------------ records */

static enum err append_bytes(const struct consume *o, struct bytes b, struct buf *out)
{
    if (b.n < 0)
        return buf_append(out, o->null_text, strlen(o->null_text));
    return buf_append(out, b.p, (size_t)b.n);
}

static enum err append_text(struct consume *o, const struct record *r)
{
    struct buf *out = &o->out.buf;
    enum err e = ERR_NONE;
    if (o->keys) {
        e = append_bytes(o, r->key, out);
        if (e == ERR_NONE)
            e = buf_append(out, o->key_separator.p, o->key_separator.n);
    }
    if (e == ERR_NONE)
        e = append_bytes(o, r->value, out);
    return e == ERR_NONE ? buf_append(out, o->delimiter.p, o->delimiter.n) : e;
}

bool consume_record(void *ctx, int32_t partition, const struct record *r)
{
    struct consume *o = ctx;
    const enum err e =
        o->json ? record_json_write(o->topic, partition, r, &o->out.buf) : append_text(o, r);
    if (e != ERR_NONE) {
        (void)client_out_of_memory();
        o->failed = true;
        return false;
    }
    progress_add(&o->progress, 1, (uint64_t)(r->value.n > 0 ? r->value.n : 0),
                 client_now(o->out.client));
    if (o->count > 0 && --o->count == 0)
        return false;
    return o->out.buf.n - o->out.sent <= OUTPUT_WAIT_BYTES ||
           output_wait(&o->out, OUTPUT_WAIT_BYTES / 2);
}

static bool pause_reading(void *ctx)
{
    struct consume *o = ctx;
    return output_pump(&o->out);
}

/* What can be written at once is; the exit status is that of a work that was ended as it should be
 * when it has no end of its own. */
static void end_at_once(struct consume *o)
{
    (void)output_pump(&o->out);
    progress_wipe(&o->progress);
    if (o->unsaved)
        cli_error("group %s was not told what was read last: it will come again", o->group);
    _exit(o->unsaved || o->end || o->count > 0 ? CLI_FAILED : CLI_OK);
}

static void too_late(struct timer *t)
{
    end_at_once(CONTAINER_OF(t, struct consume, late));
}

/* A member commits and leaves first, once: neither a slow reader of stdout nor a broker that does
 * not answer nor a second signal is waited for. */
static void interrupted(void *ctx)
{
    struct consume *o = ctx;
    struct client *c = o->out.client;
    if (!o->member || o->interrupted)
        end_at_once(o);
    o->interrupted = o->out.hurried = true;
    o->late.fire = too_late;
    client_hurry(c);
    if (!client_start_timer(c, &o->late, client_now(c).mono_us + LATE_US))
        end_at_once(o);
}

/* ------------------------------------------------------------------ where to begin */

/* A given offset may lie outside; what is done then is told. */
void consume_into_range(const struct consume *o, struct place *p)
{
    const int64_t wanted = p->offset;
    if (p->offset < p->start)
        p->offset = p->start;
    if (p->offset > p->end)
        p->offset = p->end;
    if (p->offset != wanted)
        cli_error("%.*s-%d has no offset %lld: it holds %lld to %lld, beginning at %lld",
                  o->topic.n, o->topic.p, p->partition, (long long)wanted, (long long)p->start,
                  (long long)p->end, (long long)p->offset);
}

int consume_places(struct client *c, const struct consume *o, struct position from,
                   struct place *places, size_t n)
{
    const int status = offsets_resolve(c, from, places, n, o->committed);
    for (size_t i = 0; i < n && status == CLI_OK; i++) {
        char what[300];
        snprintf(what, sizeof what, "%.*s-%d", o->topic.n, o->topic.p, places[i].partition);
        if (places[i].error != K_NONE)
            return client_tell_kafka(what, places[i].error, STR_NULL);
        consume_into_range(o, &places[i]);
    }
    return status;
}

static int run_reader(struct client *c, struct consume *o, const struct place *places, size_t n)
{
    const struct reader_events events = {o, consume_record, pause_reading};
    struct reader reader;
    int status = reader_open(&reader, c, o->topic, places, n, o->end, &events);
    reader.committed = o->committed;
    reader.new_ones = !o->end && o->partition < 0;
    if (status == CLI_OK)
        status = reader_run(&reader);
    reader_close(&reader);
    return o->failed ? CLI_FAILED : status;
}

static int finish_output(struct consume *o, int status)
{
    (void)output_wait(&o->out, 0);
    if (o->out.failed != 0) {
        cli_error("cannot write to standard output: %s", strerror(o->out.failed));
        return CLI_FAILED;
    }
    return status;
}

int consume_topic(struct client *c, const struct consume *o, struct metadata *m,
                  const struct topic **out)
{
    const struct metadata_args args = {.scope = METADATA_TOPICS, .topics = &o->topic, .n = 1};
    const int status = client_metadata(c, &args, m);
    if (status != CLI_OK)
        return status;
    const struct topic *t = metadata_topic(m, o->topic);
    const int16_t code = t == NULL ? K_UNKNOWN_TOPIC_OR_PARTITION : t->error;
    *out = t;
    if (code == K_NONE) {
        client_be_patient(c);
        return CLI_OK;
    }
    char what[300];
    snprintf(what, sizeof what, "topic %s", o->topic.p);
    metadata_close(m);
    return client_tell_kafka(what, code, STR_NULL);
}

static int read_topic(struct client *c, struct consume *o, struct position from)
{
    struct metadata m;
    const struct topic *t;
    int status = consume_topic(c, o, &m, &t);
    if (status != CLI_OK)
        return status;
    struct place *places = calloc((size_t)t->partitions_n + 1, sizeof *places);
    size_t n = 0;
    for (int32_t i = 0; places != NULL && i < t->partitions_n; i++)
        if (o->partition < 0 || o->partition == t->partitions[i].index)
            places[n++] = (struct place){.topic = o->topic, .partition = t->partitions[i].index};
    metadata_close(&m);
    if (places == NULL) {
        status = client_out_of_memory();
    } else if (n == 0) {
        cli_error("topic %s has no partition %lld", o->topic.p, (long long)o->partition);
        status = CLI_FAILED;
    }
    if (status == CLI_OK)
        status = consume_places(c, o, from, places, n);
    if (status == CLI_OK)
        status = run_reader(c, o, places, n);
    free(places);
    return status;
}

static int consume(struct client *c, const struct line *line, void *ctx)
{
    struct consume *o = ctx;
    struct signals signals;
    struct position from;
    if (!position_parse(o->from, client_now(c).wall_ms, &from))
        return cli_usage_error("consume", "--from needs " POSITION_FORMS ", not %s", o->from);
    if (o->group != NULL && o->partition >= 0)
        return cli_usage_error("consume", "--group and --partition exclude each other");
    o->topic = str_of(line->operands[0]);
    o->json = line->json;
    if (o->delimiter.n == 0 && buf_append(&o->delimiter, "\n", 1) != ERR_NONE)
        return client_out_of_memory();
    output_init(&o->out, c);
    progress_init(&o->progress, STDOUT_FILENO);
    signals_watch(&signals, c, interrupted, o);
    int status = o->group != NULL ? consume_as_member(c, o, from) : read_topic(c, o, from);
    progress_wipe(&o->progress);
    status = finish_output(o, status);
    client_stop_timer(c, &o->late);
    signals_unwatch(&signals);
    output_close(&o->out);
    return status;
}

/* ------------------------------------------------------------------ the command line */

static int take_isolation(const struct verb *v, struct consume *o, const char *value)
{
    o->committed = strcmp(value, "read_committed") == 0;
    if (o->committed || strcmp(value, "read_uncommitted") == 0)
        return CLI_OK;
    return cli_usage_error(v->name, "--isolation is read_committed or read_uncommitted, not %s",
                           value);
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    struct consume *o = ctx;
    switch (id) {
    case OPTION_FROM:
        o->from = value;
        return CLI_OK;
    case OPTION_PARTITION:
        return line_number(v, "partition", value, 0, INT32_MAX, &o->partition);
    case OPTION_COUNT:
        return line_number(v, "count", value, 1, INT64_MAX, &o->count);
    case OPTION_END:
        o->end = true;
        return CLI_OK;
    case OPTION_KEY:
        o->keys = true;
        return line_escaped(v, "key", value, &o->key_separator);
    case OPTION_DELIMITER:
        return line_escaped(v, "delimiter", value, &o->delimiter);
    case OPTION_NULL:
        o->null_text = value;
        return CLI_OK;
    case OPTION_ISOLATION:
        return take_isolation(v, o, value);
    case OPTION_GROUP:
        o->group = value;
        return value[0] != '\0' ? CLI_OK : cli_usage_error(v->name, "--group needs GROUP");
    }
    return CLI_USAGE;
}

static int run_verb(const struct verb *v, char **argv, int n)
{
    struct consume o = {.from = "earliest", .partition = -1, .count = -1, .null_text = ""};
    const int status = line_run(v, argv, n, &o, consume);
    buf_close(&o.key_separator);
    buf_close(&o.delimiter);
    return status;
}

static const struct cli_option options[] = {
    {OPTION_FROM, 0, "from", "POSITION",
     "where to begin in each partition: " POSITION_FORMS "\n"
     "(earliest); TIME is milliseconds, 2026-01-31T10:00Z, or\n"
     "-90s, -15m, -2h, -7d from now"},
    {OPTION_PARTITION, 'p', "partition", "N", "this one only"},
    {OPTION_COUNT, 'n', "count", "N", "so many records, then stop"},
    {OPTION_END, 'e', "end", NULL, "stop at the end as it is now; else follow"},
    {OPTION_GROUP, 'g', "group", "GROUP",
     "as a member of GROUP: a share of the partitions, on\n"
     "from what the group has committed (--from without), and\n"
     "commit what is written"},
    {OPTION_KEY, 'K', "key", "SEPARATOR", "the key and SEPARATOR before each value"},
    {OPTION_DELIMITER, 'd', "delimiter", "TEXT", "after each record (\\n)"},
    {OPTION_NULL, 0, "null", "TEXT", "for a null key or value (nothing)"},
    {OPTION_ISOLATION, 0, "isolation", "LEVEL",
     "read_committed leaves out aborted transactions and\n"
     "what is not committed yet (read_uncommitted)"},
};

static const struct verb verb = {
    .name = "consume",
    .usage = "TOPIC [--from POSITION] [-p N | -g GROUP] [-n N] [-e] [--json]",
    .summary = "Prints the records of a topic.",
    .about = "Prints the records of a topic, as text or with --json as lines that dohle produce\n"
             "--json takes. TEXT and SEPARATOR may hold \\n \\t \\r \\0 \\\\ \\xHH.",
    .options = options,
    .options_n = ARRAY_N(options),
    .json = true,
    .operand = "TOPIC",
    .operands_min = 1,
    .operands_max = 1,
    .take = take,
    .run = run_verb,
};

static int run(char **argv, int n)
{
    return run_verb(&verb, argv, n);
}

const struct cli_command cli_consume = {"consume", "print the records of a topic", run};
