/* The ISR as its leader changes it (replication.md 3): node 1 leads, followers are played by hand,
 * the controller answers as told. The tests at the end have true followers. */
#include "hand_leader.h"

static int32_t both[] = {1, 2}, alone[] = {1}, three[] = {1, 2, 3};

/* ------------------------------------------------------------------ expanding */

static void test_isr_expands_on_a_fetch(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    const struct partition *p = cluster_part(&c, 1, t, 0);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(c.altered_n, 2);
    CU_ASSERT_EQUAL(c.altered[0].broker_id, 1);
    CU_ASSERT_EQUAL(c.altered[0].broker_epoch, 100);
    CU_ASSERT_EQUAL(c.altered[1].broker_id, 2);
    CU_ASSERT_EQUAL(c.altered[1].broker_epoch, 200);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    CU_ASSERT_EQUAL(p->isr_n, 2);
    CU_ASSERT_EQUAL(p->isr_state, ISR_COMMITTED);
    CU_ASSERT_EQUAL(p->partition_epoch, 1);
    CU_ASSERT_PTR_NULL(p->change);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1); /* it is in */
    CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 0), K_NONE);
    CU_ASSERT_EQUAL(p->isr_n, 3);
    CU_ASSERT_EQUAL(c.altered[1].broker_epoch, 200); /* of a member: what it last fetched with */
    cluster_end(&c);
}

/* A member that has not been heard yet is sent without an epoch: the controller does not check it.
 */
static void test_isr_epoch_of_an_unheard_member(void)
{
    struct cluster c;
    int32_t one_three[] = {1, 3};
    const struct uuid t = leader_of(&c, one_three, 2);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.altered_n, 3);
    CU_ASSERT_EQUAL(c.altered[1].broker_id, 3);
    CU_ASSERT_EQUAL(c.altered[1].broker_epoch, -1);
    cluster_end(&c);
}

static void test_isr_only_at_the_high_watermark(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 2);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 1), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 0);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 2), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_end(&c);
}

/* S5 (KAFKA-7128): 2 leads from 20 on with HW 10 (here: node 1 again); 3 at 10 may lack what the
 * leader before had committed. */
static void test_isr_s5_only_at_the_leader_epoch_start(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, both, 2);
    const struct partition *p = cluster_part(&c, 1, t, 0);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 10), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 10), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 10), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 10);
    cluster_change(&c, t, 0, 1, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p->leader_epoch, 1);
    CU_ASSERT_EQUAL(p->leader_epoch_start, 20);
    CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 10), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 0);
    CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 20), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_end(&c);
}

/* KAFKA-19996: under min ISR the high watermark stands still; having reached it is not enough. */
static void test_isr_frozen_wants_caught_up(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, both, 2);
    cluster_topic_config(&c, "t", "min.insync.replicas", "2");
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 1);
    cluster_change(&c, t, 0, -2, alone, 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, CLUSTER_LAG_MS + 100);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 1);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 1), K_NONE); /* at the HW, but two behind */
    CU_ASSERT_EQUAL(c.alters, 0);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 3), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 3);
    cluster_end(&c);
}

static void test_isr_only_of_eligible(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    cluster_change_broker(&c, 2, 1, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_change_broker(&c, 2, -1, 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_register(&c, 2, 250, NULL);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 200, t, 0, 0), K_NOT_LEADER_OR_FOLLOWER); /* its former life */
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 260, t, 0, 0), K_NONE); /* not registered yet */
    CU_ASSERT_EQUAL(c.alters, 0);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 250, t, 0, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_end(&c);
}

/* S13 (KAFKA-8836): the high watermark waits for one that is on its way in. */
static void test_isr_s13_pending_member_counts(void)
{
    struct cluster c;
    struct fix_produce p;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_PENDING_EXPAND);
    begin_produce(&c, &p, t);
    cluster_wait(&c, 500);
    CU_ASSERT_EQUAL(p.done, 0);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 0);
    c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p.done, 0);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 1), K_NONE);
    CU_ASSERT_EQUAL(p.done, 1);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
    cluster_end(&c);
}

/* S18 (KAFKA-15221): what is sent is the life whose log end was looked at, also when it is sent
 * again. */
