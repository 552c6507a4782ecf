#include "core/metadata/features.h"

static const struct feature_range ranges[] = {
    {"metadata.version", 7, 33, 33},  {"eligible.leader.replicas.version", 0, 1, 1},
    {"group.version", 0, 1, 1},       {"kraft.version", 0, 1, 0},
    {"share.version", 0, 2, 2},       {"streams.version", 0, 1, 1},
    {"transaction.version", 0, 2, 2},
};

const struct feature_range *feature_ranges(size_t *n)
{
    *n = ARRAY_N(ranges);
    return ranges;
}
