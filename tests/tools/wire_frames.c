/* wire-frames FILE...: checks the codec against messages that Kafka wrote. A line of a file (plain
 * or gzipped) is name, version, body in hex and Kafka's JSON of it, separated by tabs. Each must
 * decode, encode to the same bytes, and print as the same JSON. Ends with "N passed, N failed" and
 * 1 if any failed, 2 if called wrongly. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "wire/codec.h"

struct counts {
    long passed, failed;
};

struct line {
    char *name, *version, *hex, *json;
};

static bool split(char *text, struct line *out)
{
    char **parts[] = {&out->name, &out->version, &out->hex, &out->json};

    text[strcspn(text, "\r\n")] = '\0';
    for (size_t i = 0; i < ARRAY_N(parts); i++) {
        *parts[i] = strsep(&text, "\t");
        if (*parts[i] == NULL)
            return false;
    }
    return text == NULL;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, c);

    return at == NULL ? -1 : (int)(at - digits);
}

/* In place; false if it is not hex. */
static bool unhex(char *hex, struct bytes *out)
{
    size_t n = strlen(hex);
    uint8_t *p = (uint8_t *)hex;

    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
        if (high < 0 || low < 0)
            return false;
        p[i / 2] = (uint8_t)(high << 4 | low);
    }
    *out = (struct bytes){p, (int32_t)(n / 2)};
    return true;
}

/* NULL, or what went wrong. */
static const char *check_message(const struct wire_message *m, int16_t version, struct bytes body,
                                 const char *json, struct arena *a, struct buf *out)
{
    void *msg = arena_zalloc(a, m->body->size);
    size_t size;

    if (msg == NULL)
        return "out of memory";
    if (wire_decode(m, version, body, a, msg) != ERR_NONE)
        return "does not decode";
    if (wire_size(m, version, msg, &size) != ERR_NONE || size != (size_t)body.n)
        return "has another size";
    if (wire_encode(m, version, msg, out) != ERR_NONE)
        return "does not encode";
    if (out->n != (size_t)body.n || (out->n > 0 && memcmp(out->p, body.p, out->n) != 0))
        return "encodes to other bytes";
    out->n = 0;
    if (wire_print(m, version, msg, out) != ERR_NONE)
        return "does not print";
    if (out->n != strlen(json) || memcmp(out->p, json, out->n) != 0)
        return "prints as something else";
    return NULL;
}

static const char *check_line(char *text, struct line *l)
{
    const struct wire_message *m;
    struct bytes body;
    struct arena a;
    struct buf out;
    const char *wrong;

    if (!split(text, l) || !unhex(l->hex, &body))
        return "is not name, version, hex, JSON";
    m = wire_find_name(l->name);
    if (m == NULL)
        return "is unknown";
    arena_init(&a, NULL);
    buf_init(&out);
    wrong = check_message(m, (int16_t)atoi(l->version), body, l->json, &a, &out);
    if (wrong != NULL && out.n > 0)
        fprintf(stderr, "got      %.*s\nexpected %s\n", (int)out.n, out.p, l->json);
    buf_close(&out);
    arena_close(&a);
    return wrong;
}

/* A line of any length, in a buffer that grows; NULL at the end. */
static char *read_line(gzFile file, struct buf *b)
{
    b->n = 0;
    do {
        if (buf_reserve(b, 4096) != ERR_NONE)
            return NULL;
        if (gzgets(file, (char *)b->p + b->n, (int)(b->cap - b->n)) == NULL)
            break;
        b->n += strlen((char *)b->p + b->n);
    } while (b->n > 0 && b->p[b->n - 1] != '\n');
    return b->n > 0 ? (char *)b->p : NULL;
}

static bool check_file(const char *path, struct counts *counts)
{
    gzFile file = gzopen(path, "rb");
    struct buf b;
    char *text;
    long number = 0;
    int status;

    if (file == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    buf_init(&b);
    while ((text = read_line(file, &b)) != NULL) {
        struct line l = {NULL, NULL, NULL, NULL};
        const char *wrong = check_line(text, &l);
        number++;
        if (wrong == NULL) {
            counts->passed++;
            continue;
        }
        counts->failed++;
        fprintf(stderr, "%s:%ld: %s version %s %s\n", path, number, l.name != NULL ? l.name : "",
                l.version != NULL ? l.version : "", wrong);
    }
    gzerror(file, &status);
    if (status != Z_OK && status != Z_STREAM_END)
        fprintf(stderr, "%s: is damaged\n", path);
    buf_close(&b);
    gzclose(file);
    return status == Z_OK || status == Z_STREAM_END;
}

int main(int argc, char **argv)
{
    struct counts counts = {0, 0};
    bool readable = true;

    if (argc < 2) {
        fprintf(stderr, "usage: wire-frames FILE.tsv[.gz]...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        readable &= check_file(argv[i], &counts);
    printf("%ld passed, %ld failed\n", counts.passed, counts.failed);
    return readable && counts.failed == 0 ? 0 : 1;
}
