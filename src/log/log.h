/* One partition's log in Kafka's own files. It has three ends (docs/ARCHITECTURE.md):
 *
 *     staged_end >= end >= flushed_end
 *
 * Staging assigns offsets and leader epochs, producer checks see it. `end` (LEO) is what has been
 * written; readers see it. flushed_end is what a sync has covered. All functions run on the owner's
 * thread and never wait for the device; loading, creating the directory, syncing, snapshots and
 * deletes are jobs. Callbacks come from a job's done() or a timer, never from inside a call.
 *
 * Order on disk: partition.metadata (synced) before the first byte; data, epoch entries and
 * producer snapshot before the recovery point passes them. */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "base/arena.h"
#include "base/budget.h"
#include "base/env.h"
#include "base/timer.h"
#include "log/epoch_cache.h"
#include "wire/batch.h"

struct log;

/* Topic keys that a log itself honours; sizes in bytes, times in ms. */
struct log_config {
    int32_t segment_bytes;
    int64_t segment_ms;
    int64_t segment_jitter_ms;
    int32_t segment_index_bytes;
    int32_t index_interval_bytes;
    int64_t flush_messages; /* INT64_MAX: never */
    int64_t flush_ms;       /* INT64_MAX: never */
    bool preallocate;
    bool compacted;
    int64_t max_compaction_lag_ms;
    int64_t producer_id_expiration_ms;
};

/* Broken promises and progress, told to the owner. */
struct log_events {
    void *ctx;
    /* The directory exists now, or flushed_end rose, or a cold read came in: settle again. */
    void (*progress)(void *ctx, struct log *l);
    /* A write, sync or roll failed for good (not ENOSPC): the log directory is to go offline. The
     * log refuses everything but log_close with ERR_OFFLINE from now on. */
    void (*failed)(void *ctx, struct log *l, enum err e, const char *what);
};

/* Makes the directories of new logs, those that wait together by one job. One of a log directory,
 * embedded in its owner; outlives its logs. */
struct log_maker {
    struct env *env;
    struct list waiting;
    struct log_making {
        struct job job;
        struct log_maker *maker;
        struct list makes; /* empty: no job under way */
    } making[2];
};
void log_maker_init(struct log_maker *m, struct env *env);

/* What staging needs memory for, shared by the logs of an owner, which outlives them. */
struct log_stages {
    struct stage *spare;
    size_t spare_n;
};
void log_stages_init(struct log_stages *ss);
void log_stages_close(struct log_stages *ss);

struct log_args {
    struct env *env;
    struct timers *timers;
    struct log_maker *maker;   /* of log_new; NULL where the directory is there */
    struct budget *budget;     /* charged for staging and state; or NULL */
    struct log_stages *stages; /* NULL: the log has its own */
    const char *dir;           /* the partition's directory, ".../topic-0"; copied */
    struct uuid topic_id;
    struct log_config config;
    struct log_events events;
    struct now now;
};

/* ------------------------------------------------------------------ opening */

/* A log without a directory, empty at offset 0. The directory is made by a job at the first write.
 */
MUST_USE enum err log_new(const struct log_args *args, struct log **out);

/* Between the two a log without a directory makes none, as if that took so long: log_write answers
 * ERR_AGAIN. For one whose name is not free on disk yet. Whoever releases it writes it. */
void log_hold_dir(struct log *l);
void log_release_dir(struct log *l); /* nothing, when it is not held */

/* What the checkpoint files of the log directory say of this log. */
struct log_checkpoints {
    bool clean;             /* the clean-shutdown marker was there */
    int64_t recovery_point; /* 0 when unknown */
    int64_t log_start;      /* -1 when unknown: the first segment's base */
};

struct log_loaded; /* result of the worker */

/* Loads or recovers (Kafka's recovery: see log.md 8 and replication rules of the epoch cache) a
 * directory on a worker. Embedded in its owner. The directory's own name must be durable: after an
 * unclean stop whoever lists the log directory syncs it, once for all logs. */
struct log_load {
    struct job job;
    struct log_args args; /* dir must stay until done */
    struct log_checkpoints checkpoints;
    void (*done)(struct log_load *ll);
    /* On the worker, with every control batch that is recovered, in order, whole but those over
     * 256 kB; NULL: not asked for. */
    void (*control)(struct log_load *ll, const struct batch *b);
    /* results, valid in done() */
    enum err err;
    char message[256];        /* names the file and what to do, when err is set */
    struct uuid topic_id;     /* of partition.metadata; zero when there is none */
    uint64_t recovered_bytes; /* scanned */
    uint64_t truncated_bytes; /* cut from a torn tail */
    struct log_loaded *loaded;
};

