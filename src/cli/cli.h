/* The command line: what the commands share. A command gets its arguments without the program's and
 * its own name and returns the process's exit status.
 *
 * Errors go to stderr as "dohle: what is wrong"; usage errors add a line that says where help is.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stddef.h>
#include <stdint.h>

enum cli_status {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CONFIG = 78, /* EX_CONFIG of sysexits: starting again will not help */
};

struct cli_command {
    const char *name;
    const char *summary; /* one line for the list of commands */
    int (*run)(char **args, int n);
};

extern const struct cli_command cli_start, cli_topics, cli_produce, cli_consume, cli_groups,
    cli_configs, cli_cluster, cli_format, cli_random_uuid;

/* Runs the command that argv names. started_us is monotonic, as early in main as can be. */
int cli_run(int argc, char **argv, int64_t started_us);
int64_t cli_started_us(void);

/* "dohle: ...", with what is not for a terminal replaced, and a newline. */
__attribute__((format(printf, 1, 2))) void cli_error(const char *fmt, ...);
/* The same, and a second line "Try 'dohle COMMAND --help'." (command may be ""). CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int cli_usage_error(const char *command, const char *fmt,
                                                          ...);
/* Flushes stdout: CLI_FAILED with an error when what was printed did not arrive. */
int cli_printed(void);

#endif
