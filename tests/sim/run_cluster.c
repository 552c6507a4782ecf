/* A cluster under seeded faults: nodes die, lose power, stop and go on, are cut off and lose
 * connections, while clients write and read. Then the faults end, and all must become well. */
#include <stdio.h>

#include "base/check.h"
#include "client.h"
#include "ghost.h"
#include "run.h"

enum { NODES = 3, SETTLE_STEPS = 4000000, SETTLE_US = 180 * 1000 * 1000, LOOK_EVERY = 200 };

static const enum client_kind kinds[] = {
    CLIENT_PRODUCER, CLIENT_PRODUCER, CLIENT_PRODUCER, CLIENT_PRODUCER,
    CLIENT_CONSUMER, CLIENT_CONSUMER, CLIENT_ADMIN,
};
enum { CLIENTS = ARRAY_N(kinds) };

static const char settings[] = "auto.create.topics.enable=false\n"
                               "log.segment.bytes=1048576\n"
                               "offsets.topic.num.partitions=2\n"
                               "default.replication.factor=3\n"
                               "group.initial.rebalance.delay.ms=100\n"
                               "replica.lag.time.max.ms=4000\n"
                               "replica.fetch.backoff.ms=200\n"
                               "leader.imbalance.check.interval.seconds=5\n";

struct plan {
    bool synced; /* log.flush.interval.messages=1: power may be lost */
    unsigned min_isr, steps;
    unsigned fault_per_100000; /* steps */
};

static struct plan draw_plan(struct rng *rng)
{
    return (struct plan){
        .synced = rng_percent(rng, 50),
        .min_isr = rng_percent(rng, 80) ? 2 : 1,
        .steps = 20000 + (unsigned)rng_below(rng, 40000),
        .fault_per_100000 = (unsigned)rng_below(rng, 120),
    };
}

/* ------------------------------------------------------------------ faults */

static size_t up_n(const struct fleet *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->worlds[i].node != NULL && !f->worlds[i].paused;
    return n;
}

static void down(struct fleet *f, const struct plan *plan, size_t i)
{
    struct world *w = &f->worlds[i];
    const bool power = plan->synced && rng_percent(&f->rng, 50);
    switch (rng_below(&f->rng, 4)) {
    case 0:
        if (power)
            fleet_power_off(f, i);
        else
            fleet_kill(f, i);
        break;
    case 1:
        if (world_ready(w)) {
            world_stop(w);
            f->stats.stops++;
        }
        break;
    case 2:
        fleet_pause(f, i);
        break;
    default:
        if (power)
            f->stats.power_losses++;
        else
            f->stats.kills++;
        world_plan_crash(w, 1 + (long)rng_below(&f->rng, 60), power);
    }
}

static void cut(struct fleet *f, size_t i)
{
    const bool one_way = rng_percent(&f->rng, 30), in = rng_percent(&f->rng, 50);
    for (size_t k = 0; k < f->n; k++) {
        if (k == i || rng_percent(&f->rng, 20))
            continue;
        if (!one_way || in)
            fleet_block(f, k, i, true);
        if (!one_way || !in)
            fleet_block(f, i, k, true);
    }
}

static void perhaps_fault(struct fleet *f, const struct plan *plan)
{
    if (rng_below(&f->rng, 100000) >= plan->fault_per_100000)
        return;
    const size_t i = rng_below(&f->rng, f->n);
    struct world *w = &f->worlds[i];
    switch (rng_below(&f->rng, 8)) {
    case 0:
    case 1:
    case 2:
        if (w->node != NULL && !w->paused && w->crash_at_op == 0)
            down(f, plan, i);
        break;
    case 3:
        cut(f, i);
        break;
    case 4:
    case 5:
        fleet_heal(f);
        break;
    case 6:
        network_break(&f->network);
        break;
    default:
        f->clocks[i].wall_ms += (int64_t)rng_below(&f->rng, 20000) - 10000;
    }
}

/* What is down comes back, sooner or later. */
static void perhaps_start(struct fleet *f, bool now)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->worlds[i].node == NULL && (now || rng_below(&f->rng, 3000) == 0))
            fleet_start(f, i);
}

/* ------------------------------------------------------------------ the end */

static void wait_settled(struct fleet *f)
{
    char why[160] = "";
    const int64_t until_us = f->network.us + SETTLE_US;
    fleet_heal(f);
    for (size_t i = 0; i < f->n; i++)
        f->worlds[i].crash_at_op = 0;
    for (long k = 0; k < SETTLE_STEPS && f->network.us < until_us; k++) {
        perhaps_start(f, true);
        fleet_step(f);
        if (k % LOOK_EVERY == 0 && ghost_settled(why, sizeof why))
            return;
    }
    violation("the faults are over and not all is well: %s (28)", why);
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

static void work(struct fleet *f, struct cluster *cl, struct client *clients,
                 const struct plan *plan)
{
    perhaps_start(f, true);
    for (unsigned step = 0; step < plan->steps; step++) {
        perhaps_start(f, false);
        fleet_step(f);
        client_step_in_fleet(&clients[step % CLIENTS], cl);
        perhaps_fault(f, plan);
    }
}

static void count(struct run_totals *t, const struct fleet *f, const struct cluster *cl)
{
    const struct fleet_stats *s = &f->stats;
    t->seeds++;
    t->steps += s->steps;
    t->crashes += s->kills + s->power_losses;
    t->faults += s->stops + s->pauses + s->blocks + f->network.broken;
    t->acked += cl->model.acked;
    t->checked += cl->model.checked;
    t->simulated_us += f->network.us;
}

void run_cluster(uint64_t seed, struct run_totals *t, uint64_t *trace)
{
    static struct fleet f;
    static struct cluster cl;
    struct client clients[CLIENTS];
    struct rng rng = {seed};
    char more[1024];
    violation_where("seed %llu", (unsigned long long)seed);
    const struct plan plan = draw_plan(&rng);
    snprintf(more, sizeof more, "%smin.insync.replicas=%u\n%s", settings, plan.min_isr,
             plan.synced ? "log.flush.interval.messages=1\n" : "");
    memset(&cl, 0, sizeof cl);
    cl.rng.state = rng_u64(&rng);
    cl.fleet = &f;
    cl.replication = NODES;
    for (size_t i = 0; i < TOPICS; i++)
        snprintf(cl.topics[i].name, sizeof cl.topics[i].name, "topic%zu", i);
    admin_init(&cl);
    offsets_init(&cl);
    fleet_init(&f, NODES, rng_u64(&rng), more);
    ghost_begin(&f, (struct ghost_rules){.clean = true});
    for (size_t i = 0; i < CLIENTS; i++)
        client_init(&clients[i], kinds[i], i, &cl.rng);
    work(&f, &cl, clients, &plan);
    for (size_t i = 0; i < CLIENTS; i++)
        world_disconnect(&f.worlds[clients[i].at], clients[i].conn);
    wait_settled(&f);
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
