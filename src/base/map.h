/* Hash map from bytes to pointers: seeded hash (SipHash-like, seed from env random), iteration in
 * insertion order so that nothing depends on hash order, out of memory is an error. The only
 * includer of uthash. Keys are copied; values belong to the caller. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/err.h"
#include "base/types.h"

struct map_entry;

struct map {
    struct map_entry *head;
    uint64_t seed;
    size_t n;
};

void map_init(struct map *m, uint64_t seed);
/* Frees entries, not values. */
void map_close(struct map *m);
void *map_get(const struct map *m, const void *key, size_t key_n);
/* Replaces the value of an existing key. value must not be NULL. */
MUST_USE enum err map_put(struct map *m, const void *key, size_t key_n, void *value);
/* The removed value, or NULL. */
void *map_remove(struct map *m, const void *key, size_t key_n);
/* Insertion order. NULL starts; NULL at the end. The returned entry may be removed by its key
 * only after the next call. */
struct map_entry *map_next(const struct map *m, const struct map_entry *e);
void *map_value(const struct map_entry *e);
const void *map_key(const struct map_entry *e, size_t *key_n);

static inline void *map_get_str(const struct map *m, struct str s)
{
    return map_get(m, s.p, s.n < 0 ? 0 : (size_t)s.n);
}

#endif
