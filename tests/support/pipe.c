#include "support/pipe.h"

#include <stdlib.h>

#include "base/check.h"
#include "support/real_alloc.h"

void pipe_init(struct pipe *pi)
{
    *pi = (struct pipe){NULL, 0, 0};
}

void pipe_close(struct pipe *pi)
{
    free(pi->p);
    pipe_init(pi);
}

uint8_t *pipe_grow(struct pipe *pi, size_t n)
{
    if (pi->n + n > pi->cap) {
        pi->cap = pi->n + n > 2 * pi->cap ? pi->n + n : 2 * pi->cap;
        pi->p = __real_realloc(pi->p, pi->cap);
        CHECK(pi->p != NULL);
    }
    pi->n += n;
    return pi->p + pi->n - n;
}

void pipe_put(struct pipe *pi, const void *p, size_t n)
{
    if (n > 0)
        memcpy(pipe_grow(pi, n), p, n);
}

void pipe_drop(struct pipe *pi, size_t n)
{
    CHECK(n <= pi->n);
    if (n == 0)
        return;
    pi->n -= n;
    memmove(pi->p, pi->p + n, pi->n);
}
