/* Followers whose logs are not their leaders': the scenarios of replication.md 10, with true nodes
 * unless it says otherwise. Who is cut off leads alone; the controller names leaders as it likes.
 */
#include "cluster.h"

static int32_t both[] = {1, 2}, one[] = {1}, two[] = {2}, reversed[] = {2, 1}, three[] = {1, 2, 3},
               third[] = {3};

enum { HEAL_MS = 5000 }; /* of backoffs and fetches until all are the same */

/* Two nodes, the first of ids leads, n records are everywhere. */
static struct uuid shared(struct cluster *c, int32_t *ids, int32_t n)
{
    cluster_begin(c, 2);
    const struct uuid t = cluster_topic(c, "t", 1, ids, 2, both, 2);
    cluster_turn(c);
    CU_ASSERT_EQUAL(cluster_append(c, ids[0], t, n), K_NONE);
    cluster_wait(c, 1200);
    CU_ASSERT_EQUAL(cluster_hw(c, 1, t), n);
    CU_ASSERT_EQUAL(cluster_hw(c, 2, t), n);
    return t;
}

static void lead(struct cluster *c, struct uuid t, int32_t node, int32_t *isr, int32_t isr_n)
{
    cluster_change(c, t, 0, node, isr, isr_n);
    cluster_turn(c);
}

static size_t epochs_n(const struct cluster *c, int32_t node, struct uuid t)
{
    return log_epochs(cluster_part(c, node, t, 0)->log)->n;
}

/* ------------------------------------------------------------------ restarts */

/* S1 (KAFKA-1211, KIP-101): a follower that starts again does not cut to its high watermark. */
static void test_truncation_s1_none_at_restart(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = cluster_topic(&c, "t", 1, reversed, 2, both, 2);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 1), K_NONE);
    cluster_wait(&c, 1200);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 1);
    cluster_cut(&c, 2);
    cluster_stop_node(&c, 1);
    cluster_start_node(&c, 1, 150);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 1);
    cluster_heal(&c, HEAL_MS);
    cluster_cut(&c, 2);
    lead(&c, t, 1, one, 1);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 2);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 2);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 2);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* ------------------------------------------------------------------ divergence */

/* S2 (KIP-101): a high watermark that equals the log's end is no reason not to cut. */
static void test_truncation_s2_below_the_high_watermark(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 1);
    cluster_cut(&c, 2);
    cluster_change(&c, t, 0, -2, one, 1);
    cluster_wait(&c, CLUSTER_LAG_MS + 1000); /* until then it counts as caught up */
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 2);
    lead(&c, t, 2, two, 1);
    c.nodes[2].now.wall_ms += 77; /* another record */
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 1), K_NONE);
    CU_ASSERT_FALSE(cluster_same(&c, 1, 2, "t-0"));
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 2);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    CU_ASSERT_EQUAL(cluster_hw(&c, 1, t), 2);
    cluster_end(&c);
}

/* S3 (KAFKA-6361, KIP-279): the leader's end of an epoch that we have is not where ours ended. */
static void test_truncation_s3_epoch_that_the_leader_lacks(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, reversed, 10);
    cluster_cut(&c, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 1), K_NONE);
    lead(&c, t, 1, one, 1);
    c.nodes[1].now.wall_ms += 77;
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    lead(&c, t, 2, two, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 11);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 12);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 12);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* S4 (KAFKA-6880, KIP-320): 2 asks in an epoch that is over; only when it learns of the new one it
 * finds where to cut. */
static void test_truncation_s4_zombie_is_fenced(void)
{
    struct cluster c;
    cluster_begin(&c, 3);
    const struct uuid t = cluster_topic(&c, "t", 1, three, 3, three, 3);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 40), K_NONE);
    cluster_wait(&c, 1200);
    cluster_cut(&c, 3);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 10), K_NONE);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 50);
    CU_ASSERT_EQUAL(cluster_leo(&c, 3, t), 40);
    c.lazy[2] = true;
    cluster_cut(&c, 2);
    c.cut[3] = false;
    lead(&c, t, 3, third, 1);
    c.nodes[3].now.wall_ms += 77;
    CU_ASSERT_EQUAL(cluster_append(&c, 3, t, 20), K_NONE);
    cluster_wait(&c, 4000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 60);
    CU_ASSERT(cluster_same(&c, 1, 3, "t-0"));
    lead(&c, t, 1, one, 1);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 50);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_FAILED);
    const int before = c.fetches;
    cluster_wait(&c, 300);
    c.lazy[2] = false;
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT(c.fetches > before);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 60);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* S6 (KAFKA-7415): a leadership without a write has its place in the epochs. */
static void test_truncation_s6_leader_that_wrote_nothing(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 10);
    cluster_cut(&c, 2);
    lead(&c, t, 2, two, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 3), K_NONE);
    lead(&c, t, 1, one, 1);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 10);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* S7 (KAFKA-10706): both led and wrote nothing. Our own epoch goes, or it would be asked about for
 * ever. */
