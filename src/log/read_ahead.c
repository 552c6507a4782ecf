/* What is not in the page cache is read by a job first, so that the owner's thread never waits for
 * the device. One at a time per log; who finds it busy asks again when it is in. */
#include <stdlib.h>

#include "log/log_impl.h"

#define AHEAD_MIN_BYTES (64u << 10)
#define AHEAD_MAX_BYTES (4u << 20)

struct read_ahead {
    struct job job;
    struct log *log;
    uint64_t from, n;
    char path[];
};

/* Errors do not matter here: the owner's own read meets them. */
static void run(struct job *j, struct disk *d)
{
    struct read_ahead *r = CONTAINER_OF(j, struct read_ahead, job);
    (void)d->warm(d, r->path, r->from, r->n);
}

static void done(struct job *j)
{
    struct read_ahead *r = CONTAINER_OF(j, struct read_ahead, job);
    struct log *l = r->log;
    l->ahead = NULL;
    free(r);
    if (!log_job_done(l))
        log_progress(l);
}

enum err log_want_cached(struct log *l, struct file *f, int64_t base_offset, const char *suffix,
                         uint64_t from, uint64_t n)
{
    if (n == 0 || f->fs->ops->cached(f, from, n < AHEAD_MAX_BYTES ? n : AHEAD_MAX_BYTES))
        return ERR_NONE;
    /* Just read, and gone again: waiting once more would not end. */
    if (l->ahead == NULL && l->ahead_base == base_offset && from >= l->ahead_from &&
        from < l->ahead_to) {
        l->ahead_base = -1;
        return ERR_NONE;
    }
    if (l->ahead != NULL)
        return ERR_AGAIN;
    char path[LOG_PATH_MAX];
    enum err err = path_file(path, l->dir, base_offset, suffix);
    if (err != ERR_NONE)
        return err;
    size_t path_n = strlen(path) + 1;
    struct read_ahead *r = malloc(sizeof *r + path_n);
    if (r == NULL)
        return ERR_NOMEM;
    n = n < AHEAD_MIN_BYTES ? AHEAD_MIN_BYTES : n;
    n = n > AHEAD_MAX_BYTES ? AHEAD_MAX_BYTES : n;
    *r = (struct read_ahead){
        .job = {.lane = JOB_BULK, .run = run, .done = done}, .log = l, .from = from, .n = n};
    memcpy(r->path, path, path_n);
    l->ahead = r;
    l->ahead_base = base_offset;
    l->ahead_from = from;
    l->ahead_to = from + n;
    log_submit(l, &r->job);
    return ERR_AGAIN;
}

void log_cancel_read_ahead(struct log *l)
{
    if (l->ahead != NULL)
        job_cancel(&l->ahead->job);
}
