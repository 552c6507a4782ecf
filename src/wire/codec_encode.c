/* Encoding: sizes first, then writes. The size pass (codec_size.c) has checked everything, so the
 * write pass walks the same table without a bound or an error. A record set that is large, or lies
 * in files, is not copied: the frame is cut there, and the set becomes a part of its own. */
#include "base/check.h"
#include "base/endian.h"
#include "wire/codec_size.h"

struct writer {
    uint8_t *p;
    int16_t version;
    bool flexible;
    size_t by_ref_bytes;
    const uint8_t *part;    /* where the part being written began */
    struct wire_parts *out; /* NULL: all goes into memory */
};

static void write_struct(struct writer *w, const struct wire_struct *s, const uint8_t *p);

static void put_uvarint(struct writer *w, uint32_t v)
{
    for (; v >= 0x80; v >>= 7)
        *w->p++ = (uint8_t)(v | 0x80);
    *w->p++ = (uint8_t)v;
}

static void put_length(struct writer *w, int32_t n)
{
    if (n < 0)
        n = -1;
    if (w->flexible) {
        put_uvarint(w, (uint32_t)n + 1);
    } else {
        put_be32(w->p, (uint32_t)n);
        w->p += 4;
    }
}

static void put_bytes(struct writer *w, const void *p, int32_t n)
{
    if (n > 0) {
        memcpy(w->p, p, (size_t)n);
        w->p += n;
    }
}

static void write_string(struct writer *w, const uint8_t *p, bool compact)
{
    struct str s;

    memcpy(&s, p, sizeof s);
    if (compact) {
        put_uvarint(w, s.n < 0 ? 0 : (uint32_t)s.n + 1);
    } else {
        put_be16(w->p, s.n < 0 ? UINT16_MAX : (uint16_t)s.n);
        w->p += 2;
    }
    put_bytes(w, s.p, s.n);
}

static void write_bytes(struct writer *w, const uint8_t *p)
{
    struct bytes b;

    memcpy(&b, p, sizeof b);
    put_length(w, b.n);
    put_bytes(w, b.p, b.n);
}

static void add_part(struct writer *w, struct wire_part part)
{
    if (part.n > 0)
        w->out->v[w->out->n++] = part;
    w->out->bytes += part.n;
}

/* Ends the part that is being written. */
static void cut(struct writer *w)
{
    add_part(w, (struct wire_part){.p = w->part, .n = (size_t)(w->p - w->part)});
    w->part = w->p;
}

static void write_records(struct writer *w, const uint8_t *p)
{
    struct wire_records rec;

    memcpy(&rec, p, sizeof rec);
    put_length(w, rec.n);
    if (!wire_by_ref(&rec, w->by_ref_bytes)) {
        put_bytes(w, rec.p, rec.n);
        return;
    }
    cut(w);
    if (rec.slices_n == 0)
        add_part(w, (struct wire_part){.p = rec.p, .n = (size_t)rec.n});
    for (int32_t i = 0; i < rec.slices_n; i++)
        add_part(w, (struct wire_part){.n = rec.slices[i].n, .s = rec.slices[i]});
}

static inline void write_fixed(struct writer *w, const uint8_t *p, size_t n)
{
    uint16_t v2;
    uint32_t v4;
    uint64_t v8;

    switch (n) {
    case 1:
        *w->p = *p;
        break;
    case 2:
        memcpy(&v2, p, 2);
        put_be16(w->p, v2);
        break;
    case 4:
        memcpy(&v4, p, 4);
        put_be32(w->p, v4);
        break;
    case 8:
        memcpy(&v8, p, 8);
        put_be64(w->p, v8);
        break;
    default:
        memcpy(w->p, p, n);
    }
    w->p += n;
}

static void write_array(struct writer *w, const struct wire_field *f, const uint8_t *p)
{
    struct wire_any_array a;
    size_t step = wire_c_size(f->element, f->sub);
    const uint8_t *v;

    memcpy(&a, p, sizeof a);
    put_length(w, a.n);
    v = a.v;
    for (int32_t i = 0; i < a.n; i++, v += step) {
        if (f->element == T_STRUCT)
            write_struct(w, f->sub, v);
        else if (f->element == T_STRING)
            write_string(w, v, w->flexible);
        else if (f->element == T_BYTES)
            write_bytes(w, v);
        else
            write_fixed(w, v, step);
    }
}

/* Null is 0 in a tag, -1 elsewhere: see take_present in codec_decode.c. */
static void write_pointer(struct writer *w, const struct wire_field *f, const uint8_t *p)
{
    void *v;

    memcpy(&v, p, sizeof v);
    *w->p++ = v != NULL ? 1 : f->tag >= 0 ? 0 : UINT8_MAX;
    if (v != NULL)
        write_struct(w, f->sub, v);
}

static void write_field(struct writer *w, const struct wire_field *f, const uint8_t *p)
{
    p += f->offset;
    switch ((enum wire_type)f->type) {
    case T_BOOL:
    case T_INT8:
    case T_INT16:
    case T_UINT16:
    case T_INT32:
    case T_UINT32:
    case T_INT64:
    case T_FLOAT64:
    case T_UUID:
        write_fixed(w, p, wire_c_size(f->type, NULL));
        break;
    case T_STRING:
        write_string(w, p, w->flexible && !(f->flags & F_INFLEXIBLE));
        break;
    case T_BYTES:
        write_bytes(w, p);
        break;
    case T_RECORDS:
        write_records(w, p);
        break;
    case T_STRUCT:
        write_struct(w, f->sub, p);
        break;
    case T_POINTER:
        write_pointer(w, f, p);
        break;
    case T_ARRAY:
        write_array(w, f, p);
        break;
    }
}

