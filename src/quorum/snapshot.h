/* Snapshot files of the metadata log: `<offset %020d>-<epoch %010d>.checkpoint` holds the state
 * before offset as log batches (KIP-630): a header, the records, a footer. */
#ifndef QUORUM_SNAPSHOT_H
#define QUORUM_SNAPSHOT_H

#include "base/buf.h"
#include "base/env.h"
#include "quorum/voters.h"
#include "wire/batch.h"

struct snapshot_id {
    int64_t offset;
    int32_t epoch;
};

#define SNAPSHOT_NAME_MAX 64
#define SNAPSHOT_MAX_BYTES (1 << 30) /* refused beyond */

void snapshot_name(struct snapshot_id id, char out[SNAPSHOT_NAME_MAX]);
/* False for any other name. */
bool snapshot_name_parse(const char *name, struct snapshot_id *out);

struct snapshot_content {
    struct snapshot_id id;
    int64_t timestamp; /* of the batches and of the last contained log record */
    int16_t kraft_version;
    const struct voter_set *voters; /* kraft.version 1; or NULL */
    const struct bytes *records;    /* framed */
    size_t records_n;
};

/* The whole file into out. ERR_TOO_LARGE: snapshot_read would refuse it. */
MUST_USE enum err snapshot_build(const struct snapshot_content *c, struct buf *out);
/* `.part`, sync, rename, directory sync: whole or not at all. */
MUST_USE enum err snapshot_write(struct disk *d, const char *dir, struct snapshot_id id,
                                 const void *p, size_t n);
/* Makes a downloaded `.part` the snapshot, and reads it into out. ERR_CORRUPT: it is none, and
 * gone. */
MUST_USE enum err snapshot_install(struct disk *d, const char *dir, struct snapshot_id id,
                                   struct buf *out);
MUST_USE enum err snapshot_remove(struct vfs *fs, const char *dir, struct snapshot_id id);
/* Reads and checks a file: framing, CRCs, a header first and a footer last. ERR_CORRUPT. */
MUST_USE enum err snapshot_read(struct vfs *fs, const char *dir, struct snapshot_id id,
                                struct buf *out);

#endif
