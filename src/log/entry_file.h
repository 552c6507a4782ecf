/* A file of entries of one size that only grows at its end: .index, .timeindex, .txnindex (Kafka's
 * formats: docs/FORMAT.md). New entries gather in memory and reach the file in one write; a reader
 * sees both as one array. Nothing is preallocated: a reader of the file takes it to be full of
 * entries. Internal to log. */
#ifndef LOG_ENTRY_FILE_H
#define LOG_ENTRY_FILE_H

#include "base/env.h"

struct entry_file {
    struct file *f;     /* NULL until needed */
    uint32_t written_n; /* entries in the file */
    uint32_t tail_n;    /* entries in memory, behind those */
    uint32_t tail_cap;
    uint32_t found; /* where the last search ended: readers mostly go on from there */
    uint8_t entry_bytes;
    bool torn; /* a write failed: what stands behind written_n in the file is garbage */
    uint8_t *tail;
};

/* Where the file of an entry_file is; needed by whatever may open it. */
struct entry_place {
    struct vfs *fs;
    const char *path;
    bool now; /* ERR_AGAIN instead of a wait for the device; searches only */
};

void entry_file_init(struct entry_file *e, uint8_t entry_bytes, uint32_t written_n);
void entry_file_close(struct entry_file *e);

static inline uint32_t entry_file_n(const struct entry_file *e)
{
    return e->written_n + e->tail_n;
}

/* Room for n more, so that entry_file_push cannot fail. */
MUST_USE enum err entry_file_reserve(struct entry_file *e, uint32_t n);
void entry_file_push(struct entry_file *e, const void *entry);
/* Entry i into out. i < n. A file that is shorter than it was: ERR_CORRUPT. */
MUST_USE enum err entry_file_get(struct entry_file *e, struct entry_place at, uint32_t i,
                                 void *out);
/* Writes what is in memory; creates the file even if there is nothing. After an error nothing
 * counts as written. */
MUST_USE enum err entry_file_write(struct entry_file *e, struct entry_place at);
/* Keeps the first n entries. */
MUST_USE enum err entry_file_truncate(struct entry_file *e, struct entry_place at, uint32_t n);

/* *n is the number of entries for which before(entry, key) is true; they come first. Unless it is
 * 0, last is the last of them; NULL: not wanted. */
typedef bool (*entry_before)(const void *entry, int64_t key);
MUST_USE enum err entry_file_search(struct entry_file *e, struct entry_place at,
                                    entry_before before, int64_t key, uint32_t *n, void *last);

#endif
