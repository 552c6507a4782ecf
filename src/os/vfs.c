/* The vfs: names, listings, locks. Open files are in file.c. */
#include "os/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "os/error.h"
#include "os/file.h"
#include "os/random.h"

static struct os_vfs *os_vfs_of(struct vfs *fs)
{
    return CONTAINER_OF(fs, struct os_vfs, vfs);
}

static enum err vfs_stat(struct vfs *fs, const char *path, struct file_stat *out)
{
    struct stat st;
    if (stat(path, &st) == -1)
        return os_error(errno);
    *out = (struct file_stat){
        .size_bytes = (uint64_t)st.st_size,
        .mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
        .is_dir = S_ISDIR(st.st_mode),
    };
    return ERR_NONE;
}

static enum err vfs_mkdir(struct vfs *fs, const char *path)
{
    return mkdir(path, 0777) == -1 ? os_error(errno) : ERR_NONE;
}

static enum err vfs_rmdir(struct vfs *fs, const char *path)
{
    if (rmdir(path) == -1)
        return os_error(errno);
    os_tree_unlink(&os_vfs_of(fs)->tree, path);
    return ERR_NONE;
}

static enum err vfs_unlink(struct vfs *fs, const char *path)
{
    if (unlink(path) == -1)
        return os_error(errno);
    os_tree_unlink(&os_vfs_of(fs)->tree, path);
    return ERR_NONE;
}

static enum err vfs_rename(struct vfs *fs, const char *from, const char *to)
{
    struct os_tree *tree = &os_vfs_of(fs)->tree;
    struct os_rename r;
    enum err err = os_rename_prepare(tree, from, to, &r);
    if (err != ERR_NONE)
        return err;
    if (rename(from, to) == -1) {
        err = os_error(errno);
        os_rename_abort(tree, &r);
        return err;
    }
    os_rename_commit(tree, &r);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ listings */

/* All names are read before the first is told: the callback may change the directory. */
struct listing {
    struct buf names;   /* of each: 'd' or '-', the name, a zero */
    struct buf offsets; /* size_t: of each in names */
};

static enum err is_directory(DIR *dir, const struct dirent *e, bool *out)
{
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK) {
        *out = e->d_type == DT_DIR;
        return ERR_NONE;
    }
    struct stat st;
    *out = false;
    if (fstatat(dirfd(dir), e->d_name, &st, 0) == -1)
        return errno == ENOENT ? ERR_NONE : os_error(errno); /* a link to nowhere */
    *out = S_ISDIR(st.st_mode);
    return ERR_NONE;
}

static enum err listing_add(struct listing *l, DIR *dir, const struct dirent *e)
{
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return ERR_NONE;
    bool is_dir;
    size_t off = l->names.n;
    enum err err = is_directory(dir, e, &is_dir);
    if (err == ERR_NONE)
        err = buf_append(&l->offsets, &off, sizeof off);
    if (err == ERR_NONE)
        err = buf_append(&l->names, is_dir ? "d" : "-", 1);
    if (err == ERR_NONE)
        err = buf_append(&l->names, e->d_name, strlen(e->d_name) + 1);
    return err;
}

static enum err listing_read(struct listing *l, const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return os_error(errno);
    enum err err = ERR_NONE;
    while (err == ERR_NONE) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (e == NULL) {
            if (errno != 0)
                err = os_error(errno);
            break;
        }
        err = listing_add(l, dir, e);
    }
    closedir(dir);
    return err;
}

static int by_name(const void *a, const void *b, void *names)
{
    size_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return strcmp((char *)names + x + 1, (char *)names + y + 1);
}

static enum err vfs_list(struct vfs *fs, const char *path, vfs_list_fn fn, void *ctx)
{
    struct listing l;
    buf_init(&l.names);
    buf_init(&l.offsets);
    enum err err = listing_read(&l, path);
    size_t n = l.offsets.n / sizeof(size_t);
    if (n > 1)
        qsort_r(l.offsets.p, n, sizeof(size_t), by_name, l.names.p);
    for (size_t i = 0; i < n && err == ERR_NONE; i++) {
        size_t off;
        memcpy(&off, l.offsets.p + i * sizeof off, sizeof off);
        const char *name = (char *)l.names.p + off;
        err = fn(ctx, name + 1, *name == 'd');
    }
    buf_close(&l.names);
    buf_close(&l.offsets);
    return err;
}

