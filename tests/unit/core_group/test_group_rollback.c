/* A failed append leaves memory as it was, and what was built on it too; the next one works. */
#include "coordinator.h"

static struct co c;

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

static void test_rollback_of_a_commit(void)
{
    co_begin(&c);
    disk_is_full(true);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 0, true), -1);
    CU_ASSERT(!co_exists(&c, "g"));
    CU_ASSERT_EQUAL(c.gs->shards[0].groups.n, 0);
    disk_is_full(false);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 6), K_NONE);
    disk_is_full(true);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 7), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 7), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 0), K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_NOT_COORDINATOR);
    disk_is_full(false);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 0, true), 6);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    CU_ASSERT(co_exists(&c, "g"));
    co_end(&c);
}

/* Written in one turn, lost in one turn, newest first. */
static void test_rollback_of_what_was_built_on_it(void)
{
    struct co_commit a, b, again;
    struct co_delete d;
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 1), K_NONE);
    disk_is_full(true);
    co_commit_init(&a, "g");
    co_part(&c, &a, "t", 0, 2, "");
    co_commit_start(&c, &a);
    co_delete_start(&c, &d, "g");
    co_commit_init(&again, "g");
    co_part(&c, &again, "t", 1, 3, "");
    co_commit_start(&c, &again);
    co_commit_init(&b, "h");
    co_part(&c, &b, "t", 0, 4, "");
    co_commit_start(&c, &b);
    fix_turn(&c.f);
    disk_is_full(false);
    CU_ASSERT(a.done == 1 && b.done == 1 && d.done == 1 && again.done == 1);
    CU_ASSERT_EQUAL(a.parts[0].error, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(b.parts[0].error, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(d.op.error, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(again.parts[0].error, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 0, true), 1);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 1, true), -1);
    CU_ASSERT(!co_exists(&c, "h"));
    CU_ASSERT_EQUAL(c.gs->shards[0].groups.n, 1);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 8), K_NONE);
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 8);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    co_end(&c);
}

/* A stage that is full is written at once, and on a full disk cut at once: nothing is built on what
 * is about to be taken back. */
static void test_rollback_while_a_turn_goes_on(void)
{
    enum { N = 520 };
    static struct co_commit q[N];
    static char metadata[4097];
    int refused = 0;
    memset(metadata, 'm', sizeof metadata - 1);
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 1), K_NONE);
    disk_is_full(true);
    for (int i = 0; i < N; i++) {
        co_commit_init(&q[i], "g");
        co_part(&c, &q[i], "t", i % 4, 2, metadata);
        co_commit_start(&c, &q[i]);
    }
    fix_turn(&c.f);
    disk_is_full(false);
    for (int i = 0; i < N; i++) {
        CU_ASSERT(q[i].done == 1 && q[i].parts[0].error != K_NONE);
        refused += q[i].parts[0].error == K_COORDINATOR_NOT_AVAILABLE;
    }
    CU_ASSERT(refused > 0);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 0, true), 1);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 3), K_NONE);
    co_restart(&c);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 2);
    co_end(&c);
}

/* Too large for a batch of the topic: nothing of it stays. */
static void test_rollback_of_what_is_too_large(void)
{
    static char metadata[4000];
    struct co_commit q;
    co_begin(&c);
    fix_topic_config(&c.f, "__consumer_offsets", "max.message.bytes", "2000");
    memset(metadata, 'm', sizeof metadata - 1);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_part(&c, &q, "t", 1, 5, metadata);
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(q.parts[1].error, K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 0);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 6), K_NONE);
    co_end(&c);
}

static void test_rollback_error_table(void) /* groups.md 1 */
{
    static const int16_t table[][2] = {
        {K_UNKNOWN_TOPIC_OR_PARTITION, K_COORDINATOR_NOT_AVAILABLE},
        {K_NOT_ENOUGH_REPLICAS, K_COORDINATOR_NOT_AVAILABLE},
        {K_REQUEST_TIMED_OUT, K_COORDINATOR_NOT_AVAILABLE},
        {K_NOT_LEADER_OR_FOLLOWER, K_NOT_COORDINATOR},
        {K_KAFKA_STORAGE_ERROR, K_NOT_COORDINATOR},
        {K_MESSAGE_TOO_LARGE, K_UNKNOWN_SERVER_ERROR},
        {K_RECORD_LIST_TOO_LARGE, K_UNKNOWN_SERVER_ERROR},
        {K_INVALID_FETCH_SIZE, K_UNKNOWN_SERVER_ERROR},
        {K_NONE, K_NONE},
    };
    for (size_t i = 0; i < ARRAY_N(table); i++)
        CU_ASSERT_EQUAL(group_append_error(table[i][0]), table[i][1]);
}

