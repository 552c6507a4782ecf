/* AlterConfigs and IncrementalAlterConfigs at the controller. */
#include "support/fault.h"
#include "topics.h"

enum { SET, DELETE, APPEND, SUBTRACT };

struct altering {
    struct config_op ops[16];
    struct config_change changes[4];
    int32_t n, ops_n;
};

static struct config_change *change(struct altering *a, int8_t type, const char *name)
{
    struct config_change *c = &a->changes[a->n++];
    *c = (struct config_change){
        .type = type, .name = str_of(name), .ops = &a->ops[a->ops_n], .message = STR_NULL};
    return c;
}

static void op(struct altering *a, struct config_change *c, const char *name, int8_t operation,
               const char *value)
{
    a->ops[a->ops_n++] = (struct config_op){str_of(name), operation, str_of(value)};
    c->ops_n++;
}

static int16_t run(struct fixture *f, struct altering *a, bool validate_only)
{
    struct test_op t = test_op_new();
    controller_alter_configs(f->controller, &t.op, a->changes, a->n, validate_only, &f->arena,
                             f->now);
    return test_op_wait(f, &t);
}

/* One operation alone; the resource's error. */
static int16_t alter(struct fixture *f, int8_t type, const char *name, const char *key,
                     int8_t operation, const char *value)
{
    struct altering a = {.n = 0};
    struct config_change *c = change(&a, type, name);
    op(&a, c, key, operation, value);
    CU_ASSERT_EQUAL(run(f, &a, false), K_NONE);
    CU_ASSERT_EQUAL(c->settled, c->error != K_NONE);
    CU_ASSERT_EQUAL(c->message.n >= 0, c->error != K_NONE);
    return c->error;
}

static int16_t topic_key(struct fixture *f, const char *key, int8_t operation, const char *value)
{
    return alter(f, CONFIG_RESOURCE_TOPIC, "t", key, operation, value);
}

static const char *value_of(struct fixture *f, int8_t type, const char *name, const char *key)
{
    const char *text = image_config_value(&f->image, type, str_of(name), str_of(key));
    return text == NULL ? "(not set)" : text;
}

static const char *topic_value_of(struct fixture *f, const char *key)
{
    return value_of(f, CONFIG_RESOURCE_TOPIC, "t", key);
}

static void open_topic(struct fixture *f)
{
    topics_open(f);
    CU_ASSERT_EQUAL_FATAL(create_named(f, "t"), K_NONE);
}

static void test_alter_topic_values(void)
{
    struct fixture f;
    open_topic(&f);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", SET, " 12 "), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "retention.ms"), " 12 ");
    const int appends = f.raft.appends;
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", SET, " 12 "), K_NONE); /* nothing to write */
    CU_ASSERT_EQUAL(topic_key(&f, "segment.ms", DELETE, NULL), K_NONE);
    CU_ASSERT_EQUAL(topic_key(&f, "no.such.key", DELETE, NULL), K_NONE);
    CU_ASSERT_EQUAL(f.raft.appends, appends);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", DELETE, "ignored"), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "retention.ms"), "(not set)");
    CU_ASSERT_PTR_NULL(image_config(&f.image, CONFIG_RESOURCE_TOPIC, STR_LIT("t")));
    fixture_close(&f);
}

