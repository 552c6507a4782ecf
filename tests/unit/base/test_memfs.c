/* memfs stands in for a disk in all other tests, so it is tested like shipped code. */
#include "support/memfs.h"

#include <setjmp.h>
#include <stdio.h>

#include "support/memenv.h"
#include "support/test.h"

#define ROUNDS 300

static struct file *open_file(struct memfs *fs, const char *path, enum file_open mode)
{
    struct file *f = NULL;
    CU_ASSERT_EQUAL_FATAL(fs->vfs.ops->open(&fs->vfs, path, mode, &f), ERR_NONE);
    return f;
}

static enum err write_at(struct file *f, const char *s, uint64_t off)
{
    struct iov iov[2] = {{s, strlen(s) / 2}, {s + strlen(s) / 2, strlen(s) - strlen(s) / 2}};
    return f->fs->ops->pwritev(f, iov, 2, off);
}

static void write_path(struct memfs *fs, const char *path, const char *s)
{
    struct file *f = open_file(fs, path, FILE_CREATE);
    CU_ASSERT_EQUAL(write_at(f, s, 0), ERR_NONE);
    file_unref(f);
}

static bool holds(struct memfs *fs, const char *path, const char *s)
{
    size_t n;
    const uint8_t *p = memfs_get(fs, path, &n);
    return p != NULL && n == strlen(s) && memcmp(p, s, n) == 0;
}

static bool exists(struct memfs *fs, const char *path)
{
    struct file_stat st;
    return fs->vfs.ops->stat(&fs->vfs, path, &st) == ERR_NONE;
}

static void test_memfs_reads_what_was_written(void)
{
    struct memfs fs;
    memfs_init(&fs, 1);
    const struct vfs_ops *ops = fs.vfs.ops;
    struct file *f = open_file(&fs, "/a", FILE_WRITE);
    CU_ASSERT_EQUAL(write_at(f, "world", 6), ERR_NONE);
    CU_ASSERT_EQUAL(write_at(f, "hello ", 0), ERR_NONE);
    char text[32];
    size_t got;
    CU_ASSERT_EQUAL(ops->pread(f, text, sizeof text, 3, &got), ERR_NONE);
    CU_ASSERT_EQUAL(got, 8);
    CU_ASSERT_EQUAL(memcmp(text, "lo world", 8), 0);
    CU_ASSERT_EQUAL(ops->pread(f, text, 3, 99, &got), ERR_NONE);
    CU_ASSERT_EQUAL(got, 0);
    CU_ASSERT_EQUAL(ops->truncate(f, 5), ERR_NONE);
    CU_ASSERT_EQUAL(f->generation, 1);
    uint64_t size;
    CU_ASSERT_EQUAL(ops->size(f, &size), ERR_NONE);
    CU_ASSERT_EQUAL(size, 5);
    CU_ASSERT_EQUAL(memfs_writes(&fs, "/a"), 2);
    CU_ASSERT_EQUAL(fs.write_bytes, 11);
    CU_ASSERT_EQUAL(fs.used_bytes, 5);
    file_unref(f);
    struct file *none;
    CU_ASSERT_EQUAL(ops->open(&fs.vfs, "/b", FILE_READ, &none), ERR_NOENT);
    CU_ASSERT_EQUAL(ops->open(&fs.vfs, "/d/b", FILE_WRITE, &none), ERR_NOENT);
    CU_ASSERT_EQUAL(fs.ops[MEMFS_OPEN], 3);
    memfs_close(&fs);
}

static enum err collect(void *ctx, const char *name, bool is_dir)
{
    strcat(strcat(ctx, name), is_dir ? "/ " : " ");
    return ERR_NONE;
}

