/* Growing a typed array {v, n, cap} by one place. Internal to log. */
#ifndef LOG_ARRAY_H
#define LOG_ARRAY_H

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* v points to the array's pointer. */
MUST_USE static inline enum err array_room(void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return ERR_NONE;
    size_t grown = *cap == 0 ? 4 : 2 * *cap;
    void *old;
    memcpy(&old, v, sizeof old);
    void *p = realloc(old, grown * size);
    if (p == NULL)
        return ERR_NOMEM;
    memcpy(v, &p, sizeof p);
    *cap = grown;
    return ERR_NONE;
}

#define ARRAY_ROOM(a) array_room(&(a), a##_n, &a##_cap, sizeof *(a))

#endif
