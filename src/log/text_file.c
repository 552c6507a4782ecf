/* Whole small files: read at once, replaced at once. The new text goes to NAME.tmp and is synced
 * before the rename, so a crash leaves the old file or the new one. */
#include "log/checkpoint.h"
#include "log/path.h"

enum err file_slurp(struct vfs *fs, const char *path, size_t max, struct buf *out)
{
    struct file *f;
    enum err err = fs->ops->open(fs, path, FILE_READ, &f);
    if (err != ERR_NONE)
        return err;
    uint64_t size;
    err = fs->ops->size(f, &size);
    if (err == ERR_NONE && size > max)
        err = ERR_TOO_LARGE;
    if (err == ERR_NONE)
        err = buf_reserve(out, size);
    if (err == ERR_NONE) {
        size_t got;
        err = fs->ops->pread(f, out->p + out->n, size, 0, &got);
        if (err == ERR_NONE)
            out->n += got;
    }
    file_unref(f);
    return err;
}

static enum err write_new(struct vfs *fs, const char *path, const void *p, size_t n)
{
    struct file *f;
    enum err err = fs->ops->open(fs, path, FILE_CREATE, &f);
    if (err != ERR_NONE)
        return err;
    struct iov iov = {p, n};
    if (n > 0)
        err = fs->ops->pwritev(f, &iov, 1, 0);
    file_unref(f);
    return err;
}

enum err file_write_synced(struct disk *d, const char *path, const void *p, size_t n)
{
    enum err err = write_new(d->fs, path, p, n);
    return err == ERR_NONE ? d->sync(d, path) : err;
}

enum err file_replace(struct disk *d, const char *dir, const char *name, const void *p, size_t n)
{
    char path[LOG_PATH_MAX], tmp[LOG_PATH_MAX];
    enum err err = path_join(path, dir, name);
    if (err != ERR_NONE)
        return err;
    size_t path_n = strlen(path);
    if (path_n + sizeof ".tmp" > sizeof tmp)
        return ERR_INVALID;
    memcpy(tmp, path, path_n);
    memcpy(tmp + path_n, ".tmp", sizeof ".tmp");
    err = file_write_synced(d, tmp, p, n);
    if (err == ERR_NONE)
        err = d->fs->ops->rename(d->fs, tmp, path);
    return err == ERR_NONE ? d->sync_dir(d, dir) : err;
}