static void test_memfs_names(void)
{
    struct memfs fs;
    memfs_init(&fs, 1);
    const struct vfs_ops *ops = fs.vfs.ops;
    CU_ASSERT_EQUAL(ops->mkdir(&fs.vfs, "/d"), ERR_NONE);
    CU_ASSERT_EQUAL(ops->mkdir(&fs.vfs, "/d"), ERR_EXIST);
    CU_ASSERT_EQUAL(ops->mkdir(&fs.vfs, "/x/y"), ERR_NOENT);
    CU_ASSERT_EQUAL(ops->mkdir(&fs.vfs, "/d/e"), ERR_NONE);
    write_path(&fs, "/d/b", "bb");
    write_path(&fs, "/d/a", "aa");
    write_path(&fs, "/d/B", "BB");
    char names[100] = "";
    CU_ASSERT_EQUAL(ops->list(&fs.vfs, "/d/", collect, names), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(names, "B a b e/ ");
    CU_ASSERT_EQUAL(ops->rename(&fs.vfs, "/d/a", "/d/b"), ERR_NONE);
    CU_ASSERT_TRUE(holds(&fs, "/d/b", "aa"));
    CU_ASSERT_FALSE(exists(&fs, "/d/a"));
    CU_ASSERT_EQUAL(ops->rename(&fs.vfs, "/d/a", "/d/c"), ERR_NOENT);
    CU_ASSERT_EQUAL(ops->rename(&fs.vfs, "/d", "/d/e/f"), ERR_INVALID);
    CU_ASSERT_EQUAL(ops->rename(&fs.vfs, "/d", "/z"), ERR_NONE);
    CU_ASSERT_TRUE(holds(&fs, "z/b", "aa"));
    CU_ASSERT_EQUAL(ops->rmdir(&fs.vfs, "/z"), ERR_EXIST);
    CU_ASSERT_EQUAL(ops->unlink(&fs.vfs, "/z/e"), ERR_INVALID);
    CU_ASSERT_EQUAL(ops->rmdir(&fs.vfs, "/z/e"), ERR_NONE);
    CU_ASSERT_EQUAL(ops->unlink(&fs.vfs, "/z/b"), ERR_NONE);
    CU_ASSERT_EQUAL(ops->unlink(&fs.vfs, "/z/b"), ERR_NOENT);
    CU_ASSERT_EQUAL(ops->unlink(&fs.vfs, "/z/B"), ERR_NONE);
    CU_ASSERT_EQUAL(ops->rmdir(&fs.vfs, "/z"), ERR_NONE);
    CU_ASSERT_EQUAL(fs.used_bytes, 0);
    memfs_close(&fs);
}

static void test_memfs_crash_keeps_what_was_synced(void)
{
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        memfs_mkdirs(&fs, "/d");
        write_path(&fs, "/d/a", "first");
        CU_ASSERT_EQUAL(fs.disk.sync(&fs.disk, "/d/a"), ERR_NONE);
        CU_ASSERT_EQUAL(fs.disk.sync_dir(&fs.disk, "/d"), ERR_NONE);
        struct file *f = open_file(&fs, "/d/a", FILE_WRITE);
        CU_ASSERT_EQUAL(write_at(f, "second", 5), ERR_NONE);
        memfs_crash(&fs, &rng);
        size_t n;
        const uint8_t *p = memfs_get(&fs, "/d/a", &n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        CU_ASSERT(n >= 5 && n <= 11 && memcmp(p, "first", 5) == 0);
        CU_ASSERT_EQUAL(write_at(f, "x", 0), ERR_CLOSED);
        CU_ASSERT_FALSE(fs.vfs.ops->cached(f, 0, 1));
        file_unref(f);
        memfs_close(&fs);
    }
}

/* Every outcome that the model allows is seen, no other: which of two writes were kept. */
static void test_memfs_crash_loses_writes_independently(void)
{
    bool seen[4] = {false}, torn = false;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        memfs_put(&fs, "/a", "....", 4);
        struct file *f = open_file(&fs, "/a", FILE_WRITE);
        CU_ASSERT_EQUAL(write_at(f, "11", 0), ERR_NONE);
        CU_ASSERT_EQUAL(write_at(f, "22", 2), ERR_NONE);
        file_unref(f);
        memfs_crash(&fs, &rng);
        size_t n;
        const char *p = (const char *)memfs_get(&fs, "/a", &n);
        CU_ASSERT_EQUAL_FATAL(n, 4);
        if (p[0] == p[1] && p[2] == p[3])
            seen[(p[0] == '1') + 2 * (p[2] == '2')] = true;
        else
            torn = true;
        memfs_close(&fs);
    }
    CU_ASSERT(seen[0] && seen[1] && seen[2] && seen[3] && torn);
}

