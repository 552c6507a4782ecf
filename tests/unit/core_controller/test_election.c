/* Leaders, ISRs and ELRs as brokers come and go, three brokers at a time. */
#include "cluster.h"

static void test_election_order(void)
{
    struct cluster c;
    cluster_open(&c, 0, "1");
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 234  ");
    cluster_fence(&c, 3); /* a follower: the leader epoch stays */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 24  ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->partition_epoch, 1);
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    cluster_unfence(&c, 2); /* out of the ISR: it must catch up first */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    cluster_fence(&c, 4); /* ELR off: the last member stays */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/2 4  ");
    cluster_unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/2 4  ");
    cluster_unfence(&c, 4);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/3 4  ");
    fixture_close(&c.f);
}

static void test_election_elr(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    cluster_fence(&c, 4);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23  "); /* still at min ISR */
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 3 2 ");
    cluster_fence(&c, 3);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/2  23 3");
    cluster_unfence(&c, 4); /* neither in ISR nor ELR */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/2  23 3");
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/3 2 3 ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->leader_recovery_state, 0);
    fixture_close(&c.f);
}

/* S2, S28 of the replication rules: who may have lost data leaves ISR and ELR; an intact member of
 * the ELR leads. */
static void test_election_unclean_restart(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    cluster_fence(&c, 4);
    cluster_fence(&c, 3);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 2 3 ");
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1  23 2");
    fixture_pass(&c.f, 9000);
    cluster_restart(&c, 2, false);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1  3 2");
    cluster_unfence(&c, 2); /* its tail may be gone: not with an intact one known */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1  3 2");
    cluster_restart(&c, 3, true);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1  3 2");
    cluster_unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/2 3  ");
    fixture_close(&c.f);
}

/* All of the ELR lost: the last known leader, though unclean. S29: not while it is fenced. */
static void test_election_last_known_leader(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    cluster_fence(&c, 4);
    cluster_fence(&c, 3);
    cluster_fence(&c, 2);
    fixture_pass(&c.f, 9000);
    cluster_restart(&c, 3, false);
    cluster_restart(&c, 2, false);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1   2");
    cluster_unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1   2");
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 2  ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->leader_recovery_state, 1);
    fixture_close(&c.f);
}

/* A lossy restart while the old incarnation still counted as active: one step, not two. */
static void test_election_restart_of_a_leader(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    fixture_pass(&c.f, 8000);
    for (int32_t id = 3; id <= 4; id++)
        cluster_unfence(&c, id);
    controller_resign(c.f.controller);
    fixture_claim(&c.f);
    fixture_pass(&c.f, 8999);
    for (int32_t id = 3; id <= 4; id++)
        cluster_unfence(&c, id);
    fixture_pass(&c.f, 1); /* 2 is fenced now */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    cluster_restart(&c, 2, false);
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    fixture_close(&c.f);
}

static void test_election_unclean_topic(void)
{
    struct cluster c;
    cluster_open(&c, 0, "1");
    cluster_config(&c.f, CONFIG_RESOURCE_TOPIC, "t", "unclean.leader.election.enable", "true");
    cluster_fence(&c, 3);
    cluster_fence(&c, 4);
    cluster_unfence(&c, 4);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 2  ");
    cluster_fence(&c, 2); /* 4 is active, though not in sync */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->leader_recovery_state, 1);
    fixture_close(&c.f);
}

static void test_election_controlled_shutdown(void)
{
    struct cluster c;
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    cluster_open(&c, 1, "1");
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    CU_ASSERT_TRUE(image_broker(&c.f.image, 2)->in_controlled_shutdown);
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->fenced);
    /* not before every active broker has seen it */
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    cluster_unfence(&c, 3);
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 4;
    req.broker_epoch = c.epoch[4];
    req.current_metadata_offset = 3; /* far behind */
    CU_ASSERT_EQUAL(fixture_heartbeat(&c.f, &req, &resp), K_NONE);
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    cluster_unfence(&c, 4);
    CU_ASSERT_TRUE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    CU_ASSERT_TRUE(image_broker(&c.f.image, 2)->fenced);
    /* leaves nothing behind for its next life */
    fixture_pass(&c.f, 9000);
    for (int32_t id = 3; id <= 4; id++)
        cluster_unfence(&c, id);
    cluster_restart(&c, 2, true);
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->in_controlled_shutdown);
    fixture_close(&c.f);
}

/* Before 3.6 an ISR shrink raised the leader epoch, so that followers noticed. */
static void test_election_old_metadata_version(void)
{
    struct cluster c;
    fixture_init(&c.f);
    cluster_claim(&c, 11, 0);
    CU_ASSERT_EQUAL(c.f.raft.records.n, 1);
    for (int32_t id = 2; id <= 4; id++)
        c.epoch[id] = fixture_broker(&c.f, id, 1, -1);
    cluster_topic(&c, "t", cluster_all, 3);
    cluster_fence(&c, 4);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/1 23  ");
    fixture_close(&c.f);
}

/* A killed node whose broker still counts as active is not elected by the very event that says it
 * may have lost data; that waits until it is unfenced. */
static void test_election_killed_node(void)
{
    struct cluster c;
    int32_t one[] = {1};
    cluster_open(&c, 1, "1");
    c.epoch[1] = fixture_broker(&c.f, 1, 1, -1);
    cluster_topic(&c, "own", one, 1);
    cluster_config(&c.f, CONFIG_RESOURCE_TOPIC, "own", "unclean.leader.election.enable", "true");
    CU_ASSERT_FALSE(image_broker(&c.f.image, 1)->fenced);
    cluster_restart(&c, 1, false);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "own"), "-1/1   1");
    cluster_unfence(&c, 1);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "own"), "1/2 1  ");
    fixture_close(&c.f);
}

/* A broker whose disk was replaced has no replica to lead with. */
static void test_election_replaced_directory(void)
{
    struct cluster c;
    int32_t two[] = {2};
    cluster_open(&c, 1, "1");
    cluster_topic(&c, "own", two, 1);
    cluster_fence(&c, 2);
    fixture_pass(&c.f, 9000);
    struct broker_registration_request req = fixture_registration(&c.f, 2, 99);
    req.previous_broker_epoch = c.epoch[2];
    req.log_dirs.v[0].b[5] = 1;
    CU_ASSERT_EQUAL(fixture_register(&c.f, &req, &c.epoch[2]), K_NONE);
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "own"), "-1/1  2 2");
    fixture_close(&c.f);
}

static void test_election_lost_directory(void)
{
    struct cluster c;
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    cluster_open(&c, 1, "1");
    struct uuid dir = image_broker(&c.f.image, 2)->log_dirs[0];
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 2;
    req.broker_epoch = c.epoch[2];
    req.current_metadata_offset = c.f.image.next_offset;
    req.offline_log_dirs.v = &dir;
    req.offline_log_dirs.n = 1;
    CU_ASSERT_EQUAL(fixture_heartbeat(&c.f, &req, &resp), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->fenced);
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_election_order), TEST(test_election_elr), TEST(test_election_unclean_restart),
          TEST(test_election_last_known_leader), TEST(test_election_restart_of_a_leader),
          TEST(test_election_unclean_topic), TEST(test_election_controlled_shutdown),
          TEST(test_election_old_metadata_version), TEST(test_election_lost_directory),
          TEST(test_election_killed_node), TEST(test_election_replaced_directory))
