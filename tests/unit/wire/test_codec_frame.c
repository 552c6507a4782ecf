/* Outgoing frames: length, header, body, and record sets that are not copied. */
#include "test_codec.h"

#include "base/endian.h"

static struct arena arena;
static struct fetch_response resp;
static struct fetch_response_partition_data partitions[3];
static struct fetch_response_fetchable_topic_response topic;
static struct response_header header;

/* One topic, three partitions without records. */
static void fixture(void)
{
    arena_init(&arena, NULL);
    wire_default(&wire_response_header, &header);
    header.correlation_id = 77;
    wire_default(&wire_fetch_response, &resp);
    wire_default(&wire_fetch_response_fetchable_topic_response, &topic);
    for (size_t i = 0; i < ARRAY_N(partitions); i++) {
        wire_default(&wire_fetch_response_partition_data, &partitions[i]);
        partitions[i].partition_index = (int32_t)i;
    }
    topic.partitions.v = partitions;
    topic.partitions.n = ARRAY_N(partitions);
    resp.responses.v = &topic;
    resp.responses.n = 1;
}

static enum err encode(size_t by_ref_bytes, struct wire_parts *parts)
{
    return wire_encode_frame(&msg_response_header, 1, &header, &msg_fetch_response, 13, &resp,
                             by_ref_bytes, &arena, parts);
}

/* The parts one behind the other; a slice gives the bytes of fill. */
static struct buf join(const struct wire_parts *parts, uint8_t fill)
{
    struct buf b = {0};
    size_t bytes = 0;

    for (size_t i = 0; i < parts->n; i++) {
        const struct wire_part *part = &parts->v[i];
        CU_ASSERT(part->n > 0);
        CU_ASSERT_EQUAL(buf_reserve(&b, part->n), ERR_NONE);
        if (part->p != NULL)
            memcpy(b.p + b.n, part->p, part->n);
        else
            memset(b.p + b.n, fill, part->n);
        b.n += part->n;
        bytes += part->n;
    }
    CU_ASSERT_EQUAL(bytes, parts->bytes);
    return b;
}

static void check_frame(const struct buf *b, struct fetch_response *out)
{
    struct response_header h;
    size_t used = 0;

    CU_ASSERT_EQUAL(be32(b->p), b->n - 4);
    CU_ASSERT_EQUAL(wire_decode_prefix(&msg_response_header, 1,
                                       (struct bytes){b->p + 4, (int32_t)b->n - 4}, &arena, &h,
                                       &used),
                    ERR_NONE);
    CU_ASSERT_EQUAL(h.correlation_id, 77);
    CU_ASSERT_EQUAL(wire_decode(&msg_fetch_response, 13,
                                (struct bytes){b->p + 4 + used, (int32_t)(b->n - 4 - used)}, &arena,
                                out),
                    ERR_NONE);
}

static void test_codec_frame_in_one_part(void)
{
    struct fetch_response again;
    struct wire_parts parts;
    struct buf b;

    fixture();
    partitions[1].records = (struct wire_records){.p = (const uint8_t *)"small", .n = 5};
    CU_ASSERT_EQUAL(encode(6, &parts), ERR_NONE);
    CU_ASSERT_EQUAL(parts.n, 1);
    b = join(&parts, 0);
    check_frame(&b, &again);
    CU_ASSERT_EQUAL(memcmp(again.responses.v[0].partitions.v[1].records.p, "small", 5), 0);
    buf_close(&b);
    arena_close(&arena);
}

static void test_codec_frame_does_not_copy_large_records(void)
{
    static const uint8_t large[1000] = {1, 2, 3};
    struct fetch_response again;
    struct wire_parts parts;
    struct buf b;

    fixture();
    partitions[0].records = (struct wire_records){.p = large, .n = sizeof large};
    partitions[1].records = (struct wire_records){.p = large, .n = 999};
    CU_ASSERT_EQUAL(encode(sizeof large, &parts), ERR_NONE);
    CU_ASSERT_EQUAL(parts.n, 3);
    CU_ASSERT_PTR_EQUAL(parts.v[1].p, large);
    b = join(&parts, 0);
    check_frame(&b, &again);
    CU_ASSERT_EQUAL(again.responses.v[0].partitions.v[0].records.n, 1000);
    CU_ASSERT_EQUAL(memcmp(again.responses.v[0].partitions.v[1].records.p, large, 999), 0);
    buf_close(&b);
    arena_close(&arena);
}

