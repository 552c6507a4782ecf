/* Fetch sessions (KIP-227): what a client may ask, what it is told again, who is evicted. */
#include "fixture.h"

static void begin_session(struct fix_fetch *q, int32_t id, int32_t epoch)
{
    fix_fetch_init(q);
    q->request.max_wait_ms = 0;
    q->request.session_id = id;
    q->request.session_epoch = epoch;
}

/* A new session of these partitions of t; its id. */
static int32_t open_session(struct fix *f, struct uuid t, int32_t n)
{
    struct fix_fetch q;
    begin_session(&q, 0, 0);
    for (int32_t i = 0; i < n; i++)
        fix_ask(&q, t, i, 0);
    fix_fetch_start(f, &q);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(q.response.error_code, K_NONE);
    CU_ASSERT_EQUAL(fix_answered(&q), n);
    const int32_t id = q.response.session_id;
    fix_fetch_close(&q);
    return id;
}

/* An incremental fetch that names nothing: the error. */
static int16_t go_on(struct fix *f, int32_t id, int32_t epoch, int *answered)
{
    struct fix_fetch q;
    begin_session(&q, id, epoch);
    fix_fetch_start(f, &q);
    CU_ASSERT_EQUAL(q.done, 1);
    *answered = fix_answered(&q);
    const int16_t error = q.response.error_code;
    CU_ASSERT_EQUAL(q.response.session_id, error == K_NONE ? id : 0);
    fix_fetch_close(&q);
    return error;
}

static size_t hot_n(const struct fix *f, int32_t id)
{
    size_t n = 0;
    struct list *l, *tmp;
    const struct session *ss = map_get(&f->rs->sessions.by_id, &id, sizeof id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ss);
    LIST_EACH(l, tmp, &ss->set.hot)
    n++;
    return n;
}

static void test_session_answers_only_news(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 4);
    const int32_t id = open_session(&f, t, 4);
    CU_ASSERT(id > 0);
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_NONE);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(hot_n(&f, id), 0); /* nothing to look at any more */
    CU_ASSERT_EQUAL(fix_append(&f, t, 2, 1), K_NONE);
    CU_ASSERT_EQUAL(hot_n(&f, id), 1);
    begin_session(&q, id, 2);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answered(&q), 1);
    CU_ASSERT(fix_answer(&q, t, 2)->records.n > 0);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 2)->high_watermark, 1);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, id, 3, &n), K_NONE);
    CU_ASSERT_EQUAL(n, 1); /* not asked from behind it yet: the same bytes */
    begin_session(&q, id, 4);
    fix_ask(&q, t, 2, 1);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answered(&q), 0);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(hot_n(&f, id), 0);
    fix_end(&f);
}

/* FE-03: an incremental fetch that names nothing is a long poll too. */
static void test_session_waits_and_wakes(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 4);
    const int32_t id = open_session(&f, t, 4);
    begin_session(&q, id, 1);
    q.request.max_wait_ms = 500;
    fix_fetch_start(&f, &q);
    fix_wait(&f, 400);
    CU_ASSERT_EQUAL(q.done, 0);
    CU_ASSERT_EQUAL(fix_append(&f, t, 3, 1), K_NONE);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answered(&q), 1);
    fix_fetch_close(&q);
    begin_session(&q, id, 2);
    fix_ask(&q, t, 3, 1);
    q.request.max_wait_ms = 500;
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_wait(&f, 500);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answered(&q), 0);
    CU_ASSERT_EQUAL(q.response.session_id, id);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_session_errors(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    const int32_t id = open_session(&f, t, 1);
    CU_ASSERT_EQUAL(go_on(&f, id, 2, &n), K_INVALID_FETCH_SESSION_EPOCH);
    CU_ASSERT_EQUAL(go_on(&f, id, -2, &n), K_INVALID_FETCH_SESSION_EPOCH);
    CU_ASSERT_EQUAL(go_on(&f, id ^ 1, 1, &n), K_FETCH_SESSION_ID_NOT_FOUND);
    begin_session(&q, id, 1);
    q.op.version = 12; /* by name */
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.response.error_code, K_FETCH_SESSION_TOPIC_ID_ERROR);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_NONE); /* none of these did it harm */
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_INVALID_FETCH_SESSION_EPOCH);
    begin_session(&q, id, -1); /* the last one closes it */
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.response.session_id, 0);
    CU_ASSERT_EQUAL(fix_answered(&q), 1);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, id, 2, &n), K_FETCH_SESSION_ID_NOT_FOUND);

    const int32_t second = open_session(&f, t, 1);
    begin_session(&q, second, 0); /* a new one in its place */
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT(q.response.session_id > 0 && q.response.session_id != second);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, second, 1, &n), K_FETCH_SESSION_ID_NOT_FOUND);
    fix_end(&f);
}

