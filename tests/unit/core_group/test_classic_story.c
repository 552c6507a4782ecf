/* Random lives of a group: clients join, sync, leave, go away and come back in any order, stores
 * end late or fail, memory runs out now and then. After every step the group's counts agree with
 * its members; every request ends once; an assignment is never one of another generation; when all
 * fall silent the group becomes Empty. A failure prints its seed. */
#include "unit/core_group/classic_fixture.h"

enum { CLIENTS = 6, STEPS = 1500, SEEDS = 40 };

struct client {
    const char *instance;
    char id[80]; /* "": none */
    int32_t generation;
    bool leads;
    struct fix_call *join, *sync; /* not answered, or not looked at yet */
};

struct story {
    struct fix f;
    struct rng rng;
    struct client clients[CLIENTS];
};

static uint32_t pick(struct story *s, uint32_t n)
{
    return (uint32_t)rng_below(&s->rng, n);
}

/* ------------------------------------------------------------------ invariants */

static void check(const struct fix *f)
{
    const struct classic *g = f->g;
    struct list *l, *tmp;
    size_t members = 0, joining = 0, due = 0, instances = 0;
    bool leader = false;
    LIST_EACH(l, tmp, &g->members)
    {
        const struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
        members++;
        joining += m->joining;
        due += m->sync_due;
        instances += m->instance.n >= 0;
        leader |= g->leader == m;
        CU_ASSERT_PTR_EQUAL(classic_member(g, m->id), m);
        CU_ASSERT(m->instance.n < 0 || classic_static_member(g, m->instance) == m);
        CU_ASSERT(timer_armed(&m->session));
        CU_ASSERT(m->join == NULL || (m->joining && m->join->member == m));
        CU_ASSERT(m->sync == NULL || (m->syncing && m->sync->member == m));
        CU_ASSERT(!m->syncing || g->state == CLASSIC_COMPLETING);
        CU_ASSERT(g->protocol == NULL || g->state == CLASSIC_PREPARING ||
                  classic_protocols_metadata(m->protocols, classic_protocol_name(g)).n >= 0);
    }
    CU_ASSERT_EQUAL(g->members_n, members);
    CU_ASSERT_EQUAL(g->joining_n, joining);
    CU_ASSERT_EQUAL(g->sync_due_n, due);
    CU_ASSERT_EQUAL(g->by_instance.n, instances);
    CU_ASSERT_EQUAL(leader, members > 0);
    CU_ASSERT(members == 0 || timer_armed(&g->phase));
    CU_ASSERT(g->state != CLASSIC_EMPTY || !timer_armed(&g->phase)); /* such groups are many */
    CU_ASSERT(members > 0 || g->state == CLASSIC_EMPTY || g->state == CLASSIC_PREPARING);
    CU_ASSERT(members == 0 || g->state != CLASSIC_EMPTY);
    /* nobody waits for nothing */
    CU_ASSERT(g->state != CLASSIC_PREPARING || g->phase.at_us != CLASSIC_NEVER);
    CU_ASSERT(g->state != CLASSIC_PREPARING || g->initial || joining != members ||
              g->pending_n > 0);
    CU_ASSERT(due == 0 || g->phase.at_us != CLASSIC_NEVER);
}

/* ------------------------------------------------------------------ clients */

static void joined(struct client *c)
{
    const struct join_group_response *r = &c->join->joined;
    if (r->error_code == K_NONE) {
        snprintf(c->id, sizeof c->id, "%.*s", (int)r->member_id.n, r->member_id.p);
        c->generation = r->generation_id;
        c->leads = r->members.n > 0 && !r->skip_assignment;
        CU_ASSERT(r->generation_id > 0 && r->protocol_name.n > 0);
        CU_ASSERT(r->members.n == 0 || str_eq(r->leader, r->member_id));
    } else if (r->error_code == K_MEMBER_ID_REQUIRED) {
        snprintf(c->id, sizeof c->id, "%.*s", (int)r->member_id.n, r->member_id.p);
    } else if (r->error_code == K_UNKNOWN_MEMBER_ID || r->error_code == K_FENCED_INSTANCE_ID) {
        c->id[0] = '\0';
    }
    c->join = NULL;
}

static void synced(struct client *c)
{
    const struct sync_group_response *r = &c->sync->synced;
    char end[16];
    const int n = snprintf(end, sizeof end, ":%d", c->sync->sync_request.generation_id);
    if (r->error_code == K_NONE && r->assignment.n > 0)
        CU_ASSERT(r->assignment.n > n &&
                  memcmp(r->assignment.p + r->assignment.n - n, end, (size_t)n) == 0);
    c->sync = NULL;
}

static void look(struct story *s)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &s->clients[i];
        if (c->join != NULL && c->join->done > 0)
            joined(c);
        if (c->sync != NULL && c->sync->done > 0)
            synced(c);
    }
}

