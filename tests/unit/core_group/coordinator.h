/* What the tests of the group coordinator share: node 1 with replicas and groups on memfs, topic
 * "t" of four partitions, __consumer_offsets of a few, turns as a node makes them, and one call for
 * each operation. */
#ifndef UNIT_CORE_GROUP_COORDINATOR_H
#define UNIT_CORE_GROUP_COORDINATOR_H

#include "../core_replica/fixture.h"
#include "core/group/write.h"

enum { CO_PARTS_MAX = 8 };

struct co {
    struct fix f; /* first */
    struct groups *gs;
    struct uuid t, offsets;
    void (*stopped)(struct co *c); /* between stop and start of a restart; or NULL */
};

/* ------------------------------------------------------------------ life */

static inline void co_applied(struct fix *f, const struct image_delta *d)
{
    struct co *c = (struct co *)f;
    if (c->gs != NULL)
        groups_apply(c->gs, d, f->now);
}

static inline bool co_settled(struct fix *f)
{
    struct co *c = (struct co *)f;
    return c->gs != NULL && groups_settle(c->gs, f->now);
}

/* Until nothing is to be done in slices either. */
static inline void co_turns(struct co *c)
{
    for (int i = 0; i < 10000; i++) {
        fix_turn(&c->f);
        if (c->gs == NULL || (list_empty(&c->gs->dropping) && list_empty(&c->gs->loading) &&
                              list_empty(&c->gs->sweeping)))
            return;
    }
    CU_FAIL("the coordinator does not come to rest");
}

FIX_UNUSED static void co_wait(struct co *c, int64_t ms)
{
    c->f.now.mono_us += ms * 1000;
    c->f.now.wall_ms += ms;
    co_turns(c);
}

static inline enum err co_begin_groups(struct co *c)
{
    const struct groups_args args = {
        .env = &c->f.env.env,
        .timers = &c->f.timers,
        .budget = &c->f.budget,
        .config = c->f.config,
        .image = &c->f.image,
        .replicas = c->f.rs,
        .node_id = 1,
        .seed = 7,
    };
    enum err e = groups_new(&args, &c->gs);
    if (e == ERR_NONE)
        e = groups_start(c->gs, c->f.now);
    return e;
}

/* Config may be set between co_prepare and co_begin. */
FIX_UNUSED static void co_prepare(struct co *c)
{
    memset(c, 0, sizeof *c);
    fix_prepare(&c->f);
    fix_set(&c->f, "offsets.topic.num.partitions", "1");
}

/* ids: replicas of __consumer_offsets. */
FIX_UNUSED static void co_begin_on(struct co *c, int32_t partitions_n, int32_t *ids, int32_t ids_n)
{
    if (c->f.config == NULL)
        co_prepare(c);
    fix_begin(&c->f);
    c->f.applied = co_applied;
    c->f.settled = co_settled;
    for (int32_t i = 0; i < ids_n; i++)
        fix_broker(&c->f, ids[i], ids[i] == 1 ? c->f.broker_epoch : 1);
    c->t = fix_topic(&c->f, "t", 4);
    c->offsets = fix_topic_of(&c->f, "__consumer_offsets", partitions_n, ids, ids_n);
    CU_ASSERT_EQUAL_FATAL(co_begin_groups(c), ERR_NONE);
    co_turns(c);
}

FIX_UNUSED static void co_begin(struct co *c)
{
    int32_t one[] = {1};
    co_begin_on(c, 1, one, 1);
}

static inline void co_end_groups(struct co *c)
{
    groups_close(c->gs, c->f.now);
    fix_turn(&c->f);
}

/* The same again after a clean stop, or a kill that leaves what was written. */
FIX_UNUSED static void co_restart(struct co *c)
{
    char *dirs[64];
    char names[64][32];
    size_t n = 0;
    const struct image_topic *topics[] = {image_topic_by_id(&c->f.image, c->t),
                                          image_topic_by_id(&c->f.image, c->offsets)};
    struct offset_checkpoint none;
    co_end_groups(c);
    fix_stop(&c->f);
    groups_free(c->gs);
    c->gs = NULL;
    if (c->stopped != NULL)
        c->stopped(c);
    for (size_t i = 0; i < ARRAY_N(topics); i++)
        for (int32_t k = 0; topics[i] != NULL && k < topics[i]->partitions_n; k++) {
            char path[64];
            struct file_stat st;
            snprintf(names[n], sizeof names[n], "%s-%d", topics[i]->name, k);
            snprintf(path, sizeof path, "/data/%s", names[n]);
            if (c->f.fs.vfs.ops->stat(&c->f.fs.vfs, path, &st) == ERR_NONE) {
                dirs[n] = names[n];
                n++;
            }
        }
    offset_checkpoint_init(&none);
    const struct replicas_found found = {.dirs = dirs,
                                         .dirs_n = n,
                                         .high_watermarks = &none,
                                         .recovery_points = &none,
                                         .log_starts = &none};
    const struct image_delta all = {.everything = true};
    CU_ASSERT_EQUAL_FATAL(fix_start(&c->f), ERR_NONE);
    replicas_apply(c->f.rs, &all, c->f.now);
    replicas_load(c->f.rs, &found, c->f.now);
    CU_ASSERT_EQUAL_FATAL(co_begin_groups(c), ERR_NONE);
    offset_checkpoint_close(&none);
}

