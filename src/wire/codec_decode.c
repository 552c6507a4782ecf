/* Decoding: one walk over a message's table and the bytes.
 *
 * The reader's failure is sticky: the first error moves it to the end of its input, where every
 * further read fails at once, so that callers look at err once and loops end by themselves. What
 * bytes claim is checked against the bytes that are there before anything is allocated or skipped:
 * an array of n needs n times the least size of its element. Recursion follows the tables, whose
 * nesting is fixed, never the input.
 *
 * A struct starts as a copy of its defaults, so fields that the version lacks cost nothing. */
#include "base/endian.h"
#include "wire/table.h"

struct reader {
    const uint8_t *p, *end;
    struct arena *arena;
    enum err err;
    int16_t version;
    bool flexible;
};

static void decode_struct(struct reader *r, const struct wire_struct *s, uint8_t *out);

static __attribute__((cold, noinline)) void fail(struct reader *r, enum err e)
{
    if (r->err == ERR_NONE)
        r->err = e;
    r->p = r->end;
}

static inline size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}

/* The next n bytes, or NULL after a failure. */
static inline const uint8_t *take(struct reader *r, size_t n)
{
    const uint8_t *p = r->p;

    if (left(r) < n) {
        fail(r, ERR_TRUNCATED);
        return NULL;
    }
    r->p += n;
    return p;
}

static uint32_t take_uvarint(struct reader *r)
{
    uint32_t v = 0;

    for (int shift = 0; shift < 35; shift += 7) {
        const uint8_t *p = take(r, 1);
        if (p == NULL)
            return 0;
        if (shift == 28 && *p > 0x0f)
            break; /* more than 32 bits */
        v |= (uint32_t)(*p & 0x7f) << shift;
        if (*p < 0x80)
            return v;
    }
    fail(r, ERR_CORRUPT);
    return 0;
}

/* The length of a string, bytes or array; below zero is null. prefix: bytes of the length where it
 * is not compact. */
static int32_t take_length(struct reader *r, bool compact, size_t prefix, bool null_ok)
{
    int64_t n;

    if (compact) {
        n = (int64_t)take_uvarint(r) - 1;
    } else {
        const uint8_t *p = take(r, prefix);
        if (p == NULL)
            return 0;
        n = prefix == 2 ? (int16_t)be16(p) : (int32_t)be32(p);
    }
    if (r->err != ERR_NONE)
        return 0;
    if (n > INT32_MAX || (n < 0 && !null_ok)) {
        fail(r, ERR_CORRUPT);
        return 0;
    }
    return n < 0 ? -1 : (int32_t)n;
}

static void decode_string(struct reader *r, bool compact, bool null_ok, void *out)
{
    struct str s;

    s.n = take_length(r, compact, 2, null_ok);
    if (s.n > INT16_MAX) { /* as Kafka, also where a compact length could say more */
        fail(r, ERR_CORRUPT);
        return;
    }
    s.p = s.n < 0 ? NULL : (const char *)take(r, (size_t)s.n);
    if (r->err == ERR_NONE)
        memcpy(out, &s, sizeof s);
}

static void decode_bytes(struct reader *r, bool null_ok, void *out)
{
    struct bytes b;

    b.n = take_length(r, r->flexible, 4, null_ok);
    b.p = b.n < 0 ? NULL : take(r, (size_t)b.n);
    if (r->err == ERR_NONE)
        memcpy(out, &b, sizeof b);
}

static void decode_records(struct reader *r, bool null_ok, void *out)
{
    struct bytes b = BYTES_NULL;

    decode_bytes(r, null_ok, &b);
    memcpy(out, &(struct wire_records){.p = b.p, .n = b.n}, sizeof(struct wire_records));
}

/* What says whether a nullable struct is there is an int8, below zero for null, but in a tag an
 * unsigned varint, 0 for null. */
static bool take_present(struct reader *r, const struct wire_field *f)
{
    const uint8_t *p;

    if (f->tag >= 0)
        return take_uvarint(r) != 0;
    p = take(r, 1);
    return p != NULL && (int8_t)*p >= 0;
}

static void decode_pointer(struct reader *r, const struct wire_field *f, void *out)
{
    uint8_t *v = NULL;

    if (take_present(r, f)) {
        v = arena_alloc(r->arena, f->sub->size);
        if (v == NULL) {
            fail(r, ERR_NOMEM);
            return;
        }
        decode_struct(r, f->sub, v);
    } else if (r->version < f->null_min) {
        fail(r, ERR_CORRUPT);
    }
    memcpy(out, &(void *){v}, sizeof v);
}

/* Numbers and ids: as many bytes on the wire as in C, but for their order. */
static inline void copy_fixed(uint8_t *out, const uint8_t *p, size_t n, uint8_t type)
{
    switch (n) {
    case 1:
        *out = type == T_BOOL ? *p != 0 : *p;
        break;
    case 2:
        memcpy(out, &(uint16_t){be16(p)}, 2);
        break;
    case 4:
        memcpy(out, &(uint32_t){be32(p)}, 4);
        break;
    case 8:
        memcpy(out, &(uint64_t){be64(p)}, 8);
        break;
    default:
        memcpy(out, p, sizeof(struct uuid));
    }
}

static void decode_fixed(struct reader *r, uint8_t type, uint8_t *out)
{
    size_t n = wire_c_size(type, NULL);
    const uint8_t *p = take(r, n);

    if (p != NULL)
        copy_fixed(out, p, n, type);
}

