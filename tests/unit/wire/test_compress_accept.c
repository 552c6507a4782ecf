/* What Kafka 4.4's readers take and refuse, stream by stream; each was sent to a running 4.4. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/wire/test_records.h"

/* The text of every good stream here. */
#define TEXT "0123456789"

struct stream {
    const char *what;
    struct bytes in;
    enum err err;
    const char *text; /* what comes out before the end or the error */
};

#define IN(...)                                                                                    \
    {                                                                                              \
        (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})                     \
    }

static void check(enum batch_codec codec, const struct stream *s)
{
    /* A copy of its own size, so that a read past the end is seen. */
    uint8_t *copy = malloc((size_t)s->in.n + 1), to[100];
    memcpy(copy, s->in.p, (size_t)s->in.n);
    struct decompressor *d;
    MUST(decompressor_new(codec, (struct bytes){copy, s->in.n}, NULL, &d));
    size_t at = 0, got = 1;
    enum err err = ERR_NONE;
    while (err == ERR_NONE && got > 0) {
        err = decompressor_read(d, to + at, sizeof to - at, &got);
        at += got;
    }
    bool ok = err == s->err && at == strlen(s->text) && memcmp(to, s->text, at) == 0;
    CU_ASSERT_TRUE(ok);
    if (!ok)
        fprintf(stderr, "%s: error %d, %zu bytes\n", s->what, (int)err, at);
    decompressor_free(d);
    free(copy);
}

/* ------------------------------------------------------------------ lz4 */

#define MAGIC 0x04, 0x22, 0x4d, 0x18
#define STORED 10, 0, 0, 0x80, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
#define PACKED 11, 0, 0, 0, 0xa0, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
#define SUM 0x0a, 0x9c, 0x0c, 0x95
#define BAD_SUM 0x0a, 0x9c, 0x0c, 0x94
#define MARK 0, 0, 0, 0

