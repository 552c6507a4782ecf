/* Jobs on whole partition directories: setting one aside under another name (Kafka: -stray),
 * removing what a deletion left behind. */
#include <stdio.h>
#include <stdlib.h>

#include "core/replica/inside.h"

enum { NAME_MAX_BYTES = 255, HEX_N = 32, PATH_BYTES = PARTITION_DIR_MAX + NAME_MAX_BYTES + 2 };

struct directory_job {
    struct job job;
    struct replicas *rs;
    bool remove;
    enum err err;
    void (*done)(void *ctx); /* NULL: replicas_job_ended */
    void *ctx;
    struct vfs *fs; /* of the worker, while it runs */
    char path[PATH_BYTES], to[PATH_BYTES];
};

static enum err remove_file(void *ctx, const char *name, bool is_dir)
{
    struct directory_job *dj = ctx;
    char path[PATH_BYTES + NAME_MAX_BYTES + 1];
    snprintf(path, sizeof path, "%s/%s", dj->path, name);
    return is_dir ? ERR_INVALID : dj->fs->ops->unlink(dj->fs, path);
}

static void directory_run(struct job *j, struct disk *d)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    dj->fs = d->fs;
    if (!dj->remove) {
        dj->err = d->fs->ops->rename(d->fs, dj->path, dj->to);
        if (dj->err == ERR_NONE)
            dj->err = d->sync_dir(d, dj->rs->log_dir); /* never changes */
        return;
    }
    dj->err = d->fs->ops->list(d->fs, dj->path, remove_file, dj);
    if (dj->err == ERR_NONE)
        dj->err = d->fs->ops->rmdir(d->fs, dj->path);
}

static void directory_done(struct job *j)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    struct replicas *rs = dj->rs;
    if (dj->err != ERR_NONE)
        env_log(rs->env, LOG_WARN, "directory_left path=%s error=%s", dj->path, err_name(dj->err));
    else if (!dj->remove)
        env_log(rs->env, LOG_WARN, "directory_set_aside path=%s as=%s", dj->path, dj->to);
    if (dj->done != NULL)
        dj->done(dj->ctx);
    else
        replicas_job_ended(rs);
    free(dj);
}

static struct directory_job *new_job(struct replicas *rs, const char *name)
{
    struct directory_job *dj = calloc(1, sizeof *dj);
    if (dj == NULL)
        return NULL;
    dj->rs = rs;
    snprintf(dj->path, sizeof dj->path, "%s/%s", rs->log_dir, name);
    dj->job = (struct job){.lane = JOB_BULK, .run = directory_run, .done = directory_done};
    return dj;
}

enum err directory_set_aside(struct replicas *rs, const char *name, const char *suffix,
                             void (*done)(void *ctx), void *ctx)
{
    struct directory_job *dj = new_job(rs, name);
    uint8_t unique[HEX_N / 2];
    char hex[HEX_N + 1];
    if (dj == NULL)
        return ERR_NOMEM;
    rs->env->random(rs->env, unique, sizeof unique);
    for (size_t i = 0; i < sizeof unique; i++)
        snprintf(hex + 2 * i, 3, "%02x", unique[i]);
    /* "t-0" -> "t-0.<32 hex>suffix", the first part cut so that the name fits */
    const int keep = NAME_MAX_BYTES - 1 - HEX_N - (int)strlen(suffix);
    snprintf(dj->to, sizeof dj->to, "%s/%.*s.%s%s", rs->log_dir, keep, name, hex, suffix);
    dj->done = done;
    dj->ctx = ctx;
    rs->env->submit(rs->env, &dj->job);
    return ERR_NONE;
}

void directory_remove(struct replicas *rs, const char *name)
{
    struct directory_job *dj = new_job(rs, name);
    if (dj == NULL) { /* the next start tries again */
        env_log(rs->env, LOG_WARN, "directory_left path=%s/%s error=NOMEM", rs->log_dir, name);
        return;
    }
    dj->remove = true;
    rs->jobs_n++;
    rs->env->submit(rs->env, &dj->job);
}
