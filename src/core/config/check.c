/* Whether a text is a value of a key: its type first, then the validator, which is the same text
 * that Kafka documents and that error messages show: "[1,...]", "[1,...,9] or -1", "[a, b, c]",
 * "non-empty string", ... Types follow Java's parsing: integers in decimal, booleans without regard
 * to case, blanks around them ignored. Numeric bounds are columns of the table, not parsed. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "core/config/inside.h"

/* Java's trim: blanks are all characters up to the space. */
struct str config_trim(struct str s)
{
    while (s.n > 0 && (unsigned char)s.p[0] <= ' ') {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && (unsigned char)s.p[s.n - 1] <= ' ')
        s.n--;
    return s;
}

bool config_parse_int(struct str s, int64_t *out)
{
    s = config_trim(s);
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
    *out = (int64_t)(negative ? 0 - v : v);
    return true;
}

bool config_parse_double(struct str s, double *out)
{
    char text[64];
    char *end;
    s = config_trim(s);
    if (s.n <= 0 || (size_t)s.n >= sizeof text)
        return false;
    memcpy(text, s.p, (size_t)s.n);
    text[s.n] = '\0';
    *out = strtod(text, &end);
    return end == text + s.n;
}

bool config_is_true(struct str s)
{
    s = config_trim(s);
    return s.n == 4 && strncasecmp(s.p, "true", 4) == 0;
}

static bool is_bool(struct str s)
{
    const struct str word = config_trim(s);
    return config_is_true(s) || (word.n == 5 && strncasecmp(word.p, "false", 5) == 0);
}

/* The next element, which may be empty; false at the end. An empty list has no element. */
static bool next_element(struct str *list, struct str *item)
{
    if (list->n <= 0)
        return false;
    const char *comma = memchr(list->p, ',', (size_t)list->n);
    const int32_t n = comma == NULL ? list->n : (int32_t)(comma - list->p);
    const int32_t used = comma == NULL ? n : n + 1;
    *item = config_trim((struct str){list->p, n});
    list->p += used;
    list->n -= used;
    return true;
}

bool config_next_item(struct str *list, struct str *item)
{
    while (next_element(list, item))
        if (item->n > 0)
            return true;
    return false;
}

/* "a," has an empty element at its end, which next_element does not tell. */
static bool ends_open(struct str list)
{
    list = config_trim(list);
    return list.n > 0 && list.p[list.n - 1] == ',';
}

static bool same(struct str a, struct str b, bool fold)
{
    return a.n == b.n && (fold ? strncasecmp(a.p, b.p, (size_t)a.n) == 0 : str_eq(a, b));
}

/* The number of the choice in "[a, b, c]" that value is; -1 if none. */
static int choice(const char *valid, struct str value, bool fold)
{
    const char *open = strchr(valid, '[');
    const char *close = strrchr(valid, ']');
    struct str choices = {open + 1, (int32_t)(close - open - 1)};
    struct str item;
    for (int i = 0; config_next_item(&choices, &item); i++)
        if (same(item, value, fold))
            return i;
    return -1;
}

/* Every element is one of the choices. None twice, but in a topic's list, where the second counts
 * for nothing (as in Kafka). An empty list is valid. */
static bool choices_ok(const struct config_key *k, struct str list, bool fold)
{
    uint64_t seen = 0;
    struct str item;
    if (config_trim(list).n == 0)
        return true;
    if (ends_open(list))
        return false;
    while (next_element(&list, &item)) {
        const int i = choice(k->valid, item, fold);
        if (i < 0 || ((seen >> i & 1) != 0 && k->scope != CONFIG_TOPIC))
            return false;
        seen |= (uint64_t)1 << i;
    }
    return true;
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
    if (str_eq(config_trim(value), STR_LIT("*")) || config_trim(value).n == 0)
        return true;
    while (next_element(&value, &item)) {
        const char *colon = item.n > 0 ? memchr(item.p, ':', (size_t)item.n) : NULL;
        int64_t v;
        if (colon == NULL)
            return false;
        const struct str partition = {item.p, (int32_t)(colon - item.p)};
        const struct str broker = {colon + 1, item.n - partition.n - 1};
        if (!config_parse_int(partition, &v) || v < 0 || !config_parse_int(broker, &v) || v < 0)
            return false;
    }
    return true;
}

/* ISO 8601 as Java reads a duration, without the fractions of anything but seconds: P1DT2H3M4.5S.
 */
