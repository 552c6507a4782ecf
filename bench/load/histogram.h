/* Latencies in buckets whose width grows with the value: at most 1.6 % wrong, from 1 ns to hours.
 */
#ifndef LOAD_HISTOGRAM_H
#define LOAD_HISTOGRAM_H

#include "base/types.h"

#define HISTOGRAM_SUB_BITS 6 /* buckets per power of two */
#define HISTOGRAM_N ((65 - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS)

struct histogram {
    uint64_t n;
    uint64_t max_ns;
    uint64_t counts[HISTOGRAM_N];
};

void histogram_add(struct histogram *h, int64_t ns);
/* The value that this share (0 to 1) of all is not above; 0 without values. */
double histogram_at_us(const struct histogram *h, double share);

#endif
