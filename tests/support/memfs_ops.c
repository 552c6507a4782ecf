/* The vfs and disk operations over memfs' inodes, with their faults. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "support/memfs_impl.h"
#include "support/real_alloc.h"

struct memfs_file {
    struct file file;
    struct memfs_inode *inode; /* counted */
    uint64_t boot;
    bool readonly;
    char path[]; /* as opened: for faults by path */
};

static struct memfs *fs_of(struct vfs *vfs)
{
    return CONTAINER_OF(vfs, struct memfs, vfs);
}

static struct memfs_file *file_of(struct file *f)
{
    return CONTAINER_OF(f, struct memfs_file, file);
}

/* Counts an operation; the error that it must fail with, or none. */
static enum err enter(struct memfs *fs, enum memfs_op op, const char *path)
{
    struct memfs_fault *f = &fs->fault;
    fs->ops[op]++;
    if (fs->unplugged)
        return ERR_IO;
    if (f->nth == 0 || (f->kinds != 0 && (f->kinds & MEMFS_KIND(op)) == 0))
        return ERR_NONE;
    if (f->under != NULL && strncmp(path, f->under, strlen(f->under)) != 0)
        return ERR_NONE;
    if (f->nth > 1) {
        f->nth--;
        return ERR_NONE;
    }
    fs->fault_hit = true;
    if (!f->persistent)
        f->nth = 0;
    return f->err;
}

static enum err enter_file(struct file *f, enum memfs_op op)
{
    struct memfs *fs = fs_of(f->fs);
    struct memfs_file *m = file_of(f);
    enum err err = enter(fs, op, m->path);
    return m->boot != fs->boot ? ERR_CLOSED : err;
}

static bool full(const struct memfs *fs)
{
    return fs->limit_bytes > 0 && fs->used_bytes >= fs->limit_bytes;
}

static void resize(struct memfs *fs, struct memfs_inode *i, uint64_t n)
{
    memfs_bytes_resize(&i->bytes, n);
    memfs_inode_log(i, n, NULL, 0);
    i->mtime_ms = fs->wall_ms;
    memfs_inode_charge(fs, i);
}

static enum err find_or_create(struct memfs *fs, const char *path, enum file_open mode,
                               struct memfs_inode **out)
{
    struct memfs_place at;
    enum err err = memfs_walk(fs, path, &at);
    if (err != ERR_NONE)
        return err;
    *out = at.name[0] == '\0' ? at.dir : memfs_names_find(&at.dir->names, at.name);
    if (*out != NULL)
        return (*out)->is_dir ? ERR_INVALID : ERR_NONE;
    if (mode == FILE_READ)
        return ERR_NOENT;
    if (full(fs))
        return ERR_NOSPC;
    *out = memfs_create(fs, &at, false);
    return ERR_NONE;
}

static enum err op_open(struct vfs *vfs, const char *path, enum file_open mode, struct file **out)
{
    struct memfs *fs = fs_of(vfs);
    enum err err = enter(fs, MEMFS_OPEN, path);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *i;
    err = find_or_create(fs, path, mode, &i);
    if (err != ERR_NONE)
        return err;
    if (mode == FILE_CREATE && i->bytes.n > 0)
        resize(fs, i, 0);
    struct memfs_file *m = memfs_alloc(sizeof *m + strlen(path) + 1);
    m->file = (struct file){.fs = vfs, .refs = 1};
    m->inode = i;
    m->boot = fs->boot;
    m->readonly = mode == FILE_READ;
    strcpy(m->path, path);
    i->refs++;
    i->opens++;
    *out = &m->file;
    return ERR_NONE;
}

static void op_close(struct file *f)
{
    struct memfs *fs = fs_of(f->fs);
    struct memfs_file *m = file_of(f);
    m->inode->opens--;
    memfs_inode_charge(fs, m->inode);
    memfs_inode_unref(fs, m->inode);
    free(m);
}

static enum err op_pread(struct file *f, void *buf, size_t n, uint64_t off, size_t *got)
{
    enum err err = enter_file(f, MEMFS_READ);
    if (err != ERR_NONE)
        return err;
    struct memfs *fs = fs_of(f->fs);
    struct memfs_inode *i = file_of(f)->inode;
    size_t left = off < i->bytes.n ? i->bytes.n - off : 0;
    *got = n < left ? n : left;
    if (*got > 0)
        memcpy(buf, i->bytes.p + off, *got);
    fs->read_bytes += *got;
    i->warm = fs->warm;
    return ERR_NONE;
}

