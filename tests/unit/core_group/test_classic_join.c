/* JoinGroup: its checks in order, ids given out, what is told to whom (groups.md 2). */
#include "unit/core_group/classic_fixture.h"

static void expect_error(const struct fix_call *c, int16_t error, const char *member_id)
{
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->joined.error_code, error);
    CU_ASSERT(fix_str(c->joined.member_id, member_id));
    CU_ASSERT_EQUAL(c->joined.generation_id, -1);
    CU_ASSERT_EQUAL(c->joined.protocol_type.n, -1);
    CU_ASSERT(fix_str(c->joined.leader, ""));
    CU_ASSERT_EQUAL(c->joined.members.n, 0);
}

/* ------------------------------------------------------------------ step 5: protocols */

static void test_join_needs_protocols(void)
{
    struct fix f;
    fix_open(&f);
    expect_error(fix_join(&f, .protocols = ""), K_INCONSISTENT_GROUP_PROTOCOL, "");
    expect_error(fix_join(&f, .type = ""), K_INCONSISTENT_GROUP_PROTOCOL, "");
    expect_error(fix_join(&f, .id = "x", .protocols = ""), K_INCONSISTENT_GROUP_PROTOCOL, "x");
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    fix_close(&f);
}

static void test_join_names_are_null_from_7_on(void)
{
    struct fix f;
    fix_open(&f);
    CU_ASSERT_EQUAL(fix_join(&f, .protocols = "", .version = 7)->joined.protocol_name.n, -1);
    CU_ASSERT_EQUAL(fix_join(&f, .protocols = "", .version = 6)->joined.protocol_name.n, 0);
    fix_close(&f);
}

static void test_join_needs_what_all_support(void)
{
    struct fix f;
    fix_open(&f);
    fix_join(&f, .version = 3, .protocols = "a,b");
    fix_join(&f, .version = 3, .protocols = "b,c");
    expect_error(fix_join(&f, .version = 3, .protocols = "a,c"), K_INCONSISTENT_GROUP_PROTOCOL, "");
    expect_error(fix_join(&f, .version = 3, .protocols = ""), K_INCONSISTENT_GROUP_PROTOCOL, "");
    expect_error(fix_join(&f, .version = 3, .protocols = "b", .type = "connect"),
                 K_INCONSISTENT_GROUP_PROTOCOL, "");
    CU_ASSERT_EQUAL(fix_join(&f, .version = 3, .protocols = "x,b")->done, 0);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 3);
    fix_close(&f);
}

/* An empty group takes another type, a group whose members are all gone too. */
static void test_join_type_is_the_first_members(void)
{
    struct fix f;
    const char *id;
    fix_open(&f);
    CU_ASSERT_EQUAL(classic_protocol_type(f.g).n, -1);
    fix_stable(&f, 1, &id);
    CU_ASSERT(fix_str(classic_protocol_type(f.g), "consumer"));
    fix_leave(&f, id, NULL);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    CU_ASSERT(fix_str(classic_protocol_type(f.g), "consumer"));
    fix_join(&f, .version = 3, .type = "connect", .protocols = "sessioned");
    CU_ASSERT(fix_str(classic_protocol_type(f.g), "connect"));
    fix_close(&f);
}

/* A name twice: the first counts, and the join does not hang. */
static void test_join_drops_repeated_names(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .version = 3, .protocols = "b=1,a=2,b=3,a=4");
    fix_wait(&f, 1000);
    const char *id = fix_id(c);
    CU_ASSERT(fix_str(c->joined.protocol_name, "b"));
    CU_ASSERT_EQUAL_FATAL(c->joined.members.n, 1);
    CU_ASSERT(fix_bytes(c->joined.members.v[0].metadata, "1"));
    /* the same list again has not changed */
    struct fix_call *again = fix_join(&f, .id = id, .protocols = "b=1,a=2,b=3,a=4");
    CU_ASSERT_STRING_EQUAL(fix_id(again), id);
    CU_ASSERT_EQUAL(again->joined.generation_id, 1);
    fix_close(&f);
}

/* ------------------------------------------------------------------ step 6: without an id */

