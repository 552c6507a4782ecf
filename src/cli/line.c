#include "cli/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text.h"

enum {
    OPTION_BROKERS = 500, /* the verbs' own are below */
    OPTION_TIMEOUT,
    OPTION_JSON,
    OPTION_HELP,
    OPTIONS_MAX = 32,
    TIMEOUT_MAX_S = 3600,
};

static const struct cli_option shared[] = {
    {OPTION_JSON, 0, "json", NULL, "print JSON"},
    {OPTION_BROKERS, 'b', "brokers", "HOST:PORT[,...]",
     "where brokers are; else $DOHLE_BROKERS, else\n" CLIENT_BROKERS_DEFAULT},
    {OPTION_TIMEOUT, 0, "timeout", "SECONDS", "how long each thing may take (30)"},
    {OPTION_HELP, 'h', "help", NULL, "this"},
};

/* The verb's options and the shared ones, in one table. */
static size_t options_of(const struct verb *v, struct cli_option out[OPTIONS_MAX])
{
    size_t n = 0;
    for (; n < v->options_n; n++)
        out[n] = v->options[n];
    for (size_t i = v->json ? 0 : 1; i < ARRAY_N(shared); i++)
        out[n++] = shared[i];
    return n;
}

static int take_shared(const struct verb *v, struct line *line, int id, const char *value,
                       bool *help)
{
    int64_t seconds;
    switch (id) {
    case OPTION_BROKERS:
        line->client.brokers = value;
        return CLI_OK;
    case OPTION_TIMEOUT:
        if (line_number(v, "timeout", value, 1, TIMEOUT_MAX_S, &seconds) != CLI_OK)
            return CLI_USAGE;
        line->client.timeout_ms = seconds * 1000;
        return CLI_OK;
    case OPTION_JSON:
        line->json = true;
        return CLI_OK;
    case OPTION_HELP:
        *help = true;
        return CLI_OK;
    }
    return CLI_USAGE;
}

static int read_line(const struct verb *v, struct args *a, void *ctx, struct line *line, bool *help)
{
    int id;
    while ((id = args_next(a)) > ARGS_END) {
        int status = CLI_OK;
        if (id == ARGS_OPERAND)
            line->operands[line->operands_n++] =
                a->argv[a->at - 1]; /* its place or one before it */
        else if (id >= OPTION_BROKERS)
            status = take_shared(v, line, id, a->value, help);
        else
            status = v->take(v, ctx, id, a->value);
        if (status != CLI_OK)
            return status;
    }
    return id == ARGS_END ? CLI_OK : CLI_USAGE;
}

static int check_operands(const struct verb *v, const struct line *line)
{
    if (line->operands_n < v->operands_min)
        return cli_usage_error(v->name, "%s is missing", v->operand);
    if (line->operands_n > v->operands_max)
        return cli_usage_error(v->name, "unexpected argument %s", line->operands[v->operands_max]);
    return CLI_OK;
}

static int print_help(const struct verb *v, const struct args *a)
{
    char usage[300], about[300];
    snprintf(usage, sizeof usage, "dohle %s%s%s", v->name, v->usage[0] != '\0' ? " " : "",
             v->usage);
    snprintf(about, sizeof about, "%s.", v->summary); /* a sentence of it */
    if (about[0] >= 'a' && about[0] <= 'z')
        about[0] = (char)(about[0] - 'a' + 'A');
    args_print_help(a, usage, v->about != NULL ? v->about : about);
    return cli_printed();
}

int line_run(const struct verb *v, char **argv, int n, void *ctx,
             int (*act)(struct client *c, const struct line *line, void *ctx))
{
    struct cli_option options[OPTIONS_MAX];
    struct args a = {.command = v->name,
                     .options = options,
                     .options_n = options_of(v, options),
                     .argv = argv,
                     .n = n,
                     .takes_operands = true};
    struct line line = {.client = {.timeout_ms = CLIENT_TIMEOUT_DEFAULT_S * 1000},
                        .operands = argv};
    struct client *c = NULL;
    bool help = false;
    int status = read_line(v, &a, ctx, &line, &help);
    if (status == CLI_OK && help)
        return print_help(v, &a);
    if (status == CLI_OK)
        status = check_operands(v, &line);
    if (status == CLI_OK)
        status = client_open(&line.client, v->name, &c);
    if (status == CLI_OK)
        status = act(c, &line, ctx);
    client_close(c);
    return status;
}

