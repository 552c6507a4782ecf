/* Invariants 17 to 23 of the replication rules over random events: brokers that are fenced, come
 * back, restart cleanly and not, unregister, shut down; leaders that change ISRs by what they know
 * (also of the past); reassignments and their cancelling; elections; changes of the min ISR. The
 * index of the controller must be what one made afresh is. */
#include "cluster.h"
#include "core/controller/inside.h"

enum { BROKERS = 5, FIRST = 2, TOPICS = 6, STEPS = 400 };

/* What a partition was before the event. */
struct before {
    bool there;
    int32_t leader_epoch, partition_epoch;
};

static struct cluster c;
static uint64_t state_of_dice;
static bool elr_on;
/* Restarted uncleanly, not made a member of this partition since. */
static bool lossy[TOPICS][FIRST + BROKERS];

static uint32_t dice(uint32_t n)
{
    state_of_dice ^= state_of_dice << 13;
    state_of_dice ^= state_of_dice >> 7;
    state_of_dice ^= state_of_dice << 17;
    return (uint32_t)(state_of_dice >> 33) % n;
}

static int32_t any_broker(void)
{
    return FIRST + (int32_t)dice(BROKERS);
}

static const char *topic_name(int i)
{
    static const char *const names[TOPICS] = {"a", "b", "c", "d", "e", "f"};
    return names[i];
}

static struct image_partition *partition_of(int i)
{
    return fixture_partition(&c.f, topic_name(i), 0);
}

static bool has(const int32_t *v, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (v[i] == id)
            return true;
    return false;
}

/* ------------------------------------------------------------------ events */

static void beat(int32_t id, bool fence, bool shut_down)
{
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = id;
    req.broker_epoch = c.epoch[id];
    req.current_metadata_offset = c.f.image.next_offset - 1;
    req.want_fence = fence;
    req.want_shut_down = shut_down;
    (void)fixture_heartbeat(&c.f, &req, &resp);
}

static void restart(int32_t id)
{
    static uint32_t incarnation;
    const bool clean = dice(2) == 0;
    struct broker_registration_request req = fixture_registration(&c.f, id, 0);
    int64_t epoch;
    incarnation++;
    memcpy(req.incarnation_id.b + 8, &incarnation, sizeof incarnation);
    beat(id, true, false);
    fixture_pass(&c.f, 9000); /* all sessions end; who is alive comes back */
    req.previous_broker_epoch = clean ? c.epoch[id] : -1;
    if (fixture_register(&c.f, &req, &epoch) != K_NONE)
        return;
    c.epoch[id] = epoch;
    for (int i = 0; elr_on && !clean && i < TOPICS; i++) { /* 23 */
        lossy[i][id] = true;
        CU_ASSERT(!has(partition_of(i)->isr, partition_of(i)->isr_n, id) &&
                  !has(partition_of(i)->elr, partition_of(i)->elr_n, id));
    }
}

static void unregister(int32_t id)
{
    const struct unregister_broker_request req = {.broker_id = id};
    struct test_op op = test_op_new();
    if (dice(8) != 0)
        return;
    controller_unregister_broker(c.f.controller, &op.op, &req, c.f.now);
    (void)test_op_wait(&c.f, &op);
}

