/* Heartbeats, sessions, LeaveGroup, and who may commit (groups.md 2 and 3). */
#include "unit/core_group/classic_fixture.h"

static int16_t beat(struct fix *f, const char *id, const char *instance, int32_t generation)
{
    return classic_heartbeat(f->g, str_of(id), str_of(instance), generation, f->now);
}

/* ------------------------------------------------------------------ Heartbeat */

static void test_heartbeat_checks(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    CU_ASSERT_EQUAL(beat(&f, "x", NULL, 0), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(beat(&f, "", NULL, 0), K_UNKNOWN_MEMBER_ID);
    fix_stable(&f, 1, ids);
    struct fix_call *s = fix_join(&f, .instance = "i");
    fix_join(&f, .id = ids[0]);
    const char *id = fix_id(s);
    CU_ASSERT_EQUAL(beat(&f, "x", NULL, 9), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(beat(&f, "x", "j", 9), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(beat(&f, "x", "i", 9), K_FENCED_INSTANCE_ID);
    CU_ASSERT_EQUAL(beat(&f, id, "i", 1), K_ILLEGAL_GENERATION);
    CU_ASSERT_EQUAL(beat(&f, id, NULL, 3), K_ILLEGAL_GENERATION);
    CU_ASSERT_EQUAL(beat(&f, id, "i", 2), K_NONE);
    CU_ASSERT_EQUAL(beat(&f, id, NULL, 2), K_NONE);
    fix_close(&f);
}

static void test_heartbeat_by_state(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    CU_ASSERT_EQUAL(beat(&f, ids[1], NULL, 1), K_NONE);
    fix_sync(&f, .id = ids[0], .generation = 1);
    CU_ASSERT_EQUAL(beat(&f, ids[1], NULL, 1), K_NONE);
    fix_join(&f, .id = ids[0]);
    CU_ASSERT_EQUAL(beat(&f, ids[1], NULL, 1), K_REBALANCE_IN_PROGRESS);
    CU_ASSERT_EQUAL(beat(&f, ids[0], NULL, 1), K_REBALANCE_IN_PROGRESS);
    fix_close(&f);
}

/* ------------------------------------------------------------------ sessions */

/* What keeps a member: each every 9 s of a session of 10 s. */
enum alive { BEAT, BEAT_PREPARING, COMMIT, COMMIT_PREPARING, SYNC, WRONG, JOIN_SAME };

static void keep(struct fix *f, enum alive how, const char *id)
{
    switch (how) {
    case BEAT:
        CU_ASSERT_EQUAL(beat(f, id, NULL, 1), K_NONE);
        break;
    case BEAT_PREPARING:
        CU_ASSERT_EQUAL(beat(f, id, NULL, 1), K_REBALANCE_IN_PROGRESS);
        break;
    case COMMIT:
    case COMMIT_PREPARING:
        CU_ASSERT_EQUAL(classic_check_commit(f->g, str_of(id), STR_NULL, 1, false, f->now), K_NONE);
        break;
    case SYNC:
        fix_sync(f, .id = id, .generation = 1);
        break;
    case WRONG:
        CU_ASSERT_EQUAL(beat(f, id, NULL, 2), K_ILLEGAL_GENERATION);
        CU_ASSERT_EQUAL(classic_check_commit(f->g, str_of(id), STR_NULL, 2, false, f->now),
                        K_ILLEGAL_GENERATION);
        CU_ASSERT_EQUAL(classic_check_commit(f->g, str_of(id), STR_NULL, 1, true, f->now), K_NONE);
        break;
    case JOIN_SAME:
        fix_id(fix_join(f, .id = id));
        break;
    }
}

static void test_session_is_kept(void)
{
    static const struct {
        enum alive how;
        bool preparing, lives;
    } cases[] = {
        {BEAT, false, true},   {BEAT_PREPARING, true, true},
        {COMMIT, false, true}, {COMMIT_PREPARING, true, true},
        {SYNC, false, false}, /* of a Stable group */
        {WRONG, false, false}, {JOIN_SAME, false, false},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct fix f;
        const char *ids[2];
        fix_open(&f);
        fix_stable(&f, 2, ids);
        if (cases[i].preparing)
            fix_join(&f, .id = ids[0]);
        fix_wait(&f, 9000);
        keep(&f, cases[i].how, ids[1]);
        if (!cases[i].preparing)
            CU_ASSERT_EQUAL(beat(&f, ids[0], NULL, 1), K_NONE);
        fix_wait(&f, 9000);
        CU_ASSERT_EQUAL(classic_members_n(f.g), cases[i].lives ? 2 : 1);
        fix_close(&f);
    }
}

static void test_session_expires_to_the_millisecond(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    fix_wait(&f, 7000);
    CU_ASSERT_EQUAL(beat(&f, ids[0], NULL, 1), K_NONE);
    fix_wait(&f, 2999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_wait(&f, 6999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(f.stored.at_ms, f.now.wall_ms); /* timers know the time */
    CU_ASSERT_EQUAL(classic_state_since_ms(f.g), f.now.wall_ms);
    fix_close(&f);
}

/* A rejoin with a shorter session counts at once. */
static void test_session_becomes_shorter(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .version = 3, .session_ms = 300000);
    fix_wait(&f, 1000);
    const char *id = fix_id(c);
    c = fix_join(&f, .id = id, .session_ms = 6000, .protocols = "range=n");
    fix_id(c);
    fix_sync(&f, .id = id, .generation = 2);
    fix_wait(&f, 5999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 0);
    fix_close(&f);
}

/* Whoever waits in Join or Sync is not expired, and has a whole session afterwards. */
static void test_session_of_parked_members(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct fix_call *a = fix_join(&f, .id = ids[0]);
    for (int i = 0; i < 5; i++) {
        fix_wait(&f, 9000);
        CU_ASSERT_EQUAL(beat(&f, ids[1], NULL, 1), K_REBALANCE_IN_PROGRESS);
    }
    CU_ASSERT_EQUAL(a->done, 0);
    fix_join(&f, .id = ids[1]);
    fix_id(a);
    /* b waits in Sync for longer than its session */
    struct fix_call *b = fix_sync(&f, .id = ids[1], .generation = 2);
    for (int i = 0; i < 5; i++) {
        fix_wait(&f, 9000);
        CU_ASSERT_EQUAL(beat(&f, ids[0], NULL, 2), K_NONE);
    }
    CU_ASSERT_EQUAL(b->done, 0);
    fix_sync(&f, .id = ids[0], .generation = 2);
    CU_ASSERT_EQUAL(b->synced.error_code, K_NONE);
    fix_wait(&f, 9999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 0);
    fix_close(&f);
}

/* A parked member that was in no generation yet is forgotten after five minutes, whatever its
 * session timeout; its client is told to begin anew. */
static void test_session_of_a_new_member(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    struct fix_call *first = fix_join(&f, .version = 3, .rebalance_ms = 1800000);
    fix_wait(&f, 1000);
    ids[0] = fix_id(first);
    struct fix_call *c = fix_join(&f, .version = 3, .session_ms = 6000);
    for (int ms = 0; ms < 299000; ms += 1000) {
        CU_ASSERT_EQUAL(beat(&f, ids[0], NULL, 1), K_REBALANCE_IN_PROGRESS);
        fix_wait(&f, 1000);
    }
    fix_wait(&f, 999);
    CU_ASSERT_EQUAL(c->done, 0);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->joined.error_code, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT(fix_str(c->joined.member_id, ""));
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_close(&f);
}

/* A static one that comes again meanwhile is not new any more. */
static void test_session_of_a_new_static_member(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *first = fix_join(&f, .version = 3, .rebalance_ms = 1800000);
    fix_wait(&f, 1000);
    const char *id = fix_id(first);
    fix_join(&f, .instance = "i");
    for (int ms = 0; ms < 400000; ms += 1000) {
        CU_ASSERT_EQUAL(beat(&f, id, NULL, 1), K_REBALANCE_IN_PROGRESS);
        fix_wait(&f, 1000);
        if (ms == 200000)
            first = fix_join(&f, .instance = "i");
    }
    CU_ASSERT_EQUAL(first->done, 0);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_close(&f);
}

/* A leader whose session ends: the oldest of the others leads. */
static void test_session_of_the_leader(void)
{
    struct fix f;
    const char *ids[3];
    fix_open(&f);
    fix_stable(&f, 3, ids);
    fix_wait(&f, 5000);
    beat(&f, ids[1], NULL, 1);
    beat(&f, ids[2], NULL, 1);
    fix_wait(&f, 5000);
    struct fix_call *c = fix_join(&f, .id = ids[2]);
    struct fix_call *b = fix_join(&f, .id = ids[1]);
    CU_ASSERT(fix_str(c->joined.leader, fix_id(b)));
    CU_ASSERT_EQUAL(b->joined.members.n, 2);
    fix_close(&f);
}

/* ------------------------------------------------------------------ LeaveGroup */

static void test_leave_by_version(void)
{
    static const char *const stranger[1][2] = {{"x", NULL}};
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_leave_many(&f, 5, stranger, 1);
    CU_ASSERT_EQUAL(c->left.error_code, K_NONE);
    CU_ASSERT_EQUAL_FATAL(c->left.members.n, 1);
    CU_ASSERT_EQUAL(c->left.members.v[0].error_code, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT(fix_str(c->left.members.v[0].member_id, "x"));
    c = fix_leave_many(&f, 2, stranger, 1);
    CU_ASSERT_EQUAL(c->left.error_code, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(c->left.members.n, 0);
    /* nobody has left: no rebalance */
    const char *ids[1];
    fix_stable(&f, 1, ids);
    for (int version = 2; version <= 5; version += 3)
        fix_leave_many(&f, version, stranger, 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    fix_leave_many(&f, 2, (const char *const[1][2]){{ids[0], NULL}}, 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    fix_close(&f);
}

/* Each in the order of the request; the group rebalances once for all. */
static void test_leave_many(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .instance = "a");
    struct fix_call *b = fix_join(&f, .instance = "b");
    struct fix_call *d = fix_join(&f, .version = 3);
    fix_wait(&f, 2000);
    const char *pending = fix_ask_id(&f);
    const char *const who[][2] = {
        {NULL, "a"},     {NULL, "a"},      {NULL, "z"},       {NULL, NULL},
        {"x", "b"},      {fix_id(b), "z"}, {fix_id(d), NULL}, {"x", NULL},
        {pending, NULL}, {pending, NULL},  {fix_id(b), "b"},
    };
    static const int16_t errors[] = {
        K_NONE,
        K_UNKNOWN_MEMBER_ID,
        K_UNKNOWN_MEMBER_ID,
        K_UNKNOWN_MEMBER_ID,
        K_FENCED_INSTANCE_ID,
        K_UNKNOWN_MEMBER_ID,
        K_NONE,
        K_UNKNOWN_MEMBER_ID,
        K_NONE,
        K_UNKNOWN_MEMBER_ID,
        K_NONE,
    };
    fix_id(a);
    f.hold = true;
    struct fix_call *c = fix_leave_many(&f, 4, who, ARRAY_N(who));
    CU_ASSERT_EQUAL(c->done, 0); /* nobody is left: that is being stored */
    CU_ASSERT_EQUAL(f.stores_n, 1);
    CU_ASSERT_EQUAL(classic_generation(f.g), 2);
    fix_end_store(&f, K_NONE);
    fix_settle(&f);
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL_FATAL(c->left.members.n, ARRAY_N(who));
    for (size_t i = 0; i < ARRAY_N(who); i++) {
        CU_ASSERT_EQUAL(c->left.members.v[i].error_code, errors[i]);
        CU_ASSERT(fix_str(c->left.members.v[i].member_id, who[i][0] == NULL ? "" : who[i][0]));
        CU_ASSERT(str_eq(c->left.members.v[i].group_instance_id, str_of(who[i][1])));
    }
    fix_close(&f);
}

/* That the group is Empty could not be stored: the answer says so on top. */
static void test_leave_not_stored(void)
{
    for (int refuse = 0; refuse < 2; refuse++) {
        struct fix f;
        const char *ids[1];
        fix_open(&f);
        fix_stable(&f, 1, ids);
        f.store_error = K_NOT_COORDINATOR;
        f.refuse = refuse == 1;
        struct fix_call *c = fix_leave(&f, ids[0], NULL);
        CU_ASSERT_EQUAL_FATAL(c->done, 1);
        CU_ASSERT_EQUAL(c->left.error_code, K_NOT_COORDINATOR);
        CU_ASSERT_EQUAL(c->left.members.n, 0);
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
        fix_close(&f);
    }
}

static void test_leave_stored_too_late(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    fix_stable(&f, 1, ids);
    f.hold = true;
    struct fix_call *c = fix_leave(&f, ids[0], NULL);
    fix_wait(&f, 4999);
    CU_ASSERT_EQUAL(c->done, 0);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->left.error_code, K_COORDINATOR_NOT_AVAILABLE);
    fix_close(&f); /* the store is still under way: the answer comes once all the same */
}

static void test_leave_cancel(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    fix_stable(&f, 1, ids);
    f.hold = true;
    struct fix_call *c = fix_leave(&f, ids[0], NULL);
    classic_leave_cancel(&c->leave);
    CU_ASSERT_EQUAL(c->done, 0);
    fix_settle(&f);
    CU_ASSERT_EQUAL(c->done, 1);
    CU_ASSERT_EQUAL(c->left.error_code, K_NOT_COORDINATOR);
    classic_leave_cancel(&c->leave); /* harmless */
    fix_end_store(&f, K_NONE);
    fix_settle(&f);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    fix_close(&f);
}

/* Before there is a group. */
static void test_leave_refused(void)
{
    static const char *const who[2][2] = {{"x", "i"}, {NULL, NULL}};
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_leave_many(&f, 3, who, 2);
    classic_leave_refuse(&c->leave, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(c->left.error_code, K_NONE);
    CU_ASSERT_EQUAL_FATAL(c->left.members.n, 2);
    CU_ASSERT(fix_str(c->left.members.v[0].member_id, "x"));
    CU_ASSERT(fix_str(c->left.members.v[0].group_instance_id, "i"));
    CU_ASSERT_EQUAL(c->left.members.v[1].error_code, K_UNKNOWN_MEMBER_ID);
    classic_leave_refuse(&c->leave, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(c->left.error_code, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(c->left.members.n, 0);
    c = fix_leave_many(&f, 2, who, 1);
    classic_leave_refuse(&c->leave, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(c->left.error_code, K_UNKNOWN_MEMBER_ID);
    fix_close(&f);
}

static void test_leave_unloaded_meanwhile(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    fix_stable(&f, 1, ids);
    f.hold = true;
    struct fix_call *c = fix_leave(&f, ids[0], NULL);
    classic_unload(f.g, K_NOT_COORDINATOR);
    f.open_n = 0;
    fix_settle(&f);
    CU_ASSERT_EQUAL(c->left.error_code, K_NOT_COORDINATOR);
    fix_close(&f);
}

/* The others are called together; a parked Join of the one who left ends. */
static void test_leave_rebalances(void)
{
    struct fix f;
    const char *ids[3];
    fix_open(&f);
    fix_stable(&f, 3, ids);
    fix_leave(&f, ids[0], NULL);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    struct fix_call *b = fix_join(&f, .id = ids[1]);
    struct fix_call *l = fix_leave(&f, ids[1], NULL);
    CU_ASSERT_EQUAL(l->done, 1);
    CU_ASSERT_EQUAL(b->joined.error_code, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT(fix_str(b->joined.member_id, ""));
    struct fix_call *c = fix_join(&f, .id = ids[2]);
    CU_ASSERT(fix_str(c->joined.leader, fix_id(c)));
    CU_ASSERT_EQUAL(c->joined.generation_id, 2);
    fix_close(&f);
}

/* The last one that was waited for leaves. */
static void test_leave_completes_the_join(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct fix_call *a = fix_join(&f, .id = ids[0]);
    fix_leave(&f, ids[1], NULL);
    fix_id(a);
    CU_ASSERT_EQUAL(a->joined.members.n, 1);
    /* a pending id too */
    const char *pending = fix_ask_id(&f);
    a = fix_join(&f, .id = ids[0], .protocols = "range=n");
    CU_ASSERT_EQUAL(a->done, 0);
    fix_leave(&f, pending, NULL);
    fix_id(a);
    fix_close(&f);
}

/* ------------------------------------------------------------------ commits */

static int16_t commit(struct fix *f, const char *id, const char *instance, int32_t generation,
                      bool txn)
{
    return classic_check_commit(f->g, str_of(id), str_of(instance), generation, txn, f->now);
}

static void test_commit_checks(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    /* Empty: whoever has no generation */
    CU_ASSERT_EQUAL(commit(&f, "", NULL, -1, false), K_NONE);
    CU_ASSERT_EQUAL(commit(&f, "x", "i", -1, false), K_NONE);
    CU_ASSERT_EQUAL(commit(&f, "x", NULL, 0, false), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(commit(&f, "x", NULL, 0, true), K_UNKNOWN_MEMBER_ID);
    fix_completing(&f, 2, ids);
    CU_ASSERT_EQUAL(commit(&f, ids[0], NULL, 1, false), K_REBALANCE_IN_PROGRESS);
    CU_ASSERT_EQUAL(commit(&f, ids[0], NULL, 2, false), K_ILLEGAL_GENERATION);
    CU_ASSERT_EQUAL(commit(&f, ids[0], NULL, 1, true), K_NONE);
    CU_ASSERT_EQUAL(commit(&f, "", NULL, -1, true), K_NONE);
    fix_sync(&f, .id = ids[0], .generation = 1);
    CU_ASSERT_EQUAL(commit(&f, "", NULL, -1, false), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(commit(&f, ids[0], NULL, -1, false), K_ILLEGAL_GENERATION);
    CU_ASSERT_EQUAL(commit(&f, "zz", NULL, -1, false), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(commit(&f, "zz", NULL, -1, true), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(commit(&f, "", "i", -1, true), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(commit(&f, ids[1], NULL, 1, false), K_NONE);
    CU_ASSERT_EQUAL(commit(&f, ids[1], NULL, 0, true), K_ILLEGAL_GENERATION);
    fix_join(&f, .id = ids[0]);
    CU_ASSERT_EQUAL(commit(&f, ids[1], NULL, 1, false), K_NONE); /* Preparing */
    classic_unload(f.g, K_NOT_COORDINATOR);
    fix_settle(&f);
    CU_ASSERT_EQUAL(commit(&f, ids[1], NULL, 1, false), K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(commit(&f, "", NULL, -1, true), K_COORDINATOR_NOT_AVAILABLE);
    fix_close(&f);
}

static void test_commit_of_static_members(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .instance = "i");
    fix_wait(&f, 1000);
    fix_sync(&f, .id = fix_id(a), .generation = 1);
    CU_ASSERT_EQUAL(commit(&f, fix_id(a), "i", 1, false), K_NONE);
    CU_ASSERT_EQUAL(commit(&f, "x", "i", 1, false), K_FENCED_INSTANCE_ID);
    CU_ASSERT_EQUAL(commit(&f, "x", "i", 1, true), K_FENCED_INSTANCE_ID);
    CU_ASSERT_EQUAL(commit(&f, fix_id(a), "j", 1, false), K_UNKNOWN_MEMBER_ID);
    fix_close(&f);
}

TEST_MAIN(TEST(test_heartbeat_checks), TEST(test_heartbeat_by_state), TEST(test_session_is_kept),
          TEST(test_session_expires_to_the_millisecond), TEST(test_session_becomes_shorter),
          TEST(test_session_of_parked_members), TEST(test_session_of_a_new_member),
          TEST(test_session_of_a_new_static_member), TEST(test_session_of_the_leader),
          TEST(test_leave_by_version), TEST(test_leave_many), TEST(test_leave_not_stored),
          TEST(test_leave_unloaded_meanwhile), TEST(test_leave_stored_too_late),
          TEST(test_leave_cancel), TEST(test_leave_refused), TEST(test_leave_rebalances),
          TEST(test_leave_completes_the_join), TEST(test_commit_checks),
          TEST(test_commit_of_static_members))
