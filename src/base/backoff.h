/* Pauses between tries that fail in a row. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/* Of the first failure first_us; doubled with each further one, doublings_max times at most. */
static inline int64_t backoff_us(int64_t first_us, uint32_t failures_before, uint32_t doublings_max)
{
    return first_us << (failures_before < doublings_max ? failures_before : doublings_max);
}

#endif
