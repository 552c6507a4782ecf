/* Free buffers form a stack: the one used last is the one whose pages the caches still hold. A few
 * are kept always, more for as long as they are used: those that nobody took for a whole period go
 * back to the system. */
#include "rpc/pool.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/env.h"

enum {
    KEEP_IDLE = 4,
    KEEP_MAX = (16 << 20) / POOL_BUF_BYTES,
    PERIOD_US = 1000000,
};

static void buf_free(struct pool_buf *b)
{
    budget_give(b->budget, b->cap);
    free(b->data);
    free(b);
}

/* The coldest ones go, at the bottom of the stack. */
static void shrink(struct pool *p, uint32_t keep_n)
{
    struct pool_buf **at = &p->free;
    for (uint32_t i = 0; i < keep_n && *at != NULL; i++)
        at = &(*at)->next;
    while (*at != NULL) {
        struct pool_buf *b = *at;
        *at = b->next;
        buf_free(b);
        p->free_n--;
    }
}

static void trim(struct timer *t)
{
    struct pool *p = CONTAINER_OF(t, struct pool, trim);
    const uint32_t used_n = p->unused_n < p->free_n ? p->free_n - p->unused_n : 0;
    shrink(p, used_n > KEEP_IDLE ? used_n : KEEP_IDLE);
    p->unused_n = p->free_n;
    if (p->free_n > KEEP_IDLE && timer_arm(p->timers, t, t->at_us + PERIOD_US) != ERR_NONE)
        shrink(p, KEEP_IDLE);
}

void pool_init(struct pool *p, struct budget *budget, struct timers *timers, const struct now *now)
{
    *p = (struct pool){.budget = budget, .timers = timers, .now = now, .trim = {.fire = trim}};
}

void pool_close(struct pool *p)
{
    timer_cancel(p->timers, &p->trim);
    shrink(p, 0);
}

/* What is kept for the load to come stands in nobody's way. */
static bool take(struct pool *p, struct budget *budget, size_t n)
{
    if (budget_take(budget, n))
        return true;
    if (p->free_n <= KEEP_IDLE)
        return false;
    shrink(p, KEEP_IDLE);
    return budget_take(budget, n);
}

struct pool_buf *pool_get_exact(struct pool *p, struct budget *budget, size_t n)
{
    if (!take(p, budget, n))
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
    if (p->free_n < p->unused_n)
        p->unused_n = p->free_n;
    b->refs = 1;
    return b;
}

/* Is one more kept? Not beyond half of what its budget has: others live on the rest. */
static bool keep(struct pool *p)
{
    if (p->free_n < KEEP_IDLE)
        return true;
    if (p->free_n >= KEEP_MAX || p->budget->used_bytes > p->budget->limit_bytes / 2)
        return false;
    if (timer_armed(&p->trim))
        return true;
    p->unused_n = p->free_n;
    return timer_arm(p->timers, &p->trim, p->now->mono_us + PERIOD_US) == ERR_NONE;
}

void pool_unref(struct pool_buf *b)
{
    if (b == NULL)
        return;
    CHECK(b->refs > 0);
    if (--b->refs > 0)
        return;
    struct pool *p = b->pool;
    if (b->cap != POOL_BUF_BYTES || b->budget != p->budget || !keep(p)) {
        buf_free(b);
        return;
    }
    b->next = p->free;
    p->free = b;
    p->free_n++;
}