static void test_join_requires_an_id_from_4_on(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .version = 4, .client = "me");
    CU_ASSERT_EQUAL_FATAL(c->done, 1);
    CU_ASSERT_EQUAL(c->joined.error_code, K_MEMBER_ID_REQUIRED);
    CU_ASSERT_EQUAL(c->joined.member_id.n, (int32_t)strlen("me-") + 36);
    CU_ASSERT_EQUAL(strncmp(c->joined.member_id.p, "me-", 3), 0);
    CU_ASSERT_EQUAL(c->joined.member_id.p[3 + 14], '4'); /* a random UUID */
    CU_ASSERT_EQUAL(classic_members_n(f.g), 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    /* each asks for itself */
    CU_ASSERT(strcmp(fix_ask_id(&f), fix_ask_id(&f)) != 0);
    fix_close(&f);
}

static void test_join_adds_at_once_up_to_3(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .version = 3, .client = NULL);
    CU_ASSERT_EQUAL(c->done, 0);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(strncmp(fix_id(c), "client-", 7), 0);
    fix_close(&f);
}

static void test_join_ids_begin_with_the_instance(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .instance = "i1");
    CU_ASSERT_EQUAL(c->done, 0); /* no id is required of static members */
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(strncmp(fix_id(c), "i1-", 3), 0);
    CU_ASSERT(fix_str(c->joined.members.v[0].group_instance_id, "i1"));
    fix_close(&f);
}

static void test_join_client_id_may_be_null(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_call(&f);
    wire_default(&wire_join_group_request, &c->join_request);
    c->join_request.member_id = STR_LIT("");
    c->join_request.protocol_type = STR_LIT("consumer");
    c->join_request.protocols.v = c->protocols;
    c->join_request.protocols.n = fix_split("range", c->protocols);
    c->join_request.session_timeout_ms = 10000;
    c->join = (struct classic_join_op){.op.done = fix_join_done,
                                       .arena = &c->arena,
                                       .request = &c->join_request,
                                       .version = 3,
                                       .client_id = STR_NULL,
                                       .client_host = STR_LIT("/::1"),
                                       .response = &c->joined};
    classic_join(f.g, &c->join, f.now);
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(fix_id(c)[0], '-');
    fix_close(&f);
}

/* Version 0 has no rebalance timeout: the session's serves. */
static void test_join_0_takes_the_session_timeout(void)
{
    struct fix f;
    fix_open(&f);
    fix_join(&f, .version = -1, .session_ms = 7000, .rebalance_ms = 1);
    CU_ASSERT_EQUAL(classic_rebalance_timeout_ms(f.g), 7000);
    fix_close(&f);
}

/* ------------------------------------------------------------------ step 7: with an id */

static void test_join_unknown_ids(void)
{
    struct fix f;
    fix_open(&f);
    expect_error(fix_join(&f, .id = "x"), K_UNKNOWN_MEMBER_ID, "x");
    fix_join(&f, .instance = "i1");
    fix_wait(&f, 1000);
    expect_error(fix_join(&f, .id = "x"), K_UNKNOWN_MEMBER_ID, "x");
    expect_error(fix_join(&f, .id = "x", .instance = "i1"), K_FENCED_INSTANCE_ID, "x");
    expect_error(fix_join(&f, .id = "x", .instance = "i2"), K_UNKNOWN_MEMBER_ID, "x");
    fix_close(&f);
}

static void test_join_pending_becomes_a_member(void)
{
    struct fix f;
    fix_open(&f);
    const char *id = fix_ask_id(&f);
    CU_ASSERT_EQUAL(fix_heartbeat(&f, id, 0), K_UNKNOWN_MEMBER_ID);
    expect_error(fix_join(&f, .id = id, .instance = "i"), K_UNKNOWN_SERVER_ERROR, "");
    struct fix_call *c = fix_join(&f, .id = id);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    CU_ASSERT_EQUAL(f.g->pending_n, 0);
    fix_wait(&f, 1000);
    CU_ASSERT_STRING_EQUAL(fix_id(c), id);
    fix_close(&f);
}

