/* AlterPartition: every check in Kafka's order, what the records and answers say, scenarios S16,
 * S17 and S19 of the replication rules as the controller sees them. */
#include "cluster.h"

struct altering {
    struct alter_partition_request_broker_state isr[6];
    int32_t ids[6];
    struct alter_partition_request_partition_data partition;
    struct alter_partition_request_topic_data topic;
    struct alter_partition_request req;
    struct alter_partition_response resp;
    int16_t version;
};

/* The leader of t asks for what it has. */
static void altering_init(struct cluster *c, struct altering *a)
{
    const struct image_partition *p = fixture_partition(&c->f, "t", 0);
    *a = (struct altering){.version = 3};
    wire_default(&wire_alter_partition_request, &a->req);
    a->req.broker_id = p->leader;
    a->req.broker_epoch = c->epoch[p->leader < 0 ? 0 : p->leader];
    a->req.topics.v = &a->topic;
    a->req.topics.n = 1;
    a->topic.topic_id = image_topic_named(&c->f.image, STR_LIT("t"))->id;
    a->topic.partitions.v = &a->partition;
    a->topic.partitions.n = 1;
    a->partition.leader_epoch = p->leader_epoch;
    a->partition.partition_epoch = p->partition_epoch;
    a->partition.leader_recovery_state = p->leader_recovery_state;
    a->partition.new_isr_with_epochs.v = a->isr;
    a->partition.new_isr.v = a->ids;
    for (int32_t i = 0; i < p->isr_n; i++) {
        a->isr[i] = (struct alter_partition_request_broker_state){p->isr[i], c->epoch[p->isr[i]]};
        a->ids[i] = p->isr[i];
    }
    a->partition.new_isr.n = a->partition.new_isr_with_epochs.n = p->isr_n;
}

static void altering_isr(struct cluster *c, struct altering *a, const char *ids)
{
    int32_t n = 0;
    for (; ids[n] != '\0'; n++) {
        a->ids[n] = ids[n] - '0';
        a->isr[n] = (struct alter_partition_request_broker_state){a->ids[n], c->epoch[a->ids[n]]};
    }
    a->partition.new_isr.n = a->partition.new_isr_with_epochs.n = n;
}

/* Top-level error, or the partition's. */
static int16_t alter(struct cluster *c, struct altering *a)
{
    struct test_op op = test_op_new();
    wire_default(&wire_alter_partition_response, &a->resp);
    controller_alter_partition(c->f.controller, &op.op, &a->req, a->version, &c->f.arena, &a->resp,
                               c->f.now);
    const int16_t error = test_op_wait(&c->f, &op);
    if (error != K_NONE)
        return error;
    CU_ASSERT_EQUAL_FATAL(a->resp.topics.n, 1);
    CU_ASSERT_TRUE(uuid_eq(a->resp.topics.v[0].topic_id, a->topic.topic_id));
    CU_ASSERT_EQUAL_FATAL(a->resp.topics.v[0].partitions.n, a->topic.partitions.n);
    return a->resp.topics.v[0].partitions.v[0].error_code;
}

static int16_t alter_isr(struct cluster *c, const char *ids)
{
    struct altering a;
    altering_init(c, &a);
    altering_isr(c, &a, ids);
    return alter(c, &a);
}

/* ------------------------------------------------------------------ what it does */

static void test_alter_partition_shrinks_and_grows(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 1, "2");
    for (int16_t version = 2; version <= 3; version++) {
        altering_init(&c, &a);
        altering_isr(&c, &a, "42");
        a.version = version;
        CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
        CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 42  ");
        const struct alter_partition_response_partition_data *out =
            &a.resp.topics.v[0].partitions.v[0];
        CU_ASSERT_EQUAL(out->leader_id, 2);
        CU_ASSERT_EQUAL(out->leader_epoch, 0);
        CU_ASSERT_EQUAL(out->partition_epoch, a.partition.partition_epoch + 1);
        CU_ASSERT_EQUAL(out->isr.n, 2);
        CU_ASSERT_EQUAL(out->isr.v[0], 4);
        CU_ASSERT_EQUAL(out->isr.v[1], 2);
        CU_ASSERT_EQUAL(out->leader_recovery_state, 0);
        CU_ASSERT_EQUAL(alter_isr(&c, "234"), K_NONE);
        CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 234  ");
    }
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->partition_epoch, 4);
    fixture_close(&c.f);
}

/* What changes nothing is answered, and leaves nothing behind. */
static void test_alter_partition_without_a_change(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 1, "2");
    const size_t before = c.f.raft.records.n;
    altering_init(&c, &a);
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    CU_ASSERT_EQUAL(a.resp.topics.v[0].partitions.v[0].isr.n, 3);
    CU_ASSERT_EQUAL(a.resp.topics.v[0].partitions.v[0].partition_epoch, 0);
    CU_ASSERT_EQUAL(c.f.raft.records.n, before);
    fixture_close(&c.f);
}

