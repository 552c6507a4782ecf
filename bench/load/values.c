#include "load/values.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* As a log line or an event: names that repeat, numbers that do not. */
static void fill(char *p, size_t n, uint64_t *state)
{
    for (size_t at = 0; at < n;) {
        char field[96];
        int field_n = snprintf(field, sizeof field,
                               "{\"id\":%u,\"user\":\"u%08x\",\"amount\":%u,\"state\":\"done\"},",
                               next_random(state), next_random(state), next_random(state) % 100000);
        size_t part = n - at < (size_t)field_n ? n - at : (size_t)field_n;
        memcpy(p + at, field, part);
        at += part;
    }
}

static bool add_all(const struct options *o, char *value, struct batch_builder *builder)
{
    uint64_t state = 1;
    const int64_t now_ms = (int64_t)time(NULL) * 1000; /* retention deletes what is old */
    for (int32_t i = 0; i < o->records; i++) {
        fill(value, (size_t)o->record_bytes, &state);
        struct bytes v = {(const uint8_t *)value, o->record_bytes};
        if (batch_builder_add(builder, now_ms, BYTES_NULL, v, NULL, 0) != ERR_NONE)
            return false;
    }
    return true;
}

struct bytes values_batch(const struct options *o, struct arena *a)
{
    struct batch_builder_args args = {.leader_epoch = -1,
                                      .attributes = (int16_t)o->codec,
                                      .producer_id = -1,
                                      .producer_epoch = -1,
                                      .base_sequence = -1,
                                      .level = INT_MIN};
    struct batch_builder *builder = NULL;
    struct bytes out = BYTES_NULL, built;
    char *value = arena_alloc(a, (size_t)o->record_bytes);
    if (value != NULL && batch_builder_new(&args, &builder) == ERR_NONE &&
        add_all(o, value, builder) && batch_builder_finish(builder, &built) == ERR_NONE) {
        uint8_t *copy = arena_alloc(a, (size_t)built.n);
        if (copy != NULL) {
            memcpy(copy, built.p, (size_t)built.n);
            out = (struct bytes){copy, built.n};
        }
    }
    if (builder != NULL)
        batch_builder_free(builder);
    return out;
}