static void test_join_pending_ids_expire(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *c = fix_join(&f, .version = 9, .session_ms = 6000);
    fix_wait(&f, 5999);
    CU_ASSERT_EQUAL(f.g->pending_n, 1);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(f.g->pending_n, 0);
    expect_error(fix_join(&f, .id = c->joined.member_id.p), K_UNKNOWN_MEMBER_ID,
                 c->joined.member_id.p);
    fix_close(&f);
}

/* The list of members goes to the leader only. */
static void test_join_answers(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .version = 3, .protocols = "range=ma,rr=x");
    struct fix_call *b = fix_join(&f, .instance = "ib", .protocols = "range=mb");
    fix_wait(&f, 2000);
    const char *leader = fix_id(a);
    fix_id(b);
    for (int i = 0; i < 2; i++) {
        const struct join_group_response *r = i == 0 ? &a->joined : &b->joined;
        CU_ASSERT_EQUAL(r->generation_id, 1);
        CU_ASSERT(fix_str(r->protocol_type, "consumer"));
        CU_ASSERT(fix_str(r->protocol_name, "range"));
        CU_ASSERT(fix_str(r->leader, leader));
        CU_ASSERT_FALSE(r->skip_assignment);
    }
    CU_ASSERT_EQUAL(b->joined.members.n, 0);
    CU_ASSERT_EQUAL_FATAL(a->joined.members.n, 2);
    CU_ASSERT(fix_str(a->joined.members.v[0].member_id, leader));
    CU_ASSERT_EQUAL(a->joined.members.v[0].group_instance_id.n, -1);
    CU_ASSERT(fix_bytes(a->joined.members.v[0].metadata, "ma"));
    CU_ASSERT(str_eq(a->joined.members.v[1].member_id, b->joined.member_id));
    CU_ASSERT(fix_str(a->joined.members.v[1].group_instance_id, "ib"));
    CU_ASSERT(fix_bytes(a->joined.members.v[1].metadata, "mb"));
    fix_close(&f);
}

/* Completing, nothing changed: the present generation is told again, to the leader with members. */
static void test_join_again_while_completing(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    struct fix_call *leader = fix_join(&f, .id = ids[0]);
    struct fix_call *other = fix_join(&f, .id = ids[1]);
    CU_ASSERT_STRING_EQUAL(fix_id(leader), ids[0]);
    CU_ASSERT_EQUAL(leader->joined.generation_id, 1);
    CU_ASSERT_EQUAL(leader->joined.members.n, 2);
    CU_ASSERT_STRING_EQUAL(fix_id(other), ids[1]);
    CU_ASSERT_EQUAL(other->joined.members.n, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
    /* names, bytes and order count */
    static const char *const changed[] = {"range=n", "rr=m", "range=m,rr=m", "rr=m,range=m"};
    for (size_t i = 0; i < ARRAY_N(changed); i++) {
        struct fix g;
        fix_open(&g);
        fix_completing(&g, 2, ids);
        struct fix_call *c = fix_join(&g, .id = ids[1], .protocols = changed[i]);
        if (strncmp(changed[i], "rr=m", 5) == 0) {
            expect_error(c, K_INCONSISTENT_GROUP_PROTOCOL, ids[1]);
        } else {
            CU_ASSERT_EQUAL(c->done, 0);
            CU_ASSERT_EQUAL(classic_state(g.g), CLASSIC_PREPARING);
        }
        fix_close(&g);
    }
    fix_close(&f);
}

/* Fewer protocols than before, all of them known: that is a change too. */
static void test_join_again_with_fewer_protocols(void)
{
    struct fix f;
    fix_open(&f);
    struct fix_call *a = fix_join(&f, .version = 3, .protocols = "range=m");
    struct fix_call *b = fix_join(&f, .version = 3, .protocols = "range=m,rr=n");
    fix_wait(&f, 2000);
    fix_sync(&f, .id = fix_id(a), .generation = 1);
    CU_ASSERT_EQUAL(fix_join(&f, .id = fix_id(b), .protocols = "range=m,rr=n")->done, 1);
    CU_ASSERT_EQUAL(fix_join(&f, .id = fix_id(b), .protocols = "range=m")->done, 0);
    fix_close(&f);
}

static void test_join_again_while_stable(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct fix_call *same = fix_join(&f, .id = ids[1]);
    CU_ASSERT_STRING_EQUAL(fix_id(same), ids[1]);
    CU_ASSERT_EQUAL(same->joined.generation_id, 1);
    CU_ASSERT(fix_str(same->joined.leader, ids[0]));
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    struct fix_call *changed = fix_join(&f, .id = ids[1], .protocols = "range=n");
    CU_ASSERT_EQUAL(changed->done, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    struct fix_call *leader = fix_join(&f, .id = ids[0]);
    CU_ASSERT_STRING_EQUAL(fix_id(leader), ids[0]);
    CU_ASSERT_STRING_EQUAL(fix_id(changed), ids[1]);
    CU_ASSERT_EQUAL(leader->joined.generation_id, 2);
    CU_ASSERT(fix_bytes(leader->joined.members.v[1].metadata, "n"));
    fix_close(&f);
}

static void test_join_leader_always_rebalances(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    CU_ASSERT_EQUAL(fix_join(&f, .id = ids[0])->done, 0);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[1], 1), K_REBALANCE_IN_PROGRESS);
    fix_close(&f);
}

