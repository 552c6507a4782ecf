/* memfs stands in for the machine in most tests: the same random operations on both must end in the
 * same errors, bytes and names. */
#include <limits.h>
#include <stdio.h>

#include "os/vfs.h"
#include "support/memfs.h"
#include "support/test.h"

#define STEPS 6000
#define HANDLES 6

static const char *const names[] = {"a",   "b",   "d",     "e",     "d/a",     "d/b",
                                    "e/a", "d/e", "d/e/a", "e/d/a", "a/below", "d/e/f"};

/* One operation, with its random choices made. */
struct step {
    unsigned what;
    char from[PATH_MAX], to[PATH_MAX];
    size_t handle;
    uint64_t off;
    size_t n;
    enum file_open mode;
};

struct side {
    struct vfs *fs;
    struct file *handles[HANDLES];
};

struct outcome {
    enum err err;
    char text[2000]; /* what was read or listed */
};

static struct step choose(struct rng *rng, const char *dir)
{
    struct step s = {
        .what = (unsigned)rng_below(rng, 12),
        .handle = rng_below(rng, HANDLES),
        .off = rng_below(rng, 60),
        .n = rng_below(rng, 40),
        .mode = (enum file_open)rng_below(rng, 3),
    };
    snprintf(s.from, sizeof s.from, "%s/%s", dir, names[rng_below(rng, ARRAY_N(names))]);
    snprintf(s.to, sizeof s.to, "%s/%s", dir, names[rng_below(rng, ARRAY_N(names))]);
    return s;
}

static enum err collect(void *ctx, const char *name, bool is_dir)
{
    strcat(strcat(ctx, name), is_dir ? "/ " : " ");
    return ERR_NONE;
}

static enum err on_names(struct side *side, const struct step *s, char *text)
{
    struct vfs *fs = side->fs;
    struct file_stat st = {0};
    enum err err;
    switch (s->what) {
    case 0:
        return fs->ops->mkdir(fs, s->from);
    case 1:
        return fs->ops->rmdir(fs, s->from);
    case 2:
        return fs->ops->unlink(fs, s->from);
    case 3:
    case 4:
        return fs->ops->rename(fs, s->from, s->to);
    case 5:
        return fs->ops->list(fs, s->from, collect, text);
    default:
        err = fs->ops->stat(fs, s->from, &st);
        if (err == ERR_NONE)
            sprintf(text, "%d %ju", st.is_dir, st.is_dir ? 0 : (uintmax_t)st.size_bytes);
        return err;
    }
}

static enum err on_handle(struct side *side, const struct step *s, char *text)
{
    struct file **f = &side->handles[s->handle];
    uint64_t size = 0;
    size_t got = 0;
    if (s->what == 7 || *f == NULL) {
        file_unref(*f);
        *f = NULL;
        return side->fs->ops->open(side->fs, s->from, s->mode, f);
    }
    struct iov iov[3] = {{s->to, s->n / 2}, {NULL, 0}, {s->from, s->n - s->n / 2}};
    enum err err;
    switch (s->what) {
    case 8:
        err = side->fs->ops->pread(*f, text, s->n, s->off, &got);
        return err;
    case 9:
        err = side->fs->ops->size(*f, &size);
        sprintf(text, "%ju", (uintmax_t)size);
        return err;
    case 10:
        return side->fs->ops->truncate(*f, s->off);
    default:
        return side->fs->ops->pwritev(*f, iov, 3, s->off);
    }
}

static struct outcome perform(struct side *side, const struct step *s)
{
    struct outcome o = {.err = ERR_NONE};
    o.err = s->what < 7 ? on_names(side, s, o.text) : on_handle(side, s, o.text);
    return o;
}

static void test_vfs_memfs_and_machine_agree(void)
{
    struct rng rng = {11};
    struct os_vfs machine;
    struct memfs memory;
    const char *dir = test_dir();
    os_vfs_init(&machine, HANDLES); /* each keeps its descriptor, as in memfs */
    memfs_init(&memory, 1);
    memfs_mkdirs(&memory, dir);
    struct side a = {.fs = &machine.vfs}, b = {.fs = &memory.vfs};
    size_t differ = 0, good = 0;
    for (int i = 0; i < STEPS && differ == 0; i++) {
        struct step s = choose(&rng, dir);
        struct outcome x = perform(&a, &s), y = perform(&b, &s);
        if (x.err != y.err || memcmp(x.text, y.text, sizeof x.text) != 0) {
            printf("step %d: %u %s %s: %s %s, %s %s\n", i, s.what, s.from, s.to, err_name(x.err),
                   x.text, err_name(y.err), y.text);
            differ++;
        }
        good += x.err == ERR_NONE;
    }
    CU_ASSERT_EQUAL(differ, 0);
    CU_ASSERT(good > STEPS / 4);
    for (size_t i = 0; i < HANDLES; i++) {
        file_unref(a.handles[i]);
        file_unref(b.handles[i]);
    }
    os_vfs_close(&machine);
    memfs_close(&memory);
}

TEST_MAIN(TEST(test_vfs_memfs_and_machine_agree))
