/* Several replica managers in one process: the bytes of their peers go by memory, the controller is
 * played here. Each node follows the metadata records as far as the test lets it. */
#ifndef UNIT_CORE_REPLICA_CLUSTER_H
#define UNIT_CORE_REPLICA_CLUSTER_H

#include "cluster_controller.h"
#include "cluster_lines.h"
#include "core/replica/fetcher.h"

/* ------------------------------------------------------------------ turns */

static inline void cluster_follow(struct cluster *c, int32_t node)
{
    struct fix *f = &c->nodes[node];
    struct image_delta d;
    struct arena a;
    if (c->applied[node] == c->records.n || f->config == NULL)
        return;
    image_delta_init(&d);
    arena_init(&a, NULL);
    for (; c->applied[node] < c->records.n; c->applied[node]++) {
        int16_t type, version;
        void *record;
        const struct bytes framed = record_list_get(&c->records, c->applied[node]);
        CU_ASSERT_EQUAL_FATAL(record_decode(framed, &a, &type, &version, &record), ERR_NONE);
        CU_ASSERT_EQUAL_FATAL(image_apply(&f->image, type, version, record, framed, &d), ERR_NONE);
    }
    arena_close(&a);
    if (c->faulty_apply)
        faults_on(c, node);
    fix_publish(f, &d);
    faults_off(c);
}

/* Invariant 1 of replication.md. */
static inline void check_ends(const struct fix *f)
{
    struct map_entry *it = NULL;
    while ((it = map_next(&f->rs->partitions, it)) != NULL) {
        const struct partition *p = map_value(it);
        if (p->log != NULL && (p->high_watermark < log_start_offset(p->log) ||
                               p->high_watermark > log_end_offset(p->log)))
            CU_FAIL("the high watermark is outside of its log");
    }
}

static inline bool node_turn(struct cluster *c, int32_t i)
{
    struct fix *f = &c->nodes[i];
    bool moved = false;
    if (f->rs == NULL)
        return false;
    if (!c->lazy[i])
        cluster_follow(c, i);
    faults_on(c, i);
    timers_run(&f->timers, f->now.mono_us);
    while (replicas_settle(f->rs, f->now))
        moved = true;
    faults_off(c);
    check_ends(f);
    moved |= memenv_run_jobs(&f->env) > 0;
    memenv_reap_jobs(&f->env);
    return moved;
}

/* Until nothing moves at this time. */
static inline void cluster_turn(struct cluster *c)
{
    bool moved;
    int rounds = 0;
    do {
        moved = false;
        for (int32_t i = 1; i <= c->n; i++)
            moved |= node_turn(c, i);
        moved |= lines_turn(c);
        moved |= controller_turn(c);
        CU_ASSERT_FATAL(rounds++ < 2000); /* nobody spins */
    } while (moved);
}

static inline void cluster_pass(struct cluster *c, int64_t ms)
{
    for (int32_t i = 1; i <= c->n; i++) {
        c->nodes[i].now.mono_us += ms * 1000;
        c->nodes[i].now.wall_ms += ms;
    }
    cluster_turn(c);
}

/* In steps in which followers fetch several times. */
static inline void cluster_wait(struct cluster *c, int64_t ms)
{
    for (; ms > 0; ms -= 100)
        cluster_pass(c, 100);
}

/* All connections may be made again, and ms pass. */
static inline void cluster_heal(struct cluster *c, int64_t ms)
{
    memset(c->cut, 0, sizeof c->cut);
    cluster_wait(c, ms);
}

/* ------------------------------------------------------------------ life */

static inline void cluster_configure(struct fix *f, int32_t id)
{
    char text[32], message[256];
    snprintf(text, sizeof text, "%d", id);
    fix_set(f, "node.id", text);
    fix_set(f, "log.dirs", "/data");
    CU_ASSERT_EQUAL(config_finish(f->config, message, sizeof message), ERR_NONE);
}

/* n nodes, from 1; without replicas before cluster_begin. */
static inline void cluster_prepare(struct cluster *c, int32_t n)
{
    memset(c, 0, sizeof *c);
    c->n = n;
    list_init(&c->lines);
    record_list_init(&c->records);
    image_init(&c->truth, 5);
    for (int32_t i = 1; i <= n; i++) {
        struct fix *f = &c->nodes[i];
        fix_prepare(f);
        f->node_id = i;
        cluster_configure(f, i);
        c->dialing[i] = (struct cluster_dialing){{line_open, line_close}, c, i};
        c->channels[i] = (struct channel){c, NULL};
        f->dialing = &c->dialing[i].d;
        f->channel = &c->channels[i];
    }
    cluster_metadata_version(c, 33);
    for (int32_t i = 1; i <= n; i++)
        cluster_register(c, i, 100 * i, NULL);
}

