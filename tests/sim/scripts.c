#include "scripts.h"

#include "base/types.h"

const struct script scripts[] = {
    {"s1", script_s1},   {"s1-offline", script_s1_offline},
    {"s2", script_s2},   {"s2-waits", script_s2_waits},
    {"s5", script_s5},   {"s7", script_s7},
    {"s13", script_s13}, {"s14", script_s14},
    {"s15", script_s15}, {"s16", script_s16},
    {"s17", script_s17}, {"s19", script_s19},
    {"s24", script_s24}, {"s25", script_s25},
    {"s28", script_s28}, {"s32", script_s32},
    {"k2", script_k2},   {"k4", script_k4},
    {"k5", script_k5},   {"k6", script_k6},
    {"k10", script_k10},
};

const size_t scripts_n = ARRAY_N(scripts);
