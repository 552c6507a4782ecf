/* One node under seeded crashes, restarts and clients. */
#include <stdio.h>

#include "base/check.h"
#include "client.h"
#include "run.h"

enum { READY_STEPS = 400000 };

static const enum client_kind kinds[] = {
    CLIENT_PRODUCER, CLIENT_PRODUCER,  CLIENT_PRODUCER, CLIENT_CONSUMER, CLIENT_CONSUMER,
    CLIENT_ADMIN,    CLIENT_COMMITTER, CLIENT_MEMBER,   CLIENT_MEMBER,
};
enum { CLIENTS = ARRAY_N(kinds) };

static const char settings_base[] = "log.dirs=/data\n"
                                    "listeners=PLAINTEXT://127.0.0.1:9092\n"
                                    "auto.create.topics.enable=false\n"
                                    "log.segment.bytes=1048576\n"
                                    "offsets.topic.num.partitions=2\n"
                                    "group.initial.rebalance.delay.ms=100\n";

/* What differs between runs. */
struct plan {
    bool synced; /* flush.messages=1: what is acknowledged survives power loss */
    unsigned crash_per_mille, steps;
};

static void wait_ready(struct world *w)
{
    for (long i = 0; i < READY_STEPS; i++) {
        if (w->node == NULL)
            world_start(w);
        if (world_ready(w))
            return;
        world_step(w);
    }
    violation("the node was not ready within %d steps", READY_STEPS);
}

static void perhaps_crash(struct world *w, const struct plan *plan)
{
    if (w->node == NULL || w->crash_at_op > 0 || rng_below(&w->rng, 10000) >= plan->crash_per_mille)
        return;
    const bool power = plan->synced && rng_percent(&w->rng, 70);
    switch (rng_below(&w->rng, 4)) {
    case 0:
        if (power)
            world_power_off(w);
        else
            world_kill(w);
        break;
    case 1:
        if (world_ready(w)) /* while starting, a stop is as a kill */
            world_stop(w);
        break;
    default:
        world_plan_crash(w, 1 + (long)rng_below(&w->rng, 40), power);
    }
}

void run_single(uint64_t seed, struct run_totals *t, uint64_t *trace)
{
    static struct world w;
    static struct cluster cl;
    struct client clients[CLIENTS];
    struct plan plan;
    char settings[512];
    struct rng rng = {seed};
    violation_where("seed %llu", (unsigned long long)seed);
    plan.synced = rng_percent(&rng, 70);
    plan.crash_per_mille = (unsigned)rng_below(&rng, 30);
    plan.steps = 4000 + (unsigned)rng_below(&rng, 12000);
    snprintf(settings, sizeof settings, "%s%s", settings_base,
             plan.synced ? "log.flush.interval.messages=1\n" : "");
    cluster_init(&cl, rng_u64(&rng));
    world_init(&w, rng_u64(&rng), settings);
    for (size_t i = 0; i < CLIENTS; i++)
        client_init(&clients[i], kinds[i], i, &cl.rng);
    for (unsigned step = 0; step < plan.steps; step++) {
        if (w.node == NULL)
            world_start(&w);
        if (w.node != NULL)
            world_step(&w);
        for (size_t i = 0; i < CLIENTS; i++)
            client_step(&clients[i], &w, &cl);
        perhaps_crash(&w, &plan);
    }
    w.crash_at_op = 0;
    for (size_t i = 0; i < CLIENTS; i++)
        world_disconnect(&w, clients[i].conn);
    wait_ready(&w);
    if (!verify_all(&w, &cl, CLIENTS))
        violation("the partitions could not be read to their ends");
    world_stop(&w);
    for (long i = 0; i < READY_STEPS && w.node != NULL; i++)
        world_step(&w);
    if (w.node != NULL)
        violation("the node did not stop");
    *trace = w.trace;
    t->seeds++;
    t->steps += w.stats.steps;
    t->crashes += w.stats.crashes;
    t->acked += cl.model.acked;
    t->checked += cl.model.checked;
    t->simulated_us += w.now.mono_us;
    for (size_t i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
    model_close(&cl.model);
    world_close(&w);
}
