/* Many new logs at once: their directories share jobs, one that fails is alone with it, and
 * whatever a crash leaves, bytes are never without the partition.metadata that says whose they are.
 */
#include <stdio.h>

#include "test_log.h"

enum { LOGS = 40 };

static struct many {
    struct bench bench; /* but for its log */
    struct log *logs[LOGS];
} m;

static void dir_of(int i, char out[32])
{
    snprintf(out, 32, "/data/m-%d", i);
}

static void many_new(uint64_t seed)
{
    bench_init(&m.bench, seed);
    for (int i = 0; i < LOGS; i++) {
        char dir[32];
        struct log_args args = bench_args(&m.bench);
        dir_of(i, dir);
        args.dir = dir;
        MUST(log_new(&args, &m.logs[i]));
    }
}

static void stage(int i)
{
    struct batch facts;
    struct log_staged st;
    uint8_t *p = batch_make((struct batch_spec){.value_bytes = 10}, &facts);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    MUST(log_stage_leader(m.logs[i], p, &facts, 0, LOG_CLIENT, m.bench.now, &st));
    free(p);
}

/* Stages a batch in each and writes it; what became of each write stands in errs. */
static void write_all(enum err errs[LOGS])
{
    for (int i = 0; i < LOGS; i++) {
        stage(i);
        CU_ASSERT_EQUAL(log_write(m.logs[i], m.bench.now), ERR_AGAIN);
    }
    bench_settle(&m.bench);
    for (int i = 0; i < LOGS; i++)
        errs[i] = log_write(m.logs[i], m.bench.now);
    bench_settle(&m.bench);
}

static void close_logs(void)
{
    for (int i = 0; i < LOGS; i++) {
        m.bench.log = m.logs[i];
        (void)(bench_close_log(&m.bench, false, false) == ERR_NONE);
    }
}

static void many_close(void)
{
    close_logs();
    bench_close(&m.bench);
}

static void test_make_logs_share_jobs(void)
{
    enum err errs[LOGS];
    many_new(1);
    write_all(errs);
    for (int i = 0; i < LOGS; i++)
        CU_ASSERT(errs[i] == ERR_NONE && log_end_offset(m.logs[i]) == 1);
    CU_ASSERT_EQUAL(m.bench.fs.ops[MEMFS_SYNC], LOGS);
    /* each its own, and the one above it once per job: two of one log, then three of the rest */
    CU_ASSERT_EQUAL(m.bench.fs.ops[MEMFS_SYNC_DIR], LOGS + 5);
    many_close();
}

static void test_make_log_fails_alone(void)
{
    enum err errs[LOGS];
    many_new(2);
    memfs_fault_arm(&m.bench.fs, (struct memfs_fault){.nth = 1,
                                                      .err = ERR_NOSPC,
                                                      .kinds = MEMFS_KIND(MEMFS_OPEN),
                                                      .under = "/data/m-20/"});
    write_all(errs);
    CU_ASSERT(memfs_fault_hit(&m.bench.fs));
    for (int i = 0; i < LOGS; i++)
        CU_ASSERT_EQUAL(errs[i], i == 20 ? ERR_NOSPC : ERR_NONE);
    stage(20); /* the next append tries again */
    CU_ASSERT_EQUAL(log_write(m.logs[20], m.bench.now), ERR_AGAIN);
    bench_settle(&m.bench);
    MUST(log_write(m.logs[20], m.bench.now));
    many_close();
}

static void test_make_failed_sync_is_told_to_each(void)
{
    enum err errs[LOGS];
    many_new(3);
    memfs_fault_arm(&m.bench.fs, (struct memfs_fault){.nth = 1,
                                                      .err = ERR_IO,
                                                      .kinds = MEMFS_KIND(MEMFS_SYNC),
                                                      .under = "/data/m-5/"});
    write_all(errs);
    CU_ASSERT(memfs_fault_hit(&m.bench.fs));
    for (int i = 0; i < LOGS; i++)
        CU_ASSERT_EQUAL(errs[i], i == 5 ? ERR_IO : ERR_NONE);
    CU_ASSERT(log_is_offline(m.logs[5]) && m.bench.failed_n == 1);
    many_close();
    many_new(3); /* of the directory above: it is the whole job's */
    memfs_fault_arm(
        &m.bench.fs,
        (struct memfs_fault){.nth = LOGS + 5, .err = ERR_IO, .kinds = MEMFS_KIND(MEMFS_SYNC_DIR)});
    write_all(errs);
    CU_ASSERT(memfs_fault_hit(&m.bench.fs));
    for (int i = 0; i < LOGS; i++)
        CU_ASSERT_EQUAL(errs[i], i < 34 ? ERR_NONE : ERR_IO);
    many_close();
}

/* After a crash: bytes of a log that was written have their topic's name beside them. */
static void check_owned(int i, bool written)
{
    char dir[32], path[64];
    size_t n = 0;
    struct uuid id;
    dir_of(i, dir);
    snprintf(path, sizeof path, "%s/00000000000000000000.log", dir);
    const bool there = memfs_get(&m.bench.fs, path, &n) != NULL;
    CU_ASSERT(there || !written);
    if (!written && n == 0)
        return;
    CU_ASSERT_EQUAL(partition_metadata_read(&m.bench.fs.vfs, dir, &id), ERR_NONE);
    CU_ASSERT(uuid_eq(id, topic_id));
}

static void test_make_survives_a_crash_at_every_operation(void)
{
    bool hit = true;
    long points = 0;
    for (long nth = 1; hit; nth += 3, points++) {
        enum err errs[LOGS];
        struct rng rng = {(uint64_t)nth};
        many_new((uint64_t)nth);
        memfs_fault_arm(&m.bench.fs,
                        (struct memfs_fault){.nth = nth, .persistent = true, .err = ERR_IO});
        write_all(errs);
        hit = memfs_fault_hit(&m.bench.fs);
        close_logs();
        memfs_crash(&m.bench.fs, &rng);
        for (int i = 0; i < LOGS; i++)
            check_owned(i, errs[i] == ERR_NONE);
        bench_close(&m.bench);
    }
    printf("log: %ld crashes while making\n", points);
    CU_ASSERT(points > 100);
}

/* A clean start trusts its files; one that it makes itself has to last all the same. */
static void test_load_syncs_what_it_makes(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct bench b;
        struct uuid id;
        struct rng rng = {seed};
        bench_init(&b, seed);
        MUST(bench_new(&b));
        MUST(bench_append(&b, (struct batch_spec){.value_bytes = 10}, NULL));
        MUST(bench_close_log(&b, true, false));
        MUST(b.fs.vfs.ops->unlink(&b.fs.vfs, DIR_NAME "/partition.metadata"));
        memfs_sync_all(&b.fs);
        MUST(bench_load(&b, (struct log_checkpoints){true, 1, -1}));
        MUST(bench_close_log(&b, false, false));
        memfs_crash(&b.fs, &rng);
        MUST(partition_metadata_read(&b.fs.vfs, DIR_NAME, &id));
        CU_ASSERT(uuid_eq(id, topic_id));
        bench_close(&b);
    }
}

TEST_MAIN(TEST(test_make_logs_share_jobs), TEST(test_make_log_fails_alone),
          TEST(test_make_failed_sync_is_told_to_each),
          TEST(test_make_survives_a_crash_at_every_operation), TEST(test_load_syncs_what_it_makes))
