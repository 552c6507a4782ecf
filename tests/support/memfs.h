/* Files in memory that know what a disk would have kept: the vfs and the disk of tests and of the
 * simulator. One thread; deterministic; its own memory does not count for fault.h.
 *
 * Durability. A file has its synced bytes and the writes and truncations since. sync() makes those
 * durable, nothing else does. Names are apart from files: a creation, unlink or rename is durable
 * once sync_dir() of a directory that it touches has run. memfs_crash() keeps, drops or tears each
 * unsynced write on its own (holes read as zeros) and keeps or drops each unsynced change of a
 * name; a change that builds on a dropped one (same file or same name) is dropped too, a rename is
 * atomic. After a sync() that failed, later ones succeed and make nothing durable, as on Linux. */
#ifndef SUPPORT_MEMFS_H
#define SUPPORT_MEMFS_H

#include "base/env.h"
#include "support/rng.h"

enum memfs_op {
    MEMFS_OPEN,
    MEMFS_READ,
    MEMFS_WRITE,
    MEMFS_TRUNCATE,
    MEMFS_SIZE,
    MEMFS_STAT,
    MEMFS_MKDIR,
    MEMFS_RMDIR,
    MEMFS_UNLINK,
    MEMFS_RENAME,
    MEMFS_LIST,
    MEMFS_LOCK,
    MEMFS_SYNC,
    MEMFS_SYNC_DIR,
    MEMFS_SPACE,
    MEMFS_OPS
};

#define MEMFS_KIND(op) (1u << (op))
#define MEMFS_UNLIMITED_BYTES ((uint64_t)1 << 40) /* what a disk without a limit says it has */

/* What fails. A failed write has written some prefix, a failed sync nothing for certain. */
struct memfs_fault {
    long nth; /* from now, counted from 1; 0: none */
    bool persistent;
    enum err err;
    unsigned kinds;    /* MEMFS_KIND bits; 0: every kind */
    const char *under; /* only operations on paths that begin so; NULL: all. Must stay alive */
};

struct memfs {
    struct vfs vfs;
    struct disk disk;
    /* Read by tests; they may set them to 0. */
    uint64_t ops[MEMFS_OPS]; /* calls, failed ones too */
    uint64_t read_bytes, write_bytes;
    /* Set by tests. */
    uint64_t limit_bytes; /* size of the disk; 0: no limit. ERR_NOSPC beyond it */
    int64_t wall_ms;      /* what a write leaves as the file's mtime */
    /* The rest is private. */
    uint64_t used_bytes;
    uint64_t boot; /* raised by a crash: older open files are ERR_CLOSED */
    uint64_t warm; /* raised by memfs_cool */
    struct rng rng;
    struct memfs_fault fault;
    bool fault_hit, unplugged;
    struct memfs_inode *root;
    struct list inodes;  /* in order of creation */
    struct list changes; /* of names, not durable yet, oldest first */
    struct list listings;
};

void memfs_init(struct memfs *fs, uint64_t seed);
/* Every file must be closed. */
void memfs_close(struct memfs *fs);

void memfs_fault_arm(struct memfs *fs, struct memfs_fault fault);
/* Disarms; true if the fault was reached. */
bool memfs_fault_hit(struct memfs *fs);

/* The process ended inside a list operation's callback, by longjmp: what that held is let go. */
void memfs_leave(struct memfs *fs);
/* The end of a machine as its last process sees it: until plugged in again, or a crash, every
 * operation fails with ERR_IO, a write in part. No armed fault counts them. */
void memfs_unplug(struct memfs *fs);
void memfs_plug_in(struct memfs *fs);
/* Power off and on. Open files become unusable, may be closed; locks are gone. */
void memfs_crash(struct memfs *fs, struct rng *rng);
/* A clean stop of the machine: all that was written is durable. */
void memfs_sync_all(struct memfs *fs);
/* Empties the page cache: a range is cached() again once its file was read or written. */
void memfs_cool(struct memfs *fs);

/* Set-up and inspection, neither counted nor failing; a mistake in a test ends it. Durable. */
void memfs_put(struct memfs *fs, const char *path, const void *p, size_t n); /* makes parents */
void memfs_mkdirs(struct memfs *fs, const char *path);
/* The file's bytes until the next operation; NULL if it does not exist. */
const uint8_t *memfs_get(struct memfs *fs, const char *path, size_t *n);
/* Copies a directory of the machine, subdirectories too, to path. */
void memfs_import(struct memfs *fs, const char *machine_dir, const char *path);
/* pwritev calls that the file has seen; 0 if it does not exist. */
uint64_t memfs_writes(struct memfs *fs, const char *path);

#endif
