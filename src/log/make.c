/* The directory of a log that never had a byte: made by a job at the first write, with
 * partition.metadata on disk before anything else. The first segment's file is made with it: were
 * its name lost in a crash, later segments would seem to be all of the log.
 *
 * Logs that wait at the same time share a job: all files are written before the first is waited
 * for, and the directory above is synced once. A few jobs are under way, so that their waits
 * overlap; what comes meanwhile shares the next. */
#include <stdlib.h>

#include "base/check.h"
#include "log/checkpoint.h"
#include "log/log_impl.h"

enum { MAKES_PER_JOB = 16 }; /* who waits behind a job waits for two syncs of each */

struct make {
    struct list link;
    struct log *log;
    const char *dir; /* the log's; never changes */
    struct uuid topic_id;
    int64_t base_offset; /* of the first segment */
    bool existed;
    enum err err;
};

void log_maker_init(struct log_maker *m, struct env *env)
{
    *m = (struct log_maker){.env = env};
    list_init(&m->waiting);
    for (size_t i = 0; i < ARRAY_N(m->making); i++) {
        m->making[i].maker = m;
        list_init(&m->making[i].makes);
    }
}

/* ------------------------------------------------------------------ on the worker */

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
    if (err == ERR_NONE)
        file_unref(f);
    return err;
}

static enum err begin(struct disk *d, struct make *m)
{
    enum err err = d->fs->ops->mkdir(d->fs, m->dir);
    m->existed = err == ERR_EXIST;
    if (m->existed)
        err = check_owner(d, m);
    if (err == ERR_NONE && !uuid_is_zero(m->topic_id))
        err = partition_metadata_begin(d, m->dir, m->topic_id);
    return err;
}

static enum err end(struct disk *d, struct make *m)
{
    enum err err = uuid_is_zero(m->topic_id) ? ERR_NONE : partition_metadata_end(d, m->dir);
    return err == ERR_NONE ? make_first_segment(d, m) : err;
}

static enum err sync_names(struct disk *d, struct make *m)
{
    return d->sync_dir(d, m->dir);
}

static enum err sync_parent(struct disk *d, const struct make *m)
{
    char parent[LOG_PATH_MAX];
    enum err err = path_parent(parent, m->dir);
    return err == ERR_NONE ? d->sync_dir(d, parent) : err;
}

/* One step of all; whose step fails is left out of those that follow. */
static struct make *each(struct list *makes, struct disk *d,
                         enum err (*step)(struct disk *, struct make *))
{
    struct list *l, *next;
    struct make *good = NULL;
    LIST_EACH(l, next, makes)
    {
        struct make *m = LIST_ENTRY(l, struct make, link);
        if (m->err == ERR_NONE)
            m->err = step(d, m);
        if (m->err == ERR_NONE)
            good = m;
    }
    return good;
}

static void run(struct job *j, struct disk *d)
{
    struct list *makes = &CONTAINER_OF(j, struct log_making, job)->makes;
    struct list *l, *next;
    (void)each(makes, d, begin);
    (void)each(makes, d, end);
    const struct make *good = each(makes, d, sync_names);
    const enum err parent = good == NULL ? ERR_NONE : sync_parent(d, good);
    LIST_EACH(l, next, makes)
    {
        struct make *m = LIST_ENTRY(l, struct make, link);
        if (m->err == ERR_NONE)
            m->err = parent;
        if (m->existed && m->err == ERR_NOENT)
            m->err = ERR_EXIST; /* on its way to another name: the next attempt makes a new one */
    }
}

/* ------------------------------------------------------------------ on the owner's thread */

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

static void made(struct make *m)
{
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

static void done(struct job *j);

static void start(struct log_making *mk)
{
    struct list *l;
    if (!list_empty(&mk->makes))
        return;
    for (int i = 0; i < MAKES_PER_JOB && (l = list_pop(&mk->maker->waiting)) != NULL; i++)
        list_append(&mk->makes, l);
    if (list_empty(&mk->makes))
        return;
    mk->job = (struct job){.lane = JOB_SYNC, .run = run, .done = done};
    mk->maker->env->submit(mk->maker->env, &mk->job);
}

static void done(struct job *j)
{
    struct log_making *mk = CONTAINER_OF(j, struct log_making, job);
    struct list ended, *l;
    list_init(&ended);
    while ((l = list_pop(&mk->makes)) != NULL)
        list_append(&ended, l);
    start(mk);
    while ((l = list_pop(&ended)) != NULL)
        made(LIST_ENTRY(l, struct make, link));
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
    *m = (struct make){.log = l,
                       .dir = l->dir,
                       .topic_id = l->topic_id,
                       .base_offset = l->s.segments[0]->head.base_offset};
    l->dir_state = DIR_MAKING;
    l->jobs_n++;
    list_append(&l->maker->waiting, &m->link);
    for (size_t i = 0; i < ARRAY_N(l->maker->making); i++)
        start(&l->maker->making[i]);
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
