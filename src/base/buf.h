/* A growable byte buffer with one owner. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/err.h"
#include "base/types.h"

struct buf {
    uint8_t *p;
    size_t n, cap;
};

void buf_init(struct buf *b);
void buf_close(struct buf *b);
/* Room for n more bytes behind b->n. */
MUST_USE enum err buf_reserve(struct buf *b, size_t n);
MUST_USE enum err buf_append(struct buf *b, const void *p, size_t n);
__attribute__((format(printf, 2, 3))) MUST_USE enum err buf_printf(struct buf *b, const char *fmt,
                                                                   ...);

#endif
