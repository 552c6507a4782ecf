/* Members' requests on the way to their group: which shard, which group, made or not (groups.md 1
 * and 2); what the log keeps of membership, and what a failed append leaves. */
#include "coordinator.h"

static struct co c;

/* ------------------------------------------------------------------ requests */

struct call {
    struct groups_join_op join;
    struct join_group_request join_request;
    struct join_group_request_join_group_request_protocol protocol;
    struct join_group_response joined;
    struct classic_sync_op sync;
    struct sync_group_request sync_request;
    struct sync_group_request_sync_group_request_assignment assignment;
    struct sync_group_response synced;
    struct classic_leave_op leave;
    struct leave_group_request leave_request;
    struct leave_group_request_member_identity identity;
    struct leave_group_response left;
    struct arena arena;
    int done;
};

static struct call calls[32];
static int calls_n;

static struct call *new_call(void)
{
    CU_ASSERT_FATAL(calls_n < (int)ARRAY_N(calls));
    struct call *q = &calls[calls_n++];
    memset(q, 0, sizeof *q);
    arena_init(&q->arena, NULL);
    return q;
}

static void join_done(struct group_op *op)
{
    CONTAINER_OF(op, struct call, join.join.op)->done++;
}

static void sync_done(struct group_op *op)
{
    CONTAINER_OF(op, struct call, sync.op)->done++;
}

static void leave_done(struct group_op *op)
{
    CONTAINER_OF(op, struct call, leave.op)->done++;
}

/* Without a turn. id NULL: "". */
static struct call *begin_join(const char *group, const char *id, int32_t session_ms)
{
    struct call *q = new_call();
    struct join_group_request *r = &q->join_request;
    wire_default(&wire_join_group_request, r);
    r->group_id = str_of(group);
    r->member_id = id == NULL ? STR_LIT("") : str_of(id);
    r->session_timeout_ms = session_ms;
    r->rebalance_timeout_ms = 60000;
    r->protocol_type = STR_LIT("consumer");
    q->protocol.name = STR_LIT("range");
    q->protocol.metadata = (struct bytes){(const uint8_t *)"m", 1};
    r->protocols.v = &q->protocol;
    r->protocols.n = 1;
    q->join.join = (struct classic_join_op){.op.done = join_done,
                                            .arena = &q->arena,
                                            .request = r,
                                            .version = 3,
                                            .client_id = STR_LIT("client"),
                                            .client_host = STR_LIT("/1.2.3.4"),
                                            .response = &q->joined};
    groups_join(c.gs, &q->join, c.f.now);
    CU_ASSERT_EQUAL(q->done, 0); /* never inside the call */
    return q;
}

static struct call *join(const char *group, const char *id)
{
    struct call *q = begin_join(group, id, 10000);
    fix_turn(&c.f);
    return q;
}

static int16_t join_error(const char *group, const char *id, int32_t session_ms)
{
    struct call *q = begin_join(group, id, session_ms);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    return q->joined.error_code;
}

/* Of a leader that assigns bytes to itself. */
static struct call *begin_sync(const char *group, const char *id, int32_t generation,
                               const char *assignment)
{
    struct call *q = new_call();
    struct sync_group_request *r = &q->sync_request;
    wire_default(&wire_sync_group_request, r);
    r->group_id = str_of(group);
    r->member_id = str_of(id);
    r->generation_id = generation;
    q->assignment.member_id = str_of(id);
    q->assignment.assignment =
        (struct bytes){(const uint8_t *)assignment, (int32_t)strlen(assignment)};
    r->assignments.v = &q->assignment;
    r->assignments.n = 1;
    q->sync = (struct classic_sync_op){
        .op.done = sync_done, .arena = &q->arena, .request = r, .response = &q->synced};
    groups_sync(c.gs, &q->sync, c.f.now);
    CU_ASSERT_EQUAL(q->done, 0);
    return q;
}

static struct call *sync_group(const char *group, const char *id, int32_t generation,
                               const char *assignment)
{
    struct call *q = begin_sync(group, id, generation, assignment);
    fix_turn(&c.f);
    return q;
}

static struct call *leave(const char *group, const char *id)
{
    struct call *q = new_call();
    wire_default(&wire_leave_group_request, &q->leave_request);
    wire_default(&wire_leave_group_request_member_identity, &q->identity);
    q->leave_request.group_id = str_of(group);
    q->identity.member_id = str_of(id);
    q->leave_request.members.v = &q->identity;
    q->leave_request.members.n = 1;
    q->leave = (struct classic_leave_op){.op.done = leave_done,
                                         .arena = &q->arena,
                                         .request = &q->leave_request,
                                         .version = 5,
                                         .response = &q->left};
    groups_leave(c.gs, &q->leave, c.f.now);
    CU_ASSERT_EQUAL(q->done, 0);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    return q;
}

