/* The log directories (KIP-112, KIP-858): where partitions are and new ones go, and what becomes of
 * those in one that failed. Only they do: the node goes on with the other directories, or ends,
 * which is its own to decide. */
#include <stdlib.h>

#include "core/replica/inside.h"
#include "wire/error.h"

/* ------------------------------------------------------------------ new, free */

enum err log_dirs_new(struct replicas *rs, const struct replicas_args *args)
{
    rs->dirs = calloc(args->dirs_n, sizeof *rs->dirs);
    if (rs->dirs == NULL)
        return ERR_NOMEM;
    for (; rs->dirs_n < args->dirs_n; rs->dirs_n++) {
        const struct replicas_dir *from = &args->dirs[rs->dirs_n];
        struct log_dir *ld = &rs->dirs[rs->dirs_n];
        *ld = (struct log_dir){.rs = rs, .idx = rs->dirs_n, .name = from->name, .id = from->id};
        ld->failed = from->offline;
        ld->path = strdup(from->path);
        if (ld->path == NULL)
            return ERR_NOMEM;
        log_maker_init(&ld->maker, args->env);
    }
    return ERR_NONE;
}

void log_dirs_free(struct replicas *rs)
{
    for (size_t i = 0; i < rs->dirs_n; i++)
        free(rs->dirs[i].path);
    free(rs->dirs);
}

/* ------------------------------------------------------------------ which */

void partition_set_dir(struct partition *p, struct log_dir *ld)
{
    if (p->dir != NULL)
        p->dir->partitions_n--;
    p->dir = ld;
    ld->partitions_n++;
}

bool partition_offline(const struct partition *p)
{
    return p->rs->failed || (p->dir != NULL && p->dir->failed);
}

bool log_dir_cordoned(const struct log_dir *ld)
{
    return config_cordons(str_of(config_text(ld->rs->config, "cordoned.log.dirs")), ld->name);
}

/* Rather a cordoned one with more than none. NULL: all have failed. */
static struct log_dir *emptiest(struct replicas *rs)
{
    struct log_dir *best = NULL;
    bool best_cordoned = false;
    for (size_t i = 0; i < rs->dirs_n; i++) {
        struct log_dir *ld = &rs->dirs[i];
        const bool cordoned = rs->dirs_n > 1 && log_dir_cordoned(ld);
        if (ld->failed || (best != NULL && cordoned && !best_cordoned))
            continue;
        if (best == NULL || (best_cordoned && !cordoned) || ld->partitions_n < best->partitions_n) {
            best = ld;
            best_cordoned = cordoned;
        }
    }
    return best;
}

static struct log_dir *failed_one(struct replicas *rs)
{
    for (size_t i = 0; i < rs->dirs_n; i++)
        if (rs->dirs[i].failed)
            return &rs->dirs[i];
    return NULL;
}

static struct log_dir *online_named(struct replicas *rs, struct uuid id)
{
    for (size_t i = 0; i < rs->dirs_n; i++)
        if (!rs->dirs[i].failed && uuid_eq(rs->dirs[i].id, id))
            return &rs->dirs[i];
    return NULL;
}

/* Where the metadata say. What they say of a directory that is not online may be one that failed,
 * whose id nobody knows: then the replica is not made anew elsewhere. */
struct log_dir *log_dir_choose(const struct partition *p)
{
    struct replicas *rs = p->rs;
    struct image_topic *t = image_topic_by_id(rs->image, p->topic_id);
    const struct image_partition *ip = t == NULL ? NULL : image_partition(t, p->index);
    const struct uuid unassigned = {{[15] = IMAGE_DIRECTORY_UNASSIGNED}};
    const struct uuid id = ip == NULL ? unassigned : image_replica_directory(ip, rs->node_id);
    struct log_dir *ld = online_named(rs, id);
    if (ld == NULL && !uuid_eq(id, unassigned))
        ld = failed_one(rs);
    if (ld == NULL)
        ld = emptiest(rs);
    return ld != NULL ? ld : &rs->dirs[0];
}

/* ------------------------------------------------------------------ failing */

static bool all_failed(const struct replicas *rs)
{
    for (size_t i = 0; i < rs->dirs_n; i++)
        if (!rs->dirs[i].failed)
            return false;
    return true;
}

bool replicas_offline(const struct replicas *rs)
{
    return rs->failed || all_failed(rs);
}

void log_dir_fail(struct log_dir *ld, enum err e, const char *what)
{
    if (ld->failed)
        return;
    ld->failed = true;
    ld->failed_untold = true;
    ld->failed_err = e;
    ld->failed_what = what;
}

void partition_log_fail(struct partition *p, enum err e, const char *what)
{
    log_dir_fail(p->dir, e, what);
}

static void closed(struct log_close *lc)
{
    struct leaving *lv = CONTAINER_OF(lc, struct leaving, close);
    struct replicas *rs = lv->rs;
    free(lv);
    replicas_job_ended(rs);
}

/* As it stands. Without memory it stays open, and nobody looks at it. */
static void close_log(struct partition *p)
{
    struct leaving *lv = p->log == NULL ? NULL : leaving_new(p->rs, p->topic);
    if (lv == NULL)
        return;
    lv->close = (struct log_close){.done = closed};
    p->rs->jobs_n++;
    log_close_start(p->log, &lv->close);
    p->log = NULL;
}

/* What a lost directory has is not to come back into an ISR. */
static void take_offline(struct partition *p)
{
    produce_fail(p, K_KAFKA_STORAGE_ERROR);
    delete_records_fail(p, K_KAFKA_STORAGE_ERROR);
    follow_end(p);
    list_remove(&p->raised);
    list_remove(&p->misplaced);
    partition_drop_isr_change(p);
    partition_changed(p);
}

/* Logs stay open when everything ends. */
static void take_all_offline(struct log_dir *ld)
{
    const bool last = all_failed(ld->rs);
    struct list *l, *tmp;
    LIST_EACH(l, tmp, &ld->rs->all)
    {
        struct partition *p = LIST_ENTRY(l, struct partition, all);
        if (l == &ld->rs->walk || p->dir != ld)
            continue;
        take_offline(p);
        if (!last)
            close_log(p);
    }
}

bool log_dirs_tell(struct replicas *rs)
{
    bool moved = false;
    for (size_t i = 0; i < rs->dirs_n; i++) {
        struct log_dir *ld = &rs->dirs[i];
        if (!ld->failed_untold)
            continue;
        ld->failed_untold = false;
        take_all_offline(ld);
        rs->events.log_dir_failed(rs->events.ctx, i, ld->failed_err, ld->failed_what);
        moved = true;
    }
    return moved;
}
