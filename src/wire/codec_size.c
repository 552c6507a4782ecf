/* Sizes, defaults, and the checks that make writing a walk that cannot fail: null only where the
 * version allows it, strings that their length can express, nothing lost by a version that lacks a
 * field. Kafka: the same refusals are UnsupportedVersionException and RuntimeException there. */
#include "wire/codec_size.h"

static __attribute__((cold, noinline)) size_t fail(struct sizer *z, enum err e)
{
    if (z->err == ERR_NONE)
        z->err = e;
    return 0;
}

static size_t length_size(const struct sizer *z, int32_t n)
{
    return z->flexible ? wire_uvarint_size((uint32_t)n + 1) : 4;
}

static size_t size_string(struct sizer *z, const uint8_t *p, bool compact, bool null_ok)
{
    struct str s;

    memcpy(&s, p, sizeof s);
    if (s.n > INT16_MAX)
        return fail(z, ERR_TOO_LARGE);
    if (s.n < 0)
        return null_ok ? (compact ? 1 : 2) : fail(z, ERR_INVALID);
    return (compact ? wire_uvarint_size((uint32_t)s.n + 1) : 2) + (size_t)s.n;
}

static size_t size_bytes(struct sizer *z, const uint8_t *p, bool null_ok)
{
    struct bytes b;

    memcpy(&b, p, sizeof b);
    if (b.n < 0)
        return null_ok ? length_size(z, -1) : fail(z, ERR_INVALID);
    return length_size(z, b.n) + (size_t)b.n;
}

static size_t size_records(struct sizer *z, const uint8_t *p, bool null_ok)
{
    struct wire_records rec;
    int64_t sum = 0;

    memcpy(&rec, p, sizeof rec);
    if (rec.n < 0)
        return null_ok ? length_size(z, -1) : fail(z, ERR_INVALID);
    for (int32_t i = 0; i < rec.slices_n; i++)
        sum += rec.slices[i].n;
    if (rec.slices_n > 0 && sum != rec.n)
        return fail(z, ERR_INVALID);
    if (wire_by_ref(&rec, z->by_ref_bytes)) {
        z->ref_bytes += (size_t)rec.n;
        z->refs_n += rec.slices_n > 0 ? (size_t)rec.slices_n : 1;
    }
    return length_size(z, rec.n) + (size_t)rec.n;
}

static size_t size_array(struct sizer *z, const struct wire_field *f, const uint8_t *p)
{
    struct wire_any_array a;
    size_t n, step = wire_c_size(f->element, f->sub);
    const uint8_t *v;

    memcpy(&a, p, sizeof a);
    if (a.n < 0)
        return z->version >= f->null_min ? length_size(z, -1) : fail(z, ERR_INVALID);
    n = length_size(z, a.n);
    v = a.v;
    if (f->element <= T_UUID)
        return n + (size_t)a.n * step;
    for (int32_t i = 0; i < a.n && z->err == ERR_NONE; i++, v += step) {
        if (f->element == T_STRUCT)
            n += wire_size_struct(z, f->sub, v);
        else if (f->element == T_STRING)
            n += size_string(z, v, z->flexible, false);
        else
            n += size_bytes(z, v, false);
    }
    return n;
}

static size_t size_pointer(struct sizer *z, const struct wire_field *f, const uint8_t *p)
{
    void *v;

    memcpy(&v, p, sizeof v);
    if (v == NULL)
        return z->version >= f->null_min ? 1 : fail(z, ERR_INVALID);
    return 1 + wire_size_struct(z, f->sub, v);
}

size_t wire_size_field(struct sizer *z, const struct wire_field *f, const uint8_t *p)
{
    bool null_ok = z->version >= f->null_min;

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
        return wire_c_size(f->type, NULL);
    case T_STRING:
        return size_string(z, p, z->flexible && !(f->flags & F_INFLEXIBLE), null_ok);
    case T_BYTES:
        return size_bytes(z, p, null_ok);
    case T_RECORDS:
        return size_records(z, p, null_ok);
    case T_STRUCT:
        return wire_size_struct(z, f->sub, p);
    case T_POINTER:
        return size_pointer(z, f, p);
    case T_ARRAY:
        return size_array(z, f, p);
    }
    return 0;
}

