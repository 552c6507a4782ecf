/* The join phase and the sync phase in time (groups.md 2): when a generation begins, who is in it,
 * who leads, who is removed. */
#include "unit/core_group/classic_fixture.h"

/* Milliseconds until c is done; at most max. */
static int64_t done_after(struct fix *f, const struct fix_call *c, int64_t max)
{
    int64_t ms = 0;
    while (c->done == 0 && ms < max) {
        fix_wait(f, 1);
        ms++;
    }
    return ms;
}

/* ------------------------------------------------------------------ the first generation */

static void test_phase_initial_delay(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .version = 3);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    CU_ASSERT_EQUAL(done_after(&f, c, 9999), 1000);
    CU_ASSERT_EQUAL(c->joined.generation_id, 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
    CU_ASSERT_EQUAL(f.stores_n, 0); /* a Join writes nothing */
    fix_close(&f);
}

/* Measured: delay 1 s, a second member at 0.7 s: 2.0 s; rebalance timeout 1.5 s: 1.5 s. */
static void test_phase_initial_delay_extends(void)
{
    static const struct {
        int32_t rebalance_ms;
        int64_t joins_ms[4], total_ms;
    } cases[] = {
        {60000, {700}, 2000},       {1500, {700}, 1500},
        {1000, {700}, 1000},        {500, {700}, 1000},
        {60000, {700, 1700}, 3000}, {60000, {700, 2500}, 2000}, /* after the end: a rebalance */
        {2500, {700, 1700}, 2500},  {2500, {700, 1700, 2200}, 2500},
        {-1, {700}, 1000},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct fix f;
        int64_t ms = 0;
        fix_open(&f);
        struct fix_call *c =
            fix_join(&f, .version = 3, .rebalance_ms = cases[i].rebalance_ms, .session_ms = 30000);
        for (const int64_t *j = cases[i].joins_ms; *j != 0 && c->done == 0; j++) {
            for (; ms < *j && c->done == 0; ms++)
                fix_wait(&f, 1);
            fix_join(&f, .version = 3, .rebalance_ms = 60000);
        }
        ms += done_after(&f, c, 9999);
        CU_ASSERT_EQUAL(ms, cases[i].total_ms);
        fix_close(&f);
    }
}

static void test_phase_initial_delay_of_zero(void)
{
    struct fix f;
    fix_open(&f);
    fix_set(&f, "group.initial.rebalance.delay.ms", "0");
    struct fix_call *c = fix_join(&f, .version = 3);
    CU_ASSERT_EQUAL(c->done, 0);
    fix_wait(&f, 0);
    fix_id(c);
    fix_close(&f);
}

/* All leave during the delay: it goes on, and ends in an empty generation. */
static void test_phase_initial_delay_ends_empty(void)
{
    struct fix f;
    fix_open(&f);
    const char *id = fix_ask_id(&f);
    struct fix_call *c = fix_join(&f, .id = id);
    struct fix_call *l = fix_leave(&f, id, NULL);
    CU_ASSERT_EQUAL(l->done, 1);
    CU_ASSERT_EQUAL(c->joined.error_code, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    /* its type stays meanwhile */
    CU_ASSERT_EQUAL(fix_join(&f, .version = 3, .type = "x")->joined.error_code,
                    K_INCONSISTENT_GROUP_PROTOCOL);
    fix_wait(&f, 999);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(classic_generation(f.g), 1);
    CU_ASSERT_EQUAL(f.stores_n, 1);
    CU_ASSERT(fix_str(f.stored.v.protocol_type, "consumer"));
    fix_close(&f);
}

/* A session that ends during the delay ends it too when all are there, as in Kafka: an id that was
 * not used, a member that was new for too long. */
static void test_phase_initial_delay_ends_with_a_session(void)
{
    struct fix f;
    fix_open(&f);
    fix_set(&f, "group.initial.rebalance.delay.ms", "400000");
    fix_join(&f, .version = 9, .session_ms = 6000);
    struct fix_call *c = fix_join(&f, .version = 3);
    CU_ASSERT_EQUAL(done_after(&f, c, 99999), 6000);
    fix_id(c);
    fix_close(&f);
    fix_open(&f);
    fix_set(&f, "group.initial.rebalance.delay.ms", "400000");
    struct fix_call *old = fix_join(&f, .version = 3);
    fix_wait(&f, 1000);
    c = fix_join(&f, .version = 3);
    fix_wait(&f, 298999);
    CU_ASSERT_EQUAL(old->done + c->done, 0);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(old->joined.error_code, K_UNKNOWN_MEMBER_ID);
    fix_id(c);
    fix_close(&f);
}

/* ------------------------------------------------------------------ rebalances */

static void test_phase_ends_when_all_have_joined(void)
{
    struct fix f;
    const char *ids[3];
    struct fix_call *c[3];
    fix_open(&f);
    fix_stable(&f, 3, ids);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < i; k++)
            CU_ASSERT_EQUAL(c[k]->done, 0);
        c[i] = fix_join(&f, .id = ids[i]);
    }
    for (int i = 0; i < 3; i++)
        CU_ASSERT_STRING_EQUAL(fix_id(c[i]), ids[i]);
    CU_ASSERT_EQUAL(classic_generation(f.g), 2);
    fix_close(&f);
}

