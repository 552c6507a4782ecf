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

static enum err take_log(struct partition_load *pl, struct partition *p)
{
    struct log *log;
    pl->load.args.config = p->config.log; /* it may have changed while it was loaded */
    enum err e = log_open(&pl->load, &log);
    if (e != ERR_NONE)
        return e;
    return partition_log_ready(p, log, pl->high_watermark, p->rs->now);
}

/* Its topic was deleted while it was loaded. */
static enum err delete_loaded(struct partition_load *pl)
{
    struct log *log;
    struct leaving *lv = leaving_new(pl->rs, pl->name);
    if (lv == NULL)
        return ERR_NOMEM;
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
        replicas_log_failed(rs, e, "a loaded log cannot be opened");
}

static void loaded(struct log_load *ll)
{
    struct partition_load *pl = CONTAINER_OF(ll, struct partition_load, load);
    struct replicas *rs = pl->rs;
    rs->loading_n--;
    if (ll->err == ERR_INVALID) { /* another topic's id */
        leaving_stray(rs, pl->name);
    } else if (ll->err != ERR_NONE) {
        env_log(rs->env, LOG_ERROR, "log_load_failed %s", ll->message);
        replicas_log_failed(rs, ll->err, "a log cannot be loaded");
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
            replicas_log_failed(rs, e, "a new log cannot be opened");
    }
}

void load_continue(struct replicas *rs)
{
    while (!rs->closing && !rs->failed && rs->loading_n < LOADS_AT_ONCE &&
           !list_empty(&rs->to_load)) {
        struct list *l = list_pop(&rs->to_load);
        list_append(&rs->loading, l);
        rs->loading_n++;
        log_load_start(&LIST_ENTRY(l, struct partition_load, link)->load);
    }
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

static struct partition_load *load_new(struct replicas *rs, const char *name)
{
    const size_t n = strlen(name);
    struct partition_load *pl = calloc(1, sizeof *pl + n + 1);
    if (pl == NULL)
        return NULL;
    list_init(&pl->link);
    memcpy(pl->name, name, n);
    pl->rs = rs;
    return pl;
}

static enum err load_args(struct partition_load *pl, struct partition *p)
{
    char dir[PARTITION_DIR_MAX];
    enum err e = partition_log_args(p, &pl->load.args, dir, sizeof dir);
    if (e != ERR_NONE)
        return e;
    pl->dir = strdup(dir);
    pl->load.args.dir = pl->dir;
    return pl->dir == NULL ? ERR_NOMEM : ERR_NONE;
}

static enum err queue_load(struct replicas *rs, const char *name, struct str topic, int32_t index,
                           const struct replicas_found *found)
{
    const struct image_topic *t = image_topic_named(rs->image, topic);
    struct partition *p = t == NULL ? NULL : replicas_find(rs, t->id, index);
    if (p == NULL) {
        leaving_stray(rs, name);
        return ERR_NONE;
    }
    struct partition_load *pl = load_new(rs, name);
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

void replicas_load(struct replicas *rs, const struct replicas_found *found, struct now now)
{
    rs->now = now;
    CHECK(!rs->load_begun);
    for (size_t i = 0; i < found->dirs_n; i++) {
        struct str topic;
        int32_t index;
        const char *name = found->dirs[i];
        enum err e = ERR_NONE;
        if (has_suffix(name, SUFFIX_DIR_DELETE))
            directory_remove(rs, name);
        else if (partition_dir_parse(name, &topic, &index))
            e = queue_load(rs, name, topic, index, found);
        if (e != ERR_NONE)
            replicas_log_failed(rs, e, "no memory to load the logs");
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
