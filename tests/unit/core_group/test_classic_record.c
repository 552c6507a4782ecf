/* The group's record, written and loaded; DescribeGroups; the topics of subscriptions. */
#include "unit/core_group/classic_fixture.h"

/* What was stored last, loaded into a second group of the same fixture, in place of the first. */
static void reload(struct fix *f)
{
    classic_unload(f->g, K_NOT_COORDINATOR);
    f->open_n = 0;
    fix_settle(f);
    classic_free(f->g);
    CU_ASSERT_EQUAL_FATAL(fix_new_group(f), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(classic_load(f->g, &f->stored.v), ERR_NONE);
    classic_loaded(f->g, f->now);
}

static int16_t beat(struct fix *f, const char *id, const char *instance, int32_t generation)
{
    return classic_heartbeat(f->g, str_of(id), str_of(instance), generation, f->now);
}

/* ------------------------------------------------------------------ records */

static void test_record_of_a_new_group(void)
{
    struct fix f;
    struct group_metadata_value v;
    fix_open(&f);
    CU_ASSERT_EQUAL(classic_record(f.g, &f.records, &v), ERR_NONE);
    CU_ASSERT(fix_str(v.protocol_type, ""));
    CU_ASSERT_EQUAL(v.generation, 0);
    CU_ASSERT_EQUAL(v.protocol.n, -1);
    CU_ASSERT_EQUAL(v.leader.n, -1);
    CU_ASSERT_EQUAL(v.members.n, 0);
    CU_ASSERT_EQUAL(v.current_state_timestamp, f.now.wall_ms);
    CU_ASSERT_EQUAL(classic_load(f.g, &v), ERR_NONE);
    CU_ASSERT_EQUAL(classic_protocol_type(f.g).n, -1);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    fix_close(&f);
}

/* Loaded: Stable, sessions start afresh, each member knows the chosen protocol only. */
static void test_record_loads(void)
{
    struct fix f;
    char text[256], ida[64], ids[64];
    fix_open(&f);
    struct fix_call *s = fix_join(&f, .instance = "s", .protocols = "rr=x,range=y",
                                  .session_ms = 20000, .rebalance_ms = 3000);
    struct fix_call *a = fix_join(&f, .version = 3, .protocols = "range=m");
    fix_wait(&f, 2000);
    snprintf(ids, sizeof ids, "%s", fix_id(s));
    snprintf(ida, sizeof ida, "%s", fix_id(a));
    snprintf(text, sizeof text, "%s=S,%s=A", ids, ida);
    const int64_t since = f.now.wall_ms;
    fix_wait(&f, 50);
    fix_sync(&f, .id = ids, .generation = 1, .assignments = text);
    fix_wait(&f, 9000);
    reload(&f);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    CU_ASSERT_EQUAL(classic_state_since_ms(f.g), since);
    CU_ASSERT_EQUAL(classic_generation(f.g), 1);
    CU_ASSERT(fix_str(classic_protocol_type(f.g), "consumer"));
    CU_ASSERT(fix_str(classic_protocol_name(f.g), "range"));
    CU_ASSERT(fix_str(f.g->leader->id, ids));
    fix_wait(&f, 9999);
    CU_ASSERT_EQUAL(beat(&f, ids, "s", 1), K_NONE);
    CU_ASSERT(fix_bytes(fix_sync(&f, .id = ida, .generation = 1)->synced.assignment, "A"));
    CU_ASSERT(fix_bytes(fix_sync(&f, .id = ids, .generation = 1)->synced.assignment, "S"));
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(beat(&f, ida, NULL, 1), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(classic_rebalance_timeout_ms(f.g), 3000);
    /* "rr" is not known of it any more: its list has changed */
    struct fix_call *j = fix_join(&f, .id = ids, .instance = "s", .protocols = "rr=x,range=y");
    CU_ASSERT_EQUAL(j->joined.generation_id, 2);
    fix_close(&f);
}

static void test_record_of_an_empty_group_loads(void)
{
    struct fix f;
    const char *ids[1];
    fix_open(&f);
    fix_stable(&f, 1, ids);
    fix_leave(&f, ids[0], NULL);
    reload(&f);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(classic_generation(f.g), 2);
    CU_ASSERT(fix_str(classic_protocol_type(f.g), "consumer"));
    CU_ASSERT_EQUAL(fix_join(&f, .version = 3)->done, 0);
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(classic_generation(f.g), 3);
    fix_close(&f);
}

/* The leader need not be the first. */
static void test_record_of_another_leader(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    f.stored.v.leader = f.stored.v.members.v[1].member_id;
    reload(&f);
    CU_ASSERT(str_eq(f.g->leader->id, f.stored.v.members.v[1].member_id));
    fix_close(&f);
}

/* The latest record counts; members of the ones before are gone. */
static void test_record_loads_again(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct group_metadata_value v = f.stored.v, less = v;
    less.members.n = 1;
    less.generation = 5;
    const struct classic_args args = f.g->args;
    struct classic *g;
    CU_ASSERT_EQUAL_FATAL(classic_new(&args, STR_LIT("h"), f.now, &g), ERR_NONE);
    CU_ASSERT_EQUAL(classic_load(g, &v), ERR_NONE);
    CU_ASSERT_EQUAL(classic_load(g, &less), ERR_NONE);
    CU_ASSERT_EQUAL(classic_members_n(g), 1);
    CU_ASSERT_EQUAL(classic_generation(g), 5);
    CU_ASSERT_EQUAL(classic_member(g, str_of(ids[1])) == NULL, true);
    less.members.n = 0;
    CU_ASSERT_EQUAL(classic_load(g, &less), ERR_NONE);
    CU_ASSERT_EQUAL(classic_state(g), CLASSIC_EMPTY);
    classic_unload(g, K_NOT_COORDINATOR);
    classic_free(g);
    fix_close(&f);
}

/* What older versions do not tell. */
static void test_record_of_older_versions(void)
{
    struct fix f;
    struct group_metadata_value_member_metadata m;
    struct group_metadata_value v;
    fix_open(&f);
    wire_default(&wire_group_metadata_value, &v);
    wire_default(&wire_group_metadata_value_member_metadata, &m);
    m.member_id = STR_LIT("m");
    m.client_id = m.client_host = STR_LIT("c");
    m.session_timeout = 7000;
    v.protocol_type = STR_LIT("consumer");
    v.protocol = STR_LIT("range");
    v.members.v = &m;
    v.members.n = 1;
    CU_ASSERT_EQUAL(classic_load(f.g, &v), ERR_NONE);
    CU_ASSERT_EQUAL(classic_rebalance_timeout_ms(f.g), 7000);
    CU_ASSERT_EQUAL(classic_state_since_ms(f.g), -1);
    CU_ASSERT(fix_str(f.g->leader->id, "m")); /* the record names none */
    fix_close(&f);
}

static void test_record_contradicts_itself(void)
{
    struct fix f;
    const char *ids[2];
    struct group_metadata_value_member_metadata m[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    struct group_metadata_value v = f.stored.v;
    memcpy(m, v.members.v, sizeof m);
    v.members.v = m;
    const struct classic_args args = f.g->args;
    struct classic *g;
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(classic_new(&args, STR_LIT("h"), f.now, &g), ERR_NONE);
        memcpy(m, f.stored.v.members.v, sizeof m);
        v.protocol = f.stored.v.protocol;
        if (i == 0)
            m[1].member_id = m[0].member_id;
        else if (i == 1)
            m[0].group_instance_id = m[1].group_instance_id = STR_LIT("i");
        else
            v.protocol = STR_NULL;
        CU_ASSERT_EQUAL(classic_load(g, &v), ERR_CORRUPT);
        classic_free(g);
    }
    fix_close(&f);
}

/* group.max.size is smaller now: the group rebalances. */
static void test_record_of_a_large_group(void)
{
    struct fix f;
    const char *ids[2];
    fix_open(&f);
    fix_stable(&f, 2, ids);
    fix_set(&f, "group.max.size", "2");
    reload(&f);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_STABLE);
    fix_set(&f, "group.max.size", "1");
    reload(&f);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_PREPARING);
    fix_close(&f);
}

