/* ElectLeaders, the periodic balance and the unclean sweep. */
#include "cluster.h"

struct electing {
    int32_t index;
    struct elect_leaders_request_topic_partitions topic;
    struct elect_leaders_request req;
    struct elect_leaders_response resp;
};

enum { PREFERRED = 0, UNCLEAN = 1 };

/* Of partition 0 of a topic; NULL: all there are. */
static int16_t run(struct cluster *c, struct electing *e, int8_t type, const char *name)
{
    struct test_op op = test_op_new();
    e->index = 0;
    wire_default(&wire_elect_leaders_request, &e->req);
    wire_default(&wire_elect_leaders_response, &e->resp);
    e->req.election_type = type;
    e->req.topic_partitions.n = -1;
    if (name != NULL) {
        e->topic.topic = str_of(name);
        e->topic.partitions.v = &e->index;
        e->topic.partitions.n = 1;
        e->req.topic_partitions.v = &e->topic;
        e->req.topic_partitions.n = 1;
    }
    controller_elect_leaders(c->f.controller, &op.op, &e->req, &c->f.arena, &e->resp, c->f.now);
    return test_op_wait(&c->f, &op);
}

static int16_t elect(struct cluster *c, int8_t type, const char *name)
{
    struct electing e;
    const int16_t error = run(c, &e, type, name);
    if (error != K_NONE)
        return error;
    CU_ASSERT_EQUAL_FATAL(e.resp.replica_election_results.n, 1);
    CU_ASSERT_TRUE(str_eq(e.resp.replica_election_results.v[0].topic, str_of(name)));
    CU_ASSERT_EQUAL_FATAL(e.resp.replica_election_results.v[0].partition_result.n, 1);
    const struct elect_leaders_response_partition_result *out =
        &e.resp.replica_election_results.v[0].partition_result.v[0];
    CU_ASSERT_EQUAL(out->error_message.n < 0, out->error_code == K_NONE);
    return out->error_code;
}

static void test_elect_preferred(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_ELECTION_NOT_NEEDED);
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 34  ");
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_PREFERRED_LEADER_NOT_AVAILABLE);
    cluster_unfence(&c, 2);
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_PREFERRED_LEADER_NOT_AVAILABLE);
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 342  ");
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_ELECTION_NOT_NEEDED);
    fixture_close(&c.f);
}

/* Who is only eligible does not lead while anybody is in sync. */
static void test_elect_preferred_not_from_the_elr(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    cluster_fence(&c, 4);
    cluster_fence(&c, 2);
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 3 2 ");
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_PREFERRED_LEADER_NOT_AVAILABLE);
    fixture_close(&c.f);
}

static void test_elect_unclean(void)
{
    struct cluster c;
    cluster_open(&c, 0, "1");
    CU_ASSERT_EQUAL(elect(&c, UNCLEAN, "t"), K_ELECTION_NOT_NEEDED);
    cluster_fence(&c, 3);
    cluster_fence(&c, 4);
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1 2  ");
    CU_ASSERT_EQUAL(elect(&c, UNCLEAN, "t"), K_ELIGIBLE_LEADERS_NOT_AVAILABLE);
    cluster_unfence(&c, 4);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1 2  "); /* the topic does not allow it */
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "t"), K_PREFERRED_LEADER_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(elect(&c, UNCLEAN, "t"), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/2 4  ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->leader_recovery_state, 1);
    fixture_close(&c.f);
}

