/* CreatePartitions: every refusal, what is written, what is answered. */
#include "core/controller/inside.h"
#include "topics.h"

/* The error of the only topic. */
static int16_t grow_one(struct fixture *f, struct growing *g)
{
    CU_ASSERT_EQUAL(growing_run(f, g), K_NONE);
    CU_ASSERT_EQUAL_FATAL(g->resp.results.n, 1);
    CU_ASSERT(str_eq(g->resp.results.v[0].name, g->topics[0].name));
    return g->resp.results.v[0].error_code;
}

static int16_t grow_to(struct fixture *f, const char *name, int32_t count)
{
    struct growing g;
    growing_init(&g);
    growing_add(&g, name, count);
    return grow_one(f, &g);
}

static int32_t partitions_of(struct fixture *f, const char *name)
{
    return image_topic_named(&f->image, str_of(name))->partitions_n;
}

static void test_create_partitions_counts(void)
{
    struct fixture f;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "t"), K_NONE);
    CU_ASSERT_EQUAL(grow_to(&f, "t", 3), K_NONE);
    CU_ASSERT_EQUAL(partitions_of(&f, "t"), 3);
    CU_ASSERT_EQUAL(grow_to(&f, "t", 3), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(grow_to(&f, "t", 2), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(grow_to(&f, "t", 0), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(grow_to(&f, "t", -1), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(grow_to(&f, "t", INT32_MIN), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(grow_to(&f, "none", 2), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(grow_to(&f, "", 2), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(partitions_of(&f, "t"), 3);
    fixture_close(&f);
}

/* Led at once, in the directory of its broker, as the first one. */
static void test_create_partitions_records(void)
{
    struct fixture f;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "t"), K_NONE);
    CU_ASSERT_EQUAL(grow_to(&f, "t", 2), K_NONE);
    const struct image_partition *p = fixture_partition(&f, "t", 1);
    CU_ASSERT_EQUAL_FATAL(p->replicas_n, 1);
    CU_ASSERT(p->replicas[0] == 1 && p->isr_n == 1 && p->isr[0] == 1 && p->leader == 1);
    CU_ASSERT(p->leader_epoch == 0 && p->partition_epoch == 0 && p->elr_n == 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->directories);
    CU_ASSERT_EQUAL(p->directories[0].b[1], 7);
    CU_ASSERT_EQUAL(f.raft.records.n - f.raft.committed_n, 0);
    fixture_close(&f);
}

/* Its first partition says how many replicas; the brokers take turns. */
static void test_create_partitions_are_placed(void)
{
    struct fixture f;
    struct creating c;
    int leads[3] = {0};
    topics_open(&f);
    fixture_broker(&f, 2, 1, -1);
    fixture_broker(&f, 3, 1, -1);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, 2)), K_NONE);
    CU_ASSERT_EQUAL(grow_to(&f, "t", 7), K_NONE);
    for (int32_t i = 1; i < 7; i++) {
        const struct image_partition *p = fixture_partition(&f, "t", i);
        CU_ASSERT_EQUAL_FATAL(p->replicas_n, 2);
        CU_ASSERT(p->replicas[0] != p->replicas[1] && p->leader == p->replicas[0]);
        leads[p->leader - 1]++;
    }
    CU_ASSERT(leads[0] == 2 && leads[1] == 2 && leads[2] == 2);
    fixture_close(&f);
}

static void test_create_partitions_assignments(void)
{
    struct fixture f;
    struct creating c;
    struct growing g;
    int64_t epoch;
    int32_t one[] = {1}, pair[] = {2, 1}, twice[] = {1, 1}, unknown[] = {1, 7}, fenced[] = {3, 4};
    struct create_partitions_request_create_partitions_assignment v[2];
    topics_open(&f);
    fixture_broker(&f, 2, 1, -1);
    for (int32_t id = 3; id <= 4; id++) {
        struct broker_registration_request req = fixture_registration(&f, id, 1);
        CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_NONE); /* stays fenced */
    }
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, 2)), K_NONE);
    const struct {
        int32_t count, *first, first_n, *second, second_n;
        int32_t n; /* assignments */
    } refused[] = {
        {3, NULL, 0, NULL, 0, 0},    {3, pair, 2, NULL, 0, 1},    {2, pair, 2, pair, 2, 2},
        {3, pair, 2, NULL, 0, 2},    {3, pair, 2, one, 1, 2},     {3, one, 1, one, 1, 2},
        {3, pair, 2, twice, 2, 2},   {3, pair, 2, unknown, 2, 2}, {3, fenced, 2, pair, 2, 2},
        {3, unknown, 2, pair, 2, 2},
    };
    for (size_t i = 0; i < ARRAY_N(refused); i++) {
        growing_init(&g);
        struct create_partitions_request_create_partitions_topic *t =
            growing_add(&g, "t", refused[i].count);
        v[0].broker_ids.v = refused[i].first;
        v[0].broker_ids.n = refused[i].first_n;
        v[1].broker_ids.v = refused[i].second;
        v[1].broker_ids.n = refused[i].second_n;
        t->assignments.v = v;
        t->assignments.n = refused[i].n;
        CU_ASSERT_EQUAL(grow_one(&f, &g), K_INVALID_REPLICA_ASSIGNMENT);
        CU_ASSERT(g.resp.results.v[0].error_message.n > 0);
    }
    CU_ASSERT_EQUAL(partitions_of(&f, "t"), 1);
    growing_init(&g);
    struct create_partitions_request_create_partitions_topic *t = growing_add(&g, "t", 2);
    v[0].broker_ids.v = pair;
    v[0].broker_ids.n = 2;
    t->assignments.v = v;
    t->assignments.n = 1;
    CU_ASSERT_EQUAL(grow_one(&f, &g), K_NONE);
    CU_ASSERT_EQUAL(fixture_partition(&f, "t", 1)->leader, 2);
    fixture_close(&f);
}

