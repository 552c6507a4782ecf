/* One simulated machine: a node of the shipped code, its disk, its clock, its connections. Nothing
 * here knows Kafka: bytes in, bytes out, jobs at seeded later steps, crashes at any step and inside
 * any file operation of a job or a turn. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "heap.h"
#include "node/format.h"
#include "node/node.h"
#include "support/memenv.h"
#include "support/node/link.h"

enum { WORLD_LINKS = 16, WORLD_LISTENERS = 2 };

struct network;

struct world_stats {
    uint64_t steps, crashes;
};

struct world {
    struct rng rng;
    struct heap heap; /* of the process */
    struct memfs fs;
    struct memenv env;
    struct config *config;
    struct node *node; /* NULL: the process is down */
    struct now now;
    int64_t next_turn_us;
    struct link links[WORLD_LINKS];
    uint64_t trace; /* hash of everything that crossed the node's border */
    struct world_stats stats;
    long crash_at_op; /* file operations until a crash; 0: none planned */
    bool crash_is_power;
    bool wants_turn;
    bool paused;              /* SIGSTOP */
    bool off;                 /* without power: nothing answers for it */
    bool disk_fails;          /* a node that gives up because of it ends as by a power loss */
    bool disk_fills;          /* the same as by kill -9 */
    unsigned slow_percent;    /* so often a job has to wait for another step */
    struct file **open_files; /* of the process: a kill closes them */
    size_t open_n, open_cap;
    struct dialing dialing;  /* to other worlds, see network.h */
    struct network *network; /* NULL: this one is alone */
    size_t index;            /* in its network */
};

/* settings: "key=value" lines of a properties file; its listeners are at ports 9092, 9093, ... */
void world_init(struct world *w, uint64_t seed, const char *settings);
void world_close(struct world *w);

/* Starts the process; it must be down. */
void world_start(struct world *w);
/* kill -9: the page cache stays. */
void world_kill(struct world *w);
/* Power off: what was not synced may be gone or torn. */
void world_power_off(struct world *w);
/* Plans a crash inside one of the next file operations. */
void world_plan_crash(struct world *w, long operations, bool power);
/* An empty disk in the place of the old one. The process is down. */
void world_wipe(struct world *w);
/* What `dohle format` does. The process is down. */
void world_format(struct world *w, const struct node_format *f);
/* Asks for a clean stop; the process is down once world_step says so. */
void world_stop(struct world *w);

/* One step: a piece of bytes, a job, or the clock, then a turn. False when the node ended. */
bool world_step(struct world *w);
bool world_ready(const struct world *w);

/* Opens link i to the first listener; false while the node does not take any. What is put into its
 * `in` goes its way in later steps. */
bool world_connect(struct world *w, size_t i);
void world_disconnect(struct world *w, size_t i);

void world_trace(struct world *w, const void *p, size_t n);
void world_trace_event(struct world *w, char kind, uint64_t v);

/* ------------------------------------------------------------------ parts of a step, for networks
 */

/* Gives the node some of what waits on one of its links; false: nothing waits. */
bool world_deliver(struct world *w);
/* Runs one of the jobs that wait; false: none does. */
bool world_run_job(struct world *w);
/* A turn, if one is wanted or due. False when the node ended. */
bool world_turn(struct world *w);
/* Runs fn as a piece of the node. False: it crashed inside. */
bool world_inside(struct world *w, void (*fn)(void *ctx), void *ctx);

#endif
