/* SyncGroup: its checks in order, the leader's assignments, the store between (groups.md 2). */
#include "unit/core_group/classic_fixture.h"

static void expect_error(const struct fix_call *c, int16_t error)
{
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->synced.error_code, error);
    CU_ASSERT_EQUAL(c->synced.protocol_type.n, -1);
    CU_ASSERT_EQUAL(c->synced.protocol_name.n, -1);
    CU_ASSERT_EQUAL(c->synced.assignment.n, 0);
}

static void expect_assignment(const struct fix_call *c, const char *text)
{
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->synced.error_code, K_NONE);
    CU_ASSERT(fix_str(c->synced.protocol_type, "consumer"));
    CU_ASSERT(fix_str(c->synced.protocol_name, "range"));
    CU_ASSERT(fix_bytes(c->synced.assignment, text));
}

static void test_sync_checks(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    expect_error(fix_sync(&f, .id = "x", .generation = 0), K_UNKNOWN_MEMBER_ID);
    const char *pending = fix_ask_id(&f);
    expect_error(fix_sync(&f, .id = pending, .generation = 0), K_UNKNOWN_MEMBER_ID);
    fix_leave(&f, pending, NULL);
    fix_completing(&f, 2, ids);
    fix_join(&f, .instance = "i", .version = 9);
    fix_join(&f, .id = ids[0]);
    fix_join(&f, .id = ids[1]);
    CU_ASSERT_EQUAL_FATAL(classic_generation(f.g), 2);
    /* whoever it is comes before the generation, that before the protocol */
    expect_error(fix_sync(&f, .id = "x", .generation = 7), K_UNKNOWN_MEMBER_ID);
    expect_error(fix_sync(&f, .id = ids[0], .instance = "j", .generation = 7), K_UNKNOWN_MEMBER_ID);
    expect_error(fix_sync(&f, .id = ids[0], .instance = "i", .generation = 7),
                 K_FENCED_INSTANCE_ID);
    expect_error(fix_sync(&f, .id = ids[0], .generation = 1, .type = "x"), K_ILLEGAL_GENERATION);
    expect_error(fix_sync(&f, .id = ids[0], .generation = 3), K_ILLEGAL_GENERATION);
    expect_error(fix_sync(&f, .id = ids[0], .generation = 2, .type = "x", .protocol = "range"),
                 K_INCONSISTENT_GROUP_PROTOCOL);
    expect_error(fix_sync(&f, .id = ids[0], .generation = 2, .type = "consumer", .protocol = "x"),
                 K_INCONSISTENT_GROUP_PROTOCOL);
    CU_ASSERT_EQUAL(f.stores_n, 0);
    fix_close(&f);
}

static void test_sync_while_preparing(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    fix_join(&f, .id = ids[0]);
    expect_error(fix_sync(&f, .id = ids[1], .generation = 1), K_REBALANCE_IN_PROGRESS);
    expect_error(fix_sync(&f, .id = ids[1], .generation = 1, .type = "x"),
                 K_INCONSISTENT_GROUP_PROTOCOL);
    fix_close(&f);
}

/* All wait for the leader. Whom it forgot gets no bytes, strangers are ignored. */
static void test_sync_assigns(void)
{
    struct fix f;
    const char *ids[3];
    char text[256];
    fix_open(&f);
    fix_completing(&f, 3, ids);
    const int64_t since = classic_state_since_ms(f.g);
    struct fix_call *b =
        fix_sync(&f, .id = ids[1], .generation = 1, .type = "consumer", .protocol = "range");
    struct fix_call *c = fix_sync(&f, .id = ids[2], .generation = 1);
    CU_ASSERT_EQUAL(b->done + c->done, 0);
    fix_wait(&f, 100);
    f.hold = true;
    snprintf(text, sizeof text, "%s=first,stranger=s,%s=bb,%s=aa", ids[0], ids[1], ids[0]);
    struct fix_call *a = fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text);
    CU_ASSERT_EQUAL(a->done, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
    /* the record */
    const struct group_metadata_value *v = &f.stored.v;
    CU_ASSERT_EQUAL(f.stores_n, 1);
    CU_ASSERT_EQUAL(v->generation, 1);
    CU_ASSERT(fix_str(v->protocol_type, "consumer"));
    CU_ASSERT(fix_str(v->protocol, "range"));
    CU_ASSERT(fix_str(v->leader, ids[0]));
    CU_ASSERT_EQUAL(v->current_state_timestamp, since);
    CU_ASSERT_EQUAL_FATAL(v->members.n, 3);
    CU_ASSERT(fix_bytes(v->members.v[0].assignment, "aa")); /* the last one counts */
    CU_ASSERT(fix_bytes(v->members.v[1].assignment, "bb"));
    CU_ASSERT(fix_bytes(v->members.v[2].assignment, ""));
    CU_ASSERT(fix_bytes(v->members.v[1].subscription, "m"));
    CU_ASSERT(fix_str(v->members.v[1].client_id, "client"));
    CU_ASSERT(fix_str(v->members.v[1].client_host, "/1.2.3.4"));
    CU_ASSERT_EQUAL(v->members.v[1].session_timeout, 10000);
    CU_ASSERT_EQUAL(v->members.v[1].rebalance_timeout, 60000);
    CU_ASSERT_EQUAL(v->members.v[1].group_instance_id.n, -1);
    fix_end_store(&f, K_NONE);
    fix_settle(&f);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    expect_assignment(a, "aa");
    expect_assignment(b, "bb");
    expect_assignment(c, "");
    fix_close(&f);
}