static void test_truncation_s7_empty_epochs(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 10);
    cluster_cut(&c, 2);
    lead(&c, t, 2, two, 1);
    CU_ASSERT_EQUAL(epochs_n(&c, 2, t), 2);
    lead(&c, t, 1, one, 1);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(epochs_n(&c, 2, t), 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 10);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 11);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    CU_ASSERT_EQUAL(epochs_n(&c, 2, t), 2);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ answers that lie, or are late
 */

static int tampered; /* answers that were changed; most at most */
static int tamper_most;

static struct fetch_response_partition_data *tamper_part(struct fetch_response *resp)
{
    if (resp->responses.n == 0 || tampered >= tamper_most)
        return NULL;
    tampered++;
    return &resp->responses.v[0].partitions.v[0];
}

static void tamper_begin(struct cluster *c, int most,
                         void (*tamper)(struct cluster *c, struct fetch_response *resp))
{
    c->tamper = tamper;
    tampered = 0;
    tamper_most = most;
}

static void drop_records(struct fetch_response_partition_data *part)
{
    for (int32_t i = 0; i < part->records.slices_n; i++)
        file_unref(part->records.slices[i].f);
    part->records = (struct wire_records){.n = 0};
}

static void diverge_at_15(struct cluster *c, struct fetch_response *resp)
{
    struct fetch_response_partition_data *part = tamper_part(resp);
    if (part == NULL)
        return;
    drop_records(part);
    part->diverging_epoch.epoch = 0;
    part->diverging_epoch.end_offset = 15;
    part->high_watermark = 18;
    part->log_start_offset = 3;
}

/* S9 (KAFKA-14704): beside a divergence nothing counts, neither high watermark nor log start. */
static void test_truncation_s9_nothing_beside_it_counts(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 15);
    c.hold[2] = true; /* 16 to 20 are at the follower, and it knows HW 15 */
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 5), K_NONE);
    c.hold[2] = false;
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 20);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 15);
    tamper_begin(&c, 1, diverge_at_15);
    cluster_change_broker(&c, 1, 0, 0);
    c.lazy[2] = true;
    cluster_wait(&c, 500);
    CU_ASSERT_EQUAL(tampered, 1);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(&c, 2, t, 0)->log), 0);
    cluster_wait(&c, 5000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 20);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    c.lazy[2] = false;
    cluster_end(&c);
}

/* S11 (KAFKA-18991): a divergence told to what was asked in the last epoch. */
static void test_truncation_s11_late_divergence(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 20);
    c.hold[2] = true;
    tamper_begin(&c, 1, diverge_at_15);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE); /* answers it */
    CU_ASSERT_EQUAL(tampered, 1);
    lead(&c, t, 1, both, 2);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->leader_epoch, 1);
    /* whatever is asked now waits, so that nobody fills up what would have been cut */
    c.hold[2] = false;
    lines_turn(&c);
    (void)replicas_settle(c.nodes[2].rs, c.nodes[2].now);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 20);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 21);
    cluster_end(&c);
}

static void later_epoch(struct cluster *c, struct fetch_response *resp)
{
    struct batch first;
    struct fetch_response_partition_data *part = tamper_part(resp);
    if (part == NULL)
        return;
    uint8_t *p = (uint8_t *)(uintptr_t)part->records.p;
    CU_ASSERT_EQUAL_FATAL(batch_parse((struct bytes){p, part->records.n}, &first), ERR_NONE);
    CU_ASSERT_FATAL((int32_t)first.size_bytes < part->records.n);
    batch_set_leader_epoch(p + first.size_bytes, 9);
}

/* S12 (KAFKA-18723): bytes that were read after the leader had stepped down and was overwritten. */
static void test_truncation_s12_batches_of_a_later_epoch(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    cluster_cut(&c, 2);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    tamper_begin(&c, 1, later_epoch);
    c.cut[2] = false;
    for (int i = 0; i < 200 && cluster_leo(&c, 2, t) == 3; i++) {
        for (int32_t k = 1; k <= 2; k++) {
            c.nodes[k].now.mono_us += 20000;
            node_turn(&c, k);
        }
        lines_turn(&c);
    }
    CU_ASSERT_EQUAL(tampered, 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 4);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 5);
    CU_ASSERT_EQUAL(epochs_n(&c, 2, t), 1);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

