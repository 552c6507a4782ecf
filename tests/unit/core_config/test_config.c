/* The table, every form of validator, values, and what several keys say together. */
#include "core/config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/fault.h"
#include "support/test.h"

static char message[512];

static struct config *new_config(void)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    return c;
}

static enum err set(struct config *c, const char *key, const char *value)
{
    message[0] = '\0';
    return config_set(c, str_of(key), str_of(value), CONFIG_SET, NULL, NULL, message,
                      sizeof message);
}

static bool valid(enum config_scope scope, const char *key, const char *value)
{
    const struct config_key *k = config_find(scope, str_of(key));
    message[0] = '\0';
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    return config_check(k, str_of(value), message, sizeof message) == ERR_NONE;
}

/* ------------------------------------------------------------------ the table */

static void check_table(enum config_scope scope)
{
    size_t n, wrong = 0;
    const struct config_key *keys = config_keys(scope, &n);
    for (size_t i = 0; i < n; i++) {
        const struct config_key *k = &keys[i];
        wrong += k->scope != scope || config_find(scope, str_of(k->name)) != k;
        wrong += i > 0 && str_cmp(str_of(keys[i - 1].name), str_of(k->name)) >= 0;
        if (k->def != NULL &&
            config_check(k, str_of(k->def), message, sizeof message) != ERR_NONE) {
            fprintf(stderr, "default of %s: %s\n", k->name, message);
            wrong++;
        }
        if (k->broker_synonym != NULL) {
            const struct config_key *b = config_find(CONFIG_BROKER, str_of(k->broker_synonym));
            const bool list = b != NULL && b->type == CONFIG_LIST; /* the first counts */
            wrong += scope == CONFIG_BROKER || b == NULL || (b->type != k->type && !list);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void test_config_tables_are_sorted_with_valid_defaults(void)
{
    check_table(CONFIG_BROKER);
    check_table(CONFIG_TOPIC);
    check_table(CONFIG_GROUP);
    check_table(CONFIG_CLIENT_METRICS);
}

static void test_config_table_has_the_keys_of_kafka(void)
{
    size_t n;
    (void)config_keys(CONFIG_BROKER, &n);
    CU_ASSERT_EQUAL(n, 350 + 2); /* and cluster.id, dohle.memory.max.bytes */
    (void)config_keys(CONFIG_TOPIC, &n);
    CU_ASSERT_EQUAL(n, 37);
    (void)config_keys(CONFIG_GROUP, &n);
    CU_ASSERT_EQUAL(n, 21);
    CU_ASSERT_PTR_NULL(config_find(CONFIG_BROKER, STR_LIT("no.such.key")));
    CU_ASSERT_PTR_NULL(config_find(CONFIG_BROKER, STR_LIT("")));
    CU_ASSERT_PTR_NULL(config_find(CONFIG_TOPIC, STR_LIT("listeners")));
}

/* ------------------------------------------------------------------ validators */

struct value_case {
    const char *key, *value;
    bool valid;
};

static void run_cases(enum config_scope scope, const struct value_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool got = valid(scope, cases[i].key, cases[i].value);
        if (got != cases[i].valid)
            fprintf(stderr, "%s=%s is %d: %s\n", cases[i].key, cases[i].value, got, message);
        CU_ASSERT_EQUAL(got, cases[i].valid);
        if (!got && cases[i].value != NULL) {
            CU_ASSERT_PTR_NOT_NULL(strstr(message, cases[i].key));
            CU_ASSERT_PTR_NOT_NULL(strstr(message, cases[i].value));
        }
    }
}

static void test_config_numbers(void)
{
    static const struct value_case cases[] = {
        {"num.partitions", "1", true},
        {"num.partitions", "0", false}, /* [1,...] */
        {"num.partitions", "2147483647", true},
        {"num.partitions", "2147483648", false}, /* an int */
        {"num.partitions", "-2147483649", false},
        {"num.partitions", " 7\t", true},
        {"num.partitions", "+7", true},
        {"num.partitions", "7x", false},
        {"num.partitions", "", false},
        {"num.partitions", "-", false},
        {"num.partitions", "1.5", false},
        {"num.partitions", "99999999999999999999", false},
        {"num.partitions", NULL, false},
        {"log.retention.bytes", "9223372036854775807", true},
        {"log.retention.bytes", "9223372036854775808", false},
        {"log.retention.bytes", "-9223372036854775808", true},
        {"log.retention.bytes", "-9223372036854775809", false},
        {"compression.gzip.level", "-1", true}, /* [1,...,9] or -1 */
        {"compression.gzip.level", "0", false},
        {"compression.gzip.level", "9", true},
        {"compression.gzip.level", "10", false},
        {"compression.zstd.level", "-131072", true},
        {"compression.zstd.level", "-131073", false},
        {"compression.zstd.level", "23", false},
        {"transaction.state.log.replication.factor", "32767", true}, /* a short */
        {"transaction.state.log.replication.factor", "32768", false},
        {"log.local.retention.ms", "-2", true}, /* [-2,...] */
        {"log.local.retention.ms", "-3", false},
        {"log.cleaner.min.cleanable.ratio", "0.5", true}, /* [0,...,1] */
        {"log.cleaner.min.cleanable.ratio", "1", true},
        {"log.cleaner.min.cleanable.ratio", "1.01", false},
        {"log.cleaner.min.cleanable.ratio", "x", false},
        {"log.cleaner.min.cleanable.ratio", "0.5 x", false},
        {"log.cleaner.min.cleanable.ratio", "nan", false},
        {"log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", true},
        {"dohle.memory.max.bytes", "16777216", true},
        {"dohle.memory.max.bytes", "16777215", false},
    };
    run_cases(CONFIG_BROKER, cases, ARRAY_N(cases));
}

static void test_config_texts(void)
{
    static const struct value_case cases[] = {
        {"auto.create.topics.enable", "TRUE", true},
        {"auto.create.topics.enable", "false ", true},
        {"auto.create.topics.enable", "yes", false},
        {"auto.create.topics.enable", "", false},
        {"compression.type", "zstd", true}, /* [a, b, c] */
        {"compression.type", "ZSTD", false},
        {"compression.type", " zstd\r\n", true}, /* blanks around a value are none of it */
        {"compression.type", "z std", false},
        {"compression.type", "", false},
        {"group.consumer.migration.policy", "Upgrade", true}, /* (case insensitive) [...] */
        {"group.consumer.migration.policy", "upgrades", false},
        {"log.cleanup.policy", "compact", true}, /* a list of choices */
        {"log.cleanup.policy", "delete, compact", true},
        {"log.cleanup.policy", "", true},
        {"log.cleanup.policy", "delete,delete", false},
        {"log.cleanup.policy", "delete,,compact", false},
        {"log.cleanup.policy", "delete, ", false},
        {"log.cleanup.policy", ",", false},
        {"log.cleanup.policy", "remove", false},
        {"process.roles", "broker,controller", true},
        {"process.roles", "brokers", false},
        {"remote.log.metadata.manager.impl.prefix", "x", true}, /* non-empty string */
        {"remote.log.metadata.manager.impl.prefix", " ", false},
        {"authorizer.class.name", "", true}, /* non-null string */
        {"authorizer.class.name", NULL, false},
        {"controller.quorum.voters", "1@a:1", true}, /* non-empty list */
        {"controller.quorum.voters", ",,", false},
        {"sasl.oauthbearer.jwt.validator.class", "any.Class", true},
        {"ssl.keystore.password", "", true},
    };
    run_cases(CONFIG_BROKER, cases, ARRAY_N(cases));
}

static void test_config_topic_and_group_texts(void)
{
    static const struct value_case topic[] = {
        {"leader.replication.throttled.replicas", "*", true},
        {"leader.replication.throttled.replicas", "", true},
        {"leader.replication.throttled.replicas", "0:1,17:2", true},
        {"leader.replication.throttled.replicas", "0:1,17", false},
        {"leader.replication.throttled.replicas", "0:-1", false},
        {"leader.replication.throttled.replicas", "0:1,", true},
        {"leader.replication.throttled.replicas", "0:1,,1:1", false},
        {"message.timestamp.type", "LogAppendTime", true},
        {"message.timestamp.type", "logappendtime", false},
        {"segment.bytes", "1048575", false},
        {"retention.ms", "-2", false},
    };
    static const struct value_case group[] = {
        {"share.auto.offset.reset", "earliest", true},
        {"share.auto.offset.reset", "newest", false},
        {"share.auto.offset.reset", "by_duration:PT1H", true},
        {"share.auto.offset.reset", "by_duration:P2DT3H4M5.25S", true},
        {"share.auto.offset.reset", "by_duration:pt0.5s", true},
        {"share.auto.offset.reset", "by_duration:P1D", true},
        {"share.auto.offset.reset", "by_duration:", false},
        {"share.auto.offset.reset", "by_duration:P", false},
        {"share.auto.offset.reset", "by_duration:P1DT", false},
        {"share.auto.offset.reset", "by_duration:P1H", false},
        {"share.auto.offset.reset", "by_duration:PT1M1H", false},
        {"share.auto.offset.reset", "by_duration:PT1.5H", false},
        {"share.auto.offset.reset", "by_duration:1h", false},
        {"share.isolation.level", "read_committed", true},
    };
    run_cases(CONFIG_TOPIC, topic, ARRAY_N(topic));
    run_cases(CONFIG_GROUP, group, ARRAY_N(group));
}

static void test_config_hides_passwords_and_refuses_zero_characters(void)
{
    const struct config_key *k = config_find(CONFIG_BROKER, STR_LIT("ssl.key.password"));
    CU_ASSERT_EQUAL(config_check(k, STR_LIT("se\0cret"), message, sizeof message), ERR_INVALID);
    CU_ASSERT_PTR_NULL(strstr(message, "se"
                                       "cret"));
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "[hidden]"));
    k = config_find(CONFIG_BROKER, STR_LIT("log.dirs"));
    CU_ASSERT_EQUAL(config_check(k, STR_LIT("/a\0b"), message, sizeof message), ERR_INVALID);
}

