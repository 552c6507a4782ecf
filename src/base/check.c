#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *expr)
{
    fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, expr);
    abort();
}