static void flip_a_bit(struct cluster *c, struct fetch_response *resp)
{
    struct fetch_response_partition_data *part = tamper_part(resp);
    if (part != NULL && part->records.n > 0)
        ((uint8_t *)(uintptr_t)part->records.p)[part->records.n - 1] ^= 1;
}

static void test_truncation_corrupt_records_are_not_taken(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    tamper_begin(&c, 1, flip_a_bit);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(tampered, 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_DELAYED);
    cluster_wait(&c, 800);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3); /* replica.fetch.backoff.ms */
    cluster_wait(&c, 300);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 4);
    cluster_end(&c);
}

static int16_t tamper_error;

static void refuse(struct cluster *c, struct fetch_response *resp)
{
    struct fetch_response_partition_data *part = tamper_part(resp);
    if (part == NULL)
        return;
    drop_records(part);
    part->error_code = tamper_error;
}

static void test_truncation_errors_back_off(void)
{
    static const int16_t errors[] = {K_NOT_LEADER_OR_FOLLOWER,     K_UNKNOWN_LEADER_EPOCH,
                                     K_UNKNOWN_TOPIC_OR_PARTITION, K_UNKNOWN_TOPIC_ID,
                                     K_INCONSISTENT_TOPIC_ID,      K_KAFKA_STORAGE_ERROR,
                                     K_UNKNOWN_SERVER_ERROR};
    for (size_t i = 0; i < ARRAY_N(errors); i++) {
        struct cluster c;
        const struct uuid t = shared(&c, both, 3);
        tamper_error = errors[i];
        tamper_begin(&c, 1, refuse);
        CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
        CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
        CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_DELAYED);
        cluster_wait(&c, 1100);
        CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 4);
        cluster_end(&c);
    }
}

/* FENCED_LEADER_EPOCH for the epoch that is ours: failed until the next one. */
static void test_truncation_fenced_waits_for_metadata(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    tamper_error = K_FENCED_LEADER_EPOCH;
    tamper_begin(&c, 1, refuse);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    cluster_wait(&c, 5000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_FAILED);
    cluster_change(&c, t, 0, -2, both, 2); /* the same epoch */
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    lead(&c, t, 1, NULL, 0);
    cluster_wait(&c, 1000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 4);
    cluster_end(&c);
}

static void diverge_nowhere(struct cluster *c, struct fetch_response *resp)
{
    struct fetch_response_partition_data *part = tamper_part(resp);
    if (part == NULL)
        return;
    drop_records(part);
    part->diverging_epoch.epoch = 0;
    part->diverging_epoch.end_offset = 1000;
}

/* A leader that sees a divergence where there is none is not asked as fast as it answers. */
static void test_truncation_divergence_without_end(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    tamper_begin(&c, 1000, diverge_nowhere);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    const int before = c.fetches;
    cluster_wait(&c, 10000);
    CU_ASSERT(c.fetches < before + 40);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    c.tamper = NULL;
    cluster_wait(&c, 2000);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 4);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ out of range */

static void delete_to(struct cluster *c, int32_t node, struct uuid t, int64_t offset)
{
    CU_ASSERT_EQUAL(partition_raise_start(cluster_part(c, node, t, 0), offset), ERR_NONE);
    cluster_turn(c);
}

/* S21 (KAFKA-12996) at the leader, and what the follower makes of it: before the leader's start it
 * is out of range, diverging or not, and begins anew there. */
static void test_truncation_s21_before_the_leaders_start(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    cluster_cut(&c, 2);
    cluster_change(&c, t, 0, -2, one, 1);
    lead(&c, t, 2, two, 1); /* an epoch that 1 will not know */
    lead(&c, t, 1, one, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 7), K_NONE);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    delete_to(&c, 1, t, 10);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(c.ranges, 2);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 11);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(&c, 2, t, 0)->log), 10);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->saved_start, 10); /* DeleteRecords counts on it */
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 11);
    cluster_stop_node(&c, 2); /* and its files say so */
    cluster_start_node(&c, 2, 250);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(&c, 2, t, 0)->log), 10);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 11);
    cluster_end(&c);
}

