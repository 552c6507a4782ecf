/* A seed's run: the plan it draws, the faults, the workload, what must hold at the end. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "base/types.h"

struct run_totals {
    uint64_t seeds, steps, acked, checked, crashes, faults;
    int64_t simulated_us;
};

/* One node; `trace` of it. A violation ends the process. */
void run_single(uint64_t seed, struct run_totals *t, uint64_t *trace);
/* Three nodes or so, all of them broker and controller. */
void run_cluster(uint64_t seed, struct run_totals *t, uint64_t *trace);

#endif
