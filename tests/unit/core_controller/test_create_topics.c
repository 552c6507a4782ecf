/* CreateTopics: every refusal, defaults, what is written and what is answered (AD-01, MD-04). */
#include "topics.h"

static void test_create_topics_names(void)
{
    struct fixture f;
    char name[251];
    topics_open(&f);
    memset(name, 'x', sizeof name);
    const struct {
        struct str name;
        int16_t error;
    } cases[] = {
        {STR_LIT("a b"), K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT("a/b"), K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT("abc!@#$"), K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT(""), K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT("."), K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT(".."), K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT("\xc3\xa4"), K_INVALID_TOPIC_EXCEPTION},
        {{name, 249}, K_NONE},
        {{name, 250}, K_INVALID_TOPIC_EXCEPTION},
        {STR_LIT("..."), K_NONE},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        struct creating c;
        struct create_topics_request_creatable_topic t = topic_of("", 1, 1);
        t.name = cases[i].name;
        CU_ASSERT_EQUAL(create_one(&f, &c, t), cases[i].error);
        CU_ASSERT_EQUAL(image_topic_named(&f.image, t.name) != NULL, cases[i].error == K_NONE);
        CU_ASSERT_EQUAL(c.resp.topics.v[0].error_message.n < 0, cases[i].error == K_NONE);
    }
    fixture_close(&f);
}

static void test_create_topics_exists_and_collides(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    CU_ASSERT_EQUAL(create_named(&f, "a.b"), K_NONE);
    CU_ASSERT_EQUAL(create_named(&f, "a.b"), K_TOPIC_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(create_named(&f, "a_b"), K_INVALID_TOPIC_EXCEPTION);
    CU_ASSERT_EQUAL(create_named(&f, "a-b"), K_NONE);
    creating_init(&c);
    creating_add(&c, topic_of("x.y", 1, 1));
    creating_add(&c, topic_of("x_y", 1, 1)); /* with one of the same request */
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[1].error_code, K_INVALID_TOPIC_EXCEPTION);
    controller_resign(f.controller);
    fixture_claim(&f); /* the index is made again */
    CU_ASSERT_EQUAL(create_named(&f, "a_b"), K_INVALID_TOPIC_EXCEPTION);
    fixture_close(&f);
}

static void test_create_topics_counts(void)
{
    struct fixture f;
    struct creating c;
    fixture_init(&f);
    fixture_set(&f, "num.partitions", "5");
    fixture_start(&f);
    fixture_claim(&f);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, 1)), K_INVALID_REPLICATION_FACTOR);
    fixture_broker(&f, 1, 1, -1);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 0, 1)), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", -2, 1)), K_INVALID_PARTITIONS);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, 0)), K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, -2)), K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, 3)), K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 1, INT16_MAX)), K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].num_partitions, -1);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].configs.n, 0);
    CU_ASSERT_FALSE(topic_exists(&f, "t"));
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", -1, -1)), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].num_partitions, 5);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].replication_factor, 1);
    CU_ASSERT_EQUAL(image_topic_named(&f.image, STR_LIT("t"))->partitions_n, 5);
    fixture_close(&f);
}

struct assigned {
    struct create_topics_request_creatable_replica_assignment v[4];
    struct create_topics_request_creatable_topic topic;
};

static void assign(struct assigned *a, int i, int32_t index, int32_t *brokers, int32_t n)
{
    a->topic.assignments.v = a->v;
    a->topic.assignments.n = i + 1;
    a->v[i].partition_index = index;
    a->v[i].broker_ids.v = brokers;
    a->v[i].broker_ids.n = n;
}

