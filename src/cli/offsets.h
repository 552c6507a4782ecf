/* Offsets by time, and the places that positions mean. */
#ifndef CLI_OFFSETS_H
#define CLI_OFFSETS_H

#include "cli/leaders.h"
#include "cli/position.h"

#define OFFSETS_LATEST (-1)
#define OFFSETS_EARLIEST (-2)

struct offset_item {
    struct leader_item at;
    int64_t time;   /* milliseconds, or one of the above */
    int64_t offset; /* -1: no record is that young */
};

/* committed: the latest is where the first open transaction begins. As leaders_ask. */
int offsets_ask(struct client *c, struct offset_item *v, size_t n, bool committed);

/* A partition, its bounds, and the offset that a position means in it. */
struct place {
    struct str topic;
    int32_t partition;
    int16_t error; /* then the rest says nothing */
    int64_t start, end, offset;
};

/* offset is as it was written for POSITION_OFFSET, within the bounds else. CLI_FAILED: told. */
int offsets_resolve(struct client *c, struct position position, struct place *v, size_t n,
                    bool committed);

#endif
