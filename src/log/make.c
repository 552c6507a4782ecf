/* The directory of a log that never had a byte: made by a job at the first write, with
 * partition.metadata on disk before anything else. The first segment's file is made with it: were
 * its name lost in a crash, later segments would seem to be all of the log. */
#include <stdlib.h>

#include "base/check.h"
#include "log/checkpoint.h"
#include "log/log_impl.h"

struct make {
    struct job job;
    struct log *log;
    const char *dir; /* the log's; never changes */
    struct uuid topic_id;
    int64_t base_offset; /* of the first segment */
    enum err err;
};

/* A directory that is there already belongs to this topic, or to none. */
static enum err check_owner(struct disk *d, const struct make *m)
{
    struct uuid found;
    enum err err = partition_metadata_read(d->fs, m->dir, &found);
    if (err == ERR_NOENT || err == ERR_CORRUPT)
        return ERR_NONE;
    return err == ERR_NONE && !uuid_eq(found, m->topic_id) ? ERR_EXIST : err;
}

static enum err make_first_segment(struct disk *d, const struct make *m)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    enum err err = path_file(path, m->dir, m->base_offset, SUFFIX_LOG);
    if (err == ERR_NONE)
        err = d->fs->ops->open(d->fs, path, FILE_CREATE, &f);
    if (err != ERR_NONE)
        return err;
    file_unref(f);
    return d->sync_dir(d, m->dir);
}

static void run(struct job *j, struct disk *d)
{
    struct make *m = CONTAINER_OF(j, struct make, job);
    char parent[LOG_PATH_MAX];
    m->err = d->fs->ops->mkdir(d->fs, m->dir);
    bool existed = m->err == ERR_EXIST;
    if (existed)
        m->err = check_owner(d, m);
    if (m->err == ERR_NONE && !uuid_is_zero(m->topic_id))
        m->err = partition_metadata_write(d, m->dir, m->topic_id);
    if (m->err == ERR_NONE)
        m->err = make_first_segment(d, m);
    if (m->err == ERR_NONE)
        m->err = path_parent(parent, m->dir);
    if (m->err == ERR_NONE)
        m->err = d->sync_dir(d, parent);
    if (existed && m->err == ERR_NOENT)
        m->err = ERR_EXIST; /* on its way to another name: the next attempt makes a new one */
}

static void take_first_segment(struct log *l, int64_t base_offset)
{
    struct segment *first = l->s.segments[0];
    if (first->head.base_offset == base_offset) {
        first->created = true;
        return;
    }
    /* The log was reset meanwhile. */
    enum err err = segment_unlink(log_files(l), base_offset);
    if (err == ERR_NONE)
        err = segment_open(first, log_files(l));
    l->names_dirty = true;
    if (err != ERR_NONE)
        log_fail(l, err, "first segment");
}

static void done(struct job *j)
{
    struct make *m = CONTAINER_OF(j, struct make, job);
    struct log *l = m->log;
    l->make_err = m->err;
    l->dir_state = m->err == ERR_NONE ? DIR_READY : DIR_NONE;
    if (m->err == ERR_NONE)
        take_first_segment(l, m->base_offset);
    free(m);
    if (log_job_done(l))
        return;
    log_progress(l);
}

enum err log_make_dir(struct log *l)
{
    if (l->dir_state == DIR_READY)
        return ERR_NONE;
    if (l->dir_state == DIR_MAKING || l->dir_state == DIR_HELD)
        return ERR_AGAIN;
    enum err err = l->make_err;
    l->make_err = ERR_NONE;
    if (err != ERR_NONE)
        return err;
    struct make *m = malloc(sizeof *m);
    if (m == NULL)
        return ERR_NOMEM;
    *m = (struct make){.job = {.lane = JOB_SYNC, .run = run, .done = done},
                       .log = l,
                       .dir = l->dir,
                       .topic_id = l->topic_id,
                       .base_offset = l->s.segments[0]->head.base_offset};
    l->dir_state = DIR_MAKING;
    log_submit(l, &m->job);
    return ERR_AGAIN;
}

void log_hold_dir(struct log *l)
{
    CHECK(l->dir_state == DIR_NONE);
    l->dir_state = DIR_HELD;
}

void log_release_dir(struct log *l)
{
    if (l->dir_state == DIR_HELD)
        l->dir_state = DIR_NONE;
}