/* ------------------------------------------------------------------ locks */

/* A lock of the open file description: unlike a classic record lock it survives other closes of the
 * file in this process and excludes the process itself; unlike flock it excludes Java's FileLock,
 * thus an Apache Kafka on the same directory. */
struct held_lock {
    struct list link;
    int fd;
    char path[];
};

static enum err lock_fd(const char *path, int *out)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s/.lock", path) >= (int)sizeof name)
        return ERR_INVALID;
    int fd;
    do
        fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd == -1 && errno == EINTR);
    if (fd == -1)
        return os_error(errno);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) == -1) {
        int errnum = errno;
        (void)close(fd);
        return errnum == EAGAIN || errnum == EACCES ? ERR_BUSY : os_error(errnum);
    }
    *out = fd;
    return ERR_NONE;
}

static enum err vfs_lock(struct vfs *fs, const char *path)
{
    struct held_lock *l = malloc(sizeof *l + strlen(path) + 1);
    if (l == NULL)
        return ERR_NOMEM;
    enum err err = lock_fd(path, &l->fd);
    if (err != ERR_NONE) {
        free(l);
        return err;
    }
    strcpy(l->path, path);
    list_init(&l->link);
    list_append(&os_vfs_of(fs)->locks, &l->link);
    return ERR_NONE;
}

static void lock_free(struct held_lock *l)
{
    list_remove(&l->link);
    (void)close(l->fd);
    free(l);
}

static void vfs_unlock(struct vfs *fs, const char *path)
{
    struct list *i, *next;
    LIST_EACH(i, next, &os_vfs_of(fs)->locks)
    {
        struct held_lock *l = LIST_ENTRY(i, struct held_lock, link);
        if (strcmp(l->path, path) == 0)
            lock_free(l);
    }
}

static enum err vfs_absolute(struct vfs *fs, const char *path, char *out, size_t n)
{
    size_t used = 0;
    if (path[0] != '/') {
        if (getcwd(out, n) == NULL)
            return errno == ERANGE ? ERR_TOO_LARGE : os_error(errno);
        used = strlen(out);
        if (used + 1 >= n)
            return ERR_TOO_LARGE;
        if (out[used - 1] != '/')
            out[used++] = '/';
    }
    for (const char *p = path; *p != '\0'; p++) {
        if (*p == '/' && used > 0 && out[used - 1] == '/')
            continue;
        if (used + 1 >= n)
            return ERR_TOO_LARGE;
        out[used++] = *p;
    }
    while (used > 1 && out[used - 1] == '/')
        used--;
    out[used] = '\0';
    return ERR_NONE;
}

void os_vfs_init(struct os_vfs *v, size_t fds_max)
{
    static const struct vfs_ops ops = {
        .open = os_file_open,
        .close = os_file_close,
        .pread = os_file_pread,
        .pread_now = os_file_pread_now,
        .pwritev = os_file_pwritev,
        .truncate = os_file_truncate,
        .size = os_file_size,
        .cached = os_file_cached,
        .stat = vfs_stat,
        .mkdir = vfs_mkdir,
        .rmdir = vfs_rmdir,
        .unlink = vfs_unlink,
        .rename = vfs_rename,
        .list = vfs_list,
        .lock = vfs_lock,
        .unlock = vfs_unlock,
        .absolute = vfs_absolute,
    };
    CHECK(fds_max > 0);
    *v = (struct os_vfs){.vfs = {&ops}, .fds_max = fds_max};
    uint64_t seed;
    os_random(&seed, sizeof seed);
    os_tree_init(&v->tree, seed);
    list_init(&v->with_fd);
    list_init(&v->locks);
}

void os_vfs_close(struct os_vfs *v)
{
    struct list *i, *next;
    LIST_EACH(i, next, &v->locks)
    lock_free(LIST_ENTRY(i, struct held_lock, link));
    CHECK(v->fds_n == 0);
    os_tree_close(&v->tree);
}
