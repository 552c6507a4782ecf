#include "fleet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "ghost.h"
#include "support/node/settings.h"
#include "support/real_alloc.h"

enum { FIRST_US = 1000 * 1000, RACKS = 3 };
static const char cluster_id[] = "simulatedclusterAAAA";
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

/* ------------------------------------------------------------------ settings */

bool fleet_is_broker(const struct fleet *f, size_t i)
{
    return (f->shape.brokers >> i & 1) != 0;
}

bool fleet_is_controller(const struct fleet *f, size_t i)
{
    return (f->shape.controllers >> i & 1) != 0;
}

/* Of its controller: behind the broker's, where it has one. */
static int controller_port(const struct fleet *f, size_t i)
{
    return WORLD_FIRST_PORT + fleet_is_broker(f, i);
}

__attribute__((format(printf, 2, 3))) static void add(char *out, const char *fmt, ...)
{
    const size_t at = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(out + at, FLEET_SETTINGS_MAX - at, fmt, ap);
    va_end(ap);
    CHECK(n >= 0 && (size_t)n < FLEET_SETTINGS_MAX - at);
}

static void add_listeners(const struct fleet *f, size_t i, char *out)
{
    const bool broker = fleet_is_broker(f, i), controller = fleet_is_controller(f, i);
    const char *const comma = broker && controller ? "," : "";
    add(out, "process.roles=%s%s%s\nlisteners=", broker ? "broker" : "", comma,
        controller ? "controller" : "");
    if (broker)
        add(out, "PLAINTEXT://node%zu:%d%s", i + 1, WORLD_FIRST_PORT, comma);
    if (controller)
        add(out, "CONTROLLER://node%zu:%d", i + 1, controller_port(f, i));
    add(out, "\ncontroller.listener.names=CONTROLLER\n");
}

static void add_voters(const struct fleet *f, char *out)
{
    const char *comma = "";
    add(out,
        f->shape.dynamic ? "controller.quorum.bootstrap.servers=" : "controller.quorum.voters=");
    for (size_t k = 0; k < f->n; k++) {
        if (!fleet_is_controller(f, k))
            continue;
        add(out, "%s", comma);
        if (!f->shape.dynamic)
            add(out, "%zu@", k + 1);
        add(out, "node%zu:%d", k + 1, controller_port(f, k));
        comma = ",";
    }
    add(out, "\n");
}

static void settings_of(const struct fleet *f, size_t i, const char *more, char *out)
{
    out[0] = '\0';
    add(out, "node.id=%zu\nlog.dirs=/data\ncluster.id=%s\n", i + 1, cluster_id);
    add_listeners(f, i, out);
    add_voters(f, out);
    if (fleet_is_broker(f, i))
        add(out, "broker.rack=rack%zu\n", i % RACKS + 1);
    add(out, "%s", more);
}

/* ------------------------------------------------------------------ formatting, as by `dohle
 * format`
 */

/* Of a voter, for its first disk. */
static struct uuid first_directory(size_t i)
{
    struct uuid id = {{0}};
    id.b[0] = 0xd1;
    id.b[15] = (uint8_t)(i + 1);
    return id;
}

static void first_voters(const struct fleet *f, struct voter_set *out)
{
    out->n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (!fleet_is_controller(f, i))
            continue;
        char host[32];
        struct voter *v = &out->v[out->n++];
        snprintf(host, sizeof host, "node%zu", i + 1);
        *v = (struct voter){
            .id = (int32_t)i + 1, .directory_id = first_directory(i), .kraft_max = 1};
        CHECK(voter_reached_at(v, STR_LIT("CONTROLLER"), str_of(host),
                               (uint16_t)controller_port(f, i)));
    }
}