/* ------------------------------------------------------------------ values */

static void count_unknown(void *ctx, struct str key)
{
    ++*(int *)ctx;
    CU_ASSERT(str_eq(key, STR_LIT("no.such.key")));
}

static void test_config_values_and_their_sources(void)
{
    struct config *c = new_config();
    int unknown = 0;
    CU_ASSERT_EQUAL(config_int(c, "num.partitions"), 1);
    CU_ASSERT_EQUAL(config_source(c, "num.partitions"), CONFIG_DEFAULT);
    CU_ASSERT_EQUAL(set(c, "num.partitions", "4"), ERR_NONE);
    CU_ASSERT_EQUAL(set(c, "num.partitions", "x"), ERR_INVALID);
    CU_ASSERT_EQUAL(config_int(c, "num.partitions"), 4);
    CU_ASSERT_EQUAL(config_source(c, "num.partitions"), CONFIG_SET);
    CU_ASSERT(config_bool(c, "auto.create.topics.enable"));
    CU_ASSERT_EQUAL(set(c, "auto.create.topics.enable", " False"), ERR_NONE);
    CU_ASSERT(!config_bool(c, "auto.create.topics.enable"));
    CU_ASSERT_EQUAL(set(c, "auto.create.topics.enable", " True"), ERR_NONE);
    CU_ASSERT(config_bool(c, "auto.create.topics.enable"));
    CU_ASSERT_PTR_NULL(config_text(c, "broker.rack"));
    CU_ASSERT_EQUAL(config_int(c, "node.id"), -1); /* not set */
    CU_ASSERT_EQUAL(config_set(c, STR_LIT("no.such.key"), STR_LIT("1"), CONFIG_FILE, count_unknown,
                               &unknown, message, sizeof message),
                    ERR_NONE);
    CU_ASSERT_EQUAL(unknown, 1);
    config_free(c);
}

