#include "limit/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool files_open(struct files *fs, const char *directory, bool sync)
{
    fs->directory = directory;
    fs->sync = sync;
    return mkdir(directory, 0777) == 0 || errno == EEXIST;
}

static struct file *open_new(const struct files *fs, int32_t partition)
{
    char path[PATH_MAX];
    struct file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    if (snprintf(path, sizeof path, "%s/%d.log", fs->directory, partition) >= (int)sizeof path ||
        !file_open(f, path)) {
        free(f);
        return NULL;
    }
    return f;
}

struct file *files_of(struct files *fs, int32_t partition)
{
    if (partition < 0 || partition >= FILES_MAX)
        return NULL;
    if (fs->v[partition] == NULL)
        fs->v[partition] = open_new(fs, partition);
    return fs->v[partition];
}

bool files_append(struct files *fs, struct file *f, uint8_t *batch, size_t n)
{
    if (!f->dirty)
        fs->dirty[fs->dirty_n++] = f;
    f->dirty = true;
    return file_append(f, batch, n);
}

bool files_settle(struct files *fs)
{
    for (size_t i = 0; i < fs->dirty_n; i++) {
        struct file *f = fs->dirty[i];
        f->dirty = false;
        if (!file_write_staged(f) || (fs->sync && fdatasync(f->fd) == -1))
            return false;
    }
    fs->dirty_n = 0;
    return true;
}
