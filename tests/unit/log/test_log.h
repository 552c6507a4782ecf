/* A log over memfs, with batches to put into it. Shared by the log's tests. */
#ifndef TEST_LOG_H
#define TEST_LOG_H

#include <stdlib.h>

#include "log/checkpoint.h"
#include "log/log.h"
#include "support/fault.h"
#include "support/memenv.h"
#include "support/test.h"

#define DIR_NAME "/data/t-0"
#define MS 1000LL

/* The machine and one log on it. */
struct bench {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct log_maker maker;
    struct budget budget;
    struct now now;
    struct log_config config;
    struct log *log; /* NULL: closed */
    int progress_n, failed_n;
    enum err failed_err;
    /* of the last load */
    enum err load_err;
    char message[256];
    uint64_t recovered_bytes, truncated_bytes;
    /* of the last close */
    enum err close_err;
    bool close_done;
    char *renamed;
};

static const struct uuid topic_id = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

static inline struct log_config config_default(void)
{
    return (struct log_config){
        .segment_bytes = 1 << 30,
        .segment_ms = 7LL * 24 * 3600 * 1000,
        .segment_index_bytes = 10 << 20,
        .index_interval_bytes = 4096,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
        .max_compaction_lag_ms = INT64_MAX,
        .producer_id_expiration_ms = 24LL * 3600 * 1000,
    };
}

static inline void bench_progress(void *ctx, struct log *l)
{
    ((struct bench *)ctx)->progress_n++;
}

static inline void bench_failed(void *ctx, struct log *l, enum err e, const char *what)
{
    struct bench *b = ctx;
    b->failed_n++;
    b->failed_err = e;
}

static inline void bench_init(struct bench *b, uint64_t seed)
{
    *b = (struct bench){.config = config_default(), .now = {1000000, 1700000000000}};
    memfs_init(&b->fs, seed);
    memfs_mkdirs(&b->fs, "/data");
    memenv_init(&b->env, &b->fs, seed + 1);
    timers_init(&b->timers);
    log_maker_init(&b->maker, &b->env.env);
    budget_init(&b->budget, NULL, UINT64_MAX);
}

static inline struct log_args bench_args(struct bench *b)
{
    return (struct log_args){
        .env = &b->env.env,
        .timers = &b->timers,
        .maker = &b->maker,
        .budget = &b->budget,
        .dir = DIR_NAME,
        .topic_id = topic_id,
        .config = b->config,
        .events = {b, bench_progress, bench_failed},
        .now = b->now,
    };
}

/* Runs jobs and reaps them until none is left. */
static inline void bench_settle(struct bench *b)
{
    while (memenv_run_jobs(&b->env) + memenv_reap_jobs(&b->env) > 0)
        ;
}

static inline enum err bench_new(struct bench *b)
{
    struct log_args args = bench_args(b);
    return log_new(&args, &b->log);
}

static inline void bench_load_done(struct log_load *ll)
{
}

/* Loads the directory and opens the log. */
static inline enum err bench_load(struct bench *b, struct log_checkpoints cp)
{
    struct log_load ll = {.args = bench_args(b), .checkpoints = cp, .done = bench_load_done};
    log_load_start(&ll);
    bench_settle(b);
    b->load_err = ll.err;
    memcpy(b->message, ll.message, sizeof b->message);
    b->recovered_bytes = ll.recovered_bytes;
    b->truncated_bytes = ll.truncated_bytes;
    enum err err = ll.err;
    if (err == ERR_NONE)
        err = log_open(&ll, &b->log);
    log_load_close(&ll);
    return err;
}

struct bench_close {
    struct log_close close;
    struct bench *bench;
};

static inline void bench_close_done(struct log_close *lc)
{
    struct bench_close *c = (struct bench_close *)lc;
    c->bench->close_err = lc->err;
    c->bench->renamed = lc->renamed;
    c->bench->close_done = true;
}

/* Of a deleted log b->renamed is to be freed. */
static inline enum err bench_close_log(struct bench *b, bool clean, bool delete_)
{
    struct bench_close c = {.close = {.clean = clean, .delete_ = delete_, .done = bench_close_done},
                            .bench = b};
    b->close_done = false;
    log_close_start(b->log, &c.close);
    b->log = NULL;
    bench_settle(b);
    if (!b->close_done)
        abort();
    return b->close_err;
}

static inline void bench_close(struct bench *b)
{
    if (b->log != NULL)
        (void)(bench_close_log(b, false, false) == ERR_NONE);
    bench_settle(b);
    memenv_close(&b->env);
    timers_close(&b->timers);
    memfs_close(&b->fs);
    CU_ASSERT_EQUAL(b->budget.used_bytes, 0);
}

/* ------------------------------------------------------------------ batches */

struct batch_spec {
    int records_n; /* 0: 1 */
    int value_bytes;
    int64_t timestamp;   /* of the first; the others follow by 1 ms */
    int64_t producer_id; /* 0: none; pid + 1 otherwise */
    int16_t epoch;
    int32_t sequence;
    int16_t attributes;
    int32_t leader_epoch; /* as follower */
    int64_t base_offset;
    uint8_t fill;
};

