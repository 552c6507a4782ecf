/* Both clocks, read once per turn. */
#ifndef OS_CLOCKS_H
#define OS_CLOCKS_H

#include "base/env.h"

struct now os_now(void);

#endif