/* ------------------------------------------------------------------ DescribeGroups */

static void test_describe_by_state(void)
{
    struct fix f;
    const char *ids[2];
    struct describe_groups_response_described_group d;
    fix_open(&f);
    wire_default(&wire_describe_groups_response_described_group, &d);
    fix_ask_id(&f); /* pending ids are not shown */
    CU_ASSERT_EQUAL(classic_describe(f.g, &f.records, &d), ERR_NONE);
    CU_ASSERT(fix_str(d.group_state, "Empty"));
    CU_ASSERT(fix_str(d.protocol_type, ""));
    CU_ASSERT(fix_str(d.protocol_data, ""));
    CU_ASSERT_EQUAL(d.members.n, 0);
    fix_close(&f);
    fix_open(&f);
    fix_completing(&f, 2, ids);
    CU_ASSERT_EQUAL(classic_describe(f.g, &f.records, &d), ERR_NONE);
    CU_ASSERT(fix_str(d.group_state, "CompletingRebalance"));
    CU_ASSERT(fix_str(d.protocol_type, "consumer"));
    CU_ASSERT(fix_str(d.protocol_data, ""));
    CU_ASSERT_EQUAL_FATAL(d.members.n, 2);
    CU_ASSERT(fix_str(d.members.v[0].member_id, ids[0]));
    CU_ASSERT(fix_bytes(d.members.v[0].member_metadata, ""));
    fix_close(&f);
    fix_open(&f);
    fix_stable(&f, 2, ids);
    CU_ASSERT_EQUAL(classic_describe(f.g, &f.records, &d), ERR_NONE);
    CU_ASSERT(fix_str(d.group_state, "Stable"));
    CU_ASSERT(fix_str(d.protocol_data, "range"));
    CU_ASSERT(fix_str(d.members.v[1].member_id, ids[1]));
    CU_ASSERT_EQUAL(d.members.v[1].group_instance_id.n, -1);
    CU_ASSERT(fix_str(d.members.v[1].client_id, "client"));
    CU_ASSERT(fix_str(d.members.v[1].client_host, "/1.2.3.4"));
    CU_ASSERT(fix_bytes(d.members.v[1].member_metadata, "m"));
    CU_ASSERT(fix_bytes(d.members.v[1].member_assignment, "a1"));
    fix_join(&f, .instance = "i");
    CU_ASSERT_EQUAL(classic_describe(f.g, &f.records, &d), ERR_NONE);
    CU_ASSERT(fix_str(d.group_state, "PreparingRebalance"));
    CU_ASSERT(fix_str(d.protocol_data, ""));
    CU_ASSERT_EQUAL_FATAL(d.members.n, 3);
    CU_ASSERT(fix_bytes(d.members.v[1].member_metadata, ""));
    CU_ASSERT(fix_bytes(d.members.v[1].member_assignment, "a1"));
    CU_ASSERT(fix_str(d.members.v[2].group_instance_id, "i"));
    fix_close(&f);
}

