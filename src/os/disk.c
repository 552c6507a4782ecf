/* A sync opens the path anew: the kernel reports a failed write-back to the first sync of any
 * descriptor of the file, those opened after the failure included. A failed sync is never repeated
 * here: the pages are clean by then, and the next one would succeed without having written them. */
#include "os/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/error.h"
#include "os/file.h"

/* Asked for at once: as much as each disk takes in one request by default. */
#define WILLNEED_BYTES (512u << 10)

static enum err open_path(const char *path, int flags, int *fd)
{
    do
        *fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    while (*fd == -1 && errno == EINTR);
    return *fd == -1 ? os_error(errno) : ERR_NONE;
}

static enum err sync_path(const char *path, int flags, int (*sync)(int))
{
    int fd;
    enum err err = open_path(path, flags, &fd);
    if (err != ERR_NONE)
        return err;
    while (sync(fd) == -1) {
        if (errno == EINTR)
            continue;
        err = os_error(errno);
        break;
    }
    (void)close(fd);
    return err;
}

static enum err disk_sync(struct disk *d, const char *path)
{
    return sync_path(path, 0, fdatasync); /* with the size: it is needed to read the data */
}

/* An error of it is told to the sync that follows. */
static void disk_sync_begin(struct disk *d, const char *path)
{
    int fd;
    if (open_path(path, 0, &fd) != ERR_NONE)
        return;
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    (void)close(fd);
}

static enum err disk_sync_dir(struct disk *d, const char *path)
{
    return sync_path(path, O_DIRECTORY, fsync);
}

static enum err disk_space(struct disk *d, const char *path, struct disk_space *out)
{
    struct statvfs st;
    int rc;
    do
        rc = statvfs(path, &st);
    while (rc == -1 && errno == EINTR);
    if (rc == -1)
        return os_error(errno);
    *out = (struct disk_space){(uint64_t)st.f_blocks * st.f_frsize,
                               (uint64_t)st.f_bavail * st.f_frsize};
    return ERR_NONE;
}

/* Everything is asked for before anything is waited for; the last byte of a step comes last. */
static enum err disk_warm(struct disk *d, const char *path, uint64_t from, uint64_t n)
{
    int fd;
    const uint64_t end = from + n;
    enum err err = os_range_ok(from, n) ? ERR_NONE : ERR_INVALID;
    if (err == ERR_NONE)
        err = open_path(path, 0, &fd);
    if (err != ERR_NONE)
        return err;
    for (uint64_t at = from; at < end; at += WILLNEED_BYTES)
        (void)posix_fadvise(fd, (off_t)at, WILLNEED_BYTES, POSIX_FADV_WILLNEED);
    for (uint64_t at = from; at < end && err == ERR_NONE; at += OS_READ_AHEAD_BYTES) {
        char byte;
        const uint64_t last =
            end - at < OS_READ_AHEAD_BYTES ? end - 1 : at + OS_READ_AHEAD_BYTES - 1;
        if (pread(fd, &byte, 1, (off_t)last) == -1 && errno != EINTR)
            err = os_error(errno);
    }
    (void)close(fd);
    return err;
}

void os_disk_init(struct os_disk *d, size_t fds_max)
{
    os_vfs_init(&d->vfs, fds_max);
    d->disk = (struct disk){
        &d->vfs.vfs, disk_sync, disk_sync_begin, disk_sync_dir, disk_space, disk_warm,
    };
}

void os_disk_close(struct os_disk *d)
{
    os_vfs_close(&d->vfs);
}
