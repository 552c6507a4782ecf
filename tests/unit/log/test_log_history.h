/* A workload over a log, and what must be true of the log after any failure in it: every batch has
 * one record whose timestamp names it, so the log's content can be compared with what was written,
 * history by history (a truncation begins a new one). */
#ifndef TEST_LOG_HISTORY_H
#define TEST_LOG_HISTORY_H

#include "base/limits.h"
#include "unit/log/test_log.h"

#define HISTORY_MAX 256
#define HISTORIES 4
#define TIME0 1700000000000

struct history {
    int64_t ids[HISTORY_MAX];
    int64_t n;
};

struct story {
    struct bench b;
    struct history h[HISTORIES]; /* the last is the present one */
    int h_n;
    int64_t next_id;
    int64_t flushed;    /* the log said so; never lost */
    int64_t checkpoint; /* recovery point as a checkpoint file would have it */
    int32_t epoch;
    int refused_n;
    bool full_disk; /* random stories: now and then */
    bool stopped;   /* the log failed: only a restart helps */
    /* Batches of a write that failed: they may or may not be there. */
    int64_t ghost_from;
    int64_t ghosts[16];
    int ghosts_n;
    uint8_t *held[16]; /* large batches, until they are written or cut */
    int held_n;
};

static inline struct history *story_now(struct story *s)
{
    return &s->h[s->h_n - 1];
}

static inline void story_look(struct story *s)
{
    if (s->b.log == NULL)
        return;
    int64_t flushed = log_flushed_end(s->b.log);
    if (flushed > s->flushed)
        s->flushed = flushed;
    s->stopped = s->stopped || log_is_offline(s->b.log);
}

/* Writes what is staged, its ids in s->ghosts. */
static inline void story_write(struct story *s)
{
    struct log *l = s->b.log;
    enum err err = log_write(l, s->b.now);
    for (int tries = 0; err == ERR_AGAIN && tries < 3; tries++) {
        bench_settle(&s->b);
        err = log_write(l, s->b.now);
    }
    struct history *h = story_now(s);
    int64_t end = log_end_offset(l);
    for (int64_t o = h->n; o < end; o++)
        h->ids[o] = s->ghosts[o - s->ghost_from];
    h->n = end;
    if (err == ERR_NONE)
        s->ghosts_n = 0;
    else if (err == ERR_NOSPC)
        s->refused_n++;
    story_look(s);
}

/* Appends n batches of one idempotent producer in one write. Sequences are offsets. */
static inline void story_append(struct story *s, int n, int value_bytes)
{
    if (s->stopped || s->b.log == NULL)
        return;
    struct log *l = s->b.log;
    if (log_dirty(l))
        story_write(s);
    if (log_dirty(l) || s->stopped)
        return;
    s->ghost_from = log_end_offset(l);
    s->ghosts_n = 0;
    for (int i = 0; i < n; i++) {
        struct batch facts;
        struct log_staged st;
        struct batch_spec spec = {.value_bytes = value_bytes,
                                  .timestamp = TIME0 + s->next_id,
                                  .producer_id = 8,
                                  .sequence = (int32_t)log_staged_end(l)};
        uint8_t *p = batch_make(spec, &facts);
        if (p == NULL)
            break;
        enum err err = log_stage_leader(l, p, &facts, s->epoch, LOG_CLIENT, s->b.now, &st);
        if (err != ERR_NONE) {
            free(p);
            break;
        }
        CU_ASSERT_FALSE(st.duplicate);
        CU_ASSERT_EQUAL(st.base_offset, s->ghost_from + i);
        s->ghosts[s->ghosts_n++] = s->next_id++;
        if (facts.size_bytes < LIMIT_STAGE_COPY_BYTES)
            free(p);
        else
            s->held[s->held_n++] = p;
    }
    story_write(s);
    while (!log_dirty(l) && s->held_n > 0)
        free(s->held[--s->held_n]);
}

static inline void story_flush(struct story *s)
{
    if (s->b.log == NULL)
        return;
    log_flush(s->b.log, log_end_offset(s->b.log));
    bench_settle(&s->b);
    story_look(s);
    s->checkpoint = log_recovery_point(s->b.log);
}

