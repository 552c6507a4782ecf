/* How many large buffers are kept, and for how long: by what was used, by the turn's clock. */
#include "base/env.h"
#include "rpc/pool.h"
#include "support/test.h"

enum { BUFS_MAX = 32, IDLE_N = 4, MAX_N = 15, SECOND_US = 1000000 };

static struct timers timers;
static struct budget budget;
static struct now now;
static struct pool pool;
static struct pool_buf *bufs[BUFS_MAX];

static void begin(uint64_t limit_bytes)
{
    now = (struct now){5 * SECOND_US, 0};
    timers_init(&timers);
    budget_init(&budget, NULL, limit_bytes);
    pool_init(&pool, &budget, &timers, &now);
}

static void end(void)
{
    pool_close(&pool);
    CU_ASSERT_EQUAL(budget.used_bytes, 0);
    CU_ASSERT_EQUAL(timers_next_us(&timers), INT64_MAX);
    timers_close(&timers);
}

/* n buffers in use at once. */
static void use(size_t n)
{
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_FATAL((bufs[i] = pool_get(&pool)) != NULL);
    for (size_t i = 0; i < n; i++)
        pool_unref(bufs[i]);
}

static void pass_second(void)
{
    now.mono_us += SECOND_US;
    timers_run(&timers, now.mono_us);
}

static void test_warm_pool_keeps_what_is_used(void)
{
    begin(64 << 20);
    use(10);
    CU_ASSERT_EQUAL(pool.free_n, 10);
    for (int i = 0; i < 3; i++) {
        use(7);
        pass_second();
    }
    CU_ASSERT_EQUAL(pool.free_n, 7); /* three were needed by nobody */
    use(BUFS_MAX);
    CU_ASSERT_EQUAL(pool.free_n, MAX_N);
    end();
}

static void test_warm_pool_falls_back_when_idle(void)
{
    begin(64 << 20);
    use(IDLE_N);
    CU_ASSERT_EQUAL(timers_next_us(&timers), INT64_MAX); /* nothing to wake up for */
    use(12);
    CU_ASSERT_EQUAL(timers_next_us(&timers), now.mono_us + SECOND_US);
    pass_second();
    pass_second();
    CU_ASSERT_EQUAL(pool.free_n, IDLE_N);
    CU_ASSERT_EQUAL(timers_next_us(&timers), INT64_MAX);
    end();
}

static void test_warm_pool_gives_way(void)
{
    begin(16 * (uint64_t)POOL_BUF_BYTES);
    use(16);
    CU_ASSERT_EQUAL(pool.free_n, 8); /* half of the budget */
    struct pool_buf *large = pool_get_exact(&pool, &budget, 12 * (size_t)POOL_BUF_BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(large);
    CU_ASSERT_EQUAL(pool.free_n, IDLE_N);
    pool_unref(large);
    end();
}

TEST_MAIN(TEST(test_warm_pool_keeps_what_is_used), TEST(test_warm_pool_falls_back_when_idle),
          TEST(test_warm_pool_gives_way))
