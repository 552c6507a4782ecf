/* Random messages, for tests and fuzzers: every field that the version has, nulls where they are
 * allowed, numbers that are often at an edge, short arrays. What it makes can be encoded. */
#include "wire/table.h"

struct maker {
    uint64_t (*next)(void *ctx);
    void *ctx;
    struct arena *arena;
    enum err err; /* sticky */
    int16_t version;
};

static void make_struct(struct maker *k, const struct wire_struct *s, uint8_t *out);

static uint32_t below(struct maker *k, uint32_t n)
{
    return (uint32_t)(k->next(k->ctx) >> 16) % n;
}

static bool is_null(struct maker *k, const struct wire_field *f)
{
    return k->version >= f->null_min && below(k, 4) == 0;
}

static void *take(struct maker *k, size_t n)
{
    void *p = k->err == ERR_NONE ? arena_alloc(k->arena, n) : NULL;

    if (p == NULL)
        k->err = ERR_NOMEM;
    return p;
}

static struct bytes make_bytes(struct maker *k)
{
    struct bytes b = {NULL, 0};
    int32_t n = (int32_t)(below(k, 16) == 0 ? below(k, 400) : below(k, 20));
    uint8_t *p = take(k, (size_t)n);

    if (p == NULL)
        return b;
    for (int32_t i = 0; i < n; i++)
        p[i] = (uint8_t)below(k, 256);
    return (struct bytes){p, n};
}

static struct str make_string(struct maker *k)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    int32_t n = (int32_t)(below(k, 16) == 0 ? below(k, 400) : below(k, 20));
    char *p;

    if (below(k, 16) == 0)
        return STR_LIT("K\xc3\xa4"
                       "fer \"\\\n\x01 \xe6\x97\xa5");
    p = take(k, (size_t)n);
    if (p == NULL)
        return STR_LIT("");
    for (int32_t i = 0; i < n; i++)
        p[i] = letters[below(k, sizeof letters - 1)];
    return (struct str){p, n};
}

static void make_fixed(struct maker *k, uint8_t type, uint8_t *out)
{
    static const uint64_t edges[] = {0, 1, 0x7f, 0x7fff, INT32_MAX, INT64_MAX};
    uint64_t v[2] = {k->next(k->ctx), k->next(k->ctx)};
    double d = (double)(int64_t)v[0] / 1024;

    if (type == T_BOOL) {
        memcpy(out, &(bool){v[0] >> 20 & 1}, sizeof(bool));
        return;
    }
    if (type == T_FLOAT64) { /* no random bits: not every NaN prints as itself */
        memcpy(out, &d, sizeof d);
        return;
    }
    if (below(k, 2) == 0) {
        v[0] = edges[below(k, ARRAY_N(edges))];
        v[0] = below(k, 2) == 0 ? v[0] : ~v[0];
    }
    memcpy(out, v, wire_c_size(type, NULL));
}

static void make_scalar(struct maker *k, uint8_t type, uint8_t *out)
{
    struct bytes b;
    struct str s;

    if (type == T_STRING) {
        s = make_string(k);
        memcpy(out, &s, sizeof s);
    } else if (type == T_BYTES) {
        b = make_bytes(k);
        memcpy(out, &b, sizeof b);
    } else if (type == T_RECORDS) {
        b = make_bytes(k);
        memcpy(out, &(struct wire_records){.p = b.p, .n = b.n}, sizeof(struct wire_records));
    } else {
        make_fixed(k, type, out);
    }
}

static void make_array(struct maker *k, const struct wire_field *f, uint8_t *out)
{
    struct wire_any_array a = {NULL, (int32_t)below(k, 4)};
    size_t step = wire_c_size(f->element, f->sub);
    uint8_t *v = take(k, (size_t)a.n * step);

    if (v == NULL)
        return;
    a.v = v;
    memcpy(out, &a, sizeof a);
    for (int32_t i = 0; i < a.n; i++, v += step) {
        if (f->element == T_STRUCT)
            make_struct(k, f->sub, v);
        else
            make_scalar(k, f->element, v);
    }
}

static void make_null(const struct wire_field *f, uint8_t *out)
{
    struct wire_any_array none = {NULL, -1};

    if (f->type == T_POINTER)
        memset(out, 0, sizeof(void *));
    else if (f->type == T_RECORDS)
        memcpy(out, &(struct wire_records){.n = -1}, sizeof(struct wire_records));
    else
        memcpy(out, &none, sizeof none); /* strings, bytes and arrays look alike */
}

static void make_field(struct maker *k, const struct wire_field *f, uint8_t *out)
{
    void *v;

    if (is_null(k, f)) {
        make_null(f, out);
    } else if (f->type == T_ARRAY) {
        make_array(k, f, out);
    } else if (f->type == T_STRUCT) {
        make_struct(k, f->sub, out);
    } else if (f->type == T_POINTER) {
        v = take(k, f->sub->size);
        if (v != NULL)
            make_struct(k, f->sub, v);
        memcpy(out, &v, sizeof v);
    } else {
        make_scalar(k, f->type, out);
    }
}

static void make_struct(struct maker *k, const struct wire_struct *s, uint8_t *out)
{
    wire_default(s, out);
    for (size_t i = 0; i < s->fields_n && k->err == ERR_NONE; i++) {
        const struct wire_field *f = &s->fields[i];
        if (wire_field_in(f, k->version) && (f->tag < 0 || below(k, 2) == 0))
            make_field(k, f, out + f->offset);
    }
}

enum err wire_random(const struct wire_message *m, int16_t version, struct arena *a,
                     uint64_t (*next)(void *), void *ctx, void *out)
{
    struct maker k = {.next = next, .ctx = ctx, .arena = a, .version = version};

    if (version < m->min_version || version > m->max_version)
        return ERR_UNSUPPORTED;
    make_struct(&k, m->body, out);
    return k.err;
}