/* A new leader epoch follows, as after every divergence. */
static inline void story_truncate(struct story *s, int64_t x)
{
    if (s->stopped || s->b.log == NULL || x >= log_end_offset(s->b.log))
        return;
    s->h[s->h_n] = *story_now(s);
    s->h_n++;
    struct history *h = story_now(s);
    h->n = x;
    if (s->flushed > x)
        s->flushed = x;
    if (s->checkpoint > x)
        s->checkpoint = x;
    s->ghosts_n = 0;
    if (log_truncate_to(s->b.log, x, s->b.now) != ERR_NONE)
        s->stopped = true;
    else
        CU_ASSERT_EQUAL(log_end_offset(s->b.log), x);
    s->epoch++;
}

/* Stops and starts the process; clean if it could be. */
static inline void story_restart(struct story *s, bool clean)
{
    if (s->b.log == NULL)
        return;
    story_look(s);
    s->b.fs.limit_bytes = 0; /* recovery writes indexes */
    bool marker = bench_close_log(&s->b, clean, false) == ERR_NONE && clean;
    if (!s->stopped)
        s->ghosts_n = 0;
    if (marker)
        s->flushed = story_now(s)->n;
    s->epoch++;
    enum err err = bench_load(&s->b, (struct log_checkpoints){marker, s->checkpoint, -1});
    if (err == ERR_NOENT && story_now(s)->n == 0)
        err = bench_new(&s->b); /* it never had a byte */
    if (err != ERR_NONE) {
        s->b.log = NULL;
        s->stopped = true;
        return;
    }
    CU_ASSERT_TRUE(log_end_offset(s->b.log) >= story_now(s)->n); /* nothing written is lost */
}

struct compare {
    struct story *s;
    int64_t ids[HISTORY_MAX];
    int64_t n;
};

static inline void compare_batch(void *ctx, const struct batch *b)
{
    struct compare *c = ctx;
    CU_ASSERT_EQUAL(b->base_offset, c->n);
    CU_ASSERT_EQUAL(b->base_sequence, c->n);
    CU_ASSERT_TRUE_FATAL(c->n < HISTORY_MAX);
    c->ids[c->n++] = b->base_timestamp - TIME0;
}

static inline bool is_prefix(const struct story *s, const struct compare *c,
                             const struct history *h)
{
    for (int64_t o = 0; o < c->n; o++) {
        int64_t g = o - s->ghost_from;
        bool known = o < h->n && c->ids[o] == h->ids[o];
        bool ghost = o >= s->ghost_from && g < s->ghosts_n && c->ids[o] == s->ghosts[g];
        if (!known && !ghost)
            return false;
    }
    return true;
}

/* The log is a prefix of one history that holds all that was flushed, and the producer state is
 * that of its content: the last batch again is a duplicate, a gap is refused, the next is taken. */
static inline void story_check(struct story *s, int64_t at_least)
{
    struct compare c = {.s = s};
    struct log *l = s->b.log;
    enum err read = bench_each(&s->b, 0, 1 << 20, compare_batch, &c);
    CU_ASSERT_EQUAL(read, ERR_NONE);
    CU_ASSERT_EQUAL(c.n, log_end_offset(l));
    if (read != ERR_NONE || c.n != log_end_offset(l))
        return;
    bool prefix = false;
    for (int i = 0; i < s->h_n; i++)
        prefix = prefix || is_prefix(s, &c, &s->h[i]);
    CU_ASSERT_TRUE(prefix);
    CU_ASSERT_TRUE(c.n >= at_least);
    for (int64_t o = 0; o < at_least && o < c.n; o++)
        CU_ASSERT_EQUAL(c.ids[o], story_now(s)->ids[o]);

    struct log_staged st;
    struct batch_spec spec = {
        .value_bytes = 20, .producer_id = 8, .timestamp = TIME0, .leader_epoch = s->epoch};
    if (c.n > 0) {
        spec.sequence = (int32_t)c.n - 1;
        MUST(bench_append(&s->b, spec, &st));
        CU_ASSERT_TRUE(st.duplicate);
        CU_ASSERT_EQUAL(st.base_offset, c.n - 1);
        spec.sequence = (int32_t)c.n + 1;
        CU_ASSERT_EQUAL(bench_append(&s->b, spec, &st), ERR_INVALID);
        CU_ASSERT_EQUAL(st.kafka_error, 45);
    }
    spec.sequence = (int32_t)c.n;
    spec.timestamp = TIME0 + s->next_id++;
    MUST(bench_append(&s->b, spec, &st));
    CU_ASSERT_FALSE(st.duplicate);
    CU_ASSERT_EQUAL(log_end_offset(l), c.n + 1);
    const struct epoch_cache *e = log_epochs(l);
    for (size_t i = 0; i < e->n; i++)
        CU_ASSERT_TRUE(e->v[i].start_offset <= log_end_offset(l));
}