static void test_create_partitions_each_alone(void)
{
    struct fixture f;
    struct growing g;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "a"), K_NONE);
    CU_ASSERT_EQUAL(create_named(&f, "b"), K_NONE);
    growing_init(&g);
    growing_add(&g, "b", 3);
    growing_add(&g, "a", 2);
    growing_add(&g, "none", 2);
    growing_add(&g, "b", 4); /* twice: neither */
    growing_add(&g, "b", 5);
    CU_ASSERT_EQUAL(growing_run(&f, &g), K_NONE);
    CU_ASSERT_EQUAL_FATAL(g.resp.results.n, 3);
    CU_ASSERT_EQUAL(g.resp.results.v[0].error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(g.resp.results.v[1].error_code, K_NONE);
    CU_ASSERT(g.resp.results.v[1].error_message.n < 0);
    CU_ASSERT_EQUAL(g.resp.results.v[2].error_code, K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT(partitions_of(&f, "a") == 2 && partitions_of(&f, "b") == 1);

    growing_init(&g);
    g.refused = true;
    growing_add(&g, "a", 3);
    CU_ASSERT_EQUAL(grow_one(&f, &g), K_TOPIC_AUTHORIZATION_FAILED);
    growing_init(&g);
    CU_ASSERT_EQUAL(growing_run(&f, &g), K_NONE);
    CU_ASSERT_EQUAL(g.resp.results.n, 0);
    fixture_close(&f);
}

static void test_create_partitions_validate_only(void)
{
    struct fixture f;
    struct growing g;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "t"), K_NONE);
    const int appends = f.raft.appends;
    growing_init(&g);
    g.req.validate_only = true;
    growing_add(&g, "t", 5);
    CU_ASSERT_EQUAL(grow_one(&f, &g), K_NONE);
    g.topics[0].count = 1;
    CU_ASSERT_EQUAL(grow_one(&f, &g), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(f.raft.appends, appends);
    CU_ASSERT_EQUAL(partitions_of(&f, "t"), 1);
    fixture_close(&f);
}

static void test_create_partitions_without_time(void)
{
    struct fixture f;
    struct growing g;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "t"), K_NONE);
    growing_init(&g);
    g.req.timeout_ms = 0;
    growing_add(&g, "u", 5);
    growing_add(&g, "u", 6);
    CU_ASSERT_EQUAL(grow_one(&f, &g), K_INVALID_REQUEST);
    growing_add(&g, "t", 5);
    CU_ASSERT_EQUAL(growing_run(&f, &g), K_NONE);
    CU_ASSERT_EQUAL_FATAL(g.resp.results.n, 3);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(g.resp.results.v[i].error_code, K_REQUEST_TIMED_OUT);
    CU_ASSERT_EQUAL(partitions_of(&f, "t"), 1);
    fixture_close(&f);
}

static void test_create_partitions_limits(void)
{
    struct fixture f;
    struct growing g;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "a"), K_NONE);
    CU_ASSERT_EQUAL(create_named(&f, "b"), K_NONE);
    CU_ASSERT_EQUAL(grow_to(&f, "a", 10002), K_POLICY_VIOLATION);
    CU_ASSERT_EQUAL(grow_to(&f, "a", INT32_MAX), K_POLICY_VIOLATION);
    growing_init(&g);
    growing_add(&g, "a", 5001);
    growing_add(&g, "b", 5002);
    growing_add(&g, "none", 10000);
    CU_ASSERT_EQUAL(growing_run(&f, &g), K_NONE);
    for (int32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(g.resp.results.v[i].error_code, K_POLICY_VIOLATION);
    growing_init(&g);
    growing_add(&g, "a", 10002);
    growing_add(&g, "b", INT32_MIN); /* takes nothing off */
    CU_ASSERT_EQUAL(growing_run(&f, &g), K_NONE);
    CU_ASSERT_EQUAL(g.resp.results.v[0].error_code, K_POLICY_VIOLATION);
    CU_ASSERT_EQUAL(partitions_of(&f, "a"), 1);
    CU_ASSERT_EQUAL(grow_to(&f, "a", 10001), K_NONE);
    CU_ASSERT_EQUAL(partitions_of(&f, "a"), 10001);
    fixture_close(&f);
}

/* What the image could not hold is refused before it is written. */
static void test_create_partitions_of_a_full_topic(void)
{
    struct fixture f;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "t"), K_NONE);
    struct image_topic *t = image_topic_named(&f.controller->ahead, STR_LIT("t"));
    struct image_partition *few = t->partitions;
    struct image_partition *many = calloc(IMAGE_PARTITIONS_MAX, sizeof *many);
    many[0] = few[0];
    t->partitions = many;
    t->partitions_n = IMAGE_PARTITIONS_MAX;
    CU_ASSERT_EQUAL(grow_to(&f, "t", IMAGE_PARTITIONS_MAX + 1), K_INVALID_PARTITIONS);
    t->partitions = few;
    t->partitions_n = 1;
    free(many);
    fixture_close(&f);
}

TEST_MAIN(TEST(test_create_partitions_counts), TEST(test_create_partitions_records),
          TEST(test_create_partitions_are_placed), TEST(test_create_partitions_assignments),
          TEST(test_create_partitions_each_alone), TEST(test_create_partitions_validate_only),
          TEST(test_create_partitions_without_time), TEST(test_create_partitions_limits),
          TEST(test_create_partitions_of_a_full_topic))