static int16_t beat(const char *group, const char *id, int32_t generation)
{
    struct heartbeat_request r;
    wire_default(&wire_heartbeat_request, &r);
    r.group_id = str_of(group);
    r.member_id = str_of(id);
    r.generation_id = generation;
    return groups_heartbeat(c.gs, &r, c.f.now);
}

/* As in Kafka's answer. */
static void expect_described(const char *group, int16_t version, int16_t error, const char *state,
                             const char *message)
{
    struct describe_groups_response_described_group d;
    struct arena a;
    arena_init(&a, NULL);
    CU_ASSERT_EQUAL_FATAL(groups_describe(c.gs, str_of(group), version, &a, &d), ERR_NONE);
    CU_ASSERT_EQUAL(d.error_code, error);
    CU_ASSERT(str_eq(d.group_id, str_of(group)));
    CU_ASSERT(str_eq(d.group_state, str_of(state)));
    CU_ASSERT(str_eq(d.error_message, str_of(message)));
    arena_close(&a);
}

static void begin(void)
{
    co_prepare(&c);
    fix_set(&c.f, "group.initial.rebalance.delay.ms", "0");
    co_begin(&c);
}

static void end(void)
{
    co_end(&c);
    while (calls_n > 0) {
        CU_ASSERT_EQUAL(calls[--calls_n].done, 1);
        arena_close(&calls[calls_n].arena);
    }
}

static void disk_is_full(bool full)
{
    if (full)
        memfs_fault_arm(&c.f.fs, (struct memfs_fault){.nth = 1,
                                                      .persistent = true,
                                                      .err = ERR_NOSPC,
                                                      .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                      .under = "/data/__consumer_offsets"});
    else
        (void)memfs_fault_hit(&c.f.fs);
}

/* A group of one member, Stable, with the assignment "A"; its id. */
static const char *stable(const char *group)
{
    struct call *q = join(group, NULL);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    CU_ASSERT_EQUAL_FATAL(q->joined.error_code, K_NONE);
    const char *id = q->joined.member_id.p;
    struct call *y = sync_group(group, id, q->joined.generation_id, "A");
    CU_ASSERT_EQUAL_FATAL(y->done, 1);
    CU_ASSERT_EQUAL_FATAL(y->synced.error_code, K_NONE);
    return id;
}

/* ------------------------------------------------------------------ which group */

static void test_members_ids_and_sessions(void)
{
    begin();
    CU_ASSERT_EQUAL(join_error("", NULL, 1), K_INVALID_GROUP_ID); /* before the session */
    CU_ASSERT_EQUAL(join_error("g", NULL, 5999), K_INVALID_SESSION_TIMEOUT);
    CU_ASSERT_EQUAL(join_error("g", NULL, 1800001), K_INVALID_SESSION_TIMEOUT);
    CU_ASSERT_EQUAL(join_error("g", "x", 5999), K_INVALID_SESSION_TIMEOUT);
    CU_ASSERT_FALSE(co_exists(&c, "g"));
    CU_ASSERT_EQUAL(join_error("g", NULL, 6000), K_NONE);
    CU_ASSERT_EQUAL(join_error("h", NULL, 1800000), K_NONE);
    CU_ASSERT_EQUAL(beat("", "x", 1), K_INVALID_GROUP_ID);
    CU_ASSERT_EQUAL(sync_group("", "x", 1, "")->synced.error_code, K_INVALID_GROUP_ID);
    CU_ASSERT_EQUAL(leave("", "x")->left.error_code, K_INVALID_GROUP_ID);
    end();
}

