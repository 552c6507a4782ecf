/* The command line of a client: COMMAND VERB, the options that all clients share, the verb's own,
 * operands. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include "cli/args.h"
#include "cli/client.h"

struct line {
    struct client_options client;
    bool json;
    char **operands;
    size_t operands_n;
};

struct verb {
    const char *name;  /* with the command's, "topics create"; of a command without verbs its own */
    const char *usage; /* what follows the name */
    const char *summary;              /* one line for the list of verbs */
    const char *about;                /* for its help; NULL: the summary says it all */
    const struct cli_option *options; /* own */
    size_t options_n;
    bool json;           /* takes --json */
    const char *operand; /* what is missing below operands_min */
    size_t operands_min, operands_max;
    /* One of the own options: CLI_OK, or CLI_USAGE after it was told. */
    int (*take)(const struct verb *v, void *ctx, int id, const char *value);
    int (*run)(const struct verb *v, char **argv, int n);
};

/* Reads the line, opens a client, acts, closes it. Help and mistakes end here. */
int line_run(const struct verb *v, char **argv, int n, void *ctx,
             int (*act)(struct client *c, const struct line *line, void *ctx));
/* Runs the verb that argv names, or helps. */
int line_verbs(const char *command, const char *about, const struct verb *const *verbs,
               size_t verbs_n, char **argv, int n);
/* For take: value is a number from min to max, or CLI_USAGE. */
int line_number(const struct verb *v, const char *option, const char *value, int64_t min,
                int64_t max, int64_t *out);

/* For take: value with its escapes replaced, not empty. */
int line_escaped(const struct verb *v, const char *option, const char *value, struct buf *out);

/* KEY=VALUE options that may be repeated. */
struct line_pair {
    struct str key, value; /* value null: the key alone */
};

struct line_pairs {
    struct line_pair *v;
    size_t n, cap;
};

/* Appends KEY=VALUE, or KEY alone when `alone`. option NULL: value is an operand. */
int line_add_pair(const struct verb *v, const char *option, const char *value, bool alone,
                  struct line_pairs *out);
void line_pairs_close(struct line_pairs *p);

#endif
