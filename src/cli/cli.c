#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/text.h"

static int64_t started;

static const struct cli_command *const commands[] = {&cli_start,   &cli_topics, &cli_produce,
                                                     &cli_consume, &cli_groups, &cli_configs,
                                                     &cli_cluster, &cli_format, &cli_random_uuid};

int64_t cli_started_us(void)
{
    return started;
}

__attribute__((format(printf, 1, 0))) static void print_line(const char *fmt, va_list ap)
{
    char line[1024];
    struct buf clean;
    vsnprintf(line, sizeof line, fmt, ap);
    buf_init(&clean);
    if (text_clean(str_of(line), &clean) == ERR_NONE)
        fprintf(stderr, "dohle: %.*s\n", (int)clean.n, (const char *)clean.p);
    buf_close(&clean);
}

void cli_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(fmt, ap);
    va_end(ap);
}

int cli_usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(fmt, ap);
    va_end(ap);
    fprintf(stderr, "Try 'dohle%s%s --help'.\n", command[0] != '\0' ? " " : "", command);
    return CLI_USAGE;
}

int cli_printed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    cli_error("cannot write to standard output");
    return CLI_FAILED;
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int help(void)
{
    printf("Dohle %s, a Kafka-compatible broker\n\n"
           "Usage: dohle COMMAND [OPTION...]\n\n"
           "Commands:\n",
           DOHLE_VERSION);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
    printf("  %-12s %s\n", "help", "this, or the help of a command: dohle help COMMAND");
    printf("\nOptions:\n"
           "  -h, --help     this\n"
           "      --version  print the version\n\n"
           "Exit status: 0 done or stopped as asked, 1 failed, 2 wrong usage, 78 wrong "
           "configuration.\n");
    return cli_printed();
}

static int help_of(const char *name)
{
    char option[] = "--help";
    char *args[] = {option, NULL};
    const struct cli_command *c = find(name);
    if (c == NULL)
        return cli_usage_error("", "unknown command %s", name);
    return c->run(args, 1);
}

int cli_run(int argc, char **argv, int64_t started_us)
{
    started = started_us;
    if (argc < 2)
        return cli_usage_error("", "a command is missing");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help();
    if (strcmp(name, "help") == 0)
        return argc == 2   ? help()
               : argc == 3 ? help_of(argv[2])
                           : cli_usage_error("", "help takes one command");
    if (strcmp(name, "--version") == 0) {
        printf("Dohle %s\n", DOHLE_VERSION);
        return cli_printed();
    }
    const struct cli_command *c = find(name);
    if (c != NULL)
        return c->run(argv + 2, argc - 2);
    return cli_usage_error("", "unknown %s %s", name[0] == '-' ? "option" : "command", name);
}
