/* Directories that are not as we left them: torn tails, lying lengths, missing and mangled files,
 * leftovers. Every one loads; what can be kept is kept. */
#include <stdio.h>

#include "log/log_impl.h"
#include "unit/log/test_log.h"

#define LOG0 DIR_NAME "/00000000000000000000.log"
#define UNCLEAN ((struct log_checkpoints){false, 0, -1})
#define CLEAN ((struct log_checkpoints){true, 0, -1})

/* Ten batches of two records, closed cleanly; sizes are equal. */
static uint32_t start(struct bench *b, int32_t segment_bytes)
{
    bench_init(b, 51);
    b->config.segment_bytes = segment_bytes;
    b->config.index_interval_bytes = 200;
    MUST(bench_new(b));
    for (int i = 0; i < 10; i++)
        MUST(bench_append(b,
                          (struct batch_spec){.records_n = 2,
                                              .value_bytes = 60,
                                              .timestamp = 1000 + i,
                                              .producer_id = 3,
                                              .sequence = 2 * i},
                          NULL));
    uint32_t size = (uint32_t)(log_size_bytes(b->log) / 10);
    MUST(bench_close_log(b, true, false));
    b->now.wall_ms = 5000;
    return size;
}

static uint8_t *copy_of(struct bench *b, const char *path, size_t *n)
{
    const uint8_t *p = memfs_get(&b->fs, path, n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    uint8_t *copy = malloc(*n + 4096);
    memcpy(copy, p, *n);
    memset(copy + *n, 0, 4096);
    return copy;
}

static void check_end(struct bench *b, struct log_checkpoints cp, int64_t end)
{
    MUST(bench_load(b, cp));
    CU_ASSERT_EQUAL(log_end_offset(b->log), end);
    struct log_staged st;
    MUST(bench_append(
        b,
        (struct batch_spec){
            .value_bytes = 10, .timestamp = 3000, .producer_id = 3, .sequence = (int32_t)end},
        &st));
    CU_ASSERT_EQUAL(st.base_offset, end);
    MUST(bench_close_log(b, false, false));
}

static void test_damage_torn_tails(void)
{
    for (int clean = 0; clean < 2; clean++) {
        for (uint32_t cut = 1; cut <= 80; cut++) {
            struct bench b;
            size_t n;
            uint32_t size = start(&b, 1 << 20);
            uint8_t *p = copy_of(&b, LOG0, &n);
            memfs_put(&b.fs, LOG0, p, n - cut);
            check_end(&b, clean ? CLEAN : UNCLEAN, 18);
            CU_ASSERT_EQUAL(b.truncated_bytes, size - cut);
            free(p);
            bench_close(&b);
        }
    }
}

/* However many logs there are, the directory that holds them is synced by whoever listed it. */
static void test_damage_unclean_load_syncs_its_own_names(void)
{
    struct bench b;
    start(&b, 1 << 20);
    b.fs.ops[MEMFS_SYNC_DIR] = 0;
    MUST(bench_load(&b, UNCLEAN));
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_SYNC_DIR], 1);
    MUST(bench_close_log(&b, true, false));
    b.fs.ops[MEMFS_SYNC_DIR] = 0;
    MUST(bench_load(&b, CLEAN));
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_SYNC_DIR], 0);
    bench_close(&b);
}

static void test_damage_zero_tail_and_lying_lengths(void)
{
    static const uint32_t lengths[] = {0, 13, 48, 0x7fffffff, 0x80000000, 0xffffffff};
    for (size_t i = 0; i < ARRAY_N(lengths) + 2; i++) {
        struct bench b;
        size_t n;
        uint32_t size = start(&b, 1 << 20);
        uint8_t *p = copy_of(&b, LOG0, &n);
        int64_t end = 20;
        if (i < ARRAY_N(lengths)) { /* of the last batch */
            uint32_t be = __builtin_bswap32(lengths[i]);
            memcpy(p + n - size + 8, &be, 4);
            end = 18;
            memfs_put(&b.fs, LOG0, p, n);
        } else if (i == ARRAY_N(lengths)) {
            memfs_put(&b.fs, LOG0, p, n + 4096); /* preallocated */
        } else {
            p[n - size - 5] ^= 1; /* a bit of the ninth: what is behind it goes too */
            end = 16;
            memfs_put(&b.fs, LOG0, p, n);
        }
        check_end(&b, UNCLEAN, end);
        free(p);
        bench_close(&b);
    }
}

