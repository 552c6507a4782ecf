/* What a leader does: its epoch begins with a LeaderChange batch; the high watermark is the
 * majority's end, where our own share counts only once it is synced. A record of an earlier epoch
 * is never committed by itself: the high watermark must pass the epoch's start (KAFKA-12619). */

#include "quorum/control.h"
#include "quorum/inside.h"

enum { APPEND_MAX_BYTES = 8 << 20 };

/* ------------------------------------------------------------------ batches */

/* Stages and writes what bb holds, at once: an append that finds no room is told of it. ERR_AGAIN:
 * staged, to be written when a truncation before it is on disk; until then bb must stay. An error
 * that passes (raft_error_passes) or ERR_TOO_LARGE leaves nothing behind. */
static enum err put(struct raft *r, struct batch_builder *bb, int64_t *last_offset)
{
    struct bytes bytes;
    struct batch facts;
    struct log_staged staged;
    enum err e = batch_builder_finish(bb, &bytes);
    if (e == ERR_NONE && bytes.n > APPEND_MAX_BYTES)
        e = ERR_TOO_LARGE;
    if (e == ERR_NONE)
        e = batch_parse(bytes, &facts);
    /* the builder's memory is ours to write to */
    if (e == ERR_NONE)
        e = log_stage_leader(r->log, (uint8_t *)(uintptr_t)bytes.p, &facts, r->epoch,
                             LOG_COORDINATOR, r->now, &staged);
    if (e != ERR_NONE)
        return e;
    *last_offset = staged.last_offset;
    e = log_write(r->log, r->now);
    if (e != ERR_NONE && e != ERR_AGAIN && !raft_error_passes(e))
        raft_fail(r, e, "a write failed");
    return e;
}

bool raft_own_entry_current(const struct raft *r)
{
    const int32_t i = raft_voter_index(r, r->node_id, r->directory_id);
    if (i < 0)
        return true;
    const struct voter *v = &r->voters.v[i];
    return v->port == r->endpoint.port && str_eq(str_of(v->host), r->endpoint.host) &&
           str_eq(str_of(v->listener), r->endpoint.listener) && v->kraft_min == 0 &&
           v->kraft_max == RAFT_KRAFT_VERSION_MAX;
}

/* The voters as they are to be written: with our entry as it is now. */
static void current_voters(const struct raft *r, struct voter_set *out)
{
    *out = r->voters;
    const int32_t i = raft_voter_index(r, r->node_id, r->directory_id);
    if (i < 0)
        return;
    /* a name too long to be kept leaves the entry as it is */
    (void)voter_reached_at(&out->v[i], r->endpoint.listener, r->endpoint.host, r->endpoint.port);
    out->v[i].kraft_min = 0;
    out->v[i].kraft_max = RAFT_KRAFT_VERSION_MAX;
}

static enum err add_leader_change(struct raft *r, struct batch_builder *bb)
{
    struct leader_change_message_voter voters[VOTERS_MAX], granting[VOTERS_MAX];
    struct leader_change_message m = {.leader_id = r->node_id};
    /* r->votes: still those that made us leader */
    for (int32_t i = 0; i < r->voters.n; i++) {
        voters[m.voters.n++] = (struct leader_change_message_voter){.voter_id = r->voters.v[i].id};
        if (r->votes[i] == VOTE_GRANTED)
            granting[m.granting_voters.n++] = voters[i];
    }
    m.voters.v = voters;
    m.granting_voters.v = granting;
    return control_add(bb, r->now.wall_ms, CONTROL_LEADER_CHANGE, &msg_leader_change_message, &m);
}

/* KIP-853: the voters join the log with the first leader that knows them only from formatting, and
 * when ours has moved. */
static enum err add_voters(const struct raft *r, const struct voter_set *set,
                           struct batch_builder *bb)
{
    enum err e = control_add_kraft_version(bb, r->now.wall_ms, r->kraft_version);
    return e == ERR_NONE ? control_add_voters(bb, r->now.wall_ms, set) : e;
}

/* Voters written at `at` rule from there on. */
static enum err take_voters(struct raft *r, int64_t at, int16_t kraft_version,
                            const struct voter_set *set)
{
    enum err e = voter_history_add(&r->history, at, kraft_version, set);
    if (e == ERR_NONE)
        raft_voters_changed(r);
    return e;
}

