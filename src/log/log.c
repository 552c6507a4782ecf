/* Life of a log, its facts, and how it talks to its owner. */
#include <stdlib.h>

#include "base/check.h"
#include "log/log_impl.h"

/* ------------------------------------------------------------------ life */

enum err log_alloc(const struct log_args *args, struct log **out)
{
    struct log *l = calloc(1, sizeof *l);
    if (l == NULL)
        return ERR_NOMEM;
    l->dir = strdup(args->dir);
    if (l->dir == NULL) {
        free(l);
        return ERR_NOMEM;
    }
    l->env = args->env;
    l->timers = args->timers;
    l->budget = args->budget;
    l->maker = args->maker;
    l->topic_id = args->topic_id;
    l->config = args->config;
    l->events = args->events;
    l->now = args->now;
    l->timer.fire = log_timer_fire;
    l->expiry.fire = log_expiry_fire;
    l->ahead_base = -1;
    l->undropped = -1;
    log_state_init(&l->s);
    log_stages_init(&l->own_stages);
    l->stages = args->stages != NULL ? args->stages : &l->own_stages;
    *out = l;
    return ERR_NONE;
}

void log_free(struct log *l)
{
    CHECK(l->jobs_n == 0);
    stage_reset(l);
    log_stages_close(&l->own_stages);
    log_state_close(&l->s);
    for (size_t i = 0; i < l->pending_n; i++)
        buf_close(&l->pending[i].bytes);
    free(l->pending);
    free(l->recents);
    free(l->closing_dir);
    buf_close(&l->closing_snapshot);
    free(l->dir);
    free(l);
}

enum err log_new(const struct log_args *args, struct log **out)
{
    struct log *l;
    struct segment *seg;
    enum err err = log_alloc(args, &l);
    if (err != ERR_NONE)
        return err;
    l->s.producers.budget = l->budget;
    err = segment_new(0, &seg);
    if (err != ERR_NONE)
        goto err_after_alloc;
    log_new_head(l, 0, &seg->head);
    err = log_state_add_segment(&l->s, seg);
    if (err != ERR_NONE) {
        segment_free(seg);
        goto err_after_alloc;
    }
    *out = l;
    return ERR_NONE;

err_after_alloc:
    log_free(l);
    return err;
}

/* ------------------------------------------------------------------ jobs and events */

void log_submit(struct log *l, struct job *j)
{
    l->jobs_n++;
    l->env->submit(l->env, j);
}

bool log_job_done(struct log *l)
{
    CHECK(l->jobs_n > 0);
    l->jobs_n--;
    if (l->closing == NULL)
        return false;
    if (l->jobs_n == 0)
        log_close_ready(l);
    return true;
}

void log_progress(struct log *l)
{
    l->events.progress(l->events.ctx, l);
}

bool log_err_passes(enum err e)
{
    return e == ERR_NOSPC || e == ERR_NOMEM || e == ERR_NFILE || e == ERR_EXIST;
}

static void fail_run(struct job *j, struct disk *d)
{
    /* Nothing: the job only brings the owner's thread to fail_done. */
}

static void fail_done(struct job *j)
{
    struct log *l = CONTAINER_OF(j, struct log, fail_job);
    if (log_job_done(l))
        return;
    l->events.failed(l->events.ctx, l, l->fail_err, l->fail_what);
}

void log_fail(struct log *l, enum err e, const char *what)
{
    if (l->offline)
        return;
    l->offline = true;
    l->fail_err = e;
    l->fail_what = what;
    l->fail_job = (struct job){.lane = JOB_SYNC, .run = fail_run, .done = fail_done};
    log_submit(l, &l->fail_job);
}

/* ------------------------------------------------------------------ facts */

int64_t log_start_offset(const struct log *l)
{
    return l->s.start_offset;
}

int64_t log_files_start(const struct log *l)
{
    return l->undropped >= 0 ? l->undropped : l->s.segments[0]->head.base_offset;
}

int64_t log_staged_end(const struct log *l)
{
    return l->stage != NULL ? l->stage->end_offset : l->s.end_offset;
}

int64_t log_end_offset(const struct log *l)
{
    return l->s.end_offset;
}

int64_t log_flushed_end(const struct log *l)
{
    return l->s.flushed_end;
}

int64_t log_recovery_point(const struct log *l)
{
    return l->s.flushed_end;
}

uint64_t log_size_bytes(const struct log *l)
{
    return l->s.size_bytes;
}

int32_t log_segments_n(const struct log *l)
{
    return (int32_t)l->s.segments_n;
}

struct uuid log_topic_id(const struct log *l)
{
    return l->topic_id;
}

const char *log_dir(const struct log *l)
{
    return l->dir;
}

bool log_is_offline(const struct log *l)
{
    return l->offline;
}

bool log_dirty(const struct log *l)
{
    return l->stage != NULL;
}

/* With flush.messages = n the append that makes n unflushed messages waits for the flush, as in
 * Kafka, where it does the flush itself. */
int64_t log_promised_end(const struct log *l)
{
    int64_t limit;
    if (__builtin_add_overflow(l->s.flushed_end, l->config.flush_messages - 1, &limit))
        return l->s.end_offset;
    return limit < l->s.end_offset ? limit : l->s.end_offset;
}

void log_set_config(struct log *l, const struct log_config *config)
{
    const bool flush = config->flush_ms != l->config.flush_ms ||
                       config->flush_messages != l->config.flush_messages;
    l->config = *config;
    if (!flush || l->offline || l->closing != NULL)
        return;
    timer_cancel(l->timers, &l->timer);
    log_after_write(l); /* arms it anew; a flush that waited to be tried again is tried now */
}

const struct epoch_cache *log_epochs(const struct log *l)
{
    return &l->s.epochs;
}

void log_end_offset_for_epoch(const struct log *l, int32_t epoch, int32_t *out_epoch,
                              int64_t *out_offset)
{
    epoch_cache_end_offset(&l->s.epochs, epoch, l->s.end_offset, out_epoch, out_offset);
}

enum err log_assign_epoch(struct log *l, int32_t epoch, int64_t start_offset)
{
    if (l->offline)
        return ERR_OFFLINE;
    bool changed;
    enum err err = epoch_cache_assign(&l->s.epochs, epoch, start_offset, &changed);
    if (err != ERR_NONE || !changed)
        return err;
    l->s.epochs_dirty = true;
    if (log_dirty(l)) {
        l->stage->assigned_epoch = epoch;
        l->stage->assigned_start = start_offset;
    }
    return ERR_NONE;
}

size_t log_producers_n(const struct log *l)
{
    return l->s.producers.n;
}

struct log_producer log_producer_at(const struct log *l, size_t i)
{
    CHECK(i < l->s.producers.n);
    const struct producer *p = l->s.producers.v[i];
    return (struct log_producer){
        .producer_id = p->producer_id,
        .epoch = p->epoch,
        .last_sequence = p->batches_n == 0 ? -1 : p->batches[p->batches_n - 1].last_sequence,
        .last_timestamp = p->last_timestamp,
        .coordinator_epoch = p->coordinator_epoch,
        .txn_first_offset = p->txn_first_offset,
    };
}

int64_t log_last_stable_offset(struct log *l, int64_t hw)
{
    if (hw > l->s.end_offset)
        hw = l->s.end_offset;
    int64_t stable = producer_state_stable(&l->s.producers, hw);
    if (stable < l->s.start_offset)
        stable = l->s.start_offset < hw ? l->s.start_offset : hw;
    return stable;
}