static void test_members_of_an_unknown_group(void)
{
    begin();
    struct call *q = join("g", "x");
    CU_ASSERT_EQUAL(q->joined.error_code, K_UNKNOWN_MEMBER_ID);
    CU_ASSERT(str_eq(q->joined.member_id, STR_LIT("x")));
    CU_ASSERT_EQUAL(beat("g", "x", 1), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(sync_group("g", "x", 1, "")->synced.error_code, K_UNKNOWN_MEMBER_ID);
    struct call *l = leave("g", "x");
    CU_ASSERT_EQUAL(l->left.error_code, K_NONE);
    CU_ASSERT_EQUAL(l->left.members.v[0].error_code, K_UNKNOWN_MEMBER_ID);
    expect_described("g", 5, K_NONE, "Dead", NULL);
    expect_described("g", 6, K_GROUP_ID_NOT_FOUND, "Dead", "Group g not found.");
    CU_ASSERT_FALSE(co_exists(&c, "g"));
    end();
}

/* Made with its record, also when the member is refused then. */
/* Without a type. */
static struct call *begin_refused_join(const char *group)
{
    struct call *q = new_call();
    wire_default(&wire_join_group_request, &q->join_request);
    q->join_request.group_id = str_of(group);
    q->join_request.session_timeout_ms = 10000;
    q->join.join = (struct classic_join_op){.op.done = join_done,
                                            .arena = &q->arena,
                                            .request = &q->join_request,
                                            .version = 9,
                                            .response = &q->joined};
    groups_join(c.gs, &q->join, c.f.now);
    CU_ASSERT_EQUAL(q->done, 0);
    return q;
}

/* Who is refused finds the group that it has made (row 8). */
static void test_members_refused_wait_for_their_group(void)
{
    int32_t two[] = {1, 2}, one[] = {1};
    co_begin_on(&c, 1, two, 2); /* the second never fetches: nothing is committed */
    struct call *q = begin_refused_join("g"), *gone = begin_refused_join("h");
    fix_turn(&c.f);
    CU_ASSERT(q->done == 0 && gone->done == 0);
    groups_join_cancel(&gone->join);
    fix_turn(&c.f);
    CU_ASSERT(q->done == 0 && gone->done == 1);
    c.f.now.mono_us += 31000 * 1000;
    fix_change(&c.f, c.offsets, 0, -2, one, 1);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q->done, 1);
    CU_ASSERT_EQUAL(q->joined.error_code, K_INCONSISTENT_GROUP_PROTOCOL);
    CU_ASSERT_TRUE(co_exists(&c, "g"));
    q = begin_refused_join("g"); /* which is there: nothing to wait for */
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q->done, 1);
    end();
}

static void test_members_make_their_group(void)
{
    struct co_list l;
    begin();
    struct call *q = begin_join("g", NULL, 10000);
    CU_ASSERT_FALSE(co_exists(&c, "g")); /* not committed yet */
    expect_described("g", 5, K_NONE, "Dead", NULL);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q->joined.error_code, K_NONE);
    CU_ASSERT_TRUE(co_exists(&c, "g"));
    q = begin_refused_join("refused");
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q->joined.error_code, K_INCONSISTENT_GROUP_PROTOCOL);
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_list(&c, &l), K_NONE);
    CU_ASSERT_EQUAL_FATAL(l.n, 2); /* what is not stable yet is as it was made */
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_STRING_EQUAL(l.v[i].state, "Empty");
        CU_ASSERT_STRING_EQUAL(l.v[i].protocol, "");
    }
    end();
}

/* A group that has only offsets: it is there, and needs no record to have members. */
static void test_members_of_a_simple_group(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    const int64_t before = co_shard(&c, 0)->end;
    struct call *q = join("g", NULL);
    CU_ASSERT_EQUAL(q->joined.error_code, K_NONE);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->end, before);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    end();
}

