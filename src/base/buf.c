#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CAP_MIN 64

void buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void buf_close(struct buf *b)
{
    free(b->p);
    buf_init(b);
}

enum err buf_reserve(struct buf *b, size_t n)
{
    if (n <= b->cap - b->n)
        return ERR_NONE;
    if (n > SIZE_MAX / 2 - b->n)
        return ERR_NOMEM;
    size_t cap = b->cap < CAP_MIN ? CAP_MIN : b->cap * 2;
    if (cap < b->n + n)
        cap = b->n + n;
    uint8_t *p = realloc(b->p, cap);
    if (p == NULL)
        return ERR_NOMEM;
    b->p = p;
    b->cap = cap;
    return ERR_NONE;
}

enum err buf_append(struct buf *b, const void *p, size_t n)
{
    enum err err = buf_reserve(b, n);
    if (err != ERR_NONE || n == 0)
        return err;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return ERR_NONE;
}

enum err buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return ERR_INVALID;
    enum err err = buf_reserve(b, (size_t)n + 1);
    if (err != ERR_NONE)
        return err;
    va_start(ap, fmt);
    vsnprintf((char *)b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
    return ERR_NONE;
}
