/* A thousand groups of ten members each: what a heartbeat costs does not hang on how many there
 * are. Work is counted, not timed: allocations, and deadlines moved in the heap of timers. */
#include "unit/core_group/classic_fixture.h"

enum { MEMBERS = 10 };

struct crowd {
    struct fix f;
    struct classic **groups;
    struct str (*ids)[MEMBERS];
    int n;
};

static void settle(struct crowd *c)
{
    struct list *l;
    while ((l = list_pop(&c->f.ready)) != NULL) {
        struct group_op *op = LIST_ENTRY(l, struct group_op, ready);
        op->done(op);
    }
}

static void wait_ms(struct crowd *c, int64_t ms)
{
    c->f.now.mono_us += ms * 1000;
    c->f.now.wall_ms += ms;
    timers_run(&c->f.timers, c->f.now.mono_us);
    settle(c);
}

/* Stable groups, from records: that costs no requests. */
static void open_crowd(struct crowd *c, int n)
{
    fix_prepare(&c->f);
    c->n = n;
    c->groups = calloc((size_t)n, sizeof *c->groups);
    c->ids = calloc((size_t)n, sizeof *c->ids);
    for (int i = 0; i < n; i++) {
        struct group_metadata_value_member_metadata m[MEMBERS];
        struct group_metadata_value v;
        wire_default(&wire_group_metadata_value, &v);
        for (int k = 0; k < MEMBERS; k++) {
            char id[32];
            const int id_n = snprintf(id, sizeof id, "member-%d-%d", i, k);
            wire_default(&wire_group_metadata_value_member_metadata, &m[k]);
            c->ids[i][k] = (struct str){arena_strdup(&c->f.records, str_of(id)), id_n};
            m[k].member_id = c->ids[i][k];
            m[k].client_id = m[k].client_host = STR_LIT("c");
            m[k].session_timeout = 10000;
            m[k].rebalance_timeout = 60000;
        }
        v.protocol_type = STR_LIT("consumer");
        v.protocol = STR_LIT("range");
        v.generation = 1;
        v.leader = c->ids[i][0];
        v.members.v = m;
        v.members.n = MEMBERS;
        CU_ASSERT_EQUAL_FATAL(fix_new_group(&c->f), ERR_NONE);
        c->groups[i] = c->f.g;
        CU_ASSERT_EQUAL_FATAL(classic_load(c->f.g, &v), ERR_NONE);
        classic_loaded(c->f.g, c->f.now);
    }
    c->f.g = NULL;
}

static void close_crowd(struct crowd *c)
{
    for (int i = 0; i < c->n; i++) {
        classic_unload(c->groups[i], K_NOT_COORDINATOR);
        classic_free(c->groups[i]);
    }
    free(c->groups);
    free(c->ids);
    fix_close(&c->f);
}

/* A heartbeat of every member. Adds the deadlines moved to *moved. */
static void beat_all(struct crowd *c, uint64_t *moved)
{
    const uint64_t before = c->f.timers.seq;
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < MEMBERS; k++)
            CU_ASSERT_EQUAL(classic_heartbeat(c->groups[i], c->ids[i][k], STR_NULL, 1, c->f.now),
                            K_NONE);
    *moved += c->f.timers.seq - before;
}

/* A minute of heartbeats every 3 s. Deadlines move when timers fire: once a session or so. */
static void test_scale_heartbeats(void)
{
    static const int sizes[] = {10, 1000};
    for (size_t s = 0; s < ARRAY_N(sizes); s++) {
        struct crowd c;
        uint64_t in_heartbeats = 0;
        open_crowd(&c, sizes[s]);
        const uint64_t used = c.f.budget.used_bytes, begun = c.f.timers.seq;
        fault_alloc_arm(1, true);
        for (int ms = 0; ms < 60000; ms += 3000) {
            beat_all(&c, &in_heartbeats);
            wait_ms(&c, 3000);
        }
        CU_ASSERT_FALSE(fault_alloc_hit()); /* no allocation at all */
        CU_ASSERT_EQUAL(c.f.budget.used_bytes, used);
        CU_ASSERT_EQUAL(in_heartbeats, 0);
        /* each timer fires less than ten times, twice in the heap each time */
        const uint64_t members = (uint64_t)sizes[s] * MEMBERS;
        CU_ASSERT(c.f.timers.seq - begun <= members * 2 * 10);
        for (int i = 0; i < c.n; i++)
            CU_ASSERT_EQUAL(classic_members_n(c.groups[i]), MEMBERS);
        close_crowd(&c);
    }
}

/* Those who fall silent are found all the same. */
static void test_scale_expiry(void)
{
    struct crowd c;
    uint64_t moved = 0;
    open_crowd(&c, 1000);
    beat_all(&c, &moved);
    wait_ms(&c, 5000);
    for (int i = 0; i < c.n; i += 2)
        for (int k = 0; k < MEMBERS; k++)
            classic_heartbeat(c.groups[i], c.ids[i][k], STR_NULL, 1, c.f.now);
    c.f.refuse = true;
    c.f.store_error = K_NOT_COORDINATOR; /* what is stored is of no interest here */
    wait_ms(&c, 5000);
    for (int i = 0; i < c.n; i++)
        CU_ASSERT_EQUAL(classic_members_n(c.groups[i]), i % 2 == 0 ? MEMBERS : 0);
    close_crowd(&c);
}

TEST_MAIN(TEST(test_scale_heartbeats), TEST(test_scale_expiry))
