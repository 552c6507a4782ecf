#include "core/controller/partition_set.h"

#include <stdlib.h>

struct bits {
    int32_t n;     /* set */
    int32_t words; /* room */
    uint64_t word[];
};

void partition_set_init(struct partition_set *s, uint64_t seed)
{
    map_init(&s->topics, seed);
    s->n = 0;
}

void partition_set_close(struct partition_set *s)
{
    const struct map_entry *e = NULL;
    while ((e = map_next(&s->topics, e)) != NULL)
        free(map_value(e));
    map_close(&s->topics);
    s->n = 0;
}

static struct bits *find(const struct partition_set *s, struct uuid topic_id)
{
    return map_get(&s->topics, topic_id.b, sizeof topic_id.b);
}

static bool is_set(const struct bits *b, int32_t index)
{
    return b != NULL && index >= 0 && index / 64 < b->words &&
           (b->word[index / 64] >> (index % 64) & 1) != 0;
}

bool partition_set_has(const struct partition_set *s, struct uuid topic_id, int32_t index)
{
    return is_set(find(s, topic_id), index);
}

/* Room for index; NULL when out of memory. */
static struct bits *reach(struct partition_set *s, struct uuid topic_id, int32_t index)
{
    struct bits *old = find(s, topic_id);
    if (old != NULL && index / 64 < old->words)
        return old;
    const int32_t had = old == NULL ? 0 : old->words;
    const int32_t words = 2 * had > index / 64 ? 2 * had : index / 64 + 1;
    struct bits *b = calloc(1, sizeof *b + (size_t)words * sizeof b->word[0]);
    if (b == NULL)
        return NULL;
    b->words = words;
    if (old != NULL) {
        b->n = old->n;
        memcpy(b->word, old->word, (size_t)had * sizeof b->word[0]);
    }
    if (map_put(&s->topics, topic_id.b, sizeof topic_id.b, b) != ERR_NONE) {
        free(b);
        return NULL;
    }
    free(old);
    return b;
}

enum err partition_set_add(struct partition_set *s, struct uuid topic_id, int32_t index)
{
    struct bits *b = reach(s, topic_id, index);
    if (b == NULL)
        return ERR_NOMEM;
    if (!is_set(b, index)) {
        b->word[index / 64] |= (uint64_t)1 << (index % 64);
        b->n++;
        s->n++;
    }
    return ERR_NONE;
}

void partition_set_remove(struct partition_set *s, struct uuid topic_id, int32_t index)
{
    struct bits *b = find(s, topic_id);
    if (!is_set(b, index))
        return;
    b->word[index / 64] &= ~((uint64_t)1 << (index % 64));
    b->n--;
    s->n--;
    if (b->n == 0)
        free(map_remove(&s->topics, topic_id.b, sizeof topic_id.b));
}

int32_t partition_set_of(const struct partition_set *s, struct uuid topic_id)
{
    const struct bits *b = find(s, topic_id);
    return b == NULL ? 0 : b->n;
}

/* First bit from `from` on; -1: none. */
static int32_t next_bit(const struct bits *b, int32_t from)
{
    for (int32_t w = from / 64; w < b->words; w++) {
        uint64_t left = b->word[w];
        if (w == from / 64)
            left &= ~(uint64_t)0 << (from % 64);
        if (left != 0)
            return w * 64 + __builtin_ctzll(left);
    }
    return -1;
}

bool partition_set_next(const struct partition_set *s, struct partition_at *at)
{
    int32_t index = at->topic == NULL ? -1 : next_bit(map_value(at->topic), at->index + 1);
    if (index < 0) {
        size_t n;
        at->topic = map_next(&s->topics, at->topic);
        if (at->topic == NULL)
            return false;
        memcpy(at->topic_id.b, map_key(at->topic, &n), sizeof at->topic_id.b);
        index = next_bit(map_value(at->topic), 0);
    }
    at->index = index;
    return true;
}
