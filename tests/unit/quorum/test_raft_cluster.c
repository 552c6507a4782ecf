/* Several rafts over lossy messages and disks that lose power: scripted cases, and seeds. */
#include "raft_world.h"

static void test_cluster_elects_and_replicates(void)
{
    for (int is_static = 0; is_static <= 1; is_static++) {
        world_new(1, 3, 1, is_static);
        world_start_all();
        const int32_t id = world_elect(10000);
        CU_ASSERT_FATAL(id > 0);
        for (int i = 0; i < 10; i++)
            CU_ASSERT_EQUAL(world_append(id), ERR_NONE);
        CU_ASSERT(world_even_out(3000));
        CU_ASSERT_EQUAL(raft_epoch(raft_of(id)), 1);
        world_compare_logs();
        world_free();
    }
}

/* ------------------------------------------------------------------ seeds */

static int up_n(void)
{
    int n = 0;
    for (int i = 0; i < w.n; i++)
        n += w.m[i].up;
    return n;
}

static void something_happens(void)
{
    const int i = (int)rng_below(&w.rng, (uint64_t)w.n);
    const int32_t leader = world_leader();
    switch (rng_below(&w.rng, 12)) {
    case 0:
        if (w.m[i].up)
            world_crash(i);
        break;
    case 1:
    case 2:
        if (!w.m[i].up) {
            world_start(i);
            world_step(i);
        }
        break;
    case 3:
        world_cut(i + 1, 1 + (int32_t)rng_below(&w.rng, (uint64_t)w.n), true);
        break;
    case 4:
        memset(w.cut, 0, sizeof w.cut);
        break;
    case 5:
        world_isolate(i + 1, true);
        break;
    case 6: /* one way only */
        w.cut[i][rng_below(&w.rng, (uint64_t)w.n)] = true;
        break;
    case 7:
        if (w.m[i].up && w.m[i].committed_end > 0)
            (void)world_snapshot(i + 1);
        break;
    case 8:
        w.loss_percent = (unsigned)rng_below(&w.rng, 30);
        break;
    default:
        if (leader > 0 && w.values_n < OFFSETS_MAX / 4)
            (void)world_append(leader);
        break;
    }
}

static void heal(void)
{
    memset(w.cut, 0, sizeof w.cut);
    w.loss_percent = 0;
    w.delay_max_us = 2000;
    w.job_max_us = 2000;
    for (int i = 0; i < w.n; i++)
        if (!w.m[i].up) {
            world_start(i);
            world_step(i);
        }
}

static void run_seed(uint64_t seed)
{
    struct rng rng = {seed * 1000003};
    world_new(seed, 2 + (int)rng_below(&rng, 3), (int)rng_below(&rng, 3), rng_percent(&rng, 50));
    w.delay_max_us = 1 + (int64_t)rng_below(&rng, 300000);
    w.job_max_us = 1 + (int64_t)rng_below(&rng, 50000);
    world_start_all();
    for (int i = 0; i < 120; i++) {
        world_run((int64_t)rng_below(&w.rng, 600));
        something_happens();
        if (i % 20 == 0)
            world_compare_logs();
    }
    heal();
    CU_ASSERT_EQUAL(up_n(), w.n);
    const bool even = world_even_out(60000);
    if (!even) {
        printf("seed %llu: not even\n", (unsigned long long)seed);
        for (int32_t id = 1; id <= w.n; id++)
            printf("  %d %s epoch %d leader %d end %lld hw %lld committed %lld\n", id,
                   w.m[id - 1].voter_role ? "voter" : "observer", raft_epoch(raft_of(id)),
                   raft_leader_id(raft_of(id)), (long long)raft_end_offset(raft_of(id)),
                   (long long)raft_high_watermark(raft_of(id)),
                   (long long)w.m[id - 1].committed_end);
    }
    CU_ASSERT_FATAL(even);
    const int32_t epoch = raft_epoch(raft_of(world_leader()));
    world_run(20000);
    CU_ASSERT_EQUAL(raft_epoch(raft_of(world_leader())), epoch); /* and nobody disturbs it */
    world_compare_logs();
    world_free();
}

/* DOHLE_QUORUM_SEED: that one alone; DOHLE_QUORUM_SEEDS: how many. */
static void test_cluster_keeps_its_promises(void)
{
    const char *one = getenv("DOHLE_QUORUM_SEED"), *many = getenv("DOHLE_QUORUM_SEEDS");
    const uint64_t from = one == NULL ? 1 : strtoull(one, NULL, 10);
    const uint64_t n = one != NULL ? 1 : many == NULL ? 60 : strtoull(many, NULL, 10);
    for (uint64_t seed = from; seed < from + n; seed++)
        run_seed(seed);
}

TEST_MAIN(TEST(test_cluster_elects_and_replicates), TEST(test_cluster_keeps_its_promises))
