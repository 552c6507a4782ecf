/* Formatting a log directory, as Kafka's storage tool does: the ids of the node in meta.properties
 * and, for a controller, the 0-0 snapshot with the feature levels of a fresh cluster. By `dohle
 * format`, and by a node that finds its directory empty. Runs where files are (a job, a command).
 */
#ifndef NODE_FORMAT_H
#define NODE_FORMAT_H

#include "log/checkpoint.h"
#include "quorum/raft.h"

enum node_format_kind {
    FORMAT_STANDALONE, /* a controller that is the sole voter; others may join */
    FORMAT_VOTERS,     /* a controller, one of `voters` or an observer beside them */
    FORMAT_NO_VOTERS,  /* a controller that learns the voters from others */
    FORMAT_STATIC,     /* a controller whose voters are controller.quorum.voters */
    FORMAT_BROKER,     /* no controller */
};

struct node_format {
    const char *log_dir; /* must exist */
    enum node_format_kind kind;
    struct meta_properties meta;
    struct raft_endpoint endpoint;  /* FORMAT_STANDALONE: ours */
    const struct voter_set *voters; /* FORMAT_VOTERS */
    const int16_t *levels;          /* in feature_ranges order; NULL: those of a fresh 4.4 */
    struct now now;
};

#define NODE_METADATA_DIR "__cluster_metadata-0"

/* Is it what a directory may have that is not formatted yet: a lock, temporary files, the metadata
 * log of a formatting that was interrupted? */
bool node_format_expects(const char *name, bool is_dir);
/* meta.properties gets its name last: a directory without it is none. What an interrupted
 * formatting left is removed first. ERR_BUSY: the directory holds something else; nothing was
 * changed. */
MUST_USE enum err node_format_write(struct disk *d, const struct node_format *f);

#endif
