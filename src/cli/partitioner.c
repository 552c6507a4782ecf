#include "cli/partitioner.h"

enum { SHIFT = 24 };

#define SEED 0x9747b28cu
#define FACTOR 0x5bd1e995u

static uint32_t word(const uint8_t *p, size_t n)
{
    uint32_t w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint32_t)p[i] << (8 * i);
    return w;
}

uint32_t partitioner_hash(struct bytes key)
{
    const size_t n = key.n < 0 ? 0 : (size_t)key.n;
    uint32_t h = SEED ^ (uint32_t)n;
    size_t pos = 0;
    for (; n - pos >= 4; pos += 4) {
        uint32_t k = word(key.p + pos, 4) * FACTOR;
        k = (k ^ k >> SHIFT) * FACTOR;
        h = h * FACTOR ^ k;
    }
    if (pos < n)
        h = (h ^ word(key.p + pos, n - pos)) * FACTOR;
    h = (h ^ h >> 13) * FACTOR;
    return h ^ h >> 15;
}

int32_t partitioner_choose(struct bytes key, int32_t n)
{
    return (int32_t)((partitioner_hash(key) & 0x7fffffff) % (uint32_t)n);
}
