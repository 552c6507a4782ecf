/* A cluster under seeded faults, while clients write and read. Then the faults end, and all must
 * become well. */
#include <stdio.h>

#include "base/check.h"
#include "client.h"
#include "faults.h"
#include "ghost.h"
#include "run.h"

enum { SETTLE_STEPS = 4000000, SETTLE_US = 180 * 1000 * 1000, LOOK_EVERY = 200 };
enum {
    MEMBERS_US = 30 * 1000 * 1000, /* some sessions and rebalances */
    MEMBER_BACKOFF_US = 20 * 1000
};

static const enum client_kind kinds[] = {
    CLIENT_PRODUCER, CLIENT_PRODUCER,  CLIENT_PRODUCER, CLIENT_PRODUCER,
    CLIENT_CONSUMER, CLIENT_CONSUMER,  CLIENT_CONSUMER, CLIENT_ADMIN,
    CLIENT_OPERATOR, CLIENT_COMMITTER, CLIENT_MEMBER,   CLIENT_MEMBER,
};
enum { CLIENTS = ARRAY_N(kinds) };

static const char settings[] = "auto.create.topics.enable=false\n"
                               "log.segment.bytes=1048576\n"
                               "offsets.topic.num.partitions=2\n"
                               "group.initial.rebalance.delay.ms=100\n"
                               "replica.lag.time.max.ms=4000\n"
                               "metadata.log.max.record.bytes.between.snapshots=8192\n"
                               "metadata.max.retention.bytes=65536\n"
                               "replica.selector.class=org.apache.kafka.common.replica."
                               "RackAwareReplicaSelector\n"
                               "replica.fetch.backoff.ms=200\n"
                               "leader.imbalance.check.interval.seconds=5\n";

struct plan {
    struct fleet_shape shape;
    struct fault_plan faults;
    struct sim_operations operations;
    unsigned steps;
};

/* Nodes 1 to n. */
static unsigned first(size_t n)
{
    return (1u << n) - 1;
}

static struct fleet_shape draw_shape(struct rng *rng)
{
    const bool dynamic = rng_percent(rng, 25);
    switch (rng_below(rng, 10)) {
    case 0: /* one */
        return (struct fleet_shape){1, first(1), first(1), dynamic};
    case 1: /* five of both roles */
        return (struct fleet_shape){5, first(5), first(5), dynamic};
    case 2: /* three controllers, two or three brokers */
    case 3: {
        const size_t n = 5 + rng_below(rng, 2);
        return (struct fleet_shape){n, first(3), first(n) & ~first(3), dynamic};
    }
    case 4: /* five brokers, of which three are controllers */
        return (struct fleet_shape){5, first(3), first(5), dynamic};
    default:
        return (struct fleet_shape){3, first(3), first(3), dynamic};
    }
}

/* One after the other: an initializer's order is the compiler's. */
static struct plan draw_plan(struct rng *rng)
{
    struct plan p = {.shape = draw_shape(rng)};
    p.faults.synced = rng_percent(rng, 50);
    p.faults.losses = rng_percent(rng, 50);
    p.faults.disks = rng_percent(rng, 30);
    p.faults.min_isr = rng_percent(rng, 80) ? 2 : 1;
    p.faults.per_100000 = (unsigned)rng_below(rng, 140);
    p.operations.unclean = rng_percent(rng, 20);
    p.operations.min_isr = rng_percent(rng, 30) && !p.faults.losses;
    p.operations.deletion = rng_percent(rng, 50);
    p.operations.fewer_voters = rng_percent(rng, 50) && !p.faults.losses;
    p.steps = (20000 + (unsigned)rng_below(rng, 40000)) * (unsigned)(p.shape.n + 1) / 4;
    return p;
}

/* Replicas of a topic. */
static size_t factor(const struct fleet_shape *shape)
{
    const size_t brokers = (size_t)__builtin_popcount(shape->brokers);
    return brokers < 3 ? brokers : 3;
}

/* ------------------------------------------------------------------ the end */

