/* Files on POSIX. A file is open as long as its struct file lives, but at most fds_max of them have
 * a descriptor: the least recently used one loses its descriptor when another needs one, and is
 * reopened by its path on demand. The path follows renames made through the same vfs. A file that
 * was unlinked or replaced, here or by another, is ERR_NOENT once its descriptor was taken; it
 * never turns into another file of the same name.
 *
 * One thread per instance. Every error of the machine becomes an enum err by os/error.h;
 * interrupted calls are repeated, short writes continued. */
#ifndef OS_VFS_H
#define OS_VFS_H

#include "base/env.h"
#include "os/node.h"

struct os_vfs {
    struct vfs vfs;
    struct os_tree tree;
    struct list with_fd; /* files that have a descriptor, most recently used first */
    size_t fds_n, fds_max;
    struct list locks;
    uint64_t reopened_n; /* times that a file got back its descriptor */
};

/* fds_max >= 1. */
void os_vfs_init(struct os_vfs *v, size_t fds_max);
/* Every file must be closed; locks are released. */
void os_vfs_close(struct os_vfs *v);

/* The descriptor of f for sendfile and the like, valid until the next operation on the vfs. */
MUST_USE enum err os_file_fd(struct file *f, int *fd);

#endif
