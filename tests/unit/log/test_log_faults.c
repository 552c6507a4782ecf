/* Every file operation and every allocation of a workload fails once: no crash, no leak, and after
 * a restart nothing that was written before the failure is missing. */
#include <stdio.h>

#include "unit/log/test_log_history.h"

/* Restarts without a crash of the machine: what was written is there. */
static void check_restart(struct story *s)
{
    story_look(s);
    int64_t written = story_now(s)->n;
    if (s->b.log != NULL)
        (void)(bench_close_log(&s->b, false, false) == ERR_NONE);
    s->epoch++;
    s->b.log = NULL;
    enum err err = bench_load(&s->b, (struct log_checkpoints){false, s->checkpoint, -1});
    if (err == ERR_NOENT) {
        CU_ASSERT_EQUAL(written, 0);
        return;
    }
    if (err != ERR_NONE)
        fprintf(stderr, "%s\n", s->b.message);
    MUST(err);
    story_check(s, written);
    MUST(bench_close_log(&s->b, true, false));
    MUST(bench_load(&s->b, (struct log_checkpoints){true, 0, -1}));
    CU_ASSERT_EQUAL(s->b.recovered_bytes, 0);
    struct compare c = {.s = s};
    MUST(bench_each(&s->b, 0, 1 << 20, compare_batch, &c));
}

static long file_points(enum err fault, bool persistent)
{
    long n = 1;
    for (;; n++) {
        struct story s;
        story_init(&s, (uint64_t)n);
        memfs_fault_arm(&s.b.fs,
                        (struct memfs_fault){.nth = n, .persistent = persistent, .err = fault});
        story_run(&s);
        bool hit = memfs_fault_hit(&s.b.fs);
        unsigned before = CU_get_number_of_failures();
        check_restart(&s);
        if (CU_get_number_of_failures() != before)
            fprintf(stderr, "point %ld, %s, persistent %d\n", n, err_name(fault), persistent);
        story_close(&s);
        if (!hit)
            return n - 1;
    }
}

static void test_faults_of_files(void)
{
    static const enum err faults[] = {ERR_IO, ERR_NOSPC};
    long points = 0;
    for (size_t i = 0; i < ARRAY_N(faults); i++) {
        points += file_points(faults[i], false);
        points += file_points(faults[i], true);
    }
    printf("file fault points: %ld\n", points);
    CU_ASSERT_TRUE(points > 500);
}

static void test_faults_of_memory(void)
{
    long points = 0;
    for (int persistent = 0; persistent < 2; persistent++) {
        for (long n = 1;; n++) {
            struct story s;
            story_init(&s, (uint64_t)n);
            fault_alloc_arm(n, persistent);
            story_run(&s);
            bool hit = fault_alloc_hit();
            unsigned before = CU_get_number_of_failures();
            check_restart(&s);
            if (CU_get_number_of_failures() != before)
                fprintf(stderr, "allocation %ld, persistent %d\n", n, persistent);
            story_close(&s);
            if (!hit)
                break;
            points++;
        }
    }
    printf("allocation fault points: %ld\n", points);
    CU_ASSERT_TRUE(points > 200);
}

static void test_full_disk_in_random_stories(void)
{
    int refused = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct story s;
        struct rng rng = {seed};
        story_init(&s, seed);
        s.full_disk = true;
        unsigned before = CU_get_number_of_failures();
        story_run_random(&s, &rng);
        CU_ASSERT_FALSE(s.stopped); /* no room is no failure */
        refused += s.refused_n;
        s.b.fs.limit_bytes = 0;
        check_restart(&s);
        if (CU_get_number_of_failures() != before)
            fprintf(stderr, "story %ld\n", (long)seed);
        story_close(&s);
    }
    CU_ASSERT_TRUE(refused > 500);
}

TEST_MAIN(TEST(test_full_disk_in_random_stories), TEST(test_faults_of_files),
          TEST(test_faults_of_memory))
