/* Small value types that every folder shares. */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* A string slice, not zero-terminated. n < 0 is Kafka's null. The bytes belong to someone else. */
struct str {
    const char *p;
    int32_t n;
};

/* A byte slice; n < 0 is null. */
struct bytes {
    const uint8_t *p;
    int32_t n;
};

/* 16 bytes, big endian as on the wire. All zero is Kafka's "none". */
struct uuid {
    uint8_t b[16];
};

#define STR_NULL ((struct str){NULL, -1})
#define STR_LIT(s) ((struct str){(s), (int32_t)(sizeof(s) - 1)})
#define BYTES_NULL ((struct bytes){NULL, -1})
#define ARRAY_N(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline struct str str_of(const char *s)
{
    return (struct str){s, s == NULL ? -1 : (int32_t)strlen(s)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

static inline bool uuid_eq(struct uuid a, struct uuid b)
{
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

static inline bool uuid_is_zero(struct uuid a)
{
    return uuid_eq(a, (struct uuid){{0}});
}

#define UUID_TEXT_N 22 /* base64url without padding, as Kafka prints it */

/* out gets UUID_TEXT_N characters and a zero. */
void uuid_print(struct uuid id, char out[UUID_TEXT_N + 1]);
/* False if s is not 22 base64url characters. */
bool uuid_parse(struct str s, struct uuid *out);

/* Order as memcmp, shorter first. */
int str_cmp(struct str a, struct str b);

#endif