/* Some replicas; epochs mostly right. 21, 22: applied exactly when all are. */
static void alter(int i)
{
    const struct image_partition *p = partition_of(i);
    struct alter_partition_request_broker_state members[8];
    struct alter_partition_request_partition_data part = {
        .leader_epoch = p->leader_epoch - (dice(8) == 0),
        .partition_epoch = p->partition_epoch - (dice(8) == 0)};
    struct alter_partition_request_topic_data data = {
        .topic_id = image_topic_named(&c.f.image, str_of(topic_name(i)))->id,
        .partitions = {&part, 1}};
    const int32_t sender = dice(8) == 0 || p->leader < 0 ? any_broker() : p->leader;
    struct alter_partition_request req = {.broker_id = sender,
                                          .broker_epoch = c.epoch[sender] - (dice(16) == 0),
                                          .topics = {&data, 1}};
    struct alter_partition_response resp;
    struct test_op op = test_op_new();
    const struct image_broker *self = image_broker(&c.f.image, sender);
    bool right = sender == p->leader && self != NULL && req.broker_epoch == self->epoch &&
                 part.leader_epoch == p->leader_epoch && part.partition_epoch == p->partition_epoch;
    for (int32_t j = 0; j < p->replicas_n; j++) {
        const int32_t id = p->replicas[j];
        const struct image_broker *b = image_broker(&c.f.image, id);
        const int64_t epoch = c.epoch[id] - (dice(16) == 0);
        if (id != p->leader && dice(3) == 0)
            continue;
        members[part.new_isr_with_epochs.n++] =
            (struct alter_partition_request_broker_state){id, epoch};
        right = right && b != NULL && !b->fenced && !b->in_controlled_shutdown && b->epoch == epoch;
    }
    part.new_isr_with_epochs.v = members;
    wire_default(&wire_alter_partition_response, &resp);
    controller_alter_partition(c.f.controller, &op.op, &req, 3, &c.f.arena, &resp, c.f.now);
    const int16_t top = test_op_wait(&c.f, &op);
    const int16_t error = top != K_NONE ? top : resp.topics.v[0].partitions.v[0].error_code;
    CU_ASSERT_EQUAL(right, error == K_NONE || error == K_NEW_LEADER_ELECTED);
    for (int32_t j = 0; right && j < part.new_isr_with_epochs.n; j++)
        lossy[i][members[j].broker_id] = false;
}