/* Any index or snapshot may be missing, short, or full of anything. */
static void test_damage_of_what_can_be_rebuilt(void)
{
    static const char *const suffixes[] = {".index", ".timeindex", ".txnindex", ".snapshot"};
    static const int64_t lens[] = {-1, 0, 1, 7, 8, 12, 34, 1000, 65536};
    for (size_t s = 0; s < ARRAY_N(suffixes); s++) {
        for (size_t k = 0; k < 4 * ARRAY_N(lens); k++) {
            struct bench b;
            struct rng rng = {k};
            start(&b, 600);
            for (int64_t base = 0; base <= 20; base++) {
                char path[200];
                size_t n;
                static uint8_t junk[65536];
                snprintf(path, sizeof path, DIR_NAME "/%020lld%s", (long long)base, suffixes[s]);
                if (memfs_get(&b.fs, path, &n) == NULL && strcmp(suffixes[s], ".txnindex") != 0)
                    continue;
                int64_t len = lens[k % ARRAY_N(lens)];
                rng_fill(&rng, junk, sizeof junk);
                if (k >= 2 * ARRAY_N(lens))
                    memset(junk, k >= 3 * ARRAY_N(lens) ? 0xff : 0, sizeof junk);
                if (len < 0)
                    (void)(b.fs.vfs.ops->unlink(&b.fs.vfs, path) == ERR_NONE);
                else
                    memfs_put(&b.fs, path, junk, (size_t)len);
            }
            struct log_checkpoints cp = k % 2 == 0 ? CLEAN : UNCLEAN;
            MUST(bench_load(&b, cp));
            CU_ASSERT_EQUAL(log_end_offset(b.log), 20);
            for (int64_t at = 0; at < 20; at++) {
                struct log_span span;
                uint8_t head[BATCH_OVERHEAD];
                struct batch batch;
                MUST(log_read(b.log, at, 20, 0, true, &span));
                MUST(log_span_read(&span, head, sizeof head));
                MUST(batch_parse_header((struct bytes){head, sizeof head}, &batch));
                CU_ASSERT_EQUAL(batch.base_offset, at / 2 * 2);
            }
            struct log_staged st; /* the producer is known, from a snapshot or by replay */
            MUST(bench_append(
                &b,
                (struct batch_spec){
                    .records_n = 2, .value_bytes = 60, .producer_id = 3, .sequence = 18},
                &st));
            CU_ASSERT_TRUE(st.duplicate);
            bench_close(&b);
        }
    }
}

static void lookup_done(struct log_lookup *lk)
{
}

static void count(void *ctx, const struct batch *b)
{
    ++*(int *)ctx;
}

/* Bytes anywhere: loading and reading end with an error or not, but end. */
static void test_damage_anywhere(void)
{
    static const char *const names[] = {
        "00000000000000000000.log",       "00000000000000000000.index",
        "00000000000000000000.timeindex", "00000000000000000020.snapshot",
        "leader-epoch-checkpoint",        "partition.metadata"};
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct bench b;
        struct rng rng = {seed};
        start(&b, seed % 3 == 0 ? 1 << 20 : 600);
        size_t changes = 1 + rng_below(&rng, 4);
        for (size_t k = 0; k < changes; k++) {
            char path[200];
            size_t n;
            snprintf(path, sizeof path, DIR_NAME "/%s", names[rng_below(&rng, ARRAY_N(names))]);
            if (memfs_get(&b.fs, path, &n) == NULL || n == 0)
                continue;
            uint8_t *p = copy_of(&b, path, &n);
            for (uint64_t i = 1 + rng_below(&rng, 8); i > 0; i--)
                p[rng_below(&rng, n)] = (uint8_t)rng_u64(&rng);
            memfs_put(&b.fs, path, p, rng_percent(&rng, 30) ? rng_below(&rng, n + 200) : n);
            free(p);
        }
        enum err err = bench_load(&b, rng_percent(&rng, 50) ? CLEAN : UNCLEAN);
        if (err == ERR_NONE) {
            int batches = 0;
            (void)(bench_each(&b, log_start_offset(b.log), 1000, count, &batches) == ERR_NONE);
            struct log_lookup lk = {.kind = LOOKUP_TIME, .timestamp = 1004, .done = lookup_done};
            if (log_lookup_start(b.log, &lk) == ERR_NONE)
                bench_settle(&b);
            if (!log_is_offline(b.log) && log_end_offset(b.log) > 2)
                (void)(log_truncate_to(b.log, log_end_offset(b.log) - 2, b.now) == ERR_NONE);
        } else {
            CU_ASSERT_TRUE(b.message[0] != '\0');
        }
        bench_close(&b);
    }
}