static inline void cluster_start(struct cluster *c)
{
    const struct replicas_found none = {0};
    for (int32_t i = 1; i <= c->n; i++) {
        struct fix *f = &c->nodes[i];
        CU_ASSERT_EQUAL_FATAL(fix_start(f), ERR_NONE);
        cluster_follow(c, i);
        replicas_load(f->rs, &none, f->now);
    }
    cluster_turn(c);
}

static inline void cluster_begin(struct cluster *c, int32_t n)
{
    cluster_prepare(c, n);
    cluster_start(c);
}

/* A node stops as a process does that is stopped, or (not clean) by a test's kill -9. */
static inline void cluster_stop_node(struct cluster *c, int32_t i)
{
    struct fix *f = &c->nodes[i];
    cluster_disconnect(c, i);
    replicas_close(f->rs, fix_closed, f, f->now);
    cluster_turn(c);
    CU_ASSERT_EQUAL_FATAL(f->closed, 1);
    replicas_free(f->rs);
    f->rs = NULL;
}

static inline void cluster_start_node(struct cluster *c, int32_t i, int64_t epoch)
{
    struct fix *f = &c->nodes[i];
    cluster_register(c, i, epoch, NULL);
    cluster_follow(c, i);
    restart(f, true);
    cluster_turn(c);
}

static inline void cluster_end(struct cluster *c)
{
    for (int32_t i = 1; i <= c->n; i++)
        cluster_disconnect(c, i);
    cluster_turn(c);
    for (int32_t i = 1; i <= c->n; i++)
        if (c->nodes[i].rs != NULL)
            cluster_stop_node(c, i);
    CU_ASSERT(list_empty(&c->lines));
    for (int32_t i = 1; i <= c->n; i++)
        fix_end(&c->nodes[i]);
    image_close(&c->truth);
    record_list_close(&c->records);
}

/* ------------------------------------------------------------------ what it looks like */

static inline struct partition *cluster_part(const struct cluster *c, int32_t node,
                                             struct uuid topic, int32_t index)
{
    struct partition *p = fix_find(&c->nodes[node], topic, index);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    return p;
}

static inline int64_t cluster_leo(const struct cluster *c, int32_t node, struct uuid topic)
{
    return log_end_offset(cluster_part(c, node, topic, 0)->log);
}

static inline int64_t cluster_hw(const struct cluster *c, int32_t node, struct uuid topic)
{
    return cluster_part(c, node, topic, 0)->high_watermark;
}

static inline bool cluster_in_sync(const struct cluster *c, struct uuid topic, int32_t id)
{
    const struct image_partition *ip = image_partition(image_topic_by_id(&c->truth, topic), 0);
    for (int32_t i = 0; i < ip->isr_n; i++)
        if (ip->isr[i] == id)
            return true;
    return false;
}

/* The bytes of the partition's log, in one segment. */
static inline struct bytes cluster_bytes(struct cluster *c, int32_t node, const char *dir)
{
    char path[128];
    size_t n = 0;
    snprintf(path, sizeof path, "/data/%s/00000000000000000000.log", dir);
    const uint8_t *p = memfs_get(&c->nodes[node].fs, path, &n);
    return (struct bytes){p, (int32_t)n};
}

static inline bool cluster_same(struct cluster *c, int32_t a, int32_t b, const char *dir)
{
    const struct bytes x = cluster_bytes(c, a, dir), y = cluster_bytes(c, b, dir);
    return x.p != NULL && x.n == y.n && memcmp(x.p, y.p, (size_t)x.n) == 0;
}

/* n records with acks 1 in one batch at a node, which leads; the followers' turns too. */
static inline int16_t cluster_append(struct cluster *c, int32_t node, struct uuid topic, int32_t n)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.records_n = n;
    fix_produce(&c->nodes[node], &p, topic, 0, 1, &b);
    cluster_turn(c);
    fix_produce_close(&p);
    return p.part.error;
}

/* A fetch by hand at a node. */
static inline void cluster_fetch(struct cluster *c, int32_t node, struct fix_fetch *q)
{
    CU_ASSERT_EQUAL_FATAL(replicas_fetch(c->nodes[node].rs, &q->op, c->nodes[node].now), ERR_NONE);
    cluster_turn(c);
}

/* The one session of a node. */
static inline struct session *cluster_session(const struct cluster *c, int32_t node)
{
    const struct fetch_sessions *s = &c->nodes[node].rs->sessions;
    CU_ASSERT_EQUAL_FATAL(s->by_id.n, 1);
    return LIST_ENTRY(s->lru.next, struct session, lru);
}

#endif
