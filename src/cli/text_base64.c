#include "cli/text.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum err text_base64(struct bytes in, struct buf *out)
{
    const size_t n = in.n < 0 ? 0 : (size_t)in.n;
    enum err e = buf_reserve(out, (n + 2) / 3 * 4);
    if (e != ERR_NONE)
        return e;
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t word = (uint32_t)in.p[i] << 16 | (i + 1 < n ? in.p[i + 1] : 0u) << 8 |
                              (i + 2 < n ? in.p[i + 2] : 0u);
        uint8_t *to = out->p + out->n;
        for (int k = 0; k < 4; k++)
            to[k] = (uint8_t)alphabet[word >> (18 - 6 * k) & 63];
        if (i + 1 >= n)
            to[2] = '=';
        if (i + 2 >= n)
            to[3] = '=';
        out->n += 4;
    }
    return ERR_NONE;
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters; the bytes, or 0: not base64. `last` may end with padding. */
static size_t decode_group(const char *p, bool last, uint8_t out[3])
{
    const int padding = !last || p[3] != '=' ? 0 : p[2] != '=' ? 1 : 2;
    uint32_t word = 0;
    for (int k = 0; k < 4; k++) {
        const int value = k >= 4 - padding ? 0 : value_of(p[k]);
        if (value < 0)
            return 0;
        word = word << 6 | (uint32_t)value;
    }
    if (padding > 0 && (word & (padding == 1 ? 0xffu : 0xffffu)) != 0)
        return 0; /* bits that no byte holds */
    for (int k = 0; k < 3; k++)
        out[k] = (uint8_t)(word >> (16 - 8 * k));
    return 3 - (size_t)padding;
}

enum err text_from_base64(struct str text, struct buf *out)
{
    const size_t n = text.n < 0 ? 0 : (size_t)text.n;
    if (n % 4 != 0)
        return ERR_INVALID;
    enum err e = buf_reserve(out, n / 4 * 3);
    for (size_t i = 0; i < n && e == ERR_NONE; i += 4) {
        uint8_t bytes[3];
        const size_t got = decode_group(text.p + i, i + 4 == n, bytes);
        e = got == 0 ? ERR_INVALID : buf_append(out, bytes, got);
    }
    return e;
}
