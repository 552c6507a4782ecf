/* What a process allocates, so that a simulated kill can take it all back: between heap_enter and
 * heap_leave every allocation is noted, heap_kill frees what is left of them. */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include "base/types.h"

void __real_free(void *p);

void heap_enter(void);
void heap_leave(void);
/* Frees everything the process still holds. */
void heap_kill(void);
size_t heap_live_n(void); /* allocations not freed */

#endif
