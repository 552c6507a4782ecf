/* Raft's facts, its part of the turn, and its end. */
#include "quorum/raft.h"

#include <stdlib.h>

#include "quorum/inside.h"

enum { HAND_OVER_MAX_US = 5 * 1000 * 1000 };

int32_t raft_voter_index(const struct raft *r, int32_t id, struct uuid directory_id)
{
    const struct voter *v = voter_set_find(&r->voters, id, directory_id);
    return v == NULL ? -1 : (int32_t)(v - r->voters.v);
}

bool raft_is_voter(const struct raft *r)
{
    return r->may_vote && raft_voter_index(r, r->node_id, r->directory_id) >= 0;
}

bool raft_sole_voter(const struct raft *r)
{
    return r->voters.n == 1 && raft_is_voter(r);
}

bool raft_majority(const struct raft *r, int32_t n)
{
    return n > r->voters.n / 2;
}

int32_t raft_last_epoch(const struct raft *r)
{
    const int64_t end = log_end_offset(r->log);
    if (end == log_start_offset(r->log))
        return r->newest.offset >= 0 ? r->newest.epoch : 0;
    return epoch_cache_floor(log_epochs(r->log), end - 1);
}

void raft_epoch_end(const struct raft *r, int32_t epoch, int32_t *end_epoch, int64_t *end)
{
    log_end_offset_for_epoch(r->log, epoch, end_epoch, end);
    if (*end_epoch >= 0)
        return;
    *end_epoch = raft_last_epoch(r);
    *end = log_end_offset(r->log);
}

int64_t raft_timeout_us(int32_t ms)
{
    return (ms > 0 ? ms : 1) * (int64_t)1000;
}

bool raft_error_passes(enum err e)
{
    return e == ERR_NOSPC || e == ERR_NOMEM || e == ERR_NFILE;
}

enum raft_state raft_state(const struct raft *r)
{
    return r->state;
}

int32_t raft_epoch(const struct raft *r)
{
    return r->epoch;
}

int32_t raft_leader_id(const struct raft *r)
{
    return r->leader_id;
}

int64_t raft_high_watermark(const struct raft *r)
{
    return r->high_watermark;
}

int64_t raft_end_offset(const struct raft *r)
{
    return log_end_offset(r->log);
}

const struct voter_set *raft_voters(const struct raft *r)
{
    return &r->voters;
}

int16_t raft_kraft_version(const struct raft *r)
{
    return r->kraft_version;
}

const struct log *raft_log(const struct raft *r)
{
    return r->log;
}

bool raft_leader_endpoint(const struct raft *r, int32_t *leader_id, struct str *host,
                          uint16_t *port)
{
    *leader_id = r->leader_id;
    if (raft_leader_address(r, host, port))
        return true;
    *host = r->endpoint.host;
    *port = r->endpoint.port;
    return r->leader_id == r->node_id;
}

struct bytes raft_bootstrap_records(const struct raft *r)
{
    return (struct bytes){r->bootstrap.p, (int32_t)r->bootstrap.n};
}

/* ------------------------------------------------------------------ the turn */

static bool tell(struct raft *r)
{
    bool moved = false;
    if (r->failed && !r->failed_told) {
        r->failed_told = true;
        r->events.failed(r->events.ctx, r->failed_err, r->failed_what);
        return true;
    }
    if (r->resigned_untold) {
        r->resigned_untold = false;
        r->events.resign(r->events.ctx, r->resigned_epoch);
        moved = true;
    }
    if (raft_is_durable(r) && (r->told_leader_id != r->leader_id || r->told_epoch != r->epoch)) {
        r->told_leader_id = r->leader_id;
        r->told_epoch = r->epoch;
        r->events.leader(r->events.ctx, r->leader_id, r->epoch);
        moved = true;
    }
    return moved;
}

static bool write_log(struct raft *r)
{
    if (!log_dirty(r->log))
        return false;
    enum err e = log_write(r->log, r->now);
    if (e != ERR_NONE && e != ERR_AGAIN && !raft_error_passes(e))
        raft_fail(r, e, "a write failed");
    raft_unwritten_done(r, e);
    if (e == ERR_AGAIN)
        return false;
    raft_cut_voters(r, log_staged_end(r->log)); /* of what could not be written */
    buf_close(&r->incoming);
    return e == ERR_NONE;
}

/* Once for each end: the log tries again by itself, and not in every turn, while a disk is full. */
static void flush_log(struct raft *r)
{
    const int64_t end = log_end_offset(r->log);
    if (log_flushed_end(r->log) == end || r->flush_asked == end)
        return;
    r->flush_asked = end;
    log_flush(r->log, end);
}