/* ------------------------------------------------------------------ a story against a model */

enum { GROUPS = 4, PARTS = 4, OPS = 6, NONE = -1 };

struct model {
    bool exists[GROUPS];
    int64_t offset[GROUPS][PARTS];
};

static const char *const names[GROUPS] = {"g0", "g1", "g2", "g3"};

struct story {
    struct model m, next;
    struct rng rng;
    union {
        struct co_commit commit;
        struct co_delete del;
    } ops[OPS];
    bool is_delete[OPS], wants[OPS];
    int n;
};

static void begin_op(struct story *s)
{
    const int i = s->n++, g = (int)rng_below(&s->rng, GROUPS);
    struct model *m = &s->next;
    s->is_delete[i] = rng_below(&s->rng, 4) == 0;
    if (s->is_delete[i]) {
        co_delete_start(&c, &s->ops[i].del, names[g]);
        s->wants[i] = m->exists[g];
        m->exists[g] = false;
        for (int p = 0; p < PARTS; p++)
            m->offset[g][p] = NONE;
        return;
    }
    struct co_commit *q = &s->ops[i].commit;
    co_commit_init(q, names[g]);
    for (uint64_t k = rng_below(&s->rng, 3) + 1; k > 0; k--) {
        const int p = (int)rng_below(&s->rng, PARTS);
        const int64_t offset = (int64_t)rng_below(&s->rng, 1000);
        co_part(&c, q, "t", p, offset, offset % 3 == 0 ? "some metadata" : "");
        m->offset[g][p] = offset;
    }
    m->exists[g] = s->wants[i] = true;
    co_commit_start(&c, q);
}

static void check_op(const struct story *s, int i, bool full)
{
    int16_t error;
    if (s->is_delete[i]) {
        CU_ASSERT_EQUAL_FATAL(s->ops[i].del.done, 1);
        error = s->ops[i].del.op.error;
    } else {
        CU_ASSERT_EQUAL_FATAL(s->ops[i].commit.done, 1);
        error = s->ops[i].commit.parts[0].error;
    }
    if (!s->wants[i])
        CU_ASSERT_EQUAL(error, K_GROUP_ID_NOT_FOUND)
    else
        CU_ASSERT_EQUAL(error, full ? K_NOT_COORDINATOR : K_NONE)
}

static void check_state(const struct story *s)
{
    for (int g = 0; g < GROUPS; g++) {
        CU_ASSERT_EQUAL(co_exists(&c, names[g]), s->m.exists[g]);
        for (int p = 0; p < PARTS; p++) {
            CU_ASSERT_EQUAL(co_offset(&c, names[g], p), s->m.offset[g][p]);
            CU_ASSERT_EQUAL(co_fetch_as(&c, names[g], p, true), s->m.offset[g][p]);
        }
    }
}

static void turn(struct story *s)
{
    const bool full = rng_below(&s->rng, 3) == 0;
    s->n = 0;
    s->next = s->m;
    disk_is_full(full);
    for (uint64_t k = rng_below(&s->rng, OPS) + 1; k > 0; k--)
        begin_op(s);
    fix_turn(&c.f);
    disk_is_full(false);
    for (int i = 0; i < s->n; i++)
        check_op(s, i, full);
    if (!full)
        s->m = s->next;
    check_state(s);
}

static void test_rollback_story(void)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct story s = {.rng = {seed}};
        for (int g = 0; g < GROUPS; g++)
            for (int p = 0; p < PARTS; p++)
                s.m.offset[g][p] = NONE;
        co_begin(&c);
        for (int i = 0; i < 40; i++) {
            turn(&s);
            if (rng_below(&s.rng, 10) == 0) {
                co_restart(&c);
                co_turns(&c);
                check_state(&s);
            }
        }
        co_end(&c);
    }
}

TEST_MAIN(TEST(test_rollback_of_a_commit), TEST(test_rollback_of_what_was_built_on_it),
          TEST(test_rollback_while_a_turn_goes_on), TEST(test_rollback_of_what_is_too_large),
          TEST(test_rollback_error_table), TEST(test_rollback_story))
