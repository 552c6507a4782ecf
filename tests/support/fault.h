/* Fails the Nth allocation: link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc (all unit
 * tests are). Idiom:
 *
 *   for (long n = 1; fault_alloc_arm(n, false), ok = workload(), fault_alloc_hit(); n++) { ... }
 */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

#include <stdbool.h>

/* The nth allocation from now fails; if persistent, all after it too. */
void fault_alloc_arm(long nth, bool persistent);
/* Disarms; true if the fault was reached. */
bool fault_alloc_hit(void);

#endif
