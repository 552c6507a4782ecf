#include "core/group/java_string.h"

enum { REPLACEMENT = 0xFFFD };

/* How many bytes a code point takes by its first byte, and the range of the second: overlong forms,
 * surrogates and what is past U+10FFFF are malformed. */
struct lead {
    int n;
    uint8_t low, high;
};

static struct lead lead_of(uint8_t b)
{
    if (b < 0x80)
        return (struct lead){1, 0, 0};
    if (b >= 0xC2 && b <= 0xDF)
        return (struct lead){2, 0x80, 0xBF};
    if (b >= 0xE0 && b <= 0xEF)
        return (struct lead){3, b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF};
    if (b >= 0xF0 && b <= 0xF4)
        return (struct lead){4, b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF};
    return (struct lead){0, 0, 0};
}

/* Takes one code point from the front. */
static uint32_t next(const uint8_t **p, const uint8_t *end)
{
    static const uint8_t masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const struct lead l = lead_of(**p);
    uint32_t c = **p & masks[l.n];
    (*p)++;
    if (l.n == 0)
        return REPLACEMENT;
    for (int i = 1; i < l.n; i++) {
        const uint8_t low = i == 1 ? l.low : 0x80, high = i == 1 ? l.high : 0xBF;
        if (*p == end || **p < low || **p > high)
            return REPLACEMENT;
        c = c << 6 | (**p & 0x3F);
        (*p)++;
    }
    return c;
}

static uint32_t mix(uint32_t h, uint32_t unit)
{
    return h * 31 + unit;
}

int32_t java_hash(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p, *end = p + (s.n < 0 ? 0 : s.n);
    uint32_t h = 0;
    while (p < end) {
        const uint32_t c = next(&p, end);
        if (c < 0x10000) {
            h = mix(h, c);
        } else {
            h = mix(h, 0xD800 + ((c - 0x10000) >> 10));
            h = mix(h, 0xDC00 + ((c - 0x10000) & 0x3FF));
        }
    }
    return (int32_t)h;
}

int32_t java_length(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p, *end = p + (s.n < 0 ? 0 : s.n);
    int32_t n = 0;
    while (p < end)
        n += next(&p, end) < 0x10000 ? 1 : 2;
    return n;
}
