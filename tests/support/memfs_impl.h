/* Inside of memfs: inodes, their durable and present state, changes of names. */
#ifndef SUPPORT_MEMFS_IMPL_H
#define SUPPORT_MEMFS_IMPL_H

#include "support/memfs.h"

#define MEMFS_NAME_MAX 255

struct memfs_bytes {
    uint8_t *p;
    size_t n, cap;
};

/* A write, or a truncation to off when p is NULL. */
struct memfs_write {
    uint64_t off;
    uint8_t *p;
    size_t n;
};

struct memfs_entry {
    char *name;
    struct memfs_inode *inode; /* counted */
};

/* In byte order of the names. */
struct memfs_names {
    struct memfs_entry *e;
    size_t n, cap;
};

/* Counted by entries (present and durable), changes of names and open files. */
struct memfs_inode {
    struct list link;
    uint32_t refs;
    uint32_t links, opens; /* present entries, open files: while any, its bytes use the disk */
    bool is_dir, locked;
    bool sync_failed;
    /* file */
    struct memfs_bytes bytes, durable;
    struct memfs_write *writes; /* unsynced, oldest first */
    size_t writes_n, writes_cap;
    uint64_t charged_bytes;
    uint64_t writes_seen;
    uint64_t warm;
    int64_t mtime_ms;
    /* directory */
    struct memfs_names names, durable_names;
};

/* A change of names: inode leaves `from` and appears as `to`; either may be missing. */
struct memfs_place {
    struct memfs_inode *dir; /* counted; NULL: no such side */
    char name[MEMFS_NAME_MAX + 1];
};

struct memfs_change {
    struct list link;
    struct memfs_inode *inode; /* counted */
    struct memfs_place from, to;
    bool chosen; /* scratch of a sync or crash */
};

/* The names that a list operation goes through, until it returns or memfs_leave. */
struct memfs_listing {
    struct list link;
    struct memfs_names names;
};

/* memory that no fault reaches; aborts when there is none */
void *memfs_alloc(size_t n);
void memfs_bytes_resize(struct memfs_bytes *b, size_t n); /* new bytes are zero */
void memfs_bytes_write(struct memfs_bytes *b, uint64_t off, const uint8_t *p, size_t n);

struct memfs_inode *memfs_inode_new(struct memfs *fs, bool is_dir); /* refs 0 */
void memfs_inode_unref(struct memfs *fs, struct memfs_inode *i);
/* Recounts what i uses of the disk. */
void memfs_inode_charge(struct memfs *fs, struct memfs_inode *i);
void memfs_inode_log(struct memfs_inode *i, uint64_t off, uint8_t *p, size_t n); /* takes p */
void memfs_inode_sync(struct memfs_inode *i);
/* Applies what the crash keeps; present becomes durable. */
void memfs_inode_crash(struct memfs *fs, struct memfs_inode *i, struct rng *rng, unsigned keep,
                       unsigned tear);

struct memfs_inode *memfs_names_find(const struct memfs_names *names, const char *name);
void memfs_names_put(struct memfs *fs, struct memfs_names *names, const char *name,
                     struct memfs_inode *i); /* replaces */
void memfs_names_remove(struct memfs *fs, struct memfs_names *names, const char *name);
void memfs_names_clear(struct memfs *fs, struct memfs_names *names);

/* Makes the change in the present; it becomes durable with its directory. */
void memfs_change_make(struct memfs *fs, struct memfs_inode *i, const struct memfs_place *from,
                       const struct memfs_place *to);
/* Makes durable what touches dir, and what that builds on. */
void memfs_changes_sync(struct memfs *fs, struct memfs_inode *dir);
void memfs_changes_crash(struct memfs *fs, struct rng *rng, unsigned keep);

/* The directory that holds path's last name, and that name ("" for the root). ERR_NOENT. */
enum err memfs_walk(struct memfs *fs, const char *path, struct memfs_place *out);
struct memfs_inode *memfs_lookup(struct memfs *fs, const char *path);
/* Creates a file or directory that is not there. */
struct memfs_inode *memfs_create(struct memfs *fs, const struct memfs_place *at, bool is_dir);

void memfs_ops_init(struct memfs *fs);

#endif
