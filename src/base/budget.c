#include "base/budget.h"

#include "base/check.h"

void budget_init(struct budget *b, struct budget *parent, uint64_t limit_bytes)
{
    *b = (struct budget){.parent = parent, .limit_bytes = limit_bytes};
}

bool budget_take(struct budget *b, uint64_t n)
{
    for (struct budget *i = b; i != NULL; i = i->parent) {
        /* A limit may have been lowered below what is in use. */
        if (i->used_bytes > i->limit_bytes || n > i->limit_bytes - i->used_bytes)
            return false;
    }
    for (struct budget *i = b; i != NULL; i = i->parent) {
        i->used_bytes += n;
        if (i->used_bytes > i->peak_bytes)
            i->peak_bytes = i->used_bytes;
    }
    return true;
}

void budget_give(struct budget *b, uint64_t n)
{
    for (struct budget *i = b; i != NULL; i = i->parent) {
        CHECK(i->used_bytes >= n);
        i->used_bytes -= n;
    }
}
