/* Fails the Nth allocation: link with -Wl,--wrap=malloc,... (all unit tests are; CMakeLists.txt).
 * Idiom:
 *
 *   for (long n = 1; fault_alloc_arm(n, false), ok = workload(), fault_alloc_hit(); n++) { ... }
 */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

#include <stdbool.h>

/* The nth allocation from now fails; if persistent, all after it too. */
void fault_alloc_arm(long nth, bool persistent);
/* The nth from now, and of those behind it as many as make count. */
void fault_alloc_arm_some(long nth, long count);
/* Between these nothing fails and nothing counts: what a test allocates for itself in the midst of
 * what it tests. */
void fault_alloc_pause(void);
void fault_alloc_resume(void);
/* Disarms; true if the fault was reached. */
bool fault_alloc_hit(void);

#endif
