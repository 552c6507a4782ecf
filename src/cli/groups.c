#include "cli/groups.h"

#include <stdlib.h>

static const struct verb *const verbs[] = {&verb_groups_list, &verb_groups_describe,
                                           &verb_groups_reset, &verb_groups_delete};

static int run(char **argv, int n)
{
    return line_verbs("groups", "Lists and changes consumer groups and their offsets.", verbs,
                      ARRAY_N(verbs), argv, n);
}

const struct cli_command cli_groups = {"groups", "list, describe, reset, delete consumer groups",
                                       run};
