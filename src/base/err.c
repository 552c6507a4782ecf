#include "base/err.h"

#include "base/check.h"

static const char *const names[ERR_MAX] = {
    [ERR_NONE] = "NONE",           [ERR_NOMEM] = "NOMEM",         [ERR_IO] = "IO",
    [ERR_NOSPC] = "NOSPC",         [ERR_NOENT] = "NOENT",         [ERR_EXIST] = "EXIST",
    [ERR_ACCESS] = "ACCESS",       [ERR_NFILE] = "NFILE",         [ERR_BUSY] = "BUSY",
    [ERR_CORRUPT] = "CORRUPT",     [ERR_TRUNCATED] = "TRUNCATED", [ERR_TRAILING] = "TRAILING",
    [ERR_RANGE] = "RANGE",         [ERR_INVALID] = "INVALID",     [ERR_UNSUPPORTED] = "UNSUPPORTED",
    [ERR_TOO_LARGE] = "TOO_LARGE", [ERR_OFFLINE] = "OFFLINE",     [ERR_CLOSED] = "CLOSED",
    [ERR_CANCELLED] = "CANCELLED", [ERR_TIMEOUT] = "TIMEOUT",     [ERR_AGAIN] = "AGAIN",
};

const char *err_name(enum err e)
{
    CHECK(e >= 0 && e < ERR_MAX);
    return names[e];
}
