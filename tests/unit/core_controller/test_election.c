/* Leaders, ISRs and ELRs as brokers come and go, three brokers at a time. */
#include "fake_raft.h"

struct cluster {
    struct fixture f;
    int64_t epoch[5]; /* by broker id */
};

static void level(struct fixture *f, const char *name, int16_t value)
{
    const struct feature_level_record r = {str_of(name), value};
    CU_ASSERT_EQUAL_FATAL(record_list_add(&f->raft.records, &msg_feature_level_record, 0, &r),
                          ERR_NONE);
}

static void config(struct fixture *f, int8_t type, const char *name, const char *key,
                   const char *value)
{
    const struct config_record r = {type, str_of(name), str_of(key), str_of(value)};
    CU_ASSERT_EQUAL_FATAL(record_list_add(&f->raft.records, &msg_config_record, 0, &r), ERR_NONE);
    fixture_commit(f);
    controller_resign(f->controller); /* it reads what others wrote */
    fixture_claim(f);
}

/* A topic of one partition with these replicas, the first leading. */
static void topic(struct cluster *c, const char *name, int32_t *replicas, int32_t n)
{
    struct create_topics_request_creatable_replica_assignment assignment = {.partition_index = 0};
    struct create_topics_request_creatable_topic t = {
        .name = str_of(name), .num_partitions = -1, .replication_factor = -1};
    struct create_topics_request req;
    struct create_topics_response resp;
    struct test_op op = test_op_new();
    assignment.broker_ids.v = replicas;
    assignment.broker_ids.n = n;
    t.assignments.v = &assignment;
    t.assignments.n = 1;
    wire_default(&wire_create_topics_request, &req);
    wire_default(&wire_create_topics_response, &resp);
    req.topics.v = &t;
    req.topics.n = 1;
    controller_create_topics(c->f.controller, &op.op, &req, 7, &c->f.arena, &resp, c->f.now);
    CU_ASSERT_EQUAL_FATAL(test_op_wait(&c->f, &op), K_NONE);
    CU_ASSERT_EQUAL_FATAL(resp.topics.v[0].error_code, K_NONE);
}

static int32_t all[] = {2, 3, 4};

/* Brokers 2, 3, 4, topic t on all three with min.insync.replicas as given. */
static void cluster_open(struct cluster *c, int16_t elr, const char *min_isr)
{
    fixture_init(&c->f);
    level(&c->f, "metadata.version", 33);
    if (elr > 0)
        level(&c->f, "eligible.leader.replicas.version", elr);
    fixture_start(&c->f);
    c->f.raft.base = 0;
    fixture_commit(&c->f);
    fixture_claim(&c->f);
    for (int32_t id = 2; id <= 4; id++)
        c->epoch[id] = fixture_broker(&c->f, id, 1, -1);
    config(&c->f, CONFIG_RESOURCE_BROKER, "", "min.insync.replicas", min_isr);
    topic(c, "t", all, 3);
}

static void fence(struct cluster *c, int32_t id)
{
    CU_ASSERT_TRUE(fixture_beat(&c->f, id, c->epoch[id], true, false).is_fenced);
}

static void unfence(struct cluster *c, int32_t id)
{
    CU_ASSERT_FALSE(fixture_beat(&c->f, id, c->epoch[id], false, false).is_fenced);
}

/* A new incarnation registers; still fenced. */
static void restart(struct cluster *c, int32_t id, bool clean)
{
    static uint8_t incarnation = 100;
    struct broker_registration_request req = fixture_registration(&c->f, id, incarnation++);
    req.previous_broker_epoch = clean ? c->epoch[id] : -1;
    CU_ASSERT_EQUAL(fixture_register(&c->f, &req, &c->epoch[id]), K_NONE);
}

/* "leader/epoch isr elr last": "2/0 234  " */
static const char *state(struct cluster *c, const char *name)
{
    static char text[64];
    const struct image_partition *p = fixture_partition(&c->f, name, 0);
    size_t n = (size_t)snprintf(text, sizeof text, "%d/%d ", p->leader, p->leader_epoch);
    for (int32_t i = 0; i < p->isr_n; i++)
        text[n++] = (char)('0' + p->isr[i]);
    text[n++] = ' ';
    for (int32_t i = 0; i < p->elr_n; i++)
        text[n++] = (char)('0' + p->elr[i]);
    text[n++] = ' ';
    for (int32_t i = 0; i < p->last_known_elr_n; i++)
        text[n++] = (char)('0' + p->last_known_elr[i]);
    text[n] = '\0';
    return text;
}

static void test_election_order(void)
{
    struct cluster c;
    cluster_open(&c, 0, "1");
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/0 234  ");
    fence(&c, 3); /* a follower: the leader epoch stays */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/0 24  ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->partition_epoch, 1);
    fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "4/1 4  ");
    unfence(&c, 2); /* out of the ISR: it must catch up first */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "4/1 4  ");
    fence(&c, 4); /* ELR off: the last member stays */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/2 4  ");
    unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/2 4  ");
    unfence(&c, 4);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "4/3 4  ");
    fixture_close(&c.f);
}

static void test_election_elr(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    fence(&c, 4);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/0 23  "); /* still at min ISR */
    fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "3/1 3 2 ");
    fence(&c, 3);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/2  23 3");
    unfence(&c, 4); /* neither in ISR nor ELR */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/2  23 3");
    unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/3 2 3 ");
    CU_ASSERT_EQUAL(fixture_partition(&c.f, "t", 0)->leader_recovery_state, 0);
    fixture_close(&c.f);
}

