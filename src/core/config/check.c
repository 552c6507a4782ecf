/* Whether a text is a value of a key: its type first, then the validator, which is the same text
 * that Kafka documents and that error messages show: "[1,...]", "[1,...,9] or -1", "[a, b, c]",
 * "non-empty string", ... Types follow Java's parsing: integers in decimal, booleans without regard
 * to case. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "core/config/inside.h"

static struct str trim(struct str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool config_parse_int(struct str s, int64_t *out)
{
    s = trim(s);
    const bool negative = s.n > 0 && s.p[0] == '-';
    int32_t i = negative || (s.n > 0 && s.p[0] == '+') ? 1 : 0;
    if (i >= s.n)
        return false;
    uint64_t v = 0;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || v > UINT64_MAX / 10 - 1)
            return false;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static bool parse_double(struct str s, double *out)
{
    char text[64];
    char *end;
    s = trim(s);
    if (s.n <= 0 || (size_t)s.n >= sizeof text)
        return false;
    memcpy(text, s.p, (size_t)s.n);
    text[s.n] = '\0';
    *out = strtod(text, &end);
    return *end == '\0';
}

static bool is_bool(struct str s)
{
    s = trim(s);
    return (s.n == 4 && strncasecmp(s.p, "true", 4) == 0) ||
           (s.n == 5 && strncasecmp(s.p, "false", 5) == 0);
}

/* The next element of a comma-separated list; false at the end. */
bool config_next_item(struct str *list, struct str *item)
{
    while (list->n > 0) {
        const char *comma = memchr(list->p, ',', (size_t)list->n);
        const int32_t n = comma == NULL ? list->n : (int32_t)(comma - list->p);
        *item = trim((struct str){list->p, n});
        const int32_t used = comma == NULL ? n : n + 1;
        list->p += used;
        list->n -= used;
        if (item->n > 0)
            return true;
    }
    return false;
}

/* Is value one of "[a, b, c]"? */
static bool in_choices(const char *valid, struct str value, bool fold)
{
    const char *open = strchr(valid, '[');
    const char *close = strrchr(valid, ']');
    struct str choices = {open + 1, (int32_t)(close - open - 1)};
    struct str item;
    while (config_next_item(&choices, &item))
        if (item.n == value.n && (fold ? strncasecmp(item.p, value.p, (size_t)item.n) == 0
                                       : memcmp(item.p, value.p, (size_t)item.n) == 0))
            return true;
    return false;
}

static bool number_ok(const struct config_key *k, double v)
{
    if (strstr(k->valid, "or -1") != NULL && v == -1)
        return true;
    return v >= k->min && v <= k->max;
}

static bool int_ok(const struct config_key *k, struct str value, int64_t lowest, int64_t highest)
{
    int64_t v;
    return config_parse_int(value, &v) && v >= lowest && v <= highest && number_ok(k, (double)v);
}

/* Partition lists of throttles: "*" or "0:1,0:2". */
static bool throttle_ok(struct str value)
{
    struct str item;
    if (str_eq(trim(value), STR_LIT("*")))
        return true;
    while (config_next_item(&value, &item)) {
        const char *colon = memchr(item.p, ':', (size_t)item.n);
        int64_t v;
        if (colon == NULL ||
            !config_parse_int((struct str){item.p, (int32_t)(colon - item.p)}, &v) ||
            !config_parse_int((struct str){colon + 1, item.n - (int32_t)(colon + 1 - item.p)}, &v))
            return false;
    }
    return true;
}

static bool text_ok(const struct config_key *k, struct str value)
{
    if (k->valid[0] == '\0')
        return true;
    if (strncmp(k->valid, "non-", 4) == 0)
        return strcmp(k->valid, "non-null string") == 0 ||
               strcmp(k->valid, "non-empty list") == 0 || trim(value).n > 0;
    if (strncmp(k->valid, "[partitionId]", 13) == 0)
        return throttle_ok(value);
    if (strstr(k->valid, "by_duration:") != NULL && value.n > 12 &&
        strncmp(value.p, "by_duration:", 12) == 0)
        return true;
    if (strchr(k->valid, '[') == NULL) /* the name of a default class */
        return true;
    const bool fold = strstr(k->valid, "case insensitive") != NULL;
    if (k->type != CONFIG_LIST)
        return in_choices(k->valid, trim(value), fold);
    struct str item;
    while (config_next_item(&value, &item))
        if (!in_choices(k->valid, item, fold))
            return false;
    return true;
}

static bool value_ok(const struct config_key *k, struct str value)
{
    double d;
    switch (k->type) {
    case CONFIG_BOOLEAN:
        return is_bool(value);
    case CONFIG_SHORT:
        return int_ok(k, value, INT16_MIN, INT16_MAX);
    case CONFIG_INT:
        return int_ok(k, value, INT32_MIN, INT32_MAX);
    case CONFIG_LONG:
        return int_ok(k, value, INT64_MIN, INT64_MAX);
    case CONFIG_DOUBLE:
        return parse_double(value, &d) && number_ok(k, d);
    case CONFIG_STRING:
    case CONFIG_LIST:
    case CONFIG_CLASS:
    case CONFIG_PASSWORD:
        return text_ok(k, value);
    }
    return false;
}

static const char *type_name(enum config_type t)
{
    static const char *const names[] = {
        [CONFIG_BOOLEAN] = "true or false", [CONFIG_STRING] = "a string",
        [CONFIG_SHORT] = "a 16-bit number", [CONFIG_INT] = "a 32-bit number",
        [CONFIG_LONG] = "a 64-bit number",  [CONFIG_DOUBLE] = "a number",
        [CONFIG_LIST] = "a list",           [CONFIG_CLASS] = "a class name",
        [CONFIG_PASSWORD] = "a password",
    };
    return names[t];
}

enum err config_check(const struct config_key *key, struct str value, char *message,
                      size_t message_n)
{
    if (value.n >= 0 && value_ok(key, value))
        return ERR_NONE;
    const bool secret = key->type == CONFIG_PASSWORD;
    snprintf(message, message_n, "Invalid value %.*s for configuration %s: must be %s%s%s",
             secret || value.n < 0 ? 4 : value.n,
             secret        ? "****"
             : value.n < 0 ? "null"
                           : value.p,
             key->name, type_name(key->type), key->valid[0] != '\0' ? " in " : "", key->valid);
    return ERR_INVALID;
}
