/* What librdkafka's example rdkafka_performance.c takes from its library's private headers, so that
 * Debian's copy of it builds outside that tree. rdtime.h, which it includes too, is this again. */
#ifndef BENCH_RDKAFKA_RD_H
#define BENCH_RDKAFKA_RD_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define rd_snprintf snprintf
#define RD_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RD_MAX(a, b) ((a) > (b) ? (a) : (b))

typedef int64_t rd_ts_t; /* us */

static inline rd_ts_t rd_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (rd_ts_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

#endif
