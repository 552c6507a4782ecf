/* Memory that lives and dies together: a request's decoded message and its answer. Blocks double
 * from 1 kB up to 64 kB (larger on demand) and are charged to a budget. Zeroed on request only. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/budget.h"

struct arena_block;

struct arena {
    struct arena_block *head; /* newest first */
    struct budget *budget;    /* or NULL */
    uint8_t *pos, *end;       /* free part of head */
};

void arena_init(struct arena *a, struct budget *budget);
/* 16-byte aligned; NULL when malloc or the budget refuses. n == 0 gives a valid pointer. */
void *arena_alloc(struct arena *a, size_t n);
void *arena_zalloc(struct arena *a, size_t n);
/* NULL also when n * size overflows. Zeroed. */
void *arena_array(struct arena *a, size_t n, size_t size);
/* A copy of n bytes; NULL when out of memory. */
void *arena_memdup(struct arena *a, const void *p, size_t n);
/* A copy with a zero behind it; NULL when out of memory. */
char *arena_strdup(struct arena *a, struct str s);
/* Frees all but the first block, which is kept warm. */
void arena_reset(struct arena *a);
void arena_close(struct arena *a);

#endif
