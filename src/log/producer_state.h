/* What a log knows of its producers (Kafka: ProducerStateManager): epochs, the last five batches of
 * each, open transactions. Staging applies batches before they are written; every application can
 * be undone, newest first. Internal to log. */
#ifndef LOG_PRODUCER_STATE_H
#define LOG_PRODUCER_STATE_H

#include "base/buf.h"
#include "base/limits.h"
#include "log/log.h"
#include "log/segment.h"

struct producer_batch {
    int64_t last_offset;
    int64_t timestamp; /* the batch's largest */
    int32_t last_sequence;
    int32_t offset_delta;
};

struct producer {
    int64_t producer_id;
    int64_t last_timestamp;
    int64_t txn_first_offset; /* of the open transaction; -1 */
    int64_t touched_offset;   /* last offset of the last batch or marker applied */
    int32_t coordinator_epoch;
    int16_t epoch;
    uint8_t batches_n;
    struct producer_batch batches[LIMIT_PRODUCER_BATCHES]; /* oldest first */
};

/* A transaction with data in the log, by its first offset. */
struct txn_span {
    int64_t first_offset;
    int64_t producer_id;
    int64_t marker_offset; /* -1 while it is open */
};

struct producer_state {
    struct producer **v; /* by producer id */
    size_t n, cap;
    /* Both by first offset: open ones, and ended ones whose marker no high watermark has passed. */
    struct txn_span *open, *ended;
    size_t open_n, open_cap, ended_n, ended_cap;
    struct budget *budget;
};

/* A transaction marker's record. */
struct txn_marker {
    bool abort;
    int32_t coordinator_epoch;
};

struct producer_undo {
    struct producer before;
    bool existed;
    struct txn_span opened; /* to be taken out of open; first_offset -1: none */
    struct txn_span ended;  /* to be moved back from ended to open; first_offset -1: none */
};

void producer_state_init(struct producer_state *ps, struct budget *budget);
void producer_state_close(struct producer_state *ps);
/* Charges what is there to a budget from now on. ERR_NOMEM: it refuses. */
MUST_USE enum err producer_state_charge(struct producer_state *ps, struct budget *budget);
/* Forgets all. */
void producer_state_clear(struct producer_state *ps);

struct producer *producer_state_find(const struct producer_state *ps, int64_t producer_id);
/* Loading: adds an entry as it is. ERR_CORRUPT: a second one of the id. */
MUST_USE enum err producer_state_add(struct producer_state *ps, const struct producer *p);

/* What the state says of a batch that is to be appended as leader (facts of the batch; marker NULL
 * unless it is a transaction marker). K_NONE, 45, 47, 48, 52. A batch of the last five sent again:
 * K_NONE and *duplicate. */
int16_t producer_state_check(const struct producer_state *ps, const struct batch *b,
                             const struct txn_marker *marker, enum log_origin origin,
                             const struct producer_batch **duplicate);
/* Applies a batch with a producer id at its offsets. *aborted is set (first_offset >= 0) when it
 * ends a transaction that is to be listed in .txnindex. ERR_NOMEM: nothing changed. */
MUST_USE enum err producer_state_append(struct producer_state *ps, const struct batch *b,
                                        const struct txn_marker *marker, struct producer_undo *undo,
                                        struct aborted_txn *aborted);
void producer_state_undo(struct producer_state *ps, const struct producer_undo *undo);

/* True if something was applied at or behind offset x. */
bool producer_state_touched(const struct producer_state *ps, int64_t x);
/* Drops producers without open transaction whose last batch is older than expiration_ms. */
void producer_state_expire(struct producer_state *ps, int64_t now_ms, int64_t expiration_ms);
/* Where readers of committed data stop (below hw); forgets ended transactions below hw. */
int64_t producer_state_stable(struct producer_state *ps, int64_t hw);

/* ------------------------------------------------------------------ batches and snapshots */

#define TXN_MARKER_MAX_BYTES 4096 /* of a control batch that is looked into */

/* Reads the record of a control batch that is all there; *is_marker is false for other control
 * records and for what cannot be understood. ERR_NOMEM. */
MUST_USE enum err txn_marker_read(const struct batch *b, struct txn_marker *out, bool *is_marker);

/* Kafka's .snapshot, version 1 (docs/FORMAT.md), behind what out holds. */
MUST_USE enum err producer_snapshot_encode(const struct producer_state *ps, struct buf *out);
/* Adds the entries of a snapshot taken at `offset`. ERR_CORRUPT: ps holds any part of them. */
MUST_USE enum err producer_snapshot_decode(struct bytes in, int64_t offset,
                                           struct producer_state *ps);

#endif
