/* The file quorum-state: epoch, leader and vote of this node, one line of JSON (Kafka's
 * QuorumStateData). data_version is the current kraft.version; version 0 also lists the voters. */
#ifndef QUORUM_QUORUM_STATE_H
#define QUORUM_QUORUM_STATE_H

#include "base/env.h"
#include "quorum/voters.h"

struct quorum_state {
    int16_t data_version;
    int32_t leader_id; /* -1: unknown */
    int32_t epoch;
    int32_t voted_id; /* -1: nobody */
    struct uuid voted_directory_id;
    int32_t voters[VOTERS_MAX]; /* ids; version 0 */
    int32_t voters_n;
};

/* ERR_NOENT: no file. ERR_CORRUPT, ERR_UNSUPPORTED (another data_version). */
MUST_USE enum err quorum_state_read(struct vfs *fs, const char *dir, struct quorum_state *out);
MUST_USE enum err quorum_state_write(struct disk *d, const char *dir, const struct quorum_state *s);

#endif
