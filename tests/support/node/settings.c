#include "support/node/settings.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn static void die(const char *message)
{
    fprintf(stderr, "settings of a test: %s\n", message);
    abort();
}

static void no_warning(void *ctx, struct str key)
{
    char message[128];
    (void)ctx;
    snprintf(message, sizeof message, "unknown key %.*s", key.n, key.p);
    die(message);
}

struct config *settings_config(const char *lines)
{
    char message[512] = "out of memory";
    struct config *c = NULL;
    if (config_new(&c) != ERR_NONE ||
        config_parse_properties(c, str_of(lines), "test", no_warning, NULL, message,
                                sizeof message) != ERR_NONE ||
        config_finish(c, message, sizeof message) != ERR_NONE)
        die(message);
    return c;
}
