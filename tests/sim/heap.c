/* The live allocations of the process in an open-addressed table of pointers. Memory that memfs and
 * the simulator take for themselves (real_alloc.h, or outside heap_enter) is not in it. */
#include "heap.h"

#include <stdlib.h>

#include "base/check.h"
#include "support/real_alloc.h"

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t k, size_t n);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static void **slots;                    /* capacity a power of two */
static size_t capacity, live_n, used_n; /* used: live and tombstones */
static bool entered;
static char tombstone;

static size_t slot_of(const void *p)
{
    return (size_t)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u) & (capacity - 1);
}

static void put(void *p)
{
    size_t i = slot_of(p);
    while (slots[i] != NULL && slots[i] != (void *)&tombstone)
        i = (i + 1) & (capacity - 1);
    used_n += slots[i] == NULL;
    slots[i] = p;
    live_n++;
}

static void grow(void)
{
    void **old = slots;
    const size_t old_capacity = capacity;
    capacity = live_n * 4 < 1024 ? 1024 : old_capacity * (live_n * 4 > old_capacity ? 2 : 1);
    slots = __real_calloc(capacity, sizeof *slots);
    CHECK(slots != NULL);
    live_n = used_n = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i] != NULL && old[i] != (void *)&tombstone)
            put(old[i]);
    __real_free(old);
}

static void *note(void *p)
{
    if (!entered || p == NULL)
        return p;
    if ((used_n + 1) * 2 > capacity)
        grow();
    put(p);
    return p;
}

static bool forget(void *p)
{
    if (capacity == 0)
        return false;
    for (size_t i = slot_of(p); slots[i] != NULL; i = (i + 1) & (capacity - 1)) {
        if (slots[i] == p) {
            slots[i] = &tombstone;
            live_n--;
            return true;
        }
    }
    return false;
}

void *__wrap_malloc(size_t n)
{
    return note(__real_malloc(n));
}

void *__wrap_calloc(size_t k, size_t n)
{
    return note(__real_calloc(k, n));
}

void *__wrap_realloc(void *p, size_t n)
{
    const bool was_noted = p != NULL && forget(p);
    void *q = __real_realloc(p, n);
    CHECK(q != NULL); /* the simulator injects no allocation faults */
    return p == NULL || was_noted ? note(q) : q;
}

void __wrap_free(void *p)
{
    if (p != NULL)
        forget(p);
    __real_free(p);
}

char *__wrap_strndup(const char *s, size_t n)
{
    n = strnlen(s, n);
    char *p = __wrap_malloc(n + 1);
    CHECK(p != NULL);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *__wrap_strdup(const char *s)
{
    return __wrap_strndup(s, strlen(s));
}

void heap_enter(void)
{
    CHECK(!entered);
    entered = true;
}

void heap_leave(void)
{
    CHECK(entered);
    entered = false;
}

void heap_kill(void)
{
    CHECK(!entered);
    for (size_t i = 0; i < capacity; i++) {
        if (slots[i] != NULL && slots[i] != (void *)&tombstone)
            __real_free(slots[i]);
        slots[i] = NULL;
    }
    live_n = used_n = 0;
}

size_t heap_live_n(void)
{
    return live_n;
}
