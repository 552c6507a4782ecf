/* A sync opens the path anew: the kernel reports a failed write-back to the first sync of any
 * descriptor of the file, those opened after the failure included. A failed sync is never repeated
 * here: the pages are clean by then, and the next one would succeed without having written them. */
#include "os/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/error.h"

static enum err sync_path(const char *path, int flags, int (*sync)(int))
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    while (fd == -1 && errno == EINTR);
    if (fd == -1)
        return os_error(errno);
    enum err err = ERR_NONE;
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

void os_disk_init(struct os_disk *d, size_t fds_max)
{
    os_vfs_init(&d->vfs, fds_max);
    d->disk = (struct disk){&d->vfs.vfs, disk_sync, disk_sync_dir, disk_space};
}

void os_disk_close(struct os_disk *d)
{
    os_vfs_close(&d->vfs);
}
