/* Several worlds and the network between them: one time of which every clock is a little off, one
 * seed that decides what happens next. */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "network.h"

enum { FLEET_MAX = 5, FLEET_SETTINGS_MAX = 2048 };

/* How a machine's clock differs from the network's time. */
struct fleet_clock {
    int64_t ahead_us;
    int32_t fast_ppm;
    int64_t wall_ms; /* of the wall clock alone; jumps */
};

struct fleet_stats {
    uint64_t steps, kills, power_losses, stops, pauses, blocks, wiped;
};

struct fleet {
    struct world *worlds;
    size_t n;
    struct network network;
    struct rng rng;
    struct fleet_clock clocks[FLEET_MAX];
    struct fleet_stats stats;
};

/* n nodes of all roles, 1 to n, with static voters; more: "key=value" lines for each. */
void fleet_init(struct fleet *f, size_t n, uint64_t seed, const char *more);
void fleet_close(struct fleet *f);

/* One step: something on a wire, on a client's link, a job, or the time, then the turns it asks
 * for. A node that was stopped and has ended stays down. */
void fleet_step(struct fleet *f);
void fleet_start(struct fleet *f, size_t i);
void fleet_kill(struct fleet *f, size_t i);
void fleet_power_off(struct fleet *f, size_t i);
void fleet_pause(struct fleet *f, size_t i);
void fleet_resume(struct fleet *f, size_t i);
/* Its disk is empty from now on; it is down. */
void fleet_wipe(struct fleet *f, size_t i);
/* Nothing gets from one to the other, or through again. */
void fleet_block(struct fleet *f, size_t from, size_t to, bool blocked);
void fleet_heal(struct fleet *f);
/* A hash of all that crossed the nodes' borders. */
uint64_t fleet_trace(const struct fleet *f);

#endif