static bool op_cached(struct file *f, uint64_t off, uint64_t n)
{
    return file_of(f)->inode->warm == fs_of(f->fs)->warm;
}

static enum err op_pread_now(struct file *f, void *buf, size_t n, uint64_t off, size_t *got)
{
    *got = 0;
    return op_cached(f, off, n) ? op_pread(f, buf, n, off, got) : ERR_AGAIN;
}

static void write_prefix(struct memfs *fs, struct memfs_inode *i, const struct iov *iov,
                         uint64_t off, size_t n)
{
    if (n == 0)
        return;
    uint8_t *p = memfs_alloc(n);
    for (size_t done = 0; done < n; iov++) {
        size_t part = iov->n < n - done ? iov->n : n - done;
        if (part > 0)
            memcpy(p + done, iov->p, part);
        done += part;
    }
    memfs_bytes_write(&i->bytes, off, p, n);
    memfs_inode_log(i, off, p, n);
    i->mtime_ms = fs->wall_ms;
    i->warm = fs->warm;
    fs->write_bytes += n;
    memfs_inode_charge(fs, i);
}

/* How much of a write the disk has room for. */
static size_t room(const struct memfs *fs, const struct memfs_inode *i, uint64_t off, size_t n)
{
    if (fs->limit_bytes == 0 || off + n <= i->bytes.n)
        return n;
    uint64_t end = i->bytes.n + (full(fs) ? 0 : fs->limit_bytes - fs->used_bytes);
    if (end <= off)
        return 0;
    return end - off < n ? end - off : n;
}

static enum err op_pwritev(struct file *f, const struct iov *iov, size_t iov_n, uint64_t off)
{
    struct memfs *fs = fs_of(f->fs);
    struct memfs_inode *i = file_of(f)->inode;
    size_t n = 0;
    for (size_t k = 0; k < iov_n; k++)
        n += iov[k].n;
    enum err err = enter_file(f, MEMFS_WRITE);
    if (err == ERR_CLOSED)
        return err;
    if (file_of(f)->readonly && n > 0)
        return ERR_IO; /* EBADF */
    i->writes_seen++;
    if (err != ERR_NONE) {
        write_prefix(fs, i, iov, off, room(fs, i, off, rng_below(&fs->rng, n + 1)));
        return err;
    }
    size_t fits = room(fs, i, off, n);
    write_prefix(fs, i, iov, off, fits);
    return fits < n ? ERR_NOSPC : ERR_NONE;
}

static enum err op_truncate(struct file *f, uint64_t size)
{
    enum err err = enter_file(f, MEMFS_TRUNCATE);
    if (err != ERR_NONE)
        return err;
    struct memfs *fs = fs_of(f->fs);
    struct memfs_inode *i = file_of(f)->inode;
    if (file_of(f)->readonly)
        return ERR_INVALID;
    if (size > i->bytes.n && room(fs, i, i->bytes.n, size - i->bytes.n) < size - i->bytes.n)
        return ERR_NOSPC;
    f->generation++;
    resize(fs, i, size);
    return ERR_NONE;
}

static enum err op_size(struct file *f, uint64_t *out)
{
    enum err err = enter_file(f, MEMFS_SIZE);
    if (err == ERR_NONE)
        *out = file_of(f)->inode->bytes.n;
    return err;
}

static enum err op_stat(struct vfs *vfs, const char *path, struct file_stat *out)
{
    struct memfs *fs = fs_of(vfs);
    enum err err = enter(fs, MEMFS_STAT, path);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *i = memfs_lookup(fs, path);
    if (i == NULL)
        return ERR_NOENT;
    *out = (struct file_stat){i->bytes.n, i->mtime_ms, i->is_dir};
    return ERR_NONE;
}

