/* Reading from followers (KIP-392): whom a leader sends where, and what a follower serves. */
#include "cluster.h"

static int32_t three[] = {1, 2, 3}, one_two[] = {1, 2};
static const char selector[] = "org.apache.kafka.common.replica.RackAwareReplicaSelector";

/* Node 1 in rack a, 2 and 3 in rack b; five records, in sync everywhere. */
static struct uuid begin(struct cluster *c, const char *class_name)
{
    cluster_prepare(c, 3);
    for (int32_t i = 1; i <= 3; i++) {
        if (class_name != NULL)
            fix_set(&c->nodes[i], "replica.selector.class", class_name);
        cluster_register(c, i, 100 * i, i == 1 ? "a" : "b");
    }
    cluster_start(c);
    const struct uuid t = cluster_topic(c, "t", 1, three, 3, three, 3);
    cluster_turn(c);
    CU_ASSERT_EQUAL(cluster_append(c, 1, t, 5), K_NONE);
    cluster_wait(c, 1200);
    CU_ASSERT_EQUAL(cluster_hw(c, 3, t), 5);
    return t;
}

static const struct fetch_response_partition_data *ask(struct cluster *c, struct fix_fetch *q,
                                                       int32_t node, struct uuid t, int64_t offset,
                                                       const char *rack)
{
    fix_fetch_init(q);
    q->request.rack_id = str_of(rack);
    q->request.session_epoch = 0;
    q->request.max_wait_ms = 2000;
    fix_ask(q, t, 0, offset);
    cluster_fetch(c, node, q);
    return q->done == 1 ? fix_answer(q, t, 0) : NULL;
}

static int32_t preferred(struct cluster *c, int32_t node, struct uuid t, int64_t offset,
                         const char *rack)
{
    struct fix_fetch q;
    const struct fetch_response_partition_data *a = ask(c, &q, node, t, offset, rack);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    const int32_t id = a->preferred_read_replica;
    CU_ASSERT_EQUAL(a->error_code, K_NONE);
    CU_ASSERT_EQUAL(a->high_watermark, 5);
    CU_ASSERT_EQUAL(a->records.n > 0, id < 0); /* it is sent away, or served */
    fix_fetch_close(&q);
    return id;
}

static void test_preferred_in_the_readers_rack(void)
{
    struct cluster c;
    const struct uuid t = begin(&c, selector);
    const int32_t id = preferred(&c, 1, t, 0, "b");
    CU_ASSERT(id == 2 || id == 3);
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "a"), -1);
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "c"), -1);
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, ""), -1);
    CU_ASSERT_EQUAL(preferred(&c, 2, t, 0, "a"), -1); /* a follower sends nobody away */
    cluster_change(&c, t, 0, 2, NULL, 0);
    cluster_wait(&c, 1200);
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "b"), -1); /* nor does a former leader */
    cluster_end(&c);
}

static void test_preferred_only_with_a_selector(void)
{
    struct cluster c;
    const struct uuid t = begin(&c, NULL);
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "b"), -1);
    cluster_end(&c);
}

/* The one with most, in sync, alive, and with what is asked for. */
static void test_preferred_has_most(void)
{
    struct cluster c;
    const struct uuid t = begin(&c, selector);
    struct partition *p = cluster_part(&c, 1, t, 0);
    p->followers[0].end_offset = 4;
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "b"), 3);
    p->followers[0].end_offset = 5;
    p->followers[0].last_caught_up_us = p->followers[1].last_caught_up_us + 1;
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "b"), 2);
    p->followers[1].last_caught_up_us = p->followers[0].last_caught_up_us + 1;
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "b"), 3);
    p->followers[0].last_caught_up_us = p->followers[1].last_caught_up_us + 1;
    p->followers[0].log_start = 2;
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 1, "b"), 3);
    p->followers[0].log_start = 0;
    cluster_change_broker(&c, 2, 1, 0);
    cluster_change(&c, t, 0, -2, one_two, 2);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(preferred(&c, 1, t, 0, "b"), -1);
    cluster_end(&c);
}

