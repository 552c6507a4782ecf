#include "core/metadata/records.h"

#include <stdlib.h>

#include "base/check.h"
#include "wire/messages.h"
#include "wire/varint.h"

enum { FRAME_VERSION = 1 };

void record_list_init(struct record_list *rl)
{
    *rl = (struct record_list){0};
    buf_init(&rl->bytes);
}

void record_list_close(struct record_list *rl)
{
    buf_close(&rl->bytes);
    free(rl->ends);
    record_list_init(rl);
}

static enum err reserve_end(struct record_list *rl)
{
    if (rl->n < rl->cap)
        return ERR_NONE;
    const size_t cap = rl->cap == 0 ? 16 : rl->cap * 2;
    uint32_t *ends = realloc(rl->ends, cap * sizeof *ends);
    if (ends == NULL)
        return ERR_NOMEM;
    rl->ends = ends;
    rl->cap = cap;
    return ERR_NONE;
}

/* What was put behind the last end becomes a record. */
static enum err close_record(struct record_list *rl, size_t before, enum err e)
{
    if (e == ERR_NONE && rl->bytes.n > UINT32_MAX)
        e = ERR_TOO_LARGE;
    if (e != ERR_NONE) {
        rl->bytes.n = before;
        return e;
    }
    rl->ends[rl->n++] = (uint32_t)rl->bytes.n;
    return ERR_NONE;
}

static size_t put_unsigned(uint8_t *p, uint32_t v)
{
    size_t n = 0;
    for (; v > 0x7f; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

enum err record_list_add(struct record_list *rl, const struct wire_message *m, int16_t version,
                         const void *record)
{
    CHECK(m->kind == WIRE_RECORD);
    enum err e = reserve_end(rl);
    if (e != ERR_NONE)
        return e;
    const size_t before = rl->bytes.n;
    uint8_t head[3 * VARINT_MAX];
    size_t n = put_unsigned(head, FRAME_VERSION);
    n += put_unsigned(head + n, (uint16_t)m->api_key);
    n += put_unsigned(head + n, (uint16_t)version);
    e = buf_append(&rl->bytes, head, n);
    if (e == ERR_NONE)
        e = wire_encode(m, version, record, &rl->bytes);
    return close_record(rl, before, e);
}

enum err record_list_add_framed(struct record_list *rl, struct bytes framed)
{
    CHECK(framed.n > 0);
    enum err e = reserve_end(rl);
    if (e != ERR_NONE)
        return e;
    const size_t before = rl->bytes.n;
    e = buf_append(&rl->bytes, framed.p, (size_t)framed.n);
    return close_record(rl, before, e);
}

struct bytes record_list_get(const struct record_list *rl, size_t i)
{
    CHECK(i < rl->n);
    const uint32_t from = i == 0 ? 0 : rl->ends[i - 1];
    return (struct bytes){rl->bytes.p + from, (int32_t)(rl->ends[i] - from)};
}

void record_list_cut(struct record_list *rl, size_t n)
{
    CHECK(n <= rl->n);
    rl->bytes.n = n == 0 ? 0 : rl->ends[n - 1];
    rl->n = n;
}

static enum err get_unsigned(struct bytes *in, uint32_t max, int16_t *out)
{
    uint64_t v;
    const int n = varint_get(in->p, in->p + in->n, VARINT_MAX, &v);
    if (n == 0)
        return ERR_TRUNCATED;
    if (n < 0 || v > max)
        return ERR_CORRUPT;
    in->p += n;
    in->n -= n;
    *out = (int16_t)v;
    return ERR_NONE;
}

static enum err open_frame(struct bytes *in, int16_t *type, int16_t *version)
{
    int16_t frame;
    if (in->n <= 0)
        return ERR_TRUNCATED;
    enum err e = get_unsigned(in, INT16_MAX, &frame);
    if (e == ERR_NONE && frame != FRAME_VERSION)
        return ERR_UNSUPPORTED;
    if (e == ERR_NONE)
        e = get_unsigned(in, INT16_MAX, type);
    if (e == ERR_NONE)
        e = get_unsigned(in, INT16_MAX, version);
    return e;
}

enum err record_peek(struct bytes framed, int16_t *type, int16_t *version)
{
    return open_frame(&framed, type, version);
}

enum err record_decode(struct bytes framed, struct arena *a, int16_t *type, int16_t *version,
                       void **record)
{
    enum err e = open_frame(&framed, type, version);
    if (e != ERR_NONE)
        return e;
    const struct wire_message *m = wire_find(WIRE_RECORD, *type);
    if (m == NULL || *version < m->min_version || *version > m->max_version)
        return ERR_UNSUPPORTED;
    *record = arena_alloc(a, m->body->size);
    if (*record == NULL)
        return ERR_NOMEM;
    return wire_decode(m, *version, framed, a, *record);
}

int16_t record_version_register_broker(int16_t metadata_version)
{
    if (metadata_version >= METADATA_VERSION_CORDONED)
        return 4;
    if (metadata_version >= METADATA_VERSION_DIRECTORIES)
        return 3;
    return metadata_version >= 8 ? 2 : 1;
}

int16_t record_version_partition(int16_t metadata_version)
{
    if (metadata_version >= METADATA_VERSION_ELR)
        return 2;
    return metadata_version >= METADATA_VERSION_DIRECTORIES ? 1 : 0;
}

int16_t record_version_registration_change(const struct broker_registration_change_record *r)
{
    if (r->cordoned_log_dirs.n >= 0)
        return 3;
    if (r->log_dirs.n > 0)
        return 2;
    return r->in_controlled_shutdown != 0 ? 1 : 0;
}
