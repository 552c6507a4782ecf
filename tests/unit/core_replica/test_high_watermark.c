/* The high watermark and the followers' books by Kafka's general rules, with three replicas driven
 * by hand: no log, no disk, only what a leader knows. */
#include <stdlib.h>

#include "core/replica/inside.h"
#include "support/test.h"

enum { LAG_US = 30 * 1000 * 1000 };

static struct image image;
static struct replicas rs;
static struct image_broker brokers[4];

/* A leader, node 1, of replicas 1, 2, 3. */
static struct partition leader_of_three(const int32_t *isr, int32_t isr_n, int32_t min_isr)
{
    static int32_t replicas[] = {1, 2, 3};
    static int32_t isr_copy[3];
    static struct follower followers[2];
    struct partition p = {.rs = &rs, .leading = true, .leader = 1, .leader_epoch = 5};
    memset(&rs, 0, sizeof rs);
    rs.node_id = 1;
    rs.image = &image;
    memcpy(isr_copy, isr, (size_t)isr_n * sizeof *isr);
    followers[0] = (struct follower){.id = 2, .end_offset = -1, .broker_epoch = -1};
    followers[1] = (struct follower){.id = 3, .end_offset = -1, .broker_epoch = -1};
    p.replicas = replicas;
    p.replicas_n = 3;
    p.isr = isr_copy;
    p.isr_n = isr_n;
    p.followers = followers;
    p.followers_n = 2;
    p.config.min_insync_replicas = min_isr;
    return p;
}

static void cluster_begin(void)
{
    image_init(&image, 1);
    for (int32_t id = 1; id <= 3; id++) {
        brokers[id] = (struct image_broker){.id = id, .epoch = id * 100};
        CU_ASSERT_EQUAL_FATAL(map_put(&image.brokers, &id, sizeof id, &brokers[id]), ERR_NONE);
    }
}

static void cluster_end(void)
{
    for (int32_t id = 1; id <= 3; id++)
        map_remove(&image.brokers, &id, sizeof id);
    image_close(&image);
}

/* Lets a follower's last fetch be so long ago that it counts as caught up no more. */
static const int64_t late = (int64_t)LAG_US * 10;

