/* The workload of a node with every operation on files failing once, or from there on. */
#include "node_workload.h"

static long file_points(enum err e, bool persistent)
{
    /* A full disk refuses what needs room. */
    const unsigned kinds = e != ERR_NOSPC ? 0
                                          : MEMFS_KIND(MEMFS_OPEN) | MEMFS_KIND(MEMFS_WRITE) |
                                                MEMFS_KIND(MEMFS_MKDIR) | MEMFS_KIND(MEMFS_RENAME) |
                                                MEMFS_KIND(MEMFS_SYNC);
    bool hit = true;
    long n = 1;
    for (; hit; n++) {
        violation_where("file operation %ld, %s%s", n, err_name(e), persistent ? " for good" : "");
        machine_new(1, settings);
        memfs_fault_arm(&b.fs, (struct memfs_fault){
                                   .nth = n, .persistent = persistent, .err = e, .kinds = kinds});
        workload(persistent);
        hit = memfs_fault_hit(&b.fs);
        check_afterwards();
        machine_free();
    }
    printf("node: %ld file operations fail with %s%s\n", n - 2, err_name(e),
           persistent ? ", all behind them too" : "");
    return n - 2;
}

static void test_node_with_failing_files(void)
{
    CU_ASSERT(file_points(ERR_IO, false) >= 500);
    CU_ASSERT(file_points(ERR_IO, true) >= 500);
    CU_ASSERT(file_points(ERR_NOSPC, false) >= 450);
    CU_ASSERT(file_points(ERR_NOSPC, true) >= 450);
}

/* One of two may fail while the node goes on with the other. */
static void test_node_with_two_log_directories(void)
{
    settings = "log.dirs=/machine/data,/machine/more\n" SETTINGS;
    CU_ASSERT(file_points(ERR_IO, false) >= 500);
    CU_ASSERT(file_points(ERR_IO, true) >= 500);
}

TEST_MAIN(TEST(test_node_with_failing_files), TEST(test_node_with_two_log_directories))
