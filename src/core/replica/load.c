/* Loading the logs that were found on disk, a bounded number of workers' jobs at a time. The image
 * is caught up: a directory of a topic that it does not know is set aside, never deleted. */
#include <stdlib.h>

#include "base/check.h"
#include "core/replica/inside.h"
#include "log/path.h"

enum { LOADS_AT_ONCE = 4 };

struct partition_load {
    struct list link;
    struct log_load load;
    struct replicas *rs;
    struct log_dir *log_dir;
    struct uuid topic_id; /* the partition may be deleted meanwhile */
    int32_t index;
    int64_t high_watermark;
    char *dir;
    char name[]; /* of the directory */
};

static void load_free(struct partition_load *pl)
{
    list_remove(&pl->link);
    log_load_close(&pl->load);
    free(pl->dir);
    free(pl);
}

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcmp(name + n - k, suffix) == 0;
}

/* ------------------------------------------------------------------ one log */

/* Which one is newer nobody knows: a log directory had failed, or was put back (Kafka). */
static enum err found_twice(const struct partition_load *pl, const struct partition *p)
{
    env_log(
        pl->rs->env, LOG_ERROR,
        "partition_found_twice name=%s in=%s and=%s action=\"remove one of them by hand, rather "
        "that of a log directory that failed lately\"",
        pl->name, p->dir->path, pl->log_dir->path);
    return ERR_EXIST;
}

static enum err take_log(struct partition_load *pl, struct partition *p)
{
    struct log *log;
    if (p->log != NULL)
        return found_twice(pl, p);
    pl->load.args.config = p->config.log;           /* it may have changed while it was loaded */
    pl->load.args.events = partition_log_events(p); /* it may have been removed and added again */
    enum err e = log_open(&pl->load, &log);
    if (e != ERR_NONE)
        return e;
    partition_set_dir(p, pl->log_dir);
    return partition_log_ready(p, log, pl->high_watermark, p->rs->now);
}

/* Its topic was deleted while it was loaded. */
static enum err delete_loaded(struct partition_load *pl)
{
    struct log *log;
    struct leaving *lv = leaving_new(pl->rs, pl->name);
    if (lv == NULL)
        return ERR_NOMEM;
    lv->dir = pl->log_dir;
    lv->delay_ms = topic_config_int(pl->rs->config, "file.delete.delay.ms", NULL, NULL);
    enum err e = log_open(&pl->load, &log);
    if (e == ERR_NONE)
        leaving_log(lv, log);
    else
        free(lv);
    return e;
}

static void take_loaded(struct partition_load *pl)
{
    struct replicas *rs = pl->rs;
    struct partition *p = replicas_find(rs, pl->topic_id, pl->index);
    if (pl->load.truncated_bytes > 0)
        env_log(rs->env, LOG_WARN, "log_truncated partition=%s bytes=%llu", pl->name,
                (unsigned long long)pl->load.truncated_bytes);
    enum err e = p == NULL ? delete_loaded(pl) : take_log(pl, p);
    if (e != ERR_NONE)
        replicas_fail(rs, e,
                      e == ERR_EXIST ? "a partition is in two log directories"
                                     : "a loaded log cannot be opened");
}

/* It is there, and nowhere else. */
static void stay_offline(struct partition_load *pl)
{
    struct partition *p = replicas_find(pl->rs, pl->topic_id, pl->index);
    if (p != NULL && p->dir == NULL)
        partition_set_dir(p, pl->log_dir);
}

static void loaded(struct log_load *ll)
{
    struct partition_load *pl = CONTAINER_OF(ll, struct partition_load, load);
    struct replicas *rs = pl->rs;
    rs->loading_n--;
    if (ll->err == ERR_INVALID) { /* another topic's id */
        leaving_stray(pl->log_dir, pl->name);
    } else if (ll->err != ERR_NONE) {
        env_log(rs->env, LOG_ERROR, "log_load_failed %s", ll->message);
        log_dir_fail(pl->log_dir, ll->err, "a log cannot be loaded");
        stay_offline(pl);
    } else if (!rs->closing && pl->log_dir->failed) {
        stay_offline(pl); /* the log goes as it stands */
    } else if (!rs->closing) {
        take_loaded(pl);
    }
    load_free(pl);
    load_continue(rs);
}

/* ------------------------------------------------------------------ all */

