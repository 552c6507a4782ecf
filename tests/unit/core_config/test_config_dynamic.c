/* Dynamic values over the static ones: which count, where they come from. */
#include "core/config/config.h"
#include "support/fault.h"
#include "support/test.h"

#include <stdio.h>

static char message[512];

/* Pairs of key and value, NULL at the end. */
static const char *pair_value(void *ctx, const char *key)
{
    for (const char *const *pairs = ctx; pairs[0] != NULL; pairs += 2)
        if (strcmp(pairs[0], key) == 0)
            return pairs[1];
    return NULL;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

struct fixture {
    struct config *base, *c;
};

static void fixture_open(struct fixture *f, const char *const *pairs)
{
    CU_ASSERT_EQUAL_FATAL(config_new(&f->base), ERR_NONE);
    for (; pairs[0] != NULL; pairs += 2)
        CU_ASSERT_EQUAL_FATAL(config_set(f->base, str_of(pairs[0]), str_of(pairs[1]), CONFIG_FILE,
                                         NULL, NULL, message, sizeof message),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(f->base, message, sizeof message), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_over(f->base, &f->c), ERR_NONE);
}

static void fixture_close(struct fixture *f)
{
    config_free(f->c);
    config_free(f->base);
}

/* Whether a default of topics changed. */
static bool take(struct fixture *f, enum config_level level, const char *const *pairs)
{
    bool topics = false;
    CU_ASSERT_EQUAL(config_take_dynamic(f->c, level, pair_value, (void *)pairs, &topics), ERR_NONE);
    return topics;
}

/* "key=text/kind ..." */
static const char *origins(struct fixture *f, const char *key)
{
    static char out[512];
    struct config_origin v[CONFIG_ORIGINS_MAX];
    const size_t n = config_origins(f->c, key, v);
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%s=%s/%c", i > 0 ? " " : "", v[i].key,
                               v[i].text, "??BCSD"[v[i].from]);
    return out;
}

static enum config_dynamic level_of(const char *key)
{
    return config_dynamic(config_find(CONFIG_BROKER, str_of(key)));
}

static void test_dynamic_keys_are_kafkas(void)
{
    static const char *const dynamic[] = {
        "background.threads",
        "compression.type",
        "log.cleanup.policy",
        "log.flush.interval.ms",
        "log.retention.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "max.connections",
        "message.max.bytes",
        "min.insync.replicas",
        "num.io.threads",
        "producer.id.expiration.ms",
        "unclean.leader.election.enable",
    };
    static const char *const read_only[] = {"auto.create.topics.enable",
                                            "broker.id",
                                            "listeners",
                                            "log.dirs",
                                            "log.retention.hours",
                                            "log.roll.hours",
                                            "num.partitions",
                                            "sasl.jaas.config",
                                            "ssl.keystore.password",
                                            "dohle.memory.max.bytes"};
    for (size_t i = 0; i < ARRAY_N(dynamic); i++)
        CU_ASSERT_EQUAL(level_of(dynamic[i]), CONFIG_DYNAMIC);
    for (size_t i = 0; i < ARRAY_N(read_only); i++)
        CU_ASSERT_EQUAL(level_of(read_only[i]), CONFIG_READ_ONLY);
    CU_ASSERT_EQUAL(level_of("cordoned.log.dirs"), CONFIG_DYNAMIC_BROKER);
    CU_ASSERT_EQUAL(level_of("sasl.kerberos.kinit.cmd"), CONFIG_DYNAMIC_BROKER);
    CU_ASSERT_EQUAL(level_of("sasl.kerberos.ticket.renew.window.factor"), CONFIG_DYNAMIC_BROKER);
    size_t n, count = 0;
    const struct config_key *keys = config_keys(CONFIG_BROKER, &n);
    for (size_t i = 0; i < n; i++)
        count += config_dynamic(&keys[i]) != CONFIG_READ_ONLY;
    CU_ASSERT_EQUAL(count, 74);
    CU_ASSERT_EQUAL(config_dynamic(config_find(CONFIG_TOPIC, STR_LIT("segment.ms"))),
                    CONFIG_DYNAMIC);
}

