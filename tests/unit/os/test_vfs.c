#include "os/vfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/test.h"

#define FDS_MAX 4
#define FILES_N 20

struct fixture {
    struct os_vfs v;
    struct vfs *fs;
    const struct vfs_ops *ops;
    const char *dir;
    char path[PATH_MAX], other[PATH_MAX];
};

static void set_up(struct fixture *x)
{
    os_vfs_init(&x->v, FDS_MAX);
    x->fs = &x->v.vfs;
    x->ops = x->fs->ops;
    x->dir = test_dir();
}

static void tear_down(struct fixture *x)
{
    os_vfs_close(&x->v);
}

static const char *at(struct fixture *x, const char *name)
{
    snprintf(x->path, sizeof x->path, "%s/%s", x->dir, name);
    return x->path;
}

static const char *also_at(struct fixture *x, const char *name)
{
    snprintf(x->other, sizeof x->other, "%s/%s", x->dir, name);
    return x->other;
}

static struct file *open_file(struct fixture *x, const char *name, enum file_open mode)
{
    struct file *f = NULL;
    CU_ASSERT_EQUAL_FATAL(x->ops->open(x->fs, at(x, name), mode, &f), ERR_NONE);
    return f;
}

static enum err write_at(struct file *f, const char *s, uint64_t off)
{
    struct iov iov = {s, strlen(s)};
    return f->fs->ops->pwritev(f, &iov, 1, off);
}

static bool holds(struct file *f, const char *s)
{
    char text[100];
    size_t got;
    return f->fs->ops->pread(f, text, sizeof text, 0, &got) == ERR_NONE && got == strlen(s) &&
           memcmp(text, s, got) == 0;
}

/* Evicts every descriptor but those of files used later. */
static void take_descriptors(struct fixture *x)
{
    struct file *f[FDS_MAX];
    for (size_t i = 0; i < FDS_MAX; i++)
        f[i] = open_file(x, "evict", FILE_WRITE);
    for (size_t i = 0; i < FDS_MAX; i++)
        file_unref(f[i]);
}

static int open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static void test_vfs_keeps_few_descriptors(void)
{
    struct fixture x;
    set_up(&x);
    int before = open_fds();
    struct file *f[FILES_N];
    char name[16];
    for (int i = 0; i < FILES_N; i++) {
        sprintf(name, "f%d", i);
        f[i] = open_file(&x, name, FILE_CREATE);
        CU_ASSERT_EQUAL(write_at(f[i], name, 0), ERR_NONE);
        CU_ASSERT(x.v.fds_n <= FDS_MAX && open_fds() - before <= FDS_MAX);
    }
    for (int i = 0; i < 3 * FILES_N; i++) {
        sprintf(name, "f%d", i * 7 % FILES_N);
        CU_ASSERT_TRUE(holds(f[i * 7 % FILES_N], name));
    }
    CU_ASSERT_EQUAL(open_fds() - before, FDS_MAX);
    CU_ASSERT(x.v.reopened_n >= 3 * FILES_N - FDS_MAX);
    for (int i = 0; i < FILES_N; i++)
        file_unref(f[i]);
    CU_ASSERT_EQUAL(open_fds(), before);
    tear_down(&x);
}

/* The one in use stays while others come and go. */
static void test_vfs_evicts_the_least_recently_used(void)
{
    struct fixture x;
    set_up(&x);
    struct file *hot = open_file(&x, "hot", FILE_WRITE);
    struct file *cold = open_file(&x, "cold", FILE_WRITE);
    struct file *f[FILES_N];
    char name[16];
    int fd, again;
    CU_ASSERT_EQUAL(os_file_fd(hot, &fd), ERR_NONE);
    for (int i = 0; i < FILES_N; i++) {
        sprintf(name, "f%d", i);
        f[i] = open_file(&x, name, FILE_WRITE);
        CU_ASSERT_EQUAL(os_file_fd(hot, &again), ERR_NONE);
    }
    CU_ASSERT_EQUAL(again, fd);
    CU_ASSERT_EQUAL(x.v.reopened_n, 0);
    CU_ASSERT_EQUAL(os_file_fd(cold, &again), ERR_NONE);
    CU_ASSERT_EQUAL(x.v.reopened_n, 1);
    for (int i = 0; i < FILES_N; i++)
        file_unref(f[i]);
    file_unref(hot);
    file_unref(cold);
    tear_down(&x);
}

