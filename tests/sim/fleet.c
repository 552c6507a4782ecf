#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "ghost.h"
#include "support/node/settings.h"
#include "support/real_alloc.h"

enum { FIRST_US = 1000 * 1000 };
static const int64_t first_wall_ms = 1700000000000;

/* ------------------------------------------------------------------ clocks */

static int64_t mono_of(const struct fleet *f, size_t i, int64_t us)
{
    const struct fleet_clock *c = &f->clocks[i];
    return us + c->ahead_us + us / 1000000 * c->fast_ppm;
}

/* The network's time at which a world's clock shows mono_us, or a little later. */
static int64_t time_of(const struct fleet *f, size_t i, int64_t mono_us)
{
    if (mono_us == INT64_MAX || mono_us <= 0)
        return mono_us;
    const struct fleet_clock *c = &f->clocks[i];
    int64_t us = mono_us - c->ahead_us - (mono_us / 1000000 + 1) * c->fast_ppm;
    while (mono_of(f, i, us) < mono_us)
        us += 1 + (mono_us - mono_of(f, i, us)) / 2;
    return us;
}

static void set_clock(struct fleet *f, size_t i)
{
    struct world *w = &f->worlds[i];
    const int64_t mono_us = mono_of(f, i, f->network.us);
    if (mono_us > w->now.mono_us)
        w->now.mono_us = mono_us;
    w->now.wall_ms = first_wall_ms + w->now.mono_us / 1000 + f->clocks[i].wall_ms;
    w->fs.wall_ms = w->now.wall_ms;
}

static void pass_time(struct fleet *f, int64_t us)
{
    f->network.us += us;
    for (size_t i = 0; i < f->n; i++)
        set_clock(f, i);
}

/* ------------------------------------------------------------------ begin and end */

static void settings_of(size_t i, size_t n, const char *more, char *out)
{
    int at = snprintf(out, FLEET_SETTINGS_MAX,
                      "node.id=%zu\nlog.dirs=/data\ncluster.id=simulatedclusterAAAA\n"
                      "listeners=PLAINTEXT://node%zu:9092,CONTROLLER://node%zu:9093\n"
                      "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=",
                      i + 1, i + 1, i + 1);
    for (size_t k = 0; k < n; k++)
        at += snprintf(out + at, FLEET_SETTINGS_MAX - (size_t)at, "%s%zu@node%zu:9093",
                       k == 0 ? "" : ",", k + 1, k + 1);
    at += snprintf(out + at, FLEET_SETTINGS_MAX - (size_t)at, "\n%s", more);
    CHECK(at < FLEET_SETTINGS_MAX);
}

void fleet_init(struct fleet *f, size_t n, uint64_t seed, const char *more)
{
    CHECK(n <= FLEET_MAX);
    *f = (struct fleet){.n = n, .rng = {seed}};
    f->worlds = __real_calloc(n, sizeof *f->worlds);
    CHECK(f->worlds != NULL);
    for (size_t i = 0; i < n; i++) {
        char settings[FLEET_SETTINGS_MAX];
        settings_of(i, n, more, settings);
        world_init(&f->worlds[i], rng_u64(&f->rng), settings);
        f->worlds[i].env.echo = getenv("DOHLE_TEST_ECHO") != NULL;
        f->clocks[i] = (struct fleet_clock){
            .ahead_us = (int64_t)rng_below(&f->rng, 1000 * 1000),
            .fast_ppm = (int32_t)rng_below(&f->rng, 400) - 200,
            .wall_ms = (int64_t)rng_below(&f->rng, 2000),
        };
    }
    network_init(&f->network, f->worlds, n, rng_u64(&f->rng));
    pass_time(f, FIRST_US);
}

void fleet_close(struct fleet *f)
{
    for (size_t i = 0; i < f->n; i++)
        world_close(&f->worlds[i]);
    network_close(&f->network);
    __real_free(f->worlds);
}

uint64_t fleet_trace(const struct fleet *f)
{
    uint64_t h = 0;
    for (size_t i = 0; i < f->n; i++)
        h = h * 0x100000001b3u ^ f->worlds[i].trace;
    return h;
}

/* ------------------------------------------------------------------ what is done to nodes */

void fleet_start(struct fleet *f, size_t i)
{
    set_clock(f, i);
    world_start(&f->worlds[i]);
}

void fleet_kill(struct fleet *f, size_t i)
{
    world_kill(&f->worlds[i]);
    f->stats.kills++;
}

void fleet_power_off(struct fleet *f, size_t i)
{
    world_power_off(&f->worlds[i]);
    f->stats.power_losses++;
}

void fleet_pause(struct fleet *f, size_t i)
{
    f->worlds[i].paused = true;
    f->stats.pauses++;
}

void fleet_resume(struct fleet *f, size_t i)
{
    f->worlds[i].paused = false;
    f->worlds[i].wants_turn = true;
}

void fleet_wipe(struct fleet *f, size_t i)
{
    struct world *w = &f->worlds[i];
    CHECK(w->node == NULL);
    world_wipe(w);
    ghost_wiped(i);
    f->stats.wiped++;
}

void fleet_block(struct fleet *f, size_t from, size_t to, bool blocked)
{
    f->stats.blocks += blocked && !f->network.blocked[from][to];
    f->network.blocked[from][to] = blocked;
}

void fleet_heal(struct fleet *f)
{
    memset(f->network.blocked, 0, sizeof f->network.blocked);
    for (size_t i = 0; i < f->n; i++)
        if (f->worlds[i].paused)
            fleet_resume(f, i);
}

/* ------------------------------------------------------------------ steps */

static bool runs(const struct world *w)
{
    return w->node != NULL && !w->paused;
}

static struct world *some_world(struct fleet *f)
{
    return &f->worlds[rng_below(&f->rng, f->n)];
}

static bool some_job(struct fleet *f)
{
    struct world *w = some_world(f);
    return runs(w) && world_run_job(w);
}

static bool some_link(struct fleet *f)
{
    struct world *w = some_world(f);
    return runs(w) && world_deliver(w);
}

/* When the next thing is due that nobody has to do anything for. */
static int64_t next_us(const struct fleet *f)
{
    int64_t next = network_next_us(&f->network);
    for (size_t i = 0; i < f->n; i++) {
        if (!runs(&f->worlds[i]))
            continue;
        const int64_t at = time_of(f, i, f->worlds[i].next_turn_us);
        next = at < next ? at : next;
    }
    return next;
}

static bool jobs_wait(const struct fleet *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (runs(&f->worlds[i]) && f->worlds[i].env.waiting_n > 0)
            return true;
    return false;
}

static void some_time(struct fleet *f)
{
    int64_t us = (int64_t)rng_below(&f->rng, rng_percent(&f->rng, 3) ? 100000 : 500) + 1;
    const int64_t next = next_us(f);
    if (!jobs_wait(f) && next != INT64_MAX && next > f->network.us + us && rng_percent(&f->rng, 50))
        us = next - f->network.us;
    pass_time(f, us);
}

void fleet_step(struct fleet *f)
{
    f->stats.steps++;
    const unsigned what = (unsigned)rng_below(&f->rng, 100);
    const bool did = (what < 55 && network_step(&f->network)) || (what < 65 && some_link(f)) ||
                     (what < 90 && some_job(f));
    if (!did)
        some_time(f);
    for (size_t i = 0; i < f->n; i++) {
        struct world *w = &f->worlds[i];
        if (!runs(w) || (!w->wants_turn && w->next_turn_us > w->now.mono_us))
            continue;
        world_turn(w);
        ghost_look(i);
    }
}
