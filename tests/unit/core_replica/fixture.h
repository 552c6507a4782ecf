/* What the tests of the replica manager share: node 1 with its logs on memfs, an image made of
 * records, turns as a node makes them, produces and fetches begun by one call. */
#ifndef UNIT_CORE_REPLICA_FIXTURE_H
#define UNIT_CORE_REPLICA_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "core/metadata/records.h"
#include "core/replica/inside.h"
#include "support/fault.h"
#include "support/memenv.h"
#include "support/test.h"
#include "wire/error.h"

#define FIX_UNUSED __attribute__((unused))

struct fix {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct budget budget;
    struct config *config;
    struct image image;
    struct replicas *rs;
    int32_t node_id; /* 1 when a single node is tested */
    struct dialing *dialing;
    struct channel *channel, *directories;
    struct replicas_dir dirs[3]; /* "/data"; more where a test wants them */
    size_t dirs_n;
    int64_t broker_epoch;
    struct now now;
    int loaded, failed, closed;
    unsigned failed_dirs;
    bool clean;
    uint8_t next_topic;
    /* Who follows the replicas (the tests of coordinators); or NULL. */
    void (*applied)(struct fix *f, const struct image_delta *d);
    bool (*settled)(struct fix *f);
};

/* ------------------------------------------------------------------ life */

static inline void fix_loaded(void *ctx)
{
    ((struct fix *)ctx)->loaded++;
}

static inline void fix_failed(void *ctx, enum err e, const char *what)
{
    CU_ASSERT(e != ERR_NONE && what != NULL);
    ((struct fix *)ctx)->failed++;
}

static inline void fix_dir_failed(void *ctx, size_t dir, enum err e, const char *what)
{
    struct fix *f = ctx;
    CU_ASSERT(dir < f->dirs_n);
    f->failed_dirs |= 1u << dir;
    fix_failed(ctx, e, what);
}

static inline void fix_closed(void *ctx, bool clean)
{
    ((struct fix *)ctx)->closed++;
    ((struct fix *)ctx)->clean = clean;
}

/* Until quiet, without running jobs. */
static inline void fix_settle(struct fix *f)
{
    bool moved;
    do {
        memenv_reap_jobs(&f->env);
        moved = replicas_settle(f->rs, f->now);
        if (f->settled != NULL)
            moved |= f->settled(f);
    } while (moved);
}

/* A turn, with all jobs that it asks for done. */
FIX_UNUSED static void fix_turn(struct fix *f)
{
    do {
        fix_settle(f);
        timers_run(&f->timers, f->now.mono_us);
        fix_settle(f);
    } while (memenv_run_jobs(&f->env) > 0);
}

FIX_UNUSED static void fix_wait(struct fix *f, int64_t ms)
{
    f->now.mono_us += ms * 1000;
    f->now.wall_ms += ms;
    fix_turn(f);
}

static inline int64_t fix_broker_epoch(void *ctx)
{
    return ((struct fix *)ctx)->broker_epoch;
}

static inline enum err fix_start(struct fix *f)
{
    const struct replicas_args args = {
        .env = &f->env.env,
        .timers = &f->timers,
        .budget = &f->budget,
        .config = f->config,
        .image = &f->image,
        .node_id = f->node_id,
        .seed = 7,
        .dirs = f->dirs,
        .dirs_n = f->dirs_n,
        .events = {f, fix_loaded, fix_dir_failed, fix_failed},
        .dialing = f->dialing,
        .alter_partition = f->channel,
        .directories = f->directories,
        .answers = &f->budget,
        .broker_epoch = fix_broker_epoch,
    };
    f->loaded = f->failed = f->closed = 0;
    f->failed_dirs = 0;
    return replicas_new(&args, &f->rs);
}

FIX_UNUSED static void fix_set(struct fix *f, const char *key, const char *value)
{
    char message[256];
    CU_ASSERT_EQUAL_FATAL(config_set(f->config, str_of(key), str_of(value), CONFIG_SET, NULL, NULL,
                                     message, sizeof message),
                          ERR_NONE);
}

/* A log directory more. */
static inline void fix_add_dir(struct fix *f, const char *path, struct uuid id)
{
    CU_ASSERT_FATAL(f->dirs_n < ARRAY_N(f->dirs));
    f->dirs[f->dirs_n++] = (struct replicas_dir){.path = path, .name = path, .id = id};
    memfs_mkdirs(&f->fs, path);
}

