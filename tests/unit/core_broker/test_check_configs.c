/* What a broker refuses of AlterConfigs itself: Kafka's errors, and who goes on to the controller.
 */
#include "core/broker/check_configs.h"

#include <stdio.h>

#include "core/metadata/image.h"
#include "support/fault.h"
#include "support/test.h"

enum { SET, DELETE, APPEND, SUBTRACT };

static struct config *config;
static struct arena arena;
static struct config_op ops[64];
static int32_t ops_n;
static struct config_change changes[8];
static int32_t changes_n;

static void open_all(void)
{
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_new(&config), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_set(config, STR_LIT("log.dirs"), STR_LIT("/data"), CONFIG_SET,
                                     NULL, NULL, message, sizeof message),
                          ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(config, message, sizeof message), ERR_NONE);
    arena_init(&arena, NULL);
    ops_n = changes_n = 0;
}

static void close_all(void)
{
    arena_close(&arena);
    config_free(config);
}

static struct config_change *change(int8_t type, const char *name)
{
    struct config_change *c = &changes[changes_n++];
    *c = (struct config_change){
        .type = type, .name = str_of(name), .ops = &ops[ops_n], .message = STR_NULL};
    return c;
}

static void op(struct config_change *c, const char *name, int8_t operation, const char *value)
{
    ops[ops_n++] = (struct config_op){str_of(name), operation, str_of(value)};
    c->ops_n++;
}

static void check(void)
{
    CU_ASSERT_EQUAL(broker_check_configs(config, 1, 7, changes, changes_n, &arena), ERR_NONE);
}

/* One operation on one resource: its error, K_NONE when it goes on to the controller. */
static int16_t alone(int8_t type, const char *resource, const char *name, int8_t operation,
                     const char *value)
{
    ops_n = changes_n = 0;
    struct config_change *c = change(type, resource);
    op(c, name, operation, value);
    check();
    CU_ASSERT_EQUAL(c->settled, c->error != K_NONE);
    CU_ASSERT_EQUAL(c->message.n > 0, c->error != K_NONE);
    return c->error;
}

static int16_t broker_key(const char *name, int8_t operation, const char *value)
{
    return alone(CONFIG_RESOURCE_BROKER, "1", name, operation, value);
}

