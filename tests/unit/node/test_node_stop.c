/* How long a clean stop may take: as long as it gets on, with many logs on a slow disk; not when
 * the disk does nothing any more. */
#include "base/check.h"
#include "node_bench.h"
#include "wire/batch.h"
#include "wire/error.h"

static const char settings[] = "log.dirs=/machine/data\n"
                               "listeners=PLAINTEXT://127.0.0.1:9092\n"
                               "dohle.memory.max.bytes=16777216\n"
                               "broker.session.timeout.ms=60000\n";

enum { PARTITIONS = 40 };

static struct uuid create_topic(void)
{
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request req;
    struct arena a;
    arena_init(&a, NULL);
    wire_default(&wire_create_topics_request_creatable_topic, &topic);
    wire_default(&wire_create_topics_request, &req);
    topic.name = STR_LIT("t");
    topic.num_partitions = PARTITIONS;
    topic.replication_factor = 1;
    req.topics.v = &topic;
    req.topics.n = 1;
    const struct create_topics_response *resp = ask(API_CREATE_TOPICS, 7, &req, &a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(resp);
    CU_ASSERT_EQUAL_FATAL(resp->topics.v[0].error_code, K_NONE);
    const struct uuid id = resp->topics.v[0].topic_id;
    arena_close(&a);
    return id;
}

/* One record to each partition. */
static void produce(struct uuid topic_id)
{
    static const uint8_t value[100];
    const struct batch_builder_args args = {.leader_epoch = -1,
                                            .producer_id = -1,
                                            .producer_epoch = -1,
                                            .base_sequence = -1,
                                            .level = INT32_MIN};
    struct produce_request_partition_produce_data parts[PARTITIONS];
    struct produce_request_topic_produce_data topic;
    struct produce_request req;
    struct batch_builder *bb;
    struct bytes records;
    struct arena a;
    CHECK(batch_builder_new(&args, &bb) == ERR_NONE);
    CHECK(batch_builder_add(bb, b.now.wall_ms, (struct bytes){NULL, -1},
                            (struct bytes){value, sizeof value}, NULL, 0) == ERR_NONE);
    CHECK(batch_builder_finish(bb, &records) == ERR_NONE);
    wire_default(&wire_produce_request_topic_produce_data, &topic);
    wire_default(&wire_produce_request, &req);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        wire_default(&wire_produce_request_partition_produce_data, &parts[i]);
        parts[i].index = i;
        parts[i].records.p = records.p;
        parts[i].records.n = records.n;
    }
    topic.topic_id = topic_id;
    topic.partition_data.v = parts;
    topic.partition_data.n = PARTITIONS;
    req.acks = -1;
    req.timeout_ms = 5000;
    req.topic_data.v = &topic;
    req.topic_data.n = 1;
    arena_init(&a, NULL);
    const struct produce_response *resp = ask(API_PRODUCE, 13, &req, &a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(resp);
    for (int32_t i = 0; i < PARTITIONS; i++)
        CU_ASSERT_EQUAL(resp->responses.v[0].partition_responses.v[i].error_code, K_NONE);
    arena_close(&a);
    batch_builder_free(bb);
}

static void begin(void)
{
    machine_new(1, settings);
    CU_ASSERT_TRUE_FATAL(node_begin());
    produce(create_topic());
    link_disconnect(&b.link, b.now);
    node_stop(b.node, b.now);
}

/* A second goes by in which the disk finishes so many jobs. */
static void second(size_t jobs)
{
    for (size_t i = 0; i < jobs; i++)
        (void)memenv_run_job(&b.env);
    b.now.mono_us += SECOND_US;
    b.now.wall_ms += 1000;
    for (int i = 0; i < 5; i++)
        (void)node_turn(b.node, b.now);
}

static void test_stop_takes_as_long_as_it_gets_on(void)
{
    int seconds = 0;
    begin();
    for (; seconds < 5 * PARTITIONS && !ended(); seconds++)
        second(1);
    CU_ASSERT(seconds > PARTITIONS);
    CU_ASSERT_EQUAL(node_state(b.node), NODE_STOPPED);
    node_bury();
    machine_free();
}

static void test_stop_ends_where_nothing_moves(void)
{
    int seconds = 0;
    begin();
    for (; seconds < 20; seconds++)
        second(1);
    for (; seconds < 100 && !ended(); seconds++)
        second(0);
    CU_ASSERT(seconds <= 20 + 30);
    CU_ASSERT_EQUAL(node_state(b.node), NODE_FAILED);
    node_bury();
    CU_ASSERT_PTR_NOT_NULL(strstr(b.message, "stopping"));
    machine_free();
}

TEST_MAIN(TEST(test_stop_takes_as_long_as_it_gets_on), TEST(test_stop_ends_where_nothing_moves))