static void put(struct bench *b, const char *name, const void *p, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, DIR_NAME "/%s", name);
    memfs_put(&b->fs, path, p, n);
}

static bool exists(struct bench *b, const char *name)
{
    char path[200];
    size_t n;
    snprintf(path, sizeof path, DIR_NAME "/%s", name);
    return memfs_get(&b->fs, path, &n) != NULL;
}

/* An epoch began here and wrote nothing, its entry was written to the file; then it was cut, and
 * what other leaders had written came in its place. A kill, and the file is still the one of
 * before. */
static void test_damage_old_epochs_in_their_file(void)
{
    static const char old[] = "0\n2\n1 0\n4 2\n";
    static const int32_t epochs[] = {1, 3, 4, 4};
    struct bench b;
    bench_init(&b, 52);
    MUST(bench_new(&b));
    for (int i = 0; i < 4; i++)
        MUST(bench_append(&b,
                          (struct batch_spec){.records_n = 2,
                                              .value_bytes = 60,
                                              .timestamp = 1000 + i,
                                              .leader_epoch = epochs[i]},
                          NULL));
    MUST(bench_close_log(&b, true, false));
    put(&b, "leader-epoch-checkpoint", old, sizeof old - 1);
    MUST(bench_load(&b, UNCLEAN));
    const struct epoch_cache *c = log_epochs(b.log);
    CU_ASSERT_EQUAL_FATAL(c->n, 3);
    CU_ASSERT(c->v[0].epoch == 1 && c->v[0].start_offset == 0);
    CU_ASSERT(c->v[1].epoch == 3 && c->v[1].start_offset == 2);
    CU_ASSERT(c->v[2].epoch == 4 && c->v[2].start_offset == 4);
    bench_close(&b);
}

static void test_damage_leftovers_go(void)
{
    struct bench b;
    start(&b, 1 << 20);
    put(&b, "00000000000000000000.log.cleaned", "x", 1);
    put(&b, "00000000000000000000.index.cleaned", "x", 1);
    put(&b, "00000000000000000000.log.deleted", "x", 1);
    put(&b, "00000000000000000004.log.swap", "x", 1); /* behind a .cleaned: not whole */
    put(&b, "00000000000000000007.index", "x", 1);    /* without a .log */
    put(&b, "00000000000000000007.timeindex", "x", 1);
    put(&b, "leader-epoch-checkpoint.tmp", "x", 1);
    put(&b, "00000000000000000005.snapshot", "x", 1); /* at no base */
    put(&b, "something-else", "x", 1);
    MUST(bench_load(&b, CLEAN));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 20);
    CU_ASSERT_FALSE(exists(&b, "00000000000000000000.log.cleaned"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000000.index.cleaned"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000000.log.deleted"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000004.log.swap"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000007.index"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000007.timeindex"));
    CU_ASSERT_FALSE(exists(&b, "leader-epoch-checkpoint.tmp"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000005.snapshot"));
    CU_ASSERT_TRUE(exists(&b, "something-else"));
    bench_close(&b);
}

/* Compaction had written its result and begun to swap it in: two segments become one. */
static void test_damage_swap_is_finished(void)
{
    struct bench b;
    size_t n0, n1;
    uint32_t size = start(&b, 0);
    CU_ASSERT_TRUE(size > 0);
    b.config.compacted = true;
    uint8_t *p = copy_of(&b, LOG0, &n0);
    uint8_t *q = copy_of(&b, DIR_NAME "/00000000000000000002.log", &n1);
    memcpy(p + n0, q, n1);
    put(&b, "00000000000000000000.log.swap", p, n0 + n1);
    MUST(bench_load(&b, CLEAN));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 20);
    CU_ASSERT_EQUAL(log_segments_n(b.log), 9);
    CU_ASSERT_FALSE(exists(&b, "00000000000000000000.log.swap"));
    CU_ASSERT_FALSE(exists(&b, "00000000000000000002.log"));
    int batches = 0;
    MUST(bench_each(&b, 0, 1000, count, &batches));
    CU_ASSERT_EQUAL(batches, 10);
    free(p);
    free(q);
    bench_close(&b);
}

static void test_damage_log_ends_before_its_start(void)
{
    struct bench b;
    start(&b, 600);
    MUST(bench_load(&b, (struct log_checkpoints){false, 0, 100}));
    CU_ASSERT_EQUAL(log_start_offset(b.log), 100);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 100);
    CU_ASSERT_EQUAL(log_epochs(b.log)->n, 0);
    CU_ASSERT_EQUAL(log_segments_n(b.log), 1);
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 10}, NULL));
    CU_ASSERT_EQUAL(log_end_offset(b.log), 101);
    bench_close(&b);
}

