/* What a leader does: its epoch begins with a LeaderChange batch; the high watermark is the
 * majority's end, where our own share counts only once it is synced. A record of an earlier epoch
 * is never committed by itself: the high watermark must pass the epoch's start (KAFKA-12619). */
#include <limits.h>

#include "quorum/control.h"
#include "quorum/inside.h"

enum { APPEND_MAX_BYTES = 8 << 20 };

/* ------------------------------------------------------------------ batches */

static enum err stage(struct raft *r, struct batch_builder *bb, int64_t *last_offset)
{
    struct bytes bytes;
    struct batch facts;
    struct log_staged staged;
    enum err e = batch_builder_finish(bb, &bytes);
    if (e == ERR_NONE && bytes.n > APPEND_MAX_BYTES)
        e = ERR_TOO_LARGE;
    if (e == ERR_NONE)
        e = batch_parse(bytes, &facts);
    if (e != ERR_NONE)
        return e;
    /* the builder's memory is ours, and the write follows before it is freed */
    e = log_stage_leader(r->log, (uint8_t *)(uintptr_t)bytes.p, &facts, r->epoch, LOG_COORDINATOR,
                         r->now, &staged);
    if (e == ERR_NONE)
        e = log_write(r->log, r->now);
    if (e == ERR_NONE)
        *last_offset = staged.last_offset;
    return e;
}

static enum err begin(const struct raft *r, int16_t attributes, struct batch_builder **out)
{
    const struct batch_builder_args args = {
        .base_offset = 0,
        .leader_epoch = r->epoch,
        .attributes = attributes,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
        .level = INT_MIN,
    };
    return batch_builder_new(&args, out);
}

/* Is our own entry in the voter set what we are reached at now? */
static bool own_entry_current(const struct raft *r)
{
    const int32_t i = raft_voter_index(r, r->node_id, r->directory_id);
    if (i < 0)
        return true;
    const struct voter *v = &r->voters.v[i];
    return v->port == r->endpoint.port && str_eq(str_of(v->host), r->endpoint.host) &&
           str_eq(str_of(v->listener), r->endpoint.listener);
}

static void update_own_entry(struct raft *r)
{
    const int32_t i = raft_voter_index(r, r->node_id, r->directory_id);
    if (i < 0)
        return;
    struct voter *v = &r->voters.v[i];
    if (r->endpoint.host.n >= (int32_t)sizeof v->host ||
        r->endpoint.listener.n >= (int32_t)sizeof v->listener)
        return;
    memset(v->host, 0, sizeof v->host);
    memset(v->listener, 0, sizeof v->listener);
    memcpy(v->host, r->endpoint.host.p, (size_t)r->endpoint.host.n);
    memcpy(v->listener, r->endpoint.listener.p, (size_t)r->endpoint.listener.n);
    v->port = r->endpoint.port;
}

static enum err add_leader_change(struct raft *r, struct batch_builder *bb)
{
    struct leader_change_message_voter voters[VOTERS_MAX], granting[VOTERS_MAX];
    struct leader_change_message m = {.leader_id = r->node_id};
    for (int32_t i = 0; i < r->voters.n; i++) {
        voters[m.voters.n++] = (struct leader_change_message_voter){.voter_id = r->voters.v[i].id};
        if (r->votes[i] == VOTE_GRANTED)
            granting[m.granting_voters.n++].voter_id = r->voters.v[i].id;
    }
    m.voters.v = voters;
    m.granting_voters.v = granting;
    return control_add(bb, r->now.wall_ms, CONTROL_LEADER_CHANGE, &msg_leader_change_message, &m);
}

/* KIP-853: the voters join the log with the first leader that knows them only from formatting. */
static enum err add_voters(struct raft *r, struct batch_builder *bb)
{
    if (r->kraft_version == 0 || (r->voters_from_log && own_entry_current(r)))
        return ERR_NONE;
    update_own_entry(r);
    enum err e = control_add_kraft_version(bb, r->now.wall_ms, r->kraft_version);
    if (e == ERR_NONE)
        e = control_add_voters(bb, r->now.wall_ms, &r->voters);
    r->voters_from_log |= e == ERR_NONE;
    return e;
}

