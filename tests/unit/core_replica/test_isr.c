/* The ISR as its leader changes it (replication.md 3): node 1 leads, followers are played by hand,
 * the controller answers as told. The tests at the end have true followers. */
#include "cluster.h"

static int32_t both[] = {1, 2}, alone[] = {1}, three[] = {1, 2, 3};

/* ------------------------------------------------------------------ by hand */

/* Node 1 of a cluster of three; the others are known, and not there. */
static void leader_begin(struct cluster *c)
{
    cluster_prepare(c, 1);
    cluster_register(c, 2, 200, NULL);
    cluster_register(c, 3, 300, NULL);
    cluster_start(c);
}

static struct uuid led_topic(struct cluster *c, int32_t *isr, int32_t isr_n)
{
    const struct uuid t = cluster_topic(c, "t", 1, three, 3, isr, isr_n);
    cluster_turn(c);
    return t;
}

static void hand_fetch(struct fix_fetch *q, int32_t id, int64_t epoch)
{
    fix_fetch_init(q);
    q->op.version = 18;
    q->request.replica_state.replica_id = id;
    q->request.replica_state.replica_epoch = epoch;
    q->request.max_wait_ms = 0;
}

/* A follower's fetch without a session; the partition's error. */
static int16_t fetch_in(struct cluster *c, int32_t id, int64_t broker_epoch, struct uuid t,
                        int64_t offset, int32_t leader_epoch)
{
    struct fix_fetch q;
    hand_fetch(&q, id, broker_epoch);
    q.request.session_epoch = -1;
    struct fetch_request_fetch_partition *part = fix_ask(&q, t, 0, offset);
    part->current_leader_epoch = leader_epoch;
    part->log_start_offset = 0;
    CU_ASSERT_EQUAL_FATAL(replicas_fetch(c->nodes[1].rs, &q.op, c->nodes[1].now), ERR_NONE);
    cluster_turn(c);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    const int16_t error = fix_answer(&q, t, 0)->error_code;
    fix_fetch_close(&q);
    return error;
}

static int16_t fetch_as(struct cluster *c, int32_t id, struct uuid t, int64_t offset)
{
    return fetch_in(c, id, id * 100, t, offset, cluster_part(c, 1, t, 0)->leader_epoch);
}

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

static void begin_produce(struct cluster *c, struct fix_produce *p, struct uuid t)
{
    fix_produce(&c->nodes[1], p, t, 0, -1, &fix_plain);
    cluster_turn(c);
}

/* ------------------------------------------------------------------ expanding */

static void test_isr_expands_on_a_fetch(void)
{
    struct cluster c;
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, one_three, 2);
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_EQUAL(c.altered_n, 3);
    CU_ASSERT_EQUAL(c.altered[1].broker_id, 3);
    CU_ASSERT_EQUAL(c.altered[1].broker_epoch, -1);
    cluster_end(&c);
}

static void test_isr_only_at_the_high_watermark(void)
{
    struct cluster c;
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, both, 2);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, both, 2);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, three, 3);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, both, 2);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, three, 3);
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

/* ------------------------------------------------------------------ answers */

/* Provably not applied: as before. */
static void test_isr_refused_goes_back(void)
{
    static const int16_t errors[] = {K_INELIGIBLE_REPLICA, K_OPERATION_NOT_ATTEMPTED};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        struct cluster c;
        leader_begin(&c);
        const struct uuid t = led_topic(&c, alone, 1);
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
        leader_begin(&c);
        const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, alone, 1);
    c.alter_hold = true;
    CU_ASSERT_EQUAL(fetch_as(&c, 2, t, 0), K_NONE);
    CU_ASSERT_PTR_NOT_NULL(c.channels[1].call);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ min.insync.replicas */

static void test_isr_too_small_for_acks_all(void)
{
    struct cluster c;
    struct fix_produce p;
    leader_begin(&c);
    const struct uuid t = led_topic(&c, both, 2);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, both, 2);
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
    leader_begin(&c);
    const struct uuid t = led_topic(&c, three, 3);
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

/* ------------------------------------------------------------------ silent followers */

struct session_fetch {
    struct fix_fetch q;
    int32_t id;
    int32_t epoch;
};

static void session_end(struct cluster *c, struct session_fetch *s)
{
    cluster_turn(c);
    CU_ASSERT_EQUAL_FATAL(s->q.done, 1);
    CU_ASSERT_EQUAL(s->q.response.error_code, K_NONE);
    s->id = s->q.response.session_id;
    s->epoch++;
    fix_fetch_close(&s->q);
}

static void session_turn(struct cluster *c, struct session_fetch *s)
{
    CU_ASSERT_EQUAL_FATAL(replicas_fetch(c->nodes[1].rs, &s->q.op, c->nodes[1].now), ERR_NONE);
    session_end(c, s);
}

static void session_prepare(struct session_fetch *s)
{
    hand_fetch(&s->q, 2, 200);
    s->q.request.session_id = s->id;
    s->q.request.session_epoch = s->epoch;
}

static void session_again(struct cluster *c, struct session_fetch *s)
{
    session_prepare(s);
    session_turn(c, s);
}

static size_t hot_n(const struct cluster *c)
{
    const struct session *ss = LIST_ENTRY(c->nodes[1].rs->sessions.lru.next, struct session, lru);
    size_t n = 0;
    for (const struct list *l = ss->set.hot.next; l != &ss->set.hot; l = l->next)
        n++;
    return n;
}