/* The way to replace a checkpoint: at any crash the old or the new one is there, whole. */
static void test_memfs_rename_is_atomic(void)
{
    bool old_seen = false, new_seen = false, temp_seen = false;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        memfs_put(&fs, "/d/checkpoint", "old", 3);
        write_path(&fs, "/d/checkpoint.tmp", "new");
        CU_ASSERT_EQUAL(fs.disk.sync(&fs.disk, "/d/checkpoint.tmp"), ERR_NONE);
        CU_ASSERT_EQUAL(fs.vfs.ops->rename(&fs.vfs, "/d/checkpoint.tmp", "/d/checkpoint"),
                        ERR_NONE);
        bool synced = seed % 4 == 0;
        if (synced)
            CU_ASSERT_EQUAL(fs.disk.sync_dir(&fs.disk, "/d"), ERR_NONE);
        memfs_crash(&fs, &rng);
        bool is_new = holds(&fs, "/d/checkpoint", "new");
        CU_ASSERT(is_new || (!synced && holds(&fs, "/d/checkpoint", "old")));
        new_seen |= is_new && !synced;
        old_seen |= !is_new;
        temp_seen |= exists(&fs, "/d/checkpoint.tmp");
        CU_ASSERT_FALSE(is_new && exists(&fs, "/d/checkpoint.tmp"));
        memfs_close(&fs);
    }
    CU_ASSERT(old_seen && new_seen && temp_seen);
}

static void test_memfs_names_need_their_directory_synced(void)
{
    bool lost = false, lost_dir = false;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        CU_ASSERT_EQUAL(fs.vfs.ops->mkdir(&fs.vfs, "/d"), ERR_NONE);
        write_path(&fs, "/d/a", "data");
        CU_ASSERT_EQUAL(fs.disk.sync(&fs.disk, "/d/a"), ERR_NONE);
        if (seed % 2 == 0)
            CU_ASSERT_EQUAL(fs.disk.sync_dir(&fs.disk, "/d"), ERR_NONE);
        memfs_crash(&fs, &rng);
        if (exists(&fs, "/d/a"))
            CU_ASSERT_TRUE(holds(&fs, "/d/a", "data"))
        else
            lost = true;
        lost_dir |= seed % 2 == 0 && !exists(&fs, "/d");
        CU_ASSERT(seed % 2 != 0 || exists(&fs, "/d/a") || !exists(&fs, "/d"));
        memfs_close(&fs);
    }
    CU_ASSERT(lost && lost_dir);
}

/* Directories that change places: no crash loses what was in them. */
static void test_memfs_crash_makes_no_circle(void)
{
    bool between = false;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        memfs_mkdirs(&fs, "/a/b");
        memfs_put(&fs, "/a/f", "data", 4);
        CU_ASSERT_EQUAL(fs.vfs.ops->rename(&fs.vfs, "/a/b", "/b"), ERR_NONE);
        CU_ASSERT_EQUAL(fs.vfs.ops->rename(&fs.vfs, "/a", "/b/a"), ERR_NONE);
        memfs_crash(&fs, &rng);
        CU_ASSERT(holds(&fs, "/a/f", "data") || holds(&fs, "/b/a/f", "data"));
        between |= exists(&fs, "/a") && exists(&fs, "/b");
        memfs_close(&fs);
    }
    CU_ASSERT_TRUE(between);
}

/* A name that was freed and taken again: the old file is not lost to a new one that came too soon.
 */
