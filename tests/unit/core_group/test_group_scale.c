/* A thousand groups of ten members each in one shard: what a heartbeat, a turn, an unloading costs
 * does not hang on how many there are. Work is counted, not timed. */
#include "made.h"

enum { MEMBERS = 10 };

static struct co c;

static struct str name(char *to, size_t n, int group, int member)
{
    return (struct str){to, snprintf(to, n, member < 0 ? "g%d" : "g%d-m%d", group, member)};
}

static void put_group(struct made *m, int i)
{
    struct group_metadata_value_member_metadata members[MEMBERS];
    char ids[MEMBERS][32], id[32];
    const struct group_metadata_key key = {name(id, sizeof id, i, -1)};
    struct group_metadata_value v;
    wire_default(&wire_group_metadata_value, &v);
    for (int k = 0; k < MEMBERS; k++) {
        wire_default(&wire_group_metadata_value_member_metadata, &members[k]);
        members[k].member_id = name(ids[k], sizeof ids[k], i, k);
        members[k].client_id = members[k].client_host = STR_LIT("c");
        members[k].session_timeout = 10000;
        members[k].rebalance_timeout = 60000;
    }
    v.protocol_type = STR_LIT("consumer");
    v.protocol = STR_LIT("range");
    v.generation = 1;
    v.leader = members[0].member_id;
    v.members.v = members;
    v.members.n = MEMBERS;
    made_add(&c, m, 2, &msg_group_metadata_key, &key, &msg_group_metadata_value, 3, &v);
    made_offset(&c, m, id, i % 4, i);
}

/* n Stable groups with an offset each, from a log. */
static void begin(int n)
{
    co_prepare(&c);
    budget_init(&c.f.budget, NULL, (uint64_t)1 << 30);
    co_begin(&c);
    for (int i = 0; i < n;) {
        struct made m;
        made_begin(&m, -1, 0);
        for (int k = 0; k < 100 && i < n; k++, i++)
            put_group(&m, i);
        made_end(&c, &m);
    }
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL_FATAL(co_shard(&c, 0)->state, SHARD_ACTIVE);
    CU_ASSERT_EQUAL_FATAL(co_shard(&c, 0)->groups.n, (size_t)n);
}

static int16_t beat(int i, int k)
{
    char group[32], member[32];
    struct heartbeat_request req;
    wire_default(&wire_heartbeat_request, &req);
    req.group_id = name(group, sizeof group, i, -1);
    req.member_id = name(member, sizeof member, i, k);
    req.generation_id = 1;
    return groups_heartbeat(c.gs, &req, c.f.now);
}

/* ------------------------------------------------------------------ heartbeats */

/* Whoever follows the list of groups from its head, or into it, meets an address that is none. */
static void hide_groups(struct list *kept)
{
    struct list *head = &co_shard(&c, 0)->order;
    *kept = *head;
    head->next = head->prev = (struct list *)(uintptr_t)1;
}

static void show_groups(const struct list *kept)
{
    co_shard(&c, 0)->order = *kept;
}

/* A minute of heartbeats every 3 s: none of them, and no turn between, looks for groups; nothing is
 * allocated; deadlines move when timers fire only, once a session or so. */
static void test_scale_heartbeats(void)
{
    enum { GROUPS = 1000 };
    struct list kept;
    begin(GROUPS);
    const uint64_t used = c.f.budget.used_bytes, begun = c.f.timers.seq;
    uint64_t moved = 0;
    hide_groups(&kept);
    fault_alloc_arm(1, true);
    for (int ms = 0; ms < 60000; ms += 3000) {
        const uint64_t before = c.f.timers.seq;
        for (int i = 0; i < GROUPS; i++)
            for (int k = 0; k < MEMBERS; k++)
                CU_ASSERT_EQUAL(beat(i, k), K_NONE);
        moved += c.f.timers.seq - before;
        fault_alloc_pause();
        fix_wait(&c.f, 3000);
        fault_alloc_resume();
    }
    CU_ASSERT_FALSE(fault_alloc_hit());
    show_groups(&kept);
    CU_ASSERT_EQUAL(moved, 0);
    CU_ASSERT_EQUAL(c.f.budget.used_bytes, used);
    CU_ASSERT(c.f.timers.seq - begun <= (uint64_t)GROUPS * MEMBERS * 2 * 10);
    for (int i = 0; i < GROUPS; i++)
        CU_ASSERT_EQUAL(beat(i, 0), K_NONE);
    co_end(&c);
}

/* ------------------------------------------------------------------ unloading */

enum { MANY = 1000, SLICE_MAX = 2048 + 2 * (MEMBERS + 2) };

struct parked {
    struct groups_join_op op;
    struct join_group_request request;
    struct join_group_response response;
    struct arena arena;
    int done;
};

static void joined(struct group_op *op)
{
    CONTAINER_OF(op, struct parked, op.join.op)->done++;
}

