/* A client's address as Java prints it: "/1.2.3.4", and all eight parts of an IPv6 one. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/endian.h"

enum { PARTS = 8 };

static unsigned digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c | 0x20) - 'a' + 10;
}

/* The parts up to end. How many. */
static size_t read_parts(const char *text, const char *end, unsigned v[PARTS])
{
    size_t n = 0;
    while (text < end && n < PARTS) {
        v[n] = 0;
        for (; text < end && *text != ':'; text++)
            v[n] = v[n] << 4 | digit(*text);
        text++;
        n++;
    }
    return n;
}

static void read_six(const char *text, const char *end, unsigned all[PARTS])
{
    unsigned head[PARTS], tail[PARTS];
    const char *gap = strstr(text, "::");
    const bool has_gap = gap != NULL && gap < end;
    const size_t head_n = read_parts(text, has_gap ? gap : end, head);
    const size_t tail_n = has_gap ? read_parts(gap + 2, end, tail) : 0;
    memset(all, 0, PARTS * sizeof *all);
    for (size_t i = 0; i < head_n; i++)
        all[i] = head[i];
    for (size_t i = 0; i < tail_n && head_n + tail_n <= PARTS; i++)
        all[PARTS - tail_n + i] = tail[i];
}

static void print_six(const char *text, const char *end, char *out, size_t out_n)
{
    unsigned all[PARTS];
    read_six(text, end, all);
    snprintf(out, out_n, "/%x:%x:%x:%x:%x:%x:%x:%x", all[0], all[1], all[2], all[3], all[4], all[5],
             all[6], all[7]);
}

bool api_client_host(struct request *r, struct str *out)
{
    enum { HOST_BYTES = 64 };
    const char *address = r->client_address;
    const char *port = strrchr(address, ':');
    char *host = arena_alloc(&r->arena, HOST_BYTES);
    if (host == NULL)
        return false;
    if (address[0] == '[' && port != NULL && port > address + 1)
        print_six(address + 1, port - 1, host, HOST_BYTES);
    else
        snprintf(host, HOST_BYTES, "/%.*s",
                 (int)(port == NULL ? strlen(address) : (size_t)(port - address)), address);
    *out = str_of(host);
    return true;
}

/* Of what is no address, as our own loopback's "self": zeros. */
static void read_four(const char *text, uint8_t out[4])
{
    memset(out, 0, 4);
    for (size_t i = 0; i < 4 && *text >= '0' && *text <= '9'; i++) {
        for (; *text >= '0' && *text <= '9'; text++)
            out[i] = (uint8_t)(out[i] * 10 + (*text - '0'));
        text += *text == '.';
    }
}

size_t api_client_bytes(const struct request *r, uint8_t *out)
{
    const char *address = r->client_address;
    const char *port = strrchr(address, ':');
    unsigned v[PARTS];
    if (address[0] == '[' && port != NULL && port > address + 1) {
        read_six(address + 1, port - 1, v);
        for (size_t i = 0; i < PARTS; i++)
            put_be16(out + 2 * i, (uint16_t)v[i]);
        return 2 * PARTS;
    }
    read_four(address, out);
    return 4;
}

const char *api_client_address(struct bytes address, struct arena *a)
{
    enum { ADDRESS_BYTES = 64 };
    const uint8_t *p = address.p;
    char *text = arena_alloc(a, ADDRESS_BYTES);
    if (text == NULL)
        return NULL;
    if (address.n == 4)
        snprintf(text, ADDRESS_BYTES, "%u.%u.%u.%u:0", p[0], p[1], p[2], p[3]);
    else if (address.n == 2 * PARTS)
        snprintf(text, ADDRESS_BYTES, "[%x:%x:%x:%x:%x:%x:%x:%x]:0", be16(p), be16(p + 2),
                 be16(p + 4), be16(p + 6), be16(p + 8), be16(p + 10), be16(p + 12), be16(p + 14));
    else
        return NULL;
    return text;
}