static void test_alter_refuses_bad_topic_values(void)
{
    struct fixture f;
    open_topic(&f);
    const int appends = f.raft.appends;
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", SET, "x"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", SET, ""), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", SET, "-2"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "no.such.key", SET, "1"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "log.retention.ms", SET, "1"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "remote.storage.enable", SET, "true"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", APPEND, "1"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "no.such.key", SUBTRACT, "1"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", 9, "1"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alter(&f, 2, "nope", "retention.ms", SET, "1"), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(alter(&f, 2, "a/b", "retention.ms", SET, "1"), K_INVALID_TOPIC_EXCEPTION);
    CU_ASSERT_EQUAL(alter(&f, 2, "", "retention.ms", SET, "1"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alter(&f, 8, "1", "root", SET, "INFO"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alter(&f, 99, "t", "retention.ms", SET, "1"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(f.raft.appends, appends);
    fixture_close(&f);
}

/* Each resource alone: one that is refused changes nothing, the others do. */
static void test_alter_each_resource_alone(void)
{
    struct fixture f;
    struct altering a = {.n = 0};
    open_topic(&f);
    CU_ASSERT_EQUAL(create_named(&f, "u"), K_NONE);
    struct config_change *bad = change(&a, CONFIG_RESOURCE_TOPIC, "t");
    op(&a, bad, "segment.ms", SET, "5");
    op(&a, bad, "min.compaction.lag.ms", SET, "7");
    op(&a, bad, "max.compaction.lag.ms", SET, "6");
    struct config_change *good = change(&a, CONFIG_RESOURCE_TOPIC, "u");
    op(&a, good, "segment.ms", SET, "5");
    struct config_change *settled = change(&a, CONFIG_RESOURCE_TOPIC, "t");
    op(&a, settled, "segment.ms", SET, "6");
    settled->settled = true;
    settled->error = K_INVALID_REQUEST;
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NONE);
    CU_ASSERT_EQUAL(bad->error, K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(good->error, K_NONE);
    CU_ASSERT_EQUAL(settled->error, K_INVALID_REQUEST);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "segment.ms"), "(not set)");
    CU_ASSERT_STRING_EQUAL(value_of(&f, CONFIG_RESOURCE_TOPIC, "u", "segment.ms"), "5");
    CU_ASSERT_EQUAL(topic_key(&f, "max.compaction.lag.ms", SET, "6"), K_NONE);
    CU_ASSERT_EQUAL(topic_key(&f, "min.compaction.lag.ms", SET, "7"), K_INVALID_CONFIG);
    fixture_close(&f);
}

static void test_alter_validate_only(void)
{
    struct fixture f;
    struct altering a = {.n = 0};
    open_topic(&f);
    const int appends = f.raft.appends;
    struct config_change *good = change(&a, CONFIG_RESOURCE_TOPIC, "t");
    op(&a, good, "segment.ms", SET, "5");
    struct config_change *bad = change(&a, CONFIG_RESOURCE_GROUP, "");
    CU_ASSERT_EQUAL(run(&f, &a, true), K_NONE);
    CU_ASSERT_EQUAL(good->error, K_NONE);
    CU_ASSERT_EQUAL(bad->error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(f.raft.appends, appends);
    fixture_close(&f);
}

static void test_alter_lists(void)
{
    struct fixture f;
    open_topic(&f);
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", APPEND, "compact"), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "cleanup.policy"), "delete,compact");
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", APPEND, " delete , compact "), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "cleanup.policy"), "delete,compact");
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", APPEND, "burn"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", SUBTRACT, "burn,delete"), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "cleanup.policy"), "compact");
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", SUBTRACT, "compact"), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "cleanup.policy"), "");
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", DELETE, NULL), K_NONE);
    CU_ASSERT_EQUAL(topic_key(&f, "cleanup.policy", SUBTRACT, "delete"), K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "cleanup.policy"), "");
    CU_ASSERT_EQUAL(alter(&f, CONFIG_RESOURCE_BROKER, "", "config.providers", APPEND, "a,b,a"),
                    K_NONE);
    CU_ASSERT_STRING_EQUAL(value_of(&f, CONFIG_RESOURCE_BROKER, "", "config.providers"), "a,b");
    /* of groups no key is one (as in Kafka) */
    CU_ASSERT_EQUAL(
        alter(&f, CONFIG_RESOURCE_GROUP, "g", "streams.rack.aware.assignment.tags", APPEND, "a"),
        K_INVALID_CONFIG);
    fixture_close(&f);
}

/* A string of the protocol has 32767 bytes at most. */
static void test_alter_list_that_grows_too_long(void)
{
    struct fixture f;
    static char items[30000];
    open_topic(&f);
    memset(items, 'x', sizeof items - 1);
    CU_ASSERT_EQUAL(alter(&f, CONFIG_RESOURCE_BROKER, "", "config.providers", SET, items), K_NONE);
    items[0] = 'y';
    CU_ASSERT_EQUAL(alter(&f, CONFIG_RESOURCE_BROKER, "", "config.providers", APPEND, items),
                    K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(strlen(value_of(&f, CONFIG_RESOURCE_BROKER, "", "config.providers")),
                    sizeof items - 1);
    fixture_close(&f);
}

static void test_alter_replaces(void)
{
    struct fixture f;
    open_topic(&f);
    CU_ASSERT_EQUAL(topic_key(&f, "segment.ms", SET, "5"), K_NONE);
    CU_ASSERT_EQUAL(topic_key(&f, "retention.ms", SET, "6"), K_NONE);
    struct altering a = {.n = 0};
    struct config_change *c = change(&a, CONFIG_RESOURCE_TOPIC, "t");
    c->replace = true;
    op(&a, c, "retention.ms", SET, "6");
    op(&a, c, "flush.ms", SET, "7");
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NONE);
    CU_ASSERT_EQUAL(c->error, K_NONE);
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "segment.ms"), "(not set)");
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "retention.ms"), "6");
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "flush.ms"), "7");
    a.n = a.ops_n = 0;
    c = change(&a, CONFIG_RESOURCE_TOPIC, "t");
    c->replace = true;
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NONE);
    CU_ASSERT_PTR_NULL(image_config(&f.image, CONFIG_RESOURCE_TOPIC, STR_LIT("t")));
    fixture_close(&f);
}

