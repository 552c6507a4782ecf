/* Values as Apache Kafka 4.4 showed them when they were set on it. */
#include "core/config/config.h"
#include "support/fault.h"
#include "support/test.h"

static void check(enum config_scope scope, const char *key, const char *text, const char *shown)
{
    struct arena a;
    arena_init(&a, NULL);
    const struct config_key *k = config_find(scope, str_of(key));
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    const char *got = config_print(k, text, &a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    if (strcmp(got, shown) != 0)
        fprintf(stderr, "%s=%s: %s, not %s\n", key, text, got, shown);
    CU_ASSERT_STRING_EQUAL(got, shown);
    arena_close(&a);
}

static void test_print_numbers_and_words(void)
{
    check(CONFIG_TOPIC, "retention.bytes", "+07", "7");
    check(CONFIG_TOPIC, "retention.bytes", " -1\n", "-1");
    check(CONFIG_TOPIC, "flush.ms", "9223372036854775807", "9223372036854775807");
    check(CONFIG_TOPIC, "preallocate", "TRUE ", "true");
    check(CONFIG_TOPIC, "preallocate", " False", "false");
    check(CONFIG_TOPIC, "compression.type", " gzip ", "gzip");
    check(CONFIG_BROKER, "broker.rack", " RACK1", "RACK1");
}

static void test_print_doubles(void)
{
    static const char *const cases[][2] = {
        {"0.70", "0.7"},
        {"1E0", "1.0"},
        {"0", "0.0"},
        {"-0", "-0.0"},
        {".1", "0.1"},
        {"0x1p-1", "0.5"},
        {"0.123456789012345678", "0.12345678901234568"},
        {"1000000", "1000000.0"},
        {"1e7", "1.0E7"},
        {"12345678.9", "1.23456789E7"},
        {"9999999.5", "9999999.5"},
        {"123456.7", "123456.7"},
        {"100", "100.0"},
        {"1e-3", "0.001"},
        {"0.01", "0.01"},
        {"0.00001", "1.0E-5"},
        {"1e-10", "1.0E-10"},
        {"-2.5", "-2.5"},
        {"1.7976931348623157E308", "1.7976931348623157E308"},
        {"1e400", "Infinity"},
    };
    for (size_t i = 0; i < ARRAY_N(cases); i++)
        check(CONFIG_BROKER, "log.cleaner.io.max.bytes.per.second", cases[i][0], cases[i][1]);
}

static void test_print_lists(void)
{
    check(CONFIG_TOPIC, "cleanup.policy", " delete , compact ", "delete,compact");
    check(CONFIG_TOPIC, "cleanup.policy", "delete,delete", "delete");
    check(CONFIG_TOPIC, "cleanup.policy", "compact,delete, compact", "compact,delete");
    check(CONFIG_TOPIC, "cleanup.policy", " ", "");
    check(CONFIG_TOPIC, "leader.replication.throttled.replicas", "0:1, 0:1", "0:1,0:1");
}

static void test_print_out_of_memory(void)
{
    struct arena a;
    const struct config_key *k = config_find(CONFIG_TOPIC, STR_LIT("retention.ms"));
    arena_init(&a, NULL);
    fault_alloc_arm(1, false);
    CU_ASSERT_PTR_NULL(config_print(k, "5", &a));
    CU_ASSERT_TRUE(fault_alloc_hit());
    arena_close(&a);
}

TEST_MAIN(TEST(test_print_numbers_and_words), TEST(test_print_doubles), TEST(test_print_lists),
          TEST(test_print_out_of_memory))