/* Submits the job. args.topic_id zero: take the one on disk; else a different one on disk is
 * ERR_INVALID. */
void log_load_start(struct log_load *ll);
/* Consumes ll->loaded. */
MUST_USE enum err log_open(struct log_load *ll, struct log **out);
/* Frees what log_open did not take. */
void log_load_close(struct log_load *ll);

/* Runs the same loading in the caller's thread, for jobs of others (the metadata log). */
void log_load_run(struct log_load *ll, struct disk *d);

/* ------------------------------------------------------------------ ends and facts */

int64_t log_start_offset(const struct log *l);
/* Where it begins by its files alone, those included that are being removed: a start above it must
 * stand in the checkpoint of log starts. */
int64_t log_files_start(const struct log *l);
int64_t log_staged_end(const struct log *l);
int64_t log_end_offset(const struct log *l);
int64_t log_flushed_end(const struct log *l);
int64_t log_recovery_point(const struct log *l);
uint64_t log_size_bytes(const struct log *l); /* sum of .log sizes */
int32_t log_segments_n(const struct log *l);
struct uuid log_topic_id(const struct log *l);
const char *log_dir(const struct log *l);
bool log_is_offline(const struct log *l);
/* Staged bytes that log_write would write. */
bool log_dirty(const struct log *l);
/* The staged end as the promises count it: end, or flushed_end where flush_messages asks. */
int64_t log_promised_end(const struct log *l);
/* New values rule from the next append on; when to flush, for what is written already too. */
void log_set_config(struct log *l, const struct log_config *config);

/* What it knows of a producer. */
struct log_producer {
    int64_t producer_id;
    int16_t epoch;
    int32_t last_sequence; /* of the epoch; -1: no batch of it */
    int64_t last_timestamp;
    int32_t coordinator_epoch; /* -1: no transaction marker */
    int64_t txn_first_offset;  /* of the open transaction; -1 */
};
size_t log_producers_n(const struct log *l);
/* The ith, by producer id. */
struct log_producer log_producer_at(const struct log *l, size_t i);

/* ------------------------------------------------------------------ append */

struct log_staged {
    int64_t base_offset, last_offset;
    bool duplicate; /* an idempotent retry: nothing staged, the offsets of the first time */
    int64_t duplicate_max_timestamp;
    int16_t kafka_error; /* with ERR_INVALID: what the producer's state refuses (45, 47, 48) */
};

enum log_origin {
    LOG_CLIENT,      /* producer checks apply (transactions.md 2) */
    LOG_COORDINATOR, /* epochs are checked, sequences are not; raft's own batches */
};

/* As leader: sets base offset and leader epoch in the batch and stages it. Batches under
 * LIMIT_STAGE_COPY_BYTES are copied; larger ones must stay unchanged until `end` passes them or the
 * stage is cut. A full stage is written first, with log_write's errors (then all that was staged is
 * cut). ERR_INVALID with kafka_error, ERR_OFFLINE, ERR_NOMEM: this one is not staged. */
MUST_USE enum err log_stage_leader(struct log *l, uint8_t *p, const struct batch *facts,
                                   int32_t leader_epoch, enum log_origin origin, struct now now,
                                   struct log_staged *out);

/* As follower: all whole batches in `in`, offsets as they are. Framing, CRC, offsets that rise and
 * start at >= staged end, epochs <= max_epoch: the first batch of a later epoch ends the append
 * without an error. p must stay as above. *appended_bytes may be less than in.n. ERR_CORRUPT:
 * nothing of it is staged; others as log_stage_leader. */
MUST_USE enum err log_stage_follower(struct log *l, struct bytes in, int32_t max_epoch,
                                     struct now now, size_t *appended_bytes);

/* One write of all that is staged; end := staged_end. ERR_NOSPC, or ERR_NOMEM, ERR_NFILE, ERR_EXIST
 * (a directory of that name belongs to another topic) on the way: the staged part is cut, its
 * producer state and epoch entries undone, as if it had never been (staged_end := end); where a
 * segment ended in between, what came before it may be written. ERR_AGAIN: the directory is being
 * made, or a truncation synced (events.progress follows), or the directory is held. ERR_IO: cut too
 * and offline, events.failed was scheduled. Starts a flush where flush_messages asks for it. */
MUST_USE enum err log_write(struct log *l, struct now now);

/* Ask that flushed_end reaches upto. One sync is in flight per log; all that was written meanwhile
 * shares the next. */
void log_flush(struct log *l, int64_t upto);

/* A new segment at end, if the active one is not empty. */
MUST_USE enum err log_roll(struct log *l, struct now now);

/* ------------------------------------------------------------------ read */