/* Those who do not come within the longest rebalance timeout are out, but for static ones. */
static void test_phase_ends_in_time(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 30000);
    struct fix_call *b = fix_join(&f, .version = 3, .rebalance_ms = 9000, .session_ms = 30000);
    struct fix_call *s =
        fix_join(&f, .instance = "s", .rebalance_ms = 1, .session_ms = 30000, .version = 5);
    fix_wait(&f, 2000);
    const char *ids[3] = {fix_id(a), fix_id(b), fix_id(s)};
    struct fix_call *again = fix_join(&f, .id = ids[0], .protocols = "range=n",
                                      .rebalance_ms = 5000, .session_ms = 30000);
    CU_ASSERT_EQUAL(done_after(&f, again, 99999), 9000);
    CU_ASSERT_STRING_EQUAL(fix_id(again), ids[0]);
    CU_ASSERT_EQUAL(again->joined.members.n, 2);
    CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[1], 2), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[2], 2), K_NONE);
    fix_close(&f);
}

/* A leader that did not come loses its place to one that did, but stays if it is static. */
static void test_phase_absent_leader(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .instance = "s", .rebalance_ms = 5000, .session_ms = 30000);
    struct fix_call *b = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 30000);
    fix_wait(&f, 2000);
    CU_ASSERT(fix_str(b->joined.leader, fix_id(a)));
    struct fix_call *again = fix_join(&f, .id = fix_id(b), .protocols = "range=n",
                                      .rebalance_ms = 5000, .session_ms = 30000);
    CU_ASSERT_EQUAL(done_after(&f, again, 99999), 5000);
    CU_ASSERT(fix_str(again->joined.leader, fix_id(b)));
    CU_ASSERT_EQUAL(again->joined.members.n, 2);
    /* it keeps that place beside an older member, and when another leaves */
    struct fix_call *c = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 30000);
    fix_join(&f, .id = fix_id(a), .instance = "s", .rebalance_ms = 5000, .session_ms = 30000);
    again = fix_join(&f, .id = fix_id(b), .rebalance_ms = 5000, .session_ms = 30000);
    CU_ASSERT(fix_str(c->joined.leader, fix_id(b)));
    CU_ASSERT_EQUAL(again->joined.members.n, 3);
    fix_leave(&f, fix_id(c), NULL);
    fix_join(&f, .id = fix_id(a), .instance = "s");
    again = fix_join(&f, .id = fix_id(b));
    CU_ASSERT(fix_str(again->joined.leader, fix_id(b)));
    CU_ASSERT_EQUAL(again->joined.members.n, 2);
    fix_close(&f);
}

