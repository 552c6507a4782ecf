/* The codec on bytes that lie, and on machines that are out of memory. */
#include "test_codec.h"

#include <stdlib.h>

#include "support/fault.h"

/* What a decode may take in memory: nothing here needs more than the arena's first block. */
static enum err decode_within(const struct wire_message *m, int16_t version, struct bytes in,
                              uint64_t limit_bytes, uint64_t *peak)
{
    struct budget budget;
    struct arena arena;
    enum err e;
    void *msg;

    budget_init(&budget, NULL, limit_bytes);
    arena_init(&arena, &budget);
    msg = calloc(1, m->body->size);
    e = msg == NULL ? ERR_NOMEM : wire_decode(m, version, in, &arena, msg);
    *peak = budget.peak_bytes;
    free(msg);
    arena_close(&arena);
    CU_ASSERT_EQUAL(budget.used_bytes, 0);
    return e;
}

static void test_codec_hostile_counts_allocate_nothing(void)
{
    uint64_t peak;

    /* Metadata 1: int32 count of topics; 9: varint. */
    CU_ASSERT_EQUAL(decode_within(&msg_metadata_request, 1,
                                  BYTES(0x7f, 0xff, 0xff, 0xff, 0, 1, 'a', 0, 1, 'b', 0, 1, 'c', 0,
                                        1, 'd', 0, 1, 'e', 0),
                                  1 << 20, &peak),
                    ERR_TRUNCATED);
    CU_ASSERT_EQUAL(peak, 0);
    CU_ASSERT_EQUAL(
        decode_within(&msg_metadata_request, 9,
                      BYTES(0x80, 0x80, 0x80, 0x80, 0x08, 2, 'a', 0, 2, 'b', 0, 1, 1, 1, 0),
                      1 << 20, &peak),
        ERR_TRUNCATED);
    CU_ASSERT_EQUAL(peak, 0);
    /* One more than the bytes could hold: a topic of version 9 has at least 2 bytes, 7 are left. */
    CU_ASSERT_EQUAL(
        decode_within(&msg_metadata_request, 9, BYTES(5, 1, 0, 1, 0, 1, 0, 1), 1 << 20, &peak),
        ERR_TRUNCATED);
    CU_ASSERT_EQUAL(peak, 0);
    /* A length over 2^31. */
    CU_ASSERT_EQUAL(decode_within(&msg_metadata_request, 9, BYTES(0xff, 0xff, 0xff, 0xff, 0x0f),
                                  1 << 20, &peak),
                    ERR_CORRUPT);
    /* A string longer than its frame, and one longer than any. */
    CU_ASSERT_EQUAL(decode_within(&msg_topic_record, 0, BYTES(0xff, 0x7f, 'a'), 1 << 20, &peak),
                    ERR_TRUNCATED);
    CU_ASSERT_EQUAL(
        decode_within(&msg_topic_record, 0, BYTES(0x81, 0x80, 0x02, 'a'), 1 << 20, &peak),
        ERR_CORRUPT);
}

static void test_codec_hostile_budget_is_kept(void)
{
    static uint8_t many[40000];
    uint64_t peak;

    /* A true count of 10,000 names: the bytes are there, the memory is not. */
    many[2] = 10000 >> 8;
    many[3] = 10000 & 0xff;
    CU_ASSERT_EQUAL(
        decode_within(&msg_metadata_request, 0, (struct bytes){many, 20004}, 4096, &peak),
        ERR_NOMEM);
    CU_ASSERT(peak <= 4096);
    CU_ASSERT_EQUAL(
        decode_within(&msg_metadata_request, 0, (struct bytes){many, 20004}, 1 << 20, &peak),
        ERR_NONE);
}

static void test_codec_hostile_empty_input(void)
{
    uint64_t peak;

    CU_ASSERT_EQUAL(decode_within(&msg_metadata_request, 9, BYTES_NULL, 0, &peak), ERR_TRUNCATED);
    CU_ASSERT_EQUAL(decode_within(&msg_metadata_request, 9, (struct bytes){NULL, 0}, 0, &peak),
                    ERR_TRUNCATED);
    /* A request without a field. */
    CU_ASSERT_EQUAL(decode_within(&msg_api_versions_request, 0, BYTES_NULL, 0, &peak), ERR_NONE);
}

/* Random, encode, decode, a frame, print: every allocation of it fails once, alone or with all
 * after it. A size of its own for each field keeps the arena's blocks many. */
static enum err workload(const struct wire_message *m, uint64_t seed)
{
    struct rng rng = {seed};
    struct request_header header;
    struct arena arena;
    struct buf out, text;
    struct wire_parts parts;
    void *msg, *again;
    enum err e;

    arena_init(&arena, NULL);
    buf_init(&out);
    buf_init(&text);
    wire_default(&wire_request_header, &header);
    msg = arena_alloc(&arena, m->body->size);
    again = arena_alloc(&arena, m->body->size);
    e = msg == NULL || again == NULL ? ERR_NOMEM
                                     : wire_random(m, m->max_version, &arena, bits_next, &rng, msg);
    if (e == ERR_NONE)
        e = wire_encode(m, m->max_version, msg, &out);
    if (e == ERR_NONE)
        e = wire_decode(m, m->max_version, bytes_of(&out), &arena, again);
    if (e == ERR_NONE)
        e = wire_encode_frame(&msg_request_header, 2, &header, m, m->max_version, again, 100,
                              &arena, &parts);
    if (e == ERR_NONE)
        e = wire_print(m, m->max_version, again, &text);
    buf_close(&out);
    buf_close(&text);
    arena_close(&arena);
    return e;
}

static void test_codec_hostile_every_allocation_fails(void)
{
    const struct wire_message *const messages[] = {&msg_metadata_response, &msg_fetch_request,
                                                   &msg_describe_groups_response};
    long points = 0;

    for (size_t i = 0; i < ARRAY_N(messages); i++) {
        for (int persistent = 0; persistent < 2; persistent++) {
            for (long n = 1;; n++, points++) {
                enum err e;
                fault_alloc_arm(n, persistent != 0);
                e = workload(messages[i], 40 + i);
                if (!fault_alloc_hit()) {
                    CU_ASSERT_EQUAL(e, ERR_NONE);
                    break;
                }
                CU_ASSERT_EQUAL(e, ERR_NOMEM);
            }
        }
    }
    CU_ASSERT(points >= 30);
}

TEST_MAIN(TEST(test_codec_hostile_counts_allocate_nothing), TEST(test_codec_hostile_budget_is_kept),
          TEST(test_codec_hostile_empty_input), TEST(test_codec_hostile_every_allocation_fails))
