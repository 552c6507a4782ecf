/* The live allocations of each process in an open-addressed table of pointers. Memory that memfs
 * and the simulator take for themselves (real_alloc.h, or outside heap_enter) is in none. */
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

static struct heap *heaps, *entered; /* entered: NULL outside */
static char tombstone;

static size_t slot_of(const struct heap *h, const void *p)
{
    return (size_t)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u) & (h->capacity - 1);
}

static void put(struct heap *h, void *p)
{
    size_t i = slot_of(h, p);
    while (h->slots[i] != NULL && h->slots[i] != (void *)&tombstone)
        i = (i + 1) & (h->capacity - 1);
    h->used_n += h->slots[i] == NULL;
    h->slots[i] = p;
    h->live_n++;
}

static void grow(struct heap *h)
{
    void **old = h->slots;
    const size_t old_capacity = h->capacity;
    if (old == NULL) {
        h->next = heaps;
        heaps = h;
    }
    h->capacity =
        h->live_n * 4 < 1024 ? 1024 : old_capacity * (h->live_n * 4 > old_capacity ? 2 : 1);
    h->slots = __real_calloc(h->capacity, sizeof *h->slots);
    CHECK(h->slots != NULL);
    h->live_n = h->used_n = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i] != NULL && old[i] != (void *)&tombstone)
            put(h, old[i]);
    __real_free(old);
}

static void *note(void *p)
{
    struct heap *h = entered;
    if (h == NULL || p == NULL)
        return p;
    if ((h->used_n + 1) * 2 > h->capacity)
        grow(h);
    put(h, p);
    return p;
}

static bool forget_in(struct heap *h, void *p)
{
    if (h->capacity == 0)
        return false;
    for (size_t i = slot_of(h, p); h->slots[i] != NULL; i = (i + 1) & (h->capacity - 1)) {
        if (h->slots[i] == p) {
            h->slots[i] = &tombstone;
            h->live_n--;
            return true;
        }
    }
    return false;
}

static bool forget(void *p)
{
    if (entered != NULL)
        return forget_in(entered, p);
    for (struct heap *h = heaps; h != NULL; h = h->next)
        if (forget_in(h, p))
            return true;
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

void heap_enter(struct heap *h)
{
    CHECK(entered == NULL);
    entered = h;
}

void heap_leave(struct heap *h)
{
    CHECK(entered == h);
    entered = NULL;
}

void heap_kill(struct heap *h)
{
    CHECK(entered == NULL);
    for (size_t i = 0; i < h->capacity; i++) {
        if (h->slots[i] != NULL && h->slots[i] != (void *)&tombstone)
            __real_free(h->slots[i]);
        h->slots[i] = NULL;
    }
    h->live_n = h->used_n = 0;
}

void heap_close(struct heap *h)
{
    heap_kill(h);
    for (struct heap **at = &heaps; *at != NULL; at = &(*at)->next) {
        if (*at == h) {
            *at = h->next;
            break;
        }
    }
    __real_free(h->slots);
    *h = (struct heap){.next = NULL};
}
