#include "cli/args.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { LEFT_COLUMNS = 24 }; /* of help */

static const struct cli_option *find(const struct args *a, const char *name, size_t n)
{
    for (size_t i = 0; i < a->options_n; i++)
        if (strlen(a->options[i].name) == n && memcmp(a->options[i].name, name, n) == 0)
            return &a->options[i];
    return NULL;
}

static const struct cli_option *find_letter(const struct args *a, char letter)
{
    for (size_t i = 0; i < a->options_n; i++)
        if (letter != '\0' && a->options[i].letter == letter)
            return &a->options[i];
    return NULL;
}

/* given: the value that stood with the option, or NULL. */
static int take_value(struct args *a, const struct cli_option *o, const char *given)
{
    a->value = given;
    if (o->value == NULL && given != NULL) {
        (void)cli_usage_error(a->command, "--%s takes no value", o->name);
        return ARGS_BAD;
    }
    if (o->value == NULL || given != NULL)
        return o->id;
    if (a->at == a->n) {
        (void)cli_usage_error(a->command, "--%s needs %s", o->name, o->value);
        return ARGS_BAD;
    }
    a->value = a->argv[a->at++];
    return o->id;
}

static int take_long(struct args *a, const char *arg)
{
    const char *equals = strchr(arg, '=');
    const size_t n = equals == NULL ? strlen(arg) : (size_t)(equals - arg);
    const struct cli_option *o = find(a, arg + 2, n - 2);
    if (o == NULL) {
        (void)cli_usage_error(a->command, "unknown option %.*s", (int)n, arg);
        return ARGS_BAD;
    }
    return take_value(a, o, equals == NULL ? NULL : equals + 1);
}

static int take_short(struct args *a, const char *arg)
{
    const struct cli_option *o = find_letter(a, arg[1]);
    if (o == NULL) {
        (void)cli_usage_error(a->command, "unknown option -%c", arg[1]);
        return ARGS_BAD;
    }
    return take_value(a, o, arg[2] == '\0' ? NULL : arg + 2);
}

int args_next(struct args *a)
{
    if (a->at == a->n)
        return ARGS_END;
    const char *arg = a->argv[a->at++];
    if (!a->only_operands && strcmp(arg, "--") == 0) {
        a->only_operands = true;
        return args_next(a);
    }
    if (!a->only_operands && arg[0] == '-' && arg[1] == '-')
        return take_long(a, arg);
    if (!a->only_operands && arg[0] == '-' && arg[1] != '\0')
        return take_short(a, arg);
    a->value = arg;
    if (a->takes_operands)
        return ARGS_OPERAND;
    (void)cli_usage_error(a->command, "unexpected argument %s", arg);
    return ARGS_BAD;
}

void args_print_help(const struct args *a, const char *usage, const char *about)
{
    printf("Usage: %s\n\n%s\n\nOptions:\n", usage, about);
    for (size_t i = 0; i < a->options_n; i++) {
        const struct cli_option *o = &a->options[i];
        char left[64];
        snprintf(left, sizeof left, "%c%c%s --%s%s%s", o->letter != '\0' ? '-' : ' ',
                 o->letter != '\0' ? o->letter : ' ', o->letter != '\0' ? "," : " ", o->name,
                 o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
        const char *line = o->help;
        if (strlen(left) > LEFT_COLUMNS) {
            printf("  %s\n", left);
            left[0] = '\0';
        }
        for (const char *end; line != NULL; line = end == NULL ? NULL : end + 1) {
            end = strchr(line, '\n');
            printf("  %-*s %.*s\n", LEFT_COLUMNS, left,
                   end == NULL ? (int)strlen(line) : (int)(end - line), line);
            left[0] = '\0';
        }
    }
}
