#include "base/types.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void uuid_print(struct uuid id, char out[UUID_TEXT_N + 1])
{
    uint32_t bits = 0;
    int bits_n = 0;
    size_t o = 0;
    for (size_t i = 0; i < sizeof id.b; i++) {
        bits = bits << 8 | id.b[i];
        for (bits_n += 8; bits_n >= 6; bits_n -= 6)
            out[o++] = digits[bits >> (bits_n - 6) & 63];
    }
    out[o++] = digits[bits << (6 - bits_n) & 63];
    out[o] = '\0';
}

static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    return c == '_' ? 63 : -1;
}

/* The last digit carries four bits that mean nothing; as Java's decoder we ignore them. */
bool uuid_parse(struct str s, struct uuid *out)
{
    if (s.n != UUID_TEXT_N)
        return false;
    uint32_t bits = 0;
    int bits_n = 0;
    size_t o = 0;
    for (int32_t i = 0; i < s.n; i++) {
        int v = digit_value(s.p[i]);
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        bits_n += 6;
        if (bits_n >= 8) {
            bits_n -= 8;
            out->b[o++] = (uint8_t)(bits >> bits_n);
        }
    }
    return true;
}

int str_cmp(struct str a, struct str b)
{
    int32_t n = a.n < b.n ? a.n : b.n;
    int c = n > 0 ? memcmp(a.p, b.p, (size_t)n) : 0;
    if (c != 0)
        return c;
    return (a.n > b.n) - (a.n < b.n);
}