/* S2, S28 of the replication rules: who may have lost data leaves ISR and ELR; an intact member of
 * the ELR leads. */
static void test_election_unclean_restart(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    fence(&c, 4);
    fence(&c, 3);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/0 2 3 ");
    fence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/1  32 2");
    fixture_pass(&c.f, 9000);
    restart(&c, 2, false);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/1  3 2");
    unfence(&c, 2); /* its tail may be gone: not with an intact one known */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/1  3 2");
    restart(&c, 3, true);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/1  3 2");
    unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "3/2 3  ");
    fixture_close(&c.f);
}

/* All of the ELR lost: the last known leader, though unclean. S29: not while it is fenced. */
static void test_election_last_known_leader(void)
{
    struct cluster c;
    cluster_open(&c, 1, "2");
    fence(&c, 4);
    fence(&c, 3);
    fence(&c, 2);
    fixture_pass(&c.f, 9000);
    restart(&c, 3, false);
    restart(&c, 2, false);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/1   2");
    unfence(&c, 3);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "-1/1   2");
    unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/2 2  ");
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
        unfence(&c, id);
    controller_resign(c.f.controller);
    fixture_claim(&c.f);
    fixture_pass(&c.f, 8999);
    for (int32_t id = 3; id <= 4; id++)
        unfence(&c, id);
    fixture_pass(&c.f, 1); /* 2 is fenced now */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "3/1 34  ");
    restart(&c, 2, false);
    unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "3/1 34  ");
    fixture_close(&c.f);
}

static void test_election_unclean_topic(void)
{
    struct cluster c;
    cluster_open(&c, 0, "1");
    config(&c.f, CONFIG_RESOURCE_TOPIC, "t", "unclean.leader.election.enable", "true");
    fence(&c, 3);
    fence(&c, 4);
    unfence(&c, 4);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/0 2  ");
    fence(&c, 2); /* 4 is active, though not in sync */
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "4/1 4  ");
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
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "3/1 34  ");
    CU_ASSERT_TRUE(image_broker(&c.f.image, 2)->in_controlled_shutdown);
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->fenced);
    /* not before every active broker has seen it */
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    unfence(&c, 3);
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = 4;
    req.broker_epoch = c.epoch[4];
    req.current_metadata_offset = 3; /* far behind */
    CU_ASSERT_EQUAL(fixture_heartbeat(&c.f, &req, &resp), K_NONE);
    CU_ASSERT_FALSE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    unfence(&c, 4);
    CU_ASSERT_TRUE(fixture_beat(&c.f, 2, c.epoch[2], false, true).should_shut_down);
    CU_ASSERT_TRUE(image_broker(&c.f.image, 2)->fenced);
    /* leaves nothing behind for its next life */
    fixture_pass(&c.f, 9000);
    for (int32_t id = 3; id <= 4; id++)
        unfence(&c, id);
    restart(&c, 2, true);
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->in_controlled_shutdown);
    fixture_close(&c.f);
}

/* Before 3.6 an ISR shrink raised the leader epoch, so that followers noticed. */
static void test_election_old_metadata_version(void)
{
    struct cluster c;
    fixture_init(&c.f);
    level(&c.f, "metadata.version", 11);
    fixture_start(&c.f);
    c.f.raft.base = 0;
    fixture_commit(&c.f);
    fixture_claim(&c.f);
    CU_ASSERT_EQUAL(c.f.raft.records.n, 1);
    for (int32_t id = 2; id <= 4; id++)
        c.epoch[id] = fixture_broker(&c.f, id, 1, -1);
    topic(&c, "t", all, 3);
    fence(&c, 4);
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "2/1 23  ");
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
    topic(&c, "own", one, 1);
    config(&c.f, CONFIG_RESOURCE_TOPIC, "own", "unclean.leader.election.enable", "true");
    CU_ASSERT_FALSE(image_broker(&c.f.image, 1)->fenced);
    restart(&c, 1, false);
    CU_ASSERT_STRING_EQUAL(state(&c, "own"), "-1/1   1");
    unfence(&c, 1);
    CU_ASSERT_STRING_EQUAL(state(&c, "own"), "1/2 1  ");
    fixture_close(&c.f);
}

/* A broker whose disk was replaced has no replica to lead with. */
static void test_election_replaced_directory(void)
{
    struct cluster c;
    int32_t two[] = {2};
    cluster_open(&c, 1, "1");
    topic(&c, "own", two, 1);
    fence(&c, 2);
    fixture_pass(&c.f, 9000);
    struct broker_registration_request req = fixture_registration(&c.f, 2, 99);
    req.previous_broker_epoch = c.epoch[2];
    req.log_dirs.v[0].b[5] = 1;
    CU_ASSERT_EQUAL(fixture_register(&c.f, &req, &c.epoch[2]), K_NONE);
    unfence(&c, 2);
    CU_ASSERT_STRING_EQUAL(state(&c, "own"), "-1/1  2 2");
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
    CU_ASSERT_STRING_EQUAL(state(&c, "t"), "3/1 34  ");
    CU_ASSERT_FALSE(image_broker(&c.f.image, 2)->fenced);
    fixture_close(&c.f);
}

TEST_MAIN(TEST(test_election_order), TEST(test_election_elr), TEST(test_election_unclean_restart),
          TEST(test_election_last_known_leader), TEST(test_election_restart_of_a_leader),
          TEST(test_election_unclean_topic), TEST(test_election_controlled_shutdown),
          TEST(test_election_old_metadata_version), TEST(test_election_lost_directory),
          TEST(test_election_killed_node), TEST(test_election_replaced_directory))
