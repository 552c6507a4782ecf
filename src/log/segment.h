/* One segment: a .log file and its three indexes, and the rules that say when an index entry is due
 * and when the next segment begins (Kafka: LogSegment, "Roll", "Entries"). Internal to log. */
#ifndef LOG_SEGMENT_H
#define LOG_SEGMENT_H

#include "log/entry_file.h"
#include "log/log.h"
#include "log/path.h"

#define OFFSET_ENTRY_BYTES 8
#define TIME_ENTRY_BYTES 12
#define TXN_ENTRY_BYTES 34

/* What decides about rolls and index entries. A value: staging goes ahead on a copy. */
struct segment_head {
    int64_t base_offset;
    uint64_t size_bytes;
    int64_t max_timestamp;        /* -1: no batch has one */
    int64_t max_timestamp_offset; /* last offset of the first batch that reached it */
    int64_t first_timestamp;      /* max timestamp of the first batch */
    int64_t created_ms;
    int64_t jitter_ms;
    uint64_t bytes_since_index;
    uint32_t index_n, time_n; /* entries */
    int64_t time_last;        /* timestamp of the last .timeindex entry; -1 */
};

enum segment_index { INDEX_OFFSET, INDEX_TIME, INDEX_TXN, INDEX_N };

struct segment {
    struct segment_head head;
    struct file *log; /* NULL until needed */
    bool created;     /* the .log file exists */
    bool unsynced;    /* rolled, and no sync job has covered its files yet */
    struct entry_file index[INDEX_N];
};

struct offset_entry_pos { /* an entry of .index */
    int64_t offset;
    uint64_t position;
};
struct time_entry {
    int64_t timestamp, offset;
};
/* An aborted transaction: an entry of .txnindex. last_offset is the marker's. */
struct aborted_txn {
    int64_t producer_id, first_offset, last_offset, last_stable_offset;
};

/* Where a log's files are, for functions that may open them. */
struct segment_dir {
    struct vfs *fs;
    const char *dir;
    bool now; /* searches: ERR_AGAIN instead of a wait for the device */
};

/* ------------------------------------------------------------------ head */

void segment_head_init(struct segment_head *h, int64_t base_offset, int64_t now_ms,
                       int64_t jitter_ms);
/* What one batch adds: whether .index gets (its last offset, its position), and .timeindex the
 * largest timestamp so far. */
struct segment_step {
    bool index, time;
    uint64_t position;
    struct time_entry time_entry;
};
struct segment_step segment_head_add(struct segment_head *h, const struct log_config *c,
                                     int64_t last_offset, int64_t max_timestamp,
                                     uint32_t size_bytes);
/* True if a batch of these facts goes into a new segment. An empty one is never left. */
bool segment_head_full(const struct segment_head *h, const struct log_config *c,
                       int64_t last_offset, int64_t max_timestamp, uint32_t size_bytes,
                       int64_t now_ms);
/* True if last_offset cannot be told relative to the base. */
bool segment_head_overflows(const struct segment_head *h, int64_t last_offset);

/* ------------------------------------------------------------------ files */

MUST_USE enum err segment_new(int64_t base_offset, struct segment **out);
void segment_free(struct segment *s);
/* Opens the .log (creating it, empty, when !s->created). */
MUST_USE enum err segment_open(struct segment *s, struct segment_dir at);
/* Opens an index that has entries in its file. */
MUST_USE enum err segment_open_index(struct segment *s, struct segment_dir at,
                                     enum segment_index which);
/* Lets go of the files (one vfs's), keeps counts and entries: the segment goes to another thread.
 */
void segment_release(struct segment *s);
/* Removes all files of a base offset, the .log last: an index alone is never taken for a segment.
 * Missing ones do not matter. */
MUST_USE enum err segment_unlink(struct segment_dir at, int64_t base_offset);
/* One file of that name; none is as good. */
MUST_USE enum err segment_unlink_file(struct segment_dir at, int64_t base_offset,
                                      const char *suffix);
/* On a worker. */
MUST_USE enum err segment_sync_file(struct disk *d, const char *dir, int64_t base_offset,
                                    const char *suffix);

/* Room for what n batches may add to .index and .timeindex. */
MUST_USE enum err segment_reserve(struct segment *s, uint32_t n);
/* Pushes what a step asks for; reserved before. */
void segment_push(struct segment *s, const struct segment_step *step, int64_t last_offset);
/* The last .timeindex entry of a segment that is left, or closed: the largest timestamp. */
MUST_USE enum err segment_force_time(struct segment *s);
/* Writes the indexes that have more than min_bytes in memory; with 0 all, and .index and .timeindex
 * even when they are empty. */
MUST_USE enum err segment_write_indexes(struct segment *s, struct segment_dir at,
                                        uint32_t min_bytes);

/* ------------------------------------------------------------------ indexes */

MUST_USE enum err segment_index_get(struct segment *s, struct segment_dir at, uint32_t i,
                                    struct offset_entry_pos *out);
MUST_USE enum err segment_time_get(struct segment *s, struct segment_dir at, uint32_t i,
                                   struct time_entry *out);
MUST_USE enum err segment_txn_get(struct segment *s, struct segment_dir at, uint32_t i,
                                  struct aborted_txn *out);
void segment_txn_encode(const struct aborted_txn *t, uint8_t out[TXN_ENTRY_BYTES]);
/* The first .txnindex entry whose marker is at or behind offset: their number without one. */
MUST_USE enum err segment_txn_first(struct segment *s, struct segment_dir at, int64_t offset,
                                    uint32_t *i);
/* Largest entry <= offset: where to begin a scan for it. Position 0 without one. */
MUST_USE enum err segment_floor(struct segment *s, struct segment_dir at, int64_t offset,
                                uint64_t *position);
/* The offset of the largest .timeindex entry <= timestamp; the base offset without one. */
MUST_USE enum err segment_time_floor(struct segment *s, struct segment_dir at, int64_t timestamp,
                                     int64_t *offset);
/* Smallest .index entry at position >= from: its offset; *found false without one. */
MUST_USE enum err segment_index_after(struct segment *s, struct segment_dir at, uint64_t from,
                                      int64_t *offset, bool *found);
/* Cuts the indexes to entries below offset x. */
MUST_USE enum err segment_truncate_indexes(struct segment *s, struct segment_dir at, int64_t x);

#endif