static size_t least_bytes(const struct reader *r, const struct wire_field *f)
{
    if (f->element == T_STRUCT)
        return f->sub->least_bytes[r->version - f->sub->least_first];
    if (f->element == T_STRING)
        return r->flexible ? 1 : 2;
    if (f->element == T_BYTES)
        return r->flexible ? 1 : 4;
    return wire_c_size(f->element, NULL);
}

static void decode_elements(struct reader *r, const struct wire_field *f, uint8_t *v, int32_t n)
{
    size_t size = wire_c_size(f->element, f->sub);

    for (int32_t i = 0; i < n && r->err == ERR_NONE; i++, v += size) {
        if (f->element == T_STRUCT)
            decode_struct(r, f->sub, v);
        else if (f->element == T_STRING)
            decode_string(r, r->flexible, false, v);
        else if (f->element == T_BYTES)
            decode_bytes(r, false, v);
        else
            decode_fixed(r, f->element, v);
    }
}

static void decode_array(struct reader *r, const struct wire_field *f, void *out)
{
    struct wire_any_array a = {NULL, 0};

    a.n = take_length(r, r->flexible, 4, r->version >= f->null_min);
    if (a.n > 0) {
        if ((size_t)a.n > left(r) / least_bytes(r, f)) {
            fail(r, ERR_TRUNCATED);
            return;
        }
        a.v = arena_alloc(r->arena, (size_t)a.n * wire_c_size(f->element, f->sub));
        if (a.v == NULL) {
            fail(r, ERR_NOMEM);
            return;
        }
        decode_elements(r, f, a.v, a.n);
    }
    if (r->err == ERR_NONE)
        memcpy(out, &a, sizeof a);
}

static void decode_field(struct reader *r, const struct wire_field *f, uint8_t *out)
{
    bool null_ok = r->version >= f->null_min;

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
        decode_fixed(r, f->type, out);
        break;
    case T_STRING:
        decode_string(r, r->flexible && !(f->flags & F_INFLEXIBLE), null_ok, out);
        break;
    case T_BYTES:
        decode_bytes(r, null_ok, out);
        break;
    case T_RECORDS:
        decode_records(r, null_ok, out);
        break;
    case T_STRUCT:
        decode_struct(r, f->sub, out);
        break;
    case T_POINTER:
        decode_pointer(r, f, out);
        break;
    case T_ARRAY:
        decode_array(r, f, out);
        break;
    }
}

static const struct wire_field *find_tag(const struct reader *r, const struct wire_struct *s,
                                         uint32_t tag)
{
    if (s->tags_n == 0)
        return NULL;
    for (size_t i = 0; i < s->fields_n; i++) {
        const struct wire_field *f = &s->fields[i];
        if (f->tag >= 0 && (uint32_t)f->tag == tag && wire_field_in(f, r->version))
            return f;
    }
    return NULL;
}

/* The data of one tag, which the field must fill exactly: its size is known to be there. */
static void decode_tag(struct reader *r, const struct wire_field *f, size_t size, uint8_t *out)
{
    const uint8_t *end = r->end;

    r->end = r->p + size;
    decode_field(r, f, out);
    if (r->err == ERR_TRUNCATED)
        r->err = ERR_CORRUPT; /* the frame goes on, the tag does not */
    else if (r->p != r->end)
        fail(r, ERR_CORRUPT);
    r->end = end;
    if (r->err != ERR_NONE)
        r->p = end;
}

static void decode_tags(struct reader *r, const struct wire_struct *s, uint8_t *out)
{
    int64_t last = -1;

    for (uint32_t n = take_uvarint(r); n > 0; n--) {
        uint32_t tag = take_uvarint(r);
        uint32_t size = take_uvarint(r);
        const struct wire_field *f;

        if (r->err != ERR_NONE)
            return;
        if (tag <= last) {
            fail(r, ERR_CORRUPT);
            return;
        }
        last = tag;
        f = find_tag(r, s, tag);
        if (f == NULL || size > left(r))
            take(r, size);
        else
            decode_tag(r, f, size, out + f->offset);
    }
}

static void decode_struct(struct reader *r, const struct wire_struct *s, uint8_t *out)
{
    memcpy(out, s->defaults, s->size);
    for (size_t i = 0; i < s->fields_n; i++) {
        const struct wire_field *f = &s->fields[i];
        if (wire_field_in(f, r->version) && f->tag < 0)
            decode_field(r, f, out + f->offset);
    }
    if (r->flexible)
        decode_tags(r, s, out);
}

enum err wire_decode_prefix(const struct wire_message *m, int16_t version, struct bytes in,
                            struct arena *a, void *out, size_t *used)
{
    struct reader r = {.p = in.p, .arena = a, .version = version};

    if (version < m->min_version || version > m->max_version)
        return ERR_UNSUPPORTED;
    r.end = in.n > 0 ? in.p + in.n : in.p;
    r.flexible = version >= m->flexible_min;
    decode_struct(&r, m->body, out);
    *used = (size_t)(r.p - in.p);
    return r.err;
}

enum err wire_decode(const struct wire_message *m, int16_t version, struct bytes in,
                     struct arena *a, void *out)
{
    size_t used;
    enum err e = wire_decode_prefix(m, version, in, a, out, &used);

    if (e != ERR_NONE)
        return e;
    return in.n > 0 && used < (size_t)in.n ? ERR_TRAILING : ERR_NONE;
}
