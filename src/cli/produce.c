/* dohle produce: lines of files or stdin become records. Lines are read as fast as records are
 * written and no faster; a line that comes while nothing is under way is sent at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/line.h"
#include "cli/lines.h"
#include "cli/producer.h"
#include "cli/progress.h"
#include "cli/record_json.h"
#include "cli/signals.h"
#include "cli/text.h"
#include "net/loop.h"

enum {
    OPTION_KEY = 1,
    OPTION_HEADER,
    OPTION_CODEC,
    OPTION_PARTITION,
    OPTION_SAME_PARTITION,
    OPTION_ACKS,
    OPTION_DELIMITER,
    OPTION_NULL,
    OPTION_JSON_LINES,
};

struct produce {
    struct buf key_separator, delimiter;
    bool keys, json, same_partition;
    const char *null_text; /* NULL: no text stands for null */
    struct line_pairs headers;
    int64_t partition; /* -1: by key or in turn */
    int16_t acks;
    enum batch_codec codec;
    /* while it runs */
    struct client *client;
    struct lines lines;
    struct producer producer;
    struct arena arena; /* of the line at hand */
    struct progress progress;
    ev_io readable;
};

/* ------------------------------------------------------------------ lines */

static int refuse_line(const struct produce *o, const char *why)
{
    cli_error("%s, record %llu: %s", o->lines.name, (unsigned long long)o->lines.number, why);
    return CLI_FAILED;
}

static struct bytes bytes_of(const struct produce *o, const char *p, size_t n)
{
    if (o->null_text != NULL && strlen(o->null_text) == n && memcmp(o->null_text, p, n) == 0)
        return BYTES_NULL;
    return (struct bytes){(const uint8_t *)p, (int32_t)n};
}

static int parse_text(const struct produce *o, struct str line, struct record_line *out)
{
    const size_t n = (size_t)line.n, separator_n = o->key_separator.n;
    *out = (struct record_line){.key = BYTES_NULL};
    if (!o->keys) {
        out->value = bytes_of(o, line.p, n);
        return CLI_OK;
    }
    const char *at = memmem(line.p, n, o->key_separator.p, separator_n);
    if (at == NULL)
        return refuse_line(o, "it has no key separator");
    const size_t key_n = (size_t)(at - line.p);
    out->key = bytes_of(o, line.p, key_n);
    out->value = bytes_of(o, at + separator_n, n - key_n - separator_n);
    return CLI_OK;
}

static int parse_json(struct produce *o, struct str line, struct record_line *out)
{
    char message[RECORD_JSON_MESSAGE_BYTES];
    switch (record_json_read(line, &o->arena, out, message)) {
    case ERR_NONE:
        return CLI_OK;
    case ERR_NOMEM:
        return client_out_of_memory();
    default:
        return refuse_line(o, message);
    }
}

/* The line's own headers and those of the command line. */
static bool add_headers(struct produce *o, struct record_line *r)
{
    if (o->headers.n == 0)
        return true;
    const size_t n = (size_t)r->headers_n + o->headers.n;
    struct record_header *v = arena_array(&o->arena, n, sizeof *v);
    if (v == NULL)
        return false;
    for (int32_t i = 0; i < r->headers_n; i++)
        v[i] = r->headers[i];
    for (size_t i = 0; i < o->headers.n; i++) {
        const struct str value = o->headers.v[i].value;
        v[(size_t)r->headers_n + i] =
            (struct record_header){o->headers.v[i].key, {(const uint8_t *)value.p, value.n}};
    }
    r->headers = v;
    r->headers_n = (int32_t)n;
    return true;
}

static int add_line(struct produce *o, struct str line)
{
    struct record_line r;
    if (o->json && line.n == 0) /* between lines of JSON an empty one says nothing */
        return CLI_OK;
    int status = o->json ? parse_json(o, line, &r) : parse_text(o, line, &r);
    if (status == CLI_OK && o->same_partition && !r.has_partition)
        status = refuse_line(o, "it names no partition");
    if (status == CLI_OK && !add_headers(o, &r))
        status = client_out_of_memory();
    if (status == CLI_OK) {
        const struct producer_record record = {
            .timestamp = r.has_timestamp ? r.timestamp : client_now(o->client).wall_ms,
            .key = r.key,
            .value = r.value,
            .headers = r.headers,
            .headers_n = r.headers_n,
            .partition = o->same_partition ? r.partition : (int32_t)o->partition,
        };
        status = producer_add(&o->producer, &record);
    }
    arena_reset(&o->arena);
    return status;
}

