/* Java's properties format: logical lines (a backslash at the end continues, leading blanks of the
 * next are dropped), comments by # and !, key and value parted by =, : or blanks, escapes \t \n \r
 * \f \uXXXX; any other escaped character is itself. Bytes that are not escaped stay as they are, so
 * that a file may be UTF-8. */
#include <stdio.h>
#include <stdlib.h>

#include "core/config/inside.h"

struct reader {
    struct str in;
    int32_t pos;
    int line;        /* of the logical line's start */
    int physical;    /* lines consumed */
    struct buf text; /* the logical line, escapes kept */
};

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

/* One physical line into the logical one. *continued: in, the line before was continued (a # is no
 * comment then); out, this one is. */
static enum err take_physical(struct reader *r, bool *continued)
{
    while (r->pos < r->in.n && blank(r->in.p[r->pos]))
        r->pos++;
    const int32_t start = r->pos;
    while (r->pos < r->in.n && r->in.p[r->pos] != '\n' && r->in.p[r->pos] != '\r')
        r->pos++;
    int32_t n = r->pos - start;
    if (r->pos < r->in.n && r->in.p[r->pos] == '\r')
        r->pos++;
    if (r->pos < r->in.n && r->in.p[r->pos] == '\n')
        r->pos++;
    r->physical++;
    const bool comment = !*continued && n > 0 && (r->in.p[start] == '#' || r->in.p[start] == '!');
    int32_t slashes = 0;
    while (slashes < n && r->in.p[start + n - 1 - slashes] == '\\')
        slashes++;
    *continued = !comment && slashes % 2 == 1;
    if (*continued)
        n--;
    return comment ? ERR_NONE : buf_append(&r->text, r->in.p + start, (size_t)n);
}

/* False at the end of the file. */
static enum err next_logical(struct reader *r, bool *found)
{
    *found = false;
    while (r->pos < r->in.n) {
        bool continued = false;
        r->text.n = 0;
        r->line = r->physical + 1;
        do {
            enum err e = take_physical(r, &continued);
            if (e != ERR_NONE)
                return e;
        } while (continued && r->pos < r->in.n);
        if (r->text.n > 0) {
            *found = true;
            return ERR_NONE;
        }
    }
    return ERR_NONE;
}

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t put_utf8(uint8_t *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

/* The number of uXXXX at p, which has n bytes; -1 if it is none. */
static int32_t read_u(const uint8_t *p, size_t n)
{
    int32_t v = 0;
    if (n < 5 || p[0] != 'u')
        return -1;
    for (int k = 1; k <= 4; k++) {
        const int d = hex(p[k]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* uXXXX at p, or two of them when they are the halves of one character (UTF-16); a half alone
 * becomes the replacement character. The bytes used; 0 if it is malformed. */
static size_t read_character(const uint8_t *p, size_t n, uint32_t *out)
{
    const int32_t first = read_u(p, n);
    if (first < 0)
        return 0;
    *out = (uint32_t)first;
    if (first < 0xd800 || first > 0xdfff)
        return 5;
    *out = 0xfffd;
    if (first > 0xdbff || n < 11 || p[5] != '\\')
        return 5;
    const int32_t second = read_u(p + 6, n - 6);
    if (second < 0xdc00 || second > 0xdfff)
        return 5;
    *out = 0x10000 + (((uint32_t)first - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
    return 11;
}

/* In place: the result is never longer. ERR_INVALID: a malformed \u. */
static enum err unescape(uint8_t *p, size_t *n)
{
    size_t to = 0;
    for (size_t i = 0; i < *n; i++) {
        if (p[i] != '\\' || i + 1 == *n) {
            p[to++] = p[i];
            continue;
        }
        const uint8_t c = p[++i];
        if (c != 'u') {
            p[to++] = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 'f' ? '\f' : c;
            continue;
        }
        uint32_t character;
        const size_t used = read_character(p + i, *n - i, &character);
        if (used == 0)
            return ERR_INVALID;
        i += used - 1;
        to += put_utf8(p + to, character);
    }
    *n = to;
    return ERR_NONE;
}

/* Where the key ends and the value starts. */
static void split(const uint8_t *p, size_t n, size_t *key_n, size_t *value_at)
{
    size_t i = 0;
    while (i < n && !blank((char)p[i]) && p[i] != '=' && p[i] != ':')
        i += p[i] == '\\' && i + 1 < n ? 2 : 1;
    *key_n = i;
    while (i < n && blank((char)p[i]))
        i++;
    if (i < n && (p[i] == '=' || p[i] == ':'))
        i++;
    while (i < n && blank((char)p[i]))
        i++;
    *value_at = i;
}

static enum err set_line(struct config *c, struct reader *r, void (*warn)(void *, struct str),
                         void *ctx, char *message, size_t message_n)
{
    size_t key_n, at;
    split(r->text.p, r->text.n, &key_n, &at);
    size_t value_n = r->text.n - at;
    if (unescape(r->text.p, &key_n) != ERR_NONE || unescape(r->text.p + at, &value_n) != ERR_NONE) {
        snprintf(message, message_n, "\\u must be followed by four hexadecimal digits");
        return ERR_INVALID;
    }
    while (value_n > 0 && blank((char)r->text.p[at + value_n - 1])) /* as Kafka trims values */
        value_n--;
    return config_set(c, (struct str){(const char *)r->text.p, (int32_t)key_n},
                      (struct str){(const char *)r->text.p + at, (int32_t)value_n}, CONFIG_FILE,
                      warn, ctx, message, message_n);
}

enum err config_parse_properties(struct config *c, struct str text, const char *file,
                                 void (*warn)(void *ctx, struct str key), void *ctx, char *message,
                                 size_t message_n)
{
    struct reader r = {.in = text};
    char why[400] = "out of memory";
    bool found = true;
    enum err e = ERR_NONE;
    buf_init(&r.text);
    while (e == ERR_NONE) {
        e = next_logical(&r, &found);
        if (e != ERR_NONE || !found)
            break;
        e = set_line(c, &r, warn, ctx, why, sizeof why);
    }
    buf_close(&r.text);
    if (e != ERR_NONE)
        snprintf(message, message_n, "%s:%d: %s", file, r.line, why);
    return e;
}
