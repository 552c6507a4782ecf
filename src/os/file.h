/* Inside of the vfs: operations on one open file, and what its disk has in common with them. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include "os/vfs.h"

/* Read-ahead works in steps of at least this size, and by default of no more. */
#define OS_READ_AHEAD_BYTES (128u << 10)

static inline bool os_range_ok(uint64_t off, uint64_t n)
{
    return off <= INT64_MAX && n <= INT64_MAX - off;
}

enum err os_file_open(struct vfs *fs, const char *path, enum file_open mode, struct file **out);
void os_file_close(struct file *f);
enum err os_file_pread(struct file *f, void *buf, size_t n, uint64_t off, size_t *got);
enum err os_file_pread_now(struct file *f, void *buf, size_t n, uint64_t off, size_t *got);
enum err os_file_pwritev(struct file *f, const struct iov *iov, size_t iov_n, uint64_t off);
enum err os_file_truncate(struct file *f, uint64_t size);
enum err os_file_size(struct file *f, uint64_t *out);
bool os_file_cached(struct file *f, uint64_t off, uint64_t n);

#endif