/* Groups of Kafka's log that are not served: while they may have members they keep others out. */
static void test_members_of_other_kinds_of_groups(void)
{
    static const enum group_kind kinds[] = {GROUP_CONSUMER, GROUP_STREAMS, GROUP_SHARE};
    static const char *const names[] = {"consumer", "streams", "share"};
    begin();
    for (size_t i = 0; i < ARRAY_N(kinds); i++) {
        struct group *g;
        struct life *l;
        char message[64];
        CU_ASSERT_EQUAL_FATAL(group_make(co_shard(&c, 0), str_of(names[i]), &g), ERR_NONE);
        CU_ASSERT_EQUAL_FATAL(life_begin(g, NULL, kinds[i], &l), ERR_NONE);
        l->members_n = 1;
        l->members_end_us = c.f.now.mono_us + 45000000;
        snprintf(message, sizeof message, "Group %s is not a classic group.", names[i]);
        CU_ASSERT_EQUAL(join_error(names[i], NULL, 10000), K_INCONSISTENT_GROUP_PROTOCOL);
        struct call *q = join(names[i], "x");
        CU_ASSERT_EQUAL(q->joined.error_code, K_INCONSISTENT_GROUP_PROTOCOL);
        CU_ASSERT(str_eq(q->joined.member_id, STR_LIT("")));
        CU_ASSERT_EQUAL(beat(names[i], "x", 1), K_UNKNOWN_MEMBER_ID);
        CU_ASSERT_EQUAL(sync_group(names[i], "x", 1, "")->synced.error_code, K_UNKNOWN_MEMBER_ID);
        CU_ASSERT_EQUAL(leave(names[i], "x")->left.members.v[0].error_code, K_UNKNOWN_MEMBER_ID);
        expect_described(names[i], 5, K_NONE, "Dead", NULL);
        expect_described(names[i], 6, K_GROUP_ID_NOT_FOUND, "Dead", message);
    }
    co_wait(&c, 45000);
    CU_ASSERT_EQUAL(join_error("consumer", "x", 10000), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(join_error("consumer", NULL, 10000), K_NONE);
    CU_ASSERT_EQUAL(join_error("streams", NULL, 10000), K_NONE);
    CU_ASSERT_EQUAL(join_error("share", NULL, 10000), K_INCONSISTENT_GROUP_PROTOCOL);
    expect_described("consumer", 6, K_NONE, "CompletingRebalance", NULL);
    end();
}

/* ------------------------------------------------------------------ shards */

static void test_members_while_loading(void)
{
    begin();
    const char *id = stable("g");
    co_restart(&c);
    fix_settle(&c.f); /* the log is not read yet */
    CU_ASSERT_EQUAL_FATAL(co_shard(&c, 0)->state, SHARD_LOADING);
    struct call *q = begin_join("g", id, 10000), *y = begin_sync("g", id, 1, "");
    CU_ASSERT_EQUAL(beat("g", id, 1), K_NONE); /* not to worry */
    CU_ASSERT_EQUAL(beat("g", "nobody", 7), K_NONE);
    struct call *l = new_call();
    wire_default(&wire_leave_group_request, &l->leave_request);
    l->leave_request.group_id = STR_LIT("g");
    l->leave = (struct classic_leave_op){.op.done = leave_done,
                                         .arena = &l->arena,
                                         .request = &l->leave_request,
                                         .version = 5,
                                         .response = &l->left};
    groups_leave(c.gs, &l->leave, c.f.now);
    expect_described("g", 6, K_COORDINATOR_LOAD_IN_PROGRESS, "", NULL);
    co_turns(&c);
    CU_ASSERT_EQUAL(q->joined.error_code, K_COORDINATOR_LOAD_IN_PROGRESS);
    CU_ASSERT(str_eq(q->joined.member_id, STR_LIT("")));
    CU_ASSERT_EQUAL(y->synced.error_code, K_COORDINATOR_LOAD_IN_PROGRESS);
    CU_ASSERT_EQUAL(l->left.error_code, K_COORDINATOR_LOAD_IN_PROGRESS);
    end();
}

static void test_members_of_a_group_elsewhere(void)
{
    int32_t other[] = {2};
    co_prepare(&c);
    co_begin_on(&c, 1, other, 1);
    CU_ASSERT_EQUAL(join_error("g", NULL, 10000), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(beat("g", "x", 1), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(sync_group("g", "x", 1, "")->synced.error_code, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(leave("g", "x")->left.error_code, K_NOT_COORDINATOR);
    expect_described("g", 6, K_NOT_COORDINATOR, "", NULL);
    end();
}

/* The coordinator goes away: who is parked is told. */
static void test_members_are_parked_when_it_closes(void)
{
    begin();
    const char *id = stable("g");
    struct call *n = join("g", NULL); /* a newcomer waits for the member */
    CU_ASSERT_EQUAL(n->done, 0);
    (void)id;
    groups_close(c.gs, c.f.now);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL_FATAL(n->done, 1);
    CU_ASSERT_EQUAL(n->joined.error_code, K_NOT_COORDINATOR);
    end();
}

/* ------------------------------------------------------------------ what is kept */

static void test_members_after_a_restart(void)
{
    char id[64];
    begin();
    snprintf(id, sizeof id, "%s", stable("g"));
    const int64_t since =
        classic_state_since_ms(shard_group(co_shard(&c, 0), STR_LIT("g"))->life->classic);
    co_wait(&c, 5000);
    CU_ASSERT_EQUAL(beat("g", id, 1), K_NONE);
    co_restart(&c);
    co_turns(&c);
    expect_described("g", 6, K_NONE, "Stable", NULL);
    CU_ASSERT_EQUAL(
        classic_state_since_ms(shard_group(co_shard(&c, 0), STR_LIT("g"))->life->classic), since);
    CU_ASSERT_EQUAL(beat("g", id, 1), K_NONE);
    struct call *y = sync_group("g", id, 1, "other");
    CU_ASSERT_EQUAL(y->synced.assignment.n, 1);
    /* nobody leaves: its session ends, and that is kept too */
    co_wait(&c, 9999);
    expect_described("g", 6, K_NONE, "Stable", NULL);
    co_wait(&c, 1);
    expect_described("g", 6, K_NONE, "Empty", NULL);
    co_restart(&c);
    co_turns(&c);
    expect_described("g", 6, K_NONE, "Empty", NULL);
    CU_ASSERT_EQUAL(beat("g", id, 1), K_UNKNOWN_MEMBER_ID);
    struct call *q = join("g", NULL);
    CU_ASSERT_EQUAL(q->joined.generation_id, 3);
    end();
}

/* ------------------------------------------------------------------ failed appends */

/* The group was not made: its members are told, and it is not there. */
static void test_members_of_a_group_that_was_not_stored(void)
{
    begin();
    CU_ASSERT_EQUAL(co_commit(&c, "other", 0, 1), K_NONE);
    fix_set(&c.f, "group.initial.rebalance.delay.ms", "1000");
    disk_is_full(true);
    struct call *q = begin_join("g", NULL, 10000), *again = begin_join("g", NULL, 10000);
    fix_turn(&c.f);
    disk_is_full(false);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    CU_ASSERT_EQUAL_FATAL(again->done, 1);
    CU_ASSERT_EQUAL(q->joined.error_code, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(again->joined.error_code, K_NOT_COORDINATOR);
    CU_ASSERT_FALSE(co_exists(&c, "g"));
    CU_ASSERT_EQUAL(c.gs->shards[0].groups.n, 1);
    fix_set(&c.f, "group.initial.rebalance.delay.ms", "0");
    CU_ASSERT_EQUAL(join_error("g", NULL, 10000), K_NONE);
    end();
}

static void test_members_whose_assignment_was_not_stored(void)
{
    begin();
    struct call *q = join("g", NULL);
    const char *id = q->joined.member_id.p;
    disk_is_full(true);
    struct call *y = sync_group("g", id, 1, "A");
    disk_is_full(false);
    CU_ASSERT_EQUAL_FATAL(y->done, 1);
    CU_ASSERT_EQUAL(y->synced.error_code, K_NOT_COORDINATOR);
    expect_described("g", 6, K_NONE, "PreparingRebalance", NULL);
    q = join("g", id);
    CU_ASSERT_EQUAL(q->joined.generation_id, 2);
    y = sync_group("g", id, 2, "A");
    CU_ASSERT_EQUAL(y->synced.error_code, K_NONE);
    CU_ASSERT_EQUAL(y->synced.assignment.n, 1);
    end();
}

/* Leaving: the group is Empty, its answer says that this may be forgotten. */
static void test_members_whose_leave_was_not_stored(void)
{
    begin();
    const char *id = stable("g");
    disk_is_full(true);
    struct call *l = leave("g", id);
    disk_is_full(false);
    CU_ASSERT_EQUAL(l->left.error_code, K_NOT_COORDINATOR);
    expect_described("g", 6, K_NONE, "Empty", NULL);
    CU_ASSERT_EQUAL(beat("g", id, 1), K_UNKNOWN_MEMBER_ID);
    end();
}

/* The group is deleted while its deletion may still fail, and a member comes. */
static void test_members_of_a_group_being_deleted(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct co_delete d;
        begin();
        CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
        disk_is_full(fails == 1);
        co_delete_start(&c, &d, "g");
        struct call *q = begin_join("g", NULL, 10000);
        fix_turn(&c.f);
        disk_is_full(false);
        CU_ASSERT_EQUAL_FATAL(q->done, 1);
        CU_ASSERT_EQUAL(q->joined.error_code, fails ? K_NOT_COORDINATOR : K_NONE);
        CU_ASSERT_EQUAL(d.op.error, fails ? K_NOT_COORDINATOR : K_NONE);
        CU_ASSERT_EQUAL(co_offset(&c, "g", 0), fails ? 5 : -1);
        CU_ASSERT_TRUE(co_exists(&c, "g"));
        end();
    }
}

TEST_MAIN(TEST(test_members_ids_and_sessions), TEST(test_members_of_an_unknown_group),
          TEST(test_members_make_their_group), TEST(test_members_refused_wait_for_their_group),
          TEST(test_members_of_a_simple_group), TEST(test_members_of_other_kinds_of_groups),
          TEST(test_members_while_loading), TEST(test_members_of_a_group_elsewhere),
          TEST(test_members_are_parked_when_it_closes), TEST(test_members_after_a_restart),
          TEST(test_members_of_a_group_that_was_not_stored),
          TEST(test_members_whose_assignment_was_not_stored),
          TEST(test_members_whose_leave_was_not_stored),
          TEST(test_members_of_a_group_being_deleted))