static void test_describe_names_of_states(void)
{
    CU_ASSERT_STRING_EQUAL(classic_state_name(CLASSIC_EMPTY), "Empty");
    CU_ASSERT_STRING_EQUAL(classic_state_name(CLASSIC_DEAD), "Dead");
}

/* ------------------------------------------------------------------ subscriptions */

/* A member of a type, with a subscription given as bytes. */
static void subscribe(struct fix *f, const char *type, const void *p, size_t n)
{
    struct fix_call *c = fix_call(f);
    wire_default(&wire_join_group_request, &c->join_request);
    c->join_request.member_id = STR_LIT("");
    c->join_request.protocol_type = str_of(type);
    c->protocols[0].name = STR_LIT("range");
    c->protocols[0].metadata = (struct bytes){p, (int32_t)n};
    c->join_request.protocols.v = c->protocols;
    c->join_request.protocols.n = 1;
    c->join_request.session_timeout_ms = 10000;
    c->join_request.rebalance_timeout_ms = 60000;
    c->join = (struct classic_join_op){.op.done = fix_join_done,
                                       .arena = &c->arena,
                                       .request = &c->join_request,
                                       .version = 3,
                                       .client_id = STR_LIT("c"),
                                       .client_host = STR_LIT("h"),
                                       .response = &c->joined};
    classic_join(f->g, &c->join, f->now);
}