/* With static voters, and without the role of a controller, a node formats itself. */
static void format(struct fleet *f, size_t i, bool first)
{
    static struct voter_set voters;
    if (!f->shape.dynamic || !fleet_is_controller(f, i))
        return;
    first_voters(f, &voters);
    struct node_format nf = {
        .log_dir = "/data",
        .kind = first ? FORMAT_VOTERS : FORMAT_NO_VOTERS,
        .meta = {.node_id = (int32_t)i + 1, .directory_id = first_directory(i)},
        .voters = first ? &voters : NULL,
        .now = f->worlds[i].now,
    };
    if (!first)
        rng_fill(&f->rng, &nf.meta.directory_id, sizeof nf.meta.directory_id);
    snprintf(nf.meta.cluster_id, sizeof nf.meta.cluster_id, "%s", cluster_id);
    world_format(&f->worlds[i], &nf);
}

/* ------------------------------------------------------------------ begin and end */

static void draw_clock(struct fleet_clock *c, struct rng *rng)
{
    c->ahead_us = (int64_t)rng_below(rng, 1000 * 1000);
    c->fast_ppm = (int32_t)rng_below(rng, 400) - 200;
    c->wall_ms = (int64_t)rng_below(rng, 2000);
}

void fleet_init_shaped(struct fleet *f, const struct fleet_shape *shape, uint64_t seed,
                       const char *more)
{
    const size_t n = shape->n;
    CHECK(n <= FLEET_MAX);
    *f = (struct fleet){.n = n, .shape = *shape, .rng = {seed}};
    f->worlds = __real_calloc(n, sizeof *f->worlds);
    CHECK(f->worlds != NULL);
    for (size_t i = 0; i < n; i++) {
        char settings[FLEET_SETTINGS_MAX];
        settings_of(f, i, more, settings);
        world_init(&f->worlds[i], rng_u64(&f->rng), settings);
        f->worlds[i].env.echo = getenv("DOHLE_TEST_ECHO") != NULL;
        draw_clock(&f->clocks[i], &f->rng);
    }
    network_init(&f->network, f->worlds, n, rng_u64(&f->rng));
    pass_time(f, FIRST_US);
    for (size_t i = 0; i < n; i++)
        format(f, i, true);
}

void fleet_init(struct fleet *f, size_t n, uint64_t seed, const char *more)
{
    const unsigned all = (1u << n) - 1;
    fleet_init_shaped(f, &(struct fleet_shape){n, all, all, false}, seed, more);
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

void fleet_wipe(struct fleet *f, size_t i)
{
    world_wipe(&f->worlds[i]);
    ghost_wiped(i);
    format(f, i, false);
    f->faults++;
}

void fleet_pause(struct fleet *f, size_t i)
{
    f->worlds[i].paused = true;
    f->faults++;
}

void fleet_block(struct fleet *f, size_t from, size_t to)
{
    f->faults += !f->network.blocked[from][to];
    f->network.blocked[from][to] = true;
}

void fleet_heal(struct fleet *f)
{
    memset(f->network.blocked, 0, sizeof f->network.blocked);
    for (size_t i = 0; i < f->n; i++) {
        struct world *w = &f->worlds[i];
        w->wants_turn |= w->paused;
        w->paused = false;
        w->slow_percent = 0;
        w->fs.limit_bytes = 0;
        if (w->disk_fails && !w->fs.fault_hit) {
            w->disk_fails = false;
            w->fs.fault.nth = 0;
        }
    }
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
    return runs(w) && (w->slow_percent == 0 || !rng_percent(&f->rng, w->slow_percent)) &&
           world_run_job(w);
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

static bool anything(struct fleet *f)
{
    if (network_step(&f->network))
        return true;
    for (size_t i = 0; i < f->n; i++)
        if (runs(&f->worlds[i]) && (world_deliver(&f->worlds[i]) || world_run_job(&f->worlds[i])))
            return true;
    return false;
}

void fleet_step(struct fleet *f)
{
    f->steps++;
    const unsigned what = (unsigned)rng_below(&f->rng, 100);
    const bool did = (what < 55 && network_step(&f->network)) || (what < 65 && some_link(f)) ||
                     (what < 90 && some_job(f));
    if (!did && !(f->calm && anything(f)))
        some_time(f);
    for (size_t i = 0; i < f->n; i++) {
        struct world *w = &f->worlds[i];
        if (!runs(w) || (!w->wants_turn && w->next_turn_us > w->now.mono_us))
            continue;
        world_turn(w);
        ghost_look(i);
    }
}
