/* The controller on a metadata log that the test commits by hand. The functions of raft that the
 * controller calls are defined here, so the linker takes these and leaves the real ones in their
 * archive; test_controller_raft drives the real ones. */
#ifndef UNIT_CORE_CONTROLLER_FAKE_RAFT_H
#define UNIT_CORE_CONTROLLER_FAKE_RAFT_H

#include <stdio.h>
#include <stdlib.h>

#include "core/controller/controller.h"
#include "core/metadata/loader.h"
#include "core/metadata/records.h"
#include "support/memenv.h"
#include "support/test.h"

struct raft {
    struct record_list records; /* all that was appended */
    size_t committed_n;
    int64_t base; /* offset of records[0] */
    int16_t kraft_version;
    struct bytes bootstrap;
    enum err fail;    /* of the next append */
    enum err upgrade; /* what raft_upgrade says */
    int appends;
};

static struct raft *the_raft; /* the log is the raft itself */

enum err raft_append(struct raft *r, int32_t epoch, const struct bytes *values, size_t n,
                     struct now now, int64_t *last_offset)
{
    (void)epoch;
    (void)now;
    if (r->fail != ERR_NONE)
        return r->fail;
    const size_t before = r->records.n;
    for (size_t i = 0; i < n; i++) {
        enum err e = record_list_add_framed(&r->records, values[i]);
        if (e != ERR_NONE) {
            record_list_cut(&r->records, before);
            return e;
        }
    }
    r->appends++;
    *last_offset = r->base + (int64_t)r->records.n - 1;
    return ERR_NONE;
}

struct bytes raft_bootstrap_records(const struct raft *r)
{
    return r->bootstrap;
}

enum err raft_upgrade(struct raft *r, int32_t epoch, int16_t version, bool validate_only,
                      struct now now)
{
    (void)epoch;
    (void)now;
    if (r->upgrade == ERR_NONE && !validate_only)
        r->kraft_version = version;
    return r->upgrade;
}

int16_t raft_kraft_version(const struct raft *r)
{
    return r->kraft_version;
}

const struct log *raft_log(const struct raft *r)
{
    return (const struct log *)(const void *)r;
}

int64_t log_staged_end(const struct log *l)
{
    CU_ASSERT_PTR_EQUAL((const void *)l, (const void *)the_raft);
    return the_raft->base + (int64_t)the_raft->records.n;
}

/* ------------------------------------------------------------------ a node without the rest */

struct fixture {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct config *config;
    struct raft raft;
    struct image image; /* committed */
    struct loader *loader;
    struct controller *controller;
    struct arena arena; /* of requests and responses */
    struct now now;
    struct dialing *dialing; /* NULL: nobody is called */
};

static const char *const fixture_cluster = "5L6g3nShT-eMCtK--X86sw";

static inline void fixture_ignore(void *ctx, const struct image_delta *d)
{
    (void)ctx;
    (void)d;
}

static inline void fixture_set(struct fixture *f, const char *key, const char *value)
{
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_set(f->config, str_of(key), str_of(value), CONFIG_SET, NULL, NULL,
                                     message, sizeof message),
                          ERR_NONE);
}

/* Until fixture_start the image is empty and the controller not made. */
static inline void fixture_init(struct fixture *f)
{
    *f = (struct fixture){0};
    memfs_init(&f->fs, 1);
    memenv_init(&f->env, &f->fs, 2);
    timers_init(&f->timers);
    arena_init(&f->arena, NULL);
    CU_ASSERT_EQUAL_FATAL(config_new(&f->config), ERR_NONE);
    record_list_init(&f->raft.records);
    the_raft = &f->raft;
    image_init(&f->image, 3);
    CU_ASSERT_EQUAL_FATAL(loader_new(&f->image, fixture_ignore, NULL, &f->loader), ERR_NONE);
    f->now = (struct now){1000000, 1700000000000};
}

static inline void fixture_start(struct fixture *f)
{
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_finish(f->config, message, sizeof message), ERR_NONE);
    const struct controller_args args = {.env = &f->env.env,
                                         .timers = &f->timers,
                                         .raft = &f->raft,
                                         .config = f->config,
                                         .committed = &f->image,
                                         .cluster_id = fixture_cluster,
                                         .node_id = 1,
                                         .dialing = f->dialing,
                                         .seed = 4};
    f->raft.base = f->image.next_offset;
    CU_ASSERT_EQUAL_FATAL(controller_new(&args, &f->controller), ERR_NONE);
    controller_committed(f->controller, f->image.next_offset, f->now);
}

static inline void fixture_close(struct fixture *f)
{
    controller_free(f->controller);
    loader_free(f->loader);
    image_close(&f->image);
    record_list_close(&f->raft.records);
    config_free(f->config);
    arena_close(&f->arena);
    timers_close(&f->timers);
    memenv_close(&f->env);
    memfs_close(&f->fs);
}

/* Commits the next n records as one batch, into the image and then the controller. */
static inline enum err fixture_commit_n(struct fixture *f, size_t n)
{
    struct raft *r = &f->raft;
    struct batch_builder *bb;
    struct bytes bytes;
    struct batch b;
    const struct batch_builder_args args = {.base_offset = r->base + (int64_t)r->committed_n,
                                            .leader_epoch = 1,
                                            .producer_id = -1,
                                            .producer_epoch = -1,
                                            .base_sequence = -1};
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &bb), ERR_NONE);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_EQUAL_FATAL(batch_builder_add(bb, 1, BYTES_NULL,
                                                record_list_get(&r->records, r->committed_n + i),
                                                NULL, 0),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(bb, &bytes), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(batch_parse(bytes, &b), ERR_NONE);
    r->committed_n += n;
    enum err e = loader_committed(f->loader, &b);
    batch_builder_free(bb);
    controller_committed(f->controller, batch_next_offset(&b), f->now);
    return e;
}

