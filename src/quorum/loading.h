/* What the worker found, between load.c and open.c. */
#ifndef QUORUM_LOADING_H
#define QUORUM_LOADING_H

#include "quorum/inside.h"

struct loading {
    bool has_state;
    struct quorum_state state;
    struct log_load log;
    struct log_voters {  /* what the log's control records say; a reset log says nothing */
        enum err err;    /* one cannot be read */
        int16_t version; /* -1: none */
        struct voter_set set;
        struct voter_history changes; /* a version without a set: the set of before */
    } log_voters;
    struct snapshot_id newest; /* offset -1: none */
    struct snapshots_kept kept;
    bool has_bootstrap;
    struct buf newest_content, bootstrap;
    struct disk *disk; /* while the worker runs */
    struct raft_load *rl;
};

struct loading *raft_loading(const struct raft_load *rl);
/* Leaves the text for the operator in rl->message; returns e. */
__attribute__((format(printf, 3, 4))) enum err raft_load_fault(struct raft_load *rl, enum err e,
                                                               const char *fmt, ...);

#endif
