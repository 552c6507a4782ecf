/* Starts of a replica manager on what an earlier one left, and what its files say. */
#ifndef UNIT_CORE_REPLICA_RESTART_H
#define UNIT_CORE_REPLICA_RESTART_H

#include "fixture.h"

/* ------------------------------------------------------------------ what a start finds */

struct dirs {
    char *v[32];
    size_t n;
};

static inline enum err add_dir(void *ctx, const char *name, bool is_dir)
{
    struct dirs *d = ctx;
    if (is_dir && d->n < ARRAY_N(d->v))
        d->v[d->n++] = strdup(name);
    return ERR_NONE;
}

static inline struct dirs list_dirs(struct fix *f)
{
    struct dirs d = {.n = 0};
    CU_ASSERT_EQUAL(f->fs.vfs.ops->list(&f->fs.vfs, "/data", add_dir, &d), ERR_NONE);
    return d;
}

static inline void free_dirs(struct dirs *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->v[i]);
}

FIX_UNUSED static bool has_dir(struct fix *f, const char *name)
{
    struct dirs d = list_dirs(f);
    bool has = false;
    for (size_t i = 0; i < d.n; i++)
        has |= strcmp(d.v[i], name) == 0;
    free_dirs(&d);
    return has;
}

FIX_UNUSED static size_t dirs_with(struct fix *f, const char *part)
{
    struct dirs d = list_dirs(f);
    size_t n = 0;
    for (size_t i = 0; i < d.n; i++)
        n += strstr(d.v[i], part) != NULL;
    free_dirs(&d);
    return n;
}

FIX_UNUSED static int64_t checkpointed(struct fix *f, const char *file, const char *topic,
                                       int32_t index)
{
    char path[128];
    struct offset_checkpoint c;
    snprintf(path, sizeof path, "/data/%s", file);
    offset_checkpoint_init(&c);
    CU_ASSERT_EQUAL(offset_checkpoint_read(&f->fs.vfs, path, &c), ERR_NONE);
    offset_checkpoint_sort(&c);
    const int64_t offset = offset_checkpoint_get(&c, str_of(topic), index);
    offset_checkpoint_close(&c);
    return offset;
}

FIX_UNUSED static const char hw_file[] = "replication-offset-checkpoint";
FIX_UNUSED static const char recovery_file[] = "recovery-point-offset-checkpoint";
FIX_UNUSED static const char start_file[] = "log-start-offset-checkpoint";

static inline void read_checkpoint(struct fix *f, const char *file, struct offset_checkpoint *c)
{
    char path[128];
    snprintf(path, sizeof path, "/data/%s", file);
    offset_checkpoint_init(c);
    CU_ASSERT_EQUAL(offset_checkpoint_read(&f->fs.vfs, path, c), ERR_NONE);
    offset_checkpoint_sort(c);
}

/* A start of what is on disk. The image holds what it held, in new leader epochs. */
FIX_UNUSED static void restart(struct fix *f, bool clean)
{
    struct dirs d = list_dirs(f);
    struct offset_checkpoint hws, recovery, starts;
    struct image_delta everything;
    read_checkpoint(f, hw_file, &hws);
    read_checkpoint(f, recovery_file, &recovery);
    read_checkpoint(f, start_file, &starts);
    const struct replicas_found found = {d.v, d.n, &hws, &recovery, &starts, clean};
    CU_ASSERT_EQUAL_FATAL(fix_start(f), ERR_NONE);
    image_delta_init(&everything);
    everything.everything = true;
    fix_publish(f, &everything);
    replicas_load(f->rs, &found, f->now);
    offset_checkpoint_close(&hws);
    offset_checkpoint_close(&recovery);
    offset_checkpoint_close(&starts);
    free_dirs(&d);
    fix_turn(f);
    CU_ASSERT_EQUAL(f->loaded, 1);
}

/* Stopped as by kill -9 now: the checkpoint files are what they are, no log is known to be synced.
 */
FIX_UNUSED static void fix_kill(struct fix *f)
{
    size_t n;
    const uint8_t *p = memfs_get(&f->fs, "/data/log-start-offset-checkpoint", &n);
    uint8_t *starts = p == NULL ? NULL : malloc(n + 1);
    if (p != NULL)
        memcpy(starts, p, n);
    fix_stop(f); /* frees; what a kill would not have written goes with the checkpoints */
    CU_ASSERT_EQUAL(f->fs.vfs.ops->unlink(&f->fs.vfs, "/data/replication-offset-checkpoint"),
                    ERR_NONE);
    CU_ASSERT_EQUAL(f->fs.vfs.ops->unlink(&f->fs.vfs, "/data/recovery-point-offset-checkpoint"),
                    ERR_NONE);
    CU_ASSERT_EQUAL(f->fs.vfs.ops->unlink(&f->fs.vfs, "/data/log-start-offset-checkpoint"),
                    ERR_NONE);
    if (starts != NULL)
        memfs_put(&f->fs, "/data/log-start-offset-checkpoint", starts, n);
    free(starts);
}

#endif
