/* Random bytes from the kernel, good enough for keys. */
#ifndef OS_RANDOM_H
#define OS_RANDOM_H

#include <stddef.h>

void os_random(void *p, size_t n);

#endif
