/* The allocator behind the fault injection of fault.h, for the test support itself: what it needs
 * is not the workload's. Memory is freed by free(). The wrappers are named by the linker. */
#ifndef SUPPORT_REAL_ALLOC_H
#define SUPPORT_REAL_ALLOC_H

#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

#endif
