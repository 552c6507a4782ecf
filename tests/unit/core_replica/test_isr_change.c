/* A change of the ISR on its way (replication.md 3): one request in flight, answers of all kinds,
 * newer metadata before the answer. Followers and, where it matters, answers are played by hand. */
#include "hand_leader.h"

static int32_t both[] = {1, 2}, alone[] = {1}, three[] = {1, 2, 3};

/* Answers the request in flight by hand, for its one partition. */
static void alter_deliver(struct cluster *c, int16_t error, int32_t leader_epoch,
                          int32_t partition_epoch, int32_t *isr, int32_t isr_n)
{
    struct channel_call *call = c->channels[1].call;
    CU_ASSERT_PTR_NOT_NULL_FATAL(call);
    const struct alter_partition_request *req = call->request;
    struct alter_partition_response_partition_data part = {
        .partition_index = req->topics.v[0].partitions.v[0].partition_index,
        .error_code = error,
        .leader_id = 1,
        .leader_epoch = leader_epoch,
        .partition_epoch = partition_epoch,
        .isr = {isr, isr_n},
    };
    struct alter_partition_response_topic_data topic = {.topic_id = req->topics.v[0].topic_id,
                                                        .partitions = {&part, 1}};
    const struct alter_partition_response resp = {.topics = {&topic, 1}};
    c->channels[1].call = NULL;
    call->done(call, ERR_NONE, &resp);
}

/* Provably not applied: as before. */
static void test_isr_refused_goes_back(void)
{
    static const int16_t errors[] = {K_INELIGIBLE_REPLICA, K_OPERATION_NOT_ATTEMPTED};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        struct cluster c;
        const struct uuid t = leader_of(&c, alone, 1);
        c.alter_error = errors[i];
        CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
        CU_ASSERT_EQUAL(c.alters, 1);
        CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_COMMITTED);
        CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_n, 1);
        c.alter_error = K_NONE;
        CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE); /* tried again by the next fetch */
        CU_ASSERT(cluster_in_sync(&c, t, 2));
        cluster_end(&c);
    }
}

/* It may have been applied: pending until metadata says so. */
static void test_isr_unclear_waits_for_metadata(void)
{
    static const int16_t errors[] = {
        K_UNKNOWN_TOPIC_OR_PARTITION, K_UNKNOWN_TOPIC_ID, K_FENCED_LEADER_EPOCH,
        K_INVALID_UPDATE_VERSION,     K_INVALID_REQUEST,  K_NEW_LEADER_ELECTED};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        struct cluster c;
        const struct uuid t = leader_of(&c, alone, 1);
        c.alter_error = errors[i];
        CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
        cluster_wait(&c, 1000);
        CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
        CU_ASSERT_EQUAL(c.alters, 1);
        CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_PENDING_EXPAND);
        CU_ASSERT(partition_in_maximal_isr(cluster_part(&c, 1, t, 0), 2));
        c.alter_error = K_NONE;
        cluster_change(&c, t, 0, -2, alone, 1);
        cluster_turn(&c);
        CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_COMMITTED);
        CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
        CU_ASSERT(cluster_in_sync(&c, t, 2));
        cluster_end(&c);
    }
}

static void test_isr_sent_again_after_other_errors(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    alter_deliver(&c, K_UNKNOWN_SERVER_ERROR, 0, 0, NULL, 0);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.alters, 2);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_PENDING_EXPAND);
    c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

static void test_isr_sent_again_when_it_was_not_answered(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_hold = true;
    c.alter_silent = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    alter_answer(&c, &c.channels[1]);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.alters, 2);
    c.alter_hold = c.alter_silent = false;
    cluster_turn(&c);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* A request that failed as a whole is sent again 50 ms later. */
