/* Kafka's checkpoint files and the small files of a log directory. Everything here runs in jobs
 * (struct disk): text written to NAME.tmp, synced, renamed, directory synced. */
#ifndef LOG_CHECKPOINT_H
#define LOG_CHECKPOINT_H

#include "base/buf.h"
#include "base/env.h"
#include "log/epoch_cache.h"

/* ---- offset checkpoints: replication-offset-, recovery-point-offset-, log-start-offset-,
 * cleaner-offset-checkpoint */

struct offset_entry {
    char *topic; /* owned */
    int32_t partition;
    int64_t offset;
};

struct offset_checkpoint {
    struct offset_entry *v;
    size_t n, cap;
    size_t sorted_n; /* the first ones are in order */
};

void offset_checkpoint_init(struct offset_checkpoint *c);
void offset_checkpoint_close(struct offset_checkpoint *c);
MUST_USE enum err offset_checkpoint_add(struct offset_checkpoint *c, struct str topic,
                                        int32_t partition, int64_t offset);
/* -1 when there is no entry. */
int64_t offset_checkpoint_get(const struct offset_checkpoint *c, struct str topic,
                              int32_t partition);
/* Makes gets fast; call after the last add. */
void offset_checkpoint_sort(struct offset_checkpoint *c);
/* A missing or empty file is no entries. ERR_CORRUPT: wrong version, count or field count: the log
 * directory goes offline (as Kafka). ERR_RANGE: a non-numeric offset: the caller takes no entries
 * for recovery-point and log-start files. */
MUST_USE enum err offset_checkpoint_read(struct vfs *fs, const char *path,
                                         struct offset_checkpoint *out);
MUST_USE enum err offset_checkpoint_write(struct disk *d, const char *dir, const char *name,
                                          const struct offset_checkpoint *c);

/* ---- leader-epoch-checkpoint of a partition's directory. A missing or empty file is no entries;
 * ERR_CORRUPT as above. */
MUST_USE enum err epoch_checkpoint_read(struct vfs *fs, const char *dir, struct epoch_cache *out);
MUST_USE enum err epoch_checkpoint_write(struct disk *d, const char *dir,
                                         const struct epoch_cache *c);
/* The file's text, behind what out holds; for jobs that write it later, as file_replace_begin and
 * _end. */
MUST_USE enum err epoch_checkpoint_print(const struct epoch_cache *c, struct buf *out);
MUST_USE enum err epoch_checkpoint_begin(struct disk *d, const char *dir, struct bytes text);
MUST_USE enum err epoch_checkpoint_end(struct disk *d, const char *dir);

/* ---- partition.metadata. Missing file: ERR_NOENT. */
MUST_USE enum err partition_metadata_read(struct vfs *fs, const char *dir, struct uuid *topic_id);
/* As file_replace_begin and _end. */
MUST_USE enum err partition_metadata_begin(struct disk *d, const char *dir, struct uuid topic_id);
MUST_USE enum err partition_metadata_end(struct disk *d, const char *dir);

/* ---- meta.properties, version 1 */
struct meta_properties {
    char cluster_id[128];
    int32_t node_id;
    struct uuid directory_id;
};
/* ERR_NOENT; ERR_CORRUPT names the fault in message. */
MUST_USE enum err meta_properties_read(struct vfs *fs, const char *dir, struct meta_properties *out,
                                       char *message, size_t message_n);
/* As file_replace_begin and _end. */
MUST_USE enum err meta_properties_begin(struct disk *d, const char *dir,
                                        const struct meta_properties *m);
MUST_USE enum err meta_properties_end(struct disk *d, const char *dir);

/* ---- .kafka_cleanshutdown: JSON {"version":0,"brokerEpoch":N} */
MUST_USE enum err clean_shutdown_read(struct vfs *fs, const char *dir, int64_t *broker_epoch);
MUST_USE enum err clean_shutdown_write(struct disk *d, const char *dir, int64_t broker_epoch);
MUST_USE enum err clean_shutdown_remove(struct disk *d, const char *dir);

/* ---- for all text files: NAME.tmp, sync, rename, sync_dir */
MUST_USE enum err file_replace(struct disk *d, const char *dir, const char *name, const void *p,
                               size_t n);
/* The same in two halves, for files that share what they wait for: all begin, then all end, then
 * their directories are synced by the caller. */
MUST_USE enum err file_replace_begin(struct disk *d, const char *dir, const char *name,
                                     const void *p, size_t n);
MUST_USE enum err file_replace_end(struct disk *d, const char *dir, const char *name);
/* A file whose readers check it themselves (a CRC): written in place, synced; its name is not. */
MUST_USE enum err file_write_synced(struct disk *d, const char *path, const void *p, size_t n);
/* The whole file, behind what out holds; at most max bytes (ERR_TOO_LARGE). */
MUST_USE enum err file_slurp(struct vfs *fs, const char *path, size_t max, struct buf *out);

/* "topic-12" -> topic, 12. False for -delete, -stray, -future directories and anything else. */
bool partition_dir_parse(const char *name, struct str *topic, int32_t *partition);

#endif
