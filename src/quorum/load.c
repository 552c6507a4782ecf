/* Starting: a worker reads quorum-state, the snapshots' names and contents, recovers the log; then
 * the state machine takes the state its files say (quorum.md section 1, "Start").
 *
 * A newest snapshot beyond the log (a crash between its rename and the log's restart) makes the log
 * start over at it. A log that starts above 0 without a snapshot is refused (KAFKA-14240). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/checkpoint.h"
#include "quorum/control.h"
#include "quorum/inside.h"

struct loading {
    bool has_state;
    struct quorum_state state;
    struct log_load log;
    struct snapshot_id newest, previous; /* offset -1: none */
    bool has_bootstrap;
    struct buf newest_content, bootstrap;
    struct disk *disk; /* while the worker runs */
    struct raft_load *rl;
};

static struct loading *loading_of(const struct raft_load *rl)
{
    return rl->impl;
}

__attribute__((format(printf, 3, 4))) static enum err fault(struct raft_load *rl, enum err e,
                                                            const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(rl->message, sizeof rl->message, fmt, ap);
    va_end(ap);
    return e;
}

/* ------------------------------------------------------------------ worker */

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), k = strlen(suffix);
    return n >= k && strcmp(name + n - k, suffix) == 0;
}

static enum err look_at_name(void *ctx, const char *name, bool is_dir)
{
    struct loading *ld = ctx;
    struct snapshot_id id;
    if (is_dir)
        return ERR_NONE;
    if (has_suffix(name, ".checkpoint.part") || has_suffix(name, ".checkpoint.deleted")) {
        char path[4300];
        snprintf(path, sizeof path, "%s/%s", ld->rl->dir, name);
        return ld->disk->fs->ops->unlink(ld->disk->fs, path);
    }
    if (!snapshot_name_parse(name, &id))
        return ERR_NONE;
    if (id.offset == 0 && id.epoch == 0) {
        ld->has_bootstrap = true;
    } else if (id.offset > ld->newest.offset) {
        ld->previous = ld->newest;
        ld->newest = id;
    } else if (id.offset > ld->previous.offset) {
        ld->previous = id;
    }
    return ERR_NONE;
}

static enum err read_snapshots(struct raft_load *rl, struct disk *d)
{
    struct loading *ld = loading_of(rl);
    char name[SNAPSHOT_NAME_MAX];
    enum err e = d->fs->ops->list(d->fs, rl->dir, look_at_name, ld);
    if (e != ERR_NONE)
        return fault(rl, e, "%s cannot be read: %s", rl->dir, err_name(e));
    if (ld->has_bootstrap)
        e = snapshot_read(d->fs, rl->dir, (struct snapshot_id){0, 0}, &ld->bootstrap);
    if (e != ERR_NONE)
        return fault(rl, e, "%s/00000000000000000000-0000000000.checkpoint: %s", rl->dir,
                     err_name(e));
    if (ld->newest.offset >= 0)
        e = snapshot_read(d->fs, rl->dir, ld->newest, &ld->newest_content);
    snapshot_name(ld->newest, name);
    return e == ERR_NONE ? e : fault(rl, e, "%s/%s: %s", rl->dir, name, err_name(e));
}

static enum err read_state(struct raft_load *rl, struct disk *d)
{
    struct loading *ld = loading_of(rl);
    enum err e = quorum_state_read(d->fs, rl->dir, &ld->state);
    ld->has_state = e == ERR_NONE;
    if (e == ERR_NONE || e == ERR_NOENT)
        return ERR_NONE;
    return fault(rl, e, "%s/quorum-state: %s; it holds this voter's vote: restore it", rl->dir,
                 err_name(e));
}

static enum err read_log(struct raft_load *rl, struct disk *d)
{
    struct loading *ld = loading_of(rl);
    log_load_run(&ld->log, d);
    if (ld->log.err != ERR_NONE)
        return fault(rl, ld->log.err, "%s", ld->log.message);
    return ERR_NONE;
}

static void load_run(struct job *j, struct disk *d)
{
    struct raft_load *rl = CONTAINER_OF(j, struct raft_load, job);
    loading_of(rl)->disk = d;
    rl->err = read_state(rl, d);
    if (rl->err == ERR_NONE)
        rl->err = read_snapshots(rl, d);
    if (rl->err == ERR_NONE)
        rl->err = read_log(rl, d);
}

static void load_done(struct job *j)
{
    struct raft_load *rl = CONTAINER_OF(j, struct raft_load, job);
    rl->done(rl);
}

/* Kafka's id of the metadata topic: 15 zero bytes and a 1. */
static const struct uuid metadata_topic_id = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

/* Told by a job all the same: done() never comes from inside the call that asked. */
static void out_of_memory_run(struct job *j, struct disk *d)
{
    struct raft_load *rl = CONTAINER_OF(j, struct raft_load, job);
    (void)d;
    rl->err = fault(rl, ERR_NOMEM, "out of memory");
}

