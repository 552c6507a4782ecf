/* Static members that come back without their id (groups.md 2, cases 11 and 12). */
#include "unit/core_group/classic_fixture.h"

struct pair {
    const char *a, *b; /* ids; a leads */
    struct fix_call *ja, *jb;
};

/* Two static members "a" and "b", Stable, with assignments "A" and "B". */
static void open_pair(struct fix *f, struct pair *p, const char *pa, const char *pb)
{
    char text[256];
    fix_open(f);
    p->ja = fix_join(f, .instance = "a", .protocols = pa);
    p->jb = fix_join(f, .instance = "b", .protocols = pb);
    fix_wait(f, 2000);
    p->a = fix_id(p->ja);
    p->b = fix_id(p->jb);
    snprintf(text, sizeof text, "%s=A,%s=B", p->a, p->b);
    fix_sync(f, .id = p->b, .generation = 1);
    fix_sync(f, .id = p->a, .generation = 1, .assignments = text);
    CU_ASSERT_EQUAL_FATAL(classic_state(f->g), CLASSIC_STABLE);
    CU_ASSERT_EQUAL(f->stores_n, 1);
}

static int16_t beat(struct fix *f, const char *id, const char *instance)
{
    return classic_heartbeat(f->g, str_of(id), str_of(instance), classic_generation(f->g), f->now);
}

/* ------------------------------------------------------------------ Stable */

