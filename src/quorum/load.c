/* Starting, the worker's part: quorum-state, the snapshots' names and contents, the log, always
 * recovered whole. What is half written or no longer needed is removed here. open.c goes on. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/checkpoint.h"
#include "quorum/control.h"
#include "quorum/loading.h"

struct loading *raft_loading(const struct raft_load *rl)
{
    return rl->impl;
}

enum err raft_load_fault(struct raft_load *rl, enum err e, const char *fmt, ...)
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

/* Names come in order, the oldest first. */
static enum err found_snapshot(struct loading *ld, struct snapshot_id id)
{
    char name[SNAPSHOT_NAME_MAX], path[4300];
    struct file_stat st;
    struct vfs *fs = ld->disk->fs;
    if (id.offset == 0 && id.epoch == 0) {
        ld->has_bootstrap = true;
        return ERR_NONE;
    }
    snapshot_name(id, name);
    snprintf(path, sizeof path, "%s/%s", ld->rl->dir, name);
    enum err e = fs->ops->stat(fs, path, &st);
    if (e != ERR_NONE)
        return e;
    ld->newest = id;
    const struct snapshot_kept s = {id, (int64_t)st.size_bytes, st.mtime_ms};
    return raft_keep_snapshot(&ld->kept, s);
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
    return snapshot_name_parse(name, &id) ? found_snapshot(ld, id) : ERR_NONE;
}

static enum err read_snapshots(struct raft_load *rl, struct disk *d)
{
    struct loading *ld = raft_loading(rl);
    char name[SNAPSHOT_NAME_MAX];
    enum err e = d->fs->ops->list(d->fs, rl->dir, look_at_name, ld);
    if (e != ERR_NONE)
        return raft_load_fault(rl, e, "%s cannot be read: %s", rl->dir, err_name(e));
    if (ld->has_bootstrap)
        e = snapshot_read(d->fs, rl->dir, (struct snapshot_id){0, 0}, &ld->bootstrap);
    if (e != ERR_NONE)
        return raft_load_fault(rl, e, "%s/00000000000000000000-0000000000.checkpoint: %s", rl->dir,
                               err_name(e));
    if (ld->newest.offset >= 0)
        e = snapshot_read(d->fs, rl->dir, ld->newest, &ld->newest_content);
    snapshot_name(ld->newest, name);
    return e == ERR_NONE ? e : raft_load_fault(rl, e, "%s/%s: %s", rl->dir, name, err_name(e));
}

static enum err read_state(struct raft_load *rl, struct disk *d)
{
    struct loading *ld = raft_loading(rl);
    enum err e = quorum_state_read(d->fs, rl->dir, &ld->state);
    ld->has_state = e == ERR_NONE;
    if (e == ERR_NONE || e == ERR_NOENT)
        return ERR_NONE;
    return raft_load_fault(rl, e, "%s/quorum-state: %s; it holds this voter's vote: restore it",
                           rl->dir, err_name(e));
}

static void take_control(struct log_load *ll, const struct batch *b)
{
    struct log_voters *v = &CONTAINER_OF(ll, struct loading, log)->log_voters;
    bool has_set = false;
    const int16_t before = v->version;
    if (v->err == ERR_NONE)
        v->err = control_read(b, &v->version, &v->set, &has_set);
    if (v->err == ERR_NONE && (has_set || v->version != before))
        v->err = voter_history_add(&v->changes, b->base_offset, v->version, &v->set);
}

static enum err read_log(struct raft_load *rl, struct disk *d)
{
    struct loading *ld = raft_loading(rl);
    log_load_run(&ld->log, d);
    if (ld->log.err != ERR_NONE)
        return raft_load_fault(rl, ld->log.err, "%s", ld->log.message);
    return ERR_NONE;
}

static void load_run(struct job *j, struct disk *d)
{
    struct raft_load *rl = CONTAINER_OF(j, struct raft_load, job);
    raft_loading(rl)->disk = d;
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

const struct uuid raft_topic_id = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

/* Told by a job all the same: done() never comes from inside the call that asked. */
static void out_of_memory_run(struct job *j, struct disk *d)
{
    struct raft_load *rl = CONTAINER_OF(j, struct raft_load, job);
    (void)d;
    rl->err = raft_load_fault(rl, ERR_NOMEM, "out of memory");
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
    ld->newest = (struct snapshot_id){-1, -1};
    buf_init(&ld->newest_content);
    buf_init(&ld->bootstrap);
    voter_history_init(&ld->log_voters.changes);
    ld->log.args = (struct log_args){
        .env = rl->env,
        .timers = rl->timers,
        .budget = rl->budget,
        .dir = rl->dir,
        .topic_id = raft_topic_id,
        .config = rl->config.log,
        .events = {.ctx = r, .progress = raft_log_progress, .failed = raft_log_failed},
        .now = rl->now,
    };
    ld->log.control = take_control;
    ld->log_voters.version = -1;
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
    raft_kept_close(&ld->kept);
    voter_history_close(&ld->log_voters.changes);
    free(ld);
    rl->impl = NULL;
}
