/* AlterPartitionReassignments, how they end, ListPartitionReassignments; S20 of the replication
 * rules. */
#include "cluster.h"
#include "topics.h"

/* "replicas +adding -removing", then the state: "345 +5 -2 2/0 234  " */
static const char *whole(struct cluster *c, const char *name)
{
    static char text[128];
    const struct image_partition *p = fixture_partition(&c->f, name, 0);
    size_t n = 0;
    for (int32_t i = 0; i < p->replicas_n; i++)
        text[n++] = (char)('0' + p->replicas[i]);
    text[n++] = ' ';
    text[n++] = '+';
    for (int32_t i = 0; i < p->adding_n; i++)
        text[n++] = (char)('0' + p->adding[i]);
    text[n++] = ' ';
    text[n++] = '-';
    for (int32_t i = 0; i < p->removing_n; i++)
        text[n++] = (char)('0' + p->removing[i]);
    text[n++] = ' ';
    strcpy(text + n, cluster_state(c, name));
    return text;
}

struct reassigning {
    int32_t ids[8];
    struct alter_partition_reassignments_request_reassignable_partition partition;
    struct alter_partition_reassignments_request_reassignable_topic topic;
    struct alter_partition_reassignments_request req;
    struct alter_partition_reassignments_response resp;
};

/* to: brokers; NULL cancels. */
static void reassigning_init(struct reassigning *r, const char *topic, const char *to)
{
    *r = (struct reassigning){0};
    wire_default(&wire_alter_partition_reassignments_request, &r->req);
    r->req.topics.v = &r->topic;
    r->req.topics.n = 1;
    r->topic.name = str_of(topic);
    r->topic.partitions.v = &r->partition;
    r->topic.partitions.n = 1;
    r->partition.replicas.v = r->ids;
    r->partition.replicas.n = to == NULL ? -1 : (int32_t)strlen(to);
    for (int32_t i = 0; i < r->partition.replicas.n; i++)
        r->ids[i] = to[i] - '0';
}

static int16_t run(struct cluster *c, struct reassigning *r)
{
    struct test_op op = test_op_new();
    wire_default(&wire_alter_partition_reassignments_response, &r->resp);
    controller_alter_reassignments(c->f.controller, &op.op, &r->req, &c->f.arena, &r->resp,
                                   c->f.now);
    const int16_t error = test_op_wait(&c->f, &op);
    if (error != K_NONE)
        return error;
    CU_ASSERT_EQUAL_FATAL(r->resp.responses.n, 1);
    CU_ASSERT_TRUE(str_eq(r->resp.responses.v[0].name, r->topic.name));
    CU_ASSERT_EQUAL_FATAL(r->resp.responses.v[0].partitions.n, r->topic.partitions.n);
    CU_ASSERT_EQUAL(r->resp.responses.v[0].partitions.v[0].partition_index,
                    r->partition.partition_index);
    if (r->resp.responses.v[0].partitions.v[0].error_code == K_NONE)
        CU_ASSERT(r->resp.responses.v[0].partitions.v[0].error_message.n < 0);
    return r->resp.responses.v[0].partitions.v[0].error_code;
}

static int16_t reassign(struct cluster *c, const char *topic, const char *to)
{
    struct reassigning r;
    reassigning_init(&r, topic, to);
    return run(c, &r);
}