void raft_load_start(struct raft_load *rl)
{
    struct loading *ld = calloc(1, sizeof *ld);
    struct raft *r = calloc(1, sizeof *r);
    rl->impl = ld;
    rl->raft = r;
    if (ld == NULL || r == NULL) {
        rl->job = (struct job){.lane = JOB_BULK, .run = out_of_memory_run, .done = load_done};
        rl->env->submit(rl->env, &rl->job);
        return;
    }
    ld->rl = rl;
    ld->newest = ld->previous = (struct snapshot_id){-1, -1};
    buf_init(&ld->newest_content);
    buf_init(&ld->bootstrap);
    ld->log.args = (struct log_args){
        .env = rl->env,
        .timers = rl->timers,
        .budget = rl->budget,
        .dir = rl->dir,
        .topic_id = metadata_topic_id,
        .config = rl->config.log,
        .events = {.ctx = r, .progress = raft_log_progress, .failed = raft_log_failed},
        .now = rl->now,
    };
    ld->log.checkpoints = (struct log_checkpoints){.clean = false, .log_start = -1};
    rl->job = (struct job){.lane = JOB_BULK, .run = load_run, .done = load_done};
    rl->env->submit(rl->env, &rl->job);
}

void raft_load_close(struct raft_load *rl)
{
    struct loading *ld = rl->impl;
    free(rl->raft);
    rl->raft = NULL;
    if (ld == NULL)
        return;
    log_load_close(&ld->log);
    buf_close(&ld->newest_content);
    buf_close(&ld->bootstrap);
    free(ld);
    rl->impl = NULL;
}

/* ------------------------------------------------------------------ voters */

/* The newest Voters and KRaftVersion records in some batches. */
static enum err scan_batches(struct raft *r, struct bytes in, bool from_log)
{
    struct batch b;
    while (in.n > 0 && batch_parse(in, &b) == ERR_NONE) {
        if ((b.attributes & BATCH_CONTROL) != 0) {
            bool has_voters = false;
            enum err e = control_read(&b, &r->kraft_version, &r->voters, &has_voters);
            if (e != ERR_NONE)
                return e;
            r->voters_from_log |= has_voters && from_log;
        }
        in.p += b.size_bytes;
        in.n -= (int32_t)b.size_bytes;
    }
    return ERR_NONE;
}

/* The log was just recovered: it is in the page cache, or the read says otherwise. */
static enum err scan_log(struct raft *r)
{
    int64_t offset = log_start_offset(r->log);
    while (offset < log_end_offset(r->log)) {
        struct log_span span;
        struct batch b;
        enum err e = log_read(r->log, offset, log_end_offset(r->log), 1 << 20, true, &span);
        if (e == ERR_NONE && span.n == 0)
            e = ERR_CORRUPT;
        if (e == ERR_NONE)
            e = buf_reserve(&r->read, span.n);
        if (e == ERR_NONE)
            e = log_span_read(&span, r->read.p, span.n);
        if (e != ERR_NONE)
            return e;
        struct bytes in = {r->read.p, (int32_t)span.n};
        e = scan_batches(r, in, true);
        if (e != ERR_NONE)
            return e;
        while (in.n > 0 && batch_parse(in, &b) == ERR_NONE) {
            offset = batch_next_offset(&b);
            in.p += b.size_bytes;
            in.n -= (int32_t)b.size_bytes;
        }
    }
    return ERR_NONE;
}

/* Static voters, those a static quorum-state lists, then what snapshots and log say. */
static enum err find_voters(struct raft_load *rl, struct raft *r)
{
    const struct loading *ld = loading_of(rl);
    if (rl->static_voters != NULL)
        r->voters = *rl->static_voters;
    if (r->voters.n == 0 && ld->has_state && ld->state.data_version == 0) {
        r->voters.n = ld->state.voters_n;
        for (int32_t i = 0; i < ld->state.voters_n; i++)
            r->voters.v[i] = (struct voter){.id = ld->state.voters[i]};
    }
    enum err e = scan_batches(r, raft_bootstrap_records(r), false);
    if (e == ERR_NONE)
        e = scan_batches(r, (struct bytes){r->newest_content.p, (int32_t)r->newest_content.n},
                         true);
    if (e == ERR_NONE)
        e = scan_log(r);
    if (e != ERR_NONE)
        return fault(rl, e, "%s: a control record cannot be read: %s", rl->dir, err_name(e));
    if (r->voters.n == 0)
        return fault(rl, ERR_INVALID,
                     "%s names no voters: set controller.quorum.voters, or format the directory",
                     rl->dir);
    if (!raft_sole_voter(r))
        return fault(rl, ERR_INVALID, "%s belongs to a quorum of %d voters%s: not served yet",
                     rl->dir, r->voters.n, raft_is_voter(r) ? "" : " without this node");
    return ERR_NONE;
}

