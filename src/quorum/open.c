/* Starting, the owner's part: the log is opened and fitted to the snapshots, the voters are looked
 * up, then the state machine takes the state its files say.
 *
 * A newest snapshot beyond the log (a crash between its rename and the log's restart) makes the log
 * start over at it. A log that starts above 0 without a snapshot is refused (KAFKA-14240). */
#include <stdio.h>

#include "quorum/control.h"
#include "quorum/loading.h"

/* ------------------------------------------------------------------ voters */

/* The newest Voters and KRaftVersion records in a snapshot's batches. */
static enum err scan_snapshot(struct raft *r, struct bytes in, bool bootstrap)
{
    struct batch b;
    while (in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
        if ((b.attributes & BATCH_CONTROL) == 0)
            continue;
        bool has_voters = false;
        enum err e = control_read(&b, &r->kraft_version, &r->voters, &has_voters);
        if (e != ERR_NONE)
            return e;
        r->voters_from_log |= has_voters && !bootstrap;
    }
    return ERR_NONE;
}

/* The worker saw them when it recovered the log: the owner does not read it all once more, nor wait
 * for what the page cache has lost again. */
static enum err take_log_voters(struct raft *r, const struct log_voters *v)
{
    if (log_end_offset(r->log) == log_start_offset(r->log))
        return ERR_NONE;
    if (v->version >= 0)
        r->kraft_version = v->version;
    if (v->has_set)
        r->voters = v->set;
    r->voters_from_log |= v->has_set;
    return v->err;
}

/* Static voters, those a static quorum-state lists, then what snapshots and log say. */
static enum err find_voters(struct raft_load *rl, struct raft *r)
{
    const struct loading *ld = raft_loading(rl);
    if (rl->static_voters != NULL)
        r->voters = *rl->static_voters;
    if (r->voters.n == 0 && ld->has_state && ld->state.data_version == 0) {
        r->voters.n = ld->state.voters_n;
        for (int32_t i = 0; i < ld->state.voters_n; i++)
            r->voters.v[i] = (struct voter){.id = ld->state.voters[i]};
    }
    enum err e = scan_snapshot(r, raft_bootstrap_records(r), true);
    if (e == ERR_NONE)
        e = scan_snapshot(r, (struct bytes){r->newest_content.p, (int32_t)r->newest_content.n},
                          false);
    if (e == ERR_NONE)
        e = take_log_voters(r, &ld->log_voters);
    if (e != ERR_NONE)
        return raft_load_fault(rl, e, "%s: a control record cannot be read: %s", rl->dir,
                               err_name(e));
    if (r->voters.n == 0)
        return raft_load_fault(
            rl, ERR_INVALID,
            "%s names no voters: set controller.quorum.voters, or format the directory", rl->dir);
    if (!raft_sole_voter(r))
        return raft_load_fault(rl, ERR_INVALID,
                               "%s belongs to a quorum of %d voters%s: not served yet", rl->dir,
                               r->voters.n, raft_is_voter(r) ? "" : " without this node");
    return ERR_NONE;
}

/* ------------------------------------------------------------------ opening */

static enum err fit_log(struct raft_load *rl, struct raft *r)
{
    const int64_t end = log_end_offset(r->log), start = log_start_offset(r->log);
    if (r->newest.offset < 0) {
        if (start > 0)
            return raft_load_fault(rl, ERR_INVALID,
                                   "%s starts at offset %lld without a snapshot: restore one",
                                   rl->dir, (long long)start);
        return ERR_NONE;
    }
    if (r->newest.offset < start)
        return raft_load_fault(rl, ERR_INVALID,
                               "%s starts at offset %lld, behind its newest snapshot of %lld: "
                               "restore what is missing",
                               rl->dir, (long long)start, (long long)r->newest.offset);
    const int32_t last_epoch = end > start ? epoch_cache_floor(log_epochs(r->log), end - 1) : -1;
    enum err e = ERR_NONE;
    const struct snapshot_id oldest = r->previous.offset >= 0 ? r->previous : r->newest;
    if (r->newest.epoch > last_epoch || (r->newest.epoch == last_epoch && r->newest.offset > end))
        e = log_reset(r->log, r->newest.offset, rl->now);
    else if (oldest.offset > start)
        e = raft_trim_log(r, oldest.offset);
    return e == ERR_NONE ? e : raft_load_fault(rl, e, "%s: %s", rl->dir, err_name(e));
}

static void take_state(struct raft_load *rl, struct raft *r)
{
    const struct loading *ld = raft_loading(rl);
    r->epoch = ld->has_state ? ld->state.epoch : 0;
    r->leader_id = ld->has_state ? ld->state.leader_id : -1;
    r->voted_id = ld->has_state ? ld->state.voted_id : -1;
    r->voted_directory_id = ld->state.voted_directory_id;
}

static void fill(struct raft_load *rl, struct raft *r)
{
    struct loading *ld = raft_loading(rl);
    r->env = rl->env;
    r->timers = rl->timers;
    r->config = rl->config;
    r->node_id = rl->node_id;
    r->directory_id = rl->directory_id;
    r->cluster_id = rl->cluster_id;
    r->endpoint = rl->endpoint;
    r->servers = rl->bootstrap;
    r->servers_n = rl->bootstrap_n;
    r->may_vote = rl->may_vote;
    r->dialing = rl->dialing;
    r->answers = rl->answers;
    r->events = rl->events;
    r->now = rl->now;
    r->high_watermark = -1;
    r->epoch_start_offset = -1;
    r->told_leader_id = -1;
    r->snapshot_us = rl->now.mono_us;
    r->newest = ld->newest;
    r->previous = ld->previous;
    r->newest_content = ld->newest_content;
    r->bootstrap = ld->bootstrap;
    buf_init(&ld->newest_content);
    buf_init(&ld->bootstrap);
    buf_init(&r->read);
    buf_init(&r->snapshot_job.content);
    list_init(&r->links);
    list_init(&r->done_ops);
    r->timer.fire = raft_timer_fired;
    r->snapshot_timer.fire = r->talk_timer.fire = raft_wake;
    r->persist.dir = r->snapshot_job.dir = rl->dir;
}

enum err raft_open(struct raft_load *rl, struct raft **out)
{
    struct loading *ld = raft_loading(rl);
    struct raft *r = rl->raft;
    rl->raft = NULL;
    fill(rl, r);
    enum err e = log_open(&ld->log, &r->log);
    if (e != ERR_NONE) {
        raft_free(r);
        return raft_load_fault(rl, e, "%s: %s", rl->dir, err_name(e));
    }
    *out = r; /* from here on raft_close ends it */
    e = fit_log(rl, r);
    if (e == ERR_NONE)
        e = find_voters(rl, r);
    if (e != ERR_NONE)
        return e;
    r->delivered = r->newest.offset >= 0 ? r->newest.offset : log_start_offset(r->log);
    r->snapshot_untold = r->newest.offset >= 0;
    take_state(rl, r);
    raft_begin_state(r);
    return ERR_NONE;
}
