/* Messages as text: the JSON that Kafka's own JsonConverters write, so that the two can be compared
 * byte by byte. Fields in wire order, tagged ones only when they are not at their default; bytes
 * and records in base64, ids in base64url, numbers as Java prints them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/codec_size.h"

/* Failure is sticky. */
struct printer {
    struct buf *out;
    enum err err;
    int16_t version;
};

static void print_struct(struct printer *pr, const struct wire_struct *s, const uint8_t *p);

static void put(struct printer *pr, const void *p, size_t n)
{
    if (pr->err == ERR_NONE)
        pr->err = buf_append(pr->out, p, n);
}

static void put_text(struct printer *pr, const char *s)
{
    put(pr, s, strlen(s));
}

static void put_escaped(struct printer *pr, uint8_t c)
{
    static const char special[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    char text[8];

    for (size_t i = 0; i + 1 < sizeof special; i += 2) {
        if ((uint8_t)special[i] == c) {
            put(pr, (char[]){'\\', special[i + 1]}, 2);
            return;
        }
    }
    snprintf(text, sizeof text, "\\u%04X", c);
    put_text(pr, text);
}

static void print_string(struct printer *pr, struct str s)
{
    int32_t plain = 0; /* start of what needs no escape */

    if (s.n < 0) {
        put_text(pr, "null");
        return;
    }
    put_text(pr, "\"");
    for (int32_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        put(pr, s.p + plain, (size_t)(i - plain));
        put_escaped(pr, c);
        plain = i + 1;
    }
    if (s.n > plain)
        put(pr, s.p + plain, (size_t)(s.n - plain));
    put_text(pr, "\"");
}

static void print_base64(struct printer *pr, const uint8_t *p, int32_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    if (n < 0) {
        put_text(pr, "null");
        return;
    }
    put_text(pr, "\"");
    for (int32_t i = 0; i < n && pr->err == ERR_NONE; i += 3) {
        int32_t rest = n - i;
        uint32_t v = (uint32_t)p[i] << 16;
        if (rest > 1)
            v |= (uint32_t)p[i + 1] << 8;
        if (rest > 2)
            v |= p[i + 2];
        put(pr,
            (char[]){digits[v >> 18], digits[v >> 12 & 63], rest > 1 ? digits[v >> 6 & 63] : '=',
                     rest > 2 ? digits[v & 63] : '='},
            4);
    }
    put_text(pr, "\"");
}

/* Kafka's converters leave the batches out. */
static void print_records(struct printer *pr, const uint8_t *p)
{
    struct wire_records rec;

    memcpy(&rec, p, sizeof rec);
    put_text(pr, rec.n < 0 ? "null" : "\"\"");
}

static void print_uuid(struct printer *pr, const uint8_t *p)
{
    struct uuid id;
    char text[UUID_TEXT_N + 1];

    memcpy(&id, p, sizeof id);
    uuid_print(id, text);
    put_text(pr, "\"");
    put_text(pr, text);
    put_text(pr, "\"");
}

/* digits: d.ddd without its point, the value being d.ddd * 10^exp. */
static void print_digits(struct printer *pr, const char *digits, int exp)
{
    int n = (int)strlen(digits);
    char text[48];

    if (exp < -3 || exp >= 7) {
        snprintf(text, sizeof text, "%c.%sE%d", digits[0], n > 1 ? digits + 1 : "0", exp);
    } else if (exp < 0) {
        snprintf(text, sizeof text, "0.%.*s%s", -exp - 1, "00", digits);
    } else if (n <= exp + 1) {
        snprintf(text, sizeof text, "%s%.*s.0", digits, exp + 1 - n, "000000");
    } else {
        snprintf(text, sizeof text, "%.*s.%s", exp + 1, digits, digits + exp + 1);
    }
    put_text(pr, text);
}

/* As Java's Double.toString: the fewest digits, but two where that is nearer, that read back as the
 * same number, at least one behind the point; an exponent below 10^-3 and from 10^7 on. */
static void print_double(struct printer *pr, double d)
{
    char text[32], digits[20];
    int precision = 1, n = 0;

    if (isnan(d) || isinf(d)) {
        put_text(pr, isnan(d) ? "\"NaN\"" : d < 0 ? "\"-Infinity\"" : "\"Infinity\"");
        return;
    }
    if (signbit(d))
        put_text(pr, "-");
    d = fabs(d);
    do {
        snprintf(text, sizeof text, "%.*e", precision, d);
    } while (strtod(text, NULL) != d && ++precision < 17);
    for (const char *c = text; *c != 'e'; c++) {
        if (*c >= '0' && *c <= '9')
            digits[n++] = *c;
    }
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    print_digits(pr, digits, atoi(strchr(text, 'e') + 1));
}

static void print_number(struct printer *pr, enum wire_type type, const uint8_t *p)
{
    uint64_t bits = 0;
    char text[24];
    int64_t v;

    memcpy(&bits, p, wire_c_size((uint8_t)type, NULL));
    if (type == T_INT8)
        v = (int8_t)bits;
    else if (type == T_INT16)
        v = (int16_t)bits;
    else if (type == T_INT32)
        v = (int32_t)bits;
    else
        v = (int64_t)bits; /* the unsigned ones fit */
    snprintf(text, sizeof text, "%lld", (long long)v);
    put_text(pr, text);
}

static void print_scalar(struct printer *pr, enum wire_type type, const uint8_t *p)
{
    struct bytes b;
    struct str s;
    double d;

    switch (type) {
    case T_BOOL:
        put_text(pr, *p != 0 ? "true" : "false");
        break;
    case T_INT8:
    case T_INT16:
    case T_UINT16:
    case T_INT32:
    case T_UINT32:
    case T_INT64:
        print_number(pr, type, p);
        break;
    case T_FLOAT64:
        memcpy(&d, p, sizeof d);
        print_double(pr, d);
        break;
    case T_UUID:
        print_uuid(pr, p);
        break;
    case T_STRING:
        memcpy(&s, p, sizeof s);
        print_string(pr, s);
        break;
    case T_BYTES:
        memcpy(&b, p, sizeof b);
        print_base64(pr, b.p, b.n);
        break;
    case T_RECORDS:
        print_records(pr, p);
        break;
    case T_STRUCT:
    case T_POINTER:
    case T_ARRAY:
        break;
    }
}

static void print_array(struct printer *pr, const struct wire_field *f, const uint8_t *p)
{
    struct wire_any_array a;
    size_t step = wire_c_size(f->element, f->sub);
    const uint8_t *v;

    memcpy(&a, p, sizeof a);
    if (a.n < 0) {
        put_text(pr, "null");
        return;
    }
    put_text(pr, "[");
    v = a.v;
    for (int32_t i = 0; i < a.n && pr->err == ERR_NONE; i++, v += step) {
        if (i > 0)
            put_text(pr, ",");
        if (f->element == T_STRUCT)
            print_struct(pr, f->sub, v);
        else
            print_scalar(pr, f->element, v);
    }
    put_text(pr, "]");
}

static void print_pointer(struct printer *pr, const struct wire_struct *s, const uint8_t *p)
{
    void *v;

    memcpy(&v, p, sizeof v);
    if (v == NULL)
        put_text(pr, "null");
    else
        print_struct(pr, s, v);
}

static void print_struct(struct printer *pr, const struct wire_struct *s, const uint8_t *p)
{
    const char *before = "{\"";

    for (size_t i = 0; i < s->fields_n; i++) {
        const struct wire_field *f = &s->fields[i];
        if (!wire_field_in(f, pr->version) || (f->tag >= 0 && wire_is_default(s, f, p)))
            continue;
        put_text(pr, before);
        put_text(pr, f->name);
        put_text(pr, "\":");
        before = ",\"";
        if (f->type == T_ARRAY)
            print_array(pr, f, p + f->offset);
        else if (f->type == T_STRUCT)
            print_struct(pr, f->sub, p + f->offset);
        else if (f->type == T_POINTER)
            print_pointer(pr, f->sub, p + f->offset);
        else
            print_scalar(pr, f->type, p + f->offset);
    }
    put_text(pr, *before == '{' ? "{}" : "}");
}

enum err wire_print(const struct wire_message *m, int16_t version, const void *msg, struct buf *out)
{
    struct printer pr = {.out = out, .version = version};

    if (version < m->min_version || version > m->max_version)
        return ERR_UNSUPPORTED;
    print_struct(&pr, m->body, msg);
    return pr.err;
}
