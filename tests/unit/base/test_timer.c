#include "base/timer.h"

#include "support/fault.h"
#include "support/rng.h"
#include "support/test.h"

#define MANY 1000

struct probe {
    struct timer timer;
    int id;
    void (*then)(struct probe *p);
};

static struct timers ts;
static int fired[4 * MANY];
static size_t fired_n;
static struct probe probes[MANY];

static void fire(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);
    fired[fired_n++] = p->id;
    if (p->then != NULL)
        p->then(p);
}

static void set_up(void)
{
    timers_init(&ts);
    fired_n = 0;
    for (int i = 0; i < MANY; i++)
        probes[i] = (struct probe){.timer = {.fire = fire}, .id = i};
}

static void arm(int id, int64_t at_us)
{
    CU_ASSERT_EQUAL(timer_arm(&ts, &probes[id].timer, at_us), ERR_NONE);
}

static void test_timer_fires_in_order(void)
{
    set_up();
    arm(0, 30);
    arm(1, 10);
    arm(2, 20);
    arm(3, 10);
    CU_ASSERT_EQUAL(timers_next_us(&ts), 10);
    timers_run(&ts, 9);
    CU_ASSERT_EQUAL(fired_n, 0);
    timers_run(&ts, 20);
    CU_ASSERT(fired_n == 3 && fired[0] == 1 && fired[1] == 3 && fired[2] == 2);
    CU_ASSERT_FALSE(timer_armed(&probes[1].timer));
    CU_ASSERT_TRUE(timer_armed(&probes[0].timer));
    timers_run(&ts, INT64_MAX - 1);
    CU_ASSERT_EQUAL(fired_n, 4);
    CU_ASSERT_EQUAL(timers_next_us(&ts), INT64_MAX);
    timers_close(&ts);
}

static void test_timer_rearm_and_cancel(void)
{
    set_up();
    arm(0, 10);
    arm(1, 10);
    arm(0, 10); /* now behind 1 */
    arm(2, 5);
    timer_cancel(&ts, &probes[2].timer);
    timer_cancel(&ts, &probes[2].timer);
    timers_run(&ts, 10);
    CU_ASSERT(fired_n == 2 && fired[0] == 1 && fired[1] == 0);
    arm(3, 50);
    timers_close(&ts);
    CU_ASSERT_FALSE(timer_armed(&probes[3].timer));
}

static void arm_itself(struct probe *p)
{
    arm(p->id, 0);
}

static void cancel_next(struct probe *p)
{
    timer_cancel(&ts, &probes[p->id + 1].timer);
}

/* What a callback arms in the past waits for the next run and hides nothing that is due. */
static void test_timer_callbacks_arm_and_cancel(void)
{
    set_up();
    probes[0].then = arm_itself;
    probes[1].then = cancel_next;
    arm(0, 10);
    arm(1, 20);
    arm(2, 20);
    arm(3, 20);
    timers_run(&ts, 20);
    CU_ASSERT(fired_n == 3 && fired[0] == 0 && fired[1] == 1 && fired[2] == 3);
    CU_ASSERT_EQUAL(timers_next_us(&ts), 20);
    timers_run(&ts, 25);
    CU_ASSERT(fired_n == 4 && fired[3] == 0);
    timers_close(&ts);
}

static void test_timer_many_at_random(void)
{
    set_up();
    struct rng rng = {4};
    for (int round = 0; round < 20 * MANY; round++) {
        int id = (int)rng_below(&rng, MANY);
        if (rng_percent(&rng, 30))
            timer_cancel(&ts, &probes[id].timer);
        else
            arm(id, (int64_t)rng_below(&rng, 500));
    }
    size_t armed = 0;
    for (int i = 0; i < MANY; i++)
        armed += timer_armed(&probes[i].timer);
    CU_ASSERT_EQUAL(ts.n, armed);
    timers_run(&ts, 1000);
    CU_ASSERT_EQUAL(fired_n, armed);
    size_t wrong = 0;
    for (size_t i = 1; i < fired_n; i++) {
        const struct timer *a = &probes[fired[i - 1]].timer, *b = &probes[fired[i]].timer;
        wrong += a->at_us > b->at_us || (a->at_us == b->at_us && a->seq >= b->seq);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    timers_close(&ts);
}

static void test_timer_without_memory(void)
{
    set_up();
    int n = 0;
    fault_alloc_arm(2, true);
    while (timer_arm(&ts, &probes[n].timer, n) == ERR_NONE)
        n++;
    CU_ASSERT_FALSE(timer_armed(&probes[n].timer));
    arm(0, 99); /* rearming takes no memory */
    CU_ASSERT_TRUE(fault_alloc_hit());
    timers_run(&ts, 100);
    CU_ASSERT_EQUAL(fired_n, (size_t)n);
    CU_ASSERT_EQUAL(fired[n - 1], 0);
    timers_close(&ts);
}

TEST_MAIN(TEST(test_timer_fires_in_order), TEST(test_timer_rearm_and_cancel),
          TEST(test_timer_callbacks_arm_and_cancel), TEST(test_timer_many_at_random),
          TEST(test_timer_without_memory))
