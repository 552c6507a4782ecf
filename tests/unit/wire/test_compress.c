/* Own writing through own reading, for every codec; memory; streams that are no streams. What only
 * one codec knows is in test_compress_accept.c. */
#include <limits.h>
#include <stdlib.h>

#include "support/fault.h"
#include "support/rng.h"
#include "unit/wire/test_records.h"

static const size_t sizes[] = {0,     1,     2,     100,    32767,  32768,  32769,
                               65535, 65536, 65537, 131072, 200000, 1 << 20};

/* Bytes that shrink to about a third, or not at all. */
static void fill(struct rng *r, bool noise, uint8_t *p, size_t n)
{
    rng_fill(r, p, n);
    for (size_t i = 0; !noise && i < n; i++)
        p[i] = i % 64 < 48 ? (uint8_t)(i % 48) : p[i] & 15;
}

/* Reads all of in, at most step bytes a time, and compares. */
static enum err read_back(enum batch_codec codec, struct bytes in, size_t step, const uint8_t *want,
                          size_t want_n)
{
    struct decompressor *d;
    enum err err = decompressor_new(codec, in, NULL, &d);
    if (err != ERR_NONE)
        return err;
    uint8_t *p = malloc(step);
    size_t at = 0, got = 1;
    CHECK(p != NULL);
    while (err == ERR_NONE && got > 0) {
        err = decompressor_read(d, p, step, &got);
        CU_ASSERT_TRUE_FATAL(at + got <= want_n && memcmp(p, want + at, got) == 0);
        at += got;
    }
    if (err == ERR_NONE) {
        CU_ASSERT_EQUAL(at, want_n);
        CU_ASSERT_EQUAL(decompressor_read(d, p, step, &got), ERR_NONE); /* the end stays */
        CU_ASSERT_EQUAL(got, 0);
    }
    free(p);
    decompressor_free(d);
    return err;
}

static void round_trip(enum batch_codec codec, int level, const uint8_t *p, size_t n, size_t step)
{
    struct buf out;
    buf_init(&out);
    CU_ASSERT_EQUAL(compress_append(codec, level, (struct bytes){p, (int32_t)n}, &out), ERR_NONE);
    CU_ASSERT_EQUAL(read_back(codec, bytes_of(&out), step, p, n), ERR_NONE);
    buf_close(&out);
}

static void test_compress_round_trips_every_size(void)
{
    struct rng r = {1};
    uint8_t *p = malloc(1 << 20);
    for (size_t i = 0; i < ARRAY_N(sizes); i++) {
        for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
            fill(&r, i % 2 == 0, p, sizes[i]);
            round_trip((enum batch_codec)c, INT_MIN, p, sizes[i], 16384);
            fill(&r, i % 2 != 0, p, sizes[i]);
            round_trip((enum batch_codec)c, INT_MIN, p, sizes[i], 1 << 20);
        }
    }
    free(p);
}

static void test_compress_reads_in_any_steps(void)
{
    static const size_t steps[] = {1, 7, 1000, 65536};
    struct rng r = {2};
    static uint8_t p[70000];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        for (size_t i = 0; i < ARRAY_N(steps); i++)
            round_trip((enum batch_codec)c, INT_MIN, p, sizeof p, steps[i]);
    }
}

static void test_compress_takes_every_level(void)
{
    struct rng r = {3};
    static uint8_t p[100000];
    fill(&r, false, p, sizeof p);
    for (int level = -1; level <= 9; level++)
        round_trip(CODEC_GZIP, level, p, sizeof p, 16384);
    for (int level = 1; level <= 17; level++)
        round_trip(CODEC_LZ4, level, p, sizeof p, 16384);
    for (int level = -5; level <= 22; level += 9)
        round_trip(CODEC_ZSTD, level, p, sizeof p, 16384);
    round_trip(CODEC_ZSTD, -131072, p, sizeof p, 16384);
}

static void test_compress_default_levels_are_kafkas(void)
{
    static const int kafka[] = {[CODEC_GZIP] = -1, [CODEC_LZ4] = 9, [CODEC_ZSTD] = 3};
    struct rng r = {4};
    static uint8_t p[100000];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        if (c == CODEC_SNAPPY)
            continue;
        struct buf a, b;
        buf_init(&a);
        buf_init(&b);
        MUST(compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &a));
        MUST(compress_append((enum batch_codec)c, kafka[c], (struct bytes){p, sizeof p}, &b));
        CU_ASSERT_TRUE(bytes_eq(bytes_of(&a), bytes_of(&b)));
        buf_close(&a);
        buf_close(&b);
    }
}