/* The leader says who is in sync. */
static int16_t isr(struct cluster *c, const char *topic, const char *ids)
{
    const struct image_partition *p = fixture_partition(&c->f, topic, 0);
    struct alter_partition_request_broker_state members[8];
    struct alter_partition_request_partition_data part = {.leader_epoch = p->leader_epoch,
                                                          .partition_epoch = p->partition_epoch};
    struct alter_partition_request_topic_data data = {
        .topic_id = image_topic_named(&c->f.image, str_of(topic))->id, .partitions = {&part, 1}};
    struct alter_partition_request req = {
        .broker_id = p->leader, .broker_epoch = c->epoch[p->leader], .topics = {&data, 1}};
    struct alter_partition_response resp;
    struct test_op op = test_op_new();
    for (; *ids != '\0'; ids++)
        members[part.new_isr_with_epochs.n++] =
            (struct alter_partition_request_broker_state){*ids - '0', c->epoch[*ids - '0']};
    part.new_isr_with_epochs.v = members;
    wire_default(&wire_alter_partition_response, &resp);
    controller_alter_partition(c->f.controller, &op.op, &req, 3, &c->f.arena, &resp, c->f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c->f, &op), K_NONE);
    const struct alter_partition_response_partition_data *out = &resp.topics.v[0].partitions.v[0];
    if (out->error_code == K_NONE) {
        CU_ASSERT_EQUAL(out->leader_id, p->leader);
        CU_ASSERT_EQUAL(out->leader_epoch, p->leader_epoch);
        CU_ASSERT_EQUAL(out->partition_epoch, p->partition_epoch);
        CU_ASSERT_EQUAL_FATAL(out->isr.n, p->isr_n);
        for (int32_t i = 0; i < p->isr_n; i++)
            CU_ASSERT_EQUAL(out->isr.v[i], p->isr[i]);
    }
    return out->error_code;
}

/* Brokers 2 to 6. */
static void open_five(struct cluster *c, int16_t elr, const char *min_isr)
{
    cluster_open(c, elr, min_isr);
    c->epoch[5] = fixture_broker(&c->f, 5, 1, -1);
    c->epoch[6] = fixture_broker(&c->f, 6, 1, -1);
}

/* ------------------------------------------------------------------ changing */

static void test_reassign_moves(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    const struct image_partition *p = fixture_partition(&c.f, "t", 0);
    CU_ASSERT_EQUAL(reassign(&c, "t", "356"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "35624 +56 -24 2/0 234  ");
    CU_ASSERT_TRUE(uuid_eq(p->directories[1], image_broker(&c.f.image, 5)->log_dirs[0]));
    CU_ASSERT_TRUE(uuid_eq(p->directories[3], image_broker(&c.f.image, 2)->log_dirs[0]));
    CU_ASSERT_EQUAL(isr(&c, "t", "2345"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "35624 +56 -24 2/0 2345  ");
    /* the last one arrives: done, and the leader was one to go */
    CU_ASSERT_EQUAL(isr(&c, "t", "23456"), K_NEW_LEADER_ELECTED);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "356 + - 3/1 356  ");
    CU_ASSERT_EQUAL(p->partition_epoch, 3);
    CU_ASSERT_TRUE(uuid_eq(p->directories[2], image_broker(&c.f.image, 6)->log_dirs[0]));
    fixture_close(&c.f);
}

/* Who stays leader gets a new epoch all the same: those removed must stop. */
static void test_reassign_keeps_the_leader(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "t", "25"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "2534 +5 -34 2/0 234  ");
    /* fewer are added than removed: all that stay must be in sync */
    CU_ASSERT_EQUAL(isr(&c, "t", "2345"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "25 + - 2/1 25  ");
    fixture_close(&c.f);
}

static void test_reassign_needs_all_that_stay_when_fewer(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(isr(&c, "t", "24"), K_NONE);
    CU_ASSERT_EQUAL(reassign(&c, "t", "23"), K_NONE); /* only to remove 4 */
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "234 + -4 2/0 24  ");
    CU_ASSERT_EQUAL(isr(&c, "t", "2"), K_NONE); /* 3 is not in sync yet */
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "234 + -4 2/0 2  ");
    CU_ASSERT_EQUAL(isr(&c, "t", "23"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "23 + - 2/1 23  ");
    /* as many added as removed: only they need be */
    cluster_topic(&c, "u", (int32_t[]){2, 3, 4}, 3);
    CU_ASSERT_EQUAL(isr(&c, "u", "24"), K_NONE);
    CU_ASSERT_EQUAL(reassign(&c, "u", "235"), K_NONE);
    CU_ASSERT_EQUAL(isr(&c, "u", "245"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "u"), "235 + - 2/1 25  ");
    fixture_close(&c.f);
}

/* Nothing to wait for. */
static void test_reassign_at_once(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "t", "432"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "432 + - 2/0 234  ");
    CU_ASSERT_EQUAL(reassign(&c, "t", "43"), K_NONE); /* without the leader */
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "43 + - 4/1 34  ");
    const size_t before = c.f.raft.records.n;
    CU_ASSERT_EQUAL(reassign(&c, "t", "43"), K_NONE);
    CU_ASSERT_EQUAL(c.f.raft.records.n, before);
    CU_ASSERT_EQUAL(reassign(&c, "t", "432"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "432 +2 - 4/1 34  ");
    fixture_close(&c.f);
}