/* Its own values count in what is checked together only as far as they stay. */
static void test_alter_replaces_before_it_checks(void)
{
    struct fixture f;
    open_topic(&f);
    CU_ASSERT_EQUAL(topic_key(&f, "max.compaction.lag.ms", SET, "6"), K_NONE);
    struct altering a = {.n = 0};
    struct config_change *c = change(&a, CONFIG_RESOURCE_TOPIC, "t");
    c->replace = true;
    op(&a, c, "min.compaction.lag.ms", SET, "7");
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NONE);
    CU_ASSERT_EQUAL(c->error, K_NONE);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ brokers */

static void test_alter_brokers(void)
{
    struct fixture f;
    open_topic(&f);
    CU_ASSERT_EQUAL(alter(&f, 4, "1", "log.segment.bytes", SET, "5000000"), K_NONE);
    CU_ASSERT_EQUAL(alter(&f, 4, "", "log.segment.bytes", SET, "6000000"), K_NONE);
    CU_ASSERT_EQUAL(alter(&f, 4, "2", "log.segment.bytes", SET, "1"), K_BROKER_ID_NOT_REGISTERED);
    CU_ASSERT_EQUAL(alter(&f, 4, "99999999999", "a", SET, "1"), K_BROKER_ID_NOT_REGISTERED);
    CU_ASSERT_EQUAL(alter(&f, 4, "x", "log.segment.bytes", SET, "1"), K_INVALID_REQUEST);
    /* what the values are is the broker's to judge, which may be a later Kafka */
    CU_ASSERT_EQUAL(alter(&f, 4, "1", "key.of.a.later.kafka", SET, "1"), K_NONE);
    const int appends = f.raft.appends;
    CU_ASSERT_EQUAL(alter(&f, 4, "1", "log.segment.bytes", SET, "5000000"), K_NONE);
    CU_ASSERT_EQUAL(f.raft.appends, appends + 1); /* told again (KAFKA-14136) */
    fixture_close(&f);
}

static const char *described(const struct creating *c, const char *key, int8_t *source)
{
    for (int32_t i = 0; i < c->resp.topics.v[0].configs.n; i++) {
        if (!str_eq(c->resp.topics.v[0].configs.v[i].name, str_of(key)))
            continue;
        *source = c->resp.topics.v[0].configs.v[i].config_source;
        return c->resp.topics.v[0].configs.v[i].value.p;
    }
    return "";
}

/* They are the defaults of topics that are created, before they are committed. */
static void test_alter_brokers_is_seen_at_once(void)
{
    struct fixture f;
    struct creating c;
    struct altering a = {.n = 0};
    struct test_op t = test_op_new(), created = test_op_new();
    int8_t source = 0;
    open_topic(&f);
    op(&a, change(&a, CONFIG_RESOURCE_BROKER, "1"), "log.segment.bytes", SET, "5000000");
    op(&a, change(&a, CONFIG_RESOURCE_BROKER, ""), "log.segment.bytes", SET, "6000000");
    controller_alter_configs(f.controller, &t.op, a.changes, a.n, false, &f.arena, f.now);
    creating_init(&c);
    creating_add(&c, topic_of("u", 1, 1));
    controller_create_topics(f.controller, &created.op, &c.req, 7, &f.arena, &c.resp, f.now);
    CU_ASSERT_EQUAL(test_op_wait(&f, &created), K_NONE);
    CU_ASSERT_EQUAL(t.done, 1);
    CU_ASSERT_STRING_EQUAL(described(&c, "segment.bytes", &source), "5000000");
    CU_ASSERT_EQUAL(source, CONFIG_FROM_BROKER);
    CU_ASSERT_EQUAL(alter(&f, 4, "1", "log.segment.bytes", DELETE, NULL), K_NONE);
    creating_init(&c);
    creating_add(&c, topic_of("v", 1, 1));
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_STRING_EQUAL(described(&c, "segment.bytes", &source), "6000000");
    CU_ASSERT_EQUAL(source, CONFIG_FROM_CLUSTER);
    fixture_close(&f);
}