/* A second Join of a parked member: the first ends, Kafka would never answer it. */
static void test_join_twice_ends_the_first(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct fix_call *first = fix_join(&f, .id = ids[0]);
    struct fix_call *second = fix_join(&f, .id = ids[0]);
    expect_error(first, K_REBALANCE_IN_PROGRESS, ids[0]);
    CU_ASSERT_EQUAL(second->done, 0);
    fix_join(&f, .id = ids[1]);
    CU_ASSERT_STRING_EQUAL(fix_id(second), ids[0]);
    fix_close(&f);
}

/* The client of a parked Join is gone: the op ends, the member is in the generation all the same.
 */
static void test_join_cancel_keeps_the_member(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct fix_call *gone = fix_join(&f, .id = ids[0]);
    classic_join_cancel(&gone->join);
    CU_ASSERT_EQUAL(gone->done, 0);
    fix_settle(&f);
    CU_ASSERT_EQUAL(gone->done, 1);
    CU_ASSERT_EQUAL(gone->joined.error_code, K_NOT_COORDINATOR); /* when the node stops */
    classic_join_cancel(&gone->join);                            /* harmless */
    struct fix_call *other = fix_join(&f, .id = ids[1]);
    fix_id(other);
    CU_ASSERT_EQUAL(other->joined.generation_id, 2);
    CU_ASSERT(fix_str(other->joined.leader, ids[0]));
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    fix_wait(&f, 9999);
    CU_ASSERT_EQUAL(classic_members_n(f.g), 2);
    CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[1], 2), K_NONE);
    fix_wait(&f, 1); /* its session ends */
    CU_ASSERT_EQUAL(classic_members_n(f.g), 1);
    fix_close(&f);
}

/* ------------------------------------------------------------------ step 4: group.max.size */

static void open_small(struct fix *f)
{
    fix_open(f);
    fix_set(f, "group.max.size", "2");
}

static void test_join_full_group_refuses(void)
{
    struct fix f;
    const char *ids[2];
    open_small(&f);
    fix_stable(&f, 2, ids);
    expect_error(fix_join(&f, .version = 9), K_GROUP_MAX_SIZE_REACHED, "");
    expect_error(fix_join(&f, .version = 3), K_GROUP_MAX_SIZE_REACHED, "");
    expect_error(fix_join(&f, .id = "x"), K_GROUP_MAX_SIZE_REACHED, "");
    CU_ASSERT_EQUAL(fix_join(&f, .id = ids[1])->joined.error_code, K_NONE);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    fix_close(&f);
}

/* It comes before the check of protocols, and looks at the request's id only. */
static void test_join_full_group_refuses_static_members(void)
{
    struct fix f;
    open_small(&f);
    fix_join(&f, .instance = "a");
    fix_join(&f, .instance = "b");
    fix_wait(&f, 2000);
    expect_error(fix_join(&f, .instance = "a"), K_GROUP_MAX_SIZE_REACHED, "");
    expect_error(fix_join(&f, .protocols = ""), K_GROUP_MAX_SIZE_REACHED, "");
    fix_close(&f);
}