static void join(struct story *s, struct client *c)
{
    static const char *const lists[] = {"range=m", "range=m", "rr=x,range=y", "range=y,rr=x",
                                        "range=other"};
    static const int versions[] = {-1, 3, 5, 8, 9, 9, 9};
    static const int32_t sessions[] = {6000, 10000, 10000, 30000};
    const int version = versions[pick(s, ARRAY_N(versions))];
    if (version < 5 && c->instance != NULL)
        return;
    c->join = fix_begin_join(&s->f, &(struct fix_join){
                                        .id = c->id[0] == '\0' ? NULL : c->id,
                                        .instance = c->instance,
                                        .protocols = lists[pick(s, ARRAY_N(lists))],
                                        .session_ms = sessions[pick(s, ARRAY_N(sessions))],
                                        .rebalance_ms = (int32_t)pick(s, 20000),
                                        .version = version,
                                    });
}

/* The leader of a generation assigns to all present members, by id and generation. */
static void sync_member(struct story *s, struct client *c)
{
    char text[700] = "";
    struct list *l, *tmp;
    if (c->leads) {
        LIST_EACH(l, tmp, &s->f.g->members)
        {
            const struct classic_member *m = LIST_ENTRY(l, struct classic_member, link);
            const size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%s%.*s=%.8s:%d", n == 0 ? "" : ",", (int)m->id.n,
                     m->id.p, m->id.p, c->generation);
        }
    }
    c->sync = fix_begin_sync(&s->f, &(struct fix_sync){.id = c->id,
                                                       .instance = c->instance,
                                                       .generation = c->generation,
                                                       .assignments = c->leads ? text : NULL});
}

static void leave(struct story *s, struct client *c)
{
    fix_leave(&s->f, c->instance != NULL && pick(s, 2) == 0 ? NULL : c->id, c->instance);
    c->id[0] = '\0';
}

static void go_away(struct client *c)
{
    if (c->join != NULL)
        classic_join_cancel(&c->join->join);
    if (c->sync != NULL)
        classic_sync_cancel(&c->sync->sync);
    c->join = c->sync = NULL;
}

static void step(struct story *s)
{
    static const int16_t errors[] = {K_NONE, K_NONE, K_NONE, K_COORDINATOR_NOT_AVAILABLE};
    struct client *c = &s->clients[pick(s, CLIENTS)];
    struct fix *f = &s->f;
    if (pick(s, 20) == 0)
        fault_alloc_arm(1 + (long)pick(s, 20), false);
    switch (pick(s, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (c->join == NULL || pick(s, 10) == 0)
            join(s, c);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        if (c->id[0] != '\0' && (c->sync == NULL || pick(s, 10) == 0))
            sync_member(s, c);
        break;
    case 8:
    case 9:
        if (c->id[0] != '\0')
            classic_heartbeat(f->g, str_of(c->id), str_of(c->instance), c->generation, f->now);
        break;
    case 10:
        if (pick(s, 4) == 0)
            leave(s, c);
        break;
    case 11:
        if (pick(s, 3) == 0)
            go_away(c);
        break;
    case 12:
        if (c->instance != NULL && pick(s, 2) == 0)
            c->id[0] = '\0'; /* started again */
        break;
    case 13:
        f->hold = pick(s, 2) == 0;
        f->refuse = pick(s, 8) == 0;
        f->store_error = f->refuse ? K_NOT_COORDINATOR : errors[pick(s, ARRAY_N(errors))];
        break;
    case 14:
        if (f->open_n > 0)
            fix_end_store(f, errors[pick(s, ARRAY_N(errors))]);
        break;
    case 15:
        fix_wait(f, pick(s, 3000));
        break;
    }
    fix_settle(f);
    fault_alloc_hit();
    look(s);
    check(f);
}

static void live(uint64_t seed)
{
    static const char *const instances[CLIENTS] = {"i0", "i1", NULL, NULL, NULL, NULL};
    static struct story s;
    memset(&s, 0, sizeof s);
    s.rng.state = seed;
    fix_open(&s.f);
    if (seed % 3 == 0)
        fix_set(&s.f, "group.max.size", "4");
    for (int i = 0; i < CLIENTS; i++)
        s.clients[i].instance = instances[i];
    for (int i = 0; i < STEPS; i++)
        step(&s);
    s.f.hold = s.f.refuse = false;
    s.f.store_error = K_NONE;
    fix_settle(&s.f);
    fix_wait(&s.f, 1800000);
    check(&s.f);
    CU_ASSERT_EQUAL(classic_state(s.f.g), CLASSIC_EMPTY);
    CU_ASSERT_EQUAL(s.f.g->pending_n, 0);
    CU_ASSERT_EQUAL(s.f.g->supports.n, 0);
    CU_ASSERT(classic_generation(s.f.g) > 5);
    fix_close(&s.f);
}

static void test_story(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const unsigned failures = CU_get_number_of_failures();
        live(seed);
        if (CU_get_number_of_failures() != failures) {
            printf("\nseed %d\n", (int)seed);
            return;
        }
    }
}

TEST_MAIN(TEST(test_story))