static enum err op_mkdir(struct vfs *vfs, const char *path)
{
    struct memfs *fs = fs_of(vfs);
    struct memfs_place at;
    enum err err = enter(fs, MEMFS_MKDIR, path);
    if (err == ERR_NONE)
        err = memfs_walk(fs, path, &at);
    if (err != ERR_NONE)
        return err;
    if (at.name[0] == '\0' || memfs_names_find(&at.dir->names, at.name) != NULL)
        return ERR_EXIST;
    if (full(fs))
        return ERR_NOSPC;
    (void)memfs_create(fs, &at, true);
    return ERR_NONE;
}

static enum err take_away(struct vfs *vfs, const char *path, enum memfs_op op)
{
    struct memfs *fs = fs_of(vfs);
    struct memfs_place at;
    enum err err = enter(fs, op, path);
    if (err == ERR_NONE)
        err = memfs_walk(fs, path, &at);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *i = memfs_names_find(&at.dir->names, at.name);
    if (i == NULL)
        return ERR_NOENT;
    if (i->is_dir != (op == MEMFS_RMDIR))
        return i->is_dir ? ERR_INVALID : ERR_NOENT; /* EISDIR, ENOTDIR */
    if (i->names.n > 0)
        return ERR_EXIST;
    memfs_change_make(fs, i, &at, NULL);
    return ERR_NONE;
}

static enum err op_rmdir(struct vfs *vfs, const char *path)
{
    return take_away(vfs, path, MEMFS_RMDIR);
}

static enum err op_unlink(struct vfs *vfs, const char *path)
{
    return take_away(vfs, path, MEMFS_UNLINK);
}

/* True if dir is i or lies below it. */
static bool is_below(const struct memfs_inode *i, const struct memfs_inode *dir)
{
    if (i == dir)
        return true;
    for (size_t k = 0; k < i->names.n; k++) {
        if (i->names.e[k].inode->is_dir && is_below(i->names.e[k].inode, dir))
            return true;
    }
    return false;
}

static enum err op_rename(struct vfs *vfs, const char *from, const char *to)
{
    struct memfs *fs = fs_of(vfs);
    struct memfs_place a, b;
    enum err err = enter(fs, MEMFS_RENAME, from);
    if (err == ERR_NONE)
        err = memfs_walk(fs, from, &a);
    if (err == ERR_NONE)
        err = memfs_walk(fs, to, &b);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *i = memfs_names_find(&a.dir->names, a.name);
    struct memfs_inode *old = memfs_names_find(&b.dir->names, b.name);
    if (i == NULL)
        return ERR_NOENT;
    if (i == old)
        return ERR_NONE;
    if (b.name[0] == '\0' || is_below(i, b.dir))
        return ERR_INVALID;
    if (old != NULL && is_below(old, a.dir))
        return ERR_EXIST; /* over a directory above it */
    if (old != NULL && old->is_dir != i->is_dir)
        return old->is_dir ? ERR_INVALID : ERR_NOENT; /* EISDIR, ENOTDIR */
    if (old != NULL && old->names.n > 0)
        return ERR_EXIST;
    memfs_change_make(fs, i, &a, &b);
    return ERR_NONE;
}

static void listing_end(struct memfs *fs, struct memfs_listing *l)
{
    list_remove(&l->link);
    memfs_names_clear(fs, &l->names);
    free(l->names.e);
    free(l);
}

void memfs_leave(struct memfs *fs)
{
    while (!list_empty(&fs->listings))
        listing_end(fs, LIST_ENTRY(fs->listings.next, struct memfs_listing, link));
}

/* fn may change the directory: it sees the names of the beginning. */
static enum err op_list(struct vfs *vfs, const char *path, vfs_list_fn fn, void *ctx)
{
    struct memfs *fs = fs_of(vfs);
    enum err err = enter(fs, MEMFS_LIST, path);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *dir = memfs_lookup(fs, path);
    if (dir == NULL || !dir->is_dir)
        return ERR_NOENT;
    struct memfs_listing *l = memfs_alloc(sizeof *l);
    list_append(&fs->listings, &l->link);
    for (size_t k = 0; k < dir->names.n; k++)
        memfs_names_put(fs, &l->names, dir->names.e[k].name, dir->names.e[k].inode);
    for (size_t k = 0; k < l->names.n && err == ERR_NONE; k++)
        err = fn(ctx, l->names.e[k].name, l->names.e[k].inode->is_dir);
    listing_end(fs, l);
    return err;
}