static void test_compress_writes_in_pieces_as_in_one(void)
{
    struct rng r = {5};
    static uint8_t p[150000];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_NONE; c < CODEC_MAX; c++) {
        struct buf one, many;
        buf_init(&one);
        buf_init(&many);
        MUST(compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &one));
        struct compressor *w;
        MUST(compressor_new((enum batch_codec)c, INT_MIN, &many, &w));
        for (size_t at = 0, n; at < sizeof p; at += n) {
            n = 1 + rng_below(&r, 3000);
            n = n > sizeof p - at ? sizeof p - at : n;
            MUST(compressor_write(w, p + at, n));
        }
        MUST(compressor_finish(w));
        compressor_free(w);
        CU_ASSERT_TRUE(bytes_eq(bytes_of(&one), bytes_of(&many)));
        buf_close(&one);
        buf_close(&many);
    }
}

static void test_compress_appends_behind_what_is_there(void)
{
    for (int c = CODEC_NONE; c < CODEC_MAX; c++) {
        struct buf out;
        buf_init(&out);
        MUST(buf_append(&out, "before", 6));
        MUST(compress_append((enum batch_codec)c, INT_MIN, lit("text"), &out));
        CU_ASSERT_EQUAL(memcmp(out.p, "before", 6), 0);
        struct bytes behind = {out.p + 6, (int32_t)out.n - 6};
        bool same = c == CODEC_NONE ? bytes_eq(behind, lit("text"))
                                    : read_back((enum batch_codec)c, behind, 100,
                                                (const uint8_t *)"text", 4) == ERR_NONE;
        CU_ASSERT_TRUE(same);
        buf_close(&out);
    }
}

static void test_compress_unknown_codecs_are_unsupported(void)
{
    static const int unknown[] = {5, 6, 7};
    struct decompressor *d;
    struct compressor *w;
    struct buf out;
    buf_init(&out);
    for (size_t i = 0; i < ARRAY_N(unknown); i++) {
        enum batch_codec c = (enum batch_codec)unknown[i];
        CU_ASSERT_EQUAL(decompressor_new(c, lit("x"), NULL, &d), ERR_UNSUPPORTED);
        CU_ASSERT_EQUAL(compressor_new(c, INT_MIN, &out, &w), ERR_UNSUPPORTED);
    }
    CU_ASSERT_EQUAL(decompressor_new(CODEC_NONE, lit("x"), NULL, &d), ERR_UNSUPPORTED);
}

static void test_compress_a_cut_stream_is_an_error(void)
{
    struct rng r = {6};
    static uint8_t p[40000];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        struct buf out;
        buf_init(&out);
        MUST(compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &out));
        for (size_t n = 0; n < out.n; n += n < 300 || n + 300 > out.n ? 1 : 97) {
            /* A copy of its own size, so that a read past the end is seen. */
            uint8_t *cut = malloc(n + 1);
            memcpy(cut, out.p, n);
            struct decompressor *d;
            MUST(decompressor_new((enum batch_codec)c, (struct bytes){cut, (int32_t)n}, NULL, &d));
            enum err err = ERR_NONE;
            size_t sum = 0;
            for (size_t got = 1; err == ERR_NONE && got > 0; sum += got)
                err = decompressor_read(d, p, sizeof p, &got);
            /* No frame at all is an empty stream for zstd; and snappy ends between blocks. */
            CU_ASSERT_TRUE(err == ERR_INVALID || sum < sizeof p);
            CU_ASSERT_TRUE(err == ERR_INVALID || c == CODEC_SNAPPY || (c == CODEC_ZSTD && n == 0));
            decompressor_free(d);
            free(cut);
        }
        buf_close(&out);
    }
}

static void test_compress_an_error_stays(void)
{
    static const uint8_t junk[] = "neither magic nor anything else that one of them would know";
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        struct decompressor *d;
        uint8_t p[100];
        size_t got;
        MUST(decompressor_new((enum batch_codec)c, (struct bytes){junk, sizeof junk}, NULL, &d));
        CU_ASSERT_EQUAL(decompressor_read(d, p, sizeof p, &got), ERR_INVALID);
        CU_ASSERT_EQUAL(decompressor_read(d, p, sizeof p, &got), ERR_INVALID);
        CU_ASSERT_EQUAL(got, 0);
        decompressor_free(d);
    }
}

/* Flipped bits give an error or other bytes, never a fault; the sanitizers look on. */
static void test_compress_flipped_bits_do_no_harm(void)
{
    struct rng r = {7};
    static uint8_t p[5000];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        struct buf out;
        buf_init(&out);
        MUST(compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &out));
        for (int i = 0; i < 2000; i++) {
            size_t at = rng_below(&r, i % 2 == 0 ? 24 : out.n);
            uint8_t was = out.p[at];
            out.p[at] ^= (uint8_t)(1u << rng_below(&r, 8));
            struct decompressor *d;
            MUST(decompressor_new((enum batch_codec)c, bytes_of(&out), NULL, &d));
            size_t got = 1;
            static uint8_t to[3000];
            while (got > 0 && decompressor_read(d, to, sizeof to, &got) == ERR_NONE)
                ;
            decompressor_free(d);
            out.p[at] = was;
        }
        CU_ASSERT_EQUAL(read_back((enum batch_codec)c, bytes_of(&out), 1000, p, sizeof p),
                        ERR_NONE);
        buf_close(&out);
    }
}