/* Another one takes its place; what it says holds for those that are there now. */
static void test_reassign_again_meanwhile(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "t", "345"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "3452 +5 -2 2/0 234  ");
    CU_ASSERT_EQUAL(reassign(&c, "t", "346"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "34625 +6 -25 2/0 234  ");
    CU_ASSERT_EQUAL(isr(&c, "t", "2346"), K_NEW_LEADER_ELECTED);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "346 + - 3/1 346  ");
    fixture_close(&c.f);
}

/* S20: who is no replica any more cannot be in the ISR; the event that shows it in sync takes it
 * out. */
static void test_reassign_s20_isr_within_the_replicas(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "t", "356"), K_NONE);
    CU_ASSERT_EQUAL(isr(&c, "t", "23456"), K_NEW_LEADER_ELECTED);
    CU_ASSERT_EQUAL(isr(&c, "t", "3562"), K_INVALID_REQUEST);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "356 + - 3/1 356  ");
    fixture_close(&c.f);
}

/* Nor in the ELR: it would lead with an empty log when it is a replica again. */
static void test_reassign_leaves_no_stranger_in_the_elr(void)
{
    struct cluster c;
    open_five(&c, 1, "3");
    cluster_fence(&c, 4);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "234 + - 2/0 23 4 ");
    CU_ASSERT_EQUAL(reassign(&c, "t", "235"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "2354 +5 -4 2/0 23 4 ");
    cluster_fence(&c, 3);
    CU_ASSERT_EQUAL(isr(&c, "t", "25"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "235 + - 2/1 25 3 ");
    fixture_close(&c.f);
}

/* The min ISR counts the replicas of partition 0, also while another has more. */
static void test_reassign_min_isr_of_partition_0(void)
{
    struct cluster c;
    struct reassigning r;
    struct create_partitions_request_create_partitions_assignment to = {{cluster_all, 3}};
    struct growing g;
    open_five(&c, 1, "5");
    growing_init(&g);
    growing_add(&g, "t", 2)->assignments.v = &to;
    g.topics[0].assignments.n = 1;
    CU_ASSERT_EQUAL(growing_run(&c.f, &g), K_NONE);
    reassigning_init(&r, "t", "256");
    r.partition.partition_index = 1;
    CU_ASSERT_EQUAL(run(&c, &r), K_NONE);
    const struct image_partition *p = fixture_partition(&c.f, "t", 1);
    CU_ASSERT_EQUAL(p->replicas_n, 5);
    cluster_fence(&c, 4);
    CU_ASSERT_EQUAL(p->isr_n, 2);
    CU_ASSERT_EQUAL(p->elr_n, 1);
    cluster_unfence(&c, 4);
    struct partition_change_record add;
    wire_default(&wire_partition_change_record, &add);
    add.topic_id = image_topic_named(&c.f.image, STR_LIT("t"))->id;
    add.partition_id = 1;
    add.isr.v = (int32_t[]){2, 3, 4, 5};
    add.isr.n = 4;
    add.eligible_leader_replicas.n = 0;
    cluster_wrote(&c, &add);
    cluster_fence(&c, 5);
    CU_ASSERT_EQUAL(p->isr_n, 3);
    CU_ASSERT_EQUAL(p->elr_n, 0);
    fixture_close(&c.f);
}

/* A broker that dies in the midst of it. */
static void test_reassign_and_fencing(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "t", "345"), K_NONE);
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "3452 +5 -2 3/1 34  ");
    CU_ASSERT_EQUAL(isr(&c, "t", "345"), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "345 + - 3/2 345  ");
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ cancelling */

static void test_cancel(void)
{
    struct cluster c;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "t", NULL), K_NO_REASSIGNMENT_IN_PROGRESS);
    CU_ASSERT_EQUAL(reassign(&c, "t", "356"), K_NONE);
    CU_ASSERT_EQUAL(isr(&c, "t", "2345"), K_NONE);
    CU_ASSERT_EQUAL(reassign(&c, "t", NULL), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "324 + - 2/1 234  ");
    CU_ASSERT_EQUAL(reassign(&c, "t", NULL), K_NO_REASSIGNMENT_IN_PROGRESS);
    fixture_close(&c.f);
}

