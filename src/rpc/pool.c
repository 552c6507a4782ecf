/* Free buffers form a stack: the one used last is the one whose pages the caches still hold. A few
 * are kept; more go back to the system. */
#include "rpc/pool.h"

#include <stdlib.h>

#include "base/check.h"

enum { KEEP_FREE = 4 };

void pool_init(struct pool *p, struct budget *budget)
{
    *p = (struct pool){.budget = budget};
}

static void buf_free(struct pool_buf *b)
{
    budget_give(b->budget, b->cap);
    free(b->data);
    free(b);
}

void pool_close(struct pool *p)
{
    while (p->free != NULL) {
        struct pool_buf *b = p->free;
        p->free = b->next;
        buf_free(b);
    }
    p->free_n = 0;
}

struct pool_buf *pool_get_exact(struct pool *p, struct budget *budget, size_t n)
{
    if (!budget_take(budget, n))
        return NULL;
    struct pool_buf *b = malloc(sizeof *b);
    uint8_t *data = malloc(n);
    if (b == NULL || data == NULL) {
        free(b);
        free(data);
        budget_give(budget, n);
        return NULL;
    }
    *b = (struct pool_buf){.pool = p, .budget = budget, .refs = 1, .cap = n, .data = data};
    return b;
}

struct pool_buf *pool_get(struct pool *p)
{
    struct pool_buf *b = p->free;
    if (b == NULL)
        return pool_get_exact(p, p->budget, POOL_BUF_BYTES);
    p->free = b->next;
    p->free_n--;
    b->refs = 1;
    return b;
}

void pool_unref(struct pool_buf *b)
{
    if (b == NULL)
        return;
    CHECK(b->refs > 0);
    if (--b->refs > 0)
        return;
    struct pool *p = b->pool;
    if (b->cap != POOL_BUF_BYTES || b->budget != p->budget || p->free_n >= KEEP_FREE) {
        buf_free(b);
        return;
    }
    b->next = p->free;
    p->free = b;
    p->free_n++;
}