static void test_config_out_of_memory(void)
{
    bool done = false;
    for (long n = 1; !done; n++) {
        struct config *c = NULL;
        fault_alloc_arm(n, false);
        enum err e = config_new(&c);
        if (e == ERR_NONE)
            e = set(c, "log.roll.hours", "2");
        if (e == ERR_NONE)
            e = set(c, "listeners", "PLAINTEXT://:1");
        if (e == ERR_NONE)
            e = config_finish(c, message, sizeof message);
        done = !fault_alloc_hit();
        CU_ASSERT_EQUAL(e, done ? ERR_NONE : ERR_NOMEM);
        config_free(c);
    }
    config_free(NULL);
}

/* ------------------------------------------------------------------ several keys */

struct finish_case {
    const char *keys[3][2];
    const char *complains; /* part of the message; NULL: valid */
};

static void finish_cases(const struct finish_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct config *c = new_config();
        for (size_t k = 0; k < 3 && cases[i].keys[k][0] != NULL; k++)
            CU_ASSERT_EQUAL(set(c, cases[i].keys[k][0], cases[i].keys[k][1]), ERR_NONE);
        message[0] = '\0';
        const enum err e = config_finish(c, message, sizeof message);
        if (e != (cases[i].complains == NULL ? ERR_NONE : ERR_INVALID))
            fprintf(stderr, "case %zu: %s\n", i, message);
        CU_ASSERT_EQUAL(e, cases[i].complains == NULL ? ERR_NONE : ERR_INVALID);
        if (cases[i].complains != NULL)
            CU_ASSERT_PTR_NOT_NULL(strstr(message, cases[i].complains));
        config_free(c);
    }
}

