/* Leader epochs: the rules of assignment, truncation and look-up (KIP-101, KIP-279). */
#include "log/epoch_cache.h"
#include "support/fault.h"
#include "support/test.h"

#define MUST(call) CU_ASSERT_EQUAL_FATAL((call), ERR_NONE)

static void fill(struct epoch_cache *c)
{
    epoch_cache_init(c);
    MUST(epoch_cache_assign(c, 0, 0, NULL));
    MUST(epoch_cache_assign(c, 2, 10, NULL));
    MUST(epoch_cache_assign(c, 5, 20, NULL));
}

static bool is(const struct epoch_cache *c, size_t i, int32_t epoch, int64_t start)
{
    return i < c->n && c->v[i].epoch == epoch && c->v[i].start_offset == start;
}

static void test_epoch_cache_assigns(void)
{
    struct epoch_cache c;
    bool changed;
    fill(&c);
    MUST(epoch_cache_assign(&c, 5, 25, &changed)); /* the same epoch goes on */
    CU_ASSERT_FALSE(changed);
    MUST(epoch_cache_assign(&c, 6, 20, &changed)); /* nothing was written in 5 */
    CU_ASSERT_TRUE(changed);
    CU_ASSERT_EQUAL(c.n, 3);
    CU_ASSERT_TRUE(is(&c, 2, 6, 20));
    MUST(epoch_cache_assign(&c, 3, 15, &changed)); /* an older epoch drops what is behind it */
    CU_ASSERT_EQUAL(c.n, 3);
    CU_ASSERT_TRUE(is(&c, 2, 3, 15));
    MUST(epoch_cache_assign(&c, 3, 12, &changed)); /* an earlier start of the same */
    CU_ASSERT_TRUE(changed);
    CU_ASSERT_TRUE(is(&c, 2, 3, 12));
    epoch_cache_close(&c);
}

static void test_epoch_cache_truncates(void)
{
    struct epoch_cache c;
    fill(&c);
    CU_ASSERT_FALSE(epoch_cache_truncate_end(&c, 21));
    CU_ASSERT_TRUE(epoch_cache_truncate_end(&c, 20));
    CU_ASSERT_EQUAL(c.n, 2);
    epoch_cache_close(&c);
    fill(&c);
    CU_ASSERT_FALSE(epoch_cache_truncate_start(&c, 0));
    CU_ASSERT_TRUE(epoch_cache_truncate_start(&c, 15));
    CU_ASSERT_EQUAL(c.n, 2);
    CU_ASSERT_TRUE(is(&c, 0, 2, 15));
    CU_ASSERT_TRUE(epoch_cache_truncate_start(&c, 20));
    CU_ASSERT_EQUAL(c.n, 1);
    CU_ASSERT_TRUE(is(&c, 0, 5, 20));
    CU_ASSERT_TRUE(epoch_cache_truncate_start(&c, 99));
    CU_ASSERT_TRUE(is(&c, 0, 5, 99));
    epoch_cache_close(&c);
}

static void test_epoch_cache_finds_ends(void)
{
    static const struct {
        int32_t q, epoch;
        int64_t offset;
    } cases[] = {{-1, -1, -1}, {-2, -2, 0}, {6, -1, -1}, {5, 5, 30},
                 {4, 2, 20},   {2, 2, 20},  {1, 0, 10},  {0, 0, 10}};
    struct epoch_cache c;
    int32_t epoch;
    int64_t offset;
    fill(&c);
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        epoch_cache_end_offset(&c, cases[i].q, 30, &epoch, &offset);
        CU_ASSERT_EQUAL(epoch, cases[i].epoch);
        CU_ASSERT_EQUAL(offset, cases[i].offset);
    }
    CU_ASSERT_TRUE(epoch_cache_truncate_start(&c, 10)); /* now 2 is the first */
    epoch_cache_end_offset(&c, 1, 30, &epoch, &offset);
    CU_ASSERT_EQUAL(epoch, 1);
    CU_ASSERT_EQUAL(offset, 10);
    CU_ASSERT_EQUAL(epoch_cache_floor(&c, 9), -1);
    CU_ASSERT_EQUAL(epoch_cache_floor(&c, 10), 2);
    CU_ASSERT_EQUAL(epoch_cache_floor(&c, 19), 2);
    CU_ASSERT_EQUAL(epoch_cache_floor(&c, 20), 5);
    CU_ASSERT_EQUAL(epoch_cache_latest(&c), 5);
    epoch_cache_close(&c);
    CU_ASSERT_EQUAL(epoch_cache_latest(&c), -1);
    epoch_cache_end_offset(&c, 0, 30, &epoch, &offset);
    CU_ASSERT_EQUAL(epoch, -1);
}

static void test_epoch_cache_without_memory_is_unchanged(void)
{
    struct epoch_cache c;
    fill(&c);
    fault_alloc_arm(1, true);
    size_t n = c.n;
    enum err err = ERR_NONE;
    for (int i = 0; i < 10 && err == ERR_NONE; i++) {
        n = c.n;
        err = epoch_cache_assign(&c, 10 + i, 100 + i, NULL);
    }
    CU_ASSERT_TRUE(fault_alloc_hit());
    CU_ASSERT_EQUAL(err, ERR_NOMEM);
    CU_ASSERT_EQUAL(c.n, n);
    epoch_cache_close(&c);
}

TEST_MAIN(TEST(test_epoch_cache_assigns), TEST(test_epoch_cache_truncates),
          TEST(test_epoch_cache_finds_ends), TEST(test_epoch_cache_without_memory_is_unchanged))