/* In another term the configuration is made of what was committed meanwhile, by whomever. */
static void test_alter_brokers_is_there_after_a_claim(void)
{
    struct fixture f;
    struct creating c;
    int8_t source = 0;
    const struct config_record r = {CONFIG_RESOURCE_BROKER, STR_LIT(""),
                                    STR_LIT("log.segment.bytes"), STR_LIT("7000000")};
    open_topic(&f);
    CU_ASSERT_EQUAL(alter(&f, 4, "", "log.segment.bytes", SET, "6000000"), K_NONE);
    controller_resign(f.controller);
    CU_ASSERT_EQUAL(record_list_add(&f.raft.records, &msg_config_record, 0, &r), ERR_NONE);
    fixture_commit(&f);
    controller_claim(f.controller, 2, f.now);
    fixture_commit(&f);
    creating_init(&c);
    creating_add(&c, topic_of("u", 1, 1));
    CU_ASSERT_EQUAL(creating_run(&f, &c), K_NONE);
    CU_ASSERT_STRING_EQUAL(described(&c, "segment.bytes", &source), "7000000");
    fixture_close(&f);
}

/* ------------------------------------------------------------------ min.insync.replicas under ELR
 */

static size_t clear_elr_records(struct fixture *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->raft.records.n; i++) {
        int16_t type, version;
        CU_ASSERT_EQUAL(record_peek(record_list_get(&f->raft.records, i), &type, &version),
                        ERR_NONE);
        n += type == RECORD_CLEAR_ELR;
    }
    return n;
}

static void test_alter_min_insync_replicas(void)
{
    struct fixture f;
    open_topic(&f);
    CU_ASSERT_EQUAL(clear_elr_records(&f), 0);
    CU_ASSERT_EQUAL(topic_key(&f, "min.insync.replicas", SET, "2"), K_NONE);
    CU_ASSERT_EQUAL(clear_elr_records(&f), 1);
    CU_ASSERT_EQUAL(topic_key(&f, "min.insync.replicas", SET, "2"), K_NONE);
    CU_ASSERT_EQUAL(clear_elr_records(&f), 1);
    CU_ASSERT_EQUAL(alter(&f, 4, "", "min.insync.replicas", SET, "2"), K_NONE);
    CU_ASSERT_EQUAL(clear_elr_records(&f), 2);
    CU_ASSERT_EQUAL(alter(&f, 4, "1", "min.insync.replicas", SET, "2"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alter(&f, 4, "1", "min.insync.replicas", DELETE, NULL), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alter(&f, 4, "", "min.insync.replicas", DELETE, NULL), K_INVALID_CONFIG);
    struct altering a = {.n = 0};
    struct config_change *c = change(&a, CONFIG_RESOURCE_BROKER, "");
    c->replace = true; /* would take it away */
    op(&a, c, "log.segment.bytes", SET, "6000000");
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NONE);
    CU_ASSERT_EQUAL(c->error, K_INVALID_CONFIG);
    CU_ASSERT_STRING_EQUAL(value_of(&f, 4, "", "min.insync.replicas"), "2");
    CU_ASSERT_STRING_EQUAL(value_of(&f, 4, "", "log.segment.bytes"), "(not set)");
    CU_ASSERT_EQUAL(clear_elr_records(&f), 2);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ groups, client metrics */

static void test_alter_groups(void)
{
    struct fixture f;
    const int8_t g = CONFIG_RESOURCE_GROUP;
    open_topic(&f);
    CU_ASSERT_EQUAL(alter(&f, g, "g", "consumer.session.timeout.ms", SET, "50000"), K_NONE);
    CU_ASSERT_STRING_EQUAL(value_of(&f, g, "g", "consumer.session.timeout.ms"), "50000");
    static const char *const bad[][2] = {
        {"consumer.session.timeout.ms", "44999"},  {"consumer.session.timeout.ms", "60001"},
        {"consumer.heartbeat.interval.ms", "1"},   {"consumer.assignment.interval.ms", "15001"},
        {"share.record.lock.duration.ms", "1000"}, {"share.delivery.count.limit", "11"},
        {"streams.num.standby.replicas", "3"},     {"streams.assignor.name", "x"},
        {"share.auto.offset.reset", "foo"},        {"no.such.key", "1"},
    };
    for (size_t i = 0; i < ARRAY_N(bad); i++)
        CU_ASSERT_EQUAL(alter(&f, g, "g", bad[i][0], SET, bad[i][1]), K_INVALID_CONFIG);
    static const char *const good[][2] = {
        {"share.delivery.count.limit", "10"},
        {"streams.num.standby.replicas", "2"},
        {"streams.assignor.name", " sticky"},
        {"share.auto.offset.reset", "by_duration:PT1H"},
        {"errors.deadletterqueue.topic.name", "dlq"},
    };
    for (size_t i = 0; i < ARRAY_N(good); i++)
        CU_ASSERT_EQUAL(alter(&f, g, "g", good[i][0], SET, good[i][1]), K_NONE);
    CU_ASSERT_EQUAL(alter(&f, g, "", "consumer.session.timeout.ms", SET, "50000"),
                    K_INVALID_REQUEST);
    fixture_close(&f);
}

static void test_alter_client_metrics(void)
{
    struct fixture f;
    const int8_t m = CONFIG_RESOURCE_CLIENT_METRICS;
    open_topic(&f);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "interval.ms", SET, "1000"), K_NONE);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "interval.ms", SET, "1"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "no.such.key", SET, "1"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "match", SET, "client_id=a.*, client_source_port=9"), K_NONE);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "match", SET, "client_id"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "match", SET, "nobody=x"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alter(&f, m, "m", "metrics", APPEND, "a"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alter(&f, m, "", "interval.ms", SET, "1000"), K_INVALID_REQUEST);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ the whole request */

