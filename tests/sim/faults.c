#include "faults.h"

#include "ghost.h"

enum { MIB = 1 << 20 };

void faults_begin(struct faults *fs, struct fleet *f, const struct fault_plan *plan)
{
    *fs = (struct faults){.f = f, .plan = *plan, .loser = -1, .to_wipe = -1};
}

/* While somebody may lack what it had, nobody else ends uncleanly. */
static bool may_crash(struct faults *fs, size_t i)
{
    if (fs->loser >= 0 && fs->to_wipe < 0 && !fs->f->worlds[fs->loser].disk_fails &&
        ghost_recovered())
        fs->loser = -1;
    return fs->loser < 0 || fs->loser == (int32_t)i;
}

/* ------------------------------------------------------------------ machines and processes */

static void kill(struct faults *fs, struct world *w, bool power)
{
    if (!may_crash(fs, w->index))
        return;
    if (power)
        world_power_off(w);
    else
        world_kill(w);
}

static void plan_crash(struct faults *fs, struct world *w, bool power)
{
    if (may_crash(fs, w->index))
        world_plan_crash(w, 1 + (long)rng_below(&fs->f->rng, 60), power);
}

static void take_down(struct faults *fs, struct world *w)
{
    struct fleet *f = fs->f;
    const bool power = fs->plan.synced && rng_percent(&f->rng, 50);
    if (w->node == NULL || w->paused || w->crash_at_op > 0 || w->disk_fails)
        return;
    switch (rng_below(&f->rng, 4)) {
    case 0:
        kill(fs, w, power);
        break;
    case 1:
        if (world_ready(w)) {
            world_stop(w);
            f->faults++;
        }
        break;
    case 2:
        fleet_pause(f, w->index);
        break;
    default:
        plan_crash(fs, w, power);
    }
}

/* Power off though nothing was synced, or another disk. */
static void lose(struct faults *fs, struct world *w)
{
    if (w->node == NULL || w->paused || !may_crash(fs, w->index) || fs->loser >= 0 ||
        !ghost_may_lose(w->index, fs->plan.min_isr))
        return;
    fs->loser = (int32_t)w->index;
    ghost_loses(w->index);
    if (rng_percent(&fs->f->rng, 60))
        fs->to_wipe = fs->loser;
    world_power_off(w);
}

/* ------------------------------------------------------------------ disks */

static void fail_disk(struct faults *fs, struct world *w)
{
    static const unsigned kinds[] = {
        MEMFS_KIND(MEMFS_SYNC) | MEMFS_KIND(MEMFS_SYNC_DIR),
        MEMFS_KIND(MEMFS_WRITE),
        MEMFS_KIND(MEMFS_READ),
        0,
    };
    struct rng *rng = &fs->f->rng;
    struct memfs_fault fault = {.err = ERR_IO};
    fault.nth = 1 + (long)rng_below(rng, 100);
    fault.persistent = rng_percent(rng, 50);
    fault.kinds = kinds[rng_below(rng, ARRAY_N(kinds))];
    if (w->node == NULL || w->paused || w->crash_at_op > 0 || !may_crash(fs, w->index))
        return;
    if (!fs->plan.synced) { /* it ends as by a power loss */
        if (fs->loser >= 0 || !ghost_may_lose(w->index, fs->plan.min_isr))
            return;
        fs->loser = (int32_t)w->index;
        ghost_loses(w->index);
    }
    memfs_fault_arm(&w->fs, fault);
    w->disk_fails = true;
    fs->f->faults++;
}

/* What cannot be written may end the node: quorum-state, say. */
static void fill_disk(struct faults *fs, struct world *w)
{
    if (w->node == NULL || !may_crash(fs, w->index))
        return;
    w->fs.limit_bytes = w->fs.used_bytes + rng_below(&fs->f->rng, MIB);
    w->disk_fills = true;
    fs->f->faults++;
}

static void trouble_disk(struct faults *fs, struct world *w)
{
    struct fleet *f = fs->f;
    switch (rng_below(&f->rng, 3)) {
    case 0:
        w->slow_percent = 50 + (unsigned)rng_below(&f->rng, 50);
        f->faults++;
        break;
    case 1:
        fill_disk(fs, w);
        break;
    default:
        fail_disk(fs, w);
    }
}

/* ------------------------------------------------------------------ the network */

static void cut(struct fleet *f, size_t i)
{
    const bool one_way = rng_percent(&f->rng, 30), in = rng_percent(&f->rng, 50);
    for (size_t k = 0; k < f->n; k++) {
        if (k == i || rng_percent(&f->rng, 20))
            continue;
        if (!one_way || in)
            fleet_block(f, k, i);
        if (!one_way || !in)
            fleet_block(f, i, k);
    }
}

/* ------------------------------------------------------------------ a step */

static void one_fault(struct faults *fs)
{
    struct fleet *f = fs->f;
    const size_t i = rng_below(&f->rng, f->n);
    switch (rng_below(&f->rng, 10)) {
    case 0:
    case 1:
    case 2:
        take_down(fs, &f->worlds[i]);
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
    case 7:
        if (fs->plan.disks)
            trouble_disk(fs, &f->worlds[i]);
        break;
    case 8:
        if (fs->plan.losses)
            lose(fs, &f->worlds[i]);
        break;
    default:
        f->clocks[i].wall_ms += (int64_t)rng_below(&f->rng, 20000) - 10000;
    }
}

/* A disk is taken away only once that can be. */
static void start(struct faults *fs, size_t i, bool now)
{
    if (fs->to_wipe == (int32_t)i) {
        const bool may = ghost_may_be_wiped(i, fs->plan.min_isr);
        if (!may && !now)
            return;
        if (may)
            fleet_wipe(fs->f, i);
        fs->to_wipe = -1;
    }
    fleet_start(fs->f, i);
}

void faults_step(struct faults *fs)
{
    struct fleet *f = fs->f;
    for (size_t i = 0; i < f->n; i++)
        if (f->worlds[i].node == NULL && rng_below(&f->rng, 3000) == 0)
            start(fs, i, false);
    if (rng_below(&f->rng, 100000) < fs->plan.per_100000)
        one_fault(fs);
}

void faults_end(struct faults *fs)
{
    struct fleet *f = fs->f;
    fleet_heal(f);
    for (size_t i = 0; i < f->n; i++) {
        f->worlds[i].crash_at_op = 0;
        f->worlds[i].fs.fault.nth = 0;
    }
}

void faults_start_all(struct faults *fs)
{
    for (size_t i = 0; i < fs->f->n; i++)
        if (fs->f->worlds[i].node == NULL)
            start(fs, i, true);
}
