/* The directories of deleted partitions stay for file.delete.delay.ms, renamed -delete, as in
 * Kafka: whoever deleted the wrong topic can still copy them away. A stop does not wait for them.
 */
#include <stdlib.h>

#include "core/replica/inside.h"

struct removal {
    struct list link; /* in replicas.removals */
    struct log_dir *dir;
    struct timer timer;
    char name[]; /* in it */
};

static void removal_free(struct removal *r)
{
    timer_cancel(r->dir->rs->timers, &r->timer);
    list_remove(&r->link);
    free(r);
}

static void due(struct timer *t)
{
    struct removal *r = CONTAINER_OF(t, struct removal, timer);
    directory_remove(r->dir, r->name);
    removal_free(r);
}

static int64_t deadline_us(const struct replicas *rs, int64_t delay_ms)
{
    int64_t at_us;
    if (__builtin_mul_overflow(delay_ms, 1000, &at_us) ||
        __builtin_add_overflow(at_us, rs->now.mono_us, &at_us))
        return INT64_MAX;
    return at_us;
}

void removal_begin(struct log_dir *ld, const char *path, int64_t delay_ms)
{
    struct replicas *rs = ld->rs;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const size_t n = strlen(name);
    if (rs->closing)
        return;
    struct removal *r = calloc(1, sizeof *r + n + 1);
    if (r == NULL) { /* the next start tries again */
        env_log(rs->env, LOG_WARN, "directory_left path=%s error=NOMEM", path);
        return;
    }
    memcpy(r->name, name, n);
    r->dir = ld;
    r->timer.fire = due;
    list_init(&r->link);
    if (timer_arm(rs->timers, &r->timer, deadline_us(rs, delay_ms)) != ERR_NONE) {
        env_log(rs->env, LOG_WARN, "directory_left path=%s error=NOMEM", path);
        free(r);
        return;
    }
    list_append(&rs->removals, &r->link);
}

void removals_drop(struct replicas *rs)
{
    struct list *l;
    while ((l = list_pop(&rs->removals)) != NULL)
        removal_free(LIST_ENTRY(l, struct removal, link));
}