static void test_vfs_open_modes_and_errors(void)
{
    struct fixture x;
    set_up(&x);
    struct file *f;
    CU_ASSERT_EQUAL(x.ops->open(x.fs, at(&x, "none"), FILE_READ, &f), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->open(x.fs, at(&x, "none/f"), FILE_WRITE, &f), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->open(x.fs, x.dir, FILE_READ, &f), ERR_INVALID);
    CU_ASSERT_EQUAL(x.ops->open(x.fs, x.dir, FILE_WRITE, &f), ERR_INVALID);
    f = open_file(&x, "f", FILE_WRITE);
    CU_ASSERT_EQUAL(write_at(f, "some text", 0), ERR_NONE);
    CU_ASSERT_EQUAL(write_at(f, "x", UINT64_MAX), ERR_INVALID);
    file_unref(f);
    f = open_file(&x, "f", FILE_READ);
    CU_ASSERT_TRUE(holds(f, "some text"));
    CU_ASSERT_NOT_EQUAL(write_at(f, "x", 0), ERR_NONE);
    file_unref(f);
    f = open_file(&x, "f", FILE_WRITE);
    CU_ASSERT_TRUE(holds(f, "some text"));
    CU_ASSERT_EQUAL(x.ops->truncate(f, 4), ERR_NONE);
    CU_ASSERT_EQUAL(f->generation, 1);
    CU_ASSERT_TRUE(holds(f, "some"));
    CU_ASSERT_TRUE(x.ops->cached(f, 0, 4));
    file_unref(f);
    f = open_file(&x, "f", FILE_CREATE);
    uint64_t size;
    CU_ASSERT_EQUAL(x.ops->size(f, &size), ERR_NONE);
    CU_ASSERT_EQUAL(size, 0);
    file_unref(f);
    tear_down(&x);
}

static void test_vfs_writes_more_pieces_than_the_kernel_takes(void)
{
    struct fixture x;
    set_up(&x);
    enum { PIECES = 3 * IOV_MAX + 17 };
    static char bytes[PIECES * 3], read_back[sizeof bytes];
    static struct iov iov[PIECES];
    size_t n = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31 >> 3);
    for (size_t i = 0; i < PIECES; i++) {
        iov[i] = (struct iov){bytes + n, i % 4}; /* empty ones too */
        n += i % 4;
    }
    struct file *f = open_file(&x, "f", FILE_WRITE);
    CU_ASSERT_EQUAL(x.ops->pwritev(f, iov, PIECES, 5), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->pwritev(f, iov, 0, 5), ERR_NONE);
    size_t got;
    CU_ASSERT_EQUAL(x.ops->pread(f, read_back, sizeof read_back, 5, &got), ERR_NONE);
    CU_ASSERT_EQUAL(got, n);
    CU_ASSERT_EQUAL(memcmp(read_back, bytes, n), 0);
    file_unref(f);
    tear_down(&x);
}

static void test_vfs_files_follow_renames(void)
{
    struct fixture x;
    set_up(&x);
    CU_ASSERT_EQUAL(x.ops->mkdir(x.fs, at(&x, "t-0")), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->mkdir(x.fs, at(&x, "t-0")), ERR_EXIST);
    struct file *a = open_file(&x, "t-0/a", FILE_CREATE);
    struct file *b = open_file(&x, "t-0/b", FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(a, "A", 0), ERR_NONE);
    CU_ASSERT_EQUAL(write_at(b, "B", 0), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "t-0"), also_at(&x, "t-0.delete")), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "t-0.delete/a"), also_at(&x, "moved")), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "t-0"), also_at(&x, "t-1")), ERR_NOENT);
    /* another directory of the old name is another directory */
    CU_ASSERT_EQUAL(x.ops->mkdir(x.fs, at(&x, "t-0")), ERR_NONE);
    struct file *other = open_file(&x, "t-0/b", FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(other, "other", 0), ERR_NONE);
    take_descriptors(&x);
    CU_ASSERT_TRUE(holds(a, "A"));
    CU_ASSERT_TRUE(holds(b, "B"));
    CU_ASSERT_TRUE(holds(other, "other"));
    CU_ASSERT_EQUAL(x.v.reopened_n, 3);
    file_unref(a);
    file_unref(b);
    file_unref(other);
    tear_down(&x);
}

