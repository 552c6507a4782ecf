#include "quorum/voter_history.h"

#include <stdlib.h>

#include "base/check.h"

void voter_history_init(struct voter_history *h)
{
    *h = (struct voter_history){.v = NULL};
}

void voter_history_close(struct voter_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->v[i].voters);
    free(h->v);
    voter_history_init(h);
}

static enum err reserve(struct voter_history *h)
{
    if (h->n < h->cap)
        return ERR_NONE;
    const size_t cap = h->cap == 0 ? 4 : 2 * h->cap;
    struct voter_change *v = realloc(h->v, cap * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    h->v = v;
    h->cap = cap;
    return ERR_NONE;
}

enum err voter_history_add(struct voter_history *h, int64_t offset, int16_t kraft_version,
                           const struct voter_set *voters)
{
    CHECK(h->n == 0 || h->v[h->n - 1].offset <= offset);
    enum err e = reserve(h);
    struct voter *copy = e == ERR_NONE ? calloc((size_t)voters->n + 1, sizeof *copy) : NULL;
    if (copy == NULL)
        return ERR_NOMEM;
    memcpy(copy, voters->v, (size_t)voters->n * sizeof *copy);
    (void)voter_history_truncate(h, offset);
    h->v[h->n++] = (struct voter_change){offset, kraft_version, copy, voters->n};
    return ERR_NONE;
}

bool voter_history_truncate(struct voter_history *h, int64_t x)
{
    const size_t before = h->n;
    while (h->n > 0 && h->v[h->n - 1].offset >= x)
        free(h->v[--h->n].voters);
    return h->n < before;
}

void voter_history_trim(struct voter_history *h, int64_t x)
{
    size_t drop = 0;
    while (drop + 1 < h->n && h->v[drop + 1].offset < x)
        free(h->v[drop++].voters);
    if (drop == 0)
        return;
    h->n -= drop;
    memmove(h->v, h->v + drop, h->n * sizeof *h->v);
}

bool voter_history_at(const struct voter_history *h, int64_t x, int16_t *kraft_version,
                      struct voter_set *voters)
{
    size_t i = h->n;
    while (i > 0 && h->v[i - 1].offset >= x)
        i--;
    if (i == 0)
        return false;
    const struct voter_change *c = &h->v[i - 1];
    *kraft_version = c->kraft_version;
    voters->n = c->n;
    memcpy(voters->v, c->voters, (size_t)c->n * sizeof *c->voters);
    return true;
}