static void test_memfs_name_taken_again(void)
{
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        memfs_put(&fs, "/a", "old", 3);
        CU_ASSERT_EQUAL(fs.vfs.ops->rename(&fs.vfs, "/a", "/a.deleted"), ERR_NONE);
        write_path(&fs, "/a", "new");
        memfs_crash(&fs, &rng);
        CU_ASSERT(holds(&fs, "/a", "old") || holds(&fs, "/a.deleted", "old"));
        memfs_close(&fs);
    }
}

struct walk {
    struct memfs *fs;
    char path[64];
    uint64_t bytes;
};

static enum err add_bytes(void *ctx, const char *name, bool is_dir)
{
    struct walk *w = ctx;
    size_t end = strlen(w->path);
    strcat(strcat(w->path, "/"), name);
    size_t n = 0;
    enum err err = ERR_NONE;
    if (is_dir)
        err = w->fs->vfs.ops->list(&w->fs->vfs, w->path, add_bytes, w);
    else
        CU_ASSERT_PTR_NOT_NULL(memfs_get(w->fs, w->path, &n));
    w->bytes += n;
    w->path[end] = '\0';
    return err;
}

static enum err random_step(struct memfs *fs, struct rng *rng)
{
    static const char *const names[] = {"/a", "/b", "/d", "/e", "/d/a", "/d/b", "/e/a", "/d/e"};
    const struct vfs_ops *ops = fs->vfs.ops;
    const char *a = names[rng_below(rng, ARRAY_N(names))];
    const char *b = names[rng_below(rng, ARRAY_N(names))];
    switch (rng_below(rng, 9)) {
    case 0:
        return ops->mkdir(&fs->vfs, a);
    case 1:
        return ops->rmdir(&fs->vfs, a);
    case 2:
        return ops->unlink(&fs->vfs, a);
    case 3:
    case 4:
        return ops->rename(&fs->vfs, a, b);
    case 5:
        return fs->disk.sync(&fs->disk, a);
    case 6:
        return fs->disk.sync_dir(&fs->disk, a);
    }
    struct file *f;
    enum err err = ops->open(&fs->vfs, a, FILE_WRITE, &f);
    if (err == ERR_NONE) {
        err = write_at(f, a, rng_below(rng, 10));
        file_unref(f);
    }
    return err;
}

/* Random work between crashes: the tree stays a tree and every byte is accounted for. */
static void test_memfs_survives_random_work(void)
{
    struct memfs fs;
    struct rng rng = {7};
    memfs_init(&fs, 7);
    for (int i = 0; i < 20000; i++) {
        enum err err = random_step(&fs, &rng);
        CU_ASSERT(err == ERR_NONE || err == ERR_NOENT || err == ERR_EXIST || err == ERR_INVALID);
        if (!rng_percent(&rng, 2))
            continue;
        memfs_crash(&fs, &rng);
        struct walk w = {.fs = &fs};
        CU_ASSERT_EQUAL(fs.vfs.ops->list(&fs.vfs, "/", add_bytes, &w), ERR_NONE);
        CU_ASSERT_EQUAL(w.bytes, fs.used_bytes);
    }
    memfs_close(&fs);
}

static void test_memfs_faults(void)
{
    struct memfs fs;
    memfs_init(&fs, 3);
    memfs_put(&fs, "/d/a", "", 0);
    struct file *f = open_file(&fs, "/d/a", FILE_WRITE);
    memfs_fault_arm(&fs, (struct memfs_fault){.nth = 2, .err = ERR_IO});
    CU_ASSERT_EQUAL(write_at(f, "1", 0), ERR_NONE);
    CU_ASSERT_EQUAL(write_at(f, "234", 1), ERR_IO);
    CU_ASSERT_EQUAL(write_at(f, "234", 1), ERR_NONE);
    CU_ASSERT_TRUE(memfs_fault_hit(&fs));
    memfs_fault_arm(&fs, (struct memfs_fault){.nth = 1,
                                              .persistent = true,
                                              .err = ERR_NOSPC,
                                              .kinds = MEMFS_KIND(MEMFS_WRITE),
                                              .under = "/d/"});
    CU_ASSERT_TRUE(exists(&fs, "/d/a"));
    CU_ASSERT_EQUAL(write_at(f, "9", 0), ERR_NOSPC);
    CU_ASSERT_EQUAL(write_at(f, "9", 0), ERR_NOSPC);
    struct file *other = open_file(&fs, "/x", FILE_WRITE);
    CU_ASSERT_EQUAL(write_at(other, "9", 0), ERR_NONE);
    file_unref(other);
    CU_ASSERT_TRUE(memfs_fault_hit(&fs));
    memfs_fault_arm(&fs, (struct memfs_fault){.nth = 1000, .err = ERR_IO});
    CU_ASSERT_FALSE(memfs_fault_hit(&fs));
    file_unref(f);
    memfs_close(&fs);
}

