/* Life, crashes, set-up and inspection of memfs. */
#include "support/memfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "support/memfs_impl.h"
#include "support/real_alloc.h"

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "memfs: cannot set up %s\n", what);
    abort();
}

void memfs_init(struct memfs *fs, uint64_t seed)
{
    *fs = (struct memfs){.rng = {seed}};
    memfs_ops_init(fs);
    list_init(&fs->inodes);
    list_init(&fs->changes);
    list_init(&fs->listings);
    fs->root = memfs_inode_new(fs, true);
    fs->root->refs = 1;
}

/* As after a crash that keeps everything: nothing is pending and the trees agree. */
void memfs_sync_all(struct memfs *fs)
{
    struct list *l, *next;
    LIST_EACH(l, next, &fs->inodes)
    {
        struct memfs_inode *i = LIST_ENTRY(l, struct memfs_inode, link);
        i->sync_failed = false;
        memfs_inode_sync(i);
    }
    memfs_changes_crash(fs, &fs->rng, 100);
}

void memfs_close(struct memfs *fs)
{
    memfs_sync_all(fs);
    struct list *l, *next;
    LIST_EACH(l, next, &fs->inodes)
    {
        struct memfs_inode *i = LIST_ENTRY(l, struct memfs_inode, link);
        CHECK(i->opens == 0);
        i->links = 0;
    }
    memfs_inode_unref(fs, fs->root);
    CHECK(list_empty(&fs->inodes));
}

void memfs_fault_arm(struct memfs *fs, struct memfs_fault fault)
{
    fs->fault = fault;
    fs->fault_hit = false;
}

bool memfs_fault_hit(struct memfs *fs)
{
    fs->fault.nth = 0;
    return fs->fault_hit;
}

void memfs_unplug(struct memfs *fs)
{
    fs->unplugged = true;
}

void memfs_plug_in(struct memfs *fs)
{
    fs->unplugged = false;
}

void memfs_crash(struct memfs *fs, struct rng *rng)
{
    /* The extremes often: most bugs need all or nothing of something. */
    static const unsigned keep_percent[] = {0, 50, 50, 90, 100};
    unsigned data = keep_percent[rng_below(rng, ARRAY_N(keep_percent))];
    unsigned names = keep_percent[rng_below(rng, ARRAY_N(keep_percent))];
    unsigned tear = rng_percent(rng, 50) ? 25 : 0;
    struct list *l, *next;
    fs->warm++;
    fs->boot++;
    fs->unplugged = false;
    LIST_EACH(l, next, &fs->inodes)
    memfs_inode_crash(fs, LIST_ENTRY(l, struct memfs_inode, link), rng, data, tear);
    memfs_changes_crash(fs, rng, names);
}

void memfs_cool(struct memfs *fs)
{
    fs->warm++;
}

void memfs_mkdirs(struct memfs *fs, const char *path)
{
    char *part = memfs_alloc(strlen(path) + 1);
    size_t n = 0;
    do {
        n += strspn(path + n, "/");
        n += strcspn(path + n, "/");
        memcpy(part, path, n);
        struct memfs_place at;
        if (memfs_walk(fs, part, &at) != ERR_NONE)
            die(path);
        if (at.name[0] == '\0' || memfs_names_find(&at.dir->names, at.name) != NULL)
            continue;
        (void)memfs_create(fs, &at, true);
        memfs_changes_sync(fs, at.dir);
    } while (path[n] != '\0');
    free(part);
}

void memfs_put(struct memfs *fs, const char *path, const void *p, size_t n)
{
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        char *parent = memfs_alloc((size_t)(slash - path) + 1);
        memcpy(parent, path, (size_t)(slash - path));
        memfs_mkdirs(fs, parent);
        free(parent);
    }
    struct memfs_place at;
    if (memfs_walk(fs, path, &at) != ERR_NONE || at.name[0] == '\0')
        die(path);
    struct memfs_inode *i = memfs_names_find(&at.dir->names, at.name);
    if (i == NULL)
        i = memfs_create(fs, &at, false);
    if (i->is_dir)
        die(path);
    memfs_inode_sync(i);
    memfs_bytes_resize(&i->bytes, n);
    memfs_bytes_resize(&i->durable, n);
    memfs_bytes_write(&i->bytes, 0, p, n);
    memfs_bytes_write(&i->durable, 0, p, n);
    memfs_inode_charge(fs, i);
    memfs_changes_sync(fs, at.dir);
}

const uint8_t *memfs_get(struct memfs *fs, const char *path, size_t *n)
{
    struct memfs_inode *i = memfs_lookup(fs, path);
    if (i == NULL || i->is_dir)
        return NULL;
    *n = i->bytes.n;
    return i->bytes.n == 0 ? (const uint8_t *)"" : i->bytes.p;
}

uint64_t memfs_writes(struct memfs *fs, const char *path)
{
    struct memfs_inode *i = memfs_lookup(fs, path);
    return i == NULL ? 0 : i->writes_seen;
}

static void import_file(struct memfs *fs, const char *from, const char *to)
{
    FILE *f = fopen(from, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        die(from);
    long n = ftell(f);
    uint8_t *p = memfs_alloc((size_t)n);
    rewind(f);
    if (fread(p, 1, (size_t)n, f) != (size_t)n)
        die(from);
    fclose(f);
    memfs_put(fs, to, p, (size_t)n);
    free(p);
}

void memfs_import(struct memfs *fs, const char *machine_dir, const char *path)
{
    DIR *dir = opendir(machine_dir);
    if (dir == NULL)
        die(machine_dir);
    memfs_mkdirs(fs, path);
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *from = memfs_alloc(strlen(machine_dir) + strlen(e->d_name) + 2);
        char *to = memfs_alloc(strlen(path) + strlen(e->d_name) + 2);
        sprintf(from, "%s/%s", machine_dir, e->d_name);
        sprintf(to, "%s/%s", path, e->d_name);
        if (e->d_type == DT_DIR)
            memfs_import(fs, from, to);
        else
            import_file(fs, from, to);
        free(from);
        free(to);
    }
    closedir(dir);
}
