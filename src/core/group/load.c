/* Loading a shard: its log is read from the start to its end in slices, one a turn. Only the last
 * record of a group counts, so memberships are made when all is read and committed. What is read is
 * taken as committed: the shard serves when the high watermark has passed it (Kafka serves before,
 * and keeps what is above apart). */
#include "base/check.h"
#include "core/group/inside.h"

enum {
    SLICE_BYTES = 256 << 10,
    SLICE_GROUPS = 256,
};

static void free_slice(struct shard *sh)
{
    groups_release(sh->gs, sh->load.buf, sh->load.cap);
    sh->load.buf = NULL;
    sh->load.cap = 0;
}

void load_end(struct shard *sh)
{
    free_slice(sh);
    sh->load.next = NULL;
}

/* ------------------------------------------------------------------ reading */

static enum err slice_room(struct shard *sh, size_t n)
{
    struct shard_load *ld = &sh->load;
    if (ld->cap >= n)
        return ERR_NONE;
    free_slice(sh);
    const size_t cap = n < SLICE_BYTES ? SLICE_BYTES : n;
    ld->buf = groups_alloc(sh->gs, cap);
    if (ld->buf == NULL)
        return ERR_NOMEM;
    ld->cap = cap;
    return ERR_NONE;
}

static enum err replay_slice(struct shard *sh, struct bytes in)
{
    struct shard_load *ld = &sh->load;
    struct batch b;
    enum err e = ERR_NONE;
    while (in.n > 0 && e == ERR_NONE) {
        e = batch_take(&in, &b);
        if (e == ERR_TRUNCATED)
            return ERR_NONE; /* the next slice begins with it */
        if (e == ERR_NONE && !batch_crc_ok(&b))
            e = ERR_CORRUPT;
        if (e == ERR_NONE)
            e = replay_batch(sh, &b);
        if (e == ERR_NONE) {
            ld->offset = batch_next_offset(&b);
            ld->records_n += b.records_n;
        }
    }
    return e;
}

/* ERR_AGAIN: the watch tells. */
static enum err read_slice(struct shard *sh, const struct replicas_ends *ends)
{
    struct shard_load *ld = &sh->load;
    struct log_span span;
    if (ld->offset >= ends->end)
        return ERR_AGAIN; /* what an older epoch staged is being written */
    enum err e =
        replicas_read(sh->gs->replicas, sh->topic_id, sh->index, ld->offset, SLICE_BYTES, &span);
    if (e == ERR_NONE && span.n == 0)
        e = ERR_CORRUPT;
    if (e == ERR_NONE)
        e = slice_room(sh, span.n);
    if (e == ERR_NONE)
        e = log_span_read(&span, ld->buf, span.n);
    if (e == ERR_NONE)
        e = replay_slice(sh, (struct bytes){ld->buf, (int32_t)span.n});
    return e;
}

/* ------------------------------------------------------------------ memberships */

static enum err decode_value(struct bytes stored, struct arena *a, struct group_metadata_value *v)
{
    const int16_t version = (int16_t)((stored.p[0] << 8) | stored.p[1]);
    return wire_decode(&msg_group_metadata_value, version,
                       (struct bytes){stored.p + 2, stored.n - 2}, a, v);
}

static enum err take_stored(struct life *l)
{
    struct group_metadata_value value;
    struct arena a;
    if (l->stored.n < 0)
        return ERR_NONE;
    arena_init(&a, l->gs->budget);
    enum err e = decode_value(l->stored, &a, &value);
    if (e == ERR_NONE)
        e = classic_load(l->classic, &value);
    arena_close(&a);
    groups_release(l->gs, (void *)(uintptr_t)l->stored.p, (size_t)l->stored.n);
    l->stored = BYTES_NULL;
    return e;
}

enum err load_membership(struct life *l, struct now now)
{
    if (l == NULL)
        return ERR_NONE;
    l->members_end_us =
        now.mono_us + config_int(l->gs->config, "group.consumer.session.timeout.ms") * 1000;
    if (l->kind != GROUP_CLASSIC)
        return ERR_NONE;
    enum err e = life_make_classic(l, now);
    if (e == ERR_NONE)
        e = take_stored(l);
    if (e == ERR_NONE)
        classic_loaded(l->classic, now);
    return e;
}

static enum err groups_slice(struct shard *sh, struct now now)
{
    struct shard_load *ld = &sh->load;
    enum err e = ERR_NONE;
    for (int i = 0; i < SLICE_GROUPS && ld->next != NULL && e == ERR_NONE; i++) {
        struct group *g = ld->next;
        struct list *next = g->link.next;
        ld->next = next == &sh->order ? NULL : LIST_ENTRY(next, struct group, link);
        e = load_membership(g->life, now);
    }
    return e;
}

/* ------------------------------------------------------------------ steps */

static void active(struct shard *sh, struct now now)
{
    sh->state = SHARD_ACTIVE;
    load_end(sh);
    if (sh->load.records_n > 0)
        env_log(sh->gs->env, LOG_DEBUG,
                "groups_loaded partition=%d epoch=%d groups=%zu records=%lld ms=%lld", sh->index,
                sh->epoch, sh->groups.n, (long long)sh->load.records_n,
                (long long)((now.mono_us - sh->load.began_us) / 1000));
    sweep_begin_forgetting(sh);
}

/* Takes the load as far as one slice goes; false: there is more. */
static enum err step(struct shard *sh, const struct replicas_ends *ends, struct now now, bool *more)
{
    struct shard_load *ld = &sh->load;
    *more = true;
    if (ld->offset < ends->start)
        ld->offset = ends->start;
    if (ld->phase == LOAD_READ && ld->offset < ends->staged_end)
        return read_slice(sh, ends);
    if (ld->phase == LOAD_READ) {
        ld->phase = LOAD_COMMIT;
        sh->end = ends->staged_end;
        free_slice(sh);
    }
    if (ld->phase == LOAD_COMMIT && ends->high_watermark < ld->offset)
        return ERR_AGAIN;
    if (ld->phase == LOAD_COMMIT) {
        ld->phase = LOAD_GROUPS;
        ld->next = list_empty(&sh->order) ? NULL : LIST_ENTRY(sh->order.next, struct group, link);
    }
    enum err e = groups_slice(sh, now);
    if (e == ERR_NONE && ld->next == NULL) {
        active(sh, now);
        *more = false;
    }
    return e;
}

void load_step(struct shard *sh, struct now now)
{
    struct replicas_ends ends;
    bool more;
    CHECK(sh->state == SHARD_LOADING);
    if (sh->unloading)
        return; /* its end wakes us */
    if (replicas_ends(sh->gs->replicas, sh->topic_id, sh->index, &ends) != K_NONE)
        return; /* its log is loading: the watch tells */
    enum err e = step(sh, &ends, now, &more);
    if (e == ERR_AGAIN)
        return;
    if (e != ERR_NONE)
        shard_fail(sh, e, "the log of a group coordinator cannot be loaded");
    else if (more)
        shard_wake(sh);
}

/* What is empty is loaded at once: most partitions are. */
void load_begin(struct shard *sh, struct now now)
{
    struct replicas_ends ends;
    sh->load = (struct shard_load){.phase = LOAD_READ, .offset = -1, .began_us = now.mono_us};
    sh->state = SHARD_LOADING;
    if (replicas_ends(sh->gs->replicas, sh->topic_id, sh->index, &ends) != K_NONE)
        return;
    if (ends.start == ends.staged_end)
        load_step(sh, now);
    else
        shard_wake(sh);
}
