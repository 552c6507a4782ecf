/* The invariants of replication.md 9 and quorum.md 7, looked at after every turn of every node,
 * with the ghost state they need: what was ever committed, who ever led which epoch. The numbers in
 * messages are the specification's. One fleet at a time. */
#ifndef SIM_GHOST_H
#define SIM_GHOST_H

#include "fleet.h"

/* What may happen to promises in a run. */
struct ghost_rules {
    bool clean; /* no unclean election, no more lossy restarts than the ISRs forgive */
};

void ghost_begin(struct fleet *f, struct ghost_rules rules);
void ghost_end(void);
/* Node i has had a turn. */
void ghost_look(size_t i);
/* Its process ended; inside: in the middle of a turn, or of a job. */
void ghost_gone(size_t i, bool power, bool inside);
/* Its disk is another one. */
void ghost_wiped(size_t i);
/* The faults are over and all is quiet: every replica of every partition holds the same, in full
 * ISRs (28, Q15). False: not yet. why: of that. */
bool ghost_settled(char *why, size_t why_n);
uint64_t ghost_looks(void);

#endif