static void test_config_finish_checks_keys_together(void)
{
    static const struct finish_case cases[] = {
        {{{"process.roles", "controller,broker"}}, NULL},
        {{{"process.roles", ""}}, NULL},
        {{{"broker.id", "3"}, {"node.id", "3"}}, NULL},
        {{{"broker.id", "3"}, {"node.id", "4"}}, "broker.id=3"},
        {{{"controller.quorum.voters", "a:9093"}}, "id@host:port"},
        {{{"controller.quorum.voters", "2@a:9093"}, {"node.id", "1"}}, "node.id=1"},
        {{{"log.dirs", "/a,/b"}}, NULL},
        {{{"log.dirs", "/a,/b,/a/"}}, "names a directory twice"},
        {{{"log.dirs", ","}}, "names no directory"},
        {{{"log.dirs", "/a"}, {"metadata.log.dir", "/a"}}, NULL},
        {{{"log.dirs", "/a"}, {"metadata.log.dir", "/b"}}, NULL},
        {{{"log.dirs", "/a/"}, {"cordoned.log.dirs", "/a"}}, NULL},
        {{{"log.dirs", "/a"}, {"cordoned.log.dirs", "/a/, *"}}, NULL},
        {{{"log.dirs", "/a"}, {"cordoned.log.dirs", "/a,/b"}}, "/b is not in log.dirs"},
        {{{"log.dirs", "/a,/b"}, {"cordoned.log.dirs", "/b,/a"}}, NULL},
        {{{"log.dirs", "/a"}, {"metadata.log.dir", "/b"}, {"cordoned.log.dirs", "/b"}},
         "/b is not in log.dirs"},
        {{{"log.roll.ms", "0"}}, "log.roll.ms"},
        {{{"log.retention.ms", "-1"}}, NULL},
        {{{"log.retention.hours", "-1"}}, NULL},
        {{{"log.retention.hours", "0"}}, "log.retention.hours"},
        {{{"log.retention.ms", "-5"}}, "log.retention.ms"},
        {{{"log.flush.interval.ms", "-1"}}, "log.flush.interval.ms"},
        {{{"replica.lag.time.max.ms", "100"}}, "replica.fetch.wait.max.ms"},
        {{{"offsets.topic.compression.codec", "5"}}, "offsets.topic.compression.codec"},
        {{{"offsets.topic.compression.codec", "-1"}}, "offsets.topic.compression.codec"},
    };
    finish_cases(cases, ARRAY_N(cases));
}

static int64_t finished_int(const char *key, const char *value, const char *read)
{
    struct config *c = new_config();
    CU_ASSERT_EQUAL(set(c, key, value), ERR_NONE);
    CU_ASSERT_EQUAL(config_finish(c, message, sizeof message), ERR_NONE);
    const int64_t v = config_int(c, read);
    config_free(c);
    return v;
}