static void test_session_epoch_wraps(void)
{
    struct fix f = {0};
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    const int32_t id = open_session(&f, t, 1);
    for (int32_t epoch = 1; epoch < 4; epoch++)
        CU_ASSERT_EQUAL(go_on(&f, id, epoch, &n), K_NONE);
    struct session *ss = map_get(&f.rs->sessions.by_id, &id, sizeof id);
    ss->epoch = INT32_MAX;
    CU_ASSERT_EQUAL(go_on(&f, id, INT32_MAX, &n), K_NONE);
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_NONE);
    fix_end(&f);
}

static void test_session_forgets(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    const int32_t id = open_session(&f, t, 2);
    begin_session(&q, id, 1);
    fix_forget(&q, t, 0);
    fix_fetch_start(&f, &q);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(go_on(&f, id, 2, &n), K_NONE);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT(list_empty(&fix_find(&f, t, 0)->watchers));
    begin_session(&q, id, 3); /* the last partition goes: so does the session */
    fix_forget(&q, t, 1);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.response.session_id, 0);
    CU_ASSERT_EQUAL(q.response.error_code, K_NONE);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, id, 4, &n), K_FETCH_SESSION_ID_NOT_FOUND);
    fix_end(&f);
}

static void test_session_repeats_errors(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    const int32_t id = open_session(&f, t, 2);
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_NONE);
    for (int32_t epoch = 2; epoch < 4; epoch++) {
        begin_session(&q, id, epoch);
        q.request.max_wait_ms = 500;
        if (epoch == 2) /* one that we do not know yet */
            fix_ask(&q, t, 0, 0)->current_leader_epoch = 1;
        fix_fetch_start(&f, &q);
        CU_ASSERT_EQUAL_FATAL(q.done, 1);
        CU_ASSERT_EQUAL(fix_answered(&q), 1);
        CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_UNKNOWN_LEADER_EPOCH);
        fix_fetch_close(&q);
    }
    fix_change(&f, t, 0, 1, NULL, 0);
    fix_turn(&f);
    begin_session(&q, id, 4); /* well again: told once, though it has no bytes */
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answered(&q), 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NONE);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, id, 5, &n), K_NONE);
    CU_ASSERT_EQUAL(n, 0);
    fix_end(&f);
}

/* What was told in another leader epoch may have been dropped as too late (KAFKA-18991). */
static void test_session_tells_again_in_another_epoch(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    const int32_t id = open_session(&f, t, 2);
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_NONE);
    CU_ASSERT_EQUAL(n, 0);
    for (int32_t epoch = 2; epoch < 4; epoch++) {
        begin_session(&q, id, epoch);
        fix_ask(&q, t, 0, 0)->current_leader_epoch = 0;
        fix_fetch_start(&f, &q);
        CU_ASSERT_EQUAL(fix_answered(&q), epoch == 2);
        fix_fetch_close(&q);
    }
    fix_end(&f);
}

/* A topic that is deleted, and one of its name that comes back: by id they are two. */
static void test_session_topic_deleted(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    const int32_t id = open_session(&f, t, 1);
    begin_session(&q, id, 1);
    q.request.max_wait_ms = 500;
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_delete(&f, t);
    struct uuid again = fix_topic(&f, "t", 1);
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_UNKNOWN_TOPIC_ID);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(fix_append(&f, again, 0, 1), K_NONE);
    fix_end(&f);
}

/* What got bytes goes behind the others, so that a small answer starves nobody. */
static void test_session_is_fair(void)
{
    struct fix f = {0};
    int32_t epoch = 1, served[4] = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 4);
    for (int32_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, i, 1), K_NONE);
    const int32_t id = open_session(&f, t, 4);
    for (; epoch <= 8; epoch++) {
        struct fix_fetch q;
        begin_session(&q, id, epoch);
        q.request.max_bytes = 1;
        fix_fetch_start(&f, &q);
        for (int32_t i = 0; i < 4; i++) {
            const struct fetch_response_partition_data *a = fix_answer(&q, t, i);
            served[i] += a != NULL && a->records.n > 0;
        }
        CU_ASSERT_EQUAL(fix_answered(&q), 1);
        fix_fetch_close(&q);
    }
    for (int32_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(served[i], 2);
    fix_end(&f);
}