/* ------------------------------------------------------------------ verbs */

static const char *verb_of(const struct verb *v)
{
    return strchr(v->name, ' ') + 1;
}

static int help_verbs(const char *command, const char *about, const struct verb *const *verbs,
                      size_t verbs_n)
{
    printf("Usage: dohle %s VERB [ARGUMENT...]\n\n%s\n\nVerbs:\n", command, about);
    for (size_t i = 0; i < verbs_n; i++)
        printf("  %-16s %s\n", verb_of(verbs[i]), verbs[i]->summary);
    printf("\nThe options of one: dohle %s VERB --help\n", command);
    return cli_printed();
}

static int missing_verb(const char *command, const struct verb *const *verbs, size_t verbs_n)
{
    char list[300] = "";
    for (size_t i = 0; i < verbs_n; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i == 0 ? "" : ", ", verb_of(verbs[i]));
    }
    return cli_usage_error(command, "a verb is missing: %s", list);
}

int line_verbs(const char *command, const char *about, const struct verb *const *verbs,
               size_t verbs_n, char **argv, int n)
{
    if (n == 0)
        return missing_verb(command, verbs, verbs_n);
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
        return help_verbs(command, about, verbs, verbs_n);
    for (size_t i = 0; i < verbs_n; i++)
        if (strcmp(verb_of(verbs[i]), argv[0]) == 0)
            return verbs[i]->run(verbs[i], argv + 1, n - 1);
    return cli_usage_error(command, "unknown %s %s", argv[0][0] == '-' ? "option" : "verb",
                           argv[0]);
}

/* ------------------------------------------------------------------ values */

int line_number(const struct verb *v, const char *option, const char *value, int64_t min,
                int64_t max, int64_t *out)
{
    if (text_int(value, min, max, out))
        return CLI_OK;
    if (max == INT64_MAX)
        return cli_usage_error(v->name, "--%s needs a number from %lld, not %s", option,
                               (long long)min, value);
    return cli_usage_error(v->name, "--%s needs a number from %lld to %lld, not %s", option,
                           (long long)min, (long long)max, value);
}

int line_escaped(const struct verb *v, const char *option, const char *value, struct buf *out)
{
    out->n = 0;
    const enum err e = text_unescape(value, out);
    if (e == ERR_NOMEM)
        return client_out_of_memory();
    if (e != ERR_NONE)
        return cli_usage_error(v->name, "--%s knows \\n \\t \\r \\0 \\\\ \\xHH, not %s", option,
                               value);
    return out->n > 0 ? CLI_OK : cli_usage_error(v->name, "--%s is empty", option);
}

int line_add_pair(const struct verb *v, const char *option, const char *value, bool alone,
                  struct line_pairs *out)
{
    struct line_pair pair = {.value = STR_NULL};
    if (alone && value[0] != '\0')
        pair.key = str_of(value);
    else if (alone || !text_pair(value, &pair.key, &pair.value))
        return cli_usage_error(v->name, "%s%s%s%s, not %s", option == NULL ? "" : "--",
                               option == NULL ? "" : option, option == NULL ? "" : " needs ",
                               alone ? "KEY" : "KEY=VALUE", value);
    if (out->n == out->cap) {
        const size_t cap = out->cap == 0 ? 8 : 2 * out->cap;
        struct line_pair *p = realloc(out->v, cap * sizeof *p);
        if (p == NULL)
            return client_out_of_memory();
        out->v = p;
        out->cap = cap;
    }
    out->v[out->n++] = pair;
    return CLI_OK;
}

void line_pairs_close(struct line_pairs *p)
{
    free(p->v);
    *p = (struct line_pairs){0};
}