/* Without replicas yet: fix_set may follow, then fix_begin. */
FIX_UNUSED static void fix_prepare(struct fix *f)
{
    memset(f, 0, sizeof *f);
    f->node_id = 1;
    f->broker_epoch = 100;
    memfs_init(&f->fs, 1);
    fix_add_dir(f, "/data", (struct uuid){{0}});
    memenv_init(&f->env, &f->fs, 2);
    timers_init(&f->timers);
    budget_init(&f->budget, NULL, (uint64_t)64 << 20);
    image_init(&f->image, 3);
    f->now = (struct now){.mono_us = 1000000, .wall_ms = 1700000000000};
    CU_ASSERT_EQUAL_FATAL(config_new(&f->config), ERR_NONE);
}

/* Started, nothing on disk. */
FIX_UNUSED static void fix_begin(struct fix *f)
{
    const struct replicas_found none[ARRAY_N(f->dirs)] = {{0}};
    if (f->config == NULL)
        fix_prepare(f);
    CU_ASSERT_EQUAL_FATAL(fix_start(f), ERR_NONE);
    replicas_load(f->rs, none, f->now);
    fix_turn(f);
    CU_ASSERT_EQUAL(f->loaded, 1);
}

FIX_UNUSED static void fix_stop(struct fix *f)
{
    replicas_close(f->rs, fix_closed, f, f->now);
    fix_turn(f);
    CU_ASSERT_EQUAL_FATAL(f->closed, 1);
    replicas_free(f->rs);
    f->rs = NULL;
}

FIX_UNUSED static void fix_end(struct fix *f)
{
    if (f->rs != NULL)
        fix_stop(f);
    image_close(&f->image);
    config_free(f->config);
    CU_ASSERT_EQUAL(f->budget.used_bytes, 0);
    timers_close(&f->timers);
    memenv_close(&f->env);
    memfs_close(&f->fs);
    memset(f, 0, sizeof *f);
}

/* ------------------------------------------------------------------ the image */

static inline void fix_record(struct fix *f, const struct wire_message *m, int16_t version,
                              const void *record, struct image_delta *d)
{
    struct record_list rl;
    struct arena a;
    int16_t type, got;
    void *decoded;
    record_list_init(&rl);
    arena_init(&a, NULL);
    CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, m, version, record), ERR_NONE);
    const struct bytes framed = record_list_get(&rl, 0);
    CU_ASSERT_EQUAL_FATAL(record_decode(framed, &a, &type, &got, &decoded), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(image_apply(&f->image, type, got, decoded, framed, d), ERR_NONE);
    arena_close(&a);
    record_list_close(&rl);
}

static inline void fix_publish(struct fix *f, struct image_delta *d)
{
    if (f->rs != NULL)
        replicas_apply(f->rs, d, f->now);
    if (f->applied != NULL)
        f->applied(f, d);
    image_delta_close(d);
}

FIX_UNUSED static void fix_broker(struct fix *f, int32_t id, int64_t epoch)
{
    struct register_broker_record r;
    struct image_delta d;
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = id;
    r.broker_epoch = epoch;
    r.fenced = false;
    image_delta_init(&d);
    fix_record(f, &msg_register_broker_record, 3, &r, &d);
    fix_publish(f, &d);
}

/* One partition more of a topic; ids are replicas, the first is the leader, all are in sync. */
static inline void fix_partition(struct fix *f, struct uuid id, int32_t index, int32_t *ids,
                                 int32_t n, struct image_delta *d)
{
    struct partition_record r;
    wire_default(&wire_partition_record, &r);
    r.partition_id = index;
    r.topic_id = id;
    r.replicas.v = r.isr.v = ids;
    r.replicas.n = r.isr.n = n;
    r.leader = ids[0];
    r.leader_epoch = r.partition_epoch = 0;
    fix_record(f, &msg_partition_record, 1, &r, d);
}

FIX_UNUSED static struct uuid fix_topic_of(struct fix *f, const char *name, int32_t partitions_n,
                                           int32_t *ids, int32_t n)
{
    struct image_delta d;
    struct uuid id = {{9, ++f->next_topic}};
    const struct topic_record r = {str_of(name), id};
    image_delta_init(&d);
    fix_record(f, &msg_topic_record, 0, &r, &d);
    for (int32_t i = 0; i < partitions_n; i++)
        fix_partition(f, id, i, ids, n, &d);
    fix_publish(f, &d);
    return id;
}

/* Of this node alone. */
FIX_UNUSED static struct uuid fix_topic(struct fix *f, const char *name, int32_t partitions_n)
{
    int32_t one[] = {1};
    return fix_topic_of(f, name, partitions_n, one, 1);
}

