/* Every message, at every version, with random values: what goes in comes out. */
#include "test_codec.h"

#define SAMPLES 5

/* encode, decode, encode, and print both. */
static void check(const struct wire_message *m, int16_t version, struct rng *rng)
{
    struct buf first = {0}, second = {0}, text = {0}, text_again = {0};
    struct arena arena;
    void *msg, *again;
    size_t size = 0;

    arena_init(&arena, NULL);
    msg = arena_alloc(&arena, m->body->size);
    again = arena_alloc(&arena, m->body->size);
    CU_ASSERT_EQUAL(wire_random(m, version, &arena, bits_next, rng, msg), ERR_NONE);
    CU_ASSERT_EQUAL(wire_size(m, version, msg, &size), ERR_NONE);
    CU_ASSERT_EQUAL(wire_encode(m, version, msg, &first), ERR_NONE);
    CU_ASSERT_EQUAL(size, first.n);
    CU_ASSERT_EQUAL(wire_decode(m, version, bytes_of(&first), &arena, again), ERR_NONE);
    CU_ASSERT_EQUAL(wire_encode(m, version, again, &second), ERR_NONE);
    CU_ASSERT(buf_eq(&first, &second));
    CU_ASSERT_EQUAL(wire_print(m, version, msg, &text), ERR_NONE);
    CU_ASSERT_EQUAL(wire_print(m, version, again, &text_again), ERR_NONE);
    CU_ASSERT(buf_eq(&text, &text_again));
    buf_close(&text);
    buf_close(&text_again);
    buf_close(&first);
    buf_close(&second);
    arena_close(&arena);
}

static void test_codec_random_messages_come_back(void)
{
    struct rng rng = {1};
    size_t n = 0;

    for (; wire_messages[n] != NULL; n++) {
        const struct wire_message *m = wire_messages[n];
        for (int16_t version = m->min_version; version <= m->max_version; version++) {
            for (int i = 0; i < SAMPLES; i++)
                check(m, version, &rng);
        }
    }
    CU_ASSERT_EQUAL(n, 278);
}

/* Defaults can be sent by any version, and absent fields are exactly the defaults. */
static void test_codec_random_defaults_come_back(void)
{
    for (size_t n = 0; wire_messages[n] != NULL; n++) {
        const struct wire_message *m = wire_messages[n];
        for (int16_t version = m->min_version; version <= m->max_version; version++) {
            struct buf out = {0}, again = {0};
            struct arena arena;
            void *msg;

            arena_init(&arena, NULL);
            msg = wire_array(m->body, &arena, 1);
            CU_ASSERT_EQUAL(wire_encode(m, version, msg, &out), ERR_NONE);
            CU_ASSERT(out.n >= m->body->least_bytes[version - m->body->least_first]);
            CU_ASSERT_EQUAL(wire_decode(m, version, bytes_of(&out), &arena, msg), ERR_NONE);
            CU_ASSERT_EQUAL(wire_encode(m, version, msg, &again), ERR_NONE);
            CU_ASSERT(buf_eq(&out, &again));
            buf_close(&out);
            buf_close(&again);
            arena_close(&arena);
        }
    }
}

TEST_MAIN(TEST(test_codec_random_messages_come_back), TEST(test_codec_random_defaults_come_back))