static void test_memfs_failed_sync_is_never_made_good(void)
{
    unsigned lost = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct memfs fs;
        struct rng rng = {seed};
        memfs_init(&fs, seed);
        memfs_put(&fs, "/a", "", 0);
        write_path(&fs, "/a", "data");
        memfs_fault_arm(&fs, (struct memfs_fault){.nth = 1, .err = ERR_IO});
        CU_ASSERT_EQUAL(fs.disk.sync(&fs.disk, "/a"), ERR_IO);
        CU_ASSERT_EQUAL(fs.disk.sync(&fs.disk, "/a"), ERR_NONE);
        memfs_crash(&fs, &rng);
        lost += !holds(&fs, "/a", "data");
        memfs_close(&fs);
    }
    CU_ASSERT(lost > 0);
}

static void test_memfs_full_disk(void)
{
    struct memfs fs;
    memfs_init(&fs, 3);
    fs.limit_bytes = 10;
    struct file *f = open_file(&fs, "/a", FILE_WRITE);
    CU_ASSERT_EQUAL(write_at(f, "12345678", 0), ERR_NONE);
    CU_ASSERT_EQUAL(write_at(f, "abcdefgh", 4), ERR_NOSPC);
    CU_ASSERT_TRUE(holds(&fs, "/a", "1234abcdef"));
    CU_ASSERT_EQUAL(write_at(f, "0000", 0), ERR_NONE);
    struct file *g;
    CU_ASSERT_EQUAL(fs.vfs.ops->open(&fs.vfs, "/b", FILE_WRITE, &g), ERR_NOSPC);
    CU_ASSERT_EQUAL(fs.vfs.ops->unlink(&fs.vfs, "/a"), ERR_NONE);
    CU_ASSERT_EQUAL(fs.used_bytes, 10);
    file_unref(f);
    CU_ASSERT_EQUAL(fs.used_bytes, 0);
    g = open_file(&fs, "/b", FILE_WRITE);
    CU_ASSERT_EQUAL(write_at(g, "12345678", 0), ERR_NONE);
    file_unref(g);
    memfs_close(&fs);
}

static void test_memfs_lock(void)
{
    struct memfs fs;
    struct rng rng = {1};
    memfs_init(&fs, 3);
    memfs_mkdirs(&fs, "/d/e/");
    CU_ASSERT_EQUAL(fs.vfs.ops->lock(&fs.vfs, "/d"), ERR_NONE);
    CU_ASSERT_EQUAL(fs.vfs.ops->lock(&fs.vfs, "/d"), ERR_BUSY);
    fs.vfs.ops->unlock(&fs.vfs, "/d");
    CU_ASSERT_EQUAL(fs.vfs.ops->lock(&fs.vfs, "/d"), ERR_NONE);
    memfs_crash(&fs, &rng);
    CU_ASSERT_EQUAL(fs.vfs.ops->lock(&fs.vfs, "/d"), ERR_NONE);
    memfs_close(&fs);
}

static void test_memfs_imports_a_directory(void)
{
    char path[300];
    const char *dir = test_dir();
    snprintf(path, sizeof path, "%s/file", dir);
    test_write_file(path, "content", 7);
    struct memfs fs;
    memfs_init(&fs, 3);
    memfs_import(&fs, dir, "/x/y");
    CU_ASSERT_TRUE(holds(&fs, "/x/y/file", "content"));
    memfs_close(&fs);
}