static void test_dynamic_names_of_a_resource(void)
{
    const struct config_key *max = config_find(CONFIG_BROKER, STR_LIT("max.connections"));
    CU_ASSERT_PTR_EQUAL(config_find_dynamic(STR_LIT("max.connections")), max);
    CU_ASSERT_PTR_EQUAL(config_find_dynamic(STR_LIT("listener.name.a.max.connections")), max);
    CU_ASSERT_PTR_NULL(config_find_dynamic(STR_LIT("listener.name.a")));
    CU_ASSERT_PTR_NULL(config_find_dynamic(STR_LIT("listener.name.")));
    CU_ASSERT_PTR_NULL(config_find_dynamic(STR_LIT("no.such.key")));
    const struct config_key *rate =
        config_find_dynamic(STR_LIT("leader.replication.throttled.rate"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(rate);
    CU_ASSERT_EQUAL(config_dynamic(rate), CONFIG_DYNAMIC);
    CU_ASSERT_EQUAL(config_check_broker(rate, STR_LIT("-1"), message, sizeof message), ERR_INVALID);
    CU_ASSERT_EQUAL(config_check_broker(rate, STR_LIT("1"), message, sizeof message), ERR_NONE);
    CU_ASSERT_PTR_NULL(config_find(CONFIG_BROKER, str_of(rate->name)));
}

static void test_dynamic_values_win_by_level(void)
{
    struct fixture f;
    fixture_open(&f, PAIRS("log.segment.bytes", "3000000", "num.partitions", "4"));
    CU_ASSERT_EQUAL(config_int(f.c, "log.segment.bytes"), 3000000);
    CU_ASSERT_EQUAL(config_int(f.c, "num.partitions"), 4);
    CU_ASSERT_TRUE(take(&f, CONFIG_OF_CLUSTER, PAIRS("log.segment.bytes", "4000000")));
    CU_ASSERT_EQUAL(config_int(f.c, "log.segment.bytes"), 4000000);
    CU_ASSERT_TRUE(take(&f, CONFIG_OF_BROKER, PAIRS("log.segment.bytes", "5000000")));
    CU_ASSERT_EQUAL(config_int(f.c, "log.segment.bytes"), 5000000);
    CU_ASSERT_EQUAL(config_int(f.base, "log.segment.bytes"), 3000000);
    CU_ASSERT_FALSE(take(&f, CONFIG_OF_BROKER, PAIRS("log.segment.bytes", "5000000")));
    CU_ASSERT_TRUE(take(&f, CONFIG_OF_BROKER, PAIRS()));
    CU_ASSERT_EQUAL(config_int(f.c, "log.segment.bytes"), 4000000);
    CU_ASSERT_EQUAL(topic_config_int(f.c, "segment.bytes", NULL, NULL), 4000000);
    CU_ASSERT_TRUE(take(&f, CONFIG_OF_CLUSTER, PAIRS()));
    CU_ASSERT_EQUAL(topic_config_int(f.c, "segment.bytes", NULL, NULL), 3000000);
    fixture_close(&f);
}

static void test_dynamic_values_that_do_not_count(void)
{
    struct fixture f;
    fixture_open(&f, PAIRS());
    CU_ASSERT_FALSE(take(&f, CONFIG_OF_BROKER,
                         PAIRS("num.partitions", "9", "log.segment.bytes", "1", "log.roll.ms", "0",
                               "log.retention.ms", "0", "listeners", "A://:1", "nonsense", "x")));
    CU_ASSERT_EQUAL(config_int(f.c, "num.partitions"), 1);
    CU_ASSERT_EQUAL(config_int(f.c, "log.segment.bytes"), 1 << 30);
    CU_ASSERT_EQUAL(config_int(f.c, "log.roll.ms"), -1);
    CU_ASSERT_FALSE(take(&f, CONFIG_OF_CLUSTER, PAIRS("cordoned.log.dirs", "*")));
    CU_ASSERT_STRING_EQUAL(config_text(f.c, "cordoned.log.dirs"), "");
    CU_ASSERT_FALSE(take(&f, CONFIG_OF_BROKER, PAIRS("cordoned.log.dirs", "*")));
    CU_ASSERT_STRING_EQUAL(config_text(f.c, "cordoned.log.dirs"), "*");
    fixture_close(&f);
}

static void test_dynamic_changes_that_concern_topics(void)
{
    struct fixture f;
    fixture_open(&f, PAIRS());
    CU_ASSERT_FALSE(take(&f, CONFIG_OF_CLUSTER, PAIRS("max.connections", "5")));
    CU_ASSERT_EQUAL(config_int(f.c, "max.connections"), 5);
    CU_ASSERT_TRUE(take(&f, CONFIG_OF_CLUSTER,
                        PAIRS("max.connections", "5", "producer.id.expiration.ms", "60000")));
    CU_ASSERT_TRUE(take(&f, CONFIG_OF_CLUSTER, PAIRS("compression.type", "lz4")));
    fixture_close(&f);
}

static void test_origins(void)
{
    struct fixture f;
    fixture_open(&f, PAIRS("num.partitions", "4", "log.retention.hours", "-1",
                           "log.retention.minutes", "5", "log.roll.hours", "2"));
    CU_ASSERT_STRING_EQUAL(origins(&f, "num.partitions"), "num.partitions=4/S num.partitions=1/D");
    CU_ASSERT_STRING_EQUAL(origins(&f, "broker.rack"), "");
    CU_ASSERT_STRING_EQUAL(origins(&f, "log.roll.jitter.ms"), "");
    CU_ASSERT_STRING_EQUAL(origins(&f, "log.roll.ms"), "log.roll.hours=2/S log.roll.hours=168/D");
    CU_ASSERT_STRING_EQUAL(origins(&f, "log.retention.ms"),
                           "log.retention.minutes=5/S log.retention.hours=-1/S "
                           "log.retention.hours=168/D");
    CU_ASSERT_EQUAL(config_int(f.c, "log.retention.ms"), 300000);
    take(&f, CONFIG_OF_BROKER, PAIRS("log.roll.ms", "6000"));
    take(&f, CONFIG_OF_CLUSTER, PAIRS("log.roll.ms", "7000"));
    CU_ASSERT_STRING_EQUAL(origins(&f, "log.roll.ms"),
                           "log.roll.ms=6000/B log.roll.ms=7000/C log.roll.hours=2/S "
                           "log.roll.hours=168/D");
    fixture_close(&f);
}

static void test_values_of_groups(void)
{
    struct fixture f;
    fixture_open(&f, PAIRS("group.consumer.session.timeout.ms", "50000"));
    const struct config_key *timeout =
        config_find(CONFIG_GROUP, STR_LIT("consumer.session.timeout.ms"));
    const struct config_key *assignor = config_find(CONFIG_GROUP, STR_LIT("streams.assignor.name"));
    CU_ASSERT_STRING_EQUAL(config_value(f.c, timeout, NULL, NULL), "50000");
    CU_ASSERT_STRING_EQUAL(config_value(f.c, assignor, NULL, NULL), "sticky");
    const char *const *own = PAIRS("consumer.session.timeout.ms", "55000");
    CU_ASSERT_STRING_EQUAL(config_value(f.c, timeout, pair_value, (void *)own), "55000");
    fixture_close(&f);
}

static void test_dynamic_out_of_memory(void)
{
    struct config *base;
    bool done = false;
    CU_ASSERT_EQUAL_FATAL(config_new(&base), ERR_NONE);
    for (long n = 1; !done; n++) {
        struct config *c = NULL;
        bool topics = false;
        const char *const *pairs = PAIRS("log.roll.ms", "5", "log.segment.bytes", "5000000");
        fault_alloc_arm(n, false);
        enum err e = config_over(base, &c);
        if (e == ERR_NONE)
            e = config_take_dynamic(c, CONFIG_OF_BROKER, pair_value, (void *)pairs, &topics);
        done = !fault_alloc_hit();
        CU_ASSERT_EQUAL(e, done ? ERR_NONE : ERR_NOMEM);
        config_free(c);
    }
    config_free(base);
}

TEST_MAIN(TEST(test_dynamic_keys_are_kafkas), TEST(test_dynamic_names_of_a_resource),
          TEST(test_dynamic_values_win_by_level), TEST(test_dynamic_values_that_do_not_count),
          TEST(test_dynamic_changes_that_concern_topics), TEST(test_origins),
          TEST(test_values_of_groups), TEST(test_dynamic_out_of_memory))
