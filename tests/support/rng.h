/* Seeded random numbers for tests and the simulator (splitmix64): the same seed, the same run. */
#ifndef SUPPORT_RNG_H
#define SUPPORT_RNG_H

#include "base/types.h"

struct rng {
    uint64_t state; /* the seed */
};

static inline uint64_t rng_u64(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [0, n); n > 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return (uint64_t)((unsigned __int128)rng_u64(r) * n >> 64);
}

static inline bool rng_percent(struct rng *r, unsigned percent)
{
    return rng_below(r, 100) < percent;
}

static inline void rng_fill(struct rng *r, void *p, size_t n)
{
    uint8_t *bytes = p;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(rng_u64(r) >> 56);
}

#endif
