/* A count of bytes that may be in use. Claimed sizes are charged here before memory is taken for
 * them (law 5). A child's charge is charged to its parent too, all or nothing. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include "base/types.h"

struct budget {
    struct budget *parent; /* or NULL */
    uint64_t limit_bytes;
    uint64_t used_bytes;
    uint64_t peak_bytes;
};

void budget_init(struct budget *b, struct budget *parent, uint64_t limit_bytes);
/* False, and nothing charged, if n bytes do not fit here or in a parent. b may be NULL: true. */
bool budget_take(struct budget *b, uint64_t n);
void budget_give(struct budget *b, uint64_t n);

#endif
