/* Sets of partitions, and the index of who hosts and leads what. */
#include "core/controller/partition_index.h"
#include "support/fault.h"
#include "support/test.h"

static struct uuid topic(uint8_t i)
{
    struct uuid id = {{0}};
    id.b[2] = i;
    return id;
}

static void test_partition_set_holds_what_was_added(void)
{
    static const int32_t indexes[] = {0, 1, 63, 64, 65, 999, 200};
    struct partition_set s;
    partition_set_init(&s, 7);
    for (size_t i = 0; i < ARRAY_N(indexes); i++) {
        CU_ASSERT_FALSE(partition_set_has(&s, topic(1), indexes[i]));
        CU_ASSERT_EQUAL(partition_set_add(&s, topic(1), indexes[i]), ERR_NONE);
        CU_ASSERT_EQUAL(partition_set_add(&s, topic(1), indexes[i]), ERR_NONE);
        CU_ASSERT_TRUE(partition_set_has(&s, topic(1), indexes[i]));
        CU_ASSERT_FALSE(partition_set_has(&s, topic(2), indexes[i]));
        CU_ASSERT_EQUAL(s.n, i + 1);
    }
    partition_set_remove(&s, topic(1), 64);
    partition_set_remove(&s, topic(1), 64);
    partition_set_remove(&s, topic(1), 5000);
    partition_set_remove(&s, topic(2), 1);
    CU_ASSERT_FALSE(partition_set_has(&s, topic(1), 64));
    CU_ASSERT_TRUE(partition_set_has(&s, topic(1), 65));
    CU_ASSERT_EQUAL(s.n, ARRAY_N(indexes) - 1);
    partition_set_close(&s);
}

static void test_partition_set_iterates_in_order(void)
{
    static const struct {
        uint8_t topic;
        int32_t index;
    } want[] = {{9, 0}, {9, 63}, {9, 64}, {9, 700}, {3, 1}};
    struct partition_set s;
    struct partition_at at = {0};
    size_t n = 0;
    partition_set_init(&s, 7);
    CU_ASSERT_FALSE(partition_set_next(&s, &at));
    CU_ASSERT_EQUAL(partition_set_add(&s, topic(9), 700), ERR_NONE);
    CU_ASSERT_EQUAL(partition_set_add(&s, topic(5), 2), ERR_NONE);
    CU_ASSERT_EQUAL(partition_set_add(&s, topic(3), 1), ERR_NONE);
    CU_ASSERT_EQUAL(partition_set_add(&s, topic(9), 64), ERR_NONE);
    CU_ASSERT_EQUAL(partition_set_add(&s, topic(9), 63), ERR_NONE);
    CU_ASSERT_EQUAL(partition_set_add(&s, topic(9), 0), ERR_NONE);
    partition_set_remove(&s, topic(5), 2); /* the last of its topic */
    at = (struct partition_at){0};
    while (partition_set_next(&s, &at)) {
        CU_ASSERT_FATAL(n < ARRAY_N(want));
        CU_ASSERT_TRUE(uuid_eq(at.topic_id, topic(want[n].topic)));
        CU_ASSERT_EQUAL(at.index, want[n].index);
        n++;
    }
    CU_ASSERT_EQUAL(n, ARRAY_N(want));
    partition_set_close(&s);
}

static void test_partition_index_follows(void)
{
    struct partition_index x;
    int32_t replicas[] = {2, 3}, other[] = {3, 4};
    struct image_partition p = {.replicas = replicas, .replicas_n = 2, .leader = 2};
    partition_index_init(&x, 7);
    CU_ASSERT_EQUAL(partition_index_add(&x, topic(1), 0, &p, true), ERR_NONE);
    CU_ASSERT_TRUE(partition_index_leads(&x, 2));
    CU_ASSERT_FALSE(partition_index_leads(&x, 3));
    CU_ASSERT_PTR_NULL(partition_index_hosted(&x, 4));
    CU_ASSERT_TRUE(partition_set_has(partition_index_hosted(&x, 3), topic(1), 0));
    CU_ASSERT_EQUAL(x.leaderless.n + x.not_preferred.n + x.reassigning.n, 0);
    partition_index_remove(&x, topic(1), 0, &p, false);
    p.leader = 3;
    CU_ASSERT_EQUAL(partition_index_add(&x, topic(1), 0, &p, false), ERR_NONE);
    CU_ASSERT_FALSE(partition_index_leads(&x, 2));
    CU_ASSERT_TRUE(partition_index_leads(&x, 3));
    CU_ASSERT_TRUE(partition_set_has(&x.not_preferred, topic(1), 0));
    partition_index_remove(&x, topic(1), 0, &p, true);
    p.replicas = other;
    p.leader = -1;
    p.adding_n = 1;
    CU_ASSERT_EQUAL(partition_index_add(&x, topic(1), 0, &p, true), ERR_NONE);
    CU_ASSERT_FALSE(partition_set_has(partition_index_hosted(&x, 2), topic(1), 0));
    CU_ASSERT_TRUE(partition_set_has(partition_index_hosted(&x, 4), topic(1), 0));
    CU_ASSERT_TRUE(partition_set_has(&x.leaderless, topic(1), 0));
    CU_ASSERT_TRUE(partition_set_has(&x.not_preferred, topic(1), 0));
    CU_ASSERT_TRUE(partition_set_has(&x.reassigning, topic(1), 0));
    CU_ASSERT_FALSE(partition_index_leads(&x, 3));
    partition_index_close(&x);
}

static void test_partition_index_out_of_memory(void)
{
    int32_t replicas[] = {2, 3};
    struct image_partition p = {.replicas = replicas, .replicas_n = 2, .leader = -1, .adding_n = 1};
    enum err e;
    bool hit;
    for (long n = 1, more = 1; more; n++) {
        struct partition_index x;
        partition_index_init(&x, 7);
        fault_alloc_arm(n, false);
        e = partition_index_add(&x, topic(1), 0, &p, true);
        hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(e, hit ? ERR_NOMEM : ERR_NONE);
        partition_index_close(&x);
        more = hit;
    }
}

TEST_MAIN(TEST(test_partition_set_holds_what_was_added), TEST(test_partition_set_iterates_in_order),
          TEST(test_partition_index_follows), TEST(test_partition_index_out_of_memory))