/* Preparing counts those who are there: the one who comes too late has to go. */
static void test_join_full_group_sends_the_last_away(void)
{
    struct fix f;
    const char *ids[2];
    open_small(&f);
    fix_stable(&f, 2, ids);
    const char *extra[2] = {NULL, NULL};
    fix_set(&f, "group.max.size", "4");
    for (int i = 0; i < 2; i++)
        extra[i] = fix_ask_id(&f);
    fix_set(&f, "group.max.size", "2");
    struct fix_call *a = fix_join(&f, .id = ids[0]);
    struct fix_call *b = fix_join(&f, .id = ids[1]);
    CU_ASSERT_EQUAL(a->done + b->done, 0); /* the ids block it */
    CU_ASSERT_EQUAL(fix_join(&f, .id = ids[1])->done, 0);
    CU_ASSERT_EQUAL(b->done, 1); /* parked already: accepted, in place of the first */
    expect_error(fix_join(&f, .id = extra[0]), K_GROUP_MAX_SIZE_REACHED, "");
    CU_ASSERT_EQUAL(f.g->pending_n, 1); /* forgotten */
    CU_ASSERT_EQUAL(a->done, 0);
    expect_error(fix_join(&f, .id = extra[1]), K_GROUP_MAX_SIZE_REACHED, "");
    CU_ASSERT_STRING_EQUAL(fix_id(a), ids[0]); /* nobody is waited for any more */
    fix_close(&f);
}

static void test_join_full_group_forgets_who_is_not_there(void)
{
    struct fix f;
    const char *ids[3];
    fix_open(&f);
    fix_stable(&f, 3, ids);
    fix_set(&f, "group.max.size", "2");
    struct fix_call *a = fix_join(&f, .id = ids[0]);
    struct fix_call *b = fix_join(&f, .id = ids[1]);
    expect_error(fix_join(&f, .id = ids[2]), K_GROUP_MAX_SIZE_REACHED, "");
    CU_ASSERT_STRING_EQUAL(fix_id(a), ids[0]);
    CU_ASSERT_STRING_EQUAL(fix_id(b), ids[1]);
    CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[2], 2), K_UNKNOWN_MEMBER_ID);
    fix_close(&f);
}

static void test_join_dead_group(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct fix_call *parked = fix_join(&f, .id = ids[0]);
    classic_unload(f.g, K_NOT_COORDINATOR);
    fix_settle(&f);
    expect_error(parked, K_NOT_COORDINATOR, ids[0]);
    expect_error(fix_join(&f, .id = ids[0]), K_COORDINATOR_NOT_AVAILABLE, ids[0]);
    expect_error(fix_join(&f, .id = NULL), K_COORDINATOR_NOT_AVAILABLE, "");
    CU_ASSERT_EQUAL(fix_heartbeat(&f, ids[0], 1), K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(fix_sync(&f, .id = ids[0], .generation = 1)->synced.error_code,
                    K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(fix_leave(&f, ids[0], NULL)->left.error_code, K_COORDINATOR_NOT_AVAILABLE);
    fix_close(&f);
}

TEST_MAIN(TEST(test_join_needs_protocols), TEST(test_join_names_are_null_from_7_on),
          TEST(test_join_needs_what_all_support), TEST(test_join_type_is_the_first_members),
          TEST(test_join_drops_repeated_names), TEST(test_join_requires_an_id_from_4_on),
          TEST(test_join_adds_at_once_up_to_3), TEST(test_join_ids_begin_with_the_instance),
          TEST(test_join_client_id_may_be_null), TEST(test_join_0_takes_the_session_timeout),
          TEST(test_join_unknown_ids), TEST(test_join_pending_becomes_a_member),
          TEST(test_join_pending_ids_expire), TEST(test_join_answers),
          TEST(test_join_again_while_completing), TEST(test_join_again_with_fewer_protocols),
          TEST(test_join_again_while_stable), TEST(test_join_leader_always_rebalances),
          TEST(test_join_twice_ends_the_first), TEST(test_join_cancel_keeps_the_member),
          TEST(test_join_full_group_refuses), TEST(test_join_full_group_refuses_static_members),
          TEST(test_join_full_group_sends_the_last_away),
          TEST(test_join_full_group_forgets_who_is_not_there), TEST(test_join_dead_group))