static enum err begin_epoch(struct raft *r)
{
    struct batch_builder *bb;
    int64_t last;
    const int64_t start = log_end_offset(r->log);
    enum err e = log_assign_epoch(r->log, r->epoch, start);
    if (e == ERR_NONE)
        e = begin(r, BATCH_CONTROL, &bb);
    if (e != ERR_NONE)
        return e;
    e = add_leader_change(r, bb);
    if (e == ERR_NONE)
        e = add_voters(r, bb);
    if (e == ERR_NONE)
        e = stage(r, bb, &last);
    batch_builder_free(bb);
    if (e == ERR_NONE)
        r->epoch_start_offset = start;
    return e;
}

enum err raft_append(struct raft *r, int32_t epoch, const struct bytes *values, size_t n,
                     struct now now, int64_t *last_offset)
{
    struct batch_builder *bb;
    r->now = now;
    if (r->state != RAFT_LEADER || r->epoch != epoch || r->epoch_start_offset < 0 || r->failed)
        return ERR_BUSY;
    CHECK(n > 0);
    enum err e = begin(r, 0, &bb);
    if (e != ERR_NONE)
        return e;
    for (size_t i = 0; i < n && e == ERR_NONE; i++)
        e = batch_builder_add(bb, now.wall_ms, BYTES_NULL, values[i], NULL, 0);
    if (e == ERR_NONE)
        e = stage(r, bb, last_offset);
    batch_builder_free(bb);
    return e;
}

/* ------------------------------------------------------------------ high watermark */

/* The end that a majority of the voters has: sorted descending, index n/2. */
static int64_t majority_end(const struct raft *r)
{
    int64_t ends[VOTERS_MAX];
    for (int32_t i = 0; i < r->voters.n; i++) {
        const bool self = i == raft_voter_index(r, r->node_id, r->directory_id);
        const int64_t end = self ? log_flushed_end(r->log) : r->ends[i];
        int32_t k = i;
        for (; k > 0 && ends[k - 1] < end; k--)
            ends[k] = ends[k - 1];
        ends[k] = end;
    }
    return ends[r->voters.n / 2];
}

void raft_update_high_watermark(struct raft *r)
{
    if (r->state != RAFT_LEADER || r->epoch_start_offset < 0 || r->voters.n == 0)
        return;
    const int64_t end = majority_end(r);
    if (end > r->epoch_start_offset && end > r->high_watermark)
        r->high_watermark = end;
}

void raft_handle_fetch_position(struct raft *r, int32_t replica_id, struct uuid directory_id,
                                int64_t end_offset, struct now now)
{
    r->now = now;
    const int32_t i = raft_voter_index(r, replica_id, directory_id);
    if (r->state != RAFT_LEADER || i < 0)
        return; /* observers are served, not counted */
    r->ends[i] = end_offset;
    r->heard[i] = true;
    raft_update_high_watermark(r);
}

/* ------------------------------------------------------------------ the turn */

static int32_t granted_n(const struct raft *r)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->voters.n; i++)
        n += r->votes[i] == VOTE_GRANTED;
    return n;
}

bool raft_lead(struct raft *r)
{
    if (!raft_is_durable(r))
        return false;
    if (r->state == RAFT_CANDIDATE && raft_majority(r, granted_n(r))) {
        raft_become_leader(r);
        return true;
    }
    if (r->state != RAFT_LEADER || r->epoch_start_offset >= 0)
        return false;
    enum err e = begin_epoch(r);
    if (e == ERR_NOSPC) /* no vote was broken: another try at the next turn that something wakes */
        return false;
    if (e != ERR_NONE)
        raft_fail(r, e, "the leader's first batch cannot be written");
    return true;
}
