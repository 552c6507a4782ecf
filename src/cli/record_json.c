#include "cli/record_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/text.h"

/* ------------------------------------------------------------------ writing */

/* False: out of memory; value may be NULL. */
static bool put(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

static json_t *base64_of(struct bytes b)
{
    struct buf text;
    json_t *value = NULL;
    buf_init(&text);
    if (text_base64(b, &text) == ERR_NONE)
        value = json_stringn_nocheck((const char *)text.p, text.n);
    buf_close(&text);
    return value;
}

static bool put_bytes(json_t *object, const char *name, const char *base64_name, struct bytes b)
{
    if (b.n < 0)
        return put(object, name, json_null());
    if (text_is_utf8(b.p, (size_t)b.n))
        return put(object, name,
                   json_stringn_nocheck(b.n == 0 ? "" : (const char *)b.p, (size_t)b.n));
    return put(object, base64_name, base64_of(b));
}

static enum err put_headers(json_t *object, const struct record *r)
{
    struct bytes left = r->headers;
    json_t *array = json_array();
    if (!put(object, "headers", array))
        return ERR_NOMEM;
    for (int32_t i = 0; i < r->headers_n; i++) {
        struct record_header h;
        enum err e = record_next_header(&left, &h);
        if (e != ERR_NONE)
            return ERR_CORRUPT;
        json_t *o = json_object();
        if (json_array_append_new(array, o) != 0 ||
            !put_bytes(o, "key", "key_base64", (struct bytes){(const uint8_t *)h.key.p, h.key.n}) ||
            !put_bytes(o, "value", "value_base64", h.value))
            return ERR_NOMEM;
    }
    return ERR_NONE;
}

static int append(const char *p, size_t n, void *ctx)
{
    return buf_append(ctx, p, n) == ERR_NONE ? 0 : -1;
}

enum err record_json_write(struct str topic, int32_t partition, const struct record *r,
                           struct buf *out)
{
    json_t *o = json_object();
    const struct bytes name = {(const uint8_t *)topic.p, topic.n};
    const size_t before = out->n;
    enum err e = ERR_NOMEM;
    if (put_bytes(o, "topic", "topic_base64", name) &&
        put(o, "partition", json_integer(partition)) && put(o, "offset", json_integer(r->offset)) &&
        put(o, "timestamp", json_integer(r->timestamp)) &&
        put_bytes(o, "key", "key_base64", r->key) &&
        put_bytes(o, "value", "value_base64", r->value))
        e = put_headers(o, r);
    if (e == ERR_NONE && (json_dump_callback(o, append, out, JSON_COMPACT) != 0 ||
                          buf_append(out, "\n", 1) != ERR_NONE))
        e = ERR_NOMEM;
    json_decref(o);
    if (e != ERR_NONE)
        out->n = before;
    return e;
}

/* ------------------------------------------------------------------ reading */

struct reading {
    struct arena *arena;
    char *message;
};

__attribute__((format(printf, 2, 3))) static enum err refuse(const struct reading *r,
                                                             const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->message, RECORD_JSON_MESSAGE_BYTES, fmt, ap);
    va_end(ap);
    return ERR_INVALID;
}

static enum err keep(const struct reading *r, const void *p, size_t n, struct bytes *out)
{
    if (n > INT32_MAX)
        return refuse(r, "a string is too long");
    *out = (struct bytes){arena_memdup(r->arena, p, n), (int32_t)n};
    return out->p != NULL ? ERR_NONE : ERR_NOMEM;
}

static enum err keep_base64(const struct reading *r, const char *name, const json_t *text,
                            struct bytes *out)
{
    struct buf plain;
    if (!json_is_string(text) || json_string_length(text) > INT32_MAX)
        return refuse(r, "%s is not a string of base64", name);
    buf_init(&plain);
    const struct str s = {json_string_value(text), (int32_t)json_string_length(text)};
    enum err e = text_from_base64(s, &plain);
    if (e == ERR_INVALID)
        e = refuse(r, "%s is not base64", name);
    else if (e == ERR_NONE)
        e = keep(r, plain.p, plain.n, out);
    buf_close(&plain);
    return e;
}

