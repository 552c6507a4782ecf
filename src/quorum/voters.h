/* A voter set: static (kraft.version 0, directory ids zero) or dynamic (KIP-853). */
#ifndef QUORUM_VOTERS_H
#define QUORUM_VOTERS_H

#include "base/err.h"
#include "base/types.h"

#define VOTERS_MAX 64

struct voter {
    int32_t id;
    struct uuid directory_id; /* zero: matches any */
    char listener[64];        /* name of the controller listener; "" when unknown */
    char host[256];
    uint16_t port;
    int16_t kraft_min, kraft_max;
};

struct voter_set {
    struct voter v[VOTERS_MAX];
    int32_t n;
};

/* "1@host:9093,2@[::1]:9094"; ERR_INVALID. */
MUST_USE enum err voter_set_parse(struct str s, struct voter_set *out);
/* Takes the endpoint. False, and nothing changed: a name is null or too long. */
bool voter_reached_at(struct voter *v, struct str listener, struct str host, uint16_t port);
/* NULL when (id, directory) is not a voter: an entry without directory matches any. */
const struct voter *voter_set_find(const struct voter_set *s, int32_t id, struct uuid directory_id);

#endif
