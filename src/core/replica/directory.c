/* Jobs on whole partition directories: setting one aside under another name (Kafka: -stray),
 * removing what a deletion left behind. */
#include <stdio.h>
#include <stdlib.h>

#include "core/replica/inside.h"

enum { NAME_MAX_BYTES = 255, HEX_N = 32 };

struct directory_job {
    struct job job;
    struct replicas *rs;
    bool remove;
    enum err err;
    char path[4400], to[4700];
    struct vfs *fs; /* of the worker, while it runs */
};

static enum err remove_file(void *ctx, const char *name, bool is_dir)
{
    struct directory_job *dj = ctx;
    char path[4700];
    snprintf(path, sizeof path, "%s/%s", dj->path, name);
    return is_dir ? ERR_INVALID : dj->fs->ops->unlink(dj->fs, path);
}

static void directory_run(struct job *j, struct disk *d)
{
    struct directory_job *dj = CONTAINER_OF(j, struct directory_job, job);
    dj->fs = d->fs;
    if (!dj->remove) {
        dj->err = d->fs->ops->rename(d->fs, dj->path, dj->to);
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
    free(dj);
    replicas_job_ended(rs);
}

static struct directory_job *new_job(struct replicas *rs, const char *name)
{
    struct directory_job *dj = calloc(1, sizeof *dj);
    if (dj == NULL) {
        env_log(rs->env, LOG_WARN, "directory_left path=%s/%s error=NOMEM", rs->log_dir, name);
        return NULL;
    }
    dj->rs = rs;
    snprintf(dj->path, sizeof dj->path, "%s/%s", rs->log_dir, name);
    dj->job = (struct job){.lane = JOB_BULK, .run = directory_run, .done = directory_done};
    return dj;
}

/* "t-0" -> "t-0.<32 hex>suffix", the first part cut so that the name fits. */
void directory_set_aside(struct replicas *rs, const char *name, const char *suffix)
{
    struct directory_job *dj = new_job(rs, name);
    uint8_t unique[HEX_N / 2];
    char hex[HEX_N + 1];
    if (dj == NULL)
        return;
    rs->env->random(rs->env, unique, sizeof unique);
    for (size_t i = 0; i < sizeof unique; i++)
        snprintf(hex + 2 * i, 3, "%02x", unique[i]);
    const int keep = NAME_MAX_BYTES - 1 - HEX_N - (int)strlen(suffix);
    snprintf(dj->to, sizeof dj->to, "%s/%.*s.%s%s", rs->log_dir, keep, name, hex, suffix);
    rs->closes_n++;
    rs->env->submit(rs->env, &dj->job);
}

void directory_remove(struct replicas *rs, const char *name)
{
    struct directory_job *dj = new_job(rs, name);
    if (dj == NULL)
        return;
    dj->remove = true;
    rs->closes_n++;
    rs->env->submit(rs->env, &dj->job);
}