static bool has_tag(const struct writer *w, const struct wire_struct *s, const struct wire_field *f,
                    const uint8_t *p)
{
    return f->tag >= 0 && wire_field_in(f, w->version) && !wire_is_default(s, f, p);
}

/* In the order of the tags, which need not be that of the fields. */
static void write_tags(struct writer *w, const struct wire_struct *s, const uint8_t *p)
{
    struct sizer z = {.version = w->version, .flexible = true, .by_ref_bytes = SIZE_MAX};
    uint32_t n = 0;

    for (size_t i = 0; s->tags_n > 0 && i < s->fields_n; i++)
        n += has_tag(w, s, &s->fields[i], p);
    put_uvarint(w, n);
    for (int tag = 0; n > 0; tag++) {
        for (size_t i = 0; i < s->fields_n; i++) {
            const struct wire_field *f = &s->fields[i];
            if (f->tag != tag || !has_tag(w, s, f, p))
                continue;
            put_uvarint(w, (uint32_t)tag);
            put_uvarint(w, (uint32_t)wire_size_field(&z, f, p));
            write_field(w, f, p);
            n--;
        }
    }
}

static void write_struct(struct writer *w, const struct wire_struct *s, const uint8_t *p)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        const struct wire_field *f = &s->fields[i];
        if (f->tag < 0 && wire_field_in(f, w->version))
            write_field(w, f, p);
    }
    if (w->flexible)
        write_tags(w, s, p);
}

static void write_message(struct writer *w, const struct wire_message *m, int16_t version,
                          const void *msg)
{
    w->version = version;
    w->flexible = version >= m->flexible_min;
    write_struct(w, m->body, msg);
}

enum err wire_encode(const struct wire_message *m, int16_t version, const void *msg,
                     struct buf *out)
{
    struct writer w = {.by_ref_bytes = SIZE_MAX};
    struct sizer z;
    size_t n;
    enum err e;

    wire_sizer_init(&z, m, version, SIZE_MAX);
    if (z.err != ERR_NONE)
        return z.err;
    n = wire_size_struct(&z, m->body, msg);
    if (z.err != ERR_NONE)
        return z.err;
    if (n > INT32_MAX)
        return ERR_TOO_LARGE;
    if (z.refs_n > 0)
        return ERR_INVALID;
    if (n == 0)
        return ERR_NONE; /* a message without a field */
    e = buf_reserve(out, n);
    if (e != ERR_NONE)
        return e;
    w.p = out->p + out->n;
    write_message(&w, m, version, msg);
    CHECK(w.p == out->p + out->n + n);
    out->n += n;
    return ERR_NONE;
}

/* Sizes of header and body; z is the body's. */
static enum err size_frame(const struct wire_message *header, int16_t header_version,
                           const void *header_msg, struct sizer *z, const struct wire_message *body,
                           const void *body_msg, size_t *bytes)
{
    size_t header_bytes = 0;
    enum err e;

    if (header != NULL) {
        e = wire_size(header, header_version, header_msg, &header_bytes);
        if (e != ERR_NONE)
            return e;
    }
    if (z->err != ERR_NONE)
        return z->err;
    *bytes = header_bytes + wire_size_struct(z, body->body, body_msg);
    if (z->err == ERR_NONE && *bytes > INT32_MAX)
        return ERR_TOO_LARGE;
    return z->err;
}

enum err wire_encode_frame(const struct wire_message *header, int16_t header_version,
                           const void *header_msg, const struct wire_message *body, int16_t version,
                           const void *body_msg, size_t by_ref_bytes, struct arena *a,
                           struct wire_parts *out)
{
    struct writer w = {.by_ref_bytes = by_ref_bytes, .out = out};
    struct sizer z;
    size_t bytes;
    uint8_t *p;
    enum err e;

    wire_sizer_init(&z, body, version, by_ref_bytes);
    e = size_frame(header, header_version, header_msg, &z, body, body_msg, &bytes);
    if (e != ERR_NONE)
        return e;
    p = arena_alloc(a, 4 + bytes - z.ref_bytes);
    out->v = arena_array(a, 2 * z.refs_n + 1, sizeof *out->v);
    if (p == NULL || out->v == NULL)
        return ERR_NOMEM;
    out->n = out->bytes = 0;
    put_be32(p, (uint32_t)bytes);
    w.part = p;
    w.p = p + 4;
    if (header != NULL)
        write_message(&w, header, header_version, header_msg);
    write_message(&w, body, version, body_msg);
    cut(&w);
    CHECK(w.p == p + 4 + bytes - z.ref_bytes && out->bytes == 4 + bytes);
    return ERR_NONE;
}

enum err wire_frame_body(const struct wire_message *header, int16_t header_version,
                         const void *header_msg, struct bytes body, struct arena *a,
                         struct wire_parts *out)
{
    struct writer w = {.by_ref_bytes = SIZE_MAX, .out = out};
    size_t bytes = 0;
    enum err e = header != NULL ? wire_size(header, header_version, header_msg, &bytes) : ERR_NONE;

    if (e != ERR_NONE)
        return e;
    bytes += (size_t)body.n;
    if (bytes > INT32_MAX)
        return ERR_TOO_LARGE;
    w.part = w.p = arena_alloc(a, 4 + bytes);
    out->v = arena_array(a, 1, sizeof *out->v);
    if (w.p == NULL || out->v == NULL)
        return ERR_NOMEM;
    out->n = out->bytes = 0;
    put_be32(w.p, (uint32_t)bytes);
    w.p += 4;
    if (header != NULL)
        write_message(&w, header, header_version, header_msg);
    put_bytes(&w, body.p, body.n);
    cut(&w);
    CHECK(out->bytes == 4 + bytes);
    return ERR_NONE;
}