static bool settle_closing(struct raft *r);

bool raft_settle(struct raft *r, struct now now)
{
    r->now = now;
    if (r->closed != NULL)
        return settle_closing(r);
    if (r->failed) {
        raft_abandon_ops(r);
        return tell(r);
    }
    bool moved = write_log(r);
    moved |= raft_lead(r);
    flush_log(r);
    moved |= raft_update_high_watermark(r);
    moved |= tell(r);
    moved |= raft_deliver(r);
    if (r->clean_due)
        raft_clean_snapshots(r);
    moved |= raft_wake_fetches(r);
    moved |= raft_finish_ops(r);
    moved |= raft_talk(r);
    return moved;
}

void raft_log_failed(void *ctx, struct log *l, enum err e, const char *what)
{
    (void)l;
    raft_fail(ctx, e, what);
}

void raft_log_progress(void *ctx, struct log *l)
{
    (void)ctx; /* the turn that ran the job settles us */
    (void)l;
}

/* ------------------------------------------------------------------ the end */

void raft_free(struct raft *r)
{
    raft_abandon_ops(r);
    raft_links_close(r);
    raft_drop_download(r);
    timer_cancel(r->timers, &r->change.timer);
    free(r->observers);
    raft_forget_told(r);
    timer_cancel(r->timers, &r->timer);
    timer_cancel(r->timers, &r->snapshot_timer);
    timer_cancel(r->timers, &r->clean_timer);
    timer_cancel(r->timers, &r->talk_timer);
    raft_kept_close(&r->kept);
    batch_builder_free(r->unwritten);
    voter_history_close(&r->history);
    buf_close(&r->incoming);
    buf_close(&r->read);
    buf_close(&r->newest_content);
    buf_close(&r->bootstrap);
    buf_close(&r->snapshot_job.content);
    buf_close(&r->install.content);
    free(r);
}

/* Jobs of ours that are still under way are waited for: their memory is in r. */
void raft_job_ended(struct raft *r)
{
    if (!r->log_gone || r->persisting || r->snapshot_job.running || r->install.running ||
        r->clean.running || r->pieces_n > 0)
        return;
    void (*closed)(void *, enum err) = r->closed;
    void *ctx = r->closed_ctx;
    const enum err e = r->closing_err;
    raft_free(r);
    closed(ctx, e);
}

static void log_closed(struct log_close *lc)
{
    struct raft *r = CONTAINER_OF(lc, struct raft, close);
    r->closing_err = lc->err;
    r->log_gone = true;
    raft_job_ended(r);
}

static void close_log(struct raft *r)
{
    r->handing_over = false;
    timer_cancel(r->timers, &r->timer);
    timer_cancel(r->timers, &r->snapshot_timer);
    timer_cancel(r->timers, &r->clean_timer);
    timer_cancel(r->timers, &r->talk_timer);
    raft_abandon_ops(r);
    raft_links_close(r);
    raft_drop_download(r);
    r->close = (struct log_close){.clean = !r->failed, .done = log_closed};
    log_close_start(r->log, &r->close);
    r->log = NULL;
}

static bool handed_over(const struct raft *r)
{
    if (r->state != RAFT_RESIGNED || r->handed_late || r->failed)
        return true;
    for (int32_t i = 0; i < r->voters.n; i++)
        if (!r->ended[i] && r->voters.v[i].id != r->node_id)
            return false;
    return true;
}

static bool settle_closing(struct raft *r)
{
    if (r->log == NULL)
        return false;
    bool moved = raft_wake_fetches(r);
    moved |= raft_finish_ops(r);
    moved |= raft_talk(r);
    if (!handed_over(r))
        return moved;
    close_log(r);
    return true;
}

void raft_close(struct raft *r, void (*done)(void *ctx, enum err e), void *ctx)
{
    r->closed = done;
    r->closed_ctx = ctx;
    if (r->state == RAFT_LEADER && !raft_sole_voter(r) && !r->failed) {
        raft_become_resigned(r);
        r->handing_over = raft_hand_over_in(r, HAND_OVER_MAX_US);
    }
    if (!r->handing_over)
        close_log(r);
}

void raft_drop(struct raft *r)
{
    if (r == NULL)
        return;
    CHECK(!r->persisting && !r->snapshot_job.running && !r->install.running && !r->clean.running &&
          r->pieces_n == 0);
    log_drop(r->log);
    raft_free(r);
}
