#include "load/histogram.h"

#define SUB (1u << HISTOGRAM_SUB_BITS)

/* Values below SUB have a bucket each; above, the highest bits after the first one tell it. */
static size_t bucket(uint64_t v)
{
    if (v < SUB)
        return v;
    unsigned shift = 63 - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(v);
    return ((size_t)(shift + 1) << HISTOGRAM_SUB_BITS) + (v >> shift) - SUB;
}

/* The middle of a bucket. */
static double value(size_t i)
{
    if (i < SUB)
        return (double)i;
    unsigned shift = (unsigned)(i >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t low = (uint64_t)(SUB + (i & (SUB - 1))) << shift;
    return (double)low + (double)(1ull << shift) / 2;
}

void histogram_add(struct histogram *h, int64_t ns)
{
    uint64_t v = ns < 0 ? 0 : (uint64_t)ns;
    h->n++;
    h->counts[bucket(v)]++;
    if (v > h->max_ns)
        h->max_ns = v;
}

double histogram_at_us(const struct histogram *h, double share)
{
    uint64_t want = (uint64_t)(share * (double)h->n), seen = 0;
    for (size_t i = 0; i < HISTOGRAM_N; i++) {
        seen += h->counts[i];
        if (h->counts[i] > 0 && seen >= want)
            return value(i) / 1000;
    }
    return 0;
}
