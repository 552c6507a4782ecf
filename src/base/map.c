/* uthash with our own hash: SipHash-1-3 under the map's seed, so that a peer who picks the keys
 * cannot pick the collisions. uthash threads its entries in insertion order, which is the order of
 * map_next. The by-hash-value macros are used because uthash's hash hook sees no seed. */
#include "base/map.h"

#include <stdlib.h>

#include "base/check.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(entry) ((entry)->refused = true)
#include <uthash.h>

/* Every entry of a chain that is passed is a cache miss where there are thousands. With six there
 * are about as many buckets as entries; with uthash's ten a quarter of that. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 6U

struct map_entry {
    UT_hash_handle hh;
    void *value;
    size_t key_n;
    bool refused; /* uthash had no memory for it */
    uint8_t key[];
};

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static unsigned hash(uint64_t seed, const void *key, size_t n)
{
    const uint8_t *p = key;
    uint64_t k1 = rotl(seed, 32) ^ 0x9e3779b97f4a7c15u;
    uint64_t v[4] = {seed ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                     seed ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)n << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    uint64_t h = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (unsigned)(h ^ h >> 32);
}

void map_init(struct map *m, uint64_t seed)
{
    *m = (struct map){.seed = seed};
}

void map_close(struct map *m)
{
    struct map_entry *e = m->head;
    /* The table goes first: its memory hangs on the first entry. */
    HASH_CLEAR(hh, m->head);
    while (e != NULL) {
        struct map_entry *next = e->hh.next;
        free(e);
        e = next;
    }
    m->n = 0;
}

static struct map_entry *find(const struct map *m, unsigned hashv, const void *key, size_t key_n)
{
    struct map_entry *e;
    const void *bytes = key_n == 0 ? "" : key; /* memcmp takes no NULL */
    HASH_FIND_BYHASHVALUE(hh, m->head, bytes, key_n, hashv, e);
    return e;
}

void *map_get(const struct map *m, const void *key, size_t key_n)
{
    if (m->head == NULL)
        return NULL;
    struct map_entry *e = find(m, hash(m->seed, key, key_n), key, key_n);
    return e == NULL ? NULL : e->value;
}

enum err map_put(struct map *m, const void *key, size_t key_n, void *value)
{
    CHECK(value != NULL);
    unsigned hashv = hash(m->seed, key, key_n);
    struct map_entry *e = find(m, hashv, key, key_n);
    if (e != NULL) {
        e->value = value;
        return ERR_NONE;
    }
    e = malloc(sizeof *e + key_n);
    if (e == NULL)
        return ERR_NOMEM;
    *e = (struct map_entry){.value = value, .key_n = key_n};
    if (key_n > 0)
        memcpy(e->key, key, key_n);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, m->head, e->key, key_n, hashv, e);
    if (e->refused) {
        free(e);
        return ERR_NOMEM;
    }
    m->n++;
    return ERR_NONE;
}

void *map_remove(struct map *m, const void *key, size_t key_n)
{
    if (m->head == NULL)
        return NULL;
    struct map_entry *e = find(m, hash(m->seed, key, key_n), key, key_n);
    if (e == NULL)
        return NULL;
    void *value = e->value;
    HASH_DELETE(hh, m->head, e);
    free(e);
    m->n--;
    return value;
}

struct map_entry *map_next(const struct map *m, const struct map_entry *e)
{
    return e == NULL ? m->head : e->hh.next;
}

void *map_value(const struct map_entry *e)
{
    return e->value;
}

const void *map_key(const struct map_entry *e, size_t *key_n)
{
    *key_n = e->key_n;
    return e->key;
}
