#include "limit/request.h"

#include "base/endian.h"
#include "wire/api_key.h"

struct cursor {
    uint8_t *p, *end;
    bool good;
};

static uint8_t *take(struct cursor *c, size_t n)
{
    uint8_t *p = c->p;
    c->good = c->good && (size_t)(c->end - c->p) >= n;
    if (c->good)
        c->p += n;
    return p;
}

static size_t varint(struct cursor *c)
{
    size_t v = 0;
    for (unsigned shift = 0; c->good && shift < 35; shift += 7) {
        const uint8_t *p = take(c, 1);
        if (!c->good)
            break;
        v |= (size_t)(*p & 0x7f) << shift;
        if (*p < 0x80)
            return v;
    }
    c->good = false;
    return 0;
}

static int32_t int32(struct cursor *c)
{
    const uint8_t *p = take(c, 4);
    return c->good ? (int32_t)be32(p) : 0;
}

/* Compact strings and bytes; null is empty. */
static size_t skip_text(struct cursor *c)
{
    size_t n = varint(c);
    take(c, n == 0 ? 0 : n - 1);
    return n;
}

/* Name and partition of the only topic. */
static void read_partition(struct cursor *c, struct request *out)
{
    c->good = c->good && varint(c) == 2;
    skip_text(c);
    c->good = c->good && varint(c) == 2;
    out->partition = int32(c);
}

static void read_produce(struct cursor *c, struct request *out)
{
    skip_text(c);   /* transactional id */
    take(c, 2 + 4); /* acks, timeout */
    read_partition(c, out);
    size_t n = varint(c);
    out->records_n = n == 0 ? 0 : n - 1;
    out->records = take(c, out->records_n);
}

static void read_fetch(struct cursor *c, struct request *out)
{
    take(c, 4 * 4 + 1 + 2 * 4); /* replica to bytes, isolation, session */
    read_partition(c, out);
    take(c, 4); /* leader epoch */
    const uint8_t *p = take(c, 8);
    out->offset = c->good ? (int64_t)be64(p) : 0;
}

bool request_read(uint8_t *frame, size_t n, struct request *out)
{
    struct cursor c = {frame + 4, frame + n, true};
    const uint8_t *head = take(&c, 10);
    *out = (struct request){.partition = 0};
    if (!c.good)
        return false;
    out->api_key = (int16_t)be16(head);
    out->version = (int16_t)be16(head + 2);
    out->correlation_id = (int32_t)be32(head + 4);
    take(&c, be16(head + 8)); /* client id */
    c.good = c.good && varint(&c) == 0;
    if (out->api_key == API_PRODUCE)
        read_produce(&c, out);
    else if (out->api_key == API_FETCH)
        read_fetch(&c, out);
    else
        c.good = c.good && out->api_key == API_API_VERSIONS;
    return c.good;
}
