/* Everything impure, behind vtables (law 1): files, jobs, random bytes, log lines. The clocks are
 * read once per turn by whoever drives the node and passed in as struct now. os/ implements this
 * on POSIX, tests/sim/ in memory. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "base/err.h"
#include "base/list.h"
#include "base/types.h"

/* mono for delays, wall only for timestamps that Kafka defines. */
struct now {
    int64_t mono_us;
    int64_t wall_ms;
};

/* ------------------------------------------------------------------ files */

/* An open file that names its path: the implementation keeps a bounded number of descriptors open
 * and reopens on demand. One owner thread per vfs. Counted: file_ref/file_unref. */
struct file {
    struct vfs *fs;
    uint32_t refs;
    uint32_t generation; /* raised by every truncation; a slice of an older one is stale */
};

struct iov {
    const void *p;
    size_t n;
};

struct file_stat {
    uint64_t size_bytes;
    int64_t mtime_ms;
    bool is_dir;
};

enum file_open {
    FILE_READ,   /* must exist */
    FILE_WRITE,  /* read and write, created when missing */
    FILE_CREATE, /* read and write, emptied when it exists */
};

/* Of the file system that holds a path. */
struct disk_space {
    uint64_t total_bytes;
    uint64_t usable_bytes; /* by us */
};

/* Called for every name but . and .., in byte order of the names; an error ends the listing. */
typedef enum err (*vfs_list_fn)(void *ctx, const char *name, bool is_dir);

/* No operation blocks on the device for long but those of struct disk. Paths are absolute or
 * relative to the process; implementations copy them. */
struct vfs_ops {
    enum err (*open)(struct vfs *fs, const char *path, enum file_open mode, struct file **out);
    void (*close)(struct file *f); /* by file_unref */
    /* Reads until n bytes or the end of the file. */
    enum err (*pread)(struct file *f, void *buf, size_t n, uint64_t off, size_t *got);
    /* The same without waiting for the device: ERR_AGAIN where some of it is not in memory. */
    enum err (*pread_now)(struct file *f, void *buf, size_t n, uint64_t off, size_t *got);
    /* All or an error; after an error any prefix may have been written. */
    enum err (*pwritev)(struct file *f, const struct iov *iov, size_t iov_n, uint64_t off);
    enum err (*truncate)(struct file *f, uint64_t size);
    enum err (*size)(struct file *f, uint64_t *out);
    /* True if the range can be read without waiting for the device. */
    bool (*cached)(struct file *f, uint64_t off, uint64_t n);
    enum err (*stat)(struct vfs *fs, const char *path, struct file_stat *out);
    enum err (*mkdir)(struct vfs *fs, const char *path); /* ERR_EXIST */
    enum err (*rmdir)(struct vfs *fs, const char *path);
    enum err (*unlink)(struct vfs *fs, const char *path); /* ERR_NOENT */
    enum err (*rename)(struct vfs *fs, const char *from, const char *to);
    enum err (*list)(struct vfs *fs, const char *path, vfs_list_fn fn, void *ctx);
    /* Holds path/.lock until the process ends or unlock; ERR_BUSY if another has it. */
    enum err (*lock)(struct vfs *fs, const char *path);
    void (*unlock)(struct vfs *fs, const char *path);
    /* The path as others know it: behind the process's own directory unless it begins with a slash,
     * without slashes that say nothing. ERR_TOO_LARGE: n bytes do not hold it. */
    enum err (*absolute)(struct vfs *fs, const char *path, char *out, size_t n);
};

struct vfs {
    const struct vfs_ops *ops;
};

/* Counted by the slices and logs that use it. */
static inline struct file *file_ref(struct file *f)
{
    f->refs++;
    return f;
}

static inline void file_unref(struct file *f)
{
    if (f != NULL && --f->refs == 0)
        f->fs->ops->close(f);
}

/* Bytes of a file that go into an answer without passing through user space. Holds f. */
struct slice {
    struct file *f;
    uint32_t generation;
    uint64_t off;
    uint32_t n;
};

/* The files as a worker sees them: the only place that can sync or ask the device (law 3). */
struct disk {
    struct vfs *fs;
    enum err (*sync)(struct disk *d, const char *path); /* data and size */
    /* Begins what sync will wait for, and promises nothing: files begun together share the device's
     * work, and their syncs find it done. */
    void (*sync_begin)(struct disk *d, const char *path);
    enum err (*sync_dir)(struct disk *d, const char *path); /* names in it */
    enum err (*space)(struct disk *d, const char *path, struct disk_space *out);
    /* Brings a part of a file into the page cache, so that it can be read without waiting. */
    enum err (*warm)(struct disk *d, const char *path, uint64_t from, uint64_t n);
};

/* ------------------------------------------------------------------ jobs */

enum job_lane {
    JOB_SYNC, /* what an acknowledgement waits for */
    JOB_BULK, /* recovery, deletes, cold reads, compaction */
};

/* Embedded in its owner, which stays alive until done() has run. run() sees the request and the
 * disk, nothing else. */
struct job {
    struct list link;
    enum job_lane lane;
    bool cancelled; /* by job_cancel: run() may end early; done() is called all the same */
    void (*run)(struct job *j, struct disk *d);
    void (*done)(struct job *j); /* on the owner's thread, in a turn */
};

/* By the owner, while a worker may run the job. */
static inline void job_cancel(struct job *j)
{
    __atomic_store_n(&j->cancelled, true, __ATOMIC_RELAXED);
}

static inline bool job_cancelled(const struct job *j)
{
    return __atomic_load_n(&j->cancelled, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ env */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct env {
    struct vfs *fs; /* the owner's view: no sync */
    void (*random)(struct env *e, void *p, size_t n);
    void (*submit)(struct env *e, struct job *j);
    /* The next finished job, or NULL; the node calls its done(). */
    struct job *(*reap)(struct env *e);
    /* One line, "event key=value ...", without newline. Rate limits are the implementation's. */
    void (*log)(struct env *e, enum log_level level, const char *line);
};

__attribute__((format(printf, 3, 4))) void env_log(struct env *e, enum log_level level,
                                                   const char *fmt, ...);
uint64_t env_random_u64(struct env *e);

#endif