/* A run of whole batches inside one segment (its end may cut the last batch, as Kafka's). */
struct log_span {
    struct file *f; /* not counted for the caller: file_ref to keep it */
    uint32_t generation;
    uint64_t position;
    uint32_t n; /* 0: nothing below the limit */
    uint32_t first_batch_bytes;
    int64_t segment_base;
};

/* From the batch that contains offset; no byte at or past limit (an offset <= end on a batch
 * boundary or inside a batch: then that batch is left out). At most max_bytes, or the first batch
 * whole when min_one. ERR_RANGE: offset < start or > end. ERR_AGAIN: the index or header needed is
 * not in the page cache; events.progress follows when it was read ahead. */
MUST_USE enum err log_read(struct log *l, int64_t offset, int64_t limit, uint32_t max_bytes,
                           bool min_one, struct log_span *out);
/* Copies a span (or its first n bytes) into p. */
MUST_USE enum err log_span_read(const struct log_span *s, void *p, size_t n);

/* Where transactions leave readers: min of hw and the first offset of an open transaction, or of
 * one whose marker is not below hw. */
int64_t log_last_stable_offset(struct log *l, int64_t hw);

struct log_aborted {
    int64_t producer_id, first_offset;
};
/* Aborted transactions that a read_committed reader of [offset, span) must skip; Kafka's rule with
 * the offset index as upper bound (log.md 5, point 6). Array in a. */
MUST_USE enum err log_aborted_in(struct log *l, int64_t offset, const struct log_span *span,
                                 struct arena *a, struct log_aborted **out, int32_t *n);

/* Search by time, on a worker. */
enum log_lookup_kind { LOOKUP_TIME, LOOKUP_MAX_TIMESTAMP };

struct log_lookup {
    struct job job;
    enum log_lookup_kind kind;
    int64_t timestamp;
    void (*done)(struct log_lookup *lk);
    void *impl; /* the worker's own copy of what it needs */
    /* results; offset -1 when nothing was found */
    enum err err;
    int64_t offset, found_timestamp;
    int32_t leader_epoch;
};
/* Earliest record with timestamp >= lk->timestamp and offset >= log start (Kafka: only the first
 * segment whose largest timestamp reaches it), or the first record with the largest timestamp. */
MUST_USE enum err log_lookup_start(struct log *l, struct log_lookup *lk);

/* ------------------------------------------------------------------ epochs, truncation */

/* Kafka's LeaderEpochFileCache.assign; persisted by the next flush. */
MUST_USE enum err log_assign_epoch(struct log *l, int32_t epoch, int64_t start_offset);
const struct epoch_cache *log_epochs(const struct log *l);
/* endOffsetFor(q): with the log end for the latest epoch. (-1, -1) when undefined. */
void log_end_offset_for_epoch(const struct log *l, int32_t epoch, int32_t *out_epoch,
                              int64_t *out_offset);

/* Cuts to offset x (batch boundary at or below x). x >= end still trims the epoch cache. What is
 * staged is cut too. Rebuilds producer state; the recovery point follows. Until the cut is on disk
 * log_write answers ERR_AGAIN. Any failure on the way: offline, ERR_IO. */
MUST_USE enum err log_truncate_to(struct log *l, int64_t x, struct now now);
/* Drops everything; empty at x. */
MUST_USE enum err log_reset(struct log *l, int64_t x, struct now now);
/* Raises the log start (DeleteRecords, a leader's log start). Kafka: epoch truncStart, producer
 * state kept. */
MUST_USE enum err log_raise_start(struct log *l, int64_t x);
/* Removes synced segments that lie wholly below the log start (the first rule of Kafka's
 * retention); the files go by a job, events.progress follows. Open slices keep theirs. ERR_NOMEM,
 * ERR_OFFLINE: nothing done. */
MUST_USE enum err log_drop_old_segments(struct log *l);

/* ------------------------------------------------------------------ closing */

struct log_close {
    struct job job;
    bool clean;   /* flush, snapshot, trim, epoch file; else just forget */
    bool delete_; /* rename to <topic>-<p>.<32 hex>-delete; clean is ignored */
    void (*done)(struct log_close *lc);
    void *impl;
    enum err err; /* of a clean close: the marker must not be written */
    /* of delete_: the directory's new path, for the owner to remove and free; NULL: it has none */
    char *renamed;
};
/* The log is gone for the caller at once; open slices keep their files. done() comes when the
 * worker is through, after any job of this log still in flight. Until then the directory is this
 * log's: a new one of the same name gets ERR_EXIST from log_write. */
void log_close_start(struct log *l, struct log_close *lc);
/* Frees a log where it stands, as the death of its process does. No job of it may be under way. */
void log_drop(struct log *l);

#endif