static bool duration_ok(struct str s)
{
    static const char units[] = "DHMS";
    size_t next = 0;
    bool time = false, any = false;
    int32_t i = 1;
    if (s.n < 2 || (s.p[0] | 0x20) != 'p')
        return false;
    while (i < s.n) {
        if (!time && (s.p[i] | 0x20) == 't') {
            time = true;
            any = false;
            next = next == 0 ? 1 : next;
            i++;
            continue;
        }
        const int32_t start = i;
        while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || (i > start && s.p[i] == '.')))
            i++;
        if (i == start || i == s.n)
            return false;
        while (next < 4 && units[next] != (s.p[i] & ~0x20))
            next++;
        if (next == 4 || (next > 0) != time ||
            (next < 3 && memchr(s.p + start, '.', (size_t)(i - start)) != NULL))
            return false;
        any = true;
        next++;
        i++;
    }
    return any;
}

static bool text_ok(const struct config_key *k, struct str value)
{
    static const char by_duration[] = "by_duration:";
    const int32_t prefix_n = (int32_t)sizeof by_duration - 1;
    if (k->valid[0] == '\0' || strcmp(k->valid, "non-null string") == 0)
        return true;
    if (strcmp(k->valid, "non-empty string") == 0)
        return config_trim(value).n > 0;
    if (strcmp(k->valid, "non-empty list") == 0) {
        struct str item;
        return config_trim(value).n == 0 || config_next_item(&value, &item);
    }
    if (strncmp(k->valid, "[partitionId]", 13) == 0)
        return throttle_ok(value);
    if (strstr(k->valid, by_duration) != NULL && value.n > prefix_n &&
        memcmp(value.p, by_duration, (size_t)prefix_n) == 0)
        return duration_ok((struct str){value.p + prefix_n, value.n - prefix_n});
    const bool fold = strstr(k->valid, "case insensitive") != NULL;
    return k->type == CONFIG_LIST ? choices_ok(k, value, fold)
                                  : choice(k->valid, config_trim(value), fold) >= 0;
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
        return config_parse_double(value, &d) && number_ok(k, d);
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
    const bool zero = value.n > 0 && memchr(value.p, '\0', (size_t)value.n) != NULL;
    if (value.n >= 0 && !zero && value_ok(key, value))
        return ERR_NONE;
    const struct str shown = key->type == CONFIG_PASSWORD ? STR_LIT("[hidden]")
                             : value.n < 0                ? STR_LIT("null")
                                                          : value;
    snprintf(message, message_n, "Invalid value %.*s for configuration %s: must be %s%s%s%s",
             shown.n, shown.p, key->name, type_name(key->type), key->valid[0] != '\0' ? ": " : "",
             key->valid, zero ? " without zero characters" : "");
    return ERR_INVALID;
}

/* ------------------------------------------------------------------ broker keys */

const struct config_key *config_defaulted_by(const struct config_key *k)
{
    size_t n;
    const struct config_key *keys = config_keys(CONFIG_TOPIC, &n);
    for (size_t i = 0; i < n; i++)
        if (keys[i].broker_synonym != NULL && strcmp(keys[i].broker_synonym, k->name) == 0)
            return &keys[i];
    return NULL;
}

static bool is_retention(const struct config_key *k)
{
    return strcmp(k->name, "log.retention.ms") == 0 ||
           strcmp(k->name, "log.retention.minutes") == 0 ||
           strcmp(k->name, "log.retention.hours") == 0;
}

/* The broker keys log.roll.ms and others have no validator of their own. */
static enum err check_default(const struct config_key *k, struct str value, char *message,
                              size_t message_n)
{
    const struct config_key *topic = config_defaulted_by(k);
    if (topic == NULL)
        return ERR_NONE;
    struct config_key as = *topic;
    as.name = k->name;
    return config_check(&as, value, message, message_n);
}

enum err config_check_broker(const struct config_key *k, struct str value, char *message,
                             size_t message_n)
{
    int64_t v;
    enum err e = config_check(k, value, message, message_n);
    if (e == ERR_NONE && is_retention(k) && config_parse_int(value, &v) && (v == 0 || v < -1)) {
        snprintf(message, message_n,
                 "Invalid value %.*s for configuration %s: must be -1 (no limit) or at least 1",
                 value.n, value.p, k->name);
        return ERR_INVALID;
    }
    return e == ERR_NONE ? check_default(k, value, message, message_n) : e;
}
