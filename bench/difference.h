/* Where a field stands in an encoded message: encode it with two values, and look where the bytes
 * begin to differ. */
#ifndef BENCH_DIFFERENCE_H
#define BENCH_DIFFERENCE_H

#include "base/types.h"

/* 0 when nothing differs: no field stands at the very beginning. */
static inline size_t difference(struct bytes a, struct bytes b)
{
    for (int32_t i = 0; i < a.n && i < b.n; i++) {
        if (a.p[i] != b.p[i])
            return (size_t)i;
    }
    return 0;
}

#endif
