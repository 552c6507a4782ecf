/* Several worlds and the network between them: one time of which every clock is a little off, one
 * seed that decides what happens next. */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "network.h"

enum { FLEET_MAX = 6, FLEET_SETTINGS_MAX = 2048 };

/* How a machine's clock differs from the network's time. */
struct fleet_clock {
    int64_t ahead_us;
    int32_t fast_ppm;
    int64_t wall_ms; /* of the wall clock alone; jumps */
};

/* Who does what: bits of nodes, from 0; and who votes. */
struct fleet_shape {
    size_t n;
    unsigned controllers, brokers; /* one of the two at least */
    bool dynamic;                  /* voters of a formatted directory (KIP-853), else configured */
};

struct fleet {
    struct world *worlds;
    size_t n;
    struct fleet_shape shape;
    struct network network;
    struct rng rng;
    struct fleet_clock clocks[FLEET_MAX];
    bool calm;              /* no time passes while anything is left to be done */
    uint64_t steps, faults; /* stops, pauses, ways that were blocked */
};

/* n nodes of all roles, 1 to n, with static voters; more: "key=value" lines for each. */
void fleet_init(struct fleet *f, size_t n, uint64_t seed, const char *more);
void fleet_init_shaped(struct fleet *f, const struct fleet_shape *shape, uint64_t seed,
                       const char *more);
void fleet_close(struct fleet *f);

/* One step: something on a wire, on a client's link, a job, or the time, then the turns it asks
 * for. A node that was stopped and has ended stays down. */
void fleet_step(struct fleet *f);
void fleet_start(struct fleet *f, size_t i);
bool fleet_is_broker(const struct fleet *f, size_t i);
bool fleet_is_controller(const struct fleet *f, size_t i);
/* Its disk is empty from now on, but for what formatting writes; it is down. A voter of a dynamic
 * set comes back as an observer. */
void fleet_wipe(struct fleet *f, size_t i);
void fleet_pause(struct fleet *f, size_t i);
/* Nothing gets from one to the other. */
void fleet_block(struct fleet *f, size_t from, size_t to);
/* Everything gets through again, what is paused goes on, disks are fast and have room. */
void fleet_heal(struct fleet *f);
/* A hash of all that crossed the nodes' borders. */
uint64_t fleet_trace(const struct fleet *f);

#endif
