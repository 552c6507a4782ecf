/* Directories on their way out: of deleted partitions (Kafka: renamed -delete, then removed), and
 * those set aside at start (-stray). While "t-0" is leaving, a new t-0 takes what comes, but
 * writes nothing: its directory could be made before the old one was renamed. The wait goes on
 * until the checkpoint files were written without the old log's entries, which would tell the new
 * log, after a power cut, that bytes are durable and acknowledged that were never written. */
#include <stdio.h>
#include <stdlib.h>

#include "core/replica/inside.h"

static void print_name(char out[PARTITION_NAME_MAX], const char *topic, int32_t index)
{
    snprintf(out, PARTITION_NAME_MAX, "%s-%d", topic, index);
}

bool leaving_still(const struct replicas *rs, const char *topic, int32_t index)
{
    char name[PARTITION_NAME_MAX];
    print_name(name, topic, index);
    return map_get(&rs->leaving, name, strlen(name)) != NULL;
}

struct leaving *leaving_new(struct replicas *rs, const char *name)
{
    const size_t n = strlen(name);
    struct leaving *lv = calloc(1, sizeof *lv + n + 1);
    if (lv == NULL)
        return NULL;
    list_init(&lv->link);
    lv->rs = rs;
    memcpy(lv->name, name, n);
    return lv;
}

struct leaving *leaving_new_partition(struct replicas *rs, const char *topic, int32_t index)
{
    char name[PARTITION_NAME_MAX];
    print_name(name, topic, index);
    return leaving_new(rs, name);
}

/* A log that was held itself has nothing under the name: who waits, waits for the one before it.
 * Without memory nobody waits: a new log finds the directory of another topic, and is refused until
 * it has gone. */
static void begin(struct leaving *lv)
{
    struct map *leaving = &lv->rs->leaving;
    const size_t n = strlen(lv->name);
    lv->rs->jobs_n++;
    lv->known =
        map_get(leaving, lv->name, n) == NULL && map_put(leaving, lv->name, n, lv) == ERR_NONE;
}

/* ------------------------------------------------------------------ leaving */

/* The name is free on disk; now the checkpoints. */
static void left(struct leaving *lv)
{
    struct replicas *rs = lv->rs;
    list_append(&rs->left, &lv->link);
    checkpoints_request(rs);
    replicas_job_ended(rs);
}

static void log_closed(struct log_close *lc)
{
    struct leaving *lv = CONTAINER_OF(lc, struct leaving, close);
    if (lc->err != ERR_NONE)
        env_log(lv->rs->env, LOG_WARN, "directory_left name=%s error=%s", lv->name,
                err_name(lc->err));
    if (lc->renamed != NULL)
        removal_begin(lv->dir, lc->renamed, lv->delay_ms);
    free(lc->renamed);
    left(lv);
}

void leaving_log(struct leaving *lv, struct log *log)
{
    begin(lv);
    lv->close = (struct log_close){.delete_ = true, .done = log_closed};
    log_close_start(log, &lv->close);
}

static void set_aside(void *ctx)
{
    left(ctx);
}

void leaving_stray(struct log_dir *ld, const char *name)
{
    struct replicas *rs = ld->rs;
    struct leaving *lv = leaving_new(rs, name);
    if (lv == NULL) {
        replicas_fail(rs, ERR_NOMEM, "no memory to set a directory aside");
        return;
    }
    lv->dir = ld;
    begin(lv);
    enum err e = directory_set_aside(ld, lv->name, set_aside, lv);
    if (e != ERR_NONE) {
        replicas_fail(rs, e, "a directory cannot be set aside");
        left(lv);
    }
}

/* ------------------------------------------------------------------ gone */

/* A log of that name may have waited. */
static void release_next(struct replicas *rs, const char *name)
{
    struct str topic;
    int32_t index;
    if (!partition_dir_parse(name, &topic, &index) || rs->closing || rs->failed)
        return;
    const struct image_topic *t = image_topic_named(rs->image, topic);
    struct partition *p = t == NULL ? NULL : replicas_find(rs, t->id, index);
    if (p == NULL || p->log == NULL)
        return;
    log_release_dir(p->log);
    replicas_mark_dirty(p);
    follow_log_moved(p);
}

void leaving_end(struct replicas *rs, struct list *gone)
{
    struct list *l;
    while ((l = list_pop(gone)) != NULL) {
        struct leaving *lv = LIST_ENTRY(l, struct leaving, link);
        if (lv->known) {
            map_remove(&rs->leaving, lv->name, strlen(lv->name));
            release_next(rs, lv->name);
        }
        free(lv);
    }
}

void leaving_drop(struct replicas *rs)
{
    struct list *l;
    while ((l = list_pop(&rs->left)) != NULL)
        free(LIST_ENTRY(l, struct leaving, link));
    map_close(&rs->leaving);
}
