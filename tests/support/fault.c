/* The linker sends every malloc, calloc, realloc and strdup of our own objects here. The counter is
 * per thread, so that a test with workers sees faults only where it asked for them. */
#include "support/fault.h"

#include <limits.h>
#include <string.h>

#include "support/real_alloc.h"

static _Thread_local long until; /* allocations until the fault; 0: disarmed */
static _Thread_local long left;  /* that fail once it is reached */
static _Thread_local bool hit, paused;

void fault_alloc_arm_some(long nth, long count)
{
    until = nth;
    left = count;
    hit = false;
}

void fault_alloc_arm(long nth, bool persistent)
{
    fault_alloc_arm_some(nth, persistent ? LONG_MAX : 1);
}

bool fault_alloc_hit(void)
{
    until = 0;
    paused = false;
    return hit;
}

void fault_alloc_pause(void)
{
    paused = true;
}

void fault_alloc_resume(void)
{
    paused = false;
}

static bool fails(void)
{
    if (until == 0 || paused)
        return false;
    if (until > 1) {
        until--;
        return false;
    }
    hit = true;
    if (--left == 0)
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

char *__wrap_strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = __wrap_malloc(n);
    return p == NULL ? NULL : memcpy(p, s, n);
}