static void test_vfs_rename_that_fails_changes_nothing(void)
{
    struct fixture x;
    set_up(&x);
    CU_ASSERT_EQUAL(x.ops->mkdir(x.fs, at(&x, "d")), ERR_NONE);
    struct file *a = open_file(&x, "a", FILE_CREATE);
    struct file *in_d = open_file(&x, "d/f", FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(a, "A", 0), ERR_NONE);
    CU_ASSERT_EQUAL(write_at(in_d, "F", 0), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "a"), also_at(&x, "d")), ERR_INVALID);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "a"), also_at(&x, "none/b")), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "d"), also_at(&x, "d/e")), ERR_INVALID);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "a"), also_at(&x, "a")), ERR_NONE);
    take_descriptors(&x);
    CU_ASSERT_TRUE(holds(a, "A"));
    CU_ASSERT_TRUE(holds(in_d, "F"));
    file_unref(a);
    file_unref(in_d);
    tear_down(&x);
}

/* A file that was unlinked or replaced never turns into its successor. */
static void test_vfs_gone_files_stay_gone(void)
{
    struct fixture x;
    set_up(&x);
    struct file *unlinked = open_file(&x, "u", FILE_CREATE);
    struct file *replaced = open_file(&x, "r", FILE_CREATE);
    struct file *behind = open_file(&x, "b", FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(unlinked, "old", 0), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->unlink(x.fs, at(&x, "u")), ERR_NONE);
    CU_ASSERT_TRUE(holds(unlinked, "old"));
    CU_ASSERT_EQUAL(unlink(at(&x, "b")), 0); /* by somebody else */
    struct file *u2 = open_file(&x, "u", FILE_CREATE);
    struct file *b2 = open_file(&x, "b", FILE_CREATE);
    CU_ASSERT_EQUAL(x.ops->rename(x.fs, at(&x, "u"), also_at(&x, "r")), ERR_NONE);
    take_descriptors(&x);
    CU_ASSERT_FALSE(holds(unlinked, ""));
    CU_ASSERT_FALSE(holds(replaced, ""));
    CU_ASSERT_FALSE(holds(behind, ""));
    int fd;
    CU_ASSERT_EQUAL(os_file_fd(unlinked, &fd), ERR_NOENT);
    CU_ASSERT_EQUAL(os_file_fd(replaced, &fd), ERR_NOENT);
    CU_ASSERT_EQUAL(os_file_fd(behind, &fd), ERR_NOENT);
    CU_ASSERT_TRUE(holds(u2, ""));
    CU_ASSERT_TRUE(holds(b2, ""));
    file_unref(unlinked);
    file_unref(replaced);
    file_unref(behind);
    file_unref(u2);
    file_unref(b2);
    tear_down(&x);
}

static enum err collect(void *ctx, const char *name, bool is_dir)
{
    strcat(strcat(ctx, name), is_dir ? "/ " : " ");
    return ERR_NONE;
}

static enum err refuse(void *ctx, const char *name, bool is_dir)
{
    ++*(int *)ctx;
    return ERR_CANCELLED;
}

