/* What goes wrong in a cluster, by its seed: nodes die, lose power, are stopped and go on, are cut
 * off and lose connections; clocks jump; disks are slow, full, failing, or taken away. Nothing that
 * was promised may be lost by it: see ghost_loss.c. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "fleet.h"

struct fault_plan {
    unsigned per_100000; /* steps */
    bool synced;         /* log.flush.interval.messages=1: power may be lost at any time */
    bool losses;         /* a disk is emptied now and then, or loses what was not synced */
    bool disks;          /* that are slow, full, failing */
    int32_t min_isr;
};

struct faults {
    struct fleet *f;
    struct fault_plan plan;
    int32_t loser;   /* a node that may lack what it had; -1 */
    int32_t to_wipe; /* it is down, and comes back without its disk; -1 */
};

void faults_begin(struct faults *fs, struct fleet *f, const struct fault_plan *plan);
/* A step: perhaps one fault; what is down comes back, sooner or later. */
void faults_step(struct faults *fs);
/* No more of them: all is mended; whoever is down, or goes down yet, starts. */
void faults_end(struct faults *fs);
void faults_start_all(struct faults *fs);

#endif
