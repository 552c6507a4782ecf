/* Loader, controller and the real raft on one disk that loses what was not synced: what was
 * answered is there after every power cut, and every partition gets its leader back. */
#include <stdio.h>
#include <stdlib.h>

#include "support/sole_voter.h"

static struct machine {
    struct arena arena;
    int64_t epoch; /* of broker 1 */
    uint8_t incarnation;
} m;

/* What was not synced is lost or not. The old process closes files that it cannot use any more. */
static void power_cut(void)
{
    memfs_crash(&q.fs, &q.rng);
    sole_stop();
}

static void machine_new(uint64_t seed)
{
    memset(&m, 0, sizeof m);
    sole_open(seed);
    arena_init(&m.arena, NULL);
    CU_ASSERT_EQUAL_FATAL(config_new(&q.config), ERR_NONE);
}

static void machine_free(void)
{
    config_free(q.config);
    arena_close(&m.arena);
    sole_close();
}

/* ------------------------------------------------------------------ operations */

static void join(int64_t previous_epoch)
{
    const int64_t epoch = sole_join(1, ++m.incarnation, previous_epoch,
                                    (struct broker_registration_request_listener){
                                        STR_LIT("PLAINTEXT"), STR_LIT("localhost"), 9092, 0});
    CU_ASSERT(epoch > m.epoch);
    m.epoch = epoch;
}

struct creating {
    struct sole_op op;
    char name[16];
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request req;
    struct create_topics_response resp;
};

static void begin_create(struct creating *c, int number)
{
    *c = (struct creating){.op = {.op = {.done = sole_op_done}}};
    snprintf(c->name, sizeof c->name, "t%d", number);
    c->topic = (struct create_topics_request_creatable_topic){
        .name = str_of(c->name), .num_partitions = 2, .replication_factor = 1};
    wire_default(&wire_create_topics_request, &c->req);
    wire_default(&wire_create_topics_response, &c->resp);
    c->req.topics.v = &c->topic;
    c->req.topics.n = 1;
    controller_create_topics(q.controller, &c->op.op, &c->req, 7, &m.arena, &c->resp, q.now);
}

/* Every partition is led by broker 1; the number of topics. */
static size_t leaders_everywhere(void)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&q.image.topics_by_id, e)) != NULL) {
        struct image_topic *t = map_value(e);
        CU_ASSERT_EQUAL(t->partitions_n, 2);
        for (int32_t i = 0; i < t->partitions_n; i++) {
            CU_ASSERT_EQUAL(t->partitions[i].leader, 1);
            CU_ASSERT_EQUAL(t->partitions[i].isr_n, 1);
        }
    }
    return q.image.topics_by_id.n;
}

/* ------------------------------------------------------------------ tests */

static void test_controller_raft_fresh(void)
{
    machine_new(1);
    sole_boot();
    CU_ASSERT_EQUAL(image_metadata_version(&q.image), 33);
    CU_ASSERT_EQUAL(image_feature_level(&q.image, "transaction.version"), 2);
    CU_ASSERT_STRING_EQUAL(image_config_value(&q.image, CONFIG_RESOURCE_BROKER, STR_LIT(""),
                                              STR_LIT("min.insync.replicas")),
                           "1");
    join(-1);
    struct creating c;
    begin_create(&c, 0);
    CU_ASSERT_EQUAL(sole_wait(&c.op), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(leaders_everywhere(), 1);
    sole_stop();
    machine_free();
}

/* Ten lives, each ended by a power cut with creations in flight. */
static void test_controller_raft_power_cuts(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int number = 0, answered[512], answered_n = 0;
        machine_new(seed);
        for (int life = 0; life < 10; life++) {
            sole_boot();
            join(-1);
            (void)leaders_everywhere();
            for (int i = 0; i < answered_n; i++) {
                char name[16];
                snprintf(name, sizeof name, "t%d", answered[i]);
                CU_ASSERT_PTR_NOT_NULL(image_topic_named(&q.image, str_of(name)));
            }
            struct creating c[8];
            const int n = (int)rng_below(&q.rng, 8);
            for (int i = 0; i < n; i++, number++) {
                begin_create(&c[i], number);
                if (rng_percent(&q.rng, 50))
                    sole_settle();
                else if (rng_percent(&q.rng, 50))
                    (void)raft_settle(q.raft, q.now);
            }
            for (int i = 0; i < n; i++) {
                if (c[i].op.done == 1 && c[i].op.error == K_NONE)
                    answered[answered_n++] = number - n + i;
            }
            power_cut();
        }
        machine_free();
    }
}

static enum err add_framed(void *ctx, struct bytes framed)
{
    return record_list_add_framed(ctx, framed);
}

/* A snapshot replaces the log's beginning and says the same. */
static void test_controller_raft_snapshot(void)
{
    struct record_list rl;
    struct bytes *values;
    machine_new(3);
    sole_boot();
    join(-1);
    for (int i = 0; i < 20; i++) {
        struct creating c;
        begin_create(&c, i);
        CU_ASSERT_EQUAL(sole_wait(&c.op), K_NONE);
    }
    record_list_init(&rl);
    CU_ASSERT_EQUAL_FATAL(image_snapshot(&q.image, add_framed, &rl), ERR_NONE);
    values = calloc(rl.n, sizeof *values);
    for (size_t i = 0; i < rl.n; i++)
        values[i] = record_list_get(&rl, i);
    CU_ASSERT_EQUAL(raft_snapshot(q.raft, q.image.next_offset, values, rl.n, q.now), ERR_NONE);
    sole_settle();
    free(values);
    record_list_close(&rl);
    q.snapshots = 0;
    sole_stop();
    sole_boot();
    CU_ASSERT_EQUAL(q.snapshots, 1);
    join(m.epoch);
    CU_ASSERT_EQUAL(leaders_everywhere(), 20);
    CU_ASSERT_EQUAL(image_metadata_version(&q.image), 33);
    sole_stop();
    machine_free();
}

TEST_MAIN(TEST(test_controller_raft_fresh), TEST(test_controller_raft_power_cuts),
          TEST(test_controller_raft_snapshot))