static void test_alter_partition_elr(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    CU_ASSERT_EQUAL(alter_isr(&c, "23"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23  "); /* at min ISR */
    CU_ASSERT_EQUAL(alter_isr(&c, "2"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 2 3 ");
    CU_ASSERT_EQUAL(alter_isr(&c, "24"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 24  ");
    fixture_close(&c.f);
}

/* The effective min ISR is at most the replicas there are. */
static void test_alter_partition_elr_of_few_replicas(void)
{
    struct cluster c;
    cluster_open(&c, 1, "5");
    CU_ASSERT_EQUAL(alter_isr(&c, "23"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23 4 ");
    CU_ASSERT_EQUAL(alter_isr(&c, "234"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 234  ");
    fixture_close(&c.f);
}

static void test_alter_partition_recovers(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 0, "1");
    cluster_config(&c.f, CONFIG_RESOURCE_TOPIC, "t", "unclean.leader.election.enable", "true");
    cluster_fence(&c, 3);
    cluster_fence(&c, 4);
    cluster_unfence(&c, 4);
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    const struct image_partition *p = fixture_partition(&c.f, "t", 0);
    CU_ASSERT_EQUAL(p->leader_recovery_state, 1);
    cluster_unfence(&c, 3);
    altering_init(&c, &a); /* still recovering: alone */
    altering_isr(&c, &a, "43");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST);
    altering_isr(&c, &a, "4");
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    CU_ASSERT_EQUAL(p->leader_recovery_state, 1);
    a.partition.leader_recovery_state = 0;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    CU_ASSERT_EQUAL(p->leader_recovery_state, 0);
    altering_init(&c, &a); /* and not back */
    a.partition.leader_recovery_state = 1;
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST);
    a.partition.leader_recovery_state = 2;
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST);
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ checks */

/* Each later check is violated too; taking the violations back one after another shows the order.
 */
static void test_alter_partition_checks_in_order(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 1, "1");
    cluster_fence(&c, 3); /* so that epochs can be behind */
    cluster_fence(&c, 2);
    cluster_unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    altering_init(&c, &a);
    const struct alter_partition_request_partition_data good = a.partition;
    const struct uuid id = a.topic.topic_id;
    a.req.broker_id = 3;
    a.req.broker_epoch = c.epoch[3] - 1;
    a.topic.topic_id.b[3] ^= 1;
    a.partition.partition_index = 1;
    a.partition.leader_epoch = good.leader_epoch + 1;
    a.partition.partition_epoch = good.partition_epoch + 1;
    altering_isr(&c, &a, "3377");
    a.partition.leader_recovery_state = 1;
    CU_ASSERT_EQUAL(alter(&c, &a), K_STALE_BROKER_EPOCH);
    CU_ASSERT_EQUAL(a.resp.topics.n, 0);
    a.req.broker_id = 6; /* not registered */
    CU_ASSERT_EQUAL(alter(&c, &a), K_STALE_BROKER_EPOCH);
    a.req.broker_id = 3;
    a.req.broker_epoch = c.epoch[3];
    CU_ASSERT_EQUAL(alter(&c, &a), K_UNKNOWN_TOPIC_ID);
    a.topic.topic_id = (struct uuid){{0}};
    CU_ASSERT_EQUAL(alter(&c, &a), K_UNKNOWN_TOPIC_ID);
    a.topic.topic_id = id;
    CU_ASSERT_EQUAL(alter(&c, &a), K_UNKNOWN_TOPIC_OR_PARTITION);
    a.partition.partition_index = -1;
    CU_ASSERT_EQUAL(alter(&c, &a), K_UNKNOWN_TOPIC_OR_PARTITION);
    a.partition.partition_index = 0;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NOT_CONTROLLER);
    a.partition.leader_epoch = good.leader_epoch - 1;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NOT_CONTROLLER);
    a.partition.partition_epoch = good.partition_epoch - 1;
    CU_ASSERT_EQUAL(alter(&c, &a), K_FENCED_LEADER_EPOCH);
    a.partition.leader_epoch = good.leader_epoch;
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* not the leader */
    a.req.broker_id = 4;
    a.req.broker_epoch = c.epoch[4];
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_UPDATE_VERSION);
    a.partition.partition_epoch = good.partition_epoch;
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* more than there are replicas */
    altering_isr(&c, &a, "47");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* no replica */
    altering_isr(&c, &a, "44");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* twice */
    altering_isr(&c, &a, "32");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* without the leader */
    altering_isr(&c, &a, "42");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* recovering, and not alone */
    altering_isr(&c, &a, "4");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INVALID_REQUEST); /* recovered before */
    a.partition.leader_recovery_state = 0;
    altering_isr(&c, &a, "42");
    CU_ASSERT_EQUAL(alter(&c, &a), K_INELIGIBLE_REPLICA); /* fenced */
    altering_isr(&c, &a, "43");
    a.isr[1].broker_epoch++;
    CU_ASSERT_EQUAL(alter(&c, &a), K_INELIGIBLE_REPLICA); /* another life */
    a.isr[1].broker_epoch = -1;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 43  ");
    fixture_close(&c.f);
}

/* Those that share an error, each alone. */
static void test_alter_partition_checks_alone(void)
{
    struct cluster c;
    struct altering a;
    static const char *const isrs[] = {"2344", "26", "22", "34", ""};
    cluster_open(&c, 1, "1");
    c.epoch[6] = fixture_broker(&c.f, 6, 1, -1);
    for (size_t i = 0; i < ARRAY_N(isrs); i++)
        CU_ASSERT_EQUAL(alter_isr(&c, isrs[i]), K_INVALID_REQUEST);
    altering_init(&c, &a);
    a.partition.leader_epoch++;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NOT_CONTROLLER);
    altering_init(&c, &a);
    a.partition.partition_epoch++;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NOT_CONTROLLER);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 234  ");
    fixture_close(&c.f);
}