static void test_elect_unknown(void)
{
    struct cluster c;
    struct electing e;
    struct test_op op = test_op_new();
    cluster_open(&c, 1, "1");
    CU_ASSERT_EQUAL(elect(&c, PREFERRED, "none"), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(run(&c, &e, 2, "t"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(run(&c, &e, PREFERRED, "t"), K_NONE);
    e.index = 1;
    controller_elect_leaders(c.f.controller, &op.op, &e.req, &c.f.arena, &e.resp, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[0].partition_result.v[0].error_code,
                    K_UNKNOWN_TOPIC_OR_PARTITION);
    op = test_op_new();
    e.req.timeout_ms = 0;
    controller_elect_leaders(c.f.controller, &op.op, &e.req, &c.f.arena, &e.resp, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_REQUEST_TIMED_OUT);
    op = test_op_new();
    e.req.topic_partitions.n = 0; /* nothing takes no time */
    controller_elect_leaders(c.f.controller, &op.op, &e.req, &c.f.arena, &e.resp, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(run(&c, &e, PREFERRED, "t"), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

/* All topics are named, of their partitions only those that an election was needed for. */
static void test_elect_all(void)
{
    struct cluster c;
    struct electing e;
    int32_t other[] = {3, 2}, third[] = {4, 2};
    cluster_open(&c, 1, "1");
    cluster_topic(&c, "u", other, 2);
    cluster_topic(&c, "v", third, 2);
    cluster_fence(&c, 2);
    CU_ASSERT_EQUAL(run(&c, &e, PREFERRED, NULL), K_NONE);
    CU_ASSERT_EQUAL_FATAL(e.resp.replica_election_results.n, 3);
    CU_ASSERT_EQUAL_FATAL(e.resp.replica_election_results.v[0].partition_result.n, 1);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[0].partition_result.v[0].error_code,
                    K_PREFERRED_LEADER_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[1].partition_result.n, 0);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[2].partition_result.n, 0);
    CU_ASSERT_TRUE(str_eq(e.resp.replica_election_results.v[1].topic, STR_LIT("u")));
    cluster_unfence(&c, 2);
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    CU_ASSERT_EQUAL(run(&c, &e, PREFERRED, NULL), K_NONE);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[0].partition_result.v[0].error_code, K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 342  ");
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "u"), "3/0 3  ");
    fixture_close(&c.f);
}

/* A partition that is named twice is elected once. */
static void test_elect_twice(void)
{
    struct cluster c;
    struct electing e;
    int32_t twice[] = {0, 0};
    struct test_op op = test_op_new();
    cluster_open(&c, 1, "1");
    cluster_fence(&c, 2);
    cluster_unfence(&c, 2);
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    CU_ASSERT_EQUAL(run(&c, &e, PREFERRED, "none"), K_NONE);
    e.topic.topic = STR_LIT("t");
    e.topic.partitions.v = twice;
    e.topic.partitions.n = 2;
    controller_elect_leaders(c.f.controller, &op.op, &e.req, &c.f.arena, &e.resp, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[0].partition_result.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(e.resp.replica_election_results.v[0].partition_result.v[1].error_code,
                    K_ELECTION_NOT_NEEDED);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 342  ");
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ balance.c */

static void test_balance_preferred(void)
{
    struct cluster c;
    cluster_open(&c, 1, "1");
    cluster_fence(&c, 2);
    cluster_unfence(&c, 2);
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    cluster_pass(&c, 299 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 342  ");
    cluster_pass(&c, 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 342  ");
    cluster_fence(&c, 2); /* and again */
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/3 34  ");
    cluster_pass(&c, 300 * 1000); /* not in sync yet */
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/3 34  ");
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    cluster_pass(&c, 300 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/4 342  ");
    fixture_close(&c.f);
}

static void test_balance_settings(void)
{
    struct cluster c;
    cluster_open_with(&c, 1, "1",
                      (const char *const[]){"auto.leader.rebalance.enable", "false", NULL});
    cluster_fence(&c, 2);
    cluster_unfence(&c, 2);
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    cluster_pass(&c, 600 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "3/1 342  ");
    fixture_close(&c.f);
    cluster_open_with(&c, 1, "1",
                      (const char *const[]){"leader.imbalance.check.interval.seconds", "20", NULL});
    cluster_fence(&c, 2);
    cluster_unfence(&c, 2);
    cluster_isr(&c, "t", (int32_t[]){3, 4, 2}, 3);
    cluster_pass(&c, 20 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 342  ");
    fixture_close(&c.f);
    cluster_open_with(&c, 1, "1",
                      (const char *const[]){"leader.imbalance.check.interval.seconds",
                                            "9223372036854775807", NULL});
    fixture_close(&c.f);
}

/* Nobody's partition may lead uncleanly until its topic says so; then at once. */
static void test_balance_unclean_by_a_change(void)
{
    struct cluster c;
    struct config_op set = {STR_LIT("unclean.leader.election.enable"), CONFIG_OPERATION_SET,
                            STR_LIT("true")};
    struct config_change change = {
        .type = CONFIG_RESOURCE_TOPIC, .name = STR_LIT("t"), .ops = &set, .ops_n = 1};
    struct test_op op = test_op_new();
    cluster_open(&c, 0, "1");
    cluster_fence(&c, 3);
    cluster_fence(&c, 4);
    cluster_fence(&c, 2);
    cluster_unfence(&c, 4);
    cluster_pass(&c, 301 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1 2  ");
    controller_alter_configs(c.f.controller, &op.op, &change, 1, false, &c.f.arena, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "4/2 4  ");
    fixture_close(&c.f);
}

/* A log directory that comes back at registration is no event of an election; the sweep is. */
static void test_balance_unclean_sweep(void)
{
    struct cluster c;
    struct partition_change_record r;
    cluster_open(&c, 0, "1");
    cluster_config(&c.f, CONFIG_RESOURCE_TOPIC, "t", "unclean.leader.election.enable", "true");
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = image_topic_named(&c.f.image, STR_LIT("t"))->id;
    r.partition_id = 0;
    r.isr.v = (int32_t[]){5};
    r.isr.n = 1;
    r.leader = -1;
    cluster_wrote(&c, &r); /* as if the elections before had all failed */
    cluster_pass(&c, 299 * 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "-1/1 5  ");
    cluster_pass(&c, 1000);
    CU_ASSERT_STRING_EQUAL(cluster_state(&c, "t"), "2/2 2  ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->leader_recovery_state, 1);
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_elect_preferred), TEST(test_elect_preferred_not_from_the_elr),
          TEST(test_elect_unclean), TEST(test_elect_unknown), TEST(test_elect_all),
          TEST(test_elect_twice), TEST(test_balance_preferred), TEST(test_balance_settings),
          TEST(test_balance_unclean_by_a_change), TEST(test_balance_unclean_sweep))
