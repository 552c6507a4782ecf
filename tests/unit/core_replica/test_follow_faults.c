/* A follower whose allocations and file operations fail, each one once: it goes on when that is
 * over, or has told that its directory failed; never does its log differ from its leader's. */
#include "cluster.h"

static int32_t both[] = {1, 2}, one[] = {1}, two[] = {2};

enum { HEAL_MS = 3000 };

static void append_large(struct cluster *c, int32_t node, struct uuid t)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.value_n = 20000;
    fix_produce(&c->nodes[node], &p, t, 0, 1, &b);
    cluster_turn(c);
    if (p.done == 0) /* its disk is full */
        replicas_produce_cancel(&p.op);
    cluster_turn(c);
    fix_produce_close(&p);
}

static struct uuid begin(struct cluster *c)
{
    cluster_begin(c, 2);
    const struct uuid t = cluster_topic(c, "t", 1, both, 2, both, 2);
    (void)cluster_topic(c, "u", 3, both, 2, both, 2);
    cluster_turn(c);
    return t;
}

/* Fetches, small and large; a divergence; a start that moved, twice: in range and out of it. */
static void work(struct cluster *c, struct uuid t)
{
    (void)cluster_append(c, 1, t, 3);
    cluster_wait(c, 1000);
    append_large(c, 1, t);
    cluster_wait(c, 1000);
    cluster_cut(c, 2);
    cluster_change(c, t, 0, 2, two, 1);
    cluster_turn(c);
    (void)cluster_append(c, 2, t, 2);
    cluster_change(c, t, 0, 1, one, 1);
    cluster_turn(c);
    (void)cluster_append(c, 1, t, 1);
    cluster_heal(c, HEAL_MS);
    CU_ASSERT_EQUAL(partition_raise_start(cluster_part(c, 1, t, 0), 1), ERR_NONE);
    cluster_wait(c, 1000);
    cluster_cut(c, 2);
    cluster_change(c, t, 0, -2, one, 1);
    cluster_pass(c, CLUSTER_LAG_MS + 1000); /* it does not count as caught up any more */
    (void)cluster_append(c, 1, t, 2);
    CU_ASSERT_EQUAL(cluster_hw(c, 1, t), 7);
    CU_ASSERT_EQUAL(partition_raise_start(cluster_part(c, 1, t, 0), 7), ERR_NONE);
    cluster_heal(c, HEAL_MS);
}

/* Once nothing fails any more. */
static void check(struct cluster *c, struct uuid t)
{
    cluster_wait(c, 8000);
    if (c->nodes[2].failed > 0) {
        CU_ASSERT(list_empty(&c->nodes[2].rs->fetchers));
        return;
    }
    CU_ASSERT_EQUAL(cluster_leo(c, 1, t), 7);
    CU_ASSERT_EQUAL(cluster_leo(c, 2, t), 7);
    CU_ASSERT_EQUAL(cluster_append(c, 1, t, 1), K_NONE);
    cluster_wait(c, 3000);
    CU_ASSERT_EQUAL(cluster_leo(c, 2, t), 8);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(c, 2, t, 0)->log), 7);
    CU_ASSERT(cluster_in_sync(c, t, 2));
    CU_ASSERT_EQUAL(cluster_hw(c, 2, t), 8);
}

static void test_follow_faults_none(void)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    work(&c, t);
    check(&c, t);
    CU_ASSERT_EQUAL(c.nodes[2].failed, 0);
    cluster_end(&c);
}

static bool survives_allocation(long nth, bool applying, int *failed)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    c.faulty = 2;
    c.faulty_apply = applying;
    fault_alloc_arm(nth, false);
    fault_alloc_pause();
    work(&c, t);
    const bool hit = fault_alloc_hit();
    c.faulty = 0;
    check(&c, t);
    *failed += c.nodes[2].failed;
    cluster_end(&c);
    return hit;
}

static void test_follow_faults_of_allocations(void)
{
    int failed = 0;
    long n = 1;
    while (survives_allocation(n, false, &failed))
        n++;
    CU_ASSERT(n > 25);
    CU_ASSERT_EQUAL(failed, 0);
}

/* Metadata that is committed and cannot be taken over ends the node's part in it. */
static void test_follow_faults_of_metadata(void)
{
    int failed = 0;
    long n = 1;
    while (survives_allocation(n, true, &failed))
        n++;
    CU_ASSERT(failed > 0);
}

static bool survives_file(long nth, enum err e, int *failed)
{
    struct cluster c;
    const struct uuid t = begin(&c);
    memfs_fault_arm(&c.nodes[2].fs, (struct memfs_fault){.nth = nth, .err = e});
    work(&c, t);
    const bool hit = memfs_fault_hit(&c.nodes[2].fs);
    check(&c, t);
    *failed += c.nodes[2].failed;
    cluster_end(&c);
    return hit;
}

/* S26 (KAFKA-10778) among them: a write that failed for good is the last one. */
static void test_follow_faults_of_files(void)
{
    static const enum err errors[] = {ERR_IO, ERR_NOSPC, ERR_NFILE, ERR_NOMEM};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        int failed = 0;
        long n = 1;
        while (survives_file(n, errors[i], &failed))
            n++;
        CU_ASSERT(n > 30);
        CU_ASSERT(errors[i] != ERR_IO || failed > 5);
    }
}

TEST_MAIN(TEST(test_follow_faults_none), TEST(test_follow_faults_of_allocations),
          TEST(test_follow_faults_of_metadata), TEST(test_follow_faults_of_files))
