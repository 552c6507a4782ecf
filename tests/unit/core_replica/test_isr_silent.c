/* Followers whose sessions do not mention a partition (KIP-227): what their leader makes of it for
 * the ISR, and that it costs nothing. */
#include "hand_leader.h"

static int32_t both[] = {1, 2}, alone[] = {1};

struct session_fetch {
    struct fix_fetch q;
    int32_t id;
    int32_t epoch;
};

static void session_end(struct cluster *c, struct session_fetch *s)
{
    cluster_turn(c);
    CU_ASSERT_EQUAL_FATAL(s->q.done, 1);
    CU_ASSERT_EQUAL(s->q.response.error_code, K_NONE);
    s->id = s->q.response.session_id;
    s->epoch++;
    fix_fetch_close(&s->q);
}

static void session_turn(struct cluster *c, struct session_fetch *s)
{
    CU_ASSERT_EQUAL_FATAL(replicas_fetch(c->nodes[1].rs, &s->q.op, c->nodes[1].now), ERR_NONE);
    session_end(c, s);
}

static void session_prepare(struct session_fetch *s)
{
    hand_fetch(&s->q, 2, 200);
    s->q.request.session_id = s->id;
    s->q.request.session_epoch = s->epoch;
}

static void session_again(struct cluster *c, struct session_fetch *s)
{
    session_prepare(s);
    session_turn(c, s);
}

static size_t hot_n(const struct cluster *c)
{
    const struct session *ss = cluster_session(c, 1);
    size_t n = 0;
    for (const struct list *l = ss->set.hot.next; l != &ss->set.hot; l = l->next)
        n++;
    return n;
}

/* A session of a follower of two partitions. */
static struct uuid silent_begin(struct cluster *c, struct session_fetch *s)
{
    leader_begin(c);
    const struct uuid t = cluster_topic(c, "t", 2, both, 2, both, 2);
    cluster_turn(c);
    *s = (struct session_fetch){.epoch = 0};
    session_prepare(s);
    fix_ask(&s->q, t, 0, 0)->current_leader_epoch = 0;
    fix_ask(&s->q, t, 1, 0)->current_leader_epoch = 0;
    session_turn(c, s);
    session_again(c, s);
    return t;
}

/* What a session does not mention costs nothing, and counts as asked for all the same (KIP-16,
 * KIP-227). */
static void test_isr_silent_follower_stays(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    CU_ASSERT_EQUAL(hot_n(&c), 0);
    for (int i = 0; i < 60; i++) {
        cluster_wait(&c, 1000);
        session_prepare(&s);
        CU_ASSERT_EQUAL(replicas_fetch(c.nodes[1].rs, &s.q.op, c.nodes[1].now), ERR_NONE);
        CU_ASSERT_EQUAL(hot_n(&c), 0); /* nothing to look at */
        session_end(&c, &s);
        CU_ASSERT_EQUAL(hot_n(&c), 0);
    }
    const int64_t last_us = c.nodes[1].now.mono_us;
    CU_ASSERT_EQUAL(fix_append(&c.nodes[1], t, 0, 1), K_NONE);
    const struct follower *f = &cluster_part(&c, 1, t, 0)->followers[0];
    CU_ASSERT_EQUAL(f->last_caught_up_us, last_us);
    CU_ASSERT_EQUAL(f->last_fetch_us, last_us);
    cluster_wait(&c, CLUSTER_LAG_MS - 100);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_wait(&c, CLUSTER_LAG_MS / 2 + 200); /* it does not fetch any more */
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_n, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->isr_n, 2);
    cluster_end(&c);
}

/* One that asks for the others, but not for what came, is late with that one. */
static void test_isr_silence_after_an_append_counts_as_late(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    CU_ASSERT_EQUAL(fix_append(&c.nodes[1], t, 0, 1), K_NONE);
    for (int i = 0; i < 60; i++) {
        cluster_wait(&c, 1000);
        session_again(&c, &s); /* has it by now, and asks for the same again: it cannot take it */
    }
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->isr_n, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->isr_n, 2);
    CU_ASSERT_EQUAL(hot_n(&c), 1);
    cluster_end(&c);
}

/* Silent and outside of the ISR: each fetch may let it join, once nothing speaks against it. */
static void test_isr_silent_follower_joins(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    cluster_change(&c, t, 1, -2, alone, 1);
    cluster_change_broker(&c, 2, 1, 0);
    cluster_turn(&c);
    session_again(&c, &s);
    session_again(&c, &s);
    CU_ASSERT_EQUAL(c.alters, 0);
    cluster_change_broker(&c, 2, -1, 0);
    cluster_turn(&c);
    session_again(&c, &s);
    CU_ASSERT_EQUAL(c.alters, 1);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->isr_n, 2);
    session_again(&c, &s);
    session_again(&c, &s);
    CU_ASSERT_EQUAL(hot_n(&c), 0);
    cluster_end(&c);
}

/* The session's other life: all its partitions are asked for by that. */
static void test_isr_silent_follower_of_another_life(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    cluster_register(&c, 2, 250, NULL);
    cluster_turn(&c);
    session_prepare(&s);
    s.q.request.replica_state.replica_epoch = 250;
    session_turn(&c, &s);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 0)->followers[0].broker_epoch, 250);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->followers[0].broker_epoch, 250);
    cluster_end(&c);
}

/* A session that ends leaves what its silence said. */
static void test_isr_silence_outlives_its_session(void)
{
    struct cluster c;
    struct session_fetch s;
    const struct uuid t = silent_begin(&c, &s);
    cluster_wait(&c, 20000);
    session_again(&c, &s);
    const int64_t last_us = c.nodes[1].now.mono_us;
    cluster_wait(&c, 1000);
    session_prepare(&s);
    s.q.request.session_epoch = -1; /* closes it */
    session_turn(&c, &s);
    CU_ASSERT_EQUAL(c.nodes[1].rs->sessions.by_id.n, 0);
    CU_ASSERT_EQUAL(cluster_part(&c, 1, t, 1)->followers[0].last_caught_up_us, last_us);
    cluster_end(&c);
}

TEST_MAIN(TEST(test_isr_silent_follower_stays),
          TEST(test_isr_silence_after_an_append_counts_as_late),
          TEST(test_isr_silent_follower_joins), TEST(test_isr_silent_follower_of_another_life),
          TEST(test_isr_silence_outlives_its_session))