static void test_alter_zero_characters(void)
{
    struct fixture f;
    open_topic(&f);
    struct altering a = {.n = 0};
    struct config_change *name = change(&a, CONFIG_RESOURCE_GROUP, "");
    name->name = STR_LIT("a\0b");
    struct config_change *key = change(&a, CONFIG_RESOURCE_BROKER, "1");
    op(&a, key, "", SET, "x");
    key->ops[0].name = STR_LIT("a\0b");
    struct config_change *value = change(&a, CONFIG_RESOURCE_BROKER, "");
    op(&a, value, "a", SET, "");
    value->ops[0].value = STR_LIT("a\0b");
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NONE);
    CU_ASSERT_EQUAL(name->error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(key->error, K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(value->error, K_INVALID_CONFIG);
    fixture_close(&f);
}

static void test_alter_failures(void)
{
    struct fixture f;
    open_topic(&f);
    struct altering a = {.n = 0};
    op(&a, change(&a, CONFIG_RESOURCE_TOPIC, "t"), "segment.ms", SET, "5");
    f.raft.fail = ERR_NOSPC;
    CU_ASSERT_EQUAL(run(&f, &a, false), K_KAFKA_STORAGE_ERROR);
    f.raft.fail = ERR_NONE;
    CU_ASSERT_STRING_EQUAL(topic_value_of(&f, "segment.ms"), "(not set)");
    controller_resign(f.controller);
    CU_ASSERT_EQUAL(run(&f, &a, false), K_NOT_CONTROLLER);
    fixture_close(&f);
}

static void test_alter_out_of_memory(void)
{
    bool done = false;
    for (long n = 1; !done; n++) {
        struct fixture f;
        struct altering a = {.n = 0};
        open_topic(&f);
        struct config_change *c = change(&a, CONFIG_RESOURCE_TOPIC, "t");
        op(&a, c, "cleanup.policy", APPEND, "compact");
        op(&a, c, "min.insync.replicas", SET, "2");
        op(&a, change(&a, CONFIG_RESOURCE_BROKER, ""), "log.segment.bytes", SET, "6000000");
        struct test_op t = test_op_new();
        fault_alloc_arm(n, false);
        controller_alter_configs(f.controller, &t.op, a.changes, a.n, false, &f.arena, f.now);
        done = !fault_alloc_hit();
        const int16_t error = test_op_wait(&f, &t);
        const bool set = strcmp(topic_value_of(&f, "cleanup.policy"), "(not set)") != 0;
        CU_ASSERT(!done || (error == K_NONE && set));
        CU_ASSERT_EQUAL(set, strcmp(value_of(&f, 4, "", "log.segment.bytes"), "(not set)") != 0);
        fixture_close(&f);
    }
}

TEST_MAIN(TEST(test_alter_topic_values), TEST(test_alter_refuses_bad_topic_values),
          TEST(test_alter_each_resource_alone), TEST(test_alter_validate_only),
          TEST(test_alter_lists), TEST(test_alter_list_that_grows_too_long),
          TEST(test_alter_replaces), TEST(test_alter_replaces_before_it_checks),
          TEST(test_alter_brokers), TEST(test_alter_brokers_is_seen_at_once),
          TEST(test_alter_brokers_is_there_after_a_claim), TEST(test_alter_min_insync_replicas),
          TEST(test_alter_groups), TEST(test_alter_client_metrics),
          TEST(test_alter_zero_characters), TEST(test_alter_failures),
          TEST(test_alter_out_of_memory))
