/* Starting, the owner's part: the log is opened and fitted to the snapshots, the voters are looked
 * up, then the state machine takes the state its files say.
 *
 * A newest snapshot beyond the log (a crash between its rename and the log's restart) makes the log
 * start over at it. A log that starts above 0 without a snapshot is refused (KAFKA-14240). */
#include <stdio.h>

#include "quorum/control.h"
#include "quorum/loading.h"

/* ------------------------------------------------------------------ voters */

/* The newest Voters and KRaftVersion records in a snapshot's batches; *found: there were any. */
static enum err scan_snapshot(struct bytes in, int16_t *version, struct voter_set *set, bool *found)
{
    struct batch b;
    const int16_t before = *version;
    while (in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
        if ((b.attributes & BATCH_CONTROL) == 0)
            continue;
        enum err e = control_read(&b, version, set, found);
        if (e != ERR_NONE)
            return e;
    }
    *found |= *version != before;
    return ERR_NONE;
}

/* The worker saw them when it recovered the log: the owner does not read it all once more, nor wait
 * for what the page cache has lost again. */
static enum err take_log_voters(struct raft *r, const struct log_voters *lv)
{
    struct voter_set set = r->voters;
    int16_t version = r->kraft_version;
    if (log_end_offset(r->log) == log_start_offset(r->log))
        return ERR_NONE;
    enum err e = lv->err;
    for (size_t i = 0; i < lv->changes.n && e == ERR_NONE; i++) {
        const struct voter_change *c = &lv->changes.v[i];
        if (c->offset < r->newest.offset || c->offset >= log_end_offset(r->log))
            continue; /* in the snapshot */
        if (c->n > 0) {
            set.n = c->n;
            memcpy(set.v, c->voters, (size_t)c->n * sizeof *c->voters);
        }
        if (c->kraft_version >= 0)
            version = c->kraft_version;
        e = voter_history_add(&r->history, c->offset, version, &set);
    }
    return e;
}

enum err raft_take_snapshot_voters(struct raft *r)
{
    struct voter_set set = r->voters;
    int16_t version = r->kraft_version;
    bool found = false;
    const struct bytes in = {r->newest_content.p, (int32_t)r->newest_content.n};
    enum err e = scan_snapshot(in, &version, &set, &found);
    return e == ERR_NONE && found
               ? voter_history_add(&r->history, r->newest.offset - 1, version, &set)
               : e;
}

/* Static voters, those a static quorum-state lists, then what the 0-0 snapshot says. */
static enum err first_voters(struct raft_load *rl, struct raft *r)
{
    const struct loading *ld = raft_loading(rl);
    struct voter_set set = {.n = 0};
    int16_t version = 0;
    bool found = false;
    if (rl->static_voters != NULL)
        set = *rl->static_voters;
    if (set.n == 0 && ld->has_state && ld->state.data_version == 0) {
        set.n = ld->state.voters_n;
        for (int32_t i = 0; i < set.n; i++)
            set.v[i] = (struct voter){.id = ld->state.voters[i]};
    }
    enum err e = scan_snapshot(raft_bootstrap_records(r), &version, &set, &found);
    return e == ERR_NONE ? voter_history_add(&r->history, -1, version, &set) : e;
}

static void take_newest_voters(struct raft *r)
{
    bool any = voter_history_at(&r->history, INT64_MAX, &r->kraft_version, &r->voters);
    CHECK(any);
}

/* Removed before we stopped, we stay so. */
static void note_memberships(struct raft *r)
{
    for (size_t i = 0; i < r->history.n && r->may_vote; i++)
        for (int32_t k = 0; k < r->history.v[i].n; k++)
            r->was_voter |= r->history.v[i].voters[k].id == r->node_id &&
                            uuid_eq(r->history.v[i].voters[k].directory_id, r->directory_id);
}

static enum err find_voters(struct raft_load *rl, struct raft *r)
{
    enum err e = first_voters(rl, r);
    if (e == ERR_NONE) {
        take_newest_voters(r);
        e = raft_take_snapshot_voters(r);
    }
    if (e == ERR_NONE) {
        take_newest_voters(r);
        e = take_log_voters(r, &raft_loading(rl)->log_voters);
    }
    if (e != ERR_NONE)
        return raft_load_fault(rl, e, "%s: a control record cannot be read: %s", rl->dir,
                               err_name(e));
    take_newest_voters(r);
    note_memberships(r);
    if (r->voters.n == 0 && r->servers_n == 0)
        return raft_load_fault(rl, ERR_INVALID,
                               "%s names no voters: set controller.quorum.voters or "
                               "controller.quorum.bootstrap.servers, or format the directory",
                               rl->dir);
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
    if (r->newest.epoch > last_epoch || (r->newest.epoch == last_epoch && r->newest.offset > end))
        e = log_reset(r->log, r->newest.offset, rl->now);
    raft_drop_behind(r);
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
    r->kept = ld->kept;
    ld->kept = (struct snapshots_kept){0};
    r->newest_content = ld->newest_content;
    r->bootstrap = ld->bootstrap;
    buf_init(&ld->newest_content);
    buf_init(&ld->bootstrap);
    buf_init(&r->read);
    buf_init(&r->snapshot_job.content);
    buf_init(&r->install.content);
    list_init(&r->links);
    list_init(&r->done_ops);
    list_init(&r->parked);
    buf_init(&r->incoming);
    voter_history_init(&r->history);
    r->timer.fire = raft_timer_fired;
    r->snapshot_timer.fire = r->talk_timer.fire = raft_wake;
    r->clean_timer.fire = raft_clean_timer_fired;
    r->clean_due = r->kept.n > 0;
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
