/* Values as DescribeConfigs shows them: not the text that was set but what Kafka reads in it,
 * printed by Java's rules. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/config/inside.h"

enum { NUMBER_MAX = 48, DIGITS_MAX = 17 };

static const char *print_int(struct str value, struct arena *a)
{
    char text[NUMBER_MAX];
    int64_t v = 0;
    (void)config_parse_int(value, &v); /* it was checked */
    snprintf(text, sizeof text, "%lld", (long long)v);
    return arena_strdup(a, str_of(text));
}

/* The shortest digits that give the number back: "d.ddde[+-]xx". */
static void shortest(double v, char text[NUMBER_MAX])
{
    for (int digits = 0; digits < DIGITS_MAX; digits++) {
        snprintf(text, NUMBER_MAX, "%.*e", digits, v);
        if (strtod(text, NULL) == v)
            return;
    }
}

/* Digits and exponent as Java writes them: 0.001 up to below 10^7 plainly, else d.dEx; at least one
 * digit behind the point. */
static void java_double(double v, char out[NUMBER_MAX])
{
    char text[NUMBER_MAX], digits[DIGITS_MAX + 1] = "";
    size_t n = 0;
    shortest(fabs(v), text);
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    for (const char *p = text; *p != 'e'; p++)
        if (*p != '.' && n < DIGITS_MAX)
            digits[n++] = *p;
    digits[n] = '\0';
    const char *sign = signbit(v) != 0 ? "-" : "";
    if (exponent < -3 || exponent >= 7)
        snprintf(out, NUMBER_MAX, "%s%c.%sE%d", sign, digits[0], n > 1 ? digits + 1 : "0",
                 exponent);
    else if (exponent < 0)
        snprintf(out, NUMBER_MAX, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    else if ((size_t)exponent + 1 >= n)
        snprintf(out, NUMBER_MAX, "%s%s%.*s.0", sign, digits, exponent + 1 - (int)n, "0000000");
    else
        snprintf(out, NUMBER_MAX, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

static const char *print_double(struct str value, struct arena *a)
{
    char text[NUMBER_MAX];
    double v = 0;
    (void)config_parse_double(value, &v);
    if (isinf(v))
        snprintf(text, sizeof text, v < 0 ? "-Infinity" : "Infinity");
    else if (v == 0)
        snprintf(text, sizeof text, signbit(v) != 0 ? "-0.0" : "0.0");
    else
        java_double(v, text);
    return arena_strdup(a, str_of(text));
}

static bool among(struct str list, struct str wanted)
{
    struct str item;
    while (config_next_item(&list, &item))
        if (str_eq(item, wanted))
            return true;
    return false;
}

/* Items without blanks; where the key has choices, so few, each once. */
static const char *print_list(const struct config_key *k, struct str value, struct arena *a)
{
    char *out = arena_alloc(a, (size_t)(value.n < 0 ? 0 : value.n) + 1);
    const bool once = k->valid[0] == '[' && strchr(k->valid, ':') == NULL;
    struct str item;
    int32_t n = 0;
    if (out == NULL)
        return NULL;
    while (config_next_item(&value, &item)) {
        if (once && among((struct str){out, n}, item))
            continue;
        if (n > 0)
            out[n++] = ',';
        memcpy(out + n, item.p, (size_t)item.n);
        n += item.n;
    }
    out[n] = '\0';
    return out;
}

const char *config_print(const struct config_key *k, const char *text, struct arena *a)
{
    const struct str value = str_of(text);
    switch (k->type) {
    case CONFIG_BOOLEAN:
        return config_is_true(value) ? "true" : "false";
    case CONFIG_SHORT:
    case CONFIG_INT:
    case CONFIG_LONG:
        return print_int(value, a);
    case CONFIG_DOUBLE:
        return print_double(value, a);
    case CONFIG_LIST:
        return print_list(k, value, a);
    case CONFIG_STRING:
    case CONFIG_CLASS:
    case CONFIG_PASSWORD:
        break;
    }
    return arena_strdup(a, config_trim(value));
}