static const struct stream lz4_streams[] = {
    {"stored", IN(MAGIC, 0x60, 0x40, 0x82, STORED, MARK), ERR_NONE, TEXT},
    {"compressed", IN(MAGIC, 0x60, 0x40, 0x82, PACKED, MARK), ERR_NONE, TEXT},
    {"two blocks", IN(MAGIC, 0x60, 0x40, 0x82, PACKED, STORED, MARK), ERR_NONE, TEXT TEXT},
    {"no block", IN(MAGIC, 0x60, 0x40, 0x82, MARK), ERR_NONE, ""},
    {"4 MiB blocks", IN(MAGIC, 0x60, 0x70, 0x73, PACKED, MARK), ERR_NONE, TEXT},
    {"content size", IN(MAGIC, 0x68, 0x40, 10, 0, 0, 0, 0, 0, 0, 0, 0x47, STORED, MARK), ERR_NONE,
     TEXT},
    {"wrong content size", IN(MAGIC, 0x68, 0x40, 99, 0, 0, 0, 0, 0, 0, 0, 0x38, STORED, MARK),
     ERR_NONE, TEXT},
    {"content checksum", IN(MAGIC, 0x64, 0x40, 0xa7, STORED, MARK, SUM), ERR_NONE, TEXT},
    {"wrong content checksum", IN(MAGIC, 0x64, 0x40, 0xa7, STORED, MARK, BAD_SUM), ERR_NONE, TEXT},
    {"no content checksum", IN(MAGIC, 0x64, 0x40, 0xa7, STORED, MARK), ERR_INVALID, TEXT},
    {"cut content checksum", IN(MAGIC, 0x64, 0x40, 0xa7, STORED, MARK, 1, 2, 3), ERR_INVALID, TEXT},
    {"wrong checksum of a second block",
     IN(MAGIC, 0x70, 0x40, 0xad, STORED, SUM, PACKED, 0x1d, 0x1b, 0x16, 0x56, MARK), ERR_INVALID,
     TEXT},
    {"stored block checksum", IN(MAGIC, 0x70, 0x40, 0xad, STORED, SUM, MARK), ERR_NONE, TEXT},
    {"wrong block checksum", IN(MAGIC, 0x70, 0x40, 0xad, STORED, BAD_SUM, MARK), ERR_INVALID, ""},
    {"cut block checksum", IN(MAGIC, 0x70, 0x40, 0xad, STORED, 0x0a, 0x9c, 0x0c), ERR_INVALID, ""},
    {"junk behind", IN(MAGIC, 0x60, 0x40, 0x82, STORED, MARK, 'j'), ERR_NONE, TEXT},
    {"second frame",
     IN(MAGIC, 0x60, 0x40, 0x82, STORED, MARK, MAGIC, 0x60, 0x40, 0x82, STORED, MARK), ERR_NONE,
     TEXT},
    {"end mark with bit 31", IN(MAGIC, 0x60, 0x40, 0x82, STORED, 0, 0, 0, 0x80, STORED, MARK),
     ERR_NONE, TEXT},
    {"no end mark", IN(MAGIC, 0x60, 0x40, 0x82, STORED), ERR_INVALID, TEXT},
    {"cut end mark", IN(MAGIC, 0x60, 0x40, 0x82, STORED, 0, 0, 0), ERR_INVALID, TEXT},
    {"dependent blocks", IN(MAGIC, 0x40, 0x40, 0xc0, STORED, MARK), ERR_INVALID, ""},
    {"header checksum", IN(MAGIC, 0x60, 0x40, 0x83, STORED, MARK), ERR_INVALID, ""},
    {"dictionary bit", IN(MAGIC, 0x61, 0x40, 0xa1, STORED, MARK), ERR_INVALID, ""},
    {"reserved bit", IN(MAGIC, 0x62, 0x40, 0xf0, STORED, MARK), ERR_INVALID, ""},
    {"reserved bit of BD", IN(MAGIC, 0x60, 0x41, 0xbd, STORED, MARK), ERR_INVALID, ""},
    {"high bit of BD", IN(MAGIC, 0x60, 0xc0, 0x2a, STORED, MARK), ERR_INVALID, ""},
    {"block size id 3", IN(MAGIC, 0x60, 0x30, 0xd4, STORED, MARK), ERR_INVALID, ""},
    {"version 2", IN(MAGIC, 0xa0, 0x40, 0x0f, STORED, MARK), ERR_INVALID, ""},
    {"skippable frame", IN(0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x', MAGIC, 0x60, 0x40, 0x82, MARK),
     ERR_INVALID, ""},
    {"block over its maximum", IN(MAGIC, 0x60, 0x40, 0x82, 1, 0, 1, 0x80, '0'), ERR_INVALID, ""},
    {"block over the input", IN(MAGIC, 0x60, 0x40, 0x82, 11, 0, 0, 0x80, '0'), ERR_INVALID, ""},
    {"garbage in a block", IN(MAGIC, 0x60, 0x40, 0x82, 4, 0, 0, 0, 0x10, 'a', 0xff, 0xff, MARK),
     ERR_INVALID, ""},
    {"cut header", IN(MAGIC, 0x60, 0x40), ERR_INVALID, ""},
    {"cut content size", IN(MAGIC, 0x68, 0x40, 10, 0, 0, 0), ERR_INVALID, ""},
};

static void test_compress_lz4_accepts_what_kafka_does(void)
{
    for (size_t i = 0; i < ARRAY_N(lz4_streams); i++)
        check(CODEC_LZ4, &lz4_streams[i]);
}

/* ------------------------------------------------------------------ snappy */

#define HEAD 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1
#define HEAD_LE 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 1, 0, 0, 0, 1, 0, 0, 0
#define RAW 10, 36, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
#define BLOCK 0, 0, 0, 12, RAW

static const struct stream snappy_streams[] = {
    {"xerial", IN(HEAD, BLOCK), ERR_NONE, TEXT},
    {"two blocks", IN(HEAD, BLOCK, BLOCK), ERR_NONE, TEXT TEXT},
    {"version ints the other way round", IN(HEAD_LE, BLOCK), ERR_NONE, TEXT},
    {"header only", IN(HEAD), ERR_NONE, ""},
    {"empty block between", IN(HEAD, BLOCK, 0, 0, 0, 1, 0, BLOCK), ERR_NONE, TEXT TEXT},
    {"header between", IN(HEAD, BLOCK, HEAD_LE, BLOCK), ERR_NONE, TEXT TEXT},
    {"three bytes behind", IN(HEAD, BLOCK, 0, 0, 0), ERR_NONE, TEXT},
    {"another magic between",
     IN(HEAD, BLOCK, 0x82, 'S', 'N', 'A', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ERR_NONE, TEXT},
    {"cut header between",
     IN(HEAD, BLOCK, 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0), ERR_INVALID,
     TEXT},
    {"block of length 0", IN(HEAD, BLOCK, 0, 0, 0, 0), ERR_INVALID, TEXT},
    {"block of negative length", IN(HEAD, BLOCK, 0xff, 0xff, 0xff, 0xff), ERR_INVALID, TEXT},
    {"cut block", IN(HEAD, 0, 0, 0, 12, 10, 36, '0', '1', '2'), ERR_INVALID, ""},
    {"bare block", IN(RAW), ERR_NONE, TEXT},
    {"bare block of 1", IN(1, 0, 'x'), ERR_NONE, "x"},
    {"bare block of 0", IN(0), ERR_NONE, ""},
    {"bare block and a byte", IN(RAW, 0), ERR_INVALID, ""},
    {"cut bare block", IN(10, 36, '0', '1', '2', '3', '4', '5', '6', '7', '8'), ERR_INVALID, ""},
    {"length of a bare block too small",
     IN(9, 36, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'), ERR_INVALID, ""},
    {"length of a bare block absurd",
     IN(0xff, 0xff, 0xff, 0xff, 0x07, 36, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'),
     ERR_INVALID, ""},
    {"cut magic", IN(0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1), ERR_INVALID, ""},
    {"nothing", {(const uint8_t *)"", 0}, ERR_INVALID, ""},
};

static void test_compress_snappy_accepts_what_kafka_does(void)
{
    for (size_t i = 0; i < ARRAY_N(snappy_streams); i++)
        check(CODEC_SNAPPY, &snappy_streams[i]);
}

/* No more memory than such a block can fill, whatever it claims. */
static void test_compress_snappy_claims_take_no_memory(void)
{
    static const uint8_t claims[] = {0x80, 0x80, 0x80, 0x80, 0x04, 0xfe, 1, 0}; /* 1 GiB */
    struct budget b;
    budget_init(&b, NULL, UINT64_MAX);
    struct decompressor *d;
    uint8_t p[10];
    size_t got;
    MUST(decompressor_new(CODEC_SNAPPY, (struct bytes){claims, sizeof claims}, &b, &d));
    CU_ASSERT_EQUAL(decompressor_read(d, p, sizeof p, &got), ERR_INVALID);
    CU_ASSERT_TRUE(b.peak_bytes < 1000);
    decompressor_free(d);
}

/* ------------------------------------------------------------------ zstd */

#define FRAME                                                                                      \
    0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x51, 0, 0, '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'
#define FRAME_SUM                                                                                  \
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x51, 0, 0, '0', '1', '2', '3', '4', '5', '6', '7', '8',   \
        '9', 0xe7, 0x67, 0x18
#define WINDOW(log)                                                                                \
    0x28, 0xb5, 0x2f, 0xfd, 0x00, ((log)-10) << 3, 0x51, 0, 0, '0', '1', '2', '3', '4', '5', '6',  \
        '7', '8', '9'

static const struct stream zstd_streams[] = {
    {"frame", IN(FRAME), ERR_NONE, TEXT},
    {"two frames", IN(FRAME, FRAME), ERR_NONE, TEXT TEXT},
    {"skippable frame", IN(0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x', FRAME), ERR_NONE, TEXT},
    {"nothing", {(const uint8_t *)"", 0}, ERR_NONE, ""},
    {"checksum", IN(FRAME_SUM, 0xa8), ERR_NONE, TEXT},
    {"wrong checksum", IN(FRAME_SUM, 0xa9), ERR_INVALID, ""},
    {"cut checksum", IN(FRAME_SUM), ERR_INVALID, TEXT},
    {"window of 128 MiB", IN(WINDOW(27)), ERR_NONE, TEXT},
    {"window of 256 MiB", IN(WINDOW(28)), ERR_INVALID, ""},
    {"a byte behind", IN(FRAME, 'j'), ERR_INVALID, TEXT},
    {"junk behind", IN(FRAME, 'j', 'u', 'n', 'k', 'j', 'u', 'n', 'k'), ERR_INVALID, TEXT},
};

static void test_compress_zstd_accepts_what_kafka_does(void)
{
    for (size_t i = 0; i < ARRAY_N(zstd_streams); i++)
        check(CODEC_ZSTD, &zstd_streams[i]);
}

/* ------------------------------------------------------------------ gzip */

struct gz {
    struct buf b;
    size_t member; /* bytes of one member */
};

/* Members of TEXT, n of them. */
static struct gz members(int n)
{
    struct gz g = {0};
    buf_init(&g.b);
    for (int i = 0; i < n; i++)
        MUST(compress_append(CODEC_GZIP, INT_MIN, lit(TEXT), &g.b));
    g.member = g.b.n / (size_t)n;
    return g;
}

static void check_gzip(struct gz g, const char *what, enum err err, const char *text)
{
    check(CODEC_GZIP, &(struct stream){what, bytes_of(&g.b), err, text});
    buf_close(&g.b);
}

static void test_compress_gzip_takes_members_and_ignores_junk(void)
{
    check_gzip(members(1), "one", ERR_NONE, TEXT);
    check_gzip(members(3), "three", ERR_NONE, TEXT TEXT TEXT);
    struct gz g = members(1);
    MUST(buf_append(&g.b, "j", 1));
    check_gzip(g, "a byte behind", ERR_NONE, TEXT);
    g = members(1);
    MUST(buf_append(&g.b, "forty bytes that are no gzip header at all", 40));
    check_gzip(g, "junk behind", ERR_NONE, TEXT);
    g = members(2);
    g.b.n = g.member + 12;
    check_gzip(g, "too short for a second", ERR_NONE, TEXT);
    g = members(2);
    g.b.p[g.member] ^= 1;
    check_gzip(g, "second is none", ERR_NONE, TEXT);
    g = members(2);
    g.b.p[g.member + 3] = 0x08; /* a name without an end */
    memset(g.b.p + g.member + 10, 'n', g.member - 10);
    check_gzip(g, "second's header does not end", ERR_NONE, TEXT);
}

static void test_compress_gzip_refuses_what_breaks(void)
{
    struct gz g = members(2);
    g.b.n -= 1;
    check_gzip(g, "second is cut", ERR_INVALID, TEXT TEXT);
    g = members(2);
    memset(g.b.p + g.member + 10, 0xff, g.member - 10);
    check_gzip(g, "second is garbage", ERR_INVALID, TEXT);
    g = members(1);
    g.b.p[g.b.n - 8] ^= 1;
    check_gzip(g, "checksum", ERR_INVALID, TEXT);
    g = members(1);
    g.b.p[g.b.n - 4] ^= 1;
    check_gzip(g, "size", ERR_INVALID, TEXT);
    g = members(1);
    g.b.n = 5;
    check_gzip(g, "cut header", ERR_INVALID, "");
    g = members(1);
    g.b.n = 0;
    check_gzip(g, "nothing", ERR_INVALID, "");
    g = members(1);
    g.b.p[1] ^= 1;
    check_gzip(g, "magic", ERR_INVALID, "");
}

/* ------------------------------------------------------------------ what is written */

static void test_compress_writes_kafkas_framing(void)
{
    static const uint8_t lz4_head[] = {MAGIC, 0x60, 0x40, 0x82};
    static const uint8_t snappy_head[] = {HEAD};
    static uint8_t p[100000];
    struct buf out;
    buf_init(&out);
    MUST(compress_append(CODEC_LZ4, INT_MIN, (struct bytes){p, sizeof p}, &out));
    CU_ASSERT_EQUAL(memcmp(out.p, lz4_head, sizeof lz4_head), 0);
    CU_ASSERT_EQUAL(memcmp(out.p + out.n - 4, (const uint8_t[4]){0}, 4), 0);
    out.n = 0;
    MUST(compress_append(CODEC_SNAPPY, INT_MIN, (struct bytes){p, sizeof p}, &out));
    CU_ASSERT_EQUAL(memcmp(out.p, snappy_head, sizeof snappy_head), 0);
    int blocks = 0;
    for (size_t at = 16; at < out.n; at += 4 + be32(out.p + at))
        blocks++;
    CU_ASSERT_EQUAL(blocks, 4); /* of 32 KiB */
    buf_close(&out);
}

TEST_MAIN(TEST(test_compress_lz4_accepts_what_kafka_does),
          TEST(test_compress_snappy_accepts_what_kafka_does),
          TEST(test_compress_snappy_claims_take_no_memory),
          TEST(test_compress_zstd_accepts_what_kafka_does),
          TEST(test_compress_gzip_takes_members_and_ignores_junk),
          TEST(test_compress_gzip_refuses_what_breaks), TEST(test_compress_writes_kafkas_framing))