static void test_damage_another_topics_directory(void)
{
    struct bench b;
    start(&b, 600);
    put(&b, "partition.metadata", "version: 0\ntopic_id: 2YVUzFcnSrqkwhqkIIXhlg", 43);
    CU_ASSERT_EQUAL(bench_load(&b, CLEAN), ERR_INVALID);
    CU_ASSERT_TRUE(strstr(b.message, "partition.metadata") != NULL);
    MUST(bench_new(&b)); /* and no new log is made in its place */
    CU_ASSERT_EQUAL(bench_append(&b, (struct batch_spec){.value_bytes = 10}, NULL), ERR_EXIST);
    CU_ASSERT_FALSE(log_is_offline(b.log));
    CU_ASSERT_EQUAL(log_staged_end(b.log), 0);
    bench_close(&b);
}

static void test_damage_old_formats_are_served(void)
{
    /* One message each of magic 0 and 1: offset, size, CRC, magic, attributes, (timestamp,) key,
     * value. */
    static const uint8_t old[] = {
        0, 0, 0,    0,    0,    0,    0,    0,    0,    0,    0,    15, 0x51, 0xdf, 0x3a, 0x32,
        0, 0, 0xff, 0xff, 0xff, 0xff, 0,    0,    0,    1,    'a',  0,  0,    0,    0,    0,
        0, 0, 1,    0,    0,    0,    23,   0x39, 0x39, 0xcc, 0x1b, 1,  0,    0,    0,    0,
        0, 0, 0,    0x12, 0x34, 0xff, 0xff, 0xff, 0xff, 0,    0,    0,  1,    'b'};
    struct bench b;
    bench_init(&b, 52);
    memfs_put(&b.fs, LOG0, old, sizeof old);
    MUST(bench_load(&b, UNCLEAN));
    CU_ASSERT_EQUAL(b.truncated_bytes, 0);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 2);
    struct log_span span;
    uint8_t got[sizeof old];
    MUST(log_read(b.log, 0, 2, 1 << 20, true, &span));
    CU_ASSERT_EQUAL_FATAL(span.n, sizeof old);
    MUST(log_span_read(&span, got, sizeof got));
    CU_ASSERT_TRUE(memcmp(got, old, sizeof old) == 0);
    CU_ASSERT_EQUAL(b.log->s.segments[0]->head.max_timestamp, 0x1234);
    MUST(bench_append(&b, (struct batch_spec){.value_bytes = 10}, NULL));
    bench_close(&b);
}

TEST_MAIN(TEST(test_damage_torn_tails), TEST(test_damage_unclean_load_syncs_its_own_names),
          TEST(test_damage_zero_tail_and_lying_lengths), TEST(test_damage_of_what_can_be_rebuilt),
          TEST(test_damage_anywhere), TEST(test_damage_old_epochs_in_their_file),
          TEST(test_damage_leftovers_go), TEST(test_damage_swap_is_finished),
          TEST(test_damage_log_ends_before_its_start), TEST(test_damage_another_topics_directory),
          TEST(test_damage_old_formats_are_served))