FIX_UNUSED static void co_end(struct co *c)
{
    if (c->gs != NULL)
        co_end_groups(c);
    fix_stop(&c->f);
    groups_free(c->gs);
    c->gs = NULL;
    fix_end(&c->f);
}

FIX_UNUSED static struct shard *co_shard(struct co *c, int32_t index)
{
    return &c->gs->shards[index];
}

/* ------------------------------------------------------------------ commits */

struct co_commit {
    struct groups_commit_op op;
    struct commit_part parts[CO_PARTS_MAX];
    int done;
};

static inline void co_committed(struct group_op *op)
{
    CONTAINER_OF(op, struct co_commit, op.op)->done++;
}

/* Version 9, no member; partitions are added by co_part. */
FIX_UNUSED static void co_commit_init(struct co_commit *q, const char *group)
{
    memset(q, 0, sizeof *q);
    q->op.op.done = co_committed;
    list_init(&q->op.op.ready);
    q->op.version = 9;
    q->op.group = str_of(group);
    q->op.member = STR_LIT("");
    q->op.instance = STR_NULL;
    q->op.generation = -1;
    q->op.retention_ms = -1;
    q->op.parts = q->parts;
}

FIX_UNUSED static struct commit_part *co_part(struct co *c, struct co_commit *q, const char *topic,
                                              int32_t index, int64_t offset, const char *metadata)
{
    const struct image_topic *t = image_topic_named(&c->f.image, str_of(topic));
    struct commit_part *p = &q->parts[q->op.parts_n++];
    CU_ASSERT_FATAL(q->op.parts_n <= CO_PARTS_MAX);
    *p = (struct commit_part){.topic = str_of(topic),
                              .topic_id = t == NULL ? (struct uuid){{0}} : t->id,
                              .index = index,
                              .offset = offset,
                              .leader_epoch = -1,
                              .metadata = str_of(metadata)};
    return p;
}

FIX_UNUSED static void co_commit_start(struct co *c, struct co_commit *q)
{
    groups_commit(c->gs, &q->op, c->f.now);
    CU_ASSERT_EQUAL(q->done, 0); /* never inside the call */
}