/* Lines that are there, while the producer takes them. */
static int add_lines(struct produce *o, enum lines_state *state)
{
    char message[400];
    struct str line;
    int status = CLI_OK;
    *state = LINES_ONE;
    while (status == CLI_OK && o->producer.pending_bytes < PRODUCER_PENDING_BYTES) {
        *state = lines_next(&o->lines, &line, message, sizeof message);
        if (*state == LINES_FAILED) {
            cli_error("%s", message);
            return CLI_FAILED;
        }
        if (*state != LINES_ONE)
            return CLI_OK;
        status = add_line(o, line);
    }
    return status;
}

/* ------------------------------------------------------------------ the loop */

static void on_readable(struct ev_loop *ev, ev_io *w, int events)
{
    ev_io_stop(ev, w);
}

static void show_progress(struct produce *o)
{
    const struct producer *p = &o->producer;
    progress_add(&o->progress, p->written_n - o->progress.records,
                 p->written_bytes - o->progress.bytes, client_now(o->client));
}

/* Waits for what comes first: lines, answers, time. */
static void wait(struct produce *o, enum lines_state state)
{
    struct ev_loop *ev = client_loop(o->client)->ev;
    if (state == LINES_WAIT) {
        ev_io_set(&o->readable, o->lines.fd, EV_READ);
        ev_io_start(ev, &o->readable);
    }
    client_turn(o->client, producer_deadline_us(&o->producer));
    ev_io_stop(ev, &o->readable);
}

static int produce_all(struct produce *o)
{
    enum lines_state state = LINES_ONE;
    int status = CLI_OK;
    while (status == CLI_OK && state != LINES_END) {
        status = add_lines(o, &state);
        if (status == CLI_OK)
            status = producer_step(&o->producer);
        show_progress(o);
        if (status == CLI_OK && state != LINES_END)
            wait(o, state);
    }
    return status == CLI_OK ? producer_flush(&o->producer) : status;
}

/* What was written and what was not, when not all was. */
static void tell_result(struct produce *o)
{
    const struct producer *p = &o->producer;
    progress_wipe(&o->progress);
    if (p->added_n > 0)
        cli_error("%llu records are written, %llu that were read are not or may not be",
                  (unsigned long long)p->written_n,
                  (unsigned long long)(p->added_n - p->written_n));
}

/* Nothing waits to be written: that was all, as far as anybody can say. */
static void interrupted(void *ctx)
{
    struct produce *o = ctx;
    progress_wipe(&o->progress);
    if (o->producer.pending_bytes == 0)
        _exit(CLI_OK);
    tell_result(o);
    _exit(CLI_FAILED);
}

static int produce(struct client *c, const struct line *line, void *ctx)
{
    struct produce *o = ctx;
    struct signals signals;
    if (o->same_partition && !o->json)
        return cli_usage_error("produce", "--same-partition needs --json");
    if (o->json && (o->keys || o->null_text != NULL))
        return cli_usage_error("produce", "--key and --null are not for --json");
    if (o->same_partition && o->partition >= 0)
        return cli_usage_error("produce", "--partition and --same-partition exclude each other");
    if (o->delimiter.n == 0 && buf_append(&o->delimiter, "\n", 1) != ERR_NONE)
        return client_out_of_memory();
    const struct producer_args args = {
        .client = c, .topic = str_of(line->operands[0]), .acks = o->acks, .codec = o->codec};
    o->client = c;
    arena_init(&o->arena, client_memory(c));
    lines_init(&o->lines, line->operands + 1, line->operands_n - 1,
               (struct bytes){o->delimiter.p, (int32_t)o->delimiter.n});
    progress_init(&o->progress, STDIN_FILENO);
    ev_io_init(&o->readable, on_readable, STDIN_FILENO, EV_READ);
    int status = producer_open(&o->producer, &args);
    signals_watch(&signals, c, interrupted, o);
    if (status == CLI_OK)
        status = produce_all(o);
    if (status != CLI_OK)
        tell_result(o);
    progress_wipe(&o->progress);
    signals_unwatch(&signals);
    producer_close(&o->producer);
    lines_close(&o->lines);
    arena_close(&o->arena);
    return status;
}