static bool subscribed(struct fix *f, const char *topic)
{
    struct classic_topics t;
    CU_ASSERT_EQUAL_FATAL(classic_subscriptions(f->g, &f->records, &t), ERR_NONE);
    return classic_topics_has(&t, str_of(topic));
}

#define V0 "\0\0\0\0\0\2\0\2t2\0\2t1\xff\xff\xff\xff"
#define V1 "\0\1\0\0\0\1\0\2t1\0\0\0\3abc\0\0\0\1\0\2tx\0\0\0\0"
#define V9 "\0\x09\0\0\0\1\0\2t9\0\0\0\0whatever comes"

static void test_subscriptions(void)
{
    struct fix f;
    fix_open(&f);
    CU_ASSERT_FALSE(subscribed(&f, "t1"));
    subscribe(&f, "consumer", V0, sizeof V0 - 1);
    CU_ASSERT_TRUE(subscribed(&f, "any")); /* nothing is voted for yet */
    subscribe(&f, "consumer", V1, sizeof V1 - 1);
    subscribe(&f, "consumer", V9, sizeof V9 - 1);
    fix_wait(&f, 2000);
    CU_ASSERT_EQUAL_FATAL(classic_state(f.g), CLASSIC_COMPLETING);
    CU_ASSERT_TRUE(subscribed(&f, "t1"));
    CU_ASSERT_TRUE(subscribed(&f, "t2"));
    CU_ASSERT_TRUE(subscribed(&f, "t9"));
    CU_ASSERT_FALSE(subscribed(&f, "tx")); /* owned, not subscribed */
    CU_ASSERT_FALSE(subscribed(&f, "t"));
    struct classic_topics t;
    CU_ASSERT_EQUAL(classic_subscriptions(f.g, &f.records, &t), ERR_NONE);
    CU_ASSERT_EQUAL(t.n, 3);
    fix_close(&f);
}

static void test_subscriptions_that_cannot_be_read(void)
{
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
        {"", 0}, {"\0", 1}, {"\xff\xff\0\0\0\0", 6}, {"\0\0\0\0\0\2\0\2t1", 10}, {"\0\0", 2}};
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        struct fix f;
        fix_open(&f);
        subscribe(&f, "consumer", V0, sizeof V0 - 1);
        subscribe(&f, "consumer", bad[i].p, bad[i].n);
        fix_wait(&f, 2000);
        CU_ASSERT_TRUE(subscribed(&f, "any"));
        fix_close(&f);
        fix_open(&f);
        subscribe(&f, "connect", bad[i].p, bad[i].n);
        fix_wait(&f, 1000);
        CU_ASSERT_FALSE(subscribed(&f, "any"));
        fix_close(&f);
    }
}

TEST_MAIN(TEST(test_record_of_a_new_group), TEST(test_record_loads),
          TEST(test_record_of_an_empty_group_loads), TEST(test_record_of_another_leader),
          TEST(test_record_loads_again), TEST(test_record_of_older_versions),
          TEST(test_record_contradicts_itself), TEST(test_record_of_a_large_group),
          TEST(test_describe_by_state), TEST(test_describe_names_of_states),
          TEST(test_subscriptions), TEST(test_subscriptions_that_cannot_be_read))
