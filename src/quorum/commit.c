/* The commit stream: a snapshot first where there is one, then every committed batch once, in
 * order, read back from the log in chunks. It stops while the page cache has to be filled. */
#include "quorum/inside.h"

enum { CHUNK_BYTES = 1 << 20 };

static bool tell_snapshot(struct raft *r)
{
    if (!r->snapshot_untold)
        return false;
    r->snapshot_untold = false;
    r->events.snapshot(r->events.ctx, r->newest.offset, r->newest.epoch,
                       (struct bytes){r->newest_content.p, (int32_t)r->newest_content.n});
    buf_close(&r->newest_content);
    return true;
}

/* Batches from offset on, up to limit, into r->read; 0 bytes: nothing there yet. */
static enum err read_chunk(struct raft *r, int64_t offset, int64_t limit)
{
    struct log_span span;
    r->read.n = 0;
    enum err e = log_read(r->log, offset, limit, CHUNK_BYTES, true, &span);
    if (e != ERR_NONE || span.n == 0)
        return e;
    e = buf_reserve(&r->read, span.n);
    if (e == ERR_NONE)
        e = log_span_read(&span, r->read.p, span.n);
    if (e == ERR_NONE)
        r->read.n = span.n;
    return e;
}

static void deliver_chunk(struct raft *r)
{
    struct bytes in = {r->read.p, (int32_t)r->read.n};
    struct batch b;
    while (in.n > 0 && !r->failed && batch_take(&in, &b) == ERR_NONE) {
        r->delivered = batch_next_offset(&b);
        r->delivered_bytes += b.size_bytes;
        r->events.committed(r->events.ctx, &b);
    }
}

static bool claim(struct raft *r)
{
    if (r->state != RAFT_LEADER || r->claimed || r->epoch_start_offset < 0 ||
        r->delivered <= r->epoch_start_offset)
        return false;
    r->claimed = true;
    r->events.claim(r->events.ctx, r->epoch);
    return true;
}

void raft_wake(struct timer *t)
{
    (void)t;
}

static bool snapshot_due(struct raft *r)
{
    const int64_t interval_ms = r->config.snapshot_max_interval_ms;
    if (r->delivered_bytes >= (uint64_t)r->config.snapshot_max_new_bytes)
        return true;
    if (interval_ms <= 0)
        return false;
    const int64_t due_us = r->snapshot_us + interval_ms * 1000;
    if (r->now.mono_us >= due_us)
        return true;
    if (!timer_armed(&r->snapshot_timer)) {
        enum err e = timer_arm(r->timers, &r->snapshot_timer, due_us);
        (void)e; /* without memory for it: once more in the next turn */
    }
    return false;
}

static bool ask_snapshot(struct raft *r)
{
    if (r->delivered_bytes == 0 || r->snapshot_job.running || !snapshot_due(r))
        return false;
    timer_cancel(r->timers, &r->snapshot_timer);
    r->snapshot_us = r->now.mono_us; /* if the owner cannot now, not before another interval */
    r->delivered_bytes = 0;
    r->events.snapshot_due(r->events.ctx);
    return true;
}

/* One chunk; an error, or batches that are none, end the node. */
static bool deliver_some(struct raft *r)
{
    const int64_t before = r->delivered;
    enum err e = read_chunk(r, r->delivered, r->high_watermark);
    if (e == ERR_AGAIN)
        return false;
    if (e == ERR_NONE)
        deliver_chunk(r);
    if (e == ERR_NONE && r->delivered == before)
        e = ERR_CORRUPT;
    if (e != ERR_NONE)
        raft_fail(r, e, "the metadata log cannot be read");
    return e == ERR_NONE;
}

bool raft_deliver(struct raft *r)
{
    bool moved = tell_snapshot(r);
    while (r->high_watermark > r->delivered && !r->failed && deliver_some(r))
        moved = true;
    if (r->failed)
        return true; /* to be told */
    moved |= claim(r);
    moved |= ask_snapshot(r);
    return moved;
}
