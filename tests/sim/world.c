/* Crashes inside file operations: memfs is wrapped in a vfs of our own that counts operations and
 * longjmps out of the node when its time has come; the node's memory goes with heap_kill. The write
 * that is cut down has reached the page cache by then or not, by the seed. */
#include "world.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "ghost.h"
#include "network.h"
#include "support/node/settings.h"
#include "support/real_alloc.h"

static struct world *current; /* the one whose node runs: file operations need it */
static jmp_buf crash_exit;
static struct vfs_ops wrapped;

/* ------------------------------------------------------------------ trace */

void world_trace(struct world *w, const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t h = w->trace;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    w->trace = h;
}

void world_trace_event(struct world *w, char kind, uint64_t v)
{
    world_trace(w, &kind, 1);
    world_trace(w, &v, sizeof v);
}

/* ------------------------------------------------------------------ file operations */

static void before_op(void)
{
    if (current->crash_at_op > 0 && --current->crash_at_op == 0)
        longjmp(crash_exit, 1);
}

static enum err op_open(struct vfs *fs, const char *path, enum file_open mode, struct file **out)
{
    before_op();
    enum err e = wrapped.open(fs, path, mode, out);
    if (e != ERR_NONE)
        return e;
    struct world *w = current;
    if (w->open_n == w->open_cap) {
        w->open_cap = w->open_cap == 0 ? 64 : w->open_cap * 2;
        w->open_files = __real_realloc(w->open_files, w->open_cap * sizeof *w->open_files);
        CHECK(w->open_files != NULL);
    }
    w->open_files[w->open_n++] = *out;
    return ERR_NONE;
}

static void op_close(struct file *f)
{
    struct world *w = current;
    for (size_t i = 0; i < w->open_n; i++) {
        if (w->open_files[i] != f)
            continue;
        w->open_files[i] = w->open_files[--w->open_n];
        break;
    }
    wrapped.close(f);
}

static enum err op_pwritev(struct file *f, const struct iov *iov, size_t n, uint64_t off)
{
    enum err e = ERR_NONE;
    const bool first = rng_percent(&current->rng, 50);
    if (!first)
        before_op();
    e = wrapped.pwritev(f, iov, n, off);
    if (first)
        before_op();
    return e;
}

static enum err op_truncate(struct file *f, uint64_t size)
{
    before_op();
    return wrapped.truncate(f, size);
}

static enum err op_rename(struct vfs *fs, const char *from, const char *to)
{
    before_op();
    return wrapped.rename(fs, from, to);
}

static enum err op_unlink(struct vfs *fs, const char *path)
{
    before_op();
    return wrapped.unlink(fs, path);
}

static enum err op_mkdir(struct vfs *fs, const char *path)
{
    before_op();
    return wrapped.mkdir(fs, path);
}

static enum err (*wrapped_sync)(struct disk *d, const char *path);
static enum err (*wrapped_sync_dir)(struct disk *d, const char *path);

static enum err op_sync(struct disk *d, const char *path)
{
    before_op();
    return wrapped_sync(d, path);
}

static enum err op_sync_dir(struct disk *d, const char *path)
{
    before_op();
    return wrapped_sync_dir(d, path);
}

static void wrap_files(struct world *w)
{
    static struct vfs_ops ops;
    wrapped = *w->fs.vfs.ops;
    ops = wrapped;
    ops.open = op_open;
    ops.close = op_close;
    ops.pwritev = op_pwritev;
    ops.truncate = op_truncate;
    ops.rename = op_rename;
    ops.unlink = op_unlink;
    ops.mkdir = op_mkdir;
    w->fs.vfs.ops = &ops;
    wrapped_sync = w->fs.disk.sync;
    wrapped_sync_dir = w->fs.disk.sync_dir;
    w->fs.disk.sync = op_sync;
    w->fs.disk.sync_dir = op_sync_dir;
}

static void new_disk(struct world *w)
{
    memfs_init(&w->fs, rng_u64(&w->rng));
    memfs_mkdirs(&w->fs, "/data");
    wrap_files(w);
}

void world_wipe(struct world *w)
{
    CHECK(w->node == NULL);
    memfs_close(&w->fs);
    new_disk(w);
}

void world_format(struct world *w, const struct node_format *f)
{
    CHECK(w->node == NULL && w->crash_at_op == 0);
    current = w;
    const enum err e = node_format_write(&w->fs.disk, f);
    CHECK(e == ERR_NONE);
}

/* ------------------------------------------------------------------ the process */