static bool same_length(int32_t a, int32_t b)
{
    return a == b || (a < 0 && b < 0);
}

static bool is_default_struct(const struct wire_struct *s, const uint8_t *p)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        if (!wire_is_default(s, &s->fields[i], p))
            return false;
    }
    return true;
}

static bool is_default_pointer(const struct wire_struct *s, const uint8_t *p, const uint8_t *d)
{
    const void *v, *vd;

    memcpy(&v, p, sizeof v);
    memcpy(&vd, d, sizeof vd);
    if (v == NULL || vd == NULL)
        return v == vd;
    return is_default_struct(s, v);
}

/* Defaults are scalars, empty or null: of what has a length, the length decides. */
bool wire_is_default(const struct wire_struct *s, const struct wire_field *f, const uint8_t *p)
{
    const uint8_t *d = (const uint8_t *)s->defaults + f->offset;
    struct wire_any_array a, ad;
    struct wire_records rec, recd;

    p += f->offset;
    switch ((enum wire_type)f->type) {
    case T_STRING:
    case T_BYTES:
    case T_ARRAY:
        /* All three are a pointer and an int32. */
        memcpy(&a, p, sizeof a);
        memcpy(&ad, d, sizeof ad);
        return same_length(a.n, ad.n);
    case T_RECORDS:
        memcpy(&rec, p, sizeof rec);
        memcpy(&recd, d, sizeof recd);
        return same_length(rec.n, recd.n);
    case T_STRUCT:
        return is_default_struct(f->sub, p);
    case T_POINTER:
        return is_default_pointer(f->sub, p, d);
    case T_BOOL:
    case T_INT8:
    case T_INT16:
    case T_UINT16:
    case T_INT32:
    case T_UINT32:
    case T_INT64:
    case T_FLOAT64:
    case T_UUID:
        break;
    }
    return memcmp(p, d, wire_c_size(f->type, NULL)) == 0;
}

size_t wire_size_struct(struct sizer *z, const struct wire_struct *s, const uint8_t *p)
{
    size_t n = 0;
    uint32_t tags = 0;

    for (size_t i = 0; i < s->fields_n; i++) {
        const struct wire_field *f = &s->fields[i];
        if (!wire_field_in(f, z->version)) {
            if (!(f->flags & F_IGNORABLE) && !wire_is_default(s, f, p))
                return fail(z, ERR_UNSUPPORTED);
        } else if (f->tag < 0) {
            n += wire_size_field(z, f, p);
        } else if (!wire_is_default(s, f, p)) {
            size_t size = wire_size_field(z, f, p);
            if (size > INT32_MAX)
                return fail(z, ERR_TOO_LARGE);
            n += wire_uvarint_size((uint32_t)f->tag) + wire_uvarint_size((uint32_t)size) + size;
            tags++;
        }
    }
    return z->flexible ? n + wire_uvarint_size(tags) : n;
}

void wire_sizer_init(struct sizer *z, const struct wire_message *m, int16_t version,
                     size_t by_ref_bytes)
{
    *z = (struct sizer){
        .version = version, .flexible = version >= m->flexible_min, .by_ref_bytes = by_ref_bytes};
    if (version < m->min_version || version > m->max_version)
        z->err = ERR_UNSUPPORTED;
}

enum err wire_size(const struct wire_message *m, int16_t version, const void *msg, size_t *out)
{
    struct sizer z;

    wire_sizer_init(&z, m, version, SIZE_MAX);
    if (z.err != ERR_NONE)
        return z.err;
    *out = wire_size_struct(&z, m->body, msg);
    if (z.err == ERR_NONE && *out > INT32_MAX)
        return ERR_TOO_LARGE;
    return z.err;
}

void wire_default(const struct wire_struct *s, void *out)
{
    memcpy(out, s->defaults, s->size);
}

void *wire_array(const struct wire_struct *s, struct arena *a, size_t n)
{
    uint8_t *v = n > SIZE_MAX / s->size ? NULL : arena_alloc(a, n * s->size);

    for (size_t i = 0; v != NULL && i < n; i++)
        memcpy(v + i * s->size, s->defaults, s->size);
    return v;
}