/* ------------------------------------------------------------------ memory */

static void test_compress_a_bomb_takes_a_window_only(void)
{
    size_t n = 64u << 20;
    uint8_t *zeros = calloc(1, n);
    static uint8_t p[16384];
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        struct buf out;
        buf_init(&out);
        MUST(
            compress_append((enum batch_codec)c, INT_MIN, (struct bytes){zeros, (int32_t)n}, &out));
        struct budget b;
        budget_init(&b, NULL, UINT64_MAX);
        struct decompressor *d;
        MUST(decompressor_new((enum batch_codec)c, bytes_of(&out), &b, &d));
        size_t sum = 0;
        for (size_t got = 1; got > 0; sum += got)
            MUST(decompressor_read(d, p, sizeof p, &got));
        decompressor_free(d);
        CU_ASSERT_EQUAL(sum, n);
        CU_ASSERT_EQUAL(b.used_bytes, 0);
        CU_ASSERT_TRUE(b.peak_bytes < 3u << 20);
        buf_close(&out);
    }
    free(zeros);
}

static void test_compress_stops_where_the_budget_does(void)
{
    struct rng r = {8};
    static uint8_t p[200000], to[16384];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        struct buf out;
        buf_init(&out);
        MUST(compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &out));
        for (uint64_t limit = 0; limit < 40000; limit += 500) {
            struct budget b;
            budget_init(&b, NULL, limit);
            struct decompressor *d = NULL;
            enum err err = decompressor_new((enum batch_codec)c, bytes_of(&out), &b, &d);
            for (size_t got = 1; err == ERR_NONE && got > 0;)
                err = decompressor_read(d, to, sizeof to, &got);
            /* Snappy's blocks are small enough to fit at last. */
            CU_ASSERT_TRUE(err == ERR_NOMEM ||
                           (err == ERR_NONE && c == CODEC_SNAPPY && limit > 32768));
            decompressor_free(d);
            CU_ASSERT_EQUAL(b.used_bytes, 0);
        }
        buf_close(&out);
    }
}

static void test_compress_survives_every_failing_allocation(void)
{
    struct rng r = {9};
    static uint8_t p[100000];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_NONE; c < CODEC_MAX; c++) {
        long n = 1;
        for (bool again = true; again; n++) {
            struct buf out;
            buf_init(&out);
            fault_alloc_arm(n, n % 2 == 0);
            enum err err =
                compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &out);
            again = fault_alloc_hit();
            CU_ASSERT_EQUAL(err, again ? ERR_NOMEM : ERR_NONE);
            if (err != ERR_NONE)
                CU_ASSERT_EQUAL(out.n, 0);
            buf_close(&out);
        }
        CU_ASSERT_TRUE(n > 2);
    }
}

static void test_decompress_survives_every_failing_allocation(void)
{
    struct rng r = {10};
    static uint8_t p[100000], to[16384];
    fill(&r, false, p, sizeof p);
    for (int c = CODEC_GZIP; c < CODEC_MAX; c++) {
        struct buf out;
        buf_init(&out);
        MUST(compress_append((enum batch_codec)c, INT_MIN, (struct bytes){p, sizeof p}, &out));
        long n = 1;
        for (bool again = true; again; n++) {
            fault_alloc_arm(n, n % 2 == 0);
            struct decompressor *d = NULL;
            enum err err = decompressor_new((enum batch_codec)c, bytes_of(&out), NULL, &d);
            for (size_t got = 1; err == ERR_NONE && got > 0;)
                err = decompressor_read(d, to, sizeof to, &got);
            again = fault_alloc_hit();
            CU_ASSERT_EQUAL(err, again ? ERR_NOMEM : ERR_NONE);
            decompressor_free(d);
        }
        CU_ASSERT_TRUE(n > 3);
        buf_close(&out);
    }
}

TEST_MAIN(TEST(test_compress_round_trips_every_size), TEST(test_compress_reads_in_any_steps),
          TEST(test_compress_takes_every_level), TEST(test_compress_default_levels_are_kafkas),
          TEST(test_compress_writes_in_pieces_as_in_one),
          TEST(test_compress_appends_behind_what_is_there),
          TEST(test_compress_unknown_codecs_are_unsupported),
          TEST(test_compress_a_cut_stream_is_an_error), TEST(test_compress_an_error_stays),
          TEST(test_compress_flipped_bits_do_no_harm),
          TEST(test_compress_a_bomb_takes_a_window_only),
          TEST(test_compress_stops_where_the_budget_does),
          TEST(test_compress_survives_every_failing_allocation),
          TEST(test_decompress_survives_every_failing_allocation))