/* One partition of t, with a turn; its error. */
FIX_UNUSED static int16_t co_commit(struct co *c, const char *group, int32_t index, int64_t offset)
{
    struct co_commit q;
    co_commit_init(&q, group);
    co_part(c, &q, "t", index, offset, "");
    co_commit_start(c, &q);
    fix_turn(&c->f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    return q.parts[0].error;
}

/* ------------------------------------------------------------------ fetches */

struct co_fetch {
    struct groups_fetch_op op;
    struct fetched_part parts[CO_PARTS_MAX];
    struct arena arena;
    int done;
};

static inline void co_fetched(struct group_op *op)
{
    CONTAINER_OF(op, struct co_fetch, op.op)->done++;
}

FIX_UNUSED static void co_fetch_init(struct co_fetch *q, const char *group)
{
    memset(q, 0, sizeof *q);
    arena_init(&q->arena, NULL);
    q->op.op.done = co_fetched;
    list_init(&q->op.op.ready);
    q->op.arena = &q->arena;
    q->op.group = str_of(group);
    q->op.member = STR_NULL;
    q->op.member_epoch = -1;
    q->op.parts = q->parts;
}

FIX_UNUSED static void co_ask(struct co_fetch *q, const char *topic, int32_t index)
{
    q->parts[q->op.parts_n++] = (struct fetched_part){.topic = str_of(topic), .index = index};
}

FIX_UNUSED static void co_fetch_start(struct co *c, struct co_fetch *q)
{
    groups_fetch(c->gs, &q->op, c->f.now);
    CU_ASSERT_EQUAL(q->done, 0);
}

/* One partition of t; -1: none, or what error_base - error is. */
enum { CO_ERROR = -1000 };
FIX_UNUSED static int64_t co_fetch_as(struct co *c, const char *group, int32_t index, bool stable)
{
    struct co_fetch q;
    co_fetch_init(&q, group);
    q.op.require_stable = stable;
    co_ask(&q, "t", index);
    co_fetch_start(c, &q);
    fix_turn(&c->f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    arena_close(&q.arena);
    if (q.op.error != K_NONE)
        return CO_ERROR - q.op.error;
    return q.parts[0].error != K_NONE ? CO_ERROR - q.parts[0].error : q.parts[0].offset;
}

FIX_UNUSED static int64_t co_offset(struct co *c, const char *group, int32_t index)
{
    return co_fetch_as(c, group, index, false);
}

/* How many offsets a group has; its error as above. */
FIX_UNUSED static int64_t co_offsets_n(struct co *c, const char *group)
{
    struct co_fetch q;
    co_fetch_init(&q, group);
    q.op.all = true;
    co_fetch_start(c, &q);
    fix_turn(&c->f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    arena_close(&q.arena);
    return q.op.error != K_NONE ? CO_ERROR - q.op.error : q.op.parts_n;
}

/* ------------------------------------------------------------------ deletions */

struct co_delete {
    struct groups_delete_op op;
    int done;
};

static inline void co_deleted(struct group_op *op)
{
    CONTAINER_OF(op, struct co_delete, op.op)->done++;
}

FIX_UNUSED static void co_delete_start(struct co *c, struct co_delete *q, const char *group)
{
    memset(q, 0, sizeof *q);
    q->op.op.done = co_deleted;
    list_init(&q->op.op.ready);
    q->op.group = str_of(group);
    groups_delete(c->gs, &q->op, c->f.now);
    CU_ASSERT_EQUAL(q->done, 0);
}

FIX_UNUSED static int16_t co_delete(struct co *c, const char *group)
{
    struct co_delete q;
    co_delete_start(c, &q, group);
    fix_turn(&c->f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    return q.op.error;
}

struct co_offset_delete {
    struct groups_offset_delete_op op;
    struct commit_part part;
    int done;
};

static inline void co_offset_deleted(struct group_op *op)
{
    CONTAINER_OF(op, struct co_offset_delete, op.op)->done++;
}

/* One partition of t: the group's error, else the partition's. */
FIX_UNUSED static int16_t co_delete_offset(struct co *c, const char *group, int32_t index)
{
    struct co_offset_delete q;
    memset(&q, 0, sizeof q);
    q.op.op.done = co_offset_deleted;
    list_init(&q.op.op.ready);
    q.op.group = str_of(group);
    q.part = (struct commit_part){.topic = STR_LIT("t"), .index = index};
    q.op.parts = &q.part;
    q.op.parts_n = 1;
    groups_offset_delete(c->gs, &q.op, c->f.now);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_turn(&c->f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    return q.op.error != K_NONE ? q.op.error : q.part.error;
}

/* ------------------------------------------------------------------ lists */

struct co_list {
    struct {
        char id[64], type[16], state[24], protocol[16];
    } v[64];
    int n;
};

static inline enum err co_listed(void *ctx, const struct listed_group *g)
{
    struct co_list *l = ctx;
    CU_ASSERT_FATAL(l->n < (int)ARRAY_N(l->v));
    snprintf(l->v[l->n].id, sizeof l->v[l->n].id, "%.*s", g->id.n, g->id.p);
    snprintf(l->v[l->n].type, sizeof l->v[l->n].type, "%s", g->type);
    snprintf(l->v[l->n].state, sizeof l->v[l->n].state, "%s", g->state);
    snprintf(l->v[l->n].protocol, sizeof l->v[l->n].protocol, "%.*s", g->protocol_type.n,
             g->protocol_type.p);
    l->n++;
    return ERR_NONE;
}

FIX_UNUSED static int16_t co_list(struct co *c, struct co_list *l)
{
    int16_t error;
    l->n = 0;
    CU_ASSERT_EQUAL(groups_list(c->gs, co_listed, l, &error), ERR_NONE);
    return error;
}

FIX_UNUSED static bool co_exists(struct co *c, const char *group)
{
    struct co_list l;
    bool found = false;
    co_list(c, &l);
    for (int i = 0; i < l.n; i++)
        found |= strcmp(l.v[i].id, group) == 0;
    return found;
}

#endif
