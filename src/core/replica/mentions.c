#include "core/replica/mentions.h"

#include <stdlib.h>

static int compare_partitions(const struct mention *x, const struct mention *y)
{
    int order = memcmp(x->topic_id.b, y->topic_id.b, sizeof x->topic_id.b);
    if (order == 0)
        order = str_cmp(x->topic, y->topic);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static int compare(const void *a, const void *b)
{
    const struct mention *x = *(struct mention *const *)a;
    const struct mention *y = *(struct mention *const *)b;
    const int order = compare_partitions(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static int compare_places(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    const int order = compare_partitions(x, y);
    return order != 0 ? order : (x->last > y->last) - (x->last < y->last);
}

size_t mentions_merge(struct mention *v, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        v[i].last = i;
    if (n > 0)
        qsort(v, n, sizeof *v, compare_places);
    for (size_t i = 0; i < n; i++) {
        const bool repeats = kept > 0 && compare_partitions(&v[kept - 1], &v[i]) == 0;
        v[repeats ? kept - 1 : kept] = v[i];
        kept += !repeats;
    }
    return kept;
}

enum err mentions_find(struct mention *v, size_t n, struct arena *a)
{
    struct mention **sorted = arena_array(a, n, sizeof(struct mention *));
    if (sorted == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &v[i];
    qsort(sorted, n, sizeof(struct mention *), compare);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_partitions(sorted[i], sorted[end]) == 0;)
            end++;
        for (size_t k = i; k < end; k++) {
            sorted[k]->first = (size_t)(sorted[i] - v);
            sorted[k]->last = (size_t)(sorted[end - 1] - v);
        }
    }
    return ERR_NONE;
}
