#include "core/metadata/config_change.h"

#include <stdarg.h>
#include <stdio.h>

void config_change_refuse(struct config_change *change, struct arena *a, int16_t error,
                          const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *copy = arena_strdup(a, str_of(text));
    change->settled = true;
    change->error = error;
    change->message = copy == NULL ? STR_NULL : str_of(copy);
}