static void test_session_evictions(void)
{
    struct fix f = {0};
    int n;
    fix_prepare(&f);
    fix_set(&f, "max.incremental.fetch.session.cache.slots", "2");
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 3);
    const int32_t a = open_session(&f, t, 1), b = open_session(&f, t, 2);
    CU_ASSERT(a > 0 && b > 0);
    CU_ASSERT_EQUAL(open_session(&f, t, 3), 0); /* full: no session, which is no error */
    fix_wait(&f, 121000);
    CU_ASSERT_EQUAL(go_on(&f, a, 1, &n), K_NONE);
    CU_ASSERT_EQUAL(go_on(&f, b, 1, &n), K_NONE); /* both have lived long now */
    CU_ASSERT_EQUAL(open_session(&f, t, 1), 0);   /* not larger than the smallest */
    const int32_t c = open_session(&f, t, 3);
    CU_ASSERT(c > 0);
    CU_ASSERT_EQUAL(go_on(&f, a, 2, &n), K_FETCH_SESSION_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(go_on(&f, b, 2, &n), K_NONE);
    fix_wait(&f, 121000); /* both idle: the one used least recently goes, whatever its size */
    CU_ASSERT(open_session(&f, t, 1) > 0);
    CU_ASSERT_EQUAL(go_on(&f, c, 1, &n), K_FETCH_SESSION_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(go_on(&f, b, 3, &n), K_NONE);
    fix_end(&f);
}

/* A follower's takes the place of a client's, young as that may be. */
static void test_session_of_a_follower_evicts(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    int32_t two[] = {1, 2};
    fix_prepare(&f);
    fix_set(&f, "max.incremental.fetch.session.cache.slots", "1");
    fix_begin(&f);
    fix_broker(&f, 2, 200);
    struct uuid t = fix_topic_of(&f, "t", 2, two, 2);
    const int32_t a = open_session(&f, t, 2);
    begin_session(&q, 0, 0);
    q.request.replica_state.replica_id = 2;
    q.request.replica_state.replica_epoch = 200;
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    const int32_t id = q.response.session_id;
    CU_ASSERT(id > 0);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(go_on(&f, a, 1, &n), K_FETCH_SESSION_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(open_session(&f, t, 2), 0);
    for (int32_t epoch = 1; epoch < 4; epoch++) { /* names nothing, speaks for all it has */
        f.now.mono_us += 1000;
        begin_session(&q, id, epoch);
        q.request.replica_state.replica_id = 2;
        q.request.replica_state.replica_epoch = 200;
        fix_fetch_start(&f, &q);
        CU_ASSERT_EQUAL(fix_answered(&q), 0);
        fix_fetch_close(&q);
    }
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE); /* written down when it begins to matter */
    CU_ASSERT_EQUAL(partition_follower(fix_find(&f, t, 0), 2)->last_fetch_us, f.now.mono_us);
    fix_end(&f);
}

/* Its session is closed by another connection while a fetch waits on it. */
static void test_session_closed_under_a_waiting_fetch(void)
{
    struct fix f = {0};
    struct fix_fetch q, other;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    const int32_t id = open_session(&f, t, 2);
    begin_session(&q, id, 1);
    q.request.max_wait_ms = 500;
    fix_fetch_start(&f, &q);
    begin_session(&other, id, -1);
    fix_fetch_start(&f, &other);
    fix_fetch_close(&other);
    CU_ASSERT_EQUAL(q.done, 0);
    CU_ASSERT_EQUAL(fix_append(&f, t, 1, 1), K_NONE);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answered(&q), 1);
    fix_fetch_close(&q);
    CU_ASSERT(list_empty(&fix_find(&f, t, 1)->watchers));
    fix_end(&f);
}

static void test_session_without_memory(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    int n;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 4);
    const int32_t id = open_session(&f, t, 1);
    f.budget.limit_bytes = f.budget.used_bytes + 300;
    CU_ASSERT_EQUAL(open_session(&f, t, 4), 0);
    begin_session(&q, id, 1);
    for (int32_t i = 1; i < 4; i++)
        fix_ask(&q, t, i, 0);
    CU_ASSERT_EQUAL(replicas_fetch(f.rs, &q.op, f.now), ERR_NOMEM);
    fix_turn(&f);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_fetch_close(&q);
    f.budget.limit_bytes = (uint64_t)64 << 20;
    CU_ASSERT_EQUAL(go_on(&f, id, 1, &n), K_NONE);
    fix_end(&f);
}

TEST_MAIN(TEST(test_session_answers_only_news), TEST(test_session_waits_and_wakes),
          TEST(test_session_errors), TEST(test_session_epoch_wraps), TEST(test_session_forgets),
          TEST(test_session_repeats_errors), TEST(test_session_tells_again_in_another_epoch),
          TEST(test_session_topic_deleted), TEST(test_session_is_fair),
          TEST(test_session_evictions), TEST(test_session_of_a_follower_evicts),
          TEST(test_session_closed_under_a_waiting_fetch), TEST(test_session_without_memory))
