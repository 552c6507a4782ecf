/* The metadata quorum of one voter, node 1: the real raft on a disk in memory, with the loader, the
 * image and the controller that live on it. Its owner lets the time pass. */
#ifndef SUPPORT_SOLE_VOTER_H
#define SUPPORT_SOLE_VOTER_H

#include <stdio.h>

#include "core/controller/controller.h"
#include "core/metadata/features.h"
#include "core/metadata/loader.h"
#include "core/metadata/records.h"
#include "support/memenv.h"
#include "support/quiet_log.h"
#include "support/test.h"
#include "wire/error.h"

#define SOLE_DIRECTORY ((struct uuid){{7}})

static struct sole_voter {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct config *config; /* its owner's */
    struct raft_load load;
    struct raft *raft; /* NULL: stopped */
    struct image image;
    struct loader *loader;
    struct controller *controller;
    struct now now;
    struct rng rng;
    int snapshots; /* that were loaded */
    bool loaded, closed;
} q;

/* ------------------------------------------------------------------ events */

static inline void sole_publish(void *ctx, const struct image_delta *d)
{
    (void)ctx;
    (void)d;
}

static inline void sole_snapshot(void *ctx, int64_t offset, int32_t epoch, struct bytes batches)
{
    (void)ctx;
    q.snapshots++;
    CU_ASSERT_EQUAL_FATAL(loader_snapshot(q.loader, offset, epoch, batches), ERR_NONE);
    controller_committed(q.controller, offset, q.now);
}

static inline void sole_committed(void *ctx, const struct batch *b)
{
    (void)ctx;
    CU_ASSERT_EQUAL_FATAL(loader_committed(q.loader, b), ERR_NONE);
    controller_committed(q.controller, batch_next_offset(b), q.now);
}

static inline void sole_leader(void *ctx, int32_t leader_id, int32_t epoch)
{
    (void)ctx;
    (void)leader_id;
    (void)epoch;
}

static inline void sole_claim(void *ctx, int32_t epoch)
{
    (void)ctx;
    controller_claim(q.controller, epoch, q.now);
}

static inline void sole_resign(void *ctx, int32_t epoch)
{
    (void)ctx;
    (void)epoch;
    controller_resign(q.controller);
}

static inline void sole_snapshot_due(void *ctx)
{
    (void)ctx;
}

static inline void sole_failed(void *ctx, enum err e, const char *what)
{
    (void)ctx;
    CU_FAIL(what);
    fprintf(stderr, "%s: %s\n", what, err_name(e));
}

static inline void sole_loaded(struct raft_load *rl)
{
    (void)rl;
    q.loaded = true;
}

static inline void sole_closed(void *ctx, enum err e)
{
    (void)ctx;
    (void)e;
    q.closed = true;
}

/* ------------------------------------------------------------------ the disk */

static inline void sole_format(void)
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
        .directory_id = SOLE_DIRECTORY,
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("one.example"), 9093},
        .records = values,
        .records_n = rl.n,
        .now = q.now,
    };
    CU_ASSERT_EQUAL_FATAL(raft_format_standalone(&q.fs.disk, "/d/__cluster_metadata-0", &f),
                          ERR_NONE);
    record_list_close(&rl);
}

/* An empty machine with a formatted disk. config is set by the caller, before sole_boot. */
static inline void sole_open(uint64_t seed)
{
    memset(&q, 0, sizeof q);
    q.rng.state = seed;
    q.now = (struct now){1000000, 1700000000000};
    memfs_init(&q.fs, seed);
    memfs_mkdirs(&q.fs, "/d");
    memenv_init(&q.env, &q.fs, seed);
    timers_init(&q.timers);
    sole_format();
}

static inline void sole_close(void)
{
    timers_close(&q.timers);
    memenv_close(&q.env);
    memfs_close(&q.fs);
}

/* ------------------------------------------------------------------ a life */

static inline void sole_settle(void)
{
    bool moved = true;
    while (moved) {
        moved = memenv_run_jobs(&q.env) + memenv_reap_jobs(&q.env) > 0;
        if (q.raft != NULL) {
            moved |= raft_settle(q.raft, q.now);
            moved |= controller_settle(q.controller, q.now);
        }
        moved |= q.env.waiting_n > 0;
    }
}

static inline void sole_load(void)
{
    static const struct voter_set none;
    q.load = (struct raft_load){
        .env = &q.env.env,
        .timers = &q.timers,
        .dir = "/d/__cluster_metadata-0",
        .config = {.election_timeout_ms = 1000,
                   .fetch_timeout_ms = 2000,
                   .snapshot_max_new_bytes = 1 << 20,
                   .snapshot_max_interval_ms = 3600000,
                   .log = quiet_log(1 << 20, 4096)},
        .node_id = 1,
        .directory_id = SOLE_DIRECTORY,
        .cluster_id = "cluster",
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("one.example"), 9093},
        .static_voters = &none,
        .may_vote = true,
        .events = {.snapshot = sole_snapshot,
                   .committed = sole_committed,
                   .leader = sole_leader,
                   .claim = sole_claim,
                   .resign = sole_resign,
                   .snapshot_due = sole_snapshot_due,
                   .failed = sole_failed},
        .now = q.now,
        .done = sole_loaded,
    };
    q.loaded = false;
    raft_load_start(&q.load);
    sole_settle();
    CU_ASSERT_TRUE_FATAL(q.loaded);
    if (q.load.err != ERR_NONE)
        fprintf(stderr, "%s\n", q.load.message);
    CU_ASSERT_EQUAL_FATAL(q.load.err, ERR_NONE);
}

