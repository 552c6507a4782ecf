/* The inside of a log, shared by the files of this folder. */
#ifndef LOG_LOG_IMPL_H
#define LOG_LOG_IMPL_H

#include "base/buf.h"
#include "log/log.h"
#include "log/producer_state.h"
#include "log/segment.h"

/* ------------------------------------------------------------------ state */

/* What loading finds and a log goes on with. */
struct log_state {
    struct segment **segments; /* by base offset; at least one, the last is active */
    size_t segments_n;
    int64_t start_offset, end_offset;
    /* All below is durable, with all that a start needs: the recovery point. */
    int64_t flushed_end;
    uint64_t size_bytes; /* of all .log files */
    struct epoch_cache epochs;
    bool epochs_dirty; /* the file does not say so yet */
    struct producer_state producers;
    size_t segments_cap;
    int64_t *snapshots; /* offsets of .snapshot files, rising */
    size_t snapshots_n, snapshots_cap;
};

void log_state_init(struct log_state *s);
void log_state_close(struct log_state *s);
MUST_USE enum err log_state_add_segment(struct log_state *s, struct segment *seg);
MUST_USE enum err log_state_add_snapshot(struct log_state *s, int64_t offset);
static inline struct segment *log_state_active(const struct log_state *s)
{
    return s->segments[s->segments_n - 1];
}
/* Index of the last segment with base <= offset; 0 if there is none. */
size_t log_state_find(const struct log_state *s, int64_t offset);
/* One batch of a producer that scan_next just gave. *aborted as producer_state_append. */
struct scan;
MUST_USE enum err log_state_replay_batch(struct log_state *s, struct scan *sc, struct batch *b,
                                         struct aborted_txn *aborted);
/* The producers as they were at offset x, a batch boundary: the newest sound snapshot with
 * start < offset <= x (unsound ones are removed), and the batches behind it (Kafka:
 * truncateAndReload, replay). */
MUST_USE enum err log_state_load_producers(struct log_state *s, struct segment_dir at, int64_t x);
MUST_USE enum err log_state_remove_snapshot(struct log_state *s, struct segment_dir at, size_t i);
/* Removes snapshots above offset x, or at and below start. */
MUST_USE enum err log_state_drop_snapshots(struct log_state *s, struct segment_dir at, int64_t x);

/* ------------------------------------------------------------------ staging */

struct staged_batch {
    int64_t base_offset, last_offset, max_timestamp;
    uint32_t size_bytes;
};

/* Neighbouring bytes; in the stage's own buffer when p is NULL. */
struct staged_piece {
    const uint8_t *p;
    size_t copy_at, n;
};

/* A segment begins with batch batch_idx. */
struct staged_roll {
    size_t batch_idx, piece_idx;
    struct segment_head head;
    struct buf snapshot; /* the producers before it */
};

struct staged_producer {
    size_t batch_idx;
    struct producer_undo undo;
    struct aborted_txn aborted; /* first_offset -1: none */
};

struct staged_epochs {
    size_t batch_idx;
    struct epoch_cache before;
};

struct stage {
    struct stage *next;       /* spare */
    struct segment_head head; /* as it will be when all is written */
    int64_t end_offset;
    uint64_t bytes;
    struct buf copy;
    uint64_t charged_bytes;
    struct staged_batch *batches;
    size_t batches_n, batches_cap;
    struct staged_piece *pieces;
    size_t pieces_n, pieces_cap;
    struct staged_roll *rolls;
    size_t rolls_n, rolls_cap;
    struct staged_producer *producers;
    size_t producers_n, producers_cap;
    struct staged_epochs *epochs;
    size_t epochs_n, epochs_cap;
    /* An epoch that was assigned while something was staged; -1: none. */
    int32_t assigned_epoch;
    int64_t assigned_start;
};

/* ------------------------------------------------------------------ log */

#define RECENT_N 16

/* A batch at the end of the active segment. */
struct recent {
    int64_t base_offset, last_offset;
    uint64_t position;
    uint32_t size_bytes;
};

/* Snapshots that the next sync job writes. */
struct pending_snapshot {
    int64_t offset;
    struct buf bytes;
};

enum log_dir_state { DIR_NONE, DIR_HELD, DIR_MAKING, DIR_READY };

struct sync;
struct read_ahead;

/* What every append looks at comes first and together: with thousands of logs each line of it is a
 * cache miss. */
struct log {
    struct env *env;
    struct budget *budget;
    struct stage *stage; /* NULL: nothing is staged */
    struct log_stages *stages;
    struct recent *recents; /* RECENT_N; NULL until the first write */
    uint32_t recents_n;     /* ever put in */
    struct now now;         /* of the last call */
    enum log_dir_state dir_state;
    bool offline;
    bool cut_unsynced; /* no write before the truncation is on disk */
    bool dropping;     /* a job removes old segments */
    int64_t flush_wanted;
    struct log_config config;
    struct log_state s;