/* A session of a follower of two partitions. */
static struct uuid silent_begin(struct cluster *c, struct session_fetch *s)
{
    leader_begin(c);
    const struct uuid t = cluster_topic(c, "t", 2, both, 2, both, 2);
    cluster_turn(c);
    *s = (struct session_fetch){.epoch = 0};
    session_prepare(s);
    fix_ask(&s->q, t, 0, 0)->current_leader_epoch = 0;
    fix_ask(&s->q, t, 1, 0)->current_leader_epoch = 0;
    session_turn(c, s);
    session_again(c, s);
    return t;
}

/* What a session does not mention costs nothing, and counts as asked for all the same (KIP-16,
 * KIP-227). */
static void test_isr_silent_follower_stays(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    CU_ASSERT_EQUAL(hot_n(&c), 0);
    for (int i = 0; i < 60; i++) {
        cluster_wait(&c, 1000);
        session_prepare(&s);
        CU_ASSERT_EQUAL(replicas_fetch(c.nodes[1].rs, &s.q.op, c.nodes[1].now), ERR_NONE);
        CU_ASSERT_EQUAL(hot_n(&c), 0); /* nothing to look at */
        session_end(&c, &s);
        CU_ASSERT_EQUAL(hot_n(&c), 0);
    }
    const int64_t last_us = c.nodes[1].now.mono_us;
    CU_ASSERT_EQUAL(fix_append(&c.nodes[1], t, 0, 1), K_NONE);
    const struct follower *f = &cluster_part(&c, 1, t, 0)->followers[0];
    CU_ASSERT_EQUAL(f->last_caught_up_us, last_us);
    CU_ASSERT_EQUAL(f->last_fetch_us, last_us);
    cluster_wait(&c, CLUSTER_LAG_MS - 100);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_wait(&c, CLUSTER_LAG_MS / 2 + 200); /* it does not fetch any more */
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_n, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->isr_n, 2);
    cluster_end(&c);
}

/* One that asks for the others, but not for what came, is late with that one. */
static void test_isr_silence_after_an_append_counts_as_late(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    CU_ASSERT_EQUAL(fix_append(&c.nodes[1], t, 0, 1), K_NONE);
    for (int i = 0; i < 60; i++) {
        cluster_wait(&c, 1000);
        session_again(&c, &s); /* has it by now, and asks for the same again: it cannot take it */
    }
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_n, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->isr_n, 2);
    CU_ASSERT_EQUAL(hot_n(&c), 1);
    cluster_end(&c);
}

/* Silent and outside of the ISR: each fetch may let it join, once nothing speaks against it. */
static void test_isr_silent_follower_joins(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    cluster_change(&c, t, 1, -2, alone, 1);
    cluster_change_broker(&c, 2, 1, 0);
    cluster_turn(&c);
    session_again(&c, &s);
    session_again(&c, &s);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_change_broker(&c, 2, -1, 0);
    cluster_turn(&c);
    session_again(&c, &s);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->isr_n, 2);
    session_again(&c, &s);
    session_again(&c, &s);
    CU_ASSERT_EQUAL(hot_n(&c), 0);
    cluster_end(&c);
}

/* The session's other life: all its partitions are asked for by that. */
static void test_isr_silent_follower_of_another_life(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    cluster_register(&c, 2, 250, NULL);
    cluster_turn(&c);
    session_prepare(&s);
    s.q.request.replica_state.replica_epoch = 250;
    session_turn(&c, &s);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->followers[0].broker_epoch, 250);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->followers[0].broker_epoch, 250);
    cluster_end(&c);
}

/* A session that ends leaves what its silence said. */
static void test_isr_silence_outlives_its_session(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    cluster_wait(&c, 20000);
    session_again(&c, &s);
    const int64_t last_us = c.nodes[1].now.mono_us;
    cluster_wait(&c, 1000);
    session_prepare(&s);
    s.q.request.session_epoch = -1; /* closes it */
    session_turn(&c, &s);
    CU_ASSERT_EQUAL(c.nodes[1].rs->sessions.by_id.n, 0);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->followers[0].last_caught_up_us, last_us);
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
          TEST(test_isr_shrinks_all), TEST(test_isr_refused_goes_back),
          TEST(test_isr_unclear_waits_for_metadata), TEST(test_isr_sent_again_after_other_errors),
          TEST(test_isr_sent_again_when_it_was_not_answered),
          TEST(test_isr_sent_again_after_a_failed_request), TEST(test_isr_waits_for_a_broker_epoch),
          TEST(test_isr_s15_old_answer_is_ignored), TEST(test_isr_answer_of_other_epochs),
          TEST(test_isr_own_change_comes_again_by_metadata), TEST(test_isr_s16_shutting_down),
          TEST(test_isr_s17_another_life), TEST(test_isr_one_request_in_flight),
          TEST(test_isr_partition_goes), TEST(test_isr_answer_after_the_end),
          TEST(test_isr_too_small_for_acks_all), TEST(test_isr_produce_of_a_former_epoch),
          TEST(test_isr_s32_new_epoch_forgets), TEST(test_isr_s23_strangers),
          TEST(test_isr_silent_follower_stays),
          TEST(test_isr_silence_after_an_append_counts_as_late),
          TEST(test_isr_silent_follower_joins), TEST(test_isr_silent_follower_of_another_life),
          TEST(test_isr_silence_outlives_its_session), TEST(test_isr_follower_dies_and_returns),
          TEST(test_isr_idle_followers_stay))
