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

static enum err tmp_path(char out[LOG_PATH_MAX], const char *dir, const char *name)
{
    enum err err = path_join(out, dir, name);
    const size_t n = err == ERR_NONE ? strlen(out) : 0;
    if (n + sizeof ".tmp" > LOG_PATH_MAX)
        return ERR_INVALID;
    if (err == ERR_NONE)
        memcpy(out + n, ".tmp", sizeof ".tmp");
    return err;
}

static enum err write_tmp(struct vfs *fs, const char *dir, const char *name, const void *p,
                          size_t n, char tmp[LOG_PATH_MAX])
{
    enum err err = tmp_path(tmp, dir, name);
    return err == ERR_NONE ? write_new(fs, tmp, p, n) : err;
}

enum err file_replace_begin(struct disk *d, const char *dir, const char *name, const void *p,
                            size_t n)
{
    char tmp[LOG_PATH_MAX];
    enum err err = write_tmp(d->fs, dir, name, p, n, tmp);
    if (err == ERR_NONE)
        d->sync_begin(d, tmp);
    return err;
}

enum err file_replace_end(struct disk *d, const char *dir, const char *name)
{
    char path[LOG_PATH_MAX], tmp[LOG_PATH_MAX];
    enum err err = path_join(path, dir, name);
    if (err == ERR_NONE)
        err = tmp_path(tmp, dir, name);
    if (err == ERR_NONE)
        err = d->sync(d, tmp);
    return err == ERR_NONE ? d->fs->ops->rename(d->fs, tmp, path) : err;
}

enum err file_replace(struct disk *d, const char *dir, const char *name, const void *p, size_t n)
{
    char tmp[LOG_PATH_MAX];
    enum err err = write_tmp(d->fs, dir, name, p, n, tmp);
    if (err == ERR_NONE)
        err = file_replace_end(d, dir, name);
    return err == ERR_NONE ? d->sync_dir(d, dir) : err;
}
