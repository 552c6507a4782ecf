/* Bytes on their way in one direction. Their memory counts neither for fault.h nor for the
 * simulator's heap: what went over a wire belongs to no process. */
#ifndef SUPPORT_PIPE_H
#define SUPPORT_PIPE_H

#include "base/types.h"

struct pipe {
    uint8_t *p;
    size_t n, cap;
};

void pipe_init(struct pipe *pi);
void pipe_close(struct pipe *pi);
/* n more bytes, to be filled by the caller. */
uint8_t *pipe_grow(struct pipe *pi, size_t n);
void pipe_put(struct pipe *pi, const void *p, size_t n);
/* The first n are taken away. */
void pipe_drop(struct pipe *pi, size_t n);

#endif