/* S22 (KAFKA-3410, KAFKA-7414): a leader with less than we have. */
static void test_truncation_s22_behind_the_leaders_end(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    cluster_cut(&c, 1);
    lead(&c, t, 2, two, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 2), K_NONE);
    lead(&c, t, 1, one, 1);
    tamper_error = K_OFFSET_OUT_OF_RANGE; /* as one without epochs would say */
    tamper_begin(&c, 1, refuse);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(tampered, 1);
    CU_ASSERT_EQUAL(c.ranges, 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 3);
    CU_ASSERT_EQUAL(c.nodes[2].failed, 0);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* In range after all: the log is kept. */
static void test_truncation_range_that_moved(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 3);
    tamper_error = K_OFFSET_OUT_OF_RANGE;
    tamper_begin(&c, 1, refuse);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(c.ranges, 2);
    cluster_wait(&c, 1500);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 4);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    cluster_end(&c);
}

/* The leader's log begins within a batch. */
static void test_truncation_start_within_a_batch(void)
{
    struct cluster c;
    cluster_begin(&c, 2);
    const struct uuid t = cluster_topic(&c, "t", 1, both, 2, one, 1);
    cluster_cut(&c, 2);
    cluster_turn(&c);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 5), K_NONE);
    const struct partition *p = cluster_part(&c, 1, t, 0);
    CU_ASSERT_EQUAL(p->high_watermark, 5);
    delete_to(&c, 1, t, 3);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 5);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(&c, 2, t, 0)->log), 3);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    CU_ASSERT(cluster_in_sync(&c, t, 2));
    cluster_end(&c);
}

/* Records that were deleted at the leader go here too, and the leader hears of it. */
static void test_truncation_log_start_follows(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 5);
    delete_to(&c, 1, t, 4);
    CU_ASSERT_EQUAL(partition_low_watermark(cluster_part(&c, 1, t, 0)), 0);
    cluster_wait(&c, 1500);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(&c, 2, t, 0)->log), 4);
    cluster_wait(&c, 70000); /* ours counts when the checkpoint is written */
    CU_ASSERT_EQUAL(partition_low_watermark(cluster_part(&c, 1, t, 0)), 4);
    cluster_end(&c);
}

static void odd_ends(struct cluster *c, struct fetch_response *resp)
{
    struct fetch_response_partition_data *part = tamper_part(resp);
    if (part == NULL)
        return;
    part->high_watermark = 1;
    part->log_start_offset = 100;
}

/* A leader that knows of less than we have deleted, or claims what cannot be. */
static void test_truncation_odd_ends_are_bounded(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 5);
    delete_to(&c, 1, t, 4);
    cluster_wait(&c, 1500);
    tamper_begin(&c, 1, odd_ends);
    c.lazy[2] = true;
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 1), K_NONE);
    CU_ASSERT_EQUAL(tampered, 1);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 6);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 4);
    CU_ASSERT_EQUAL(log_start_offset(cluster_part(&c, 2, t, 0)->log), 4);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->follow->state, FOLLOW_FETCHING);
    c.lazy[2] = false;
    cluster_wait(&c, 1500);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 6);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ after an election */

/* S8 (KAFKA-2334): a new leader with an old high watermark does not tell where the log ends. */
static void test_truncation_s8_offset_not_available(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 10);
    CU_ASSERT_EQUAL(cluster_append(&c, 1, t, 10), K_NONE);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 20);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 10);
    cluster_cut(&c, 1);
    lead(&c, t, 2, NULL, 0);
    CU_ASSERT_EQUAL(cluster_part(&c, 2, t, 0)->leader_epoch_start, 20);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 10);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_hw(&c, 2, t), 20);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ producers */

/* One record of an idempotent producer, acks 1. */
static int16_t send(struct cluster *c, int32_t node, struct uuid t, int32_t sequence,
                    int64_t *offset)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.producer_id = 5;
    b.producer_epoch = 0;
    b.base_sequence = sequence;
    fix_produce(&c->nodes[node], &p, t, 0, 1, &b);
    cluster_turn(c);
    fix_produce_close(&p);
    *offset = p.part.base_offset;
    return p.part.error;
}

/* Whoever leads next knows the last five batches, wherever they were written, and none that it cut:
 * what is sent again is there once. */