void world_init(struct world *w, uint64_t seed, const char *settings)
{
    memset(w, 0, sizeof *w);
    w->rng.state = seed;
    w->trace = 0xcbf29ce484222325u;
    w->now = (struct now){1000000, 1700000000000};
    new_disk(w);
    memenv_init(&w->env, &w->fs, rng_u64(&w->rng));
    w->config = settings_config(settings);
    for (size_t i = 0; i < WORLD_LINKS; i++)
        link_init(&w->links[i]);
}

static void lose_links(struct world *w)
{
    for (size_t i = 0; i < WORLD_LINKS; i++)
        link_lost(&w->links[i]);
}

void world_close(struct world *w)
{
    if (w->node != NULL)
        world_kill(w);
    for (size_t i = 0; i < WORLD_LINKS; i++)
        link_close(&w->links[i]);
    config_free(w->config);
    memenv_close(&w->env);
    memfs_close(&w->fs);
    heap_close(&w->heap);
    __real_free(w->open_files);
}

/* The memory of the process is gone without anybody having closed anything. */
static void process_gone(struct world *w)
{
    memenv_drop_jobs(&w->env);
    lose_links(w);
    while (w->open_n > 0)
        wrapped.close(w->open_files[--w->open_n]);
    memfs_leave(&w->fs);
    w->fs.vfs.ops->unlock(&w->fs.vfs, config_metadata_log_dir(w->config));
    w->node = NULL;
    w->crash_at_op = 0;
    w->paused = false;
    w->disk_fails = w->disk_fills = false;
    w->fs.fault.nth = 0;
    w->stats.crashes++;
}

/* Also of a node that is just being made. */
static void crash(struct world *w, bool power, bool inside)
{
    world_trace_event(w, power ? 'p' : 'k', w->stats.steps);
    if (w->network != NULL) {
        network_process_gone(w->network, w, power);
        ghost_gone(w->index, power, inside);
    }
    process_gone(w);
    if (power)
        memfs_crash(&w->fs, &w->rng);
    w->off = power;
    heap_kill(&w->heap);
}

void world_kill(struct world *w)
{
    CHECK(w->node != NULL);
    crash(w, false, false);
}

void world_power_off(struct world *w)
{
    CHECK(w->node != NULL);
    crash(w, true, false);
}

void world_plan_crash(struct world *w, long operations, bool power)
{
    w->crash_at_op = operations;
    w->crash_is_power = power;
}

/* Runs a piece of the node; true if it crashed inside. */
#define INSIDE(w, body)                                                                            \
    do {                                                                                           \
        current = (w);                                                                             \
        heap_enter(&(w)->heap);                                                                    \
        if (setjmp(crash_exit) == 0) {                                                             \
            body;                                                                                  \
            heap_leave(&(w)->heap);                                                                \
        } else {                                                                                   \
            heap_leave(&(w)->heap);                                                                \
            crash(w, (w)->crash_is_power, true);                                                   \
        }                                                                                          \
    } while (0)

static void start_node(struct world *w)
{
    char message[512];
    uint16_t ports[WORLD_LISTENERS];
    size_t n;
    (void)config_listeners(w->config, &n);
    CHECK(n <= WORLD_LISTENERS);
    for (size_t i = 0; i < n; i++)
        ports[i] = (uint16_t)(WORLD_FIRST_PORT + i);
    const struct node_args args = {
        .env = &w->env.env,
        .config = w->config,
        .ports = ports,
        .ports_n = n,
        .dialing = &w->dialing,
        .now = w->now,
    };
    enum err e = node_new(&args, &w->node, message, sizeof message);
    if (e != ERR_NONE) {
        fprintf(stderr, "node_new: %s\n", message);
        abort();
    }
}

void world_start(struct world *w)
{
    CHECK(w->node == NULL);
    world_trace_event(w, 's', w->stats.steps);
    w->off = false;
    INSIDE(w, start_node(w));
    w->wants_turn = true;
}

void world_stop(struct world *w)
{
    world_trace_event(w, 't', w->stats.steps);
    INSIDE(w, node_stop(w->node, w->now));
    w->wants_turn = true;
}

bool world_ready(const struct world *w)
{
    return w->node != NULL && node_state(w->node) == NODE_READY;
}

/* ------------------------------------------------------------------ connections */

bool world_connect(struct world *w, size_t i)
{
    struct link *l = &w->links[i];
    if (!world_ready(w))
        return false;
    INSIDE(w, (void)link_connect(l, node_rpc(w->node), w->now));
    return l->conn != NULL;
}

void world_disconnect(struct world *w, size_t i)
{
    struct link *l = &w->links[i];
    if (l->conn == NULL)
        return;
    INSIDE(w, link_disconnect(l, w->now));
    l->closed = true;
    w->wants_turn = true;
}

