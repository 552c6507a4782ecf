/* The power goes during a first start: whatever it leaves of the files, the next start formats them
 * or finds them whole, and is ready. */
#include "node_bench.h"

#define SETTINGS                                                                                   \
    "listeners=PLAINTEXT://127.0.0.1:9092\n"                                                       \
    "dohle.memory.max.bytes=16777216\n"
static const char one[] = "log.dirs=/machine/data\n" SETTINGS;
static const char several[] = "log.dirs=/machine/a,/machine/data,/machine/c\n"
                              "metadata.log.dir=/machine/data\n" SETTINGS;

/* Ends the node that could not go on, or was ready. */
static void end_node(void)
{
    if (b.node == NULL)
        return;
    if (ended())
        node_bury();
    else
        node_kill();
}

/* The nth operation from the node's beginning and all behind it fail, a write in part; then the
 * machine keeps some of what was not synced. True: there was an nth. */
static bool lose_power(const char *settings, long nth, uint64_t seed)
{
    struct rng rng = {seed * 1000003 + (uint64_t)nth};
    machine_new(seed * 1000 + (uint64_t)nth, settings);
    memfs_mkdirs(&b.fs, "/machine/data");
    memfs_fault_arm(&b.fs, (struct memfs_fault){.nth = nth, .persistent = true, .err = ERR_IO});
    const bool ready = node_begin() && node_ready();
    const bool hit = memfs_fault_hit(&b.fs);
    CU_ASSERT(hit || ready);
    end_node();
    memfs_crash(&b.fs, &rng);
    if (!node_begin() || !node_ready())
        violation("no start after the power was gone at operation %ld: %s", nth, b.env.last_line);
    CU_ASSERT(node_halt());
    machine_free();
    return hit;
}

static void lose_power_everywhere(const char *settings)
{
    long points = 0;
    for (uint64_t seed = 1; seed <= 8; seed++)
        for (long nth = 1; lose_power(settings, nth, seed); nth++)
            points++;
    printf("node: %ld power losses during a first start\n", points);
    CU_ASSERT(points > 8 * 50);
}

static void test_first_start_survives_a_power_loss(void)
{
    lose_power_everywhere(one);
}

/* The metadata log's directory is formatted last: without it the others say that the start was
 * interrupted. */
static void test_first_start_in_several_directories(void)
{
    lose_power_everywhere(several);
}

/* Each waits for the disk: format, the metadata log, quorum-state, the first records. */
static void test_first_start_syncs(void)
{
    machine_new(1, one);
    CU_ASSERT_FATAL(node_begin() && node_ready());
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_SYNC], 9);
    CU_ASSERT_EQUAL(b.fs.ops[MEMFS_SYNC_DIR], 6);
    CU_ASSERT(node_halt());
    machine_free();
}

TEST_MAIN(TEST(test_first_start_survives_a_power_loss),
          TEST(test_first_start_in_several_directories), TEST(test_first_start_syncs))