/* Until the controller is active. */
static inline void sole_boot(void)
{
    sole_load();
    CU_ASSERT_EQUAL_FATAL(raft_open(&q.load, &q.raft), ERR_NONE);
    image_init(&q.image, rng_u64(&q.rng));
    CU_ASSERT_EQUAL_FATAL(loader_new(&q.image, sole_publish, NULL, &q.loader), ERR_NONE);
    const struct controller_args args = {.env = &q.env.env,
                                         .timers = &q.timers,
                                         .raft = q.raft,
                                         .config = q.config,
                                         .committed = &q.image,
                                         .cluster_id = "cluster",
                                         .node_id = 1,
                                         .seed = 5};
    CU_ASSERT_EQUAL_FATAL(controller_new(&args, &q.controller), ERR_NONE);
    for (int i = 0; i < 20 && !controller_is_active(q.controller); i++) {
        sole_settle();
        q.now.mono_us += 500000;
        timers_run(&q.timers, q.now.mono_us);
    }
    CU_ASSERT_TRUE_FATAL(controller_is_active(q.controller));
    sole_settle();
}

static inline void sole_stop(void)
{
    controller_resign(q.controller);
    q.closed = false;
    raft_close(q.raft, sole_closed, NULL);
    q.raft = NULL;
    sole_settle();
    CU_ASSERT_TRUE_FATAL(q.closed);
    controller_free(q.controller);
    loader_free(q.loader);
    image_close(&q.image);
    raft_load_close(&q.load);
}

/* ------------------------------------------------------------------ operations */

struct sole_op {
    struct controller_op op;
    int done;
    int16_t error;
};

static inline void sole_op_done(struct controller_op *op, int16_t error)
{
    struct sole_op *o = (struct sole_op *)(void *)op;
    o->done++;
    o->error = error;
}

static inline int16_t sole_wait(struct sole_op *o)
{
    sole_settle();
    CU_ASSERT_EQUAL_FATAL(o->done, 1);
    return o->error;
}

static inline int64_t sole_register(int32_t id, uint8_t incarnation, int64_t previous_epoch,
                                    struct broker_registration_request_listener listener)
{
    struct broker_registration_request req;
    struct broker_registration_response resp;
    struct broker_registration_request_feature features[16];
    struct uuid dir = {{(uint8_t)id, 1, 2}};
    struct sole_op op = {.op = {.done = sole_op_done}};
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    for (size_t i = 0; i < n; i++)
        features[i] = (struct broker_registration_request_feature){str_of(ranges[i].name),
                                                                   ranges[i].min, ranges[i].max};
    wire_default(&wire_broker_registration_request, &req);
    wire_default(&wire_broker_registration_response, &resp);
    req.broker_id = id;
    req.cluster_id = STR_LIT("cluster");
    req.incarnation_id.b[0] = incarnation;
    req.listeners.v = &listener;
    req.listeners.n = 1;
    req.features.v = features;
    req.features.n = (int32_t)n;
    req.log_dirs.v = &dir;
    req.log_dirs.n = 1;
    req.previous_broker_epoch = previous_epoch;
    controller_register_broker(q.controller, &op.op, &req, &resp, q.now);
    CU_ASSERT_EQUAL_FATAL(sole_wait(&op), K_NONE);
    return resp.broker_epoch;
}

/* Registers a broker and unfences it; its epoch. previous_epoch -1: it knows of none. */
static inline int64_t sole_join(int32_t id, uint8_t incarnation, int64_t previous_epoch,
                                struct broker_registration_request_listener listener)
{
    struct broker_heartbeat_request beat;
    struct broker_heartbeat_response beaten;
    struct sole_op op = {.op = {.done = sole_op_done}};
    wire_default(&wire_broker_heartbeat_request, &beat);
    wire_default(&wire_broker_heartbeat_response, &beaten);
    beat.broker_id = id;
    beat.broker_epoch = sole_register(id, incarnation, previous_epoch, listener);
    beat.current_metadata_offset = q.image.next_offset - 1;
    controller_heartbeat(q.controller, &op.op, &beat, &beaten, q.now);
    CU_ASSERT_EQUAL_FATAL(sole_wait(&op), K_NONE);
    CU_ASSERT_FALSE_FATAL(beaten.is_fenced);
    return beat.broker_epoch;
}

#endif