static void test_static_leader_comes_back(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    struct fix_call *c = fix_join(&f, .instance = "a", .version = 9);
    const char *id = fix_id(c);
    CU_ASSERT(strcmp(id, p.a) != 0);
    CU_ASSERT_EQUAL(c->joined.generation_id, 1);
    CU_ASSERT(fix_str(c->joined.leader, id));
    CU_ASSERT_TRUE(c->joined.skip_assignment);
    CU_ASSERT_EQUAL_FATAL(c->joined.members.n, 2);
    CU_ASSERT(fix_str(c->joined.members.v[0].member_id, id));
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    /* stored with the new id and its assignment */
    CU_ASSERT_EQUAL(f.stores_n, 2);
    CU_ASSERT(fix_str(f.stored.v.leader, id));
    CU_ASSERT(fix_str(f.stored.v.members.v[0].member_id, id));
    CU_ASSERT(fix_bytes(f.stored.v.members.v[0].assignment, "A"));
    /* the old id is fenced with its instance, unknown without */
    CU_ASSERT_EQUAL(beat(&f, p.a, "a"), K_FENCED_INSTANCE_ID);
    CU_ASSERT_EQUAL(beat(&f, p.a, NULL), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(beat(&f, id, "a"), K_NONE);
    struct fix_call *y = fix_sync(&f, .id = id, .generation = 1);
    CU_ASSERT(fix_bytes(y->synced.assignment, "A"));
    fix_close(&f);
}

/* Before version 9 a leader must not take itself for one: it is told the id it had. */
static void test_static_leader_comes_back_with_8(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    struct fix_call *c = fix_join(&f, .instance = "a", .version = 8);
    CU_ASSERT(strcmp(fix_id(c), p.a) != 0);
    CU_ASSERT(fix_str(c->joined.leader, p.a));
    CU_ASSERT_FALSE(c->joined.skip_assignment);
    CU_ASSERT_EQUAL(c->joined.members.n, 0);
    CU_ASSERT_EQUAL(c->joined.generation_id, 1);
    fix_close(&f);
}

static void test_static_follower_comes_back(void)
{
    for (int version = 8; version <= 9; version++) {
        struct fix f;
        struct pair p;
        open_pair(&f, &p, "range=m", "range=m");
        struct fix_call *c = fix_join(&f, .instance = "b", .version = version);
        CU_ASSERT(strcmp(fix_id(c), p.b) != 0);
        CU_ASSERT(fix_str(c->joined.leader, p.a));
        CU_ASSERT_FALSE(c->joined.skip_assignment);
        CU_ASSERT_EQUAL(c->joined.members.n, 0);
        struct fix_call *y = fix_sync(&f, .id = fix_id(c), .generation = 1);
        CU_ASSERT(fix_bytes(y->synced.assignment, "B"));
        fix_close(&f);
    }
}

/* Other metadata is no reason to rebalance, another vote is. */
static void test_static_changes_metadata(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    struct fix_call *c = fix_join(&f, .instance = "a", .protocols = "range=other");
    fix_id(c);
    CU_ASSERT_EQUAL(c->joined.generation_id, 1);
    CU_ASSERT(fix_bytes(c->joined.members.v[0].metadata, "other"));
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    fix_close(&f);
}

static void test_static_changes_the_vote(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "x,y", "y,x"); /* a tie: x */
    CU_ASSERT(fix_str(classic_protocol_name(f.g), "x"));
    struct fix_call *c = fix_join(&f, .instance = "a", .protocols = "y,x");
    CU_ASSERT_EQUAL(c->done, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    CU_ASSERT_EQUAL(f.stores_n, 1);
    struct fix_call *b = fix_join(&f, .id = p.b, .instance = "b", .protocols = "y,x");
    CU_ASSERT(fix_str(c->joined.protocol_name, "y"));
    CU_ASSERT_EQUAL(c->joined.generation_id, 2);
    CU_ASSERT(fix_str(b->joined.leader, fix_id(c)));
    CU_ASSERT_EQUAL(c->joined.members.n, 2);
    fix_close(&f);
}

static void test_static_unsupported_protocol(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    struct fix_call *c = fix_join(&f, .instance = "a", .protocols = "z");
    CU_ASSERT_EQUAL(c->joined.error_code, K_INCONSISTENT_GROUP_PROTOCOL);
    CU_ASSERT_EQUAL(beat(&f, p.a, "a"), K_NONE);
    fix_close(&f);
}

/* It is who it was: client id and host are the first ones, as in Kafka; timeouts are the new ones.
 */
static void test_static_keeps_client(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    fix_join(&f, .instance = "a", .client = "other", .session_ms = 6500, .rebalance_ms = 77);
    CU_ASSERT(fix_str(f.stored.v.members.v[0].client_id, "client"));
    CU_ASSERT_EQUAL(f.stored.v.members.v[0].session_timeout, 6500);
    CU_ASSERT_EQUAL(f.stored.v.members.v[0].rebalance_timeout, 77);
    fix_close(&f);
}

/* Its session goes on anew, and ends. */
static void test_static_session(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    fix_wait(&f, 9000);
    CU_ASSERT_EQUAL(beat(&f, p.b, "b"), K_NONE);
    fix_id(fix_join(&f, .instance = "a"));
    fix_wait(&f, 9000);
    CU_ASSERT_EQUAL(beat(&f, p.b, "b"), K_NONE);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_close(&f);
}

/* ------------------------------------------------------------------ other states */

static void test_static_back_while_preparing(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    struct fix_call *old = fix_join(&f, .id = p.a, .instance = "a");
    CU_ASSERT_EQUAL(old->done, 0);
    struct fix_call *c = fix_join(&f, .instance = "a");
    CU_ASSERT_EQUAL(old->joined.error_code, K_FENCED_INSTANCE_ID);
    CU_ASSERT(fix_str(old->joined.member_id, p.a));
    CU_ASSERT_EQUAL(c->done, 0);
    CU_ASSERT_EQUAL(f.g->joining_n, 1);
    fix_join(&f, .id = p.b, .instance = "b");
    CU_ASSERT(fix_str(c->joined.leader, fix_id(c)));
    CU_ASSERT_EQUAL(c->joined.generation_id, 2);
    CU_ASSERT_EQUAL(c->joined.members.n, 2);
    fix_close(&f);
}

/* The last one that was waited for. */
static void test_static_back_completes(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    struct fix_call *a = fix_join(&f, .id = p.a, .instance = "a");
    struct fix_call *b = fix_join(&f, .instance = "b");
    fix_id(a);
    CU_ASSERT_EQUAL(b->joined.generation_id, 2);
    fix_close(&f);
}

static void test_static_back_while_completing(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .instance = "a");
    struct fix_call *b = fix_join(&f, .instance = "b");
    fix_wait(&f, 2000);
    struct fix_call *y = fix_sync(&f, .id = fix_id(b), .generation = 1);
    CU_ASSERT_EQUAL(y->done, 0);
    struct fix_call *c = fix_join(&f, .instance = "b");
    CU_ASSERT_EQUAL(y->synced.error_code, K_FENCED_INSTANCE_ID);
    CU_ASSERT_EQUAL(c->done, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    CU_ASSERT_EQUAL(f.stores_n, 0);
    fix_join(&f, .id = fix_id(a), .instance = "a");
    CU_ASSERT_EQUAL(c->joined.generation_id, 2);
    fix_close(&f);
}

/* During the first delay. */
static void test_static_back_at_first(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *old = fix_join(&f, .instance = "a");
    fix_wait(&f, 500);
    struct fix_call *c = fix_join(&f, .instance = "a");
    CU_ASSERT_EQUAL(old->joined.error_code, K_FENCED_INSTANCE_ID);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_wait(&f, 500);
    CU_ASSERT_EQUAL(fix_id(c) != NULL, true);
    fix_close(&f);
}

/* ------------------------------------------------------------------ the store */

static void test_static_answer_waits_for_the_store(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    f.hold = true;
    struct fix_call *c = fix_join(&f, .instance = "a");
    CU_ASSERT_EQUAL(c->done, 0);
    CU_ASSERT_EQUAL(beat(&f, p.a, "a"), K_FENCED_INSTANCE_ID); /* at once */
    CU_ASSERT_EQUAL(beat(&f, p.a, NULL), K_UNKNOWN_MEMBER_ID);
    fix_end_store(&f, K_NONE);
    fix_settle(&f);
    fix_id(c);
    CU_ASSERT_EQUAL(beat(&f, p.a, NULL), K_UNKNOWN_MEMBER_ID);
    fix_close(&f);
}

/* Not stored: the member has its old id, list and timeouts again. */
static void test_static_not_stored(void)
{
    for (int refuse = 0; refuse < 2; refuse++) {
        struct fix f;
        struct pair p;
        open_pair(&f, &p, "range=m", "range=m");
        f.store_error = K_COORDINATOR_NOT_AVAILABLE;
        f.refuse = refuse == 1;
        struct fix_call *c = fix_join(&f, .instance = "a", .protocols = "rr=z,range=n",
                                      .session_ms = 20000, .rebalance_ms = 1);
        CU_ASSERT_EQUAL_FATAL(c->done, 1);
        CU_ASSERT_EQUAL(c->joined.error_code, K_COORDINATOR_NOT_AVAILABLE);
        CU_ASSERT(fix_str(c->joined.member_id, ""));
        CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
        CU_ASSERT_EQUAL(beat(&f, p.a, "a"), K_NONE);
        CU_ASSERT_EQUAL(f.g->joining_n, 0);
        CU_ASSERT_EQUAL(f.g->supports.n, 1);
        CU_ASSERT_EQUAL(f.g->by_id.n, 2);
        f.store_error = K_NONE;
        f.refuse = false;
        /* its old list has not changed, its old session ends in time */
        CU_ASSERT_EQUAL(classic_static_member(f.g, STR_LIT("a"))->rebalance_timeout_ms, 60000);
        fix_wait(&f, 9999);
        CU_ASSERT_EQUAL(beat(&f, p.b, "b"), K_NONE);
        fix_wait(&f, 1);
        CU_ASSERT_EQUAL(beat(&f, p.a, "a"), K_UNKNOWN_MEMBER_ID);
        fix_close(&f);
    }
}

static void test_static_stored_too_late(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    f.hold = true;
    struct fix_call *c = fix_join(&f, .instance = "a");
    fix_wait(&f, 4999);
    CU_ASSERT_EQUAL(c->done, 0);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(c->joined.error_code, K_COORDINATOR_NOT_AVAILABLE);
    fix_end_store(&f, K_NONE);
    fix_wait(&f, 9999); /* a whole session */
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    CU_ASSERT_EQUAL(beat(&f, p.a, "a"), K_REBALANCE_IN_PROGRESS);
    fix_close(&f);
}

/* A session shorter than the store took begins with the answer. */
static void test_static_session_after_the_store(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    f.hold = true;
    struct fix_call *c = fix_join(&f, .instance = "a", .session_ms = 1000);
    fix_wait(&f, 4000);
    fix_end_store(&f, K_NONE);
    fix_settle(&f);
    fix_id(c);
    fix_wait(&f, 999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_close(&f);
}

/* Twice while the first is being stored: the first is fenced, a failure restores what it had. */
static void test_static_twice(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct fix f;
        struct pair p;
        open_pair(&f, &p, "range=m", "range=m");
        f.hold = true;
        struct fix_call *first = fix_join(&f, .instance = "a");
        struct fix_call *second = fix_join(&f, .instance = "a");
        CU_ASSERT_EQUAL(first->joined.error_code, K_FENCED_INSTANCE_ID);
        CU_ASSERT_EQUAL(second->done, 0);
        fix_end_store(&f, fails ? K_NOT_COORDINATOR : K_NONE);
        fix_settle(&f);
        CU_ASSERT_EQUAL(second->done, 0);
        fix_end_store(&f, fails ? K_NOT_COORDINATOR : K_NONE);
        fix_settle(&f);
        CU_ASSERT_EQUAL(second->joined.error_code, fails ? K_NOT_COORDINATOR : K_NONE);
        const char *owner = fails ? first->joined.member_id.p : fix_id(second);
        CU_ASSERT_EQUAL(beat(&f, owner, "a"), K_NONE);
        CU_ASSERT_EQUAL(f.g->by_id.n, 2);
        fix_close(&f);
    }
}

/* The group rebalances before the store ends: the Join is answered with the next generation,
 * whatever becomes of the store. */
static void test_static_rebalance_meanwhile(void)
{
    for (int fails = 0; fails < 2; fails++) {
        for (int late = 0; late < 2; late++) {
            struct fix f;
            struct pair p;
            open_pair(&f, &p, "range=m", "range=m");
            f.hold = true;
            struct fix_call *c = fix_join(&f, .instance = "a");
            struct fix_call *b = fix_join(&f, .id = p.b, .instance = "b", .protocols = "range=n");
            if (!late) {
                fix_end_store(&f, fails ? K_NOT_COORDINATOR : K_NONE);
                fix_settle(&f);
            }
            fix_id(c); /* all are there */
            CU_ASSERT_EQUAL(c->joined.generation_id, 2);
            CU_ASSERT_EQUAL(c->joined.members.n, 2);
            CU_ASSERT_FALSE(c->joined.skip_assignment);
            fix_id(b);
            if (late) {
                fix_end_store(&f, fails ? K_NOT_COORDINATOR : K_NONE);
                fix_settle(&f);
            }
            CU_ASSERT_EQUAL(beat(&f, fix_id(c), "a"), K_NONE);
            CU_ASSERT_EQUAL(f.g->by_id.n, 2);
            fix_close(&f);
        }
    }
}

/* It leaves, or its client goes, before the store ends. */
static void test_static_gone_meanwhile(void)
{
    for (int what = 0; what < 4; what++) {
        struct fix f;
        struct pair p;
        open_pair(&f, &p, "range=m", "range=m");
        f.hold = true;
        struct fix_call *c = fix_join(&f, .instance = "a");
        if (what < 2) { /* with its old id too, which nobody has any more */
            const char *const who[][2] = {{NULL, "a"}, {p.a, NULL}};
            struct fix_call *l = fix_leave_many(&f, 5, who, 2);
            CU_ASSERT_EQUAL(l->left.members.v[0].error_code, K_NONE);
            CU_ASSERT_EQUAL(l->left.members.v[1].error_code, K_UNKNOWN_MEMBER_ID);
            CU_ASSERT_EQUAL(c->joined.error_code, K_UNKNOWN_MEMBER_ID);
        } else {
            classic_join_cancel(&c->join);
            fix_settle(&f);
        }
        CU_ASSERT_EQUAL(c->done, 1);
        fix_end_store(&f, what % 2 == 0 ? K_NONE : K_NOT_COORDINATOR);
        fix_settle(&f);
        CU_ASSERT_EQUAL(classic_members_n(f.g), what < 2 ? 1 : 2);
        CU_ASSERT_EQUAL(beat(&f, p.a, "a"), what < 2    ? K_UNKNOWN_MEMBER_ID
                                            : what == 2 ? K_FENCED_INSTANCE_ID
                                                        : K_NONE);
        CU_ASSERT_EQUAL(f.g->joining_n, 0);
        fix_close(&f);
    }
}

static void test_static_unloaded_meanwhile(void)
{
    struct fix f;
    struct pair p;
    open_pair(&f, &p, "range=m", "range=m");
    f.hold = true;
    struct fix_call *c = fix_join(&f, .instance = "a");
    classic_unload(f.g, K_NOT_COORDINATOR);
    f.open_n = 0;
    fix_settle(&f);
    CU_ASSERT_EQUAL(c->joined.error_code, K_NOT_COORDINATOR);
    fix_close(&f);
}

TEST_MAIN(TEST(test_static_leader_comes_back), TEST(test_static_leader_comes_back_with_8),
          TEST(test_static_follower_comes_back), TEST(test_static_changes_metadata),
          TEST(test_static_changes_the_vote), TEST(test_static_unsupported_protocol),
          TEST(test_static_keeps_client), TEST(test_static_session),
          TEST(test_static_back_while_preparing), TEST(test_static_back_completes),
          TEST(test_static_back_while_completing), TEST(test_static_back_at_first),
          TEST(test_static_answer_waits_for_the_store), TEST(test_static_not_stored),
          TEST(test_static_stored_too_late), TEST(test_static_session_after_the_store),
          TEST(test_static_twice), TEST(test_static_rebalance_meanwhile),
          TEST(test_static_gone_meanwhile), TEST(test_static_unloaded_meanwhile))