static void test_truncation_producers_are_those_of_the_log(void)
{
    struct cluster c;
    int64_t offset;
    const struct uuid t = shared(&c, both, 1);
    for (int32_t i = 0; i < 6; i++)
        CU_ASSERT_EQUAL(send(&c, 1, t, i, &offset), K_NONE);
    cluster_wait(&c, 1200);
    CU_ASSERT_EQUAL(cluster_leo(&c, 2, t), 7);
    cluster_cut(&c, 1);
    for (int32_t i = 6; i < 8; i++) /* nobody else gets these */
        CU_ASSERT_EQUAL(send(&c, 1, t, i, &offset), K_NONE);
    lead(&c, t, 2, two, 1);
    CU_ASSERT_EQUAL(send(&c, 2, t, 0, &offset), K_OUT_OF_ORDER_SEQUENCE_NUMBER);
    for (int32_t i = 1; i < 6; i++) {
        CU_ASSERT_EQUAL(send(&c, 2, t, i, &offset), K_NONE);
        CU_ASSERT_EQUAL(offset, i + 1);
    }
    CU_ASSERT_EQUAL(send(&c, 2, t, 7, &offset), K_OUT_OF_ORDER_SEQUENCE_NUMBER);
    CU_ASSERT_EQUAL(send(&c, 2, t, 6, &offset), K_NONE);
    CU_ASSERT_EQUAL(offset, 7);
    cluster_heal(&c, HEAL_MS);
    CU_ASSERT_EQUAL(cluster_leo(&c, 1, t), 8);
    CU_ASSERT(cluster_same(&c, 1, 2, "t-0"));
    lead(&c, t, 1, one, 1);
    CU_ASSERT_EQUAL(send(&c, 1, t, 1, &offset), K_OUT_OF_ORDER_SEQUENCE_NUMBER);
    for (int32_t i = 2; i < 7; i++) {
        CU_ASSERT_EQUAL(send(&c, 1, t, i, &offset), K_NONE);
        CU_ASSERT_EQUAL(offset, i + 1);
    }
    CU_ASSERT_EQUAL(send(&c, 1, t, 7, &offset), K_NONE); /* the one it had was cut */
    CU_ASSERT_EQUAL(offset, 8);
    cluster_end(&c);
}

/* ------------------------------------------------------------------ the rule, by hand */

static void test_truncation_point(void)
{
    struct cluster c;
    const struct uuid t = shared(&c, both, 10); /* epochs 0 from 0 */
    cluster_cut(&c, 2);
    lead(&c, t, 2, two, 1);
    lead(&c, t, 2, two, 1);
    CU_ASSERT_EQUAL(cluster_append(&c, 2, t, 10), K_NONE); /* epoch 2 from 10 */
    struct partition *p = cluster_part(&c, 2, t, 0);
    p->high_watermark = 7;
    CU_ASSERT_EQUAL(follow_truncation_point(p, 0, -1), 7);   /* nothing known: the HW */
    CU_ASSERT_EQUAL(follow_truncation_point(p, -1, 15), 15); /* no epoch: the offset */
    CU_ASSERT_EQUAL(follow_truncation_point(p, -1, 30), 20);
    CU_ASSERT_EQUAL(follow_truncation_point(p, 5, 12), 12); /* above all of ours */
    CU_ASSERT_EQUAL(follow_truncation_point(p, 0, 12), 10); /* ours ended before */
    CU_ASSERT_EQUAL(follow_truncation_point(p, 0, 5), 5);   /* the leader's did */
    CU_ASSERT_EQUAL(follow_truncation_point(p, 2, 15), 15);
    CU_ASSERT_EQUAL(follow_truncation_point(p, 2, 25), 20);
    p->high_watermark = 10;
    cluster_end(&c);
}

TEST_MAIN(
    TEST(test_truncation_s1_none_at_restart), TEST(test_truncation_s2_below_the_high_watermark),
    TEST(test_truncation_s3_epoch_that_the_leader_lacks), TEST(test_truncation_s4_zombie_is_fenced),
    TEST(test_truncation_s6_leader_that_wrote_nothing), TEST(test_truncation_s7_empty_epochs),
    TEST(test_truncation_s9_nothing_beside_it_counts), TEST(test_truncation_s11_late_divergence),
    TEST(test_truncation_s12_batches_of_a_later_epoch),
    TEST(test_truncation_corrupt_records_are_not_taken), TEST(test_truncation_errors_back_off),
    TEST(test_truncation_fenced_waits_for_metadata), TEST(test_truncation_divergence_without_end),
    TEST(test_truncation_s21_before_the_leaders_start),
    TEST(test_truncation_s22_behind_the_leaders_end), TEST(test_truncation_range_that_moved),
    TEST(test_truncation_start_within_a_batch), TEST(test_truncation_log_start_follows),
    TEST(test_truncation_odd_ends_are_bounded), TEST(test_truncation_s8_offset_not_available),
    TEST(test_truncation_producers_are_those_of_the_log), TEST(test_truncation_point))
