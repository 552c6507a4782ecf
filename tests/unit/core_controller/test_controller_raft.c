/* Loader, controller and the real raft on one disk that loses what was not synced: what was
 * answered is there after every power cut, and every partition gets its leader back. */
#include <stdio.h>
#include <stdlib.h>

#include "core/controller/controller.h"
#include "core/metadata/features.h"
#include "core/metadata/loader.h"
#include "core/metadata/records.h"
#include "support/memenv.h"
#include "support/test.h"

#define DIR "/d/__cluster_metadata-0"
#define DIRECTORY ((struct uuid){{7}})

static struct machine {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct config *config;
    struct raft_load load;
    struct raft *raft;
    struct image image;
    struct loader *loader;
    struct controller *controller;
    struct arena arena;
    struct now now;
    bool loaded, closed;
    int snapshots;
    int64_t epoch; /* of broker 1 */
    uint8_t incarnation;
    struct rng rng;
} m;

static void publish(void *ctx, const struct image_delta *d)
{
    (void)ctx;
    (void)d;
}

static void on_snapshot(void *ctx, int64_t offset, int32_t epoch, struct bytes batches)
{
    (void)ctx;
    m.snapshots++;
    CU_ASSERT_EQUAL_FATAL(loader_snapshot(m.loader, offset, epoch, batches), ERR_NONE);
    controller_committed(m.controller, offset, m.now);
}

static void on_committed(void *ctx, const struct batch *b)
{
    (void)ctx;
    CU_ASSERT_EQUAL_FATAL(loader_committed(m.loader, b), ERR_NONE);
    controller_committed(m.controller, batch_next_offset(b), m.now);
}

static void on_leader(void *ctx, int32_t leader_id, int32_t epoch)
{
    (void)ctx;
    (void)leader_id;
    (void)epoch;
}

static void on_claim(void *ctx, int32_t epoch)
{
    (void)ctx;
    controller_claim(m.controller, epoch, m.now);
}

static void on_resign(void *ctx, int32_t epoch)
{
    (void)ctx;
    (void)epoch;
    controller_resign(m.controller);
}

static void on_snapshot_due(void *ctx)
{
    (void)ctx;
}

static void on_failed(void *ctx, enum err e, const char *what)
{
    (void)ctx;
    CU_FAIL(what);
    fprintf(stderr, "%s: %s\n", what, err_name(e));
}

static void on_loaded(struct raft_load *rl)
{
    (void)rl;
    m.loaded = true;
}

static void format_disk(void)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    struct record_list rl;
    struct bytes values[16];
    record_list_init(&rl);
    for (size_t i = 0; i < n; i++) {
        const struct feature_level_record r = {str_of(ranges[i].name), ranges[i].fresh};
        if (r.feature_level > 0)
            CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, &msg_feature_level_record, 0, &r), ERR_NONE);
    }
    for (size_t i = 0; i < rl.n; i++)
        values[i] = record_list_get(&rl, i);
    const struct raft_format f = {
        .node_id = 1,
        .directory_id = DIRECTORY,
        .endpoint = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), 9092},
        .records = values,
        .records_n = rl.n,
        .now = m.now,
    };
    CU_ASSERT_EQUAL_FATAL(raft_format_standalone(&m.fs.disk, DIR, &f), ERR_NONE);
    record_list_close(&rl);
}

static void settle(void)
{
    bool moved = true;
    while (moved) {
        moved = memenv_run_jobs(&m.env) + memenv_reap_jobs(&m.env) > 0;
        if (m.raft != NULL) {
            moved |= raft_settle(m.raft, m.now);
            moved |= controller_settle(m.controller, m.now);
        }
        moved |= m.env.waiting_n > 0;
    }
}