static void test_vfs_lists_in_byte_order(void)
{
    struct fixture x;
    set_up(&x);
    static const char *const names[] = {"b", "a", "B", "a-10", "a-9", "\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_N(names); i++)
        file_unref(open_file(&x, names[i], FILE_CREATE));
    CU_ASSERT_EQUAL(x.ops->mkdir(x.fs, at(&x, "aa")), ERR_NONE);
    CU_ASSERT_EQUAL(symlink("aa", at(&x, "link")), 0);
    CU_ASSERT_EQUAL(symlink("nowhere", at(&x, "lost")), 0);
    char text[200] = "";
    CU_ASSERT_EQUAL(x.ops->list(x.fs, x.dir, collect, text), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(text, "B a a-10 a-9 aa/ b link/ lost \xc3\xa4 ");
    int calls = 0;
    CU_ASSERT_EQUAL(x.ops->list(x.fs, x.dir, refuse, &calls), ERR_CANCELLED);
    CU_ASSERT_EQUAL(calls, 1);
    CU_ASSERT_EQUAL(x.ops->list(x.fs, at(&x, "none"), refuse, &calls), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->list(x.fs, at(&x, "a"), refuse, &calls), ERR_NOENT);
    tear_down(&x);
}

static void test_vfs_stat_and_removal(void)
{
    struct fixture x;
    set_up(&x);
    struct file *f = open_file(&x, "f", FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(f, "12345", 0), ERR_NONE);
    file_unref(f);
    struct timespec times[2] = {{1700000000, 250 * 1000000}, {1700000000, 250 * 1000000}};
    CU_ASSERT_EQUAL(utimensat(AT_FDCWD, at(&x, "f"), times, 0), 0);
    struct file_stat st;
    CU_ASSERT_EQUAL(x.ops->stat(x.fs, at(&x, "f"), &st), ERR_NONE);
    CU_ASSERT(st.size_bytes == 5 && st.mtime_ms == 1700000000250 && !st.is_dir);
    CU_ASSERT_EQUAL(x.ops->stat(x.fs, x.dir, &st), ERR_NONE);
    CU_ASSERT_TRUE(st.is_dir);
    CU_ASSERT_EQUAL(x.ops->rmdir(x.fs, x.dir), ERR_EXIST);
    CU_ASSERT_EQUAL(x.ops->rmdir(x.fs, at(&x, "f")), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->unlink(x.fs, x.dir), ERR_INVALID);
    CU_ASSERT_EQUAL(x.ops->unlink(x.fs, at(&x, "f")), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->unlink(x.fs, at(&x, "f")), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->stat(x.fs, at(&x, "f"), &st), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->mkdir(x.fs, at(&x, "d")), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->rmdir(x.fs, at(&x, "d")), ERR_NONE);
    tear_down(&x);
}

/* What another process gets: 0 when it is given the lock. */
static int lock_elsewhere(struct fixture *x)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct os_vfs v;
        os_vfs_init(&v, 1);
        _exit(v.vfs.ops->lock(&v.vfs, x->dir));
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void test_vfs_lock_excludes_others(void)
{
    struct fixture x;
    set_up(&x);
    CU_ASSERT_EQUAL(lock_elsewhere(&x), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->lock(x.fs, x.dir), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->lock(x.fs, x.dir), ERR_BUSY);
    CU_ASSERT_EQUAL(lock_elsewhere(&x), ERR_BUSY);
    /* Java's FileLock: a classic record lock */
    pid_t pid = fork();
    if (pid == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(at(&x, ".lock"), O_RDWR);
        _exit(fcntl(fd, F_SETLK, &whole) == -1 ? 1 : 0);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 1);
    x.ops->unlock(x.fs, x.dir);
    CU_ASSERT_EQUAL(lock_elsewhere(&x), ERR_NONE);
    CU_ASSERT_EQUAL(x.ops->lock(x.fs, at(&x, "none")), ERR_NOENT);
    CU_ASSERT_EQUAL(x.ops->lock(x.fs, x.dir), ERR_NONE);
    tear_down(&x);
    CU_ASSERT_EQUAL(lock_elsewhere(&x), ERR_NONE);
}

/* Out of descriptors in the whole process: the vfs gives up its own and goes on. */
static void test_vfs_yields_descriptors_to_the_process(void)
{
    struct fixture x;
    set_up(&x);
    struct file *a = open_file(&x, "a", FILE_CREATE);
    struct file *b = open_file(&x, "b", FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(a, "A", 0), ERR_NONE);
    struct rlimit before, none;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct file *c;
    enum err err = x.ops->open(x.fs, at(&x, "c"), FILE_CREATE, &c);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &before), 0);
    CU_ASSERT_EQUAL(err, ERR_NFILE);
    CU_ASSERT_EQUAL(x.v.fds_n, 0);
    CU_ASSERT_TRUE(holds(a, "A"));
    file_unref(a);
    file_unref(b);
    tear_down(&x);
}

