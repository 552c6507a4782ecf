#include "core/metadata/delta.h"

#include <stdlib.h>

#include "core/metadata/image_impl.h"

void image_delta_init(struct image_delta *d)
{
    *d = (struct image_delta){0};
}

void image_delta_close(struct image_delta *d)
{
    for (size_t i = 0; i < d->deleted_n; i++)
        free(d->deleted[i].name);
    for (size_t i = 0; i < d->configs_n; i++)
        free(d->configs[i].name);
    free(d->partitions);
    free(d->deleted);
    free(d->configs);
    image_delta_init(d);
}

/* Room for one more of size bytes in *v; false when out of memory. */
static bool grow(void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    void *old;
    memcpy(&old, v, sizeof old);
    const size_t wider = *cap == 0 ? 8 : *cap * 2;
    void *p = realloc(old, wider * size);
    if (p == NULL)
        return false;
    memcpy(v, &p, sizeof p);
    *cap = wider;
    return true;
}

enum err image_delta_add_partition(struct image_delta *d, struct uuid topic_id, int32_t index)
{
    if (!grow(&d->partitions, d->partitions_n, &d->partitions_cap, sizeof *d->partitions))
        return ERR_NOMEM;
    d->partitions[d->partitions_n++] = (struct delta_partition){topic_id, index};
    return ERR_NONE;
}

enum err image_delta_add_deleted(struct image_delta *d, struct uuid id, const char *name,
                                 int32_t partitions_n)
{
    if (!grow(&d->deleted, d->deleted_n, &d->deleted_cap, sizeof *d->deleted))
        return ERR_NOMEM;
    char *copy = image_text(str_of(name));
    if (copy == NULL)
        return ERR_NOMEM;
    d->deleted[d->deleted_n++] = (struct delta_topic){id, copy, partitions_n};
    return ERR_NONE;
}

enum err image_delta_add_config(struct image_delta *d, int8_t resource_type, const char *name)
{
    /* The keys of one resource come together. */
    if (d->configs_n > 0 && d->configs[d->configs_n - 1].resource_type == resource_type &&
        strcmp(d->configs[d->configs_n - 1].name, name) == 0)
        return ERR_NONE;
    if (!grow(&d->configs, d->configs_n, &d->configs_cap, sizeof *d->configs))
        return ERR_NOMEM;
    char *copy = image_text(str_of(name));
    if (copy == NULL)
        return ERR_NOMEM;
    d->configs[d->configs_n++] = (struct delta_config){resource_type, copy};
    return ERR_NONE;
}
