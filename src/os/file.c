/* One open file: its descriptor comes and goes, see vfs.h. What was opened is remembered as device,
 * inode and time of birth (an inode number alone is soon used again), and compared on reopening. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "os/error.h"

/* Written by one call. Of larger writes ext4 makes page cache in pieces of 2 MB, fresh memory each
 * time, which on a virtual machine the host backs only now: three times the CPU
 * (docs/PERFORMANCE.md). */
#define WRITE_STEP_BYTES ((size_t)1 << 20)

struct identity {
    uint32_t dev_major, dev_minor;
    uint64_t ino;
    int64_t born_s;
    uint32_t born_ns;
};

struct os_file {
    struct file file;
    struct os_node *node; /* counted */
    struct list link;     /* in with_fd while fd != -1 */
    int fd;
    int flags; /* of open(2), without the ones that create or empty */
    struct identity identity;
};

static struct os_vfs *vfs_of(struct file *f)
{
    return CONTAINER_OF(f->fs, struct os_vfs, vfs);
}

static struct os_file *os_file_of(struct file *f)
{
    return CONTAINER_OF(f, struct os_file, file);
}

static void drop_fd(struct os_vfs *v, struct os_file *o)
{
    if (o->fd == -1)
        return;
    /* Not repeated when interrupted: Linux has closed it. No write is lost: that is sync's task. */
    (void)close(o->fd);
    o->fd = -1;
    list_remove(&o->link);
    v->fds_n--;
}

static bool drop_oldest(struct os_vfs *v)
{
    if (list_empty(&v->with_fd))
        return false;
    drop_fd(v, LIST_ENTRY(v->with_fd.prev, struct os_file, link));
    return true;
}

/* open(2) within the limit; gives up descriptors when the process has none left. */
static enum err open_fd(struct os_vfs *v, const char *path, int flags, int *out)
{
    while (v->fds_n >= v->fds_max)
        CHECK(drop_oldest(v));
    for (;;) {
        *out = open(path, flags | O_CLOEXEC, 0666);
        if (*out != -1)
            return ERR_NONE;
        if ((errno == EMFILE || errno == ENFILE) && drop_oldest(v))
            continue;
        if (errno != EINTR)
            return os_error(errno);
    }
}

static enum err identify(int fd, struct identity *out)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &st) == -1)
        return os_error(errno);
    if (S_ISDIR(st.stx_mode))
        return ERR_INVALID;
    *out = (struct identity){st.stx_dev_major, st.stx_dev_minor, st.stx_ino, st.stx_btime.tv_sec,
                             st.stx_btime.tv_nsec};
    return ERR_NONE;
}

static bool same(const struct identity *a, const struct identity *b)
{
    return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->ino == b->ino &&
           a->born_s == b->born_s && a->born_ns == b->born_ns;
}

static void have_fd(struct os_vfs *v, struct os_file *o, int fd)
{
    o->fd = fd;
    list_prepend(&v->with_fd, &o->link);
    v->fds_n++;
}

static enum err reopen(struct os_vfs *v, struct os_file *o)
{
    char path[PATH_MAX];
    int fd;
    struct identity identity = {0};
    enum err err = os_node_path(o->node, path, sizeof path);
    if (err == ERR_NONE)
        err = open_fd(v, path, o->flags, &fd);
    if (err != ERR_NONE)
        return err;
    err = identify(fd, &identity);
    if (err == ERR_NONE && !same(&identity, &o->identity))
        err = ERR_NOENT;
    if (err != ERR_NONE) {
        (void)close(fd);
        return err;
    }
    have_fd(v, o, fd);
    v->reopened_n++;
    return ERR_NONE;
}

enum err os_file_fd(struct file *f, int *fd)
{
    struct os_vfs *v = vfs_of(f);
    struct os_file *o = os_file_of(f);
    if (o->fd == -1) {
        enum err err = reopen(v, o);
        if (err != ERR_NONE)
            return err;
    } else if (v->with_fd.next != &o->link) {
        list_remove(&o->link);
        list_prepend(&v->with_fd, &o->link);
    }
    *fd = o->fd;
    return ERR_NONE;
}

static enum err open_first(struct os_vfs *v, struct os_file *o, const char *path,
                           enum file_open mode)
{
    int create = mode == FILE_READ ? 0 : O_CREAT;
    if (mode == FILE_CREATE)
        create |= O_TRUNC;
    o->flags = mode == FILE_READ ? O_RDONLY : O_RDWR;
    int fd;
    enum err err = open_fd(v, path, o->flags | create, &fd);
    if (err != ERR_NONE)
        return err;
    err = identify(fd, &o->identity);
    if (err != ERR_NONE) {
        (void)close(fd);
        return err;
    }
    have_fd(v, o, fd);
    return ERR_NONE;
}

enum err os_file_open(struct vfs *fs, const char *path, enum file_open mode, struct file **out)
{
    struct os_vfs *v = CONTAINER_OF(fs, struct os_vfs, vfs);
    struct os_file *o = malloc(sizeof *o);
    if (o == NULL)
        return ERR_NOMEM;
    *o = (struct os_file){.file = {.fs = fs, .refs = 1}, .fd = -1};
    list_init(&o->link);
    enum err err = os_tree_ref(&v->tree, path, &o->node);
    if (err != ERR_NONE)
        goto err_after_alloc;
    err = open_first(v, o, path, mode);
    if (err != ERR_NONE)
        goto err_after_node;
    *out = &o->file;
    return ERR_NONE;

err_after_node:
    os_tree_unref(&v->tree, o->node);
err_after_alloc:
    free(o);
    return err;
}