static void test_config_node_id_from_others(void)
{
    CU_ASSERT_EQUAL(finished_int("broker.id", "7", "node.id"), 7);
    CU_ASSERT_EQUAL(finished_int("controller.quorum.voters", "5@h:1", "node.id"), 5);
    CU_ASSERT_EQUAL(finished_int("num.partitions", "5", "node.id"), -1);
}

static void test_config_coarse_units(void)
{
    CU_ASSERT_EQUAL(finished_int("log.roll.hours", "2", "log.roll.ms"), 7200000);
    CU_ASSERT_EQUAL(finished_int("log.roll.hours", "2147483647", "log.roll.ms"),
                    2147483647LL * 3600000);
    CU_ASSERT_EQUAL(finished_int("log.retention.minutes", "3", "log.retention.ms"), 180000);
    CU_ASSERT_EQUAL(finished_int("log.retention.minutes", "-1", "log.retention.ms"), -1);
    CU_ASSERT_EQUAL(
        finished_int("log.flush.scheduler.interval.ms", "1000", "log.flush.interval.ms"), 1000);
    struct config *c = new_config();
    CU_ASSERT_EQUAL(set(c, "log.retention.hours", "1"), ERR_NONE);
    CU_ASSERT_EQUAL(config_finish(c, message, sizeof message), ERR_NONE);
    CU_ASSERT_EQUAL(config_int(c, "log.retention.ms"), 3600000);
    CU_ASSERT_EQUAL(set(c, "log.retention.minutes", "1"), ERR_NONE); /* the finer one wins */
    CU_ASSERT_EQUAL(config_finish(c, message, sizeof message), ERR_NONE);
    CU_ASSERT_EQUAL(config_int(c, "log.retention.ms"), 60000);
    CU_ASSERT_EQUAL(set(c, "log.retention.ms", "5"), ERR_NONE);
    CU_ASSERT_EQUAL(config_finish(c, message, sizeof message), ERR_NONE);
    CU_ASSERT_EQUAL(config_int(c, "log.retention.ms"), 5);
    config_free(c);
}

/* "a b, metadata": what config_finish makes of them; or its message. */
static const char *log_dirs(const char *key, const char *value, const char *metadata)
{
    static char text[600];
    size_t n, at = 0;
    struct config *c = new_config();
    CU_ASSERT_EQUAL(set(c, key, value), ERR_NONE);
    if (metadata != NULL)
        CU_ASSERT_EQUAL(set(c, "metadata.log.dir", metadata), ERR_NONE);
    const enum err e = config_finish(c, message, sizeof message);
    if (e != ERR_NONE) {
        config_free(c);
        return message;
    }
    CU_ASSERT_EQUAL(config_finish(c, message, sizeof message), ERR_NONE); /* again */
    const char *const *v = config_log_dirs(c, &n);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s ", v[i]);
    snprintf(text + at - 1, sizeof text - at + 1, ", %s", config_metadata_log_dir(c));
    config_free(c);
    return text;
}

static void test_config_log_dirs(void)
{
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dir", "/one/", NULL), "/one, /one");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", " /two,", NULL), "/two, /two");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", "/", NULL), "/, /");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", "/a, /b/,c", NULL), "/a /b c, /a");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", "/a,/b", "/b/"), "/a /b, /b");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", "/a,/b", "/m"), "/a /b, /m");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", ",", NULL), "log.dirs=, names no directory");
    CU_ASSERT_STRING_EQUAL(log_dirs("log.dirs", "/a,/b,/a/", NULL),
                           "log.dirs=/a,/b,/a/ names a directory twice");
}

TEST_MAIN(TEST(test_config_tables_are_sorted_with_valid_defaults),
          TEST(test_config_table_has_the_keys_of_kafka), TEST(test_config_numbers),
          TEST(test_config_texts), TEST(test_config_topic_and_group_texts),
          TEST(test_config_hides_passwords_and_refuses_zero_characters),
          TEST(test_config_values_and_their_sources), TEST(test_config_out_of_memory),
          TEST(test_config_finish_checks_keys_together), TEST(test_config_node_id_from_others),
          TEST(test_config_coarse_units), TEST(test_config_log_dirs))
