/* The workload of a node, and again with every allocation failing once. */
#include "node_workload.h"

/* Without a fault: everything is acknowledged. */
static void test_node_without_faults(void)
{
    violation_where("no fault");
    machine_new(1, settings);
    workload(false);
    CU_ASSERT_EQUAL(k.starts_n, 3);
    CU_ASSERT_EQUAL(k.refused_n, 0);
    CU_ASSERT_EQUAL(k.acked_n, 15);
    CU_ASSERT(k.torn_bytes > 0);
    CU_ASSERT(k.a.is == PRESENT && k.b.is == PRESENT);
    check_afterwards();
    CU_ASSERT_EQUAL(b.env.lines[LOG_ERROR], 1); /* of the node that was killed */
    machine_free();
}

/* The points of one kind: an allocation, with those behind it. */
static long allocation_points(long count)
{
    bool hit = true;
    long n = 1;
    for (; hit; n++) {
        violation_where("allocation %ld, %ld of them", n, count);
        machine_new(1, settings);
        fault_alloc_arm_some(n, count);
        fault_alloc_pause();
        workload(false);
        hit = fault_alloc_hit();
        check_afterwards();
        machine_free();
    }
    printf("node: %ld allocations fail, %ld at a time\n", n - 2, count);
    return n - 2;
}

static void test_node_without_memory(void)
{
    CU_ASSERT(allocation_points(1) >= 500);
    CU_ASSERT(allocation_points(20) >= 500);
}

TEST_MAIN(TEST(test_node_without_faults), TEST(test_node_without_memory))