/* Only added ones are in sync. */
static void test_cancel_unclean(void)
{
    struct cluster c;
    open_five(&c, 0, "1");
    cluster_topic(&c, "u", (int32_t[]){2}, 1);
    CU_ASSERT_EQUAL(reassign(&c, "u", "53"), K_NONE);
    CU_ASSERT_EQUAL(isr(&c, "u", "25"), K_NONE);
    cluster_fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(whole(&c, "u"), "532 +35 -2 5/1 5  ");
    CU_ASSERT_EQUAL(reassign(&c, "u", NULL), K_INVALID_REPLICA_ASSIGNMENT);
    cluster_config(&c.f, CONFIG_RESOURCE_TOPIC, "u", "unclean.leader.election.enable", "true");
    CU_ASSERT_EQUAL(reassign(&c, "u", NULL), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "u"), "2 + - -1/2 2  ");
    cluster_unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(whole(&c, "u"), "2 + - 2/3 2  ");
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ checks */

static void test_reassign_checks(void)
{
    struct cluster c;
    struct reassigning r;
    open_five(&c, 1, "1");
    CU_ASSERT_EQUAL(reassign(&c, "none", "2"), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(reassign(&c, "t", ""), K_INVALID_REPLICA_ASSIGNMENT);
    CU_ASSERT_EQUAL(reassign(&c, "t", "27"), K_INVALID_REPLICA_ASSIGNMENT);
    CU_ASSERT_EQUAL(reassign(&c, "t", "22"), K_INVALID_REPLICA_ASSIGNMENT);
    reassigning_init(&r, "t", "2");
    r.partition.partition_index = 1;
    CU_ASSERT_EQUAL(run(&c, &r), K_UNKNOWN_TOPIC_OR_PARTITION);
    r.req.timeout_ms = 0;
    CU_ASSERT_EQUAL(run(&c, &r), K_REQUEST_TIMED_OUT);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "234 + - 2/0 234  ");
    controller_resign(c.f.controller);
    CU_ASSERT_EQUAL(reassign(&c, "t", "2"), K_NOT_CONTROLLER);
    fixture_close(&c.f);
}

static void test_reassign_keeps_the_factor(void)
{
    struct cluster c;
    struct reassigning r;
    open_five(&c, 1, "1");
    reassigning_init(&r, "t", "23");
    r.req.allow_replication_factor_change = false;
    CU_ASSERT_EQUAL(run(&c, &r), K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_FALSE(r.resp.allow_replication_factor_change);
    reassigning_init(&r, "t", "345");
    r.req.allow_replication_factor_change = false;
    CU_ASSERT_EQUAL(run(&c, &r), K_NONE);
    CU_ASSERT_STRING_EQUAL(whole(&c, "t"), "3452 +5 -2 2/0 234  ");
    reassigning_init(&r, "t", "3456"); /* there are four now, and will be three */
    r.req.allow_replication_factor_change = false;
    CU_ASSERT_EQUAL(run(&c, &r), K_INVALID_REPLICATION_FACTOR);
    reassigning_init(&r, "t", "346");
    r.req.allow_replication_factor_change = false;
    CU_ASSERT_EQUAL(run(&c, &r), K_NONE);
    fixture_close(&c.f);
}

static void test_reassign_cordoned(void)
{
    struct cluster c;
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    open_five(&c, 1, "1");
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 5;
    req.broker_epoch = c.epoch[5];
    req.current_metadata_offset = c.f.image.next_offset;
    req.cordoned_log_dirs.v = image_broker(&c.f.image, 5)->log_dirs;
    req.cordoned_log_dirs.n = 1;
    CU_ASSERT_EQUAL(fixture_heartbeat(&c.f, &req, &resp), K_NONE);
    CU_ASSERT_EQUAL(reassign(&c, "t", "235"), K_INVALID_REPLICA_ASSIGNMENT);
    fixture_close(&c.f);
}

static void test_reassign_twice_in_a_request(void)
{
    struct cluster c;
    struct reassigning r;
    struct alter_partition_reassignments_request_reassignable_partition two[2];
    open_five(&c, 1, "1");
    reassigning_init(&r, "t", "235");
    two[0] = two[1] = r.partition;
    r.topic.partitions.v = two;
    r.topic.partitions.n = 2;
    CU_ASSERT_EQUAL(run(&c, &r), K_NONE);
    CU_ASSERT_EQUAL(r.resp.responses.v[0].partitions.v[1].error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->partition_epoch, 1);
    fixture_close(&c.f);
}

/* ------------------------------------------------------------------ listing */

static int32_t list(struct cluster *c, struct list_partition_reassignments_response *resp,
                    const char *topic)
{
    struct test_op op = test_op_new();
    static int32_t indexes[] = {0, 1, -1};
    struct list_partition_reassignments_request_list_partition_reassignments_topics t = {
        .name = str_of(topic == NULL ? "" : topic), .partition_indexes = {indexes, 3}};
    struct list_partition_reassignments_request req = {.topics = {&t, topic == NULL ? -1 : 1}};
    wire_default(&wire_list_partition_reassignments_response, resp);
    controller_list_reassignments(c->f.controller, &op.op, &req, &c->f.arena, resp, c->f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c->f, &op), K_NONE);
    return resp->topics.n;
}

