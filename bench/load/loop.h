/* The load itself: connections, requests in a closed or an open loop, what is counted of them. */
#ifndef LOAD_LOOP_H
#define LOAD_LOOP_H

#include "load/histogram.h"
#include "load/options.h"

/* What was counted. */
struct result {
    uint64_t requests; /* answered */
    uint64_t bytes;    /* of record batches in them */
    double seconds;
    double broker_cpu_seconds; /* 0 without a pid */
    double own_cpu_seconds;
    struct histogram latency;
};

/* False, with a line on stderr, when anything at all went wrong: a rate of errors is no rate. */
bool load_run(const struct options *o, struct result *out);

#endif