static jmp_buf way_out;

static enum err unlink_and_end(void *ctx, const char *name, bool is_dir)
{
    struct memfs *fs = ctx;
    CU_ASSERT_FALSE(is_dir);
    CU_ASSERT_EQUAL(fs->vfs.ops->unlink(&fs->vfs, "/d/a"), ERR_NONE);
    longjmp(way_out, 1);
}

/* The simulator ends a process inside any operation, those of a listing's callback too. */
static void test_memfs_survives_an_end_inside_a_listing(void)
{
    struct memfs fs;
    memfs_init(&fs, 1);
    memfs_mkdirs(&fs, "/d");
    write_path(&fs, "/d/a", "x");
    write_path(&fs, "/d/b", "y");
    if (setjmp(way_out) == 0)
        (void)(fs.vfs.ops->list(&fs.vfs, "/d", unlink_and_end, &fs) == ERR_NONE);
    memfs_leave(&fs);
    CU_ASSERT(!exists(&fs, "/d/a") && exists(&fs, "/d/b"));
    memfs_close(&fs); /* all inodes are gone, or it aborts */
}

struct counted_job {
    struct job job;
    int runs, dones;
};

static void counted_run(struct job *j, struct disk *d)
{
    LIST_ENTRY(&j->link, struct counted_job, job.link)->runs++;
    CU_ASSERT_EQUAL(d->sync(d, "/none"), ERR_NOENT);
}

static void counted_done(struct job *j)
{
    LIST_ENTRY(&j->link, struct counted_job, job.link)->dones++;
}

static void test_memenv_steps_jobs(void)
{
    struct memfs fs;
    struct memenv e;
    struct counted_job jobs[3];
    memfs_init(&fs, 1);
    memenv_init(&e, &fs, 2);
    for (size_t i = 0; i < ARRAY_N(jobs); i++) {
        jobs[i] = (struct counted_job){.job = {.run = counted_run, .done = counted_done}};
        e.env.submit(&e.env, &jobs[i].job);
    }
    CU_ASSERT_PTR_NULL(e.env.reap(&e.env));
    memenv_run_nth_job(&e, 1);
    CU_ASSERT(jobs[0].runs == 0 && jobs[1].runs == 1 && jobs[1].dones == 0);
    CU_ASSERT_EQUAL(memenv_run_jobs(&e), 2);
    CU_ASSERT_FALSE(memenv_run_job(&e));
    CU_ASSERT_EQUAL(memenv_reap_jobs(&e), 3);
    CU_ASSERT(jobs[0].dones == 1 && jobs[1].dones == 1 && jobs[2].dones == 1);
    env_log(&e.env, LOG_WARN, "event n=%d", 5);
    CU_ASSERT_EQUAL(e.lines[LOG_WARN], 1);
    CU_ASSERT_STRING_EQUAL(e.last_line, "event n=5");
    CU_ASSERT_NOT_EQUAL(env_random_u64(&e.env), env_random_u64(&e.env));
    memenv_close(&e);
    memfs_close(&fs);
}

TEST_MAIN(TEST(test_memfs_reads_what_was_written), TEST(test_memfs_names),
          TEST(test_memfs_crash_keeps_what_was_synced),
          TEST(test_memfs_crash_loses_writes_independently), TEST(test_memfs_rename_is_atomic),
          TEST(test_memfs_names_need_their_directory_synced),
          TEST(test_memfs_crash_makes_no_circle), TEST(test_memfs_name_taken_again),
          TEST(test_memfs_survives_random_work), TEST(test_memfs_faults),
          TEST(test_memfs_failed_sync_is_never_made_good), TEST(test_memfs_full_disk),
          TEST(test_memfs_lock), TEST(test_memfs_imports_a_directory),
          TEST(test_memfs_survives_an_end_inside_a_listing), TEST(test_memenv_steps_jobs))
