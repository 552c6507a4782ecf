/* What a process allocates, so that a simulated kill can take it all back: between heap_enter and
 * heap_leave every allocation is noted in the process's heap, heap_kill frees what is left in it.
 * Memory is freed inside its own heap, or outside of all. */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include "base/types.h"

void __real_free(void *p);

/* Open addressing, a power of two. Zeroed at first. */
struct heap {
    struct heap *next; /* of all that have noted something */
    void **slots;
    size_t capacity, live_n, used_n; /* used: live and tombstones */
};

void heap_enter(struct heap *h);
void heap_leave(struct heap *h);
/* Frees everything the process still holds. */
void heap_kill(struct heap *h);
void heap_close(struct heap *h);

#endif