/* The epoch's first batch. */
static enum err put_first(struct raft *r, struct batch_builder *bb)
{
    int64_t last;
    struct voter_set set;
    const int64_t start = log_end_offset(r->log);
    const bool voters =
        r->kraft_version > 0 && !(raft_voters_from_log(r) && raft_own_entry_current(r));
    enum err e = log_assign_epoch(r->log, r->epoch, start);
    if (e == ERR_NONE)
        e = add_leader_change(r, bb);
    if (e == ERR_NONE && voters) {
        current_voters(r, &set);
        e = add_voters(r, &set, bb);
    }
    if (e == ERR_NONE && voters)
        e = take_voters(r, start, r->kraft_version, &set);
    if (e == ERR_NONE)
        e = put(r, bb, &last);
    if (e == ERR_NONE || e == ERR_AGAIN)
        r->epoch_start_offset = start;
    else
        raft_cut_voters(r, start);
    return e;
}

enum err raft_put_voters_as(struct raft *r, int16_t kraft_version, const struct voter_set *set,
                            int64_t *last)
{
    struct batch_builder *bb;
    const int64_t at = log_end_offset(r->log);
    CHECK(r->state == RAFT_LEADER && r->epoch_start_offset >= 0 && r->unwritten == NULL);
    enum err e = control_begin_batch(0, r->epoch, BATCH_CONTROL, &bb);
    if (e != ERR_NONE)
        return e;
    if (kraft_version != r->kraft_version)
        e = control_add_kraft_version(bb, r->now.wall_ms, kraft_version);
    if (e == ERR_NONE)
        e = control_add_voters(bb, r->now.wall_ms, set);
    if (e == ERR_NONE)
        e = take_voters(r, at, kraft_version, set);
    if (e == ERR_NONE)
        e = put(r, bb, last);
    if (e != ERR_NONE)
        raft_cut_voters(r, at);
    batch_builder_free(bb);
    return e;
}

enum err raft_put_voters(struct raft *r, const struct voter_set *set, int64_t *last)
{
    return raft_put_voters_as(r, r->kraft_version, set, last);
}

/* Voted out, by a set that is committed. */
static bool leave_voters(struct raft *r)
{
    if (r->state != RAFT_LEADER || raft_is_voter(r) || !raft_may_change_voters(r))
        return false;
    raft_become_resigned(r);
    return true;
}

static enum err begin_epoch(struct raft *r)
{
    struct batch_builder *bb;
    enum err e = control_begin_batch(0, r->epoch, BATCH_CONTROL, &bb);
    if (e != ERR_NONE)
        return e;
    e = put_first(r, bb);
    if (e == ERR_AGAIN) {
        r->unwritten = bb;
        return ERR_NONE;
    }
    batch_builder_free(bb);
    return e;
}

void raft_unwritten_done(struct raft *r, enum err e)
{
    if (r->unwritten == NULL || e == ERR_AGAIN)
        return;
    batch_builder_free(r->unwritten);
    r->unwritten = NULL;
    if (e == ERR_NONE)
        return;
    r->epoch_start_offset = -1; /* it was cut: once more, from the start */
    raft_cut_voters(r, log_end_offset(r->log));
}

enum err raft_append(struct raft *r, int32_t epoch, const struct bytes *values, size_t n,
                     struct now now, int64_t *last_offset)
{
    struct batch_builder *bb;
    r->now = now;
    if (r->state != RAFT_LEADER || r->epoch != epoch || r->epoch_start_offset < 0 || r->failed ||
        r->unwritten != NULL)
        return ERR_BUSY;
    CHECK(n > 0);
    enum err e = control_begin_batch(0, r->epoch, 0, &bb);
    if (e != ERR_NONE)
        return e;
    for (size_t i = 0; i < n && e == ERR_NONE; i++)
        e = batch_builder_add(bb, now.wall_ms, BYTES_NULL, values[i], NULL, 0);
    if (e == ERR_NONE)
        e = put(r, bb, last_offset);
    batch_builder_free(bb);
    CHECK(e != ERR_AGAIN); /* no truncation since the epoch's first batch */
    return e;
}

/* ------------------------------------------------------------------ high watermark */

/* The end that a majority of the voters has: sorted descending, index n/2. */
static int64_t majority_end(const struct raft *r)
{
    int64_t ends[VOTERS_MAX];
    for (int32_t i = 0; i < r->voters.n; i++) {
        const bool self = i == raft_voter_index(r, r->node_id, r->directory_id);
        const int64_t end = self ? log_flushed_end(r->log) : r->progress[i].end;
        int32_t k = i;
        for (; k > 0 && ends[k - 1] < end; k--)
            ends[k] = ends[k - 1];
        ends[k] = end;
    }
    return ends[r->voters.n / 2];
}

