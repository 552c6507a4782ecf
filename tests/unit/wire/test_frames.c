/* Kafka's frames, damaged: cut short at every byte, each of them is an error and nothing worse;
 * with a byte changed they decode or they do not. tests/tools checks that the whole ones are right.
 */
#include "test_codec.h"

#include <stdlib.h>
#include <zlib.h>

typedef void (*frame_fn)(const struct wire_message *m, int16_t version, struct bytes body);

static int hex_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void each_frame(const char *name, frame_fn fn)
{
    static char line[1 << 17];
    gzFile file = gzopen(test_golden(name), "rb");
    long n = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (gzgets(file, line, sizeof line) != NULL) {
        char *rest = line;
        const struct wire_message *m = wire_find_name(strsep(&rest, "\t"));
        int16_t version = (int16_t)atoi(strsep(&rest, "\t"));
        const char *hex = strsep(&rest, "\t");
        struct bytes body = {NULL, (int32_t)strlen(hex) / 2};
        uint8_t *p = malloc((size_t)body.n + 1);

        CU_ASSERT_PTR_NOT_NULL_FATAL(m);
        for (int32_t i = 0; i < body.n; i++)
            p[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
        body.p = p;
        fn(m, version, body);
        free(p);
        n++;
    }
    gzclose(file);
    CU_ASSERT(n > 0);
}

static void each_golden_frame(frame_fn fn)
{
    static const char *const files[] = {"group", "messages", "metadata",   "raft",
                                        "share", "storage",  "transaction"};

    for (size_t i = 0; i < ARRAY_N(files); i++) {
        char name[64];
        snprintf(name, sizeof name, "frames/%s.tsv.gz", files[i]);
        each_frame(name, fn);
    }
}

/* In memory of its own size, so that a read behind the end is seen. */
static enum err decode(const struct wire_message *m, int16_t version, struct bytes body, void *msg,
                       struct arena *arena)
{
    uint8_t *copy = malloc(body.n > 0 ? (size_t)body.n : 1);
    enum err e;

    memcpy(copy, body.p, (size_t)body.n);
    e = wire_decode(m, version, (struct bytes){copy, body.n}, arena, msg);
    free(copy);
    return e;
}

static void check_cut(const struct wire_message *m, int16_t version, struct bytes body)
{
    void *msg = malloc(m->body->size);
    struct arena arena;
    int32_t n = body.n;

    arena_init(&arena, NULL);
    CU_ASSERT_EQUAL(decode(m, version, body, msg, &arena), ERR_NONE);
    for (body.n = 0; body.n < n; body.n++) {
        CU_ASSERT_EQUAL(decode(m, version, body, msg, &arena), ERR_TRUNCATED);
        arena_reset(&arena);
    }
    arena_close(&arena);
    free(msg);
}

static void test_frames_cut_short_are_errors(void)
{
    each_golden_frame(check_cut);
}

/* One byte in 7, three ways: a decode that succeeds gives a message that can be sent. */
static void check_changed(const struct wire_message *m, int16_t version, struct bytes body)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xff};
    void *msg = malloc(m->body->size);
    uint8_t *copy = malloc((size_t)body.n + 1);
    struct arena arena;
    size_t size;

    arena_init(&arena, NULL);
    memcpy(copy, body.p, (size_t)body.n);
    for (int32_t i = 0; i < 3 * body.n; i += 7) {
        copy[i / 3] ^= changes[i % 3];
        if (wire_decode(m, version, (struct bytes){copy, body.n}, &arena, msg) == ERR_NONE)
            CU_ASSERT_EQUAL(wire_size(m, version, msg, &size), ERR_NONE);
        copy[i / 3] = body.p[i / 3];
        arena_reset(&arena);
    }
    arena_close(&arena);
    free(copy);
    free(msg);
}

static void test_frames_with_a_byte_changed_do_no_harm(void)
{
    each_golden_frame(check_changed);
}

static void check_trailing(const struct wire_message *m, int16_t version, struct bytes body)
{
    uint8_t *longer = calloc(1, (size_t)body.n + 1);
    void *msg = malloc(m->body->size);
    struct arena arena;

    arena_init(&arena, NULL);
    memcpy(longer, body.p, (size_t)body.n);
    CU_ASSERT_EQUAL(wire_decode(m, version, (struct bytes){longer, body.n + 1}, &arena, msg),
                    ERR_TRAILING);
    arena_close(&arena);
    free(msg);
    free(longer);
}

static void test_frames_with_a_byte_behind_are_errors(void)
{
    each_golden_frame(check_trailing);
}

TEST_MAIN(TEST(test_frames_cut_short_are_errors), TEST(test_frames_with_a_byte_changed_do_no_harm),
          TEST(test_frames_with_a_byte_behind_are_errors))
