/* AssignReplicasToDirs. */
#include "cluster.h"

struct assigning {
    struct assign_replicas_to_dirs_request_partition_data partition;
    struct assign_replicas_to_dirs_request_topic_data topic;
    struct assign_replicas_to_dirs_request_directory_data dir;
    struct assign_replicas_to_dirs_request req;
    struct assign_replicas_to_dirs_response resp;
};

static void assigning_init(struct cluster *c, struct assigning *a, int32_t broker, struct uuid dir)
{
    *a = (struct assigning){0};
    wire_default(&wire_assign_replicas_to_dirs_request, &a->req);
    a->req.broker_id = broker;
    a->req.broker_epoch = c->epoch[broker];
    a->req.directories.v = &a->dir;
    a->req.directories.n = 1;
    a->dir.id = dir;
    a->dir.topics.v = &a->topic;
    a->dir.topics.n = 1;
    a->topic.topic_id = image_topic_named(&c->f.image, STR_LIT("t"))->id;
    a->topic.partitions.v = &a->partition;
    a->topic.partitions.n = 1;
}

static int16_t run(struct cluster *c, struct assigning *a)
{
    struct test_op op = test_op_new();
    wire_default(&wire_assign_replicas_to_dirs_response, &a->resp);
    controller_assign_replicas_to_dirs(c->f.controller, &op.op, &a->req, &c->f.arena, &a->resp,
                                       c->f.now);
    const int16_t error = test_op_wait(&c->f, &op);
    if (error != K_NONE)
        return error;
    CU_ASSERT_EQUAL_FATAL(a->resp.directories.n, 1);
    CU_ASSERT_TRUE(uuid_eq(a->resp.directories.v[0].id, a->dir.id));
    CU_ASSERT_TRUE(uuid_eq(a->resp.directories.v[0].topics.v[0].topic_id, a->topic.topic_id));
    return a->resp.directories.v[0].topics.v[0].partitions.v[0].error_code;
}

/* Broker 3 has two directories, so that it chooses itself. */
static struct uuid open_two(struct cluster *c)
{
    cluster_open(c, 1, "1");
    struct broker_registration_request req = fixture_registration(&c->f, 3, 1);
    struct uuid dirs[2] = {req.log_dirs.v[0], req.log_dirs.v[0]};
    dirs[1].b[9] = 1;
    req.log_dirs.v = dirs;
    req.log_dirs.n = 2;
    CU_ASSERT_EQUAL(fixture_register(&c->f, &req, &c->epoch[3]), K_NONE);
    return dirs[1];
}

static void test_assign_moves(void)
{
    struct cluster c;
    struct assigning a;
    const struct uuid dir = open_two(&c);
    const struct image_partition *p = fixture_partition(&c.f, "t", 0);
    const struct uuid others = p->directories[0];
    assigning_init(&c, &a, 3, dir);
    CU_ASSERT_EQUAL(run(&c, &a), K_NONE);
    CU_ASSERT_TRUE(uuid_eq(p->directories[1], dir));
    CU_ASSERT_TRUE(uuid_eq(p->directories[0], others));
    CU_ASSERT_EQUAL(p->partition_epoch, 1);
    CU_ASSERT_EQUAL(p->leader_epoch, 0);
    const size_t before = c.f.raft.records.n;
    CU_ASSERT_EQUAL(run(&c, &a), K_NONE); /* again */
    CU_ASSERT_EQUAL(c.f.raft.records.n, before);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 234  ");
    fixture_close(&c.f);
}

/* In a directory that is lost, the replica is too. */
static void test_assign_to_a_lost_one(void)
{
    struct cluster c;
    struct assigning a;
    const struct uuid lost = {{[15] = IMAGE_DIRECTORY_LOST}}, stranger = {{9, 9, 9}};
    (void)open_two(&c);
    assigning_init(&c, &a, 2, lost);
    CU_ASSERT_EQUAL(run(&c, &a), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    CU_ASSERT_TRUE(uuid_eq(fixture_partition(&c.f, "t", 0)->directories[0], lost));
    assigning_init(&c, &a, 4, stranger);
    CU_ASSERT_EQUAL(run(&c, &a), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 3  ");
    fixture_close(&c.f);
}

static void test_assign_checks(void)
{
    struct cluster c;
    struct assigning a;
    const struct uuid dir = open_two(&c);
    c.epoch[5] = fixture_broker(&c.f, 5, 1, -1);
    assigning_init(&c, &a, 3, dir);
    a.req.broker_epoch++;
    CU_ASSERT_EQUAL(run(&c, &a), K_STALE_BROKER_EPOCH);
    a.req.broker_id = 6;
    CU_ASSERT_EQUAL(run(&c, &a), K_STALE_BROKER_EPOCH);
    assigning_init(&c, &a, 3, dir);
    a.topic.topic_id.b[0] ^= 1;
    CU_ASSERT_EQUAL(run(&c, &a), K_UNKNOWN_TOPIC_ID);
    assigning_init(&c, &a, 3, dir);
    a.partition.partition_index = 1;
    CU_ASSERT_EQUAL(run(&c, &a), K_UNKNOWN_TOPIC_OR_PARTITION);
    assigning_init(&c, &a, 5, image_broker(&c.f.image, 5)->log_dirs[0]);
    CU_ASSERT_EQUAL(run(&c, &a), K_NOT_LEADER_OR_FOLLOWER);
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(run(&c, &a), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

/* A disk was replaced: a replica in sync leads once it is known where it is, and not before. */
static void test_assign_lets_lead(void)
{
    struct cluster c;
    struct assigning a;
    struct uuid replaced = {{2, 8}};
    cluster_open(&c, 0, "1");
    struct broker_registration_request req = fixture_registration(&c.f, 2, 1);
    req.log_dirs.v = &replaced;
    CU_ASSERT_EQUAL(fixture_register(&c.f, &req, &c.epoch[2]), K_NONE);
    cluster_fence(&c, 3);
    cluster_fence(&c, 4);
    cluster_fence(&c, 2);
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/2 2  ");
    assigning_init(&c, &a, 2, replaced);
    CU_ASSERT_EQUAL(run(&c, &a), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/3 2  ");
    CU_ASSERT_TRUE(uuid_eq(fixture_partition(&c.f, "t", 0)->directories[0], replaced));
    fixture_close(&c.f);
}

/* With nobody in sync it stays as it was: whether the last known leader may lead is not decided by
 * where its log is. */
static void test_assign_elects_nobody_unclean(void)
{
    struct cluster c;
    struct assigning a;
    struct uuid replaced = {{2, 8}};
    cluster_open(&c, 1, "1");
    cluster_fence(&c, 3);
    cluster_fence(&c, 4);
    cluster_fence(&c, 2);
    fixture_pass(&c.f, 9000);
    struct broker_registration_request req = fixture_registration(&c.f, 2, 9);
    req.log_dirs.v = &replaced;
    CU_ASSERT_EQUAL(fixture_register(&c.f, &req, &c.epoch[2]), K_NONE);
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1   2");
    assigning_init(&c, &a, 2, replaced);
    CU_ASSERT_EQUAL(run(&c, &a), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1   2");
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_assign_moves), TEST(test_assign_to_a_lost_one), TEST(test_assign_checks),
          TEST(test_assign_lets_lead), TEST(test_assign_elects_nobody_unclean))
