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

const struct feature_range *feature_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_N(ranges); i++)
        if (str_eq(str_of(ranges[i].name), name))
            return &ranges[i];
    return NULL;
}

bool features_records_changed(int16_t metadata_version)
{
    static const int16_t changed[] = {7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33};
    for (size_t i = 0; i < ARRAY_N(changed); i++)
        if (changed[i] == metadata_version)
            return true;
    return false;
}
