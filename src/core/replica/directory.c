/* Jobs on whole partition directories: setting one aside under another name (Kafka: -stray),
 * removing what a deletion left behind. */
#include <stdlib.h>

#include "core/replica/inside.h"
#include "log/path.h"

struct directory_job {
    struct job job;
    struct replicas *rs;
    struct log_dir *dir;
    enum err err;
    void (*done)(void *ctx);
    void *ctx;
    struct vfs *fs; /* of the worker, while it runs */
    char path[LOG_PATH_MAX], to[LOG_PATH_MAX];
};

static enum err new_job(struct log_dir *ld, const char *name, struct directory_job **out)
{
    struct directory_job *dj = calloc(1, sizeof *dj);
    if (dj == NULL)
        return ERR_NOMEM;
    dj->rs = ld->rs;
    dj->dir = ld;
    dj->job.lane = JOB_BULK;
    enum err e = path_join(dj->path, ld->path, name);
    if (e != ERR_NONE) {
        free(dj);
        return e;
    }
    *out = dj;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ aside */

static void rename_run(struct job *j, struct disk *d)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    dj->err = d->fs->ops->rename(d->fs, dj->path, dj->to);
    if (dj->err == ERR_NONE)
        dj->err = d->sync_dir(d, dj->dir->path);
}

static void rename_done(struct job *j)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    if (dj->err != ERR_NONE)
        env_log(dj->rs->env, LOG_WARN, "directory_left path=%s error=%s", dj->path,
                err_name(dj->err));
    else
        env_log(dj->rs->env, LOG_WARN, "directory_set_aside path=%s as=%s", dj->path, dj->to);
    dj->done(dj->ctx);
    free(dj);
}

enum err directory_set_aside(struct log_dir *ld, const char *name, void (*done)(void *ctx),
                             void *ctx)
{
    struct directory_job *dj;
    struct uuid unique;
    struct env *env = ld->rs->env;
    enum err e = new_job(ld, name, &dj);
    if (e != ERR_NONE)
        return e;
    env->random(env, unique.b, sizeof unique.b);
    e = path_aside(dj->to, dj->path, unique, SUFFIX_DIR_STRAY);
    if (e != ERR_NONE) {
        free(dj);
        return e;
    }
    dj->done = done;
    dj->ctx = ctx;
    dj->job.run = rename_run;
    dj->job.done = rename_done;
    env->submit(env, &dj->job);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ removal */

static enum err remove_file(void *ctx, const char *name, bool is_dir)
{
    struct directory_job *dj = ctx;
    char path[LOG_PATH_MAX];
    enum err e = is_dir ? ERR_INVALID : path_join(path, dj->path, name);
    return e == ERR_NONE ? dj->fs->ops->unlink(dj->fs, path) : e;
}

static void remove_run(struct job *j, struct disk *d)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    dj->fs = d->fs;
    dj->err = d->fs->ops->list(d->fs, dj->path, remove_file, dj);
    if (dj->err == ERR_NONE)
        dj->err = d->fs->ops->rmdir(d->fs, dj->path);
}

/* The next start tries again. */
static void not_removed(struct replicas *rs, const char *name, enum err e)
{
    if (e != ERR_NONE)
        env_log(rs->env, LOG_WARN, "directory_left name=%s error=%s", name, err_name(e));
}

static void remove_done(struct job *j)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    not_removed(dj->rs, dj->path, dj->err);
    replicas_job_ended(dj->rs);
    free(dj);
}

void directory_remove(struct log_dir *ld, const char *name)
{
    struct directory_job *dj;
    struct replicas *rs = ld->rs;
    enum err e = new_job(ld, name, &dj);
    if (e != ERR_NONE) {
        not_removed(rs, name, e);
        return;
    }
    dj->job.run = remove_run;
    dj->job.done = remove_done;
    rs->jobs_n++;
    rs->env->submit(rs->env, &dj->job);
}