/* Stable: what is stored; the request's own assignments are ignored. */
static void test_sync_while_stable(void)
{
    struct fix f;
    const char *ids[2];
    char text[128];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    snprintf(text, sizeof text, "%s=other,%s=other", ids[0], ids[1]);
    expect_assignment(fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text), "a0");
    expect_assignment(fix_sync(&f, .id = ids[1], .generation = 1), "a1");
    CU_ASSERT_EQUAL(f.stores_n, 1);
    fix_close(&f);
}

/* A parked Sync ends when a rebalance begins, also the leader's that is being stored. */
static void test_sync_ends_with_a_rebalance(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct fix f;
        const char *ids[2];
        char text[128];
        fix_open(&f);
        fix_completing(&f, 2, ids);
        struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 1);
        f.hold = true;
        snprintf(text, sizeof text, "%s=aa,%s=bb", ids[0], ids[1]);
        struct fix_call *a = fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text);
        struct fix_call *n = fix_join(&f, .version = 3);
        expect_error(a, K_REBALANCE_IN_PROGRESS);
        expect_error(b, K_REBALANCE_IN_PROGRESS);
        /* the store that ends now changes nothing, neither in this phase nor in the next */
        if (fails)
            fix_end_store(&f, K_NOT_COORDINATOR);
        fix_join(&f, .id = ids[0]);
        fix_join(&f, .id = ids[1]);
        fix_id(n);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
        if (!fails)
            fix_end_store(&f, K_NONE);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
        CU_ASSERT_EQUAL(f.g->leader->assignment.n, 0);
        fix_close(&f);
    }
}

/* Not stored: all that wait get the error, assignments are dropped, the group rebalances. */
static void test_sync_not_stored(void)
{
    for (int refuse = 0; refuse < 2; refuse++) {
        struct fix f;
        const char *ids[2];
        char text[128];
        fix_open(&f);
        fix_completing(&f, 2, ids);
        struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 1);
        f.store_error = K_COORDINATOR_NOT_AVAILABLE;
        f.refuse = refuse == 1;
        snprintf(text, sizeof text, "%s=aa,%s=bb", ids[0], ids[1]);
        struct fix_call *a = fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text);
        expect_error(a, K_COORDINATOR_NOT_AVAILABLE);
        expect_error(b, K_COORDINATOR_NOT_AVAILABLE);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
        CU_ASSERT_EQUAL(f.g->leader->assignment.n, 0);
        CU_ASSERT_EQUAL(f.g->leader->next_assignment.n, 0);
        f.store_error = K_NONE;
        f.refuse = false;
        struct fix_call *ja = fix_join(&f, .id = ids[0]);
        fix_join(&f, .id = ids[1]);
        fix_id(ja);
        fix_sync(&f, .id = ids[1], .generation = 2);
        fix_sync(&f, .id = ids[0], .generation = 2);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
        fix_close(&f);
    }
}

/* Assignments of the generation before are shown until a rebalance drops them in Completing. */
static void test_sync_drops_old_assignments(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    fix_join(&f, .id = ids[0]);
    CU_ASSERT(fix_bytes(f.g->leader->assignment, "a0"));
    fix_join(&f, .id = ids[1]);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
    CU_ASSERT(fix_bytes(f.g->leader->assignment, "a0"));
    fix_join(&f, .id = ids[1], .protocols = "range=n");
    CU_ASSERT(fix_bytes(f.g->leader->assignment, ""));
    fix_close(&f);
}

