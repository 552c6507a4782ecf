/* Out of memory and out of budget at every point of a group's life: requests get an error, nothing
 * is lost, nothing hangs, all memory comes back. */
#include "unit/core_group/classic_fixture.h"

/* What must hold whenever nothing is under way. */
static void check(const struct fix *f)
{
    const struct classic *g = f->g;
    struct list *l, *tmp;
    size_t members = 0, joining = 0, due = 0, leaders = 0;
    LIST_EACH(l, tmp, &g->members)
    {
        const struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        members++;
        joining += m->joining;
        due += m->sync_due;
        leaders += g->leader == m;
        CU_ASSERT_PTR_EQUAL(classic_member(g, m->id), m);
        CU_ASSERT(timer_armed(&m->session));
        CU_ASSERT(m->joining || m->join == NULL);
        CU_ASSERT(m->syncing || m->sync == NULL);
    }
    CU_ASSERT_EQUAL(g->members_n, members);
    CU_ASSERT_EQUAL(g->joining_n, joining);
    CU_ASSERT_EQUAL(g->sync_due_n, due);
    CU_ASSERT_EQUAL(leaders, members > 0);
    CU_ASSERT(members == 0 || timer_armed(&g->phase));
    CU_ASSERT(members == 0 || g->state != CLASSIC_EMPTY);
}

/* A Join that may be refused; its id, or NULL. */
static const char *try_id(const struct fix_call *c)
{
    return c->done == 1 && c->joined.error_code == K_NONE ? c->joined.member_id.p : NULL;
}

/* As much of a group's life as requests succeed; a member that got an error asks once more, as
 * clients do. */
static void live(struct fix *f)
{
    struct fix_call *a = fix_join(f, .instance = "s", .protocols = "range=m,rr=n");
    struct fix_call *p = fix_join(f, .version = 9);
    struct fix_call *b = NULL;
    if (p->joined.error_code == K_MEMBER_ID_REQUIRED)
        b = fix_join(f, .id = p->joined.member_id.p, .protocols = "rr=x,range=y");
    fix_wait(f, 2000);
    check(f);
    for (int round = 0; round < 6; round++) {
        const int32_t generation = classic_generation(f->g);
        const char *ida = try_id(a), *idb = b == NULL ? NULL : try_id(b);
        char text[160];
        snprintf(text, sizeof text, "%s=A,%s=B", ida == NULL ? "-" : ida, idb == NULL ? "-" : idb);
        if (idb != NULL)
            fix_sync(f, .id = idb, .generation = generation, .assignments = text);
        if (ida != NULL)
            fix_sync(f, .id = ida, .generation = generation, .assignments = text);
        check(f);
        fix_wait(f, 100);
        a = fix_join(f, .instance = "s",
                     .protocols = round % 3 == 0 ? "rr=n,range=m" : "range=m,rr=n");
        if (idb != NULL && round % 2 == 1)
            b = fix_join(f, .id = idb, .protocols = "range=z");
        check(f);
        fix_wait(f, 1000);
    }
    fix_leave(f, NULL, "s");
    check(f);
    fix_wait(f, 700000);
    CU_ASSERT_EQUAL(classic_state(f->g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(f->g->pending_n, 0);
    CU_ASSERT_EQUAL(f->g->supports.n, 0);
    CU_ASSERT_EQUAL(f->g->by_id.n, 0);
    CU_ASSERT_EQUAL(f->g->by_instance.n, 0);
    check(f);
}

static void test_faults_of_allocations(void)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        bool hit = true;
        long n;
        for (n = 1; hit; n++) {
            struct fix f;
            fix_open(&f);
            fault_alloc_arm(n, persistent == 1);
            live(&f);
            hit = fault_alloc_hit();
            fix_close(&f);
        }
        printf("\n%ld allocations%s\n", n - 1, persistent ? ", persistent" : "");
        CU_ASSERT(n > 100);
    }
}

/* Every amount of memory up to what the whole needs. */
static void test_faults_of_the_budget(void)
{
    struct fix f;
    fix_open(&f);
    const uint64_t least = f.budget.used_bytes;
    live(&f);
    const uint64_t most = f.budget.peak_bytes;
    fix_close(&f);
    CU_ASSERT(most > least + 1000);
    for (uint64_t limit = least; limit <= most; limit += 13) {
        fix_open(&f);
        f.budget.limit_bytes = limit;
        live(&f);
        CU_ASSERT(f.budget.peak_bytes <= limit);
        fix_close(&f);
    }
}

