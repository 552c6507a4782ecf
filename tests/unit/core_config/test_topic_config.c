/* A topic's effective values: its own, else the broker's, else the default. */
#include "core/config/config.h"

#include <limits.h>
#include <stdlib.h>

#include "support/test.h"

static char message[512];

/* Pairs of key and value, NULL at the end. */
static const char *own_value(void *ctx, const char *key)
{
    for (const char *const *pairs = ctx; pairs[0] != NULL; pairs += 2)
        if (strcmp(pairs[0], key) == 0)
            return pairs[1];
    return NULL;
}

static struct config *broker(const char *const *pairs)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    for (; pairs[0] != NULL; pairs += 2)
        CU_ASSERT_EQUAL_FATAL(config_set(c, str_of(pairs[0]), str_of(pairs[1]), CONFIG_SET, NULL,
                                         NULL, message, sizeof message),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(c, message, sizeof message), ERR_NONE);
    return c;
}

static struct topic_config resolve(const char *const *broker_pairs, const char *const *topic_pairs)
{
    struct config *c = broker(broker_pairs);
    struct topic_config t;
    topic_config_resolve(c, own_value, (void *)topic_pairs, &t);
    config_free(c);
    return t;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void test_topic_config_defaults_are_kafkas(void)
{
    const struct topic_config t = resolve(PAIRS(), PAIRS());
    CU_ASSERT_EQUAL(t.log.segment_bytes, 1 << 30);
    CU_ASSERT_EQUAL(t.log.segment_ms, 7LL * 24 * 3600 * 1000);
    CU_ASSERT_EQUAL(t.log.segment_jitter_ms, 0);
    CU_ASSERT_EQUAL(t.log.segment_index_bytes, 10 << 20);
    CU_ASSERT_EQUAL(t.log.index_interval_bytes, 4096);
    CU_ASSERT_EQUAL(t.log.flush_messages, INT64_MAX);
    CU_ASSERT_EQUAL(t.log.flush_ms, INT64_MAX);
    CU_ASSERT(!t.log.preallocate && !t.log.compacted);
    CU_ASSERT_EQUAL(t.log.producer_id_expiration_ms, 86400000);
    CU_ASSERT_EQUAL(t.min_insync_replicas, 1);
    CU_ASSERT(t.delete_ && !t.compact);
    CU_ASSERT_EQUAL(t.file_delete_delay_ms, 60000);
    CU_ASSERT_EQUAL(t.validate.max_message_bytes, 1048588);
    CU_ASSERT_EQUAL(t.validate.timestamp_after_max_ms, 3600000);
    CU_ASSERT_EQUAL(t.validate.timestamp_before_max_ms, INT64_MAX);
    CU_ASSERT_EQUAL(t.validate.compression, -1); /* the producer's */
    CU_ASSERT_EQUAL(t.validate.compression_level, INT_MIN);
    CU_ASSERT(!t.validate.log_append_time && !t.validate.compacted);
}

static void test_topic_config_falls_back_to_the_broker(void)
{
    const struct topic_config t =
        resolve(PAIRS("log.segment.bytes", "2000000", "log.roll.hours", "3",
                      "log.flush.interval.messages", "1", "log.flush.scheduler.interval.ms", "77",
                      "message.max.bytes", "500", "log.message.timestamp.type", "LogAppendTime",
                      "log.preallocate", "true", "log.cleanup.policy", "compact, delete",
                      "min.insync.replicas", "2", "compression.type", "gzip",
                      "compression.gzip.level", "7", "log.segment.delete.delay.ms", "5"),
                PAIRS());
    CU_ASSERT_EQUAL(t.log.segment_bytes, 2000000);
    CU_ASSERT_EQUAL(t.log.segment_ms, 3 * 3600000);
    CU_ASSERT_EQUAL(t.log.flush_messages, 1);
    CU_ASSERT_EQUAL(t.log.flush_ms, 77);
    CU_ASSERT_EQUAL(t.validate.max_message_bytes, 500);
    CU_ASSERT(t.validate.log_append_time && t.log.preallocate);
    CU_ASSERT(t.compact && t.delete_ && t.validate.compacted && t.log.compacted);
    CU_ASSERT_EQUAL(t.min_insync_replicas, 2);
    CU_ASSERT_EQUAL(t.validate.compression, 1);
    CU_ASSERT_EQUAL(t.validate.compression_level, 7);
    CU_ASSERT_EQUAL(t.file_delete_delay_ms, 5);
    CU_ASSERT_EQUAL(t.validate.segment_bytes, 2000000);
}

static void test_topic_config_own_values_win(void)
{
    const struct topic_config t =
        resolve(PAIRS("log.roll.ms", "5", "min.insync.replicas", "2", "log.preallocate", "true"),
                PAIRS("segment.ms", "9", "min.insync.replicas", "1", "preallocate", " false",
                      "compression.type", "zstd", "compression.zstd.level", "-5", "cleanup.policy",
                      "compact"));
    CU_ASSERT_EQUAL(t.log.segment_ms, 9);
    CU_ASSERT_EQUAL(t.min_insync_replicas, 1);
    CU_ASSERT(!t.log.preallocate);
    CU_ASSERT_EQUAL(t.validate.compression, 4);
    CU_ASSERT_EQUAL(t.validate.compression_level, -5);
    CU_ASSERT(t.compact && !t.delete_);
}

static void test_topic_config_blanks_are_none_of_a_value(void)
{
    const struct topic_config t =
        resolve(PAIRS("compression.type", " lz4 "),
                PAIRS("message.timestamp.type", "LogAppendTime\n", "preallocate", " TRUE ",
                      "segment.ms", " +7 ", "cleanup.policy", " compact , compact "));
    CU_ASSERT_EQUAL(t.validate.compression, 3);
    CU_ASSERT(t.validate.log_append_time && t.log.preallocate);
    CU_ASSERT_EQUAL(t.log.segment_ms, 7);
    CU_ASSERT(t.compact && !t.delete_);
}

/* From a metadata log of someone else's. */
static void test_topic_config_invalid_own_values_count_as_unset(void)
{
    const struct topic_config t =
        resolve(PAIRS("log.segment.bytes", "3000000"),
                PAIRS("segment.bytes", "1", "segment.ms", "soon", "cleanup.policy", "burn"));
    CU_ASSERT_EQUAL(t.log.segment_bytes, 3000000);
    CU_ASSERT_EQUAL(t.log.segment_ms, 604800000);
    CU_ASSERT(t.delete_);
}

static void test_topic_config_text(void)
{
    struct config *c = broker(PAIRS("log.retention.hours", "2"));
    const char *const *own = PAIRS("segment.ms", "9");
    CU_ASSERT_STRING_EQUAL(topic_config_text(c, "retention.ms", NULL, NULL), "7200000");
    CU_ASSERT_STRING_EQUAL(topic_config_text(c, "segment.ms", own_value, (void *)own), "9");
    CU_ASSERT_STRING_EQUAL(topic_config_text(c, "segment.ms", NULL, NULL), "604800000");
    CU_ASSERT_STRING_EQUAL(topic_config_text(c, "remote.storage.enable", NULL, NULL), "false");
    config_free(c);
}

static bool fits(const char *const *broker_pairs, const char *const *own, const char *names)
{
    struct config *c = broker(broker_pairs);
    message[0] = '\0';
    const enum err e = topic_config_check(c, own_value, (void *)own, message, sizeof message);
    CU_ASSERT(e == ERR_NONE || (e == ERR_INVALID && strstr(message, names) != NULL));
    config_free(c);
    return e == ERR_NONE;
}

static void test_topic_config_keys_that_concern_each_other(void)
{
    CU_ASSERT(fits(PAIRS(), PAIRS(), ""));
    CU_ASSERT(fits(PAIRS(), PAIRS("min.compaction.lag.ms", "5", "max.compaction.lag.ms", "5"), ""));
    CU_ASSERT(!fits(PAIRS(), PAIRS("min.compaction.lag.ms", "6", "max.compaction.lag.ms", "5"),
                    "max.compaction.lag.ms (5)"));
    CU_ASSERT(!fits(PAIRS("log.cleaner.max.compaction.lag.ms", "5"),
                    PAIRS("min.compaction.lag.ms", "6"), "min.compaction.lag.ms (6)"));
    CU_ASSERT(!fits(PAIRS(), PAIRS("remote.storage.enable", " true"), "remote.storage.enable"));
}

static void test_topic_config_typed_values(void)
{
    struct config *c = broker(PAIRS("unclean.leader.election.enable", " True"));
    const char *const *own = PAIRS("min.insync.replicas", " 3");
    CU_ASSERT(topic_config_bool(c, "unclean.leader.election.enable", NULL, NULL));
    CU_ASSERT_EQUAL(topic_config_int(c, "min.insync.replicas", own_value, (void *)own), 3);
    config_free(c);
}

TEST_MAIN(TEST(test_topic_config_defaults_are_kafkas),
          TEST(test_topic_config_falls_back_to_the_broker), TEST(test_topic_config_own_values_win),
          TEST(test_topic_config_blanks_are_none_of_a_value),
          TEST(test_topic_config_invalid_own_values_count_as_unset), TEST(test_topic_config_text),
          TEST(test_topic_config_keys_that_concern_each_other),
          TEST(test_topic_config_typed_values))
