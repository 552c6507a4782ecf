/* Options of one command, described once for parsing and for help. Forms: --name value,
 * --name=value, -x value, -xvalue; "--" ends the options. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_option {
    int id;            /* what args_next returns; > 0 */
    char letter;       /* 0: none */
    const char *name;  /* without -- */
    const char *value; /* the value's name for help; NULL: takes none */
    const char *help;  /* lines parted by \n */
};

enum { ARGS_END = 0, ARGS_BAD = -1, ARGS_OPERAND = 1000 };

struct args {
    const char *command; /* for messages */
    const struct cli_option *options;
    size_t options_n;
    char **argv;
    int n, at;
    bool takes_operands;
    bool only_operands; /* after -- */
    const char *value;  /* of the option that args_next returned, or the operand */
};

/* The id of the next option; ARGS_OPERAND for an operand; ARGS_END when nothing is left; ARGS_BAD
 * after a usage error was told. */
int args_next(struct args *a);
/* Usage line, what the command does, the options. */
void args_print_help(const struct args *a, const char *usage, const char *about);

#endif