static void test_create_topics_assignments(void)
{
    struct fixture f;
    struct creating c;
    int64_t epoch;
    int32_t one[] = {1}, twice[] = {1, 1}, two[] = {2, 1}, unknown[] = {7}, fenced[] = {3};
    topics_open(&f);
    fixture_broker(&f, 2, 1, -1);
    struct broker_registration_request req = fixture_registration(&f, 3, 1);
    CU_ASSERT_EQUAL(fixture_register(&f, &req, &epoch), K_NONE); /* stays fenced */
    struct assigned a = {.topic = topic_of("t", -1, -1)};

    const struct {
        int32_t index, *brokers, n;
        int16_t error;
    } second[] = {
        {2, one, 1, K_INVALID_REPLICA_ASSIGNMENT}, /* a gap */
        {0, one, 1, K_INVALID_REPLICA_ASSIGNMENT}, /* twice */
        {-1, one, 1, K_INVALID_REPLICA_ASSIGNMENT},    {1, twice, 2, K_INVALID_REPLICA_ASSIGNMENT},
        {1, unknown, 1, K_INVALID_REPLICA_ASSIGNMENT}, {1, one, 0, K_INVALID_REPLICA_ASSIGNMENT},
        {1, two, 2, K_INVALID_REPLICA_ASSIGNMENT}, /* another replication factor */
        {1, fenced, 1, K_INVALID_REPLICA_ASSIGNMENT},
    };
    for (size_t i = 0; i < ARRAY_N(second); i++) {
        assign(&a, 0, 0, one, 1);
        assign(&a, 1, second[i].index, second[i].brokers, second[i].n);
        CU_ASSERT_EQUAL(create_one(&f, &c, a.topic), second[i].error);
    }
    assign(&a, 0, 0, one, 1);
    a.topic.num_partitions = 1;
    CU_ASSERT_EQUAL(create_one(&f, &c, a.topic), K_INVALID_REQUEST);
    a.topic.num_partitions = -1;
    a.topic.replication_factor = 1;
    CU_ASSERT_EQUAL(create_one(&f, &c, a.topic), K_INVALID_REQUEST);
    a.topic.replication_factor = -1;
    CU_ASSERT_FALSE(topic_exists(&f, "t"));

    int32_t three[] = {3, 2, 1};
    assign(&a, 0, 1, three, 3);
    assign(&a, 1, 0, three, 3);
    CU_ASSERT_EQUAL(create_one(&f, &c, a.topic), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].num_partitions, 2);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].replication_factor, 3);
    const struct image_partition *p = fixture_partition(&f, "t", 1);
    CU_ASSERT_EQUAL(p->replicas[0], 3);
    CU_ASSERT_EQUAL(p->leader, 2); /* 3 is fenced: not in the ISR */
    CU_ASSERT_EQUAL(p->isr_n, 2);
    CU_ASSERT_EQUAL(p->leader_epoch, 0);
    CU_ASSERT_EQUAL(p->partition_epoch, 0);
    CU_ASSERT_EQUAL(p->directories[0].b[0], 3);
    CU_ASSERT_EQUAL(p->directories[0].b[1], 7);
    fixture_close(&f);
}

static void test_create_topics_configs(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    struct create_topics_request_creatable_topic_config configs[3];
    struct create_topics_request_creatable_topic t = topic_of("t", 1, 1);
    t.configs.v = configs;
    t.configs.n = 1;
    static const struct {
        const char *key, *value;
    } bad[] = {{"nope", "1"},        {"segment.ms", "x"},          {"cleanup.policy", "zip"},
               {"segment.ms", NULL}, {"min.insync.replicas", "0"}, {"nope", NULL}};
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        configs[0].name = str_of(bad[i].key);
        configs[0].value = str_of(bad[i].value);
        CU_ASSERT_EQUAL(create_one(&f, &c, t), K_INVALID_CONFIG);
        CU_ASSERT(c.resp.topics.v[0].error_message.n > 0);
    }
    CU_ASSERT_FALSE(topic_exists(&f, "t"));
    configs[0].name = configs[2].name = STR_LIT("segment.ms");
    configs[0].value = STR_LIT("1000");
    configs[1].name = STR_LIT("min.insync.replicas");
    configs[1].value = STR_LIT("2");
    configs[2].value = STR_LIT("2000"); /* the last one counts */
    t.configs.n = 3;
    const size_t before = f.raft.records.n;
    CU_ASSERT_EQUAL(create_one(&f, &c, t), K_NONE);
    static const int16_t types[] = {RECORD_TOPIC, RECORD_CONFIG, RECORD_CONFIG, RECORD_CLEAR_ELR,
                                    RECORD_PARTITION};
    CU_ASSERT_EQUAL_FATAL(f.raft.records.n - before, ARRAY_N(types));
    for (size_t i = 0; i < ARRAY_N(types); i++) {
        int16_t type, version;
        CU_ASSERT_EQUAL(record_peek(record_list_get(&f.raft.records, before + i), &type, &version),
                        ERR_NONE);
        CU_ASSERT_EQUAL(type, types[i]);
        CU_ASSERT_EQUAL(version, type == RECORD_PARTITION ? 2 : 0);
    }
    CU_ASSERT_STRING_EQUAL(
        image_config_value(&f.image, CONFIG_RESOURCE_TOPIC, STR_LIT("t"), STR_LIT("segment.ms")),
        "2000");
    fixture_close(&f);
}