/* leader -2, isr NULL: as they are. */
FIX_UNUSED static void fix_change(struct fix *f, struct uuid id, int32_t index, int32_t leader,
                                  int32_t *isr, int32_t isr_n)
{
    struct partition_change_record r;
    struct image_delta d;
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = id;
    r.partition_id = index;
    r.leader = leader;
    r.isr.v = isr;
    r.isr.n = isr == NULL ? -1 : isr_n;
    image_delta_init(&d);
    fix_record(f, &msg_partition_change_record, 0, &r, &d);
    fix_publish(f, &d);
}

FIX_UNUSED static void fix_topic_config(struct fix *f, const char *topic, const char *key,
                                        const char *value)
{
    const struct config_record r = {CONFIG_RESOURCE_TOPIC, str_of(topic), str_of(key),
                                    str_of(value)};
    struct image_delta d;
    image_delta_init(&d);
    fix_record(f, &msg_config_record, 0, &r, &d);
    fix_publish(f, &d);
}

FIX_UNUSED static void fix_delete(struct fix *f, struct uuid id)
{
    const struct remove_topic_record r = {id};
    struct image_delta d;
    image_delta_init(&d);
    fix_record(f, &msg_remove_topic_record, 0, &r, &d);
    fix_publish(f, &d);
}

/* ------------------------------------------------------------------ produce */

/* One batch to be produced and what became of it. */
struct fix_produce {
    struct produce_op op;
    struct produce_part part;
    struct arena arena;
    uint8_t *bytes; /* as the frame */
    int done;
};

static inline void fix_produced(struct produce_op *op)
{
    CONTAINER_OF(op, struct fix_produce, op)->done++;
}

struct fix_batch {
    int32_t records_n;
    size_t value_n;    /* of each record */
    int64_t timestamp; /* of the first; the others follow by 1 ms. -1: now */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int16_t attributes;
};

/* The caller frees. */
FIX_UNUSED static uint8_t *fix_batch_bytes(const struct fix *f, const struct fix_batch *b,
                                           size_t *n)
{
    const struct batch_builder_args args = {
        .leader_epoch = -1,
        .attributes = b->attributes,
        .producer_id = b->producer_id,
        .producer_epoch = b->producer_epoch,
        .base_sequence = b->base_sequence,
    };
    struct batch_builder *bb;
    struct bytes out;
    uint8_t *value = calloc(1, b->value_n + 1);
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &bb), ERR_NONE);
    for (int32_t i = 0; i < b->records_n; i++) {
        const int64_t first = b->timestamp < 0 ? f->now.wall_ms : b->timestamp;
        CU_ASSERT_EQUAL_FATAL(batch_builder_add(bb, first + i, BYTES_NULL,
                                                (struct bytes){value, (int32_t)b->value_n}, NULL,
                                                0),
                              ERR_NONE);
    }
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(bb, &out), ERR_NONE);
    uint8_t *p = malloc((size_t)out.n);
    memcpy(p, out.p, (size_t)out.n);
    *n = (size_t)out.n;
    batch_builder_free(bb);
    free(value);
    return p;
}

static const struct fix_batch fix_plain = {.records_n = 1,
                                           .value_n = 10,
                                           .timestamp = -1,
                                           .producer_id = -1,
                                           .producer_epoch = -1,
                                           .base_sequence = -1};

/* Does not settle. fix_produce_close when it is done. */
FIX_UNUSED static void fix_produce(struct fix *f, struct fix_produce *p, struct uuid topic,
                                   int32_t index, int16_t acks, const struct fix_batch *batch)
{
    size_t n;
    struct image_topic *t = image_topic_by_id(&f->image, topic);
    memset(p, 0, sizeof *p);
    arena_init(&p->arena, NULL);
    p->bytes = fix_batch_bytes(f, batch, &n);
    p->part = (struct produce_part){
        .topic = t == NULL ? STR_NULL : str_of(t->name),
        .topic_id = topic,
        .index = index,
        .records = {p->bytes, (int32_t)n},
        .base_offset = -1,
        .log_append_time_ms = -1,
        .log_start_offset = -1,
        .current_leader = -1,
        .current_leader_epoch = -1,
    };
    batch_prepare(p->part.records, &p->part.facts);
    p->op = (struct produce_op){.arena = &p->arena,
                                .acks = acks,
                                .timeout_ms = 1000,
                                .parts = &p->part,
                                .parts_n = 1,
                                .done = fix_produced};
    replicas_produce(f->rs, &p->op, f->now);
    CU_ASSERT_EQUAL(p->done, 0); /* never inside the call */
}

FIX_UNUSED static void fix_produce_close(struct fix_produce *p)
{
    CU_ASSERT_EQUAL(p->done, 1);
    arena_close(&p->arena);
    free(p->bytes);
}

