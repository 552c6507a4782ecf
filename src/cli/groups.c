#include "cli/groups.h"

#include <stdlib.h>

static const struct verb *const verbs[] = {&groups_list, &groups_describe, &groups_reset,
                                           &groups_delete};

static int run(char **argv, int n)
{
    return line_verbs("groups", "Lists and changes consumer groups and their offsets.", verbs,
                      ARRAY_N(verbs), argv, n);
}

const struct cli_command cli_groups = {"groups", "list, describe, reset, delete consumer groups",
                                       run};