/* Only static members, and none comes: they are waited for again, until their sessions end. */
static void test_phase_nobody_joins(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .instance = "s", .rebalance_ms = 5000, .session_ms = 12000);
    struct fix_call *b = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 12000);
    fix_wait(&f, 2000);
    fix_id(a);
    fix_leave(&f, fix_id(b), NULL);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_wait(&f, 5000);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_wait(&f, 5000);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    CU_ASSERT_EQUAL(classic_generation(f.g), 1);
    fix_wait(&f, 1999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(classic_generation(f.g), 2);
    fix_close(&f);
}

/* An id given out and not used blocks the end until it expires. */
static void test_phase_pending_id_blocks(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    fix_stable(&f, 1, ids);
    fix_join(&f, .version = 9, .session_ms = 2000);
    struct fix_call *c = fix_join(&f, .id = ids[0]);
    CU_ASSERT_EQUAL(done_after(&f, c, 99999), 2000);
    CU_ASSERT_STRING_EQUAL(fix_id(c), ids[0]);
    fix_close(&f);
}

/* ... but not longer than the rebalance timeout, and it stays pending. */
static void test_phase_pending_id_does_not_block_for_ever(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .version = 3, .rebalance_ms = 3000);
    fix_wait(&f, 1000);
    struct fix_call *p = fix_join(&f, .version = 9, .session_ms = 20000);
    struct fix_call *c =
        fix_join(&f, .id = fix_id(a), .protocols = "range=n", .rebalance_ms = 3000);
    CU_ASSERT_EQUAL(done_after(&f, c, 99999), 3000);
    CU_ASSERT_EQUAL(f.g->pending_n, 1);
    CU_ASSERT_EQUAL(fix_join(&f, .id = p->joined.member_id.p)->done, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_close(&f);
}

/* A member that comes into a Stable or Completing group makes it rebalance. */
static void test_phase_newcomers_rebalance(void)
{
    for (int stable = 0; stable < 2; stable++) {
        struct fix f;
        const char *ids[2];
        fix_open(&f);
        if (stable)
            fix_stable(&f, 2, ids);
        else
            fix_completing(&f, 2, ids);
        struct fix_call *c = fix_join(&f, .version = 3);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
        struct fix_call *a = fix_join(&f, .id = ids[0]);
        CU_ASSERT_EQUAL(c->done, 0);
        fix_join(&f, .id = ids[1]);
        fix_id(c);
        CU_ASSERT_EQUAL(c->joined.generation_id, 2);
        CU_ASSERT_EQUAL(a->joined.members.n, 3);
        fix_close(&f);
    }
}

/* ------------------------------------------------------------------ turning Empty */

static void test_phase_becomes_empty(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    CU_ASSERT_EQUAL(f.stores_n, 1);
    fix_leave(&f, ids[0], NULL);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_wait(&f, 500);
    fix_leave(&f, ids[1], NULL);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(f.stores_n, 2);
    const struct group_metadata_value *v = &f.stored.v;
    CU_ASSERT_EQUAL(v->generation, 2);
    CU_ASSERT(fix_str(v->protocol_type, "consumer"));
    CU_ASSERT_EQUAL(v->protocol.n, -1);
    CU_ASSERT_EQUAL(v->leader.n, -1);
    CU_ASSERT_EQUAL(v->members.n, 0);
    CU_ASSERT_EQUAL(v->current_state_timestamp, f.now.wall_ms);
    CU_ASSERT_EQUAL(classic_state_since_ms(f.g), f.now.wall_ms);
    fix_close(&f);
}

/* That it could not be stored is a warning: the group is Empty all the same. */
static void test_phase_becomes_empty_unstored(void)
{
    for (int refuse = 0; refuse < 2; refuse++) {
        struct fix f;
        const char *ids[1];
        fix_open(&f);
        fix_stable(&f, 1, ids);
        f.refuse = refuse == 1;
        f.store_error = K_NOT_COORDINATOR;
        fix_wait(&f, 10000);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
        CU_ASSERT(f.env.lines[LOG_WARN] > 0);
        CU_ASSERT_EQUAL(fix_join(&f, .version = 3)->done, 0);
        fix_close(&f);
    }
}