static void test_high_watermark_is_the_slowest_of_the_isr(void)
{
    const int32_t isr[] = {1, 2, 3};
    cluster_begin();
    struct partition p = leader_of_three(isr, 3, 1);
    p.followers[0].end_offset = 7;
    p.followers[1].end_offset = 5;
    CU_ASSERT(partition_advance_high_watermark(&p, 10, late, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 5);
    p.followers[1].end_offset = 3; /* never back in one tenure */
    CU_ASSERT_FALSE(partition_advance_high_watermark(&p, 10, late, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 5);
    p.followers[0].end_offset = p.followers[1].end_offset = 12; /* our own end bounds it */
    CU_ASSERT(partition_advance_high_watermark(&p, 10, late, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 10);
    cluster_end();
}

static void test_high_watermark_waits_for_a_follower_never_heard_of(void)
{
    const int32_t isr[] = {1, 2};
    cluster_begin();
    struct partition p = leader_of_three(isr, 2, 1);
    CU_ASSERT_FALSE(partition_advance_high_watermark(&p, 10, late, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 0);
    cluster_end();
}

static void test_high_watermark_freezes_under_min_isr(void)
{
    const int32_t isr[] = {1};
    cluster_begin();
    struct partition p = leader_of_three(isr, 1, 2);
    CU_ASSERT_FALSE(partition_advance_high_watermark(&p, 10, late, LAG_US));
    p.config.min_insync_replicas = 1;
    CU_ASSERT(partition_advance_high_watermark(&p, 10, late, LAG_US));
    p.config.min_insync_replicas = 5; /* more than there are replicas: three */
    CU_ASSERT_EQUAL(partition_effective_min_isr(&p), 3);
    cluster_end();
}

/* S5 (KAFKA-7128): 1 was the leader with HW 20, 2 leads now at 20 with HW 10, 3 stands at 10
 * outside the ISR. What 1 had exposed must not be undone by letting 3 in below 20: the HW passes 10
 * only with what 3, caught up or not, is not counted for, and 3's end is under the leader epoch's
 * start. */
static void test_high_watermark_s5(void)
{
    const int32_t isr[] = {1}; /* node 1 plays the new leader here; 2 is dead, 3 lags */
    cluster_begin();
    struct partition p = leader_of_three(isr, 1, 1);
    brokers[2].fenced = true;
    p.high_watermark = 10;
    p.leader_epoch_start = 20;
    follower_fetched(&p.followers[1], 10, 0, 20, 300, late);
    CU_ASSERT(p.followers[1].end_offset < p.leader_epoch_start); /* the rule of expansion */
    CU_ASSERT(partition_advance_high_watermark(&p, 20, late + LAG_US + 1, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 20);
    cluster_end();
}

/* S13 (KAFKA-8836): while 2 is on its way in, the HW already waits for it. */
static void test_high_watermark_s13(void)
{
    const int32_t isr[] = {1};
    cluster_begin();
    struct partition p = leader_of_three(isr, 1, 1);
    p.high_watermark = 9;
    p.isr_state = ISR_PENDING_EXPAND;
    p.pending_member = 2;
    p.followers[0].end_offset = 9;
    CU_ASSERT_EQUAL(partition_maximal_isr_n(&p), 2);
    CU_ASSERT_FALSE(
        partition_advance_high_watermark(&p, 10, late, LAG_US)); /* offset 9 is ours alone */
    p.followers[0].end_offset = 10;
    CU_ASSERT(partition_advance_high_watermark(&p, 10, late, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 10);
    cluster_end();
}

/* S19 (KAFKA-15021): 2 left the ISR by controlled shutdown, is silent, but "caught up" by time. */
static void test_high_watermark_s19(void)
{
    const int32_t isr[] = {1, 3};
    cluster_begin();
    struct partition p = leader_of_three(isr, 2, 1);
    const int64_t now = late;
    p.followers[0].end_offset = 4;
    p.followers[0].last_caught_up_us = now;
    p.followers[1].end_offset = 10;
    brokers[2].in_controlled_shutdown = true;
    CU_ASSERT_FALSE(partition_eligible(&p, &p.followers[0]));
    CU_ASSERT(partition_advance_high_watermark(&p, 10, now, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 10);
    cluster_end();
}

static void test_high_watermark_counts_caught_up_outsiders(void)
{
    const int32_t isr[] = {1, 3};
    cluster_begin();
    struct partition p = leader_of_three(isr, 2, 1);
    p.followers[0].end_offset = 4;
    p.followers[0].last_caught_up_us = late;
    p.followers[1].end_offset = 10;
    CU_ASSERT(partition_advance_high_watermark(&p, 10, late, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 4); /* it is about to join */
    CU_ASSERT(partition_advance_high_watermark(&p, 10, late + LAG_US + 1, LAG_US));
    CU_ASSERT_EQUAL(p.high_watermark, 10); /* it lags: no more */
    cluster_end();
}

static void test_eligible_by_broker_epoch(void)
{
    const int32_t isr[] = {1};
    cluster_begin();
    struct partition p = leader_of_three(isr, 1, 1);
    struct follower *f = &p.followers[0];
    CU_ASSERT(partition_eligible(&p, f)); /* -1: an older fetch version */
    f->broker_epoch = 200;
    CU_ASSERT(partition_eligible(&p, f));
    f->broker_epoch = 199; /* of a former incarnation (KAFKA-14139) */
    CU_ASSERT_FALSE(partition_eligible(&p, f));
    brokers[2].fenced = true;
    f->broker_epoch = 200;
    CU_ASSERT_FALSE(partition_eligible(&p, f));
    cluster_end();
}

/* KIP-16's table. */
static void test_follower_caught_up_books(void)
{
    struct follower f = {.id = 2, .end_offset = -1, .broker_epoch = -1};
    follower_fetched(&f, 5, 0, 10, 7, 1000); /* behind, nothing known before */
    CU_ASSERT_EQUAL(f.last_caught_up_us, 0);
    CU_ASSERT(f.end_offset == 5 && f.last_fetch_leader_end == 10 && f.last_fetch_us == 1000);
    follower_fetched(&f, 10, 0, 20, 7, 2000); /* reached our end of its previous fetch */
    CU_ASSERT_EQUAL(f.last_caught_up_us, 1000);
    follower_fetched(&f, 20, 0, 20, 7, 3000); /* asks for our end */
    CU_ASSERT_EQUAL(f.last_caught_up_us, 3000);
    follower_fetched(&f, 15, 0, 30, 7, 4000); /* went back */
    CU_ASSERT_EQUAL(f.last_caught_up_us, 3000);
    CU_ASSERT_EQUAL(f.last_fetch_leader_end, 30);
    CU_ASSERT(follower_caught_up(&f, 30, 3000 + LAG_US, LAG_US));
    CU_ASSERT_FALSE(follower_caught_up(&f, 30, 3000 + LAG_US + 1, LAG_US));
    CU_ASSERT(follower_caught_up(&f, 15, late, LAG_US)); /* an idle partition drops nobody */
}

TEST_MAIN(TEST(test_high_watermark_is_the_slowest_of_the_isr),
          TEST(test_high_watermark_waits_for_a_follower_never_heard_of),
          TEST(test_high_watermark_freezes_under_min_isr), TEST(test_high_watermark_s5),
          TEST(test_high_watermark_s13), TEST(test_high_watermark_s19),
          TEST(test_high_watermark_counts_caught_up_outsiders), TEST(test_eligible_by_broker_epoch),
          TEST(test_follower_caught_up_books))
