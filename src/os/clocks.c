#include "os/clocks.h"

#include <time.h>

#include "base/check.h"

struct now os_now(void)
{
    struct timespec mono, wall;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &mono) != -1);
    CHECK(clock_gettime(CLOCK_REALTIME, &wall) != -1);
    return (struct now){
        .mono_us = (int64_t)mono.tv_sec * 1000000 + mono.tv_nsec / 1000,
        .wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000,
    };
}