/* At the end there is nothing to read, and still it is told where to ask; once more than once. */
static void test_preferred_in_a_session(void)
{
    struct cluster c;
    struct fix_fetch q;
    const struct uuid t = begin(&c, selector);
    const struct fetch_response_partition_data *a = ask(&c, &q, 1, t, 5, "b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT(a->preferred_read_replica >= 2);
    const int32_t id = q.response.session_id;
    CU_ASSERT(id != 0);
    fix_fetch_close(&q);
    for (int32_t epoch = 1; epoch < 3; epoch++) {
        fix_fetch_init(&q);
        q.request.rack_id = STR_LIT("b");
        q.request.session_id = id;
        q.request.session_epoch = epoch;
        cluster_fetch(&c, 1, &q);
        CU_ASSERT_EQUAL_FATAL(q.done, 1);
        CU_ASSERT_EQUAL(fix_answered(&q), 1);
        fix_fetch_close(&q);
    }
    cluster_end(&c);
}

/* ------------------------------------------------------------------ at a follower */

static void test_preferred_follower_serves_to_its_high_watermark(void)
{
    struct cluster c;
    struct fix_fetch q;
    const struct uuid t = begin(&c, selector);
    c.hold[3] = true; /* so that what comes is not committed */
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 2), K_NONE);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 7);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 5);
    const struct fetch_response_partition_data *a = ask(&c, &q, 2, t, 5, "b");
    CU_ASSERT_PTR_NULL(a); /* it waits */
    c.hold[3] = false;
    cluster_wait(&c, 400);
    for (int i = 0; i < 10 && q.done == 0; i++)
        cluster_wait(&c, 100);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    a = fix_answer(&q, t, 0);
    CU_ASSERT_EQUAL(a->error_code, K_NONE);
    CU_ASSERT_EQUAL(a->high_watermark, 7);
    CU_ASSERT(a->records.n > 0); /* the rise of its high watermark woke it */
    fix_fetch_close(&q);
    a = ask(&c, &q, 2, t, 8, "b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_EQUAL(a->error_code, K_OFFSET_OUT_OF_RANGE);
    fix_fetch_close(&q);
    cluster_end(&c);
}

/* Consumers of before KIP-392 read from the leader alone, and so do followers. */
static void test_preferred_follower_refuses_others(void)
{
    struct cluster c;
    struct fix_fetch q;
    const struct uuid t = begin(&c, selector);
    fix_fetch_init(&q);
    q.op.version = 10;
    fix_ask(&q, t, 0, 0);
    q.topics[0].topic = STR_LIT("t");
    q.topics[0].topic_id = (struct uuid){{0}};
    cluster_fetch(&c, 2, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(q.response.responses.v[0].partitions.v[0].error_code, K_NOT_LEADER_OR_FOLLOWER);
    fix_fetch_close(&q);
    fix_fetch_init(&q);
    q.op.version = 18;
    q.request.replica_state.replica_id = 3;
    q.request.replica_state.replica_epoch = 300;
    fix_ask(&q, t, 0, 0);
    cluster_fetch(&c, 2, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NOT_LEADER_OR_FOLLOWER);
    fix_fetch_close(&q);
    cluster_end(&c);
}

/* A reader that waits at a follower hears that the leader epoch it knows is over. */
static void test_preferred_follower_wakes_at_a_new_epoch(void)
{
    struct cluster c;
    struct fix_fetch q;
    const struct uuid t = begin(&c, selector);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 5)->current_leader_epoch = 0;
    cluster_fetch(&c, 2, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    cluster_change(&c, t, 0, 3, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_FENCED_LEADER_EPOCH);
    fix_fetch_close(&q);
    cluster_end(&c);
}

TEST_MAIN(TEST(test_preferred_in_the_readers_rack), TEST(test_preferred_only_with_a_selector),
          TEST(test_preferred_has_most), TEST(test_preferred_in_a_session),
          TEST(test_preferred_follower_serves_to_its_high_watermark),
          TEST(test_preferred_follower_refuses_others),
          TEST(test_preferred_follower_wakes_at_a_new_epoch))
