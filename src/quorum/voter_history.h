/* The voter sets of a log by the offsets of their records (KIP-853): the newest rules at once, and
 * is undone when its record is cut off. */
#ifndef QUORUM_VOTER_HISTORY_H
#define QUORUM_VOTER_HISTORY_H

#include "quorum/voters.h"

struct voter_change {
    int64_t offset; /* of its batch; -1: not of the log (configured, formatted) */
    int16_t kraft_version;
    struct voter *voters; /* owned */
    int32_t n;
};

struct voter_history {
    struct voter_change *v; /* by offset, rising */
    size_t n, cap;
};

void voter_history_init(struct voter_history *h);
void voter_history_close(struct voter_history *h);
/* offset is not below the last one's; at the same offset it replaces that. ERR_NOMEM: nothing done.
 */
MUST_USE enum err voter_history_add(struct voter_history *h, int64_t offset, int16_t kraft_version,
                                    const struct voter_set *voters);
/* Forgets those at x and behind it; true if there were any. */
bool voter_history_truncate(struct voter_history *h, int64_t x);
/* Forgets those that no state at x or later needs. */
void voter_history_trim(struct voter_history *h, int64_t x);
/* What ruled the state before offset x; false: nothing was known. */
bool voter_history_at(const struct voter_history *h, int64_t x, int16_t *kraft_version,
                      struct voter_set *voters);

#endif