static void reassign(int i)
{
    int32_t ids[BROKERS], n = 0;
    struct alter_partition_reassignments_request_reassignable_partition part = {0};
    struct alter_partition_reassignments_request_reassignable_topic topic = {
        .name = str_of(topic_name(i)), .partitions = {&part, 1}};
    struct alter_partition_reassignments_request req = {
        .timeout_ms = 1000, .allow_replication_factor_change = true, .topics = {&topic, 1}};
    struct alter_partition_reassignments_response resp;
    struct test_op op = test_op_new();
    for (int32_t id = FIRST; id < FIRST + BROKERS; id++)
        if (dice(2) == 0)
            ids[n++] = id;
    part.replicas.v = ids;
    part.replicas.n = dice(4) == 0 ? -1 : n;
    wire_default(&wire_alter_partition_reassignments_response, &resp);
    controller_alter_reassignments(c.f.controller, &op.op, &req, &c.f.arena, &resp, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
}

static void elect(void)
{
    struct elect_leaders_request req;
    struct elect_leaders_response resp;
    struct test_op op = test_op_new();
    wire_default(&wire_elect_leaders_request, &req);
    wire_default(&wire_elect_leaders_response, &resp);
    req.election_type = (int8_t)dice(2);
    req.topic_partitions.n = -1;
    controller_elect_leaders(c.f.controller, &op.op, &req, &c.f.arena, &resp, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
}

static void min_isr(int i)
{
    static const struct str values[] = {STR_LIT("1"), STR_LIT("2"), STR_LIT("3")};
    struct config_op set = {STR_LIT("min.insync.replicas"), CONFIG_OPERATION_SET, values[dice(3)]};
    struct config_change change = {
        .type = CONFIG_RESOURCE_TOPIC, .name = str_of(topic_name(i)), .ops = &set, .ops_n = 1};
    struct test_op op = test_op_new();
    controller_alter_configs(c.f.controller, &op.op, &change, 1, false, &c.f.arena, c.f.now);
    CU_ASSERT_EQUAL(test_op_wait(&c.f, &op), K_NONE);
}

static void event(void)
{
    const int i = (int)dice(TOPICS);
    const int32_t id = any_broker();
    switch (dice(12)) {
    case 0:
        beat(id, true, false);
        break;
    case 1:
        beat(id, false, true);
        break;
    case 2:
        restart(id);
        break;
    case 3:
        unregister(id);
        break;
    case 4:
        reassign(i);
        break;
    case 5:
        elect();
        break;
    case 6:
        min_isr(i);
        break;
    case 7:
        beat(id, false, false);
        break;
    default:
        alter(i);
    }
}

/* ------------------------------------------------------------------ invariants */

static void check_members(int at)
{
    const struct image_partition *p = partition_of(at);
    if (p->leader >= 0 && lossy[at][p->leader]) { /* only an unclean election makes it that */
        CU_ASSERT_EQUAL(p->leader_recovery_state, 1);
        lossy[at][p->leader] = false;
    }
    CU_ASSERT(p->leader == -1 || has(p->isr, p->isr_n, p->leader)); /* 17 */
    for (int32_t i = 0; i < p->isr_n; i++) {
        const struct image_broker *b = image_broker(&c.f.image, p->isr[i]);
        CU_ASSERT(has(p->replicas, p->replicas_n, p->isr[i])); /* 17 */
        CU_ASSERT(!has(p->elr, p->elr_n, p->isr[i]));          /* 19 */
        if (elr_on || p->isr_n > 1)                            /* 18 */
            CU_ASSERT(b != NULL && !b->fenced && !b->in_controlled_shutdown);
    }
    for (int32_t i = 0; i < p->elr_n; i++)
        CU_ASSERT(has(p->replicas, p->replicas_n, p->elr[i]) && !lossy[at][p->elr[i]]); /* 23 */
}

static void check_index(void)
{
    struct partition_index fresh;
    const struct partition_index *x = &c.f.controller->index;
    partition_index_init(&fresh, 9);
    CU_ASSERT_EQUAL(partition_index_fill(&fresh, &c.f.image), ERR_NONE);
    CU_ASSERT_EQUAL(x->leaderless.n, fresh.leaderless.n);
    CU_ASSERT_EQUAL(x->not_preferred.n, fresh.not_preferred.n);
    CU_ASSERT_EQUAL(x->reassigning.n, fresh.reassigning.n);
    for (int32_t id = FIRST; id < FIRST + BROKERS; id++) {
        const struct partition_set *have = partition_index_hosted(x, id);
        const struct partition_set *want = partition_index_hosted(&fresh, id);
        CU_ASSERT_EQUAL(have == NULL ? 0 : have->n, want == NULL ? 0 : want->n);
        CU_ASSERT_EQUAL(partition_index_leads(x, id), partition_index_leads(&fresh, id));
    }
    partition_index_close(&fresh);
}

static void check(const struct before *before)
{
    for (int i = 0; i < TOPICS; i++) {
        const struct image_partition *p = partition_of(i);
        CU_ASSERT(!before[i].there || (p->leader_epoch >= before[i].leader_epoch &&
                                       p->partition_epoch >= before[i].partition_epoch)); /* 20 */
        CU_ASSERT(p->leader_epoch <= p->partition_epoch);
        check_members(i);
    }
    check_index();
}

static void remember(struct before *before)
{
    for (int i = 0; i < TOPICS; i++)
        before[i] =
            (struct before){true, partition_of(i)->leader_epoch, partition_of(i)->partition_epoch};
}

static void run(uint64_t seed, int16_t elr)
{
    struct before before[TOPICS] = {{0}};
    int32_t replicas[] = {2, 3, 4, 5, 6, 2, 3, 4};
    state_of_dice = seed * UINT64_C(0x9e3779b97f4a7c15);
    elr_on = elr > 0;
    memset(lossy, 0, sizeof lossy);
    cluster_open(&c, elr, "2");
    c.epoch[5] = fixture_broker(&c.f, 5, 1, -1);
    c.epoch[6] = fixture_broker(&c.f, 6, 1, -1);
    for (int i = 0; i < TOPICS; i++)
        cluster_topic(&c, topic_name(i), replicas + i % 5, 1 + i % 3);
    for (int i = 0; i < STEPS && CU_get_number_of_failures() == 0; i++) {
        remember(before);
        const int32_t id = any_broker();
        if (image_broker(&c.f.image, id) == NULL)
            restart(id);
        else
            beat(id, false, false);
        check(before);
        remember(before);
        event();
        check(before);
    }
    fixture_close(&c.f);
}

static void test_invariants_with_elr(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        run(seed, 1);
}

static void test_invariants_without_elr(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        run(seed, 0);
}

TEST_MAIN(TEST(test_invariants_with_elr), TEST(test_invariants_without_elr))
