#include "cli/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool text_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || errno != 0 || n < min || n > max)
        return false;
    *out = n;
    return true;
}

bool text_pair(const char *text, struct str *key, struct str *value)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return false;
    *key = (struct str){text, (int32_t)(equals - text)};
    *value = str_of(equals + 1);
    return true;
}

/* ------------------------------------------------------------------ escapes */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the escape at *text, which is moved behind it; -1: there is none like it. */
static int unescape_one(const char **text)
{
    const char *p = *text;
    *text += 1;
    switch (*p) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case '0':
        return '\0';
    case '\\':
        return '\\';
    case 'x':
        if (hex_digit(p[1]) < 0 || hex_digit(p[2]) < 0)
            return -1;
        *text += 2;
        return hex_digit(p[1]) * 16 + hex_digit(p[2]);
    }
    return -1;
}

enum err text_unescape(const char *text, struct buf *out)
{
    enum err e = ERR_NONE;
    while (e == ERR_NONE && *text != '\0') {
        int byte = (unsigned char)*text++;
        if (byte == '\\')
            byte = unescape_one(&text);
        if (byte < 0)
            return ERR_INVALID;
        const uint8_t b = (uint8_t)byte;
        e = buf_append(out, &b, 1);
    }
    return e;
}

/* ------------------------------------------------------------------ UTF-8 */

/* Bytes of the character at p, of which n > 0 are there; 0: not UTF-8 (overlong forms and
 * surrogates are not either). */
static size_t utf8_length(const uint8_t *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] < 0xe0)
        length = 2;
    else if (p[0] >= 0xe0 && p[0] < 0xf0)
        length = 3;
    else if (p[0] >= 0xf0 && p[0] < 0xf5)
        length = 4;
    if (length == 0 || length > n)
        return 0;
    uint32_t c = p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    return c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : length;
}

bool text_is_utf8(const void *p, size_t n)
{
    const uint8_t *at = p;
    for (size_t pos = 0; pos < n;) {
        const size_t length = utf8_length(at + pos, n - pos);
        if (length == 0)
            return false;
        pos += length;
    }
    return true;
}

enum err text_clean(struct str s, struct buf *out)
{
    const uint8_t *p = (const uint8_t *)s.p;
    const size_t n = s.n < 0 ? 0 : (size_t)s.n;
    enum err e = ERR_NONE;
    for (size_t pos = 0; pos < n && e == ERR_NONE;) {
        const size_t length = utf8_length(p + pos, n - pos);
        const bool control = p[pos] < ' ' || p[pos] == 0x7f ||
                             (length == 2 && p[pos] == 0xc2 && p[pos + 1] < 0xa0); /* C1 */
        if (length == 0 || control)
            e = buf_append(out, "?", 1);
        else
            e = buf_append(out, p + pos, length);
        pos += length == 0 ? 1 : length;
    }
    return e;
}

size_t text_width(const char *p, size_t n)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        width += ((unsigned char)p[i] & 0xc0) != 0x80;
    return width;
}