/* The leader of a group joins again: it waits for the others. */
static void park(struct parked *p, int i)
{
    static char group[32], member[32];
    struct join_group_request_join_group_request_protocol range = {.name = STR_LIT("range")};
    memset(p, 0, sizeof *p);
    arena_init(&p->arena, NULL);
    wire_default(&wire_join_group_request, &p->request);
    p->request.group_id = name(group, sizeof group, i, -1);
    p->request.member_id = name(member, sizeof member, i, 0);
    p->request.session_timeout_ms = 10000;
    p->request.rebalance_timeout_ms = 60000;
    p->request.protocol_type = STR_LIT("consumer");
    p->request.protocols.v = &range;
    p->request.protocols.n = 1;
    p->op.join = (struct classic_join_op){.op.done = joined,
                                          .arena = &p->arena,
                                          .request = &p->request,
                                          .version = 9,
                                          .client_id = STR_LIT("c"),
                                          .client_host = STR_LIT("/c"),
                                          .response = &p->response};
    groups_join(c.gs, &p->op, c.f.now);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL_FATAL(p->done, 0);
}

/* leader 1: we again, in another epoch; -1: nobody. */
static void elect(int32_t leader)
{
    int32_t one[] = {1};
    fix_change(&c.f, c.offsets, 0, leader, one, 1);
}

/* A turn, without going on with what it asks for. */
static void turn(void)
{
    timers_run(&c.f.timers, c.f.now.mono_us);
    fix_settle(&c.f);
}

static int64_t log_end(void)
{
    struct replicas_ends ends;
    CU_ASSERT_EQUAL_FATAL(replicas_ends(c.f.rs, c.offsets, 0, &ends), K_NONE);
    return ends.staged_end;
}

/* How many turns it takes until nothing of the old epoch is left. */
static int unload(void)
{
    int turns = 0;
    for (struct shard *sh = co_shard(&c, 0); sh->unloading && turns < MANY; turns++) {
        const size_t groups_n = sh->groups.n, timers_n = c.f.timers.n;
        turn();
        CU_ASSERT(sh->groups.n < groups_n);
        CU_ASSERT(timers_n - c.f.timers.n <= SLICE_MAX); /* one for each member and group */
    }
    return turns;
}

/* Nothing is served, nothing written, while it goes in slices; what waited is told; then it is read
 * again. */
static void test_scale_unload(void)
{
    struct parked p;
    begin(MANY);
    const uint64_t used = c.f.budget.used_bytes;
    park(&p, MANY - 1);
    const int64_t end = log_end();
    elect(1);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_LOADING);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, MANY);
    turn();
    CU_ASSERT(co_shard(&c, 0)->groups.n > MANY / 2);
    CU_ASSERT_EQUAL(beat(MANY - 1, 0), K_NONE); /* as always while it loads */
    elect(1);
    CU_ASSERT(unload() >= 4);
    CU_ASSERT_EQUAL(log_end(), end);
    turn();
    CU_ASSERT_EQUAL(p.done, 1);
    CU_ASSERT_EQUAL(p.response.error_code, K_NOT_COORDINATOR);
    arena_close(&p.arena);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_ACTIVE);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, MANY);
    CU_ASSERT_EQUAL(c.f.budget.used_bytes, used);
    for (int i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL(beat(i, MEMBERS - 1), K_NONE);
    co_end(&c);
}

/* What its timers bring about is not written. */
static void test_scale_unload_while_sessions_end(void)
{
    begin(MANY);
    const int64_t end = log_end();
    elect(1);
    turn();
    c.f.now.mono_us += 11 * 1000 * 1000;
    for (int i = 0; co_shard(&c, 0)->unloading && i < MANY; i++)
        turn();
    CU_ASSERT_EQUAL(log_end(), end);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_ACTIVE);
    for (int i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL(beat(i, MEMBERS - 1), K_NONE);
    co_end(&c);
}

static void test_scale_unload_for_good(void)
{
    begin(0);
    const uint64_t used = c.f.budget.used_bytes;
    co_end(&c);
    begin(MANY);
    elect(-1);
    CU_ASSERT_EQUAL(beat(0, 0), K_NOT_COORDINATOR);
    CU_ASSERT(unload() >= 5);
    CU_ASSERT_EQUAL(c.f.budget.used_bytes, used);
    CU_ASSERT_EQUAL(co_commit(&c, "g1", 0, 1), K_NOT_COORDINATOR);
    co_end(&c);
}

static void test_scale_close_while_unloading(void)
{
    struct parked p;
    begin(MANY);
    park(&p, MANY - 1);
    elect(1);
    turn();
    CU_ASSERT(co_shard(&c, 0)->unloading);
    co_end(&c);
    CU_ASSERT_EQUAL(p.done, 1);
    arena_close(&p.arena);
}

TEST_MAIN(TEST(test_scale_heartbeats), TEST(test_scale_unload),
          TEST(test_scale_unload_while_sessions_end), TEST(test_scale_unload_for_good),
          TEST(test_scale_close_while_unloading))
