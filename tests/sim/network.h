/* The network between worlds: what a node opens by its struct dialing goes over a wire to another
 * node's listener. Bytes on a wire keep their order, wires do not keep any among each other. A
 * direction can be blocked (bytes wait, as TCP's would), a wire can break; a process that dies
 * closes its wires, a machine that loses power says nothing. */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "world.h"

enum { NETWORK_MAX = 8, WORLD_FIRST_PORT = 9092 };

struct network {
    struct world *worlds; /* world i is host "node<i + 1>" */
    size_t n;
    struct rng rng;
    struct list wires;
    int64_t us;                             /* the time that all clocks are of */
    bool blocked[NETWORK_MAX][NETWORK_MAX]; /* from, to */
    /* Wires that the one opened to the other's first listener: all on them waits, both ways. */
    bool held[NETWORK_MAX][NETWORK_MAX];
    uint64_t broken; /* wires */
};

void network_init(struct network *net, struct world *worlds, size_t n, uint64_t seed);
/* Every node is down. */
void network_close(struct network *net);

/* One thing that may happen on a wire now happens; false: nothing may. */
bool network_step(struct network *net);
/* When something may happen without anybody's doing; INT64_MAX. */
int64_t network_next_us(const struct network *net);
/* Some wire breaks; both sides are told. */
void network_break(struct network *net);

/* ------------------------------------------------------------------ for world.c */

/* Inside w: what its peers want. */
void network_drive(struct network *net, struct world *w);
/* Inside w: its node ended and is about to be freed. */
void network_node_ends(struct network *net, struct world *w);
/* Its memory is about to go. */
void network_process_gone(struct network *net, struct world *w, bool power);

#endif
