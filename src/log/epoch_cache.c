#include "log/epoch_cache.h"

#include <stdlib.h>
#include <string.h>

void epoch_cache_init(struct epoch_cache *c)
{
    *c = (struct epoch_cache){NULL, 0, 0};
}

void epoch_cache_close(struct epoch_cache *c)
{
    free(c->v);
    epoch_cache_init(c);
}

static enum err reserve(struct epoch_cache *c, size_t n)
{
    if (n <= c->cap)
        return ERR_NONE;
    size_t cap = n + n / 2;
    struct epoch_entry *v = realloc(c->v, cap * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    c->v = v;
    c->cap = cap;
    return ERR_NONE;
}

enum err epoch_cache_copy(const struct epoch_cache *c, struct epoch_cache *out)
{
    epoch_cache_init(out);
    enum err err = reserve(out, c->n + 1);
    if (err != ERR_NONE)
        return err;
    if (c->n > 0)
        memcpy(out->v, c->v, c->n * sizeof *c->v);
    out->n = c->n;
    return ERR_NONE;
}

enum err epoch_cache_assign(struct epoch_cache *c, int32_t epoch, int64_t start, bool *changed)
{
    if (changed != NULL)
        *changed = false;
    if (c->n > 0 && c->v[c->n - 1].epoch == epoch && c->v[c->n - 1].start_offset <= start)
        return ERR_NONE;
    size_t keep = c->n;
    while (keep > 0 && (c->v[keep - 1].epoch >= epoch || c->v[keep - 1].start_offset >= start))
        keep--;
    enum err err = reserve(c, keep + 1);
    if (err != ERR_NONE)
        return err;
    c->v[keep] = (struct epoch_entry){epoch, start};
    c->n = keep + 1;
    if (changed != NULL)
        *changed = true;
    return ERR_NONE;
}

bool epoch_cache_truncate_end(struct epoch_cache *c, int64_t x)
{
    size_t n = c->n;
    while (c->n > 0 && c->v[c->n - 1].start_offset >= x)
        c->n--;
    return c->n != n;
}

bool epoch_cache_truncate_start(struct epoch_cache *c, int64_t x)
{
    size_t drop = 0;
    while (drop < c->n && c->v[drop].start_offset <= x)
        drop++;
    if (drop == 0 || (drop == 1 && c->v[0].start_offset == x))
        return false;
    /* The last dropped epoch goes on at x. */
    c->v[drop - 1].start_offset = x;
    memmove(c->v, c->v + drop - 1, (c->n - drop + 1) * sizeof *c->v);
    c->n -= drop - 1;
    return true;
}

int32_t epoch_cache_latest(const struct epoch_cache *c)
{
    return c->n == 0 ? -1 : c->v[c->n - 1].epoch;
}

int32_t epoch_cache_floor(const struct epoch_cache *c, int64_t offset)
{
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->v[mid].start_offset <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == 0 ? -1 : c->v[lo - 1].epoch;
}

void epoch_cache_end_offset(const struct epoch_cache *c, int32_t q, int64_t log_end, int32_t *epoch,
                            int64_t *offset)
{
    *epoch = -1;
    *offset = -1;
    if (q == -1 || c->n == 0 || q > c->v[c->n - 1].epoch)
        return;
    size_t above = c->n; /* first entry with a larger epoch */
    while (above > 0 && c->v[above - 1].epoch > q)
        above--;
    *epoch = above == 0 ? q : c->v[above - 1].epoch;
    *offset = above == c->n ? log_end : c->v[above].start_offset;
}