/* All that was appended; then everything settles. */
static inline void fixture_commit(struct fixture *f)
{
    for (;;) {
        while (controller_settle(f->controller, f->now))
            ;
        const size_t n = f->raft.records.n - f->raft.committed_n;
        if (n == 0)
            return;
        CU_ASSERT_EQUAL_FATAL(fixture_commit_n(f, n), ERR_NONE);
    }
}

static inline void fixture_pass(struct fixture *f, int64_t ms)
{
    f->now.mono_us += ms * 1000;
    f->now.wall_ms += ms;
    timers_run(&f->timers, f->now.mono_us);
    fixture_commit(f);
}

static inline void fixture_claim(struct fixture *f)
{
    controller_claim(f->controller, 1, f->now);
    fixture_commit(f);
    CU_ASSERT_TRUE_FATAL(controller_is_active(f->controller));
}

/* ------------------------------------------------------------------ operations */

struct test_op {
    struct controller_op op;
    int done;
    int16_t error;
};

static inline void test_op_done(struct controller_op *op, int16_t error)
{
    struct test_op *t = (struct test_op *)(void *)op;
    t->done++;
    t->error = error;
}

static inline struct test_op test_op_new(void)
{
    return (struct test_op){.op = {.done = test_op_done}};
}

/* Commits and answers. */
static inline int16_t test_op_wait(struct fixture *f, struct test_op *t)
{
    CU_ASSERT_EQUAL(t->done, 0);
    fixture_commit(f);
    CU_ASSERT_EQUAL(t->done, 1);
    return t->error;
}

static struct broker_registration_request_feature fixture_features[] = {
    {STR_LIT("share.version"), 0, 2},
    {STR_LIT("metadata.version"), 7, 33},
    {STR_LIT("eligible.leader.replicas.version"), 0, 1},
    {STR_LIT("transaction.version"), 0, 2},
    {STR_LIT("streams.version"), 0, 1},
    {STR_LIT("group.version"), 0, 1},
    {STR_LIT("kraft.version"), 0, 1},
};
static struct broker_registration_request_listener fixture_listener = {
    STR_LIT("PLAINTEXT"), STR_LIT("127.0.0.1"), 19092, 0};

/* A broker with one log directory, whose id is the broker's and 7. */
static inline struct broker_registration_request fixture_registration(struct fixture *f, int32_t id,
                                                                      uint8_t incarnation)
{
    struct broker_registration_request req;
    struct uuid *dir = arena_array(&f->arena, 1, sizeof *dir);
    wire_default(&wire_broker_registration_request, &req);
    dir->b[0] = (uint8_t)id;
    dir->b[1] = 7;
    req.broker_id = id;
    req.cluster_id = str_of(fixture_cluster);
    req.incarnation_id.b[0] = incarnation;
    req.listeners.v = &fixture_listener;
    req.listeners.n = 1;
    req.features.v = fixture_features;
    req.features.n = ARRAY_N(fixture_features);
    req.log_dirs.v = dir;
    req.log_dirs.n = 1;
    return req;
}

static inline int16_t
fixture_register(struct fixture *f, const struct broker_registration_request *req, int64_t *epoch)
{
    struct test_op t = test_op_new();
    struct broker_registration_response resp;
    wire_default(&wire_broker_registration_response, &resp);
    controller_register_broker(f->controller, &t.op, req, &resp, f->now);
    const int16_t error = test_op_wait(f, &t);
    *epoch = resp.broker_epoch;
    return error;
}

static inline int16_t fixture_heartbeat(struct fixture *f,
                                        const struct broker_heartbeat_request *req,
                                        struct broker_heartbeat_response *resp)
{
    struct test_op t = test_op_new();
    wire_default(&wire_broker_heartbeat_response, resp);
    controller_heartbeat(f->controller, &t.op, req, resp, f->now);
    return test_op_wait(f, &t);
}

/* A heartbeat that has applied all that is committed. */
static inline struct broker_heartbeat_response
fixture_beat(struct fixture *f, int32_t id, int64_t epoch, bool want_fence, bool want_shut_down)
{
    struct broker_heartbeat_request req;
    struct broker_heartbeat_response resp;
    wire_default(&wire_broker_heartbeat_request, &req);
    req.broker_id = id;
    req.broker_epoch = epoch;
    req.current_metadata_offset = f->image.next_offset - 1;
    req.want_fence = want_fence;
    req.want_shut_down = want_shut_down;
    CU_ASSERT_EQUAL(fixture_heartbeat(f, &req, &resp), K_NONE);
    return resp;
}

/* Registers and unfences broker id; its epoch. */
static inline int64_t fixture_broker(struct fixture *f, int32_t id, uint8_t incarnation,
                                     int64_t previous_epoch)
{
    int64_t epoch;
    struct broker_registration_request req = fixture_registration(f, id, incarnation);
    req.previous_broker_epoch = previous_epoch;
    CU_ASSERT_EQUAL_FATAL(fixture_register(f, &req, &epoch), K_NONE);
    CU_ASSERT_FALSE(fixture_beat(f, id, epoch, false, false).is_fenced);
    return epoch;
}

static inline struct image_partition *fixture_partition(struct fixture *f, const char *topic,
                                                        int32_t index)
{
    struct image_topic *t = image_topic_named(&f->image, str_of(topic));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    struct image_partition *p = image_partition(t, index);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    return p;
}

#endif
