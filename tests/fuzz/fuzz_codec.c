/* Arbitrary bytes as any message at any version: the first two bytes choose the message, the third
 * the version, the rest is decoded. What decodes can be sized, printed and encoded, and its
 * encoding decodes to a message that encodes the same. Memory stays within a few times the input.
 */
#include "base/check.h"
#include "base/endian.h"
#include "wire/codec.h"

/* The worst element of all messages takes 22 times its bytes in C (64 for 3); the arena's blocks
 * may be half empty. */
#define EXPANSION 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_messages(void)
{
    size_t n = 0;

    while (wire_messages[n] != NULL)
        n++;
    return n;
}

static void check_decoded(const struct wire_message *m, int16_t version, const void *msg,
                          struct arena *arena)
{
    struct buf first = {0}, second = {0}, text = {0};
    void *again = arena_alloc(arena, m->body->size);
    size_t size;

    CHECK(again != NULL);
    CHECK(wire_size(m, version, msg, &size) == ERR_NONE);
    CHECK(wire_encode(m, version, msg, &first) == ERR_NONE && first.n == size);
    CHECK(wire_print(m, version, msg, &text) == ERR_NONE);
    CHECK(wire_decode(m, version, (struct bytes){first.p, (int32_t)first.n}, arena, again) ==
          ERR_NONE);
    CHECK(wire_encode(m, version, again, &second) == ERR_NONE);
    CHECK(first.n == second.n && (first.n == 0 || memcmp(first.p, second.p, first.n) == 0));
    buf_close(&first);
    buf_close(&second);
    buf_close(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wire_message *m;
    struct budget budget;
    struct arena arena, rest;
    int16_t version;
    void *msg;
    enum err e;

    if (size < 3)
        return 0;
    m = wire_messages[be16(data) % count_messages()];
    version = (int16_t)(m->min_version + data[2] % (m->max_version - m->min_version + 1));
    data += 3;
    size -= 3;
    budget_init(&budget, NULL, EXPANSION * size + 4096);
    arena_init(&arena, &budget);
    arena_init(&rest, NULL);
    msg = arena_alloc(&rest, m->body->size);
    CHECK(msg != NULL);
    e = wire_decode(m, version, (struct bytes){data, (int32_t)size}, &arena, msg);
    CHECK(e != ERR_NOMEM && e != ERR_UNSUPPORTED);
    if (e == ERR_NONE)
        check_decoded(m, version, msg, &rest);
    arena_close(&arena);
    arena_close(&rest);
    return 0;
}