static void test_isr_s18_sends_the_epoch_it_looked_at(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_hold = true;
    c.alter_top_error = K_STALE_BROKER_EPOCH;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.altered[1].broker_epoch, 200);
    cluster_register(&c, 2, 250, NULL);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 250, t, 0, 0), K_NONE);
    c.alter_hold = false;
    cluster_turn(&c);
    c.alter_top_error = K_NONE;
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_wait(&c, 100);
    CU_ASSERT_EQUAL(c.alters, 2);
    CU_ASSERT_EQUAL(c.altered[1].broker_epoch, 200); /* refused: 107 (S17) */
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 2));
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_COMMITTED);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 250, t, 0, 0), K_NONE);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* ------------------------------------------------------------------ shrinking */

static void test_isr_shrinks_after_the_lag(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, three, 3);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    for (int i = 0; i < 15; i++) {
        cluster_wait(&c, 2000);
        CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 1), K_NONE);
    }
    CU_ASSERT_EQUAL(c.alters, 0); /* 30 s: not yet over the limit */
    for (int i = 0; i < 8; i++) {
        cluster_wait(&c, 2000);
        CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 1), K_NONE);
    }
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 2));
    CU_ASSERT(cluster_in_sync(&c, t, 3));
    cluster_wait(&c, 100000);
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 2));
    CU_ASSERT(cluster_in_sync(&c, t, 3)); /* it has all: an idle partition drops nobody */
    cluster_end(&c);
}

/* S14 (KAFKA-13091): what waited for the one that is gone completes with the answer. */
static void test_isr_s14_shrink_completes_what_waits(void)
{
    struct cluster c;
    struct fix_produce p;
    const struct uuid t = leader_of(&c, both, 2);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    fix_produce(&c.nodes[1], &p, t, 0, -1, &fix_plain);
    p.op.timeout_ms = 1000000;
    cluster_turn(&c);
    c.alter_hold = true;
    cluster_wait(&c, CLUSTER_LAG_MS + CLUSTER_LAG_MS / 2 + 100);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_PENDING_SHRINK);
    CU_ASSERT_EQUAL(p.done, 0); /* not before it is committed */
    c.lazy[1] = true;           /* by the answer alone, without the metadata */
    c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p.done, 1);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 1);
    fix_produce_close(&p);
    c.lazy[1] = false;
    cluster_end(&c);
}

/* S20 (KAFKA-9672): a member that is not assigned. */
static void test_isr_s20_stray_member_leaves(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, three, 3);
    cluster_change_replicas(&c, t, 0, -2, three, 3, both, 2);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_n, 3);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    cluster_wait(&c, CLUSTER_LAG_MS);
    CU_ASSERT_EQUAL(c.altered_n, 2);
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 3));
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* More partitions than one slice of the task takes. */
static void test_isr_shrinks_all(void)
{
    struct cluster c;
    leader_begin(&c);
    const struct uuid t = cluster_topic(&c, "t", 150, both, 2, both, 2);
    cluster_turn(&c);
    for (int32_t i = 0; i < 150; i++)
        CU_ASSERT_EQUAL(fix_append(&c.nodes[1], t, i, 1), K_NONE);
    cluster_wait(&c, CLUSTER_LAG_MS * 2);
    for (int32_t i = 0; i < 150; i++)
        CU_ASSERT_EQUAL(cluster_part(&c, 1, t, i)->isr_n, 1);
    CU_ASSERT(c.alters <= 4); /* in batches; the controller of the test takes 64 at a time */
    cluster_end(&c);
}

/* ------------------------------------------------------------------ min.insync.replicas */

static void test_isr_too_small_for_acks_all(void)
{
    struct cluster c;
    struct fix_produce p;
    const struct uuid t = leader_of(&c, both, 2);
    cluster_topic_config(&c, "t", "min.insync.replicas", "2");
    cluster_turn(&c);
    begin_produce(&c, &p, t);
    CU_ASSERT_EQUAL(p.done, 0);
    cluster_change(&c, t, 0, -2, alone, 1);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p.done, 0); /* the high watermark stands still (KIP-966) */
    cluster_wait(&c, 1100);
    CU_ASSERT_EQUAL(p.part.error, K_REQUEST_TIMED_OUT);
    fix_produce_close(&p);
    begin_produce(&c, &p, t);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_ENOUGH_REPLICAS);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE); /* acks 1 does not ask */
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 0);
    cluster_end(&c);
}

