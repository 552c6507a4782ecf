/* Time, and the CPU time of processes. */
#ifndef LOAD_CLOCKS_H
#define LOAD_CLOCKS_H

#include "base/types.h"

int64_t clocks_now_ns(void);
/* User and system time of a process from /proc, in seconds; 0 for pid 0; -1 when it is gone. */
double clocks_cpu_seconds(int pid);

#endif