/* NAME or NAME_base64 of an object; ERR_NOENT: neither is there. */
static enum err take_bytes(const struct reading *r, const json_t *object, const char *name,
                           const char *base64_name, struct bytes *out)
{
    const json_t *text = json_object_get(object, name);
    const json_t *base64 = json_object_get(object, base64_name);
    *out = BYTES_NULL;
    if (text != NULL && base64 != NULL)
        return refuse(r, "%s and %s are both there", name, base64_name);
    if (base64 != NULL)
        return keep_base64(r, base64_name, base64, out);
    if (text == NULL)
        return ERR_NOENT;
    if (json_is_null(text))
        return ERR_NONE;
    if (!json_is_string(text))
        return refuse(r, "%s is neither a string nor null", name);
    return keep(r, json_string_value(text), json_string_length(text), out);
}

static enum err check_names(const struct reading *r, const json_t *object, const char *const *names,
                            size_t n)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        size_t i = 0;
        while (i < n && strcmp(names[i], name) != 0)
            i++;
        if (i == n)
            return refuse(r, "unknown member \"%.60s\"", name);
    }
    return ERR_NONE;
}

static enum err take_header(const struct reading *r, const json_t *object,
                            struct record_header *out)
{
    static const char *const names[] = {"key", "key_base64", "value", "value_base64"};
    struct bytes key;
    if (!json_is_object(object))
        return refuse(r, "a header is not an object");
    enum err e = check_names(r, object, names, ARRAY_N(names));
    if (e == ERR_NONE)
        e = take_bytes(r, object, "key", "key_base64", &key);
    if (e == ERR_NOENT || (e == ERR_NONE && key.n < 0))
        return refuse(r, "a header has no key");
    if (e != ERR_NONE)
        return e;
    out->key = (struct str){(const char *)key.p, key.n};
    e = take_bytes(r, object, "value", "value_base64", &out->value);
    return e == ERR_NOENT ? refuse(r, "a header has no value") : e;
}

static enum err take_headers(const struct reading *r, const json_t *object, struct record_line *out)
{
    const json_t *array = json_object_get(object, "headers");
    if (array == NULL)
        return ERR_NONE;
    if (!json_is_array(array))
        return refuse(r, "headers is not an array");
    const size_t n = json_array_size(array);
    out->headers = arena_array(r->arena, n, sizeof *out->headers);
    if (out->headers == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        enum err e = take_header(r, json_array_get(array, i), &out->headers[i]);
        if (e != ERR_NONE)
            return e;
    }
    out->headers_n = (int32_t)n;
    return ERR_NONE;
}

static enum err take_number(const struct reading *r, const json_t *object, const char *name,
                            int64_t min, int64_t max, bool *has, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    *has = value != NULL;
    if (value == NULL)
        return ERR_NONE;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return refuse(r, "%s is not a number from %lld", name, (long long)min);
    *out = json_integer_value(value);
    return ERR_NONE;
}

static enum err take_record(const struct reading *r, const json_t *o, struct record_line *out)
{
    static const char *const names[] = {"topic",        "topic_base64", "partition",  "offset",
                                        "timestamp",    "key",          "key_base64", "value",
                                        "value_base64", "headers"};
    int64_t partition = 0;
    if (!json_is_object(o))
        return refuse(r, "not an object");
    enum err e = check_names(r, o, names, ARRAY_N(names));
    if (e == ERR_NONE)
        e = take_bytes(r, o, "value", "value_base64", &out->value);
    if (e == ERR_NOENT)
        return refuse(r, "value is missing (null for a tombstone)");
    if (e == ERR_NONE)
        e = take_bytes(r, o, "key", "key_base64", &out->key);
    if (e == ERR_NONE || e == ERR_NOENT)
        e = take_number(r, o, "timestamp", -1, INT64_MAX, &out->has_timestamp, &out->timestamp);
    if (e == ERR_NONE)
        e = take_number(r, o, "partition", 0, INT32_MAX, &out->has_partition, &partition);
    out->partition = (int32_t)partition;
    return e == ERR_NONE ? take_headers(r, o, out) : e;
}

enum err record_json_read(struct str line, struct arena *a, struct record_line *out,
                          char message[RECORD_JSON_MESSAGE_BYTES])
{
    const struct reading r = {a, message};
    json_error_t error;
    *out = (struct record_line){.key = BYTES_NULL, .value = BYTES_NULL};
    json_t *o = json_loadb(line.p, line.n < 0 ? 0 : (size_t)line.n,
                           JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (o == NULL && json_error_code(&error) == json_error_out_of_memory)
        return ERR_NOMEM;
    if (o == NULL)
        return refuse(&r, "not JSON at column %d: %.100s", error.column, error.text);
    const enum err e = take_record(&r, o, out);
    json_decref(o);
    return e;
}