    struct log_stages own_stages; /* unless its owner has some */
    struct timers *timers;
    struct log_maker *maker;
    char *dir;
    struct uuid topic_id;
    struct log_events events;

    enum err make_err; /* of the last attempt; told by the next log_write */
    bool names_dirty;  /* the directory has new names that no sync_dir covers */

    struct sync *sync; /* in flight, or NULL */
    struct pending_snapshot *pending;
    size_t pending_n, pending_cap;
    struct timer timer;  /* flush.ms, and another try of a sync job that had no room */
    struct timer expiry; /* producer ids */

    struct read_ahead *ahead; /* in flight, or NULL */
    /* What the last one read; not asked for again at once. */
    int64_t ahead_base;
    uint64_t ahead_from, ahead_to;

    int64_t undropped; /* base of the oldest segment that may still be on disk; -1: none */
    uint32_t cuts;     /* raised by truncation: results of jobs begun before are stale */
    struct job fail_job;
    enum err fail_err;
    const char *fail_what;

    uint32_t jobs_n; /* in flight; closing waits for them */
    struct log_close *closing;
    char *closing_dir;           /* deleted: the directory's new name */
    struct buf closing_snapshot; /* clean: the producers at the end */
};

static inline struct segment_dir log_files(const struct log *l)
{
    return (struct segment_dir){.fs = l->env->fs, .dir = l->dir};
}
static inline struct segment *log_active(const struct log *l)
{
    return log_state_active(&l->s);
}

/* log.c */
MUST_USE enum err log_alloc(const struct log_args *args, struct log **out);
void log_free(struct log *l);
void log_submit(struct log *l, struct job *j);
/* At the head of every job's done(). True if the log is closing: no events, no new work. */
bool log_job_done(struct log *l);
/* Goes offline and tells the owner from a job. */
void log_fail(struct log *l, enum err e, const char *what);
/* Errors that say nothing about the disk: the log goes on. */
bool log_err_passes(enum err e);
void log_progress(struct log *l);

/* stage.c */
struct stage *stage_new(void); /* NULL: out of memory */
void stage_free(struct stage *st);
/* Forgets what was written: all of it. */
void stage_reset(struct log *l);
/* Undoes the batches from index `from` on. */
void stage_cut(struct log *l, size_t from);

/* stages.c */
struct stage *log_stages_take(struct log_stages *ss); /* NULL: out of memory */
void log_stages_give(struct log_stages *ss, struct stage *st);

/* write.c */
/* Cuts the .log file to what counts, through another file object: slices of it stay good. */
MUST_USE enum err log_trim(struct vfs *fs, const char *dir, int64_t base_offset, uint64_t size);

/* roll.c */
MUST_USE enum err log_begin_segment(struct log *l, const struct segment_head *head,
                                    struct buf *snapshot);
void log_new_head(struct log *l, int64_t base_offset, struct segment_head *out);

/* make.c: the directory. ERR_NONE: it is there. ERR_AGAIN: it is being made, or held. Else what the
 * last attempt ended with; the next call tries again. */
MUST_USE enum err log_make_dir(struct log *l);

/* flush.c */
/* On a worker: all files of a segment that gets no more bytes, the .log cut to size, on disk. */
MUST_USE enum err log_sync_whole(struct disk *d, const char *dir, int64_t base, uint64_t size,
                                 bool txn);
/* On a worker: a producer snapshot, on disk but for its name. */
MUST_USE enum err log_write_snapshot(struct disk *d, const char *dir, int64_t offset,
                                     const struct buf *b);
void log_sync_start(struct log *l);
/* After a write: flush.messages, flush.ms, what was asked for. */
void log_after_write(struct log *l);
void log_timer_fire(struct timer *t);
void log_forget_pending(struct log *l, int64_t above);

/* read.c */
void log_recents_add(struct log *l, const struct staged_batch *b, uint64_t position);
void log_recents_clear(struct log *l);
/* Position of the first batch with last offset >= offset in a segment, and its header facts;
 * *found is false when there is none. */
MUST_USE enum err log_locate(struct log *l, struct segment *seg, int64_t offset, struct recent *out,
                             bool *found);
/* The same without ERR_AGAIN: may wait for the device. */
MUST_USE enum err log_locate_now(struct log *l, struct segment *seg, int64_t offset,
                                 struct recent *out, bool *found);

/* read_ahead.c: ERR_NONE if the range can be read now; else ERR_AGAIN, and a job reads it. suffix
 * names the file of the segment. */
MUST_USE enum err log_want_cached(struct log *l, struct file *f, int64_t base_offset,
                                  const char *suffix, uint64_t from, uint64_t n);

void log_cancel_read_ahead(struct log *l);

/* expiry.c */
void log_expiry_arm(struct log *l);
void log_expiry_fire(struct timer *t);

/* close.c */
void log_close_ready(struct log *l);

#endif