/* ------------------------------------------------------------------ the sync phase */

/* Whoever has not synced within the longest rebalance timeout is removed, static or not. */
static void test_phase_sync_timeout(void)
{
    for (int lead = 0; lead < 2; lead++) {
        struct fix f;
        fix_open(&f);
        struct fix_call *a = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 30000);
        struct fix_call *b = fix_join(&f, .version = 3, .rebalance_ms = 4000, .session_ms = 30000);
        struct fix_call *s =
            fix_join(&f, .instance = "s", .rebalance_ms = 5000, .session_ms = 30000);
        fix_wait(&f, 2000);
        struct fix_call *y = fix_sync(&f, .id = fix_id(lead ? a : b), .generation = 1);
        CU_ASSERT_EQUAL(y->done, lead);
        CU_ASSERT_EQUAL(classic_state(f.g), lead ? CLASSIC_STABLE : CLASSIC_COMPLETING);
        CU_ASSERT_EQUAL(fix_heartbeat(&f, fix_id(a), 1), K_NONE);
        fix_wait(&f, 4999);
        CU_ASSERT_EQUAL(classic_members_n(f.g), 3);
        fix_wait(&f, 1);
        CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
        CU_ASSERT_EQUAL(fix_heartbeat(&f, fix_id(s), 1), K_UNKNOWN_MEMBER_ID);
        if (!lead)
            CU_ASSERT_EQUAL(y->synced.error_code, K_REBALANCE_IN_PROGRESS);
        fix_close(&f);
    }
}

static void test_phase_sync_in_time(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    for (int i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[0], 1), K_NONE);
        CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[1], 1), K_NONE);
        fix_wait(&f, 9000);
    }
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    fix_close(&f);
}

/* Sync in Stable counts too, a rebalance starts the phase anew. */
static void test_phase_sync_late_in_stable(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 30000);
    struct fix_call *b = fix_join(&f, .version = 3, .rebalance_ms = 5000, .session_ms = 30000);
    fix_wait(&f, 2000);
    fix_sync(&f, .id = fix_id(a), .generation = 1);
    fix_wait(&f, 4999);
    CU_ASSERT_EQUAL(fix_sync(&f, .id = fix_id(b), .generation = 1)->done, 1);
    fix_wait(&f, 10000);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_close(&f);
}

/* Generations go around as Java's int. */
static void test_phase_generation_wraps(void)
{
    struct fix f;
    const char *id;
    fix_open(&f);
    f.g->generation = INT32_MAX - 1;
    struct fix_call *c = fix_join(&f, .version = 3);
    fix_wait(&f, 1000);
    id = fix_id(c);
    CU_ASSERT_EQUAL(c->joined.generation_id, INT32_MAX);
    c = fix_join(&f, .id = id, .protocols = "range=n");
    CU_ASSERT_EQUAL(c->joined.generation_id, INT32_MIN);
    fix_close(&f);
}

TEST_MAIN(TEST(test_phase_initial_delay), TEST(test_phase_initial_delay_extends),
          TEST(test_phase_initial_delay_of_zero), TEST(test_phase_initial_delay_ends_empty),
          TEST(test_phase_initial_delay_ends_with_a_session),
          TEST(test_phase_ends_when_all_have_joined), TEST(test_phase_ends_in_time),
          TEST(test_phase_absent_leader), TEST(test_phase_nobody_joins),
          TEST(test_phase_pending_id_blocks), TEST(test_phase_pending_id_does_not_block_for_ever),
          TEST(test_phase_newcomers_rebalance), TEST(test_phase_becomes_empty),
          TEST(test_phase_becomes_empty_unstored), TEST(test_phase_sync_timeout),
          TEST(test_phase_sync_in_time), TEST(test_phase_sync_late_in_stable),
          TEST(test_phase_generation_wraps))