static void wait_settled(struct faults *faults)
{
    struct fleet *f = faults->f;
    char why[256] = "";
    const int64_t until_us = f->network.us + SETTLE_US;
    faults_end(faults);
    for (long k = 0; k < SETTLE_STEPS && f->network.us < until_us; k++) {
        faults_start_all(faults);
        fleet_step(f);
        if (k % LOOK_EVERY == 0 && ghost_settled(why, sizeof why))
            return;
    }
    violation("the faults are over and not all is well: %s (28)", why);
}

/* Time does not pass while members ask: one that has to wait asks again a little later. */
static void step_member(struct fleet *f, struct cluster *cl, struct client *c, int64_t *again_us)
{
    if (c->kind != CLIENT_MEMBER || f->network.us < *again_us)
        return;
    c->not_ready = false;
    client_step_in_fleet(c, cl);
    if (c->not_ready)
        *again_us = f->network.us + MEMBER_BACKOFF_US;
}

/* The members of the group go on where they were. */
static void wait_members(struct fleet *f, struct cluster *cl, struct client *clients)
{
    const int64_t until_us = f->network.us + MEMBERS_US;
    int64_t again_us[CLIENTS] = {0};
    f->calm = cl->calm = true;
    for (size_t i = 0; i < CLIENTS; i++)
        clients[i].rests = false;
    while (!members_rest(clients, CLIENTS)) {
        if (f->network.us > until_us)
            violation("the faults are over and a group's members do not come to rest");
        fleet_step(f);
        for (size_t i = 0; i < CLIENTS; i++)
            step_member(f, cl, &clients[i], &again_us[i]);
    }
}

static size_t up_n(const struct fleet *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->worlds[i].node != NULL;
    return n;
}

static void stop_all(struct fleet *f)
{
    for (size_t i = 0; i < f->n; i++)
        world_stop(&f->worlds[i]);
    for (long k = 0; k < SETTLE_STEPS && up_n(f) > 0; k++)
        fleet_step(f);
    if (up_n(f) > 0)
        violation("%zu nodes did not stop", up_n(f));
}

/* ------------------------------------------------------------------ a run */

static void work(struct faults *faults, struct cluster *cl, struct client *clients, unsigned steps)
{
    faults_start_all(faults);
    for (unsigned step = 0; step < steps; step++) {
        fleet_step(faults->f);
        client_step_in_fleet(&clients[step % CLIENTS], cl);
        faults_step(faults);
    }
}

static void count(struct run_totals *t, const struct fleet *f, const struct cluster *cl)
{
    t->seeds++;
    t->steps += f->steps;
    for (size_t i = 0; i < f->n; i++)
        t->crashes += f->worlds[i].stats.crashes;
    t->faults += f->faults + f->network.broken;
    t->acked += cl->model.acked;
    t->checked += cl->model.checked;
    t->simulated_us += f->network.us;
}

void run_cluster(uint64_t seed, struct run_totals *t, uint64_t *trace)
{
    static struct fleet f;
    static struct cluster cl;
    struct client clients[CLIENTS];
    struct faults faults;
    struct rng rng = {seed};
    char more[1024];
    violation_where("seed %llu", (unsigned long long)seed);
    const struct plan plan = draw_plan(&rng);
    snprintf(more, sizeof more, "%smin.insync.replicas=%d\ndefault.replication.factor=%zu\n%s",
             settings, plan.faults.min_isr, factor(&plan.shape),
             plan.faults.synced ? "log.flush.interval.messages=1\n" : "");
    cluster_init(&cl, rng_u64(&rng));
    cl.fleet = &f;
    cl.operations = plan.operations;
    fleet_init_shaped(&f, &plan.shape, rng_u64(&rng), more);
    ghost_begin(&f);
    faults_begin(&faults, &f, &plan.faults);
    for (size_t i = 0; i < CLIENTS; i++)
        client_init(&clients[i], kinds[i], i, &cl.rng);
    work(&faults, &cl, clients, plan.steps);
    for (size_t i = 0; i < CLIENTS; i++)
        world_disconnect(&f.worlds[clients[i].at], clients[i].conn);
    wait_settled(&faults);
    wait_members(&f, &cl, clients);
    if (!verify_fleet(&cl, CLIENTS))
        violation("the partitions could not be read to their ends");
    stop_all(&f);
    *trace = fleet_trace(&f);
    count(t, &f, &cl);
    for (size_t i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
    model_close(&cl.model);
    ghost_end();
    fleet_close(&f);
}
