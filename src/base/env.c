#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_BYTES 1024 /* longer lines are cut */

void env_log(struct env *e, enum log_level level, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n >= 0)
        e->log(e, level, line);
}

uint64_t env_random_u64(struct env *e)
{
    uint64_t v;
    e->random(e, &v, sizeof v);
    return v;
}