static void test_check_named_twice(void)
{
    open_all();
    struct config_change *t = change(CONFIG_RESOURCE_TOPIC, "t");
    op(t, "a", SET, "1");
    op(t, "b", DELETE, NULL);
    struct config_change *other = change(CONFIG_RESOURCE_GROUP, "t");
    struct config_change *again = change(CONFIG_RESOURCE_TOPIC, "t");
    struct config_change *third = change(CONFIG_RESOURCE_TOPIC, "t");
    struct config_change *keys = change(CONFIG_RESOURCE_TOPIC, "u");
    op(keys, "a", SET, "1");
    op(keys, "a", DELETE, NULL);
    check();
    CU_ASSERT_EQUAL(t->error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(again->error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(third->error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(keys->error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(other->error, K_NONE);
    CU_ASSERT_FALSE(other->settled);
    close_all();
}

static void test_check_values_that_are_missing(void)
{
    open_all();
    CU_ASSERT_EQUAL(alone(CONFIG_RESOURCE_TOPIC, "t", "a", SET, NULL), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(CONFIG_RESOURCE_TOPIC, "t", "", SET, NULL), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(CONFIG_RESOURCE_TOPIC, "t", "a", APPEND, NULL), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(CONFIG_RESOURCE_TOPIC, "t", "a", DELETE, NULL), K_NONE);
    CU_ASSERT_EQUAL(alone(CONFIG_RESOURCE_TOPIC, "t", "a", 4, "x"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(CONFIG_RESOURCE_TOPIC, "t", "a", -1, "x"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(99, "t", "a", SET, "x"), K_NONE); /* the controller's to refuse */
    close_all();
}

static void test_check_which_broker(void)
{
    open_all();
    CU_ASSERT_EQUAL(alone(4, "1", "log.segment.bytes", SET, "5000000"), K_NONE);
    CU_ASSERT_EQUAL(alone(4, "", "log.segment.bytes", SET, "5000000"), K_NONE);
    CU_ASSERT_EQUAL(alone(4, "2", "log.segment.bytes", SET, "5000000"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(4, "one", "log.segment.bytes", SET, "5000000"), K_INVALID_REQUEST);
    close_all();
}

static void test_check_broker_keys(void)
{
    open_all();
    CU_ASSERT_EQUAL(broker_key("num.partitions", SET, "5"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("listeners", SET, "A://:1"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("num.partitions", DELETE, NULL), K_NONE); /* as in Kafka */
    CU_ASSERT_EQUAL(broker_key("log.segment.bytes", SET, "x"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("log.segment.bytes", SET, "5"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("log.roll.ms", SET, "0"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("log.retention.ms", SET, "0"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("log.retention.ms", SET, "-1"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("log.segment.bytes", APPEND, "5000000"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(broker_key("log.cleanup.policy", APPEND, "compact"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("log.cleanup.policy", APPEND, "burn"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("log.cleanup.policy", SUBTRACT, "burn"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("my.plugin.key", SET, "x"), K_NONE); /* nobody's: kept */
    CU_ASSERT_EQUAL(broker_key("leader.replication.throttled.rate", SET, "-5"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("listener.name.a.max.connections", SET, "x"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("listener.name.a.max.connections", SET, "5"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("listener.name.a.ssl.keystore.password", SET, "x"),
                    K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("cordoned.log.dirs", SET, "/data"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("cordoned.log.dirs", SET, "/other"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(4, "", "cordoned.log.dirs", SET, "/data"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(broker_key("sasl.kerberos.service.name", SET, "x"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("listener.name.a.sasl.kerberos.service.name", SET, "x"), K_NONE);
    CU_ASSERT_EQUAL(broker_key("sasl.kerberos.min.time.before.relogin", SET, "x"),
                    K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(4, "", "sasl.kerberos.service.name", SET, "x"), K_INVALID_REQUEST);
    close_all();
}

/* All that is fixed is named; long names do not break the message. */
static void test_check_names_what_is_fixed(void)
{
    char long_name[300];
    open_all();
    struct config_change *c = change(CONFIG_RESOURCE_BROKER, "1");
    op(c, "num.partitions", SET, "5");
    op(c, "log.segment.bytes", SET, "5");
    op(c, "broker.rack", SET, "r");
    check();
    CU_ASSERT_EQUAL(c->error, K_INVALID_REQUEST);
    CU_ASSERT(str_eq(c->message, STR_LIT("Cannot update these configs dynamically: "
                                         "[num.partitions, broker.rack]")));
    ops_n = changes_n = 0;
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    c = change(CONFIG_RESOURCE_TOPIC, "t");
    op(c, long_name, SET, NULL);
    op(c, "b", SET, NULL);
    check();
    CU_ASSERT_EQUAL(c->error, K_INVALID_REQUEST);
    CU_ASSERT(c->message.n > 250);
    close_all();
}

/* A Kafka broker without log4j has none either. */
static void test_check_loggers(void)
{
    open_all();
    CU_ASSERT_EQUAL(alone(8, "1", "kafka.server", SET, "DEBUG"), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alone(8, "1", "kafka.server", DELETE, NULL), K_INVALID_CONFIG);
    CU_ASSERT_EQUAL(alone(8, "1", "kafka.server", APPEND, "DEBUG"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(8, "2", "kafka.server", SET, "DEBUG"), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(alone(8, "", "kafka.server", SET, "DEBUG"), K_INVALID_REQUEST);
    ops_n = changes_n = 0;
    struct config_change *none = change(8, "1");
    struct config_change *legacy = change(8, "2");
    legacy->replace = true;
    check();
    CU_ASSERT_EQUAL(none->error, K_NONE);
    CU_ASSERT_TRUE(none->settled);
    CU_ASSERT_EQUAL(legacy->error, K_INVALID_REQUEST);
    close_all();
}

static void test_check_out_of_memory(void)
{
    bool done = false;
    open_all();
    for (long n = 1; !done; n++) {
        ops_n = changes_n = 0;
        struct config_change *c = change(CONFIG_RESOURCE_TOPIC, "t");
        op(c, "a", SET, "1");
        op(c, "b", SET, "1");
        change(CONFIG_RESOURCE_TOPIC, "t");
        change(CONFIG_RESOURCE_TOPIC, "u");
        fault_alloc_arm(n, false);
        const enum err e = broker_check_configs(config, 1, 7, changes, changes_n, &arena);
        done = !fault_alloc_hit();
        CU_ASSERT(e == ERR_NOMEM || changes[0].error == K_INVALID_REQUEST);
        CU_ASSERT(!done || e == ERR_NONE);
    }
    close_all();
}

TEST_MAIN(TEST(test_check_named_twice), TEST(test_check_values_that_are_missing),
          TEST(test_check_which_broker), TEST(test_check_broker_keys),
          TEST(test_check_names_what_is_fixed), TEST(test_check_loggers),
          TEST(test_check_out_of_memory))
