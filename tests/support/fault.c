/* The linker sends every malloc, calloc and realloc of our own objects here. The counter is per
 * thread, so that a test with workers sees faults only where it asked for them. */
#include "support/fault.h"

#include "support/real_alloc.h"

static _Thread_local long until; /* allocations until the fault; 0: disarmed */
static _Thread_local bool persists, hit;

void fault_alloc_arm(long nth, bool persistent)
{
    until = nth;
    persists = persistent;
    hit = false;
}

bool fault_alloc_hit(void)
{
    until = 0;
    return hit;
}

static bool fails(void)
{
    if (until == 0)
        return false;
    if (until > 1) {
        until--;
        return false;
    }
    hit = true;
    if (!persists)
        until = 0;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}
