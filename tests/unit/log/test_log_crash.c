/* Power fails after each file operation of a workload, several times with other tearing: what comes
 * back is a prefix of a history that was, with all that was flushed. */
#include <stdio.h>

#include "unit/log/test_log_history.h"

#define SEEDS_PER_POINT 6
#define RANDOM_SEEDS 3000

static bool crash_at(long n, uint64_t seed, bool random)
{
    struct story s;
    struct rng story_rng = {seed ^ 0x5eed};
    story_init(&s, seed);
    memfs_fault_arm(&s.b.fs, (struct memfs_fault){.nth = n, .persistent = true, .err = ERR_IO});
    if (random)
        story_run_random(&s, &story_rng);
    else
        story_run(&s);
    if (s.b.log != NULL)
        (void)(bench_close_log(&s.b, false, false) == ERR_NONE);
    bool hit = memfs_fault_hit(&s.b.fs);
    struct rng rng = {seed};
    memfs_crash(&s.b.fs, &rng);
    s.epoch++;
    enum err err = bench_load(&s.b, (struct log_checkpoints){false, s.checkpoint, -1});
    if (err == ERR_NOENT) {
        CU_ASSERT_EQUAL(s.flushed, 0);
        s.b.log = NULL;
    } else {
        if (err != ERR_NONE)
            fprintf(stderr, "%s\n", s.b.message);
        MUST(err);
        story_check(&s, s.flushed);
    }
    story_close(&s);
    return hit;
}

static void test_crash_at_every_operation(void)
{
    long n = 1, runs = 0;
    for (bool hit = true; hit; n++) {
        for (uint64_t k = 0; k < SEEDS_PER_POINT; k++, runs++) {
            unsigned before = CU_get_number_of_failures();
            hit = crash_at(n, (uint64_t)n * 1000 + k, false);
            if (CU_get_number_of_failures() != before)
                fprintf(stderr, "point %ld, seed %ld\n", n, n * 1000 + (long)k);
        }
    }
    printf("crash points: %ld, crashes: %ld\n", n - 2, runs);
    CU_ASSERT_TRUE(n > 200);
}

static void test_crash_in_random_stories(void)
{
    struct rng rng = {7};
    for (uint64_t seed = 0; seed < RANDOM_SEEDS; seed++) {
        unsigned before = CU_get_number_of_failures();
        long n = 1 + (long)rng_below(&rng, 600);
        (void)crash_at(n, seed, true);
        if (CU_get_number_of_failures() != before)
            fprintf(stderr, "story %ld, point %ld\n", (long)seed, n);
    }
}

TEST_MAIN(TEST(test_crash_in_random_stories), TEST(test_crash_at_every_operation))