static enum err workload(struct fixture *x)
{
    struct file *f;
    enum err err = x->ops->open(x->fs, at(x, "f"), FILE_CREATE, &f);
    if (err != ERR_NONE)
        return err;
    err = write_at(f, "text", 0);
    if (err == ERR_NONE)
        err = x->ops->rename(x->fs, at(x, "f"), also_at(x, "g"));
    char text[100] = "";
    if (err == ERR_NONE)
        err = x->ops->list(x->fs, x->dir, collect, text);
    if (err == ERR_NONE)
        err = x->ops->lock(x->fs, x->dir);
    x->ops->unlock(x->fs, x->dir);
    CU_ASSERT_TRUE(holds(f, "text"));
    file_unref(f);
    return err;
}

static void test_vfs_survives_each_failed_allocation(void)
{
    long n = 0;
    bool hit;
    do {
        struct fixture x;
        set_up(&x);
        fault_alloc_arm(++n, false);
        enum err err = workload(&x);
        hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(err, hit ? ERR_NOMEM : ERR_NONE);
        CU_ASSERT_EQUAL(workload(&x), ERR_NONE);
        tear_down(&x);
    } while (hit);
    CU_ASSERT(n > 10);
}

static enum err absolute(struct fixture *x, const char *path, size_t n)
{
    return x->ops->absolute(x->fs, path, x->path, n);
}

static void test_vfs_absolute_paths(void)
{
    struct fixture x;
    char here[PATH_MAX - 10];
    set_up(&x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof here));
    CU_ASSERT_EQUAL(absolute(&x, "/a//b/./c///", PATH_MAX), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(x.path, "/a/b/./c");
    CU_ASSERT_EQUAL(absolute(&x, "//", PATH_MAX), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(x.path, "/");
    CU_ASSERT_EQUAL(absolute(&x, "data/", PATH_MAX), ERR_NONE);
    snprintf(x.other, sizeof x.other, "%s/data", here);
    CU_ASSERT_STRING_EQUAL(x.path, x.other);
    CU_ASSERT_EQUAL(absolute(&x, "data", strlen(x.other) + 1), ERR_NONE);
    for (size_t n = 1; n <= strlen(x.other); n++)
        CU_ASSERT_EQUAL(absolute(&x, "data", n), ERR_TOO_LARGE);
    CU_ASSERT_EQUAL(chdir("/"), 0);
    CU_ASSERT_EQUAL(absolute(&x, "data", PATH_MAX), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(x.path, "/data");
    CU_ASSERT_EQUAL(chdir(here), 0);
    tear_down(&x);
}

TEST_MAIN(TEST(test_vfs_absolute_paths), TEST(test_vfs_keeps_few_descriptors),
          TEST(test_vfs_evicts_the_least_recently_used), TEST(test_vfs_open_modes_and_errors),
          TEST(test_vfs_writes_more_pieces_than_the_kernel_takes),
          TEST(test_vfs_files_follow_renames), TEST(test_vfs_rename_that_fails_changes_nothing),
          TEST(test_vfs_gone_files_stay_gone), TEST(test_vfs_lists_in_byte_order),
          TEST(test_vfs_stat_and_removal), TEST(test_vfs_lock_excludes_others),
          TEST(test_vfs_yields_descriptors_to_the_process),
          TEST(test_vfs_survives_each_failed_allocation))
