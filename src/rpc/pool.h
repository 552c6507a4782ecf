/* Large receive buffers, reused last in first out so that their pages stay warm (fresh pages cost
 * three times the CPU), counted by those who use bytes in them. Under load as many are kept as the
 * last second needed, an idle pool is back at a few a second or two later. */
#ifndef RPC_POOL_H
#define RPC_POOL_H

#include "base/budget.h"
#include "base/timer.h"
#include "base/types.h"

#define POOL_BUF_BYTES                                                                             \
    ((1u << 20) + (64u << 10)) /* a 1 MB record set, its request and what follows */

struct pool;

struct pool_buf {
    struct pool *pool;
    struct pool_buf *next; /* while free */
    struct budget *budget; /* what it is charged to */
    uint32_t refs;
    size_t cap;
    uint8_t *data;
};

struct pool {
    struct pool_buf *free;
    uint32_t free_n;
    uint32_t unused_n; /* the fewest that were free since the timer was armed */
    struct budget *budget;
    struct timers *timers;
    const struct now *now;
    struct timer trim; /* armed while more are free than an idle pool keeps */
};

/* now is its owner's, of the current turn. */
void pool_init(struct pool *p, struct budget *budget, struct timers *timers, const struct now *now);
void pool_close(struct pool *p);
/* A warm buffer of POOL_BUF_BYTES with one reference; NULL when the budget or malloc refuses. */
struct pool_buf *pool_get(struct pool *p);
/* A buffer of exactly n bytes, charged to `budget`, freed with its last reference. */
struct pool_buf *pool_get_exact(struct pool *p, struct budget *budget, size_t n);
static inline struct pool_buf *pool_ref(struct pool_buf *b)
{
    b->refs++;
    return b;
}
void pool_unref(struct pool_buf *b);

#endif