/* Gives the node some of what waits for it. */
static void deliver(struct world *w, struct link *l)
{
    size_t max = l->in.n;
    if (max > 1 && rng_percent(&w->rng, 30))
        max = 1 + rng_below(&w->rng, max);
    world_trace_event(w, 'i', link_deliver(l, max, w->now));
}

static void drain_output(struct world *w)
{
    struct rpc *rpc = node_rpc(w->node);
    struct link *l;
    size_t n;
    while ((l = link_next_output(rpc, &n, w->now)) != NULL) {
        CHECK(!l->closed || w->disk_fails); /* else every slice can be read */
        if (l->closed)
            continue;
        world_trace(w, l->out.p + l->out.n - n, n);
    }
    (void)links_settle(rpc, w->now);
}

/* ------------------------------------------------------------------ steps */

static void turn(struct world *w)
{
    w->wants_turn = false;
    w->next_turn_us = node_turn(w->node, w->now);
    drain_output(w);
    if (w->network != NULL)
        network_drive(w->network, w);
}

static void advance_clock(struct world *w)
{
    int64_t us = (int64_t)rng_below(&w->rng, rng_percent(&w->rng, 10) ? 200000 : 2000) + 1;
    const bool idle = w->env.waiting_n == 0;
    if (idle && w->next_turn_us != INT64_MAX && w->next_turn_us > w->now.mono_us + us &&
        rng_percent(&w->rng, 50))
        us = w->next_turn_us - w->now.mono_us;
    w->now.mono_us += us;
    w->now.wall_ms = 1700000000000 + w->now.mono_us / 1000;
    w->fs.wall_ms = w->now.wall_ms;
    world_trace_event(w, 'c', (uint64_t)w->now.mono_us);
}

static void end_node(struct world *w)
{
    drain_output(w);
    for (size_t i = 0; i < WORLD_LINKS; i++)
        if (w->links[i].conn != NULL)
            link_disconnect(&w->links[i], w->now);
    if (w->network != NULL)
        network_node_ends(w->network, w);
    node_free(w->node);
    w->node = NULL;
}

/* A node that ended by itself: as it was asked to, and nothing of it may be left in memory. */
static void reap_node(struct world *w)
{
    bool bad_config;
    world_trace_event(w, 'e', w->stats.steps);
    if (node_state(w->node) == NODE_FAILED &&
        (w->disk_fails || w->disk_fills || w->fs.limit_bytes > 0)) {
        crash(w, w->disk_fails, true);
        return;
    }
    if (node_state(w->node) == NODE_FAILED) {
        fprintf(stderr, "the node failed by itself: %s\n", node_message(w->node, &bad_config));
        abort();
    }
    if (w->network != NULL)
        ghost_stopped(w->index);
    INSIDE(w, end_node(w));
    if (w->node == NULL && w->heap.live_n != 0) {
        fprintf(stderr, "a clean stop left %zu allocations\n", w->heap.live_n);
        abort();
    }
    lose_links(w);
}

bool world_run_job(struct world *w)
{
    if (w->env.waiting_n == 0)
        return false;
    const size_t n = rng_below(&w->rng, w->env.waiting_n < 4 ? w->env.waiting_n : 4);
    world_trace_event(w, 'j', n);
    INSIDE(w, memenv_run_nth_job(&w->env, n));
    w->wants_turn = true;
    return true;
}

static struct link *pick_incoming(struct world *w)
{
    size_t n = 0, ready[WORLD_LINKS];
    for (size_t i = 0; i < WORLD_LINKS; i++)
        if (link_wants(&w->links[i]))
            ready[n++] = i;
    return n == 0 ? NULL : &w->links[ready[rng_below(&w->rng, n)]];
}

bool world_deliver(struct world *w)
{
    struct link *l = pick_incoming(w);
    if (l == NULL)
        return false;
    INSIDE(w, deliver(w, l));
    w->wants_turn = true;
    return true;
}

bool world_turn(struct world *w)
{
    if (w->node != NULL && (w->wants_turn || w->next_turn_us <= w->now.mono_us))
        INSIDE(w, turn(w));
    if (w->node != NULL &&
        (node_state(w->node) == NODE_STOPPED || node_state(w->node) == NODE_FAILED))
        reap_node(w);
    return w->node != NULL;
}

bool world_inside(struct world *w, void (*fn)(void *ctx), void *ctx)
{
    INSIDE(w, fn(ctx));
    return w->node != NULL;
}

bool world_step(struct world *w)
{
    w->stats.steps++;
    const unsigned what = (unsigned)rng_below(&w->rng, 100);
    const bool did = (what < 50 && world_deliver(w)) || (what < 80 && world_run_job(w));
    if (!did)
        advance_clock(w);
    return world_turn(w);
}