/* n records with acks 1, in one batch; the error. */
FIX_UNUSED static int16_t fix_append(struct fix *f, struct uuid topic, int32_t index, int32_t n)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.records_n = n;
    fix_produce(f, &p, topic, index, 1, &b);
    fix_turn(f);
    fix_produce_close(&p);
    return p.part.error;
}

/* ------------------------------------------------------------------ fetch */

enum { FIX_PARTS_MAX = 8 };

struct fix_fetch {
    struct fetch_op op;
    struct fetch_request request;
    struct fetch_response response;
    struct fetch_request_fetch_topic topics[FIX_PARTS_MAX];
    struct fetch_request_fetch_partition parts[FIX_PARTS_MAX];
    struct fetch_request_forgotten_topic forgotten[FIX_PARTS_MAX];
    int32_t forgotten_index[FIX_PARTS_MAX];
    struct arena arena;
    int done;
};

static inline void fix_fetched(struct fetch_op *op)
{
    CONTAINER_OF(op, struct fix_fetch, op)->done++;
}

/* A consumer's request of version 16: no session, one byte at least, half a second. */
FIX_UNUSED static void fix_fetch_init(struct fix_fetch *q)
{
    memset(q, 0, sizeof *q);
    arena_init(&q->arena, NULL);
    wire_default(&wire_fetch_request, &q->request);
    wire_default(&wire_fetch_response, &q->response);
    q->request.max_wait_ms = 500;
    q->request.min_bytes = 1;
    q->request.topics.v = q->topics;
    q->request.forgotten_topics_data.v = q->forgotten;
    q->op = (struct fetch_op){.arena = &q->arena,
                              .request = &q->request,
                              .version = 16,
                              .response = &q->response,
                              .done = fix_fetched};
}

/* A partition more, in a topic of its own. */
FIX_UNUSED static struct fetch_request_fetch_partition *
fix_ask(struct fix_fetch *q, struct uuid topic, int32_t index, int64_t offset)
{
    const int32_t i = q->request.topics.n++;
    wire_default(&wire_fetch_request_fetch_topic, &q->topics[i]);
    wire_default(&wire_fetch_request_fetch_partition, &q->parts[i]);
    q->topics[i].topic_id = topic;
    q->topics[i].partitions.v = &q->parts[i];
    q->topics[i].partitions.n = 1;
    q->parts[i].partition = index;
    q->parts[i].fetch_offset = offset;
    q->parts[i].partition_max_bytes = 1 << 20;
    return &q->parts[i];
}

FIX_UNUSED static void fix_forget(struct fix_fetch *q, struct uuid topic, int32_t index)
{
    const int32_t i = q->request.forgotten_topics_data.n++;
    wire_default(&wire_fetch_request_forgotten_topic, &q->forgotten[i]);
    q->forgotten_index[i] = index;
    q->forgotten[i].topic_id = topic;
    q->forgotten[i].partitions.v = &q->forgotten_index[i];
    q->forgotten[i].partitions.n = 1;
}

FIX_UNUSED static void fix_fetch_start(struct fix *f, struct fix_fetch *q)
{
    CU_ASSERT_EQUAL_FATAL(replicas_fetch(f->rs, &q->op, f->now), ERR_NONE);
    CU_ASSERT_EQUAL(q->done, 0);
    fix_turn(f);
}

/* How many partitions were answered. */
FIX_UNUSED static int fix_answered(const struct fix_fetch *q)
{
    int n = 0;
    for (int32_t i = 0; i < q->response.responses.n; i++)
        n += q->response.responses.v[i].partitions.n;
    return n;
}

/* The answer of a partition; NULL if it has none. */
FIX_UNUSED static const struct fetch_response_partition_data *
fix_answer(const struct fix_fetch *q, struct uuid topic, int32_t index)
{
    for (int32_t i = 0; i < q->response.responses.n; i++) {
        const struct fetch_response_fetchable_topic_response *t = &q->response.responses.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++)
            if (uuid_eq(t->topic_id, topic) && t->partitions.v[k].partition_index == index)
                return &t->partitions.v[k];
    }
    return NULL;
}

FIX_UNUSED static void fix_fetch_close(struct fix_fetch *q)
{
    for (int32_t i = 0; i < q->response.responses.n; i++) {
        const struct fetch_response_fetchable_topic_response *t = &q->response.responses.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++)
            for (int32_t s = 0; s < t->partitions.v[k].records.slices_n; s++)
                file_unref(t->partitions.v[k].records.slices[s].f);
    }
    arena_close(&q->arena);
}

FIX_UNUSED static struct partition *fix_find(const struct fix *f, struct uuid topic, int32_t index)
{
    return replicas_find(f->rs, topic, index);
}

#endif