static inline uint8_t *batch_make(struct batch_spec s, struct batch *facts)
{
    struct batch_builder_args args = {
        .base_offset = s.base_offset,
        .leader_epoch = s.leader_epoch,
        .attributes = s.attributes,
        .producer_id = s.producer_id - 1,
        .producer_epoch = s.producer_id > 0 ? s.epoch : -1,
        .base_sequence = s.producer_id > 0 ? s.sequence : -1,
        .level = INT32_MIN,
    };
    struct batch_builder *bb;
    struct bytes out;
    uint8_t *value = malloc((size_t)s.value_bytes + 1);
    if (value == NULL || batch_builder_new(&args, &bb) != ERR_NONE) {
        free(value);
        return NULL;
    }
    uint8_t *copy = NULL;
    enum err err = ERR_NONE;
    for (int i = 0; i < (s.records_n == 0 ? 1 : s.records_n) && err == ERR_NONE; i++) {
        memset(value, s.fill + i, (size_t)s.value_bytes);
        err = batch_builder_add(bb, s.timestamp + i, BYTES_NULL,
                                (struct bytes){value, s.value_bytes}, NULL, 0);
    }
    if (err == ERR_NONE)
        err = batch_builder_finish(bb, &out);
    if (err == ERR_NONE)
        copy = malloc((size_t)out.n);
    if (copy != NULL) {
        memcpy(copy, out.p, (size_t)out.n);
        err = batch_parse((struct bytes){copy, out.n}, facts);
    }
    batch_builder_free(bb);
    free(value);
    return copy;
}

static inline uint8_t *marker_make(int64_t pid, int16_t epoch, bool abort, int32_t coordinator,
                                   struct batch *facts)
{
    struct batch_builder_args args = {.leader_epoch = 0,
                                      .attributes = BATCH_TRANSACTIONAL | BATCH_CONTROL,
                                      .producer_id = pid,
                                      .producer_epoch = epoch,
                                      .base_sequence = -1,
                                      .level = INT32_MIN};
    uint8_t key[4] = {0, 0, 0, abort ? 0 : 1};
    uint8_t value[6] = {0, 0, 0, 0, 0, (uint8_t)coordinator};
    struct batch_builder *bb;
    struct bytes out;
    if (batch_builder_new(&args, &bb) != ERR_NONE)
        return NULL;
    uint8_t *copy = NULL;
    if (batch_builder_add(bb, 1700000000000, (struct bytes){key, 4}, (struct bytes){value, 6}, NULL,
                          0) == ERR_NONE &&
        batch_builder_finish(bb, &out) == ERR_NONE)
        copy = malloc((size_t)out.n);
    if (copy != NULL) {
        memcpy(copy, out.p, (size_t)out.n);
        enum err err = batch_parse((struct bytes){copy, out.n}, facts);
        CU_ASSERT_EQUAL(err, ERR_NONE);
    }
    batch_builder_free(bb);
    return copy;
}

/* Stages one batch as leader and writes it, making the directory if need be. */
static inline enum err bench_append(struct bench *b, struct batch_spec s, struct log_staged *st)
{
    struct batch facts;
    struct log_staged own;
    uint8_t *p = batch_make(s, &facts);
    if (p == NULL)
        return ERR_NOMEM;
    enum err err = log_stage_leader(b->log, p, &facts, s.leader_epoch, LOG_CLIENT, b->now,
                                    st == NULL ? &own : st);
    if (err == ERR_NONE)
        err = log_write(b->log, b->now);
    if (err == ERR_AGAIN) {
        bench_settle(b);
        err = log_write(b->log, b->now);
    }
    free(p);
    return err;
}

static inline enum err bench_marker(struct bench *b, int64_t pid, int16_t epoch, bool abort)
{
    struct batch facts;
    struct log_staged st;
    uint8_t *p = marker_make(pid, epoch, abort, 0, &facts);
    if (p == NULL)
        return ERR_NOMEM;
    enum err err = log_stage_leader(b->log, p, &facts, 0, LOG_COORDINATOR, b->now, &st);
    if (err == ERR_NONE)
        err = log_write(b->log, b->now);
    free(p);
    return err;
}

/* ------------------------------------------------------------------ reading back */

/* Calls fn for every batch of the log from `from` on, read through log_read; the error that ended
 * it. Batches are whole in memory. */
typedef void (*batch_fn)(void *ctx, const struct batch *b);
static inline enum err bench_each(struct bench *b, int64_t from, uint32_t chunk, batch_fn fn,
                                  void *ctx)
{
    int64_t at = from;
    while (at < log_end_offset(b->log)) {
        struct log_span span;
        enum err err = log_read(b->log, at, log_end_offset(b->log), chunk, true, &span);
        if (err == ERR_AGAIN) {
            bench_settle(b);
            continue;
        }
        if (err != ERR_NONE || span.n == 0)
            return err != ERR_NONE ? err : ERR_CORRUPT;
        uint8_t *p = malloc(span.n);
        if (p == NULL)
            return ERR_NOMEM;
        err = log_span_read(&span, p, span.n);
        for (uint32_t done = 0; err == ERR_NONE && done < span.n;) {
            struct batch batch;
            err = batch_parse((struct bytes){p + done, (int32_t)(span.n - done)}, &batch);
            if (err == ERR_TRUNCATED && done > 0) {
                err = ERR_NONE;
                break;
            }
            if (err != ERR_NONE)
                break;
            if (!batch_crc_ok(&batch))
                err = ERR_CORRUPT;
            else
                fn(ctx, &batch);
            done += batch.size_bytes;
            at = batch_next_offset(&batch);
        }
        free(p);
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

#define MUST(call) CU_ASSERT_EQUAL_FATAL((call), ERR_NONE)

#endif