/* Partitions that were not found on disk begin empty, now that this is known. */
static void begin_empty_logs(struct replicas *rs)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&rs->partitions, it)) != NULL) {
        struct partition *p = map_value(it);
        enum err e = p->log != NULL || rs->failed ? ERR_NONE : partition_begin_empty(p);
        if (e != ERR_NONE)
            replicas_fail(rs, e, "a new log cannot be opened");
    }
}

static void load_next(struct replicas *rs)
{
    struct partition_load *pl = LIST_ENTRY(list_pop(&rs->to_load), struct partition_load, link);
    if (pl->log_dir->failed) {
        stay_offline(pl);
        load_free(pl);
        return;
    }
    list_append(&rs->loading, &pl->link);
    rs->loading_n++;
    log_load_start(&pl->load);
}

void load_continue(struct replicas *rs)
{
    while (!rs->closing && !rs->failed && rs->loading_n < LOADS_AT_ONCE &&
           !list_empty(&rs->to_load))
        load_next(rs);
    if (rs->closing) { /* stopped while loading: nothing was promised */
        replicas_close_step(rs);
        return;
    }
    if (rs->loading_n > 0 || rs->load_begun)
        return;
    rs->load_begun = true;
    begin_empty_logs(rs);
    checkpoints_begin(rs);
    rs->loaded_untold = true;
}

static struct partition_load *load_new(struct log_dir *ld, const char *name)
{
    const size_t n = strlen(name);
    struct partition_load *pl = calloc(1, sizeof *pl + n + 1);
    if (pl == NULL)
        return NULL;
    list_init(&pl->link);
    memcpy(pl->name, name, n);
    pl->rs = ld->rs;
    pl->log_dir = ld;
    return pl;
}

static enum err load_args(struct partition_load *pl, struct partition *p)
{
    char dir[PARTITION_DIR_MAX];
    enum err e = partition_log_args(p, pl->log_dir, &pl->load.args, dir, sizeof dir);
    if (e != ERR_NONE)
        return e;
    pl->dir = strdup(dir);
    pl->load.args.dir = pl->dir;
    return pl->dir == NULL ? ERR_NOMEM : ERR_NONE;
}

static enum err queue_load(struct log_dir *ld, const char *name, struct str topic, int32_t index,
                           const struct replicas_found *found)
{
    struct replicas *rs = ld->rs;
    const struct image_topic *t = image_topic_named(rs->image, topic);
    struct partition *p = t == NULL ? NULL : replicas_find(rs, t->id, index);
    if (p == NULL) {
        leaving_stray(ld, name);
        return ERR_NONE;
    }
    struct partition_load *pl = load_new(ld, name);
    if (pl == NULL)
        return ERR_NOMEM;
    enum err e = load_args(pl, p);
    if (e != ERR_NONE) {
        load_free(pl);
        return e;
    }
    pl->topic_id = t->id;
    pl->index = index;
    pl->high_watermark = offset_checkpoint_get(found->high_watermarks, topic, index);
    const int64_t recovery_point = offset_checkpoint_get(found->recovery_points, topic, index);
    pl->load.checkpoints = (struct log_checkpoints){
        .clean = found->clean,
        .recovery_point = recovery_point < 0 ? 0 : recovery_point,
        .log_start = offset_checkpoint_get(found->log_starts, topic, index),
    };
    pl->load.done = loaded;
    list_append(&rs->to_load, &pl->link);
    return ERR_NONE;
}

static enum err queue_dir(struct log_dir *ld, const struct replicas_found *found)
{
    enum err e = ERR_NONE;
    for (size_t i = 0; i < found->dirs_n && e == ERR_NONE && !ld->failed; i++) {
        struct str topic;
        int32_t index;
        const char *name = found->dirs[i];
        if (has_suffix(name, SUFFIX_DIR_DELETE))
            directory_remove(ld, name);
        else if (partition_dir_parse(name, &topic, &index))
            e = queue_load(ld, name, topic, index, found);
    }
    return e;
}

void replicas_load(struct replicas *rs, const struct replicas_found *found, struct now now)
{
    rs->now = now;
    CHECK(!rs->load_begun);
    for (size_t i = 0; i < rs->dirs_n; i++) {
        enum err e = queue_dir(&rs->dirs[i], &found[i]);
        if (e != ERR_NONE)
            replicas_fail(rs, e, "no memory to load the logs");
    }
    rs->hws_changed = rs->recovery_changed = true;
    load_continue(rs);
}

void load_drop(struct replicas *rs)
{
    struct list *l;
    while ((l = list_pop(&rs->to_load)) != NULL || (l = list_pop(&rs->loading)) != NULL)
        load_free(LIST_ENTRY(l, struct partition_load, link));
}