static void boot(void)
{
    m.load = (struct raft_load){
        .env = &m.env.env,
        .timers = &m.timers,
        .dir = DIR,
        .config = {.election_timeout_ms = 1000,
                   .fetch_timeout_ms = 2000,
                   .snapshot_max_new_bytes = 1 << 20,
                   .snapshot_max_interval_ms = 3600000,
                   .log = {.segment_bytes = 1 << 20,
                           .segment_ms = INT64_MAX,
                           .segment_index_bytes = 1 << 20,
                           .index_interval_bytes = 4096,
                           .flush_messages = INT64_MAX,
                           .flush_ms = INT64_MAX,
                           .max_compaction_lag_ms = INT64_MAX,
                           .producer_id_expiration_ms = INT64_MAX}},
        .node_id = 1,
        .directory_id = DIRECTORY,
        .cluster_id = "cluster",
        .endpoint = {STR_LIT("PLAINTEXT"), STR_LIT("localhost"), 9092},
        .events = {.snapshot = on_snapshot,
                   .committed = on_committed,
                   .leader = on_leader,
                   .claim = on_claim,
                   .resign = on_resign,
                   .snapshot_due = on_snapshot_due,
                   .failed = on_failed},
        .now = m.now,
        .done = on_loaded,
    };
    static struct voter_set none;
    m.load.static_voters = &none;
    m.load.may_vote = true;
    m.loaded = false;
    raft_load_start(&m.load);
    settle();
    CU_ASSERT_TRUE_FATAL(m.loaded);
    if (m.load.err != ERR_NONE)
        fprintf(stderr, "%s\n", m.load.message);
    CU_ASSERT_EQUAL_FATAL(m.load.err, ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(raft_open(&m.load, &m.raft), ERR_NONE);
    image_init(&m.image, rng_u64(&m.rng));
    CU_ASSERT_EQUAL_FATAL(loader_new(&m.image, publish, NULL, &m.loader), ERR_NONE);
    const struct controller_args args = {.env = &m.env.env,
                                         .timers = &m.timers,
                                         .raft = m.raft,
                                         .config = m.config,
                                         .committed = &m.image,
                                         .cluster_id = "cluster",
                                         .node_id = 1,
                                         .seed = 5};
    CU_ASSERT_EQUAL_FATAL(controller_new(&args, &m.controller), ERR_NONE);
    for (int i = 0; i < 20 && !controller_is_active(m.controller); i++) {
        settle();
        m.now.mono_us += 500000;
        timers_run(&m.timers, m.now.mono_us);
    }
    CU_ASSERT_TRUE_FATAL(controller_is_active(m.controller));
    settle();
}

static void raft_gone(void *ctx, enum err e)
{
    (void)ctx;
    (void)e;
    m.closed = true;
}

static void stop(void)
{
    controller_resign(m.controller);
    m.closed = false;
    raft_close(m.raft, raft_gone, NULL);
    m.raft = NULL;
    settle();
    CU_ASSERT_TRUE_FATAL(m.closed);
    controller_free(m.controller);
    loader_free(m.loader);
    image_close(&m.image);
    raft_load_close(&m.load);
}

/* What was not synced is lost or not. The old process closes files that it cannot use any more. */
static void power_cut(void)
{
    memfs_crash(&m.fs, &m.rng);
    stop();
}

static void machine_new(uint64_t seed)
{
    memset(&m, 0, sizeof m);
    m.rng.state = seed;
    m.now = (struct now){1000000, 1700000000000};
    memfs_init(&m.fs, seed);
    memfs_mkdirs(&m.fs, "/d");
    memenv_init(&m.env, &m.fs, seed);
    timers_init(&m.timers);
    arena_init(&m.arena, NULL);
    CU_ASSERT_EQUAL_FATAL(config_new(&m.config), ERR_NONE);
    format_disk();
}

static void machine_free(void)
{
    config_free(m.config);
    arena_close(&m.arena);
    timers_close(&m.timers);
    memenv_close(&m.env);
    memfs_close(&m.fs);
}

/* ------------------------------------------------------------------ operations */

struct test_op {
    struct controller_op op;
    int done;
    int16_t error;
};

static void op_done(struct controller_op *op, int16_t error)
{
    struct test_op *t = (struct test_op *)(void *)op;
    t->done++;
    t->error = error;
}

static int16_t wait(struct test_op *t)
{
    settle();
    CU_ASSERT_EQUAL_FATAL(t->done, 1);
    return t->error;
}

static void join(int64_t previous_epoch)
{
    struct broker_registration_request req;
    struct broker_registration_response resp;
    struct broker_heartbeat_request beat;
    struct broker_heartbeat_response beaten;
    struct broker_registration_request_feature features[16];
    struct broker_registration_request_listener listener = {STR_LIT("PLAINTEXT"),
                                                            STR_LIT("localhost"), 9092, 0};
    struct uuid dir = DIRECTORY;
    struct test_op op = {.op = {.done = op_done}}, op2 = {.op = {.done = op_done}};
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    for (size_t i = 0; i < n; i++)
        features[i] = (struct broker_registration_request_feature){str_of(ranges[i].name),
                                                                   ranges[i].min, ranges[i].max};
    wire_default(&wire_broker_registration_request, &req);
    req.broker_id = 1;
    req.cluster_id = STR_LIT("cluster");
    req.incarnation_id.b[0] = ++m.incarnation;
    req.listeners.v = &listener;
    req.listeners.n = 1;
    req.features.v = features;
    req.features.n = (int32_t)n;
    req.log_dirs.v = &dir;
    req.log_dirs.n = 1;
    req.previous_broker_epoch = previous_epoch;
    wire_default(&wire_broker_registration_response, &resp);
    controller_register_broker(m.controller, &op.op, &req, &resp, m.now);
    CU_ASSERT_EQUAL_FATAL(wait(&op), K_NONE);
    CU_ASSERT(resp.broker_epoch > m.epoch);
    m.epoch = resp.broker_epoch;
    wire_default(&wire_broker_heartbeat_request, &beat);
    wire_default(&wire_broker_heartbeat_response, &beaten);
    beat.broker_id = 1;
    beat.broker_epoch = m.epoch;
    beat.current_metadata_offset = m.image.next_offset - 1;
    controller_heartbeat(m.controller, &op2.op, &beat, &beaten, m.now);
    CU_ASSERT_EQUAL_FATAL(wait(&op2), K_NONE);
    CU_ASSERT_FALSE(beaten.is_fenced);
}

struct creating {
    struct test_op op;
    char name[16];
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request req;
    struct create_topics_response resp;
};

static void begin_create(struct creating *c, int number)
{
    *c = (struct creating){.op = {.op = {.done = op_done}}};
    snprintf(c->name, sizeof c->name, "t%d", number);
    c->topic = (struct create_topics_request_creatable_topic){
        .name = str_of(c->name), .num_partitions = 2, .replication_factor = 1};
    wire_default(&wire_create_topics_request, &c->req);
    wire_default(&wire_create_topics_response, &c->resp);
    c->req.topics.v = &c->topic;
    c->req.topics.n = 1;
    controller_create_topics(m.controller, &c->op.op, &c->req, 7, &m.arena, &c->resp, m.now);
}

/* Every partition is led by broker 1; the number of topics. */
static size_t leaders_everywhere(void)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&m.image.topics_by_id, e)) != NULL) {
        struct image_topic *t = map_value(e);
        CU_ASSERT_EQUAL(t->partitions_n, 2);
        for (int32_t i = 0; i < t->partitions_n; i++) {
            CU_ASSERT_EQUAL(t->partitions[i].leader, 1);
            CU_ASSERT_EQUAL(t->partitions[i].isr_n, 1);
        }
    }
    return m.image.topics_by_id.n;
}

