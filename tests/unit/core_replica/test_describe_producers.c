/* DescribeProducers: what a partition knows, at the leader and elsewhere. */
#include "fixture.h"

struct answer {
    struct describe_producers_response_partition_response part;
    struct arena arena;
};

static void ask(struct fix *f, struct answer *a, const char *topic, int32_t index)
{
    arena_init(&a->arena, NULL);
    wire_default(&wire_describe_producers_response_partition_response, &a->part);
    CU_ASSERT_EQUAL_FATAL(
        replicas_describe_producers(f->rs, str_of(topic), index, &a->arena, &a->part), ERR_NONE);
    CU_ASSERT_EQUAL(a->part.partition_index, index);
}

static int16_t error_of(struct fix *f, const char *topic, int32_t index)
{
    struct answer a;
    ask(f, &a, topic, index);
    CU_ASSERT_EQUAL(a.part.active_producers.n, 0);
    arena_close(&a.arena);
    return a.part.error_code;
}

static int16_t append(struct fix *f, struct uuid t, int64_t id, int16_t epoch, int32_t sequence,
                      int32_t records_n, int16_t attributes)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.producer_id = id;
    b.producer_epoch = epoch;
    b.base_sequence = sequence;
    b.records_n = records_n;
    b.timestamp = f->now.wall_ms - 1000 + sequence;
    b.attributes = attributes;
    fix_produce(f, &p, t, 0, 1, &b);
    fix_turn(f);
    fix_produce_close(&p);
    return p.part.error;
}

static void check(struct fix *f, int32_t i, int64_t id, int16_t epoch, int32_t sequence,
                  int64_t txn_start)
{
    struct answer a;
    ask(f, &a, "t", 0);
    CU_ASSERT_FATAL(a.part.error_code == K_NONE && i < a.part.active_producers.n);
    const struct describe_producers_response_producer_state *p = &a.part.active_producers.v[i];
    CU_ASSERT(p->producer_id == id && p->producer_epoch == epoch && p->last_sequence == sequence);
    CU_ASSERT_EQUAL(p->last_timestamp, f->now.wall_ms - 1000 + sequence);
    CU_ASSERT(p->coordinator_epoch == -1 && p->current_txn_start_offset == txn_start);
    arena_close(&a.arena);
}

static void test_describe_producers_tells_the_last_batch(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(error_of(&f, "t", 0), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE); /* of nobody */
    CU_ASSERT_EQUAL(error_of(&f, "t", 0), K_NONE);
    CU_ASSERT_EQUAL(append(&f, t, 9, 0, 0, 1, 0), K_NONE);
    CU_ASSERT_EQUAL(append(&f, t, 4, 2, 0, 3, BATCH_TRANSACTIONAL), K_NONE);
    CU_ASSERT_EQUAL(append(&f, t, 9, 0, 1, 1, 0), K_NONE);
    check(&f, 0, 4, 2, 2, 4);
    check(&f, 1, 9, 0, 1, -1);
    CU_ASSERT_EQUAL(append(&f, t, 9, 1, 0, 1, 0), K_NONE); /* a new epoch */
    check(&f, 1, 9, 1, 0, -1);
    fix_change(&f, t, 0, 2, NULL, 0); /* another leads: a follower answers too */
    check(&f, 1, 9, 1, 0, -1);
    fix_end(&f);
}

static void test_describe_producers_refused(void)
{
    struct fix f = {0};
    int32_t others[] = {2, 3};
    fix_begin(&f);
    fix_topic(&f, "t", 1);
    fix_topic_of(&f, "elsewhere", 1, others, 2);
    CU_ASSERT_EQUAL(error_of(&f, "none", 0), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(error_of(&f, "t", 1), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(error_of(&f, "t", -1), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(error_of(&f, "elsewhere", 0), K_NOT_LEADER_OR_FOLLOWER);
    log_dir_fail(&f.rs->dirs[0], ERR_IO, "test");
    CU_ASSERT_EQUAL(error_of(&f, "t", 0), K_KAFKA_STORAGE_ERROR);
    fix_end(&f);
}

static void test_describe_producers_without_memory(void)
{
    struct fix f = {0};
    struct answer a;
    struct budget none;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(append(&f, t, 9, 0, 0, 1, 0), K_NONE);
    budget_init(&none, NULL, 0);
    arena_init(&a.arena, &none);
    wire_default(&wire_describe_producers_response_partition_response, &a.part);
    CU_ASSERT_EQUAL(replicas_describe_producers(f.rs, STR_LIT("t"), 0, &a.arena, &a.part),
                    ERR_NOMEM);
    arena_close(&a.arena);
    fix_end(&f);
}

TEST_MAIN(TEST(test_describe_producers_tells_the_last_batch), TEST(test_describe_producers_refused),
          TEST(test_describe_producers_without_memory))
