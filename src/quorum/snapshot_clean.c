/* Old snapshots and the log before them go when they are too many bytes together, or too old
 * (metadata.max.retention.bytes and .ms), looked at every minute and after each new one: the oldest
 * goes, and the log begins at the next, so that whatever the log lacks is in every snapshot. Two
 * stay in any case beside 0-0, for a follower may be downloading the older one; Kafka keeps one. */
#include <stdlib.h>

#include "quorum/inside.h"

enum { KEPT_MIN = 2, CLEAN_EVERY_US = 60 * 1000 * 1000 };

enum err raft_keep_room(struct snapshots_kept *k)
{
    if (k->n < k->cap)
        return ERR_NONE;
    const int32_t cap = k->cap == 0 ? 8 : 2 * k->cap;
    struct snapshot_kept *v = realloc(k->v, (size_t)cap * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    k->v = v;
    k->cap = cap;
    return ERR_NONE;
}

enum err raft_keep_snapshot(struct snapshots_kept *k, struct snapshot_kept s)
{
    enum err e = raft_keep_room(k);
    if (e == ERR_NONE)
        k->v[k->n++] = s;
    return e;
}

void raft_kept_close(struct snapshots_kept *k)
{
    free(k->v);
    *k = (struct snapshots_kept){0};
}

static void drop_first(struct snapshots_kept *k)
{
    k->n--;
    memmove(k->v, k->v + 1, (size_t)k->n * sizeof *k->v);
}

static int64_t total_bytes(const struct raft *r)
{
    int64_t bytes = (int64_t)log_size_bytes(r->log);
    for (int32_t i = 0; i < r->kept.n; i++)
        bytes += r->kept.v[i].bytes;
    return bytes;
}

static bool too_much(const struct raft *r)
{
    const struct raft_config *c = &r->config;
    return r->kept.n > SNAPSHOTS_KEPT_MAX ||
           (c->retention_bytes >= 0 && total_bytes(r) > c->retention_bytes) ||
           (c->retention_ms >= 0 && r->now.wall_ms - r->kept.v[0].written_ms > c->retention_ms);
}

static void clean_run(struct job *j, struct disk *d)
{
    struct raft_clean *c = CONTAINER_OF(j, struct raft_clean, job);
    for (int32_t i = 0; i < c->n; i++) {
        /* if it stays, the next start drops it */
        enum err e = snapshot_remove(d->fs, c->dir, c->drop[i]);
        (void)e;
    }
}

static void clean_done(struct job *j)
{
    struct raft_clean *c = CONTAINER_OF(j, struct raft_clean, job);
    struct raft *r = CONTAINER_OF(c, struct raft, clean);
    c->running = false;
    if (r->log == NULL)
        raft_job_ended(r);
    else
        r->clean_due = true; /* what could not go meanwhile */
}

static void remove_files(struct raft *r)
{
    struct raft_clean *c = &r->clean;
    c->running = true;
    c->dir = r->persist.dir;
    c->job = (struct job){.lane = JOB_BULK, .run = clean_run, .done = clean_done};
    r->env->submit(r->env, &c->job);
}

/* Nobody needs what ends before our log begins. */
void raft_drop_behind(struct raft *r)
{
    struct raft_clean *c = &r->clean;
    if (c->running)
        return; /* the next cleaning does */
    c->n = 0;
    while (r->kept.n > 1 && r->kept.v[0].id.offset < log_start_offset(r->log) &&
           c->n < (int32_t)ARRAY_N(c->drop)) {
        c->drop[c->n++] = r->kept.v[0].id;
        drop_first(&r->kept);
    }
    if (c->n > 0)
        remove_files(r);
}

/* True if anything went. */
static bool let_oldest_go(struct raft *r, enum err *e)
{
    struct raft_clean *c = &r->clean;
    const bool drops = r->kept.n > KEPT_MIN && c->n < (int32_t)ARRAY_N(c->drop);
    if (drops) {
        c->drop[c->n++] = r->kept.v[0].id;
        drop_first(&r->kept);
    }
    const int64_t offset = r->kept.v[0].id.offset;
    const bool trims = r->kept.n >= KEPT_MIN && offset > log_start_offset(r->log);
    *e = trims ? raft_trim_log(r, offset) : ERR_NONE;
    return drops || trims;
}

void raft_clean_timer_fired(struct timer *t)
{
    CONTAINER_OF(t, struct raft, clean_timer)->clean_due = true; /* a turn follows */
}

static void clean_later(struct raft *r)
{
    enum err e = timer_arm(r->timers, &r->clean_timer, r->now.mono_us + CLEAN_EVERY_US);
    (void)e; /* without memory for it: after the next snapshot */
}

void raft_clean_snapshots(struct raft *r)
{
    struct raft_clean *c = &r->clean;
    enum err e = ERR_NONE;
    r->clean_due = false;
    if (c->running || r->kept.n < KEPT_MIN)
        return;
    c->n = 0;
    while (e == ERR_NONE && too_much(r) && let_oldest_go(r, &e))
        ;
    if (e != ERR_NONE)
        raft_fail(r, e, "the start of the metadata log cannot be raised");
    if (c->n > 0)
        remove_files(r);
    clean_later(r);
}