/* ------------------------------------------------------------------ opening */

static enum err fit_log(struct raft_load *rl, struct raft *r)
{
    const int64_t end = log_end_offset(r->log), start = log_start_offset(r->log);
    if (r->newest.offset < 0) {
        if (start > 0)
            return fault(rl, ERR_INVALID,
                         "%s starts at offset %lld without a snapshot: restore one", rl->dir,
                         (long long)start);
        return ERR_NONE;
    }
    const int32_t last_epoch = end > start ? epoch_cache_floor(log_epochs(r->log), end - 1) : -1;
    if (r->newest.epoch > last_epoch || (r->newest.epoch == last_epoch && r->newest.offset > end))
        return log_reset(r->log, r->newest.offset, rl->now);
    const struct snapshot_id oldest = r->previous.offset >= 0 ? r->previous : r->newest;
    return oldest.offset > start ? log_raise_start(r->log, oldest.offset) : ERR_NONE;
}

static void take_state(struct raft_load *rl, struct raft *r)
{
    const struct loading *ld = loading_of(rl);
    r->epoch = ld->has_state ? ld->state.epoch : 0;
    r->leader_id = ld->has_state ? ld->state.leader_id : -1;
    r->voted_id = ld->has_state ? ld->state.voted_id : -1;
    r->voted_directory_id = ld->state.voted_directory_id;
}

/* Which state the files put us in. */
static void begin_state(struct raft *r)
{
    const int32_t last_epoch = raft_last_epoch(r);
    if (r->epoch < last_epoch)
        raft_become_unattached(r, last_epoch, -1);
    else if (r->leader_id == r->node_id)
        raft_become_resigned(r); /* never leader twice in one epoch (KAFKA-10527) */
    else if (r->leader_id >= 0)
        raft_become_unattached(r, r->epoch, r->leader_id);
    else if (r->voted_id == r->node_id && uuid_eq(r->voted_directory_id, r->directory_id))
        raft_resume_candidate(r);
    else
        raft_become_unattached(r, r->epoch, -1);
    if (!raft_sole_voter(r) || r->state == RAFT_CANDIDATE)
        return;
    /* Nobody else can answer: no reason to wait out a timer. */
    if (r->state == RAFT_RESIGNED)
        raft_become_unattached(r, r->epoch + 1, -1);
    raft_become_prospective(r);
}

static void fill(struct raft_load *rl, struct raft *r)
{
    struct loading *ld = loading_of(rl);
    r->env = rl->env;
    r->timers = rl->timers;
    r->config = rl->config;
    r->node_id = rl->node_id;
    r->directory_id = rl->directory_id;
    r->cluster_id = rl->cluster_id;
    r->endpoint = rl->endpoint;
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
    list_init(&r->outbox);
    r->timer.fire = raft_timer_fired;
    snprintf(r->persist.dir, sizeof r->persist.dir, "%s", rl->dir);
    snprintf(r->snapshot_job.dir, sizeof r->snapshot_job.dir, "%s", rl->dir);
}

enum err raft_open(struct raft_load *rl, struct raft **out)
{
    struct loading *ld = loading_of(rl);
    struct raft *r = rl->raft;
    rl->raft = NULL;
    fill(rl, r);
    enum err e = log_open(&ld->log, &r->log);
    if (e != ERR_NONE) {
        raft_free(r);
        return fault(rl, e, "%s: %s", rl->dir, err_name(e));
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
    begin_state(r);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ formatting */

enum err raft_format_standalone(struct disk *d, const char *dir, const struct raft_format *f)
{
    struct voter_set voters = {.n = 1};
    struct voter *v = &voters.v[0];
    struct buf content;
    if (f->endpoint.host.n >= (int32_t)sizeof v->host ||
        f->endpoint.listener.n >= (int32_t)sizeof v->listener)
        return ERR_INVALID;
    v->id = f->node_id;
    v->directory_id = f->directory_id;
    v->port = f->endpoint.port;
    v->kraft_max = 1;
    memcpy(v->host, f->endpoint.host.p, (size_t)f->endpoint.host.n);
    memcpy(v->listener, f->endpoint.listener.p, (size_t)f->endpoint.listener.n);
    const struct snapshot_content c = {
        .timestamp = f->now.wall_ms,
        .kraft_version = 1,
        .voters = &voters,
        .records = f->records,
        .records_n = f->records_n,
    };
    enum err e = d->fs->ops->mkdir(d->fs, dir);
    if (e != ERR_NONE && e != ERR_EXIST)
        return e;
    buf_init(&content);
    e = snapshot_build(&c, &content);
    if (e == ERR_NONE)
        e = snapshot_write(d, dir, c.id, content.p, content.n);
    buf_close(&content);
    return e;
}