/* ------------------------------------------------------------------ tests */

static void test_controller_raft_fresh(void)
{
    machine_new(1);
    boot();
    CU_ASSERT_EQUAL(image_metadata_version(&m.image), 33);
    CU_ASSERT_EQUAL(image_feature_level(&m.image, "transaction.version"), 2);
    CU_ASSERT_STRING_EQUAL(image_config_value(&m.image, CONFIG_RESOURCE_BROKER, STR_LIT(""),
                                              STR_LIT("min.insync.replicas")),
                           "1");
    join(-1);
    struct creating c;
    begin_create(&c, 0);
    CU_ASSERT_EQUAL(wait(&c.op), K_NONE);
    CU_ASSERT_EQUAL(c.resp.topics.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(leaders_everywhere(), 1);
    stop();
    machine_free();
}

/* Ten lives, each ended by a power cut with creations in flight. */
static void test_controller_raft_power_cuts(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int number = 0, answered[512], answered_n = 0;
        machine_new(seed);
        for (int life = 0; life < 10; life++) {
            boot();
            join(-1);
            (void)leaders_everywhere();
            for (int i = 0; i < answered_n; i++) {
                char name[16];
                snprintf(name, sizeof name, "t%d", answered[i]);
                CU_ASSERT_PTR_NOT_NULL(image_topic_named(&m.image, str_of(name)));
            }
            struct creating c[8];
            const int n = (int)rng_below(&m.rng, 8);
            for (int i = 0; i < n; i++, number++) {
                begin_create(&c[i], number);
                if (rng_percent(&m.rng, 50))
                    settle();
                else if (rng_percent(&m.rng, 50))
                    (void)raft_settle(m.raft, m.now);
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
    boot();
    join(-1);
    for (int i = 0; i < 20; i++) {
        struct creating c;
        begin_create(&c, i);
        CU_ASSERT_EQUAL(wait(&c.op), K_NONE);
    }
    record_list_init(&rl);
    CU_ASSERT_EQUAL_FATAL(image_snapshot(&m.image, add_framed, &rl), ERR_NONE);
    values = calloc(rl.n, sizeof *values);
    for (size_t i = 0; i < rl.n; i++)
        values[i] = record_list_get(&rl, i);
    CU_ASSERT_EQUAL(raft_snapshot(m.raft, m.image.next_offset, values, rl.n, m.now), ERR_NONE);
    settle();
    free(values);
    record_list_close(&rl);
    m.snapshots = 0;
    stop();
    boot();
    CU_ASSERT_EQUAL(m.snapshots, 1);
    join(m.epoch);
    CU_ASSERT_EQUAL(leaders_everywhere(), 20);
    CU_ASSERT_EQUAL(image_metadata_version(&m.image), 33);
    stop();
    machine_free();
}

TEST_MAIN(TEST(test_controller_raft_fresh), TEST(test_controller_raft_power_cuts),
          TEST(test_controller_raft_snapshot))