static inline void story_close(struct story *s)
{
    bench_close(&s->b);
    while (s->held_n > 0)
        free(s->held[--s->held_n]);
}

static inline void story_init(struct story *s, uint64_t seed)
{
    *s = (struct story){.h_n = 1};
    bench_init(&s->b, seed);
    s->b.config.segment_bytes = 1000;
    s->b.config.index_interval_bytes = 200;
}

/* Create, produce, roll, flush, truncate, restart: everything that touches the files. */
static inline void story_run(struct story *s)
{
    if (bench_new(&s->b) != ERR_NONE) {
        s->b.log = NULL;
        return;
    }
    story_append(s, 1, 50);
    story_append(s, 3, 100);
    story_flush(s);
    for (int i = 0; i < 6; i++)
        story_append(s, 4, 150); /* rolls in the midst of a write too */
    bench_settle(&s->b);
    story_look(s);
    story_append(s, 2, 5000); /* not copied */
    story_truncate(s, 17);
    story_append(s, 5, 120);
    story_flush(s);
    story_append(s, 1, 60);
    story_restart(s, true);
    story_append(s, 4, 150);
    if (!s->stopped && s->b.log != NULL) {
        if (log_roll(s->b.log, s->b.now) != ERR_NONE)
            story_look(s);
    }
    story_append(s, 2, 150);
    story_restart(s, false);
    story_append(s, 2, 150);
    story_truncate(s, 21);
    story_append(s, 3, 150);
    bench_settle(&s->b);
    story_look(s);
}

/* Any of it in any order; jobs run late and out of order. */
static inline void story_run_random(struct story *s, struct rng *rng)
{
    if (bench_new(&s->b) != ERR_NONE) {
        s->b.log = NULL;
        return;
    }
    s->b.config.preallocate = rng_percent(rng, 20);
    for (int steps = 0; steps < 40 && s->b.log != NULL && !s->stopped; steps++) {
        uint64_t dice = rng_below(rng, 100);
        int64_t end = log_end_offset(s->b.log);
        if (dice < 50 && end < HISTORY_MAX - 64) {
            story_append(s, 1 + (int)rng_below(rng, 5), (int)rng_below(rng, 300));
        } else if (dice < 60) {
            log_flush(s->b.log, end);
        } else if (dice < 66 && s->h_n < HISTORIES && end > 0) {
            story_truncate(s, (int64_t)rng_below(rng, (uint64_t)end));
        } else if (dice < 70) {
            story_restart(s, rng_percent(rng, 50));
        } else if (dice < 73) {
            if (log_roll(s->b.log, s->b.now) != ERR_NONE)
                story_look(s);
        } else if (dice < 78 && s->full_disk) {
            bool full = rng_percent(rng, 60);
            s->b.fs.limit_bytes = full ? s->b.fs.used_bytes + rng_below(rng, 2000) : 0;
        } else if (s->b.env.waiting_n > 0) {
            memenv_run_nth_job(&s->b.env, rng_below(rng, s->b.env.waiting_n));
            memenv_reap_jobs(&s->b.env);
            story_look(s);
            if (rng_percent(rng, 50))
                s->checkpoint = log_recovery_point(s->b.log);
        }
    }
}

#endif