/* ------------------------------------------------------------------ the command line */

static int take_codec(const struct verb *v, struct produce *o, const char *value)
{
    static const char *const names[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    for (size_t i = 0; i < ARRAY_N(names); i++)
        if (strcmp(names[i], value) == 0) {
            o->codec = (enum batch_codec)i;
            return CLI_OK;
        }
    return cli_usage_error(v->name, "--codec is none, gzip, snappy, lz4 or zstd, not %s", value);
}

static int take_acks(const struct verb *v, struct produce *o, const char *value)
{
    if (strcmp(value, "all") == 0 || strcmp(value, "-1") == 0)
        o->acks = -1;
    else if (strcmp(value, "0") == 0 || strcmp(value, "1") == 0)
        o->acks = (int16_t)(value[0] - '0');
    else
        return cli_usage_error(v->name, "--acks is all, 1 or 0, not %s", value);
    return CLI_OK;
}

static int take(const struct verb *v, void *ctx, int id, const char *value)
{
    struct produce *o = ctx;
    switch (id) {
    case OPTION_KEY:
        o->keys = true;
        return line_escaped(v, "key", value, &o->key_separator);
    case OPTION_HEADER:
        return line_add_pair(v, "header", value, false, &o->headers);
    case OPTION_CODEC:
        return take_codec(v, o, value);
    case OPTION_PARTITION:
        return line_number(v, "partition", value, 0, INT32_MAX, &o->partition);
    case OPTION_SAME_PARTITION:
        o->same_partition = true;
        return CLI_OK;
    case OPTION_ACKS:
        return take_acks(v, o, value);
    case OPTION_DELIMITER:
        return line_escaped(v, "delimiter", value, &o->delimiter);
    case OPTION_NULL:
        o->null_text = value;
        return CLI_OK;
    case OPTION_JSON_LINES:
        o->json = true;
        return CLI_OK;
    }
    return CLI_USAGE;
}

static int run_verb(const struct verb *v, char **argv, int n)
{
    struct produce o = {.partition = -1, .acks = -1};
    const int status = line_run(v, argv, n, &o, produce);
    buf_close(&o.key_separator);
    buf_close(&o.delimiter);
    line_pairs_close(&o.headers);
    return status;
}

static const struct cli_option options[] = {
    {OPTION_KEY, 'K', "key", "SEPARATOR", "each line is a key, SEPARATOR and a value"},
    {OPTION_HEADER, 'H', "header", "KEY=VALUE", "a header for each record; may be repeated"},
    {OPTION_CODEC, 'z', "codec", "CODEC", "none, gzip, snappy, lz4, zstd (none)"},
    {OPTION_PARTITION, 'p', "partition", "N", "to this one; else by the key, in turn without"},
    {OPTION_JSON_LINES, 0, "json", NULL,
     "lines are JSON, as dohle consume --json writes them:\n"
     "value or value_base64; key, headers, timestamp if wanted"},
    {OPTION_SAME_PARTITION, 0, "same-partition", NULL,
     "to the partition that the line of JSON names"},
    {OPTION_ACKS, 0, "acks", "ACKS", "all, 1 or 0 (all, each record written once)"},
    {OPTION_DELIMITER, 'd', "delimiter", "TEXT", "ends a record (\\n)"},
    {OPTION_NULL, 0, "null", "TEXT", "a key or value that is TEXT is null"},
};

static const struct verb verb = {
    .name = "produce",
    .usage = "TOPIC [FILE...] [-K SEPARATOR] [-H KEY=VALUE]... [-z CODEC] [-p N] [--json]",
    .summary = "Writes lines of stdin or of files to a topic.",
    .about =
        "Writes each line of the files, or of stdin, as a record. TEXT and SEPARATOR may hold\n"
        "\\n \\t \\r \\0 \\\\ \\xHH.",
    .options = options,
    .options_n = ARRAY_N(options),
    .operand = "TOPIC",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .take = take,
    .run = run_verb,
};

static int run(char **argv, int n)
{
    return run_verb(&verb, argv, n);
}

const struct cli_command cli_produce = {"produce", "write records to a topic", run};
