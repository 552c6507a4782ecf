/* Control records of the metadata log and its snapshots (KIP-595, KIP-630, KIP-853): key int16
 * version 0 and int16 type, value the record at version 0, whose first field is its version. */
#ifndef QUORUM_CONTROL_H
#define QUORUM_CONTROL_H

#include "quorum/voters.h"
#include "wire/batch.h"
#include "wire/messages.h"

enum control_type {
    CONTROL_LEADER_CHANGE = 2,
    CONTROL_SNAPSHOT_HEADER = 3,
    CONTROL_SNAPSHOT_FOOTER = 4,
    CONTROL_KRAFT_VERSION = 5,
    CONTROL_VOTERS = 6,
};

/* A batch of the metadata log or a snapshot: no producer, no compression; BATCH_CONTROL or 0. */
MUST_USE enum err control_begin_batch(int64_t base_offset, int32_t leader_epoch, int16_t attributes,
                                      struct batch_builder **out);
/* Adds one control record to a batch that is being built. */
MUST_USE enum err control_add(struct batch_builder *bb, int64_t timestamp, enum control_type type,
                              const struct wire_message *m, const void *record);
MUST_USE enum err control_add_voters(struct batch_builder *bb, int64_t timestamp,
                                     const struct voter_set *voters);
MUST_USE enum err control_add_kraft_version(struct batch_builder *bb, int64_t timestamp,
                                            int16_t version);

/* Types of the first and last record of a control batch. ERR_CORRUPT: none, or no control batch. */
MUST_USE enum err control_types(const struct batch *b, int *first, int *last);

/* The voters that an epoch's first record names, whatever their directories; *n -1: b has none.
 * ERR_CORRUPT: too many, or no record. */
MUST_USE enum err control_read_leader_change(const struct batch *b, int32_t ids[VOTERS_MAX],
                                             int32_t *n);

/* What a control batch says of the voters. Untouched outputs mean: nothing. ERR_CORRUPT. */
MUST_USE enum err control_read(const struct batch *b, int16_t *kraft_version,
                               struct voter_set *voters, bool *has_voters);

#endif
