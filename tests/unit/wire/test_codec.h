/* What the tests of the codec share. */
#ifndef TEST_CODEC_H
#define TEST_CODEC_H

#include "support/rng.h"
#include "support/test.h"
#include "wire/messages.h"

/* Bits for wire_random; ctx is a struct rng. */
static inline uint64_t bits_next(void *ctx)
{
    return rng_u64(ctx);
}

static inline struct bytes bytes_of(const struct buf *b)
{
    return (struct bytes){b->p, (int32_t)b->n};
}

static inline bool buf_eq(const struct buf *a, const struct buf *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

/* Static, as the bytes outlive the assertion that decodes them. */
#define BYTES(...)                                                                                 \
    ({                                                                                             \
        static const uint8_t bytes_[] = {__VA_ARGS__};                                             \
        (struct bytes){bytes_, sizeof bytes_};                                                     \
    })

#endif
