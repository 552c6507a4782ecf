#include "base/arena.h"

#include "support/fault.h"
#include "support/test.h"

static void test_arena_pieces_are_aligned_and_apart(void)
{
    struct arena a;
    arena_init(&a, NULL);
    uint8_t *pieces[300];
    for (size_t i = 0; i < ARRAY_N(pieces); i++) {
        pieces[i] = arena_alloc(&a, i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pieces[i]);
        CU_ASSERT_EQUAL((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, i);
    }
    size_t wrong = 0;
    for (size_t i = 0; i < ARRAY_N(pieces); i++) {
        for (size_t k = 0; k < i; k++)
            wrong += pieces[i][k] != (uint8_t)i;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    arena_close(&a);
    CU_ASSERT_PTR_NULL(a.head);
}

static void test_arena_charges_its_budget(void)
{
    struct budget b;
    struct arena a;
    budget_init(&b, NULL, 4000);
    arena_init(&a, &b);
    CU_ASSERT_EQUAL(b.used_bytes, 0);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 10));
    CU_ASSERT_EQUAL(b.used_bytes, 1024);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 1500));
    CU_ASSERT_EQUAL(b.used_bytes, 1024 + 2048);
    CU_ASSERT_PTR_NULL(arena_alloc(&a, 3000));
    CU_ASSERT_EQUAL(b.used_bytes, 1024 + 2048);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 100)); /* there is room left in the newest */
    arena_reset(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 1024);
    arena_close(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 0);
}

static void test_arena_large_pieces(void)
{
    struct budget b;
    struct arena a;
    budget_init(&b, NULL, UINT64_MAX);
    arena_init(&a, &b);
    uint8_t *small = arena_alloc(&a, 16);
    uint8_t *large = arena_zalloc(&a, 1 << 20);
    CU_ASSERT_PTR_NOT_NULL_FATAL(large);
    CU_ASSERT(large[0] == 0 && large[(1 << 20) - 1] == 0);
    /* the newest block goes on being filled */
    CU_ASSERT_PTR_EQUAL(arena_alloc(&a, 16), small + 16);
    arena_reset(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 1024);
    arena_close(&a);
    /* a large first piece is not kept warm */
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 1 << 20));
    arena_reset(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 0);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 1 << 20));
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 1));
    arena_reset(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 1024);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 1));
    arena_close(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 0);
}

static void test_arena_array_and_copies(void)
{
    struct arena a;
    arena_init(&a, NULL);
    CU_ASSERT_PTR_NULL(arena_array(&a, SIZE_MAX / 2, 3));
    CU_ASSERT_PTR_NULL(arena_alloc(&a, SIZE_MAX));
    CU_ASSERT_PTR_NULL(arena_alloc(&a, SIZE_MAX - 8));
    int *n = arena_array(&a, 100, sizeof *n);
    CU_ASSERT(n != NULL && n[0] == 0 && n[99] == 0);
    CU_ASSERT_STRING_EQUAL(arena_strdup(&a, (struct str){"topic-0", 5}), "topic");
    CU_ASSERT_STRING_EQUAL(arena_strdup(&a, STR_NULL), "");
    CU_ASSERT(memcmp(arena_memdup(&a, "a\0b", 3), "a\0b", 3) == 0);
    CU_ASSERT_PTR_NOT_NULL(arena_memdup(&a, NULL, 0));
    arena_close(&a);
}

static void test_arena_without_memory(void)
{
    struct budget b;
    struct arena a;
    budget_init(&b, NULL, UINT64_MAX);
    arena_init(&a, &b);
    fault_alloc_arm(1, false);
    CU_ASSERT_PTR_NULL(arena_alloc(&a, 1));
    CU_ASSERT_TRUE(fault_alloc_hit());
    CU_ASSERT_EQUAL(b.used_bytes, 0);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(&a, 1));
    fault_alloc_arm(1, true);
    CU_ASSERT_PTR_NULL(arena_strdup(&a, (struct str){"", 0}) == NULL ? NULL
                                                                     : arena_alloc(&a, 2000));
    CU_ASSERT_TRUE(fault_alloc_hit());
    arena_close(&a);
    CU_ASSERT_EQUAL(b.used_bytes, 0);
}

static void test_budget_charges_all_or_nothing(void)
{
    struct budget root, share;
    budget_init(&root, NULL, 100);
    budget_init(&share, &root, 80);
    CU_ASSERT_TRUE(budget_take(NULL, 1));
    CU_ASSERT_TRUE(budget_take(&share, 60));
    CU_ASSERT_FALSE(budget_take(&share, 21));
    CU_ASSERT_TRUE(budget_take(&root, 30));
    CU_ASSERT_FALSE(budget_take(&share, 20));
    CU_ASSERT(share.used_bytes == 60 && root.used_bytes == 90);
    CU_ASSERT_FALSE(budget_take(&root, UINT64_MAX));
    CU_ASSERT_TRUE(budget_take(&share, 10));
    CU_ASSERT_TRUE(budget_take(&share, 0));
    budget_give(&share, 70);
    budget_give(&root, 30);
    budget_give(NULL, 5);
    CU_ASSERT(share.used_bytes == 0 && root.used_bytes == 0);
    CU_ASSERT(share.peak_bytes == 70 && root.peak_bytes == 100);
    CU_ASSERT_TRUE(budget_take(&root, 100));
    root.limit_bytes = 50; /* lowered below what is used */
    CU_ASSERT_FALSE(budget_take(&root, 1));
    CU_ASSERT_FALSE(budget_take(&share, 0));
}

TEST_MAIN(TEST(test_arena_pieces_are_aligned_and_apart), TEST(test_arena_charges_its_budget),
          TEST(test_arena_large_pieces), TEST(test_arena_array_and_copies),
          TEST(test_arena_without_memory), TEST(test_budget_charges_all_or_nothing))