/* A stale acknowledgement after a step-down (KAFKA-20634): leader again in a newer epoch. */
static void test_isr_produce_of_a_former_epoch(void)
{
    struct cluster c;
    struct fix_produce p;
    const struct uuid t = leader_of(&c, both, 2);
    begin_produce(&c, &p, t);
    cluster_change(&c, t, 0, 2, NULL, 0);
    cluster_change(&c, t, 0, 1, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_LEADER_OR_FOLLOWER);
    fix_produce_close(&p);
    cluster_end(&c);
}

/* S32: what was known of followers in an older epoch says nothing in a newer one, also when this
 * node led before and after. */
static void test_isr_s32_new_epoch_forgets(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, three, 3);
    int32_t one_three[] = {1, 3};
    cluster_topic_config(&c, "t", "min.insync.replicas", "2");
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 15), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 5), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 15), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 20), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 15);
    c.lazy[1] = true;
    cluster_change(&c, t, 0, 2, NULL, 0);
    cluster_change(&c, t, 0, 1, one_three, 2);
    cluster_follow(&c, 1); /* both at once */
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->leader_epoch, 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 15);
    CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 20), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 20);
    cluster_end(&c);
}

/* S23 (KAFKA-14078): a replica that is not assigned; a broker that does not lead. */
static void test_isr_s23_strangers(void)
{
    struct cluster c;
    leader_begin(&c);
    const struct uuid t = cluster_topic(&c, "t", 1, both, 2, both, 2);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(fetch_in(&c, 3, 300, t, 0, 0), K_UNKNOWN_LEADER_EPOCH);
    CU_ASSERT_EQUAL(fetch_in(&c, 3, 300, t, 0, -1), K_NOT_LEADER_OR_FOLLOWER);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 200, t, 0, 1), K_UNKNOWN_LEADER_EPOCH);
    cluster_change(&c, t, 0, 2, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 200, t, 0, 0), K_FENCED_LEADER_EPOCH);
    CU_ASSERT_EQUAL(fetch_in(&c, 2, 200, t, 0, 1), K_NOT_LEADER_OR_FOLLOWER);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ true followers */

/* A follower that dies leaves the ISR, comes back, catches up and joins again. */
static void test_isr_follower_dies_and_returns(void)
{
    struct cluster c;
    struct fix_produce p;
    cluster_begin(&c, 3);
    const struct uuid t = cluster_topic(&c, "t", 1, three, 3, three, 3);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 2), K_NONE);
    cluster_wait(&c, 1000);
    cluster_stop_node(&c, 3);
    fix_produce(&c.nodes[1], &p, t, 0, -1, &fix_plain);
    p.op.timeout_ms = 100000;
    cluster_wait(&c, CLUSTER_LAG_MS * 2);
    CU_ASSERT_EQUAL(p.done, 1);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 3));
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_start_node(&c, 3, 350);
    cluster_wait(&c, 1000);
    CU_ASSERT(cluster_in_sync(&c, t, 3));
    CU_ASSERT_EQUAL(cluster_leo(&c, 3, t), 3);
    CU_ASSERT(cluster_same(&c, 1, 3, "t-0"));
    cluster_end(&c);
}

/* Idle for long, then written to: nobody has left. */
static void test_isr_idle_followers_stay(void)
{
    struct cluster c;
    struct fix_produce p;
    cluster_begin(&c, 3);
    const struct uuid t = cluster_topic(&c, "t", 3, three, 3, three, 3);
    cluster_wait(&c, 120000);
    begin_produce(&c, &p, t);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_end(&c);
}

TEST_MAIN(TEST(test_isr_expands_on_a_fetch), TEST(test_isr_epoch_of_an_unheard_member),
          TEST(test_isr_only_at_the_high_watermark),
          TEST(test_isr_s5_only_at_the_leader_epoch_start), TEST(test_isr_frozen_wants_caught_up),
          TEST(test_isr_only_of_eligible), TEST(test_isr_s13_pending_member_counts),
          TEST(test_isr_s18_sends_the_epoch_it_looked_at), TEST(test_isr_shrinks_after_the_lag),
          TEST(test_isr_s14_shrink_completes_what_waits), TEST(test_isr_s20_stray_member_leaves),
          TEST(test_isr_shrinks_all), TEST(test_isr_too_small_for_acks_all),
          TEST(test_isr_produce_of_a_former_epoch), TEST(test_isr_s32_new_epoch_forgets),
          TEST(test_isr_s23_strangers), TEST(test_isr_follower_dies_and_returns),
          TEST(test_isr_idle_followers_stay))