static const struct create_topics_response_creatable_topic_configs *
described(const struct creating *c, const char *key)
{
    for (int32_t i = 0; i < c->resp.topics.v[0].configs.n; i++)
        if (str_eq(c->resp.topics.v[0].configs.v[i].name, str_of(key)))
            return &c->resp.topics.v[0].configs.v[i];
    CU_FAIL_FATAL("no such key");
    return NULL;
}

/* As KIP-525 tells them, with Kafka's sources. */
static void test_create_topics_describes_configs(void)
{
    struct fixture f;
    struct creating c;
    fixture_init(&f);
    fixture_set(&f, "log.retention.hours", "2");
    fixture_set(&f, "log.segment.bytes", "2097152");
    fixture_start(&f);
    fixture_claim(&f);
    fixture_broker(&f, 1, 1, -1);
    struct create_topics_request_creatable_topic_config own = {STR_LIT("segment.ms"),
                                                               STR_LIT("77")};
    struct create_topics_request_creatable_topic t = topic_of("t", 1, 1);
    t.configs.v = &own;
    t.configs.n = 1;
    CU_ASSERT_EQUAL(create_one(&f, &c, t), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].configs.n, 37);
    static const struct {
        const char *key, *value;
        int8_t source;
    } expected[] = {
        {"segment.ms", "77", 1},         {"min.insync.replicas", "1", 3},
        {"retention.ms", "7200000", 4},  {"segment.bytes", "2097152", 4},
        {"cleanup.policy", "delete", 5}, {"follower.replication.throttled.replicas", "", 5},
    };
    for (size_t i = 0; i < ARRAY_N(expected); i++) {
        const struct create_topics_response_creatable_topic_configs *d =
            described(&c, expected[i].key);
        CU_ASSERT_TRUE(str_eq(d->value, str_of(expected[i].value)));
        CU_ASSERT_EQUAL(d->config_source, expected[i].source);
        CU_ASSERT_FALSE(d->read_only);
        CU_ASSERT_FALSE(d->is_sensitive);
    }
    c.version = 4; /* not asked for */
    c.topics[0] = topic_of("u", 1, 1);
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].configs.n, 0);
    fixture_close(&f);
}

static void test_create_topics_each_alone(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    creating_init(&c);
    creating_add(&c, topic_of("dup", 1, 1));
    creating_add(&c, topic_of("bad name", 1, 1));
    creating_add(&c, topic_of("dup", 2, 1));
    creating_add(&c, topic_of("good", 1, 1));
    creating_add(&c, topic_of("rf", 1, 3));
    creating_add(&c, topic_of("dup", 2, 1));
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_EQUAL_FATAL(c.resp.topics.n, 4); /* one answer for the three */
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_INVALID_TOPIC_EXCEPTION);
    CU_ASSERT_EQUAL(c.resp.topics.v[1].error_code, K_NONE);
    CU_ASSERT_FALSE(uuid_is_zero(c.resp.topics.v[1].topic_id));
    CU_ASSERT_EQUAL(c.resp.topics.v[2].error_code, K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_EQUAL(c.resp.topics.v[3].error_code, K_INVALID_REQUEST);
    CU_ASSERT_TRUE(str_eq(c.resp.topics.v[3].name, STR_LIT("dup")));
    CU_ASSERT_TRUE(topic_exists(&f, "good"));
    CU_ASSERT_FALSE(topic_exists(&f, "dup"));
    fixture_close(&f);
}

static void test_create_topics_validate_only(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    const size_t before = f.raft.records.n;
    creating_init(&c);
    c.req.validate_only = true;
    creating_add(&c, topic_of("v", 3, 1));
    creating_add(&c, topic_of("w", 1, 3));
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].num_partitions, 3);
    CU_ASSERT_EQUAL(c.resp.topics.v[1].error_code, K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT_EQUAL(f.raft.records.n, before);
    CU_ASSERT_EQUAL(create_named(&f, "v"), K_NONE);
    fixture_close(&f);
}

