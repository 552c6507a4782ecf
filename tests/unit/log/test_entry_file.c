/* Searches of an index: all its entries, in the file and in memory, against counting them. */
#include "base/endian.h"
#include "log/entry_file.h"
#include "support/memfs.h"
#include "support/test.h"

#define MUST(call) CU_ASSERT_EQUAL_FATAL((call), ERR_NONE)
#define PATH "/d/e.index"
#define ENTRY_BYTES 8
#define IN_BLOCK 512 /* entries in what is read at once */

struct fixture {
    struct memfs fs;
    struct entry_file e;
    struct entry_place at;
};

/* Entry i is 3 * i; written_n of them stand in the file. */
static void start(struct fixture *x, uint32_t written_n, uint32_t tail_n)
{
    memfs_init(&x->fs, 7);
    memfs_mkdirs(&x->fs, "/d");
    x->at = (struct entry_place){.fs = &x->fs.vfs, .path = PATH};
    entry_file_init(&x->e, ENTRY_BYTES, 0);
    for (uint32_t i = 0; i < written_n + tail_n; i++) {
        uint8_t entry[ENTRY_BYTES];
        if (i == written_n && i > 0)
            MUST(entry_file_write(&x->e, x->at));
        put_be64(entry, 3ULL * i);
        MUST(entry_file_reserve(&x->e, 1));
        entry_file_push(&x->e, entry);
    }
    if (tail_n == 0)
        MUST(entry_file_write(&x->e, x->at));
}

static void end(struct fixture *x)
{
    entry_file_close(&x->e);
    memfs_close(&x->fs);
}

static bool below(const void *entry, int64_t key)
{
    return (int64_t)be64(entry) < key;
}

static void check(struct fixture *x, int64_t key)
{
    uint32_t n, all = entry_file_n(&x->e);
    uint8_t last[ENTRY_BYTES];
    uint32_t expect = key <= 0 ? 0 : (uint32_t)((key + 2) / 3);
    expect = expect > all ? all : expect;
    MUST(entry_file_search(&x->e, x->at, below, key, &n, last));
    CU_ASSERT_EQUAL(n, expect);
    if (n > 0)
        CU_ASSERT_EQUAL(be64(last), 3ULL * (n - 1));
}

/* Each key after each other one would be too many: in order, backwards, and in a mixture. */
static void test_search_of_every_size(void)
{
    static const uint32_t sizes[] = {
        0, 1, 2, IN_BLOCK - 1, IN_BLOCK, IN_BLOCK + 1, 5 * IN_BLOCK + 3};
    for (size_t w = 0; w < ARRAY_N(sizes); w++) {
        for (size_t t = 0; t < 4; t++) {
            struct fixture x;
            start(&x, sizes[w], sizes[t]);
            const int64_t end_key = 3 * (int64_t)entry_file_n(&x.e) + 2;
            for (int64_t key = -1; key <= end_key; key += 2)
                check(&x, key);
            for (int64_t key = end_key; key >= -1; key -= 5)
                check(&x, key);
            for (int64_t i = 0; i < 1000; i++)
                check(&x, i * 7919 % (end_key + 1));
            end(&x);
        }
    }
}

/* Who reads on reads one block, or two where the next begins; a jump reads as many as it halves. */
static void test_search_reads_little(void)
{
    struct fixture x;
    start(&x, 64 * IN_BLOCK, 0);
    check(&x, 0);
    for (int64_t key = 1; key < 3 * 64 * IN_BLOCK; key += 100) {
        const uint64_t before = x.fs.ops[MEMFS_READ];
        check(&x, key);
        CU_ASSERT_TRUE(x.fs.ops[MEMFS_READ] - before <= 2);
    }
    for (int64_t i = 0; i < 100; i++) {
        const uint64_t before = x.fs.ops[MEMFS_READ];
        check(&x, i * 7919 * 31 % (3 * 64 * IN_BLOCK));
        CU_ASSERT_TRUE(x.fs.ops[MEMFS_READ] - before <= 8);
    }
    end(&x);
}

static void test_search_without_waiting(void)
{
    struct fixture x;
    uint32_t n;
    uint8_t last[ENTRY_BYTES];
    start(&x, 10 * IN_BLOCK, 3);
    x.at.now = true;
    MUST(entry_file_search(&x.e, x.at, below, 1000, &n, last));
    memfs_cool(&x.fs);
    CU_ASSERT_EQUAL(entry_file_search(&x.e, x.at, below, 1000, &n, last), ERR_AGAIN);
    MUST(entry_file_search(&x.e, x.at, below, INT64_MAX, &n, last)); /* in memory */
    CU_ASSERT_EQUAL(n, 10 * IN_BLOCK + 3);
    x.at.now = false;
    MUST(entry_file_search(&x.e, x.at, below, 1000, &n, last));
    CU_ASSERT_EQUAL(n, 334);
    end(&x);
}

/* A file that lost its end, as after a repair by hand. */
static void test_search_of_a_file_that_is_short(void)
{
    struct fixture x;
    uint32_t n;
    uint8_t last[ENTRY_BYTES];
    start(&x, 3 * IN_BLOCK, 0);
    MUST(x.fs.vfs.ops->truncate(x.e.f, 2 * IN_BLOCK * ENTRY_BYTES + 4));
    check(&x, 100);
    CU_ASSERT_EQUAL(entry_file_search(&x.e, x.at, below, INT64_MAX, &n, last), ERR_CORRUPT);
    end(&x);
}

TEST_MAIN(TEST(test_search_of_every_size), TEST(test_search_reads_little),
          TEST(test_search_without_waiting), TEST(test_search_of_a_file_that_is_short))