bool raft_update_high_watermark(struct raft *r)
{
    if (r->state != RAFT_LEADER || r->epoch_start_offset < 0 || !raft_is_durable(r))
        return false;
    const int64_t end = majority_end(r);
    if (end <= r->epoch_start_offset || end <= r->high_watermark)
        return false;
    r->high_watermark = end;
    return true;
}

/* Caught up when it asks for our end, or for what was our end when it asked before. */
static void take_position(const struct raft *r, struct voter_progress *p, int64_t end_offset)
{
    const int64_t leader_end = log_end_offset(r->log);
    if (end_offset >= leader_end)
        p->caught_up_ms = r->now.wall_ms;
    else if (end_offset >= p->leader_end)
        p->caught_up_ms = p->fetched_ms;
    p->end = end_offset;
    p->fetched_ms = r->now.wall_ms;
    p->leader_end = leader_end;
}

struct raft_replica raft_replica_at(const struct raft *r, int32_t i, struct now now)
{
    CHECK(i >= 0 && i < r->voters.n);
    const struct voter *v = &r->voters.v[i];
    const struct voter_progress *p = &r->progress[i];
    struct raft_replica out = {v->id, v->directory_id, p->end, p->fetched_ms, p->caught_up_ms};
    if (i == raft_voter_index(r, r->node_id, r->directory_id)) {
        out.end_offset = log_end_offset(r->log);
        out.fetched_ms = out.caught_up_ms = now.wall_ms;
    }
    return out;
}

static bool knows(const struct raft *r, const struct voter_progress *p, struct now now)
{
    const bool follows = p->end >= 0 && now.wall_ms - p->fetched_ms <= r->config.fetch_timeout_ms;
    return !follows || p->known_hw >= r->high_watermark;
}

bool raft_commits_known(const struct raft *r, struct now now)
{
    bool known = true;
    if (r->state != RAFT_LEADER)
        return true;
    for (int32_t i = 0; i < r->voters.n; i++)
        known &= r->voters.v[i].id == r->node_id || knows(r, &r->progress[i], now);
    for (int32_t i = 0; i < r->observers_n; i++)
        known &= knows(r, &r->observers[i].progress, now);
    return known;
}

void raft_heard(struct raft *r, int32_t replica_id, struct uuid directory_id)
{
    const int32_t i = raft_voter_index(r, replica_id, directory_id);
    if (r->state != RAFT_LEADER || i < 0)
        return;
    r->heard[i] = true;
    raft_voter_spoke(r, i);
}

void raft_handle_fetch_position(struct raft *r, int32_t replica_id, struct uuid directory_id,
                                int64_t end_offset, struct now now)
{
    r->now = now;
    const int32_t i = raft_voter_index(r, replica_id, directory_id);
    if (r->state != RAFT_LEADER)
        return;
    if (i < 0) { /* observers are served, not counted */
        struct voter_progress *o = raft_observer(r, replica_id, directory_id);
        if (o != NULL)
            take_position(r, o, end_offset);
        return;
    }
    take_position(r, &r->progress[i], end_offset);
    raft_heard(r, replica_id, directory_id);
    (void)raft_update_high_watermark(r);
}

/* ------------------------------------------------------------------ the turn */

/* A sole voter's batch may be on disk before its quorum-state: the log's epoch counts too when it
 * starts again, and nothing of the epoch is committed before both are. */
static bool may_begin_epoch(const struct raft *r)
{
    return r->state == RAFT_LEADER && r->epoch_start_offset < 0 && r->unwritten == NULL &&
           !r->failed && (raft_is_durable(r) || raft_sole_voter(r));
}

bool raft_lead(struct raft *r)
{
    if (raft_is_durable(r) && (raft_finish_change(r) || leave_voters(r)))
        return true;
    if (r->state == RAFT_CANDIDATE && raft_is_durable(r) &&
        raft_majority(r, raft_votes_n(r, VOTE_GRANTED))) {
        raft_become_leader(r);
        return true;
    }
    if (!may_begin_epoch(r))
        return false;
    if (timer_armed(&r->timer) && raft_sole_voter(r))
        return false; /* waits to try again */
    enum err e = begin_epoch(r);
    if (e == ERR_NONE)
        return true;
    if (raft_error_passes(e)) {
        env_log(r->env, LOG_WARN, "quorum_epoch_start_failed epoch=%d error=%s", r->epoch,
                err_name(e));
        if (raft_sole_voter(r))
            raft_retry_later(r); /* with others, check-quorum wakes us, and ends it */
        return false;
    }
    raft_fail(r, e, "the leader's first batch cannot be written");
    return true;
}