static void test_isr_sent_again_after_a_failed_request(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_top_error = K_STALE_BROKER_EPOCH;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_pass(&c, 49);
    CU_ASSERT_EQUAL(c.alters, 1);
    c.alter_top_error = K_NONE;
    cluster_pass(&c, 1);
    CU_ASSERT_EQUAL(c.alters, 2);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* Before it is registered a broker has no epoch to send. */
static void test_isr_waits_for_a_broker_epoch(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.nodes[1].broker_epoch = -1;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    cluster_wait(&c, 500);
    CU_ASSERT_EQUAL(c.alters, 0);
    c.nodes[1].broker_epoch = 100;
    cluster_wait(&c, 100);
    CU_ASSERT(c.alters >= 1);
    cluster_end(&c);
}

/* S15 (KAFKA-12686): expand in flight, newer metadata comes, then the old answer. */
static void test_isr_s15_old_answer_is_ignored(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    const struct partition *p = cluster_part(&c, 1, t, 0);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    cluster_change(&c, t, 0, -2, both, 2);  /* what it did */
    cluster_change(&c, t, 0, -2, alone, 1); /* and what came after */
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p->isr_state, ISR_COMMITTED);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(p->isr_state, ISR_COMMITTED); /* not while the old one is under way */
    alter_deliver(&c, K_NONE, 0, 1, both, 2);
    CU_ASSERT_EQUAL(p->isr_n, 1);
    CU_ASSERT_EQUAL(p->partition_epoch, 2);
    c.alter_hold = false;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* An answer of another leader epoch, or an older partition epoch, changes nothing. */
static void test_isr_answer_of_other_epochs(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    const struct partition *p = cluster_part(&c, 1, t, 0);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    alter_deliver(&c, K_NONE, 1, 1, both, 2);
    CU_ASSERT_EQUAL(p->isr_n, 1);
    CU_ASSERT_EQUAL(p->isr_state, ISR_PENDING_EXPAND);
    cluster_end(&c);
}

/* The metadata of a change that an answer told already leaves what was decided since. */
static void test_isr_own_change_comes_again_by_metadata(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    const struct partition *p = cluster_part(&c, 1, t, 0);
    c.lazy[1] = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(p->partition_epoch, 1);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 3, t, 0), K_NONE);
    CU_ASSERT_EQUAL(p->isr_state, ISR_PENDING_EXPAND);
    cluster_follow(&c, 1);
    CU_ASSERT_EQUAL(p->isr_state, ISR_PENDING_EXPAND); /* 3 may be in already: it counts (S13) */
    c.lazy[1] = c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(p->isr_n, 3);
    cluster_end(&c);
}

/* S16 (KAFKA-13916): 2 is shutting down, which we do not know yet; its last fetch. */
static void test_isr_s16_shutting_down(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.lazy[1] = true;
    cluster_change_broker(&c, 2, 0, 1);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_COMMITTED);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_follow(&c, 1);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_end(&c);
}

/* S17 (KAFKA-14139, KIP-903): 2 dies, comes back with another disk, then the request arrives. */
static void test_isr_s17_another_life(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    cluster_register(&c, 2, 250, NULL);
    c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_FALSE(cluster_in_sync(&c, t, 2));
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_state, ISR_COMMITTED);
    cluster_end(&c);
}

static void test_isr_one_request_in_flight(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    const struct uuid u = cluster_topic(&c, "u", 1, three, 3, alone, 1);
    const struct uuid v = cluster_topic(&c, "v", 1, three, 3, alone, 1);
    cluster_turn(&c);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, u, 0), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, v, 0), K_NONE);
    CU_ASSERT_EQUAL(c.alters, 1);
    c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.alters, 2); /* both that waited in one */
    CU_ASSERT(cluster_in_sync(&c, u, 2) && cluster_in_sync(&c, v, 2));
    cluster_end(&c);
}

/* Deleted, or led by another, while its change is under way. */
static void test_isr_partition_goes(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    const struct uuid u = cluster_topic(&c, "u", 1, three, 3, alone, 1);
    const struct remove_topic_record gone_t = {t};
    cluster_turn(&c);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, u, 0), K_NONE); /* this one waits */
    cluster_record(&c, &msg_remove_topic_record, 0, &gone_t);
    cluster_change(&c, u, 0, 3, three, 3);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, u, 0)->isr_state, ISR_COMMITTED);
    c.alter_hold = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(c.alters, 1);
    cluster_end(&c);
}

/* Stopped while a request is in flight: its answer finds nobody. */
static void test_isr_answer_after_the_end(void)
{
    struct cluster c;
    const struct uuid t = leader_of(&c, alone, 1);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_PTR_NOT_NULL(c.channels[1].call);
    cluster_end(&c);
}

TEST_MAIN(TEST(test_isr_refused_goes_back), TEST(test_isr_unclear_waits_for_metadata),
          TEST(test_isr_sent_again_after_other_errors),
          TEST(test_isr_sent_again_when_it_was_not_answered),
          TEST(test_isr_sent_again_after_a_failed_request), TEST(test_isr_waits_for_a_broker_epoch),
          TEST(test_isr_s15_old_answer_is_ignored), TEST(test_isr_answer_of_other_epochs),
          TEST(test_isr_own_change_comes_again_by_metadata), TEST(test_isr_s16_shutting_down),
          TEST(test_isr_s17_another_life), TEST(test_isr_one_request_in_flight),
          TEST(test_isr_partition_goes), TEST(test_isr_answer_after_the_end))