/* Not committed within offsets.commit.timeout.ms: as if it had failed. What becomes of it later is
 * of no interest, but it has its place among the stores. */
static void test_sync_stored_too_late(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct fix f;
        const char *ids[2];
        fix_open(&f);
        fix_completing(&f, 2, ids);
        struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 1);
        f.hold = true;
        struct fix_call *a = fix_sync(&f, .id = ids[0], .generation = 1);
        fix_wait(&f, 4999);
        CU_ASSERT_EQUAL(a->done + b->done, 0);
        fix_wait(&f, 1);
        expect_error(a, K_COORDINATOR_NOT_AVAILABLE);
        expect_error(b, K_COORDINATOR_NOT_AVAILABLE);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
        fix_join(&f, .id = ids[1]);
        fix_join(&f, .id = ids[0]);
        a = fix_sync(&f, .id = ids[0], .generation = 2);
        CU_ASSERT_EQUAL(f.stores_n, 2);
        fix_end_store(&f, fails ? K_NOT_COORDINATOR : K_NONE);
        fix_settle(&f);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
        CU_ASSERT_EQUAL(a->done, 0);
        fix_end_store(&f, K_NONE);
        fix_settle(&f);
        expect_assignment(a, "");
        fix_close(&f);
    }
}

/* A second Sync of a parked member ends the first, Kafka would never answer it. */
static void test_sync_twice(void)
{
    struct fix f;
    const char *ids[2];
    char text[128];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    struct fix_call *b1 = fix_sync(&f, .id = ids[1], .generation = 1);
    struct fix_call *b2 = fix_sync(&f, .id = ids[1], .generation = 1);
    expect_error(b1, K_REBALANCE_IN_PROGRESS);
    f.hold = true;
    snprintf(text, sizeof text, "%s=first,%s=first", ids[0], ids[1]);
    struct fix_call *a1 = fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text);
    snprintf(text, sizeof text, "%s=second,%s=second", ids[0], ids[1]);
    struct fix_call *a2 = fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text);
    expect_error(a1, K_REBALANCE_IN_PROGRESS);
    CU_ASSERT_EQUAL(f.stores_n, 1); /* what is being stored stays */
    fix_end_store(&f, K_NONE);
    fix_settle(&f);
    expect_assignment(a2, "first");
    expect_assignment(b2, "first");
    fix_close(&f);
}

static void test_sync_cancel(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 1);
    classic_sync_cancel(&b->sync);
    CU_ASSERT_EQUAL(b->done, 0);
    fix_settle(&f);
    CU_ASSERT_EQUAL(b->done, 1);
    CU_ASSERT_EQUAL(b->synced.error_code, K_NOT_COORDINATOR);
    classic_sync_cancel(&b->sync); /* harmless */
    /* the leader's too: its assignments are stored all the same */
    f.hold = true;
    struct fix_call *a = fix_sync(&f, .id = ids[0], .generation = 1);
    classic_sync_cancel(&a->sync);
    fix_settle(&f);
    fix_end_store(&f, K_NONE);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    CU_ASSERT_EQUAL(a->done, 1);
    fix_close(&f);
}

/* Members that wait in Sync leave. */
static void test_sync_of_a_leaving_member(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 1);
    fix_leave(&f, ids[1], NULL);
    expect_error(b, K_UNKNOWN_MEMBER_ID);
    fix_close(&f);
}

static void test_sync_unloaded(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 1);
    f.hold = true;
    struct fix_call *a = fix_sync(&f, .id = ids[0], .generation = 1);
    classic_unload(f.g, K_NOT_COORDINATOR);
    f.open_n = 0;
    fix_settle(&f);
    expect_error(a, K_NOT_COORDINATOR);
    expect_error(b, K_NOT_COORDINATOR);
    fix_close(&f);
}

TEST_MAIN(TEST(test_sync_checks), TEST(test_sync_while_preparing), TEST(test_sync_assigns),
          TEST(test_sync_while_stable), TEST(test_sync_ends_with_a_rebalance),
          TEST(test_sync_not_stored), TEST(test_sync_drops_old_assignments),
          TEST(test_sync_stored_too_late), TEST(test_sync_twice), TEST(test_sync_cancel),
          TEST(test_sync_of_a_leaving_member), TEST(test_sync_unloaded))