/* What a refused Join gets is an error after which clients try again; nothing stays of it. */
static void test_faults_tell_the_client(void)
{
    struct fix f;
    fix_open(&f);
    const uint64_t used = f.budget.used_bytes;
    f.budget.limit_bytes = used;
    CU_ASSERT_EQUAL(fix_join(&f, .version = 3)->joined.error_code, K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(fix_join(&f, .version = 9)->joined.error_code, K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(f.budget.used_bytes, used);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_EMPTY);
    f.budget.limit_bytes = UINT64_MAX;
    struct fix_call *c = fix_join(&f, .version = 3);
    fix_wait(&f, 1000);
    f.budget.limit_bytes = f.budget.used_bytes;
    /* the leader's assignments do not fit: it may ask again */
    char text[128];
    snprintf(text, sizeof text, "%s=0123456789", fix_id(c));
    CU_ASSERT_EQUAL(
        fix_sync(&f, .id = fix_id(c), .generation = 1, .assignments = text)->synced.error_code,
        K_COORDINATOR_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(classic_state(f.g), CLASSIC_COMPLETING);
    f.budget.limit_bytes = UINT64_MAX;
    CU_ASSERT_EQUAL(
        fix_sync(&f, .id = fix_id(c), .generation = 1, .assignments = text)->synced.error_code,
        K_NONE);
    fix_close(&f);
}

/* Nothing stays of assignments that did not fit. */
static void test_faults_of_assignments(void)
{
    struct fix f;
    const char *ids[2];
    char text[256];
    fix_open(&f);
    fix_completing(&f, 2, ids);
    f.budget.limit_bytes =
        f.budget.used_bytes + sizeof(struct classic_store) + 2 * CLASSIC_OVERHEAD_BYTES + 20;
    snprintf(text, sizeof text, "%s=0123456789,%s=0123456789", ids[0], ids[1]);
    struct fix_call *c = fix_sync(&f, .id = ids[0], .generation = 1, .assignments = text);
    CU_ASSERT_EQUAL(c->synced.error_code, K_COORDINATOR_NOT_AVAILABLE);
    f.budget.limit_bytes = UINT64_MAX;
    c = fix_sync(&f, .id = ids[0], .generation = 1);
    CU_ASSERT_EQUAL(c->synced.error_code, K_NONE);
    CU_ASSERT_EQUAL(c->synced.assignment.n, 0);
    fix_close(&f);
}

static void test_faults_of_new_groups(void)
{
    struct fix f;
    bool hit = true;
    fix_prepare(&f);
    for (long n = 1; hit; n++) {
        fault_alloc_arm(n, false);
        enum err e = fix_new_group(&f);
        hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(e, hit ? ERR_NOMEM : ERR_NONE);
    }
    fix_close(&f);
    fix_prepare(&f);
    f.budget.limit_bytes = 10;
    CU_ASSERT_EQUAL(fix_new_group(&f), ERR_NOMEM);
    fix_close(&f);
}

/* Records are loaded whole or not at all; what others read of a group too. */
static void test_faults_of_loading(void)
{
    struct fix f;
    const char *ids[3];
    bool hit = true;
    fix_open(&f);
    fix_stable(&f, 3, ids);
    const struct classic_args args = f.g->args;
    for (long n = 1; hit; n++) {
        struct classic *g;
        CU_ASSERT_EQUAL_FATAL(classic_new(&args, STR_LIT("h"), f.now, &g), ERR_NONE);
        fault_alloc_arm(n, false);
        enum err e = classic_load(g, &f.stored.v);
        hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(e, hit ? ERR_NOMEM : ERR_NONE);
        classic_free(g);
    }
    hit = true;
    for (long n = 1; hit; n++) {
        struct arena a;
        struct describe_groups_response_described_group d;
        struct classic_topics t;
        struct group_metadata_value v;
        arena_init(&a, NULL);
        fault_alloc_arm(n, false);
        enum err e = classic_describe(f.g, &a, &d);
        if (e == ERR_NONE)
            e = classic_record(f.g, &a, &v);
        if (e == ERR_NONE)
            e = classic_subscriptions(f.g, &a, &t);
        hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(e, hit ? ERR_NOMEM : ERR_NONE);
        arena_close(&a);
    }
    fix_close(&f);
}

TEST_MAIN(TEST(test_faults_of_allocations), TEST(test_faults_of_the_budget),
          TEST(test_faults_tell_the_client), TEST(test_faults_of_assignments),
          TEST(test_faults_of_new_groups), TEST(test_faults_of_loading))