static void test_list_reassignments(void)
{
    struct cluster c;
    struct list_partition_reassignments_response resp;
    open_five(&c, 1, "1");
    cluster_topic(&c, "u", (int32_t[]){2}, 1);
    CU_ASSERT_EQUAL(list(&c, &resp, NULL), 0);
    CU_ASSERT_EQUAL(reassign(&c, "t", "235"), K_NONE);
    CU_ASSERT_EQUAL(reassign(&c, "u", "6"), K_NONE);
    CU_ASSERT_EQUAL_FATAL(list(&c, &resp, NULL), 2);
    CU_ASSERT_TRUE(str_eq(resp.topics.v[0].name, STR_LIT("t")));
    CU_ASSERT_TRUE(str_eq(resp.topics.v[1].name, STR_LIT("u")));
    CU_ASSERT_EQUAL_FATAL(resp.topics.v[0].partitions.n, 1);
    const struct list_partition_reassignments_response_ongoing_partition_reassignment *p =
        &resp.topics.v[0].partitions.v[0];
    CU_ASSERT_EQUAL(p->partition_index, 0);
    CU_ASSERT_EQUAL_FATAL(p->replicas.n, 4);
    CU_ASSERT_EQUAL(p->replicas.v[2], 5);
    CU_ASSERT_EQUAL_FATAL(p->adding_replicas.n, 1);
    CU_ASSERT_EQUAL(p->adding_replicas.v[0], 5);
    CU_ASSERT_EQUAL_FATAL(p->removing_replicas.n, 1);
    CU_ASSERT_EQUAL(p->removing_replicas.v[0], 4);
    CU_ASSERT_EQUAL_FATAL(list(&c, &resp, "u"), 1);
    CU_ASSERT_EQUAL(resp.topics.v[0].partitions.n, 1);
    CU_ASSERT_EQUAL(list(&c, &resp, "none"), 0);
    CU_ASSERT_EQUAL(isr(&c, "u", "26"), K_NEW_LEADER_ELECTED);
    CU_ASSERT_EQUAL(list(&c, &resp, "u"), 0);
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_reassign_moves), TEST(test_reassign_keeps_the_leader),
          TEST(test_reassign_needs_all_that_stay_when_fewer), TEST(test_reassign_at_once),
          TEST(test_reassign_again_meanwhile), TEST(test_reassign_s20_isr_within_the_replicas),
          TEST(test_reassign_leaves_no_stranger_in_the_elr),
          TEST(test_reassign_min_isr_of_partition_0), TEST(test_reassign_and_fencing),
          TEST(test_cancel), TEST(test_cancel_unclean), TEST(test_reassign_checks),
          TEST(test_reassign_keeps_the_factor), TEST(test_reassign_cordoned),
          TEST(test_reassign_twice_in_a_request), TEST(test_list_reassignments))
