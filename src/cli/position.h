/* A place in a partition, as users write it: earliest, latest, OFFSET, -N (N before the end), @TIME
 * (the first record not older), where TIME is what text_time takes, or "@-1h" (text_duration before
 * now). */
#ifndef CLI_POSITION_H
#define CLI_POSITION_H

#include "base/types.h"

enum position_kind {
    POSITION_EARLIEST,
    POSITION_LATEST,
    POSITION_OFFSET,
    POSITION_TAIL, /* value before the end, and not before the start */
    POSITION_TIME, /* value in milliseconds */
};

struct position {
    enum position_kind kind;
    int64_t value;
};

#define POSITION_FORMS "earliest, latest, OFFSET, -N or @TIME"

bool position_parse(const char *text, int64_t now_ms, struct position *out);

#endif
