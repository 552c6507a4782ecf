/* Loading a partition's directory: what the worker keeps while it does so. Internal to log. */
#ifndef LOG_LOAD_H
#define LOG_LOAD_H

#include "log/log_impl.h"
#include "log/scan.h"

struct log_loaded {
    struct log_state s;
};

struct loader {
    struct log_load *ll;
    struct disk *d;
    struct segment_dir at;
    struct log_state s;
    uint8_t *buf;       /* SCAN_BULK_BYTES */
    int32_t last_epoch; /* of the batches recovered so far; -1: none */
    bool names_dirty;   /* the directory has new names that no sync_dir covers */
};

/* Writes a message that names the file; returns e. */
__attribute__((format(printf, 3, 4))) enum err load_fail(struct loader *ld, enum err e,
                                                         const char *fmt, ...);

/* leftovers.c: removes what deletes, compactions and writes left half done; finishes what they had
 * decided (Kafka: removeTempFilesAndCollectSwapFiles). */
MUST_USE enum err load_clear_leftovers(struct loader *ld);

/* recover.c: reads all of a segment, checks every batch (size, CRC, offsets), rebuilds its indexes,
 * applies producers and larger epochs. The first bad byte and all behind it are cut; *cut tells.
 * s.end_offset is where the segment has to go on, then where it ends. */
MUST_USE enum err load_recover_segment(struct loader *ld, struct segment *seg, bool *cut);

#endif
