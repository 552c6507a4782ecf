#include "log/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/checkpoint.h"

#define DIGITS 20

enum err path_file(char out[LOG_PATH_MAX], const char *dir, int64_t base_offset, const char *suffix)
{
    int n = snprintf(out, LOG_PATH_MAX, "%s/%0*" PRId64 "%s", dir, DIGITS, base_offset, suffix);
    return n < 0 || n >= LOG_PATH_MAX ? ERR_INVALID : ERR_NONE;
}

enum err path_join(char out[LOG_PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(out, LOG_PATH_MAX, "%s/%s", dir, name);
    return n < 0 || n >= LOG_PATH_MAX ? ERR_INVALID : ERR_NONE;
}

/* Length of path up to its last slash, which is not counted; -1 without one. */
static int parent_n(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? -1 : (int)(slash - path);
}

enum err path_parent(char out[LOG_PATH_MAX], const char *path)
{
    int n = parent_n(path);
    const char *from = n < 0 ? "." : n == 0 ? "/" : path;
    int w = snprintf(out, LOG_PATH_MAX, "%.*s", n > 0 ? n : 1, from);
    return w < 0 || w >= LOG_PATH_MAX ? ERR_INVALID : ERR_NONE;
}

bool path_parse(const char *name, int64_t *base_offset, const char **suffix)
{
    uint64_t v = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        if (i == 0 && name[i] > '0')
            return false; /* beyond int64 */
        v = v * 10 + (uint64_t)(name[i] - '0');
    }
    if (v > INT64_MAX)
        return false;
    *base_offset = (int64_t)v;
    *suffix = name + DIGITS;
    return true;
}

enum err path_aside(char out[LOG_PATH_MAX], const char *dir, struct uuid unique, const char *suffix)
{
    char hex[2 * sizeof unique.b + 1];
    const int parent = parent_n(dir);
    const char *name = dir + parent + 1;
    const char *dash = strrchr(name, '-'); /* the partition's number follows */
    const char *number = dash == NULL ? "" : dash;
    for (size_t i = 0; i < sizeof unique.b; i++)
        snprintf(hex + 2 * i, 3, "%02x", unique.b[i]);
    const size_t tail_n = strlen(number) + 1 + strlen(hex) + strlen(suffix);
    size_t topic_n = strlen(name) - strlen(number);
    if (tail_n >= LOG_NAME_MAX)
        return ERR_INVALID;
    if (topic_n > LOG_NAME_MAX - tail_n)
        topic_n = LOG_NAME_MAX - tail_n;
    const int n = snprintf(out, LOG_PATH_MAX, "%.*s%.*s%s.%s%s", parent + 1, dir, (int)topic_n,
                           name, number, hex, suffix);
    return n < 0 || n >= LOG_PATH_MAX ? ERR_INVALID : ERR_NONE;
}

bool partition_dir_parse(const char *name, struct str *topic, int32_t *partition)
{
    const char *dash = strrchr(name, '-');
    if (dash == NULL || dash == name || dash - name > INT32_MAX || dash[1] == '\0')
        return false;
    int64_t n = 0;
    for (const char *p = dash + 1; *p != '\0'; p++) {
        if (*p < '0' || *p > '9')
            return false;
        n = n * 10 + (*p - '0');
        if (n > INT32_MAX)
            return false;
    }
    *topic = (struct str){name, (int32_t)(dash - name)};
    *partition = (int32_t)n;
    return true;
}