static void test_create_topics_limits(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    creating_init(&c);
    creating_add(&c, topic_of("big", 10001, 1));
    creating_add(&c, topic_of("small", 1, 1));
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_POLICY_VIOLATION);
    CU_ASSERT_EQUAL(c.resp.topics.v[1].error_code, K_POLICY_VIOLATION);
    const struct str too_many = c.resp.topics.v[0].error_message;
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("big", 10000, 1)),
                    K_POLICY_VIOLATION); /* with its TopicRecord 10,001 records */
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("big", INT32_MAX, 1)), K_POLICY_VIOLATION);
    creating_init(&c);
    creating_add(&c, topic_of("big", 10001, 1));
    creating_add(&c, topic_of("less", -10001, 1)); /* takes nothing off */
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_POLICY_VIOLATION);
    CU_ASSERT(str_eq(c.resp.topics.v[0].error_message, too_many)); /* before anything is planned */
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("big", 9999, 1)), K_NONE);
    CU_ASSERT_EQUAL(f.image.partitions_n, 9999);
    fixture_close(&f);
}

/* Leaders go round the brokers; replicas of a partition are on different racks where there are. */
static void test_create_topics_placement(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    controller_resign(f.controller);
    for (int32_t id = 11; id < 17; id++) { /* two brokers on each of three racks */
        struct register_broker_record r;
        char rack[8];
        snprintf(rack, sizeof rack, "r%d", (id - 11) / 2);
        wire_default(&wire_register_broker_record, &r);
        r.broker_id = id;
        r.rack = str_of(rack);
        r.fenced = false;
        CU_ASSERT_EQUAL_FATAL(record_list_add(&f.raft.records, &msg_register_broker_record, 4, &r),
                              ERR_NONE);
    }
    fixture_commit(&f);
    fixture_claim(&f);
    fixture_pass(&f, 1);
    struct fence_broker_record gone = {1, image_broker(&f.image, 1)->epoch};
    CU_ASSERT_EQUAL_FATAL(record_list_add(&f.raft.records, &msg_fence_broker_record, 0, &gone),
                          ERR_NONE);
    fixture_commit(&f);
    controller_resign(f.controller);
    fixture_claim(&f);

    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("t", 60, 3)), K_NONE);
    int leads[17] = {0}, holds[17] = {0};
    for (int32_t i = 0; i < 60; i++) {
        const struct image_partition *p = fixture_partition(&f, "t", i);
        CU_ASSERT_EQUAL_FATAL(p->replicas_n, 3);
        CU_ASSERT_EQUAL(p->isr_n, 3); /* none is fenced */
        leads[p->leader]++;
        unsigned racks = 0;
        for (int j = 0; j < 3; j++) {
            racks |= 1u << (p->replicas[j] - 11) / 2;
            holds[p->replicas[j]]++;
        }
        CU_ASSERT_EQUAL(racks, 7);
    }
    for (int id = 11; id < 17; id++) {
        CU_ASSERT_EQUAL(leads[id], 10);
        CU_ASSERT(holds[id] >= 20 && holds[id] <= 40);
    }
    /* more replicas than active brokers: the fenced one comes last and is not in the ISR */
    CU_ASSERT_EQUAL(create_one(&f, &c, topic_of("u", 4, 7)), K_NONE);
    for (int32_t i = 0; i < 4; i++) {
        const struct image_partition *p = fixture_partition(&f, "u", i);
        CU_ASSERT_EQUAL(p->replicas[6], 1);
        CU_ASSERT_EQUAL(p->isr_n, 6);
    }
    fixture_close(&f);
}

/* Reserved ids and those that look like an option are never given. */
static void test_create_topics_ids(void)
{
    struct fixture f;
    struct creating c;
    topics_open(&f);
    for (int i = 0; i < 300; i++) {
        char name[16], text[UUID_TEXT_N + 1];
        snprintf(name, sizeof name, "t%d", i);
        CU_ASSERT_EQUAL(create_one(&f, &c, topic_of(name, 1, 1)), K_NONE);
        uuid_print(c.resp.topics.v[0].topic_id, text);
        CU_ASSERT(text[0] != '-');
        CU_ASSERT_EQUAL(c.resp.topics.v[0].topic_id.b[6] >> 4, 4);
    }
    CU_ASSERT_EQUAL(f.image.topics_by_id.n, 300);
    fixture_close(&f);
}

TEST_MAIN(TEST(test_create_topics_names), TEST(test_create_topics_exists_and_collides),
          TEST(test_create_topics_counts), TEST(test_create_topics_assignments),
          TEST(test_create_topics_configs), TEST(test_create_topics_describes_configs),
          TEST(test_create_topics_each_alone), TEST(test_create_topics_validate_only),
          TEST(test_create_topics_limits), TEST(test_create_topics_placement),
          TEST(test_create_topics_ids))