void os_file_close(struct file *f)
{
    struct os_vfs *v = vfs_of(f);
    struct os_file *o = os_file_of(f);
    drop_fd(v, o);
    os_tree_unref(&v->tree, o->node);
    free(o);
}

static enum err read_all(struct file *f, void *buf, size_t n, uint64_t off, int flags, size_t *got)
{
    int fd;
    *got = 0;
    if (!os_range_ok(off, n))
        return ERR_INVALID;
    enum err err = os_file_fd(f, &fd);
    while (err == ERR_NONE && *got < n) {
        struct iovec rest = {(char *)buf + *got, n - *got};
        ssize_t r = preadv2(fd, &rest, 1, (off_t)(off + *got), flags);
        if (r == 0)
            break;
        if (r != -1)
            *got += (size_t)r;
        else if (errno == EOPNOTSUPP && flags != 0)
            flags = 0; /* what cannot be told is waited for */
        else if (errno != EINTR)
            err = os_error(errno);
    }
    return err;
}

enum err os_file_pread(struct file *f, void *buf, size_t n, uint64_t off, size_t *got)
{
    return read_all(f, buf, n, off, 0, got);
}

enum err os_file_pread_now(struct file *f, void *buf, size_t n, uint64_t off, size_t *got)
{
    return read_all(f, buf, n, off, RWF_NOWAIT, got);
}

/* The next pieces from piece idx on, the first without its `skip` written bytes, up to
 * WRITE_STEP_BYTES; nothing when all is written. */
static int batch_of(const struct iov *iov, size_t iov_n, size_t idx, size_t skip,
                    struct iovec out[IOV_MAX])
{
    int n = 0;
    size_t left = WRITE_STEP_BYTES;
    for (; idx < iov_n && n < IOV_MAX && left > 0; idx++, skip = 0) {
        size_t part = iov[idx].n - skip < left ? iov[idx].n - skip : left;
        if (part > 0)
            out[n++] = (struct iovec){(char *)(uintptr_t)iov[idx].p + skip, part};
        left -= part;
    }
    return n;
}

/* A single piece costs a tenth less by itself than as a vector. */
static ssize_t write_some(int fd, const struct iovec *batch, int n, off_t off)
{
    return n == 1 ? pwrite(fd, batch->iov_base, batch->iov_len, off) : pwritev(fd, batch, n, off);
}

static enum err write_all(int fd, const struct iov *iov, size_t iov_n, uint64_t off)
{
    struct iovec batch[IOV_MAX];
    size_t idx = 0, skip = 0;
    for (;;) {
        int n = batch_of(iov, iov_n, idx, skip, batch);
        if (n == 0)
            return ERR_NONE;
        ssize_t w = write_some(fd, batch, n, (off_t)off);
        if (w == -1 && errno == EINTR)
            continue;
        if (w == -1)
            return os_error(errno);
        if (w == 0)
            return ERR_IO; /* no progress and no reason */
        off += (size_t)w;
        skip += (size_t)w;
        while (idx < iov_n && skip >= iov[idx].n)
            skip -= iov[idx++].n;
    }
}

enum err os_file_pwritev(struct file *f, const struct iov *iov, size_t iov_n, uint64_t off)
{
    uint64_t total = 0;
    for (size_t i = 0; i < iov_n; i++)
        total += iov[i].n;
    if (!os_range_ok(off, total))
        return ERR_INVALID;
    int fd;
    enum err err = os_file_fd(f, &fd);
    return err == ERR_NONE ? write_all(fd, iov, iov_n, off) : err;
}

enum err os_file_truncate(struct file *f, uint64_t size)
{
    int fd;
    if (!os_range_ok(size, 0))
        return ERR_INVALID;
    enum err err = os_file_fd(f, &fd);
    if (err != ERR_NONE)
        return err;
    while (ftruncate(fd, (off_t)size) == -1) {
        if (errno != EINTR)
            return os_error(errno);
    }
    f->generation++;
    return ERR_NONE;
}

enum err os_file_size(struct file *f, uint64_t *out)
{
    int fd;
    struct stat st;
    enum err err = os_file_fd(f, &fd);
    if (err != ERR_NONE)
        return err;
    if (fstat(fd, &st) == -1)
        return os_error(errno);
    *out = (uint64_t)st.st_size;
    return ERR_NONE;
}

/* What cannot be told counts as cached: then the read meets the error, or waits. */
static bool byte_cached(int fd, uint64_t off)
{
    char byte;
    struct iovec iov = {&byte, 1};
    return preadv2(fd, &iov, 1, (off_t)off, RWF_NOWAIT) != -1 || errno != EAGAIN;
}

/* One byte of a step tells about all of it. */
bool os_file_cached(struct file *f, uint64_t off, uint64_t n)
{
    int fd;
    if (n == 0 || !os_range_ok(off, n) || os_file_fd(f, &fd) != ERR_NONE)
        return true;
    for (uint64_t at = 0; at < n; at += OS_READ_AHEAD_BYTES) {
        if (!byte_cached(fd, off + at))
            return false;
    }
    return byte_cached(fd, off + n - 1);
}