static enum err lock_file(struct memfs *fs, const char *path, struct memfs_inode **out)
{
    char *name = memfs_alloc(strlen(path) + sizeof "/.lock");
    strcat(strcpy(name, path), "/.lock");
    enum err err = find_or_create(fs, name, FILE_WRITE, out);
    free(name);
    return err;
}

static enum err op_lock(struct vfs *vfs, const char *path)
{
    struct memfs *fs = fs_of(vfs);
    struct memfs_inode *i;
    enum err err = enter(fs, MEMFS_LOCK, path);
    if (err == ERR_NONE)
        err = lock_file(fs, path, &i);
    if (err != ERR_NONE)
        return err;
    if (i->locked)
        return ERR_BUSY;
    i->locked = true;
    return ERR_NONE;
}

static void op_unlock(struct vfs *vfs, const char *path)
{
    struct memfs_inode *i;
    if (lock_file(fs_of(vfs), path, &i) == ERR_NONE)
        i->locked = false;
}

static enum err op_sync(struct disk *d, const char *path)
{
    struct memfs *fs = fs_of(d->fs);
    enum err err = enter(fs, MEMFS_SYNC, path);
    struct memfs_inode *i = memfs_lookup(fs, path);
    if (i == NULL || i->is_dir)
        return err != ERR_NONE ? err : ERR_NOENT;
    if (err != ERR_NONE)
        i->sync_failed = true;
    else
        memfs_inode_sync(i);
    return err;
}

static void op_sync_begin(struct disk *d, const char *path)
{
    (void)d; /* durable is what sync made so */
    (void)path;
}

static enum err op_sync_dir(struct disk *d, const char *path)
{
    struct memfs *fs = fs_of(d->fs);
    enum err err = enter(fs, MEMFS_SYNC_DIR, path);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *dir = memfs_lookup(fs, path);
    if (dir == NULL || !dir->is_dir)
        return ERR_NOENT;
    memfs_changes_sync(fs, dir);
    return ERR_NONE;
}

static enum err op_warm(struct disk *d, const char *path, uint64_t from, uint64_t n)
{
    struct memfs *fs = fs_of(d->fs);
    enum err err = enter(fs, MEMFS_READ, path);
    if (err != ERR_NONE)
        return err;
    struct memfs_inode *i = memfs_lookup(fs, path);
    if (i == NULL || i->is_dir)
        return ERR_NOENT;
    i->warm = fs->warm;
    return ERR_NONE;
}

/* Paths begin at the root, with a slash or without. */
static enum err op_absolute(struct vfs *vfs, const char *path, char *out, size_t n)
{
    (void)vfs;
    const int used = snprintf(out, n, "%s%s", path[0] == '/' ? "" : "/", path);
    return used < 0 || (size_t)used >= n ? ERR_TOO_LARGE : ERR_NONE;
}

static enum err op_space(struct disk *d, const char *path, struct disk_space *out)
{
    struct memfs *fs = fs_of(d->fs);
    enum err err = enter(fs, MEMFS_SPACE, path);
    if (err != ERR_NONE)
        return err;
    if (memfs_lookup(fs, path) == NULL)
        return ERR_NOENT;
    const uint64_t total = fs->limit_bytes > 0 ? fs->limit_bytes : MEMFS_UNLIMITED_BYTES;
    const uint64_t used = fs->used_bytes < total ? fs->used_bytes : total;
    *out = (struct disk_space){total, total - used};
    return ERR_NONE;
}

void memfs_ops_init(struct memfs *fs)
{
    static const struct vfs_ops ops = {
        .open = op_open,
        .close = op_close,
        .pread = op_pread,
        .pread_now = op_pread_now,
        .pwritev = op_pwritev,
        .truncate = op_truncate,
        .size = op_size,
        .cached = op_cached,
        .stat = op_stat,
        .mkdir = op_mkdir,
        .rmdir = op_rmdir,
        .unlink = op_unlink,
        .rename = op_rename,
        .list = op_list,
        .lock = op_lock,
        .unlock = op_unlock,
        .absolute = op_absolute,
    };
    fs->vfs.ops = &ops;
    fs->disk = (struct disk){&fs->vfs, op_sync, op_sync_begin, op_sync_dir, op_space, op_warm};
}
