#include "core/replica/mentions.h"
#include "support/test.h"

static void test_mentions_finds_first_and_last(void)
{
    struct arena a;
    arena_init(&a, NULL);
    const struct uuid other = {{1}};
    struct mention v[] = {
        {.topic = STR_LIT("b"), .index = 1},
        {.topic = STR_LIT("a"), .index = 1},
        {.topic = STR_LIT("b"), .index = 0},
        {.topic = STR_LIT("b"), .index = 1},
        {.topic = STR_LIT("b"), .index = 1, .topic_id = other},
        {.topic = STR_LIT("a"), .index = 1},
        {.topic = STR_LIT("b"), .index = 1},
    };
    const size_t first[] = {0, 1, 2, 0, 4, 1, 0}, last[] = {6, 5, 2, 6, 4, 5, 6};
    CU_ASSERT_EQUAL_FATAL(mentions_find(v, ARRAY_N(v), &a), ERR_NONE);
    for (size_t i = 0; i < ARRAY_N(v); i++) {
        CU_ASSERT_EQUAL(v[i].first, first[i]);
        CU_ASSERT_EQUAL(v[i].last, last[i]);
    }
    CU_ASSERT_EQUAL(mentions_find(v, 0, &a), ERR_NONE);
    arena_close(&a);
}

static void test_mentions_merges(void)
{
    struct mention v[] = {
        {.topic = STR_LIT("b"), .index = 1}, {.topic = STR_LIT("a"), .index = 7},
        {.topic = STR_LIT("b"), .index = 0}, {.topic = STR_LIT("b"), .index = 1},
        {.topic = STR_LIT("a"), .index = 7}, {.topic = STR_LIT("b"), .index = 1},
    };
    CU_ASSERT_EQUAL_FATAL(mentions_merge(v, ARRAY_N(v)), 3);
    CU_ASSERT(str_eq(v[0].topic, STR_LIT("a")) && v[0].index == 7 && v[0].last == 4);
    CU_ASSERT(str_eq(v[1].topic, STR_LIT("b")) && v[1].index == 0 && v[1].last == 2);
    CU_ASSERT(str_eq(v[2].topic, STR_LIT("b")) && v[2].index == 1 && v[2].last == 5);
    CU_ASSERT_EQUAL(mentions_merge(v, 0), 0);
}

TEST_MAIN(TEST(test_mentions_finds_first_and_last), TEST(test_mentions_merges))