static void test_codec_frame_slices_are_parts(void)
{
    struct slice slices[] = {{.off = 10, .n = 300}, {.n = 0}, {.off = 900, .n = 200}};
    struct fetch_response again;
    struct wire_parts parts;
    struct file file = {0};
    struct buf b;

    fixture();
    for (size_t i = 0; i < ARRAY_N(slices); i++)
        slices[i].f = &file;
    partitions[2].records = (struct wire_records){.n = 500, .slices = slices, .slices_n = 3};
    CU_ASSERT_EQUAL(encode(SIZE_MAX, &parts), ERR_NONE);
    CU_ASSERT_EQUAL(parts.n, 4); /* head, two slices, the tags behind */
    CU_ASSERT(parts.v[1].p == NULL && parts.v[1].s.f == &file && parts.v[1].s.off == 10);
    CU_ASSERT(parts.v[2].n == 200 && parts.v[2].s.off == 900);
    b = join(&parts, 0xab);
    check_frame(&b, &again);
    CU_ASSERT_EQUAL(again.responses.v[0].partitions.v[2].records.n, 500);
    CU_ASSERT_EQUAL(again.responses.v[0].partitions.v[2].records.p[499], 0xab);
    buf_close(&b);
    arena_close(&arena);
}

static void test_codec_frame_refusals(void)
{
    struct slice slice = {.n = 10};
    struct wire_parts parts;
    struct buf out = {0};
    size_t n = 0;

    fixture();
    partitions[0].records = (struct wire_records){.n = 10, .slices = &slice, .slices_n = 1};
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_response, 13, &resp, &out), ERR_INVALID);
    CU_ASSERT_EQUAL(wire_size(&msg_fetch_response, 13, &resp, &n), ERR_NONE);
    CU_ASSERT(n > 10);
    partitions[0].records.n = 11; /* not the sum */
    CU_ASSERT_EQUAL(encode(0, &parts), ERR_INVALID);
    /* 2 GB of slices, and the frame's own bytes on top. */
    slice.n = INT32_MAX;
    partitions[0].records.n = INT32_MAX;
    CU_ASSERT_EQUAL(encode(0, &parts), ERR_TOO_LARGE);
    partitions[0].records = (struct wire_records){0};
    resp.throttle_time_ms = 1;
    CU_ASSERT_EQUAL(wire_encode_frame(&msg_response_header, 2, &header, &msg_fetch_response, 13,
                                      &resp, 0, &arena, &parts),
                    ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(
        wire_encode_frame(NULL, 0, NULL, &msg_fetch_response, 19, &resp, 0, &arena, &parts),
        ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(
        wire_encode_frame(NULL, 0, NULL, &msg_fetch_response, 13, &resp, 0, &arena, &parts),
        ERR_NONE);
    CU_ASSERT_EQUAL(parts.n, 1);
    buf_close(&out);
    arena_close(&arena);
}

/* A body that was encoded before makes the same frame. */
static void test_codec_frame_of_a_body(void)
{
    struct wire_parts whole, parts;
    struct buf body = {0};
    fixture();
    CU_ASSERT_EQUAL_FATAL(encode(SIZE_MAX, &whole), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(wire_encode(&msg_fetch_response, 13, &resp, &body), ERR_NONE);
    const struct bytes in = {body.p, (int32_t)body.n};
    CU_ASSERT_EQUAL_FATAL(wire_frame_body(&msg_response_header, 1, &header, in, &arena, &parts),
                          ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(parts.n, 1);
    CU_ASSERT_EQUAL_FATAL(parts.v[0].n, whole.v[0].n);
    CU_ASSERT_EQUAL(memcmp(parts.v[0].p, whole.v[0].p, whole.v[0].n), 0);
    CU_ASSERT_EQUAL(wire_frame_body(&msg_response_header, 1, &header,
                                    (struct bytes){body.p, INT32_MAX}, &arena, &parts),
                    ERR_TOO_LARGE);
    buf_close(&body);
    arena_close(&arena);
}

TEST_MAIN(TEST(test_codec_frame_in_one_part), TEST(test_codec_frame_does_not_copy_large_records),
          TEST(test_codec_frame_slices_are_parts), TEST(test_codec_frame_refusals),
          TEST(test_codec_frame_of_a_body))