/* Version 2 knows no epochs of members. */
static void test_alter_partition_without_epochs(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 1, "1");
    altering_init(&c, &a);
    altering_isr(&c, &a, "23");
    a.isr[1].broker_epoch++;
    a.version = 2;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 23  ");
    cluster_fence(&c, 4);
    altering_init(&c, &a);
    altering_isr(&c, &a, "234");
    a.version = 2;
    CU_ASSERT_EQUAL(alter(&c, &a), K_INELIGIBLE_REPLICA);
    fixture_close(&c.f);
}

/* The second entry of a partition meets what the first has changed. */
static void test_alter_partition_twice_in_a_request(void)
{
    struct cluster c;
    struct altering a;
    struct alter_partition_request_partition_data two[2];
    cluster_open(&c, 1, "1");
    altering_init(&c, &a);
    altering_isr(&c, &a, "23");
    two[0] = two[1] = a.partition;
    a.topic.partitions.v = two;
    a.topic.partitions.n = 2;
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    CU_ASSERT_EQUAL(a.resp.topics.v[0].partitions.v[1].error_code, K_INVALID_UPDATE_VERSION);
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->partition_epoch, 1);
    fixture_close(&c.f);
}

static void test_alter_partition_standby(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 1, "1");
    altering_init(&c, &a);
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(alter(&c, &a), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ scenarios */

/* S16, S19: a broker in controlled shutdown is out of the ISR, and a last fetch of its does not
 * bring it back. */
static void test_alter_partition_s16_shutting_down(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    CU_ASSERT_TRUE(fixture_beat(&c.f, 3, c.epoch[3], false, true).should_shut_down);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/0 24  "); /* it led nothing: at once */
    CU_ASSERT_EQUAL(alter_isr(&c, "243"), K_INELIGIBLE_REPLICA);
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    CU_ASSERT_TRUE(image_broker(&c.f.image, 2)->in_controlled_shutdown);
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->fenced);
    CU_ASSERT_EQUAL(alter_isr(&c, "42"), K_INELIGIBLE_REPLICA);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/1 4  ");
    fixture_close(&c.f);
}

/* S17: the leader saw another life of the broker catch up. */
static void test_alter_partition_s17_new_incarnation(void)
{
    struct cluster c;
    struct altering a;
    cluster_open(&c, 1, "1");
    cluster_fence(&c, 3);
    cluster_unfence(&c, 3);
    altering_init(&c, &a);
    altering_isr(&c, &a, "243"); /* with the epoch of its old life */
    fixture_pass(&c.f, 8000);
    cluster_unfence(&c, 2);
    cluster_unfence(&c, 4);
    fixture_pass(&c.f, 1000); /* it dies, its disk is replaced */
    cluster_restart(&c, 3, false);
    cluster_unfence(&c, 3);
    CU_ASSERT_EQUAL(alter(&c, &a), K_INELIGIBLE_REPLICA);
    a.isr[2].broker_epoch = c.epoch[3];
    CU_ASSERT_EQUAL(alter(&c, &a), K_NONE);
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_alter_partition_shrinks_and_grows), TEST(test_alter_partition_without_a_change),
          TEST(test_alter_partition_elr), TEST(test_alter_partition_elr_of_few_replicas),
          TEST(test_alter_partition_recovers), TEST(test_alter_partition_checks_in_order),
          TEST(test_alter_partition_checks_alone), TEST(test_alter_partition_without_epochs),
          TEST(test_alter_partition_twice_in_a_request), TEST(test_alter_partition_standby),
          TEST(test_alter_partition_s16_shutting_down),
          TEST(test_alter_partition_s17_new_incarnation))
