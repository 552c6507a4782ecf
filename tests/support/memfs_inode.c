/* Inodes: the bytes now, the bytes on the device, and the list of writes between the two. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "support/memfs_impl.h"
#include "support/real_alloc.h"

static void *grow(void *p, size_t n)
{
    p = __real_realloc(p, n);
    if (p == NULL) {
        fputs("memfs: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *memfs_alloc(size_t n)
{
    return memset(grow(NULL, n == 0 ? 1 : n), 0, n);
}

void memfs_bytes_resize(struct memfs_bytes *b, size_t n)
{
    if (n > b->cap) {
        b->cap = n > 2 * b->cap ? n : 2 * b->cap;
        b->p = grow(b->p, b->cap);
    }
    if (n > b->n)
        memset(b->p + b->n, 0, n - b->n);
    b->n = n;
}

void memfs_bytes_write(struct memfs_bytes *b, uint64_t off, const uint8_t *p, size_t n)
{
    if (n == 0)
        return;
    if (off + n > b->n)
        memfs_bytes_resize(b, off + n);
    memcpy(b->p + off, p, n);
}

struct memfs_inode *memfs_inode_new(struct memfs *fs, bool is_dir)
{
    struct memfs_inode *i = memfs_alloc(sizeof *i);
    i->is_dir = is_dir;
    i->warm = fs->warm;
    i->mtime_ms = fs->wall_ms;
    list_append(&fs->inodes, &i->link);
    return i;
}

static void forget_writes(struct memfs_inode *i)
{
    for (size_t k = 0; k < i->writes_n; k++)
        free(i->writes[k].p);
    i->writes_n = 0;
}

void memfs_inode_unref(struct memfs *fs, struct memfs_inode *i)
{
    if (i == NULL || --i->refs > 0)
        return;
    CHECK(i->links == 0 && i->opens == 0);
    list_remove(&i->link);
    forget_writes(i);
    free(i->writes);
    free(i->bytes.p);
    free(i->durable.p);
    memfs_names_clear(fs, &i->names);
    memfs_names_clear(fs, &i->durable_names);
    free(i->names.e);
    free(i->durable_names.e);
    free(i);
}

void memfs_inode_charge(struct memfs *fs, struct memfs_inode *i)
{
    uint64_t n = i->links > 0 || i->opens > 0 ? i->bytes.n : 0;
    fs->used_bytes += n - i->charged_bytes;
    i->charged_bytes = n;
}

void memfs_inode_log(struct memfs_inode *i, uint64_t off, uint8_t *p, size_t n)
{
    if (i->writes_n == i->writes_cap) {
        i->writes_cap = i->writes_cap == 0 ? 8 : i->writes_cap * 2;
        i->writes = grow(i->writes, i->writes_cap * sizeof *i->writes);
    }
    i->writes[i->writes_n++] = (struct memfs_write){off, p, n};
}

static void apply(struct memfs_bytes *b, const struct memfs_write *w)
{
    if (w->p == NULL)
        memfs_bytes_resize(b, w->off);
    else
        memfs_bytes_write(b, w->off, w->p, w->n);
}

void memfs_inode_sync(struct memfs_inode *i)
{
    if (i->sync_failed)
        return;
    for (size_t k = 0; k < i->writes_n; k++)
        apply(&i->durable, &i->writes[k]);
    forget_writes(i);
}

/* What is left of a write that was under way: a prefix, or pages from its middle. */
static struct memfs_write torn(struct memfs_write w, struct rng *rng)
{
    size_t end = rng_below(rng, w.n + 1);
    size_t begin = rng_percent(rng, 25) ? rng_below(rng, end + 1) : 0;
    return (struct memfs_write){w.off + begin, w.p + begin, end - begin};
}

void memfs_inode_crash(struct memfs *fs, struct memfs_inode *i, struct rng *rng, unsigned keep,
                       unsigned tear)
{
    for (size_t k = 0; k < i->writes_n; k++) {
        struct memfs_write w = i->writes[k];
        if (w.p != NULL && rng_percent(rng, tear))
            w = torn(w, rng);
        else if (!rng_percent(rng, keep))
            continue;
        apply(&i->durable, &w);
    }
    forget_writes(i);
    memfs_bytes_resize(&i->bytes, i->durable.n);
    memfs_bytes_write(&i->bytes, 0, i->durable.p, i->durable.n);
    i->sync_failed = i->locked = false;
    memfs_inode_charge(fs, i);
}

/* Place of name, or where it would go. */
static size_t place_of(const struct memfs_names *names, const char *name, bool *found)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = strcmp(names->e[mid].name, name);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *found = false;
    return low;
}

struct memfs_inode *memfs_names_find(const struct memfs_names *names, const char *name)
{
    bool found;
    size_t k = place_of(names, name, &found);
    return found ? names->e[k].inode : NULL;
}

void memfs_names_put(struct memfs *fs, struct memfs_names *names, const char *name,
                     struct memfs_inode *i)
{
    bool found;
    size_t k = place_of(names, name, &found);
    i->refs++;
    if (found) {
        memfs_inode_unref(fs, names->e[k].inode);
        names->e[k].inode = i;
        return;
    }
    if (names->n == names->cap) {
        names->cap = names->cap == 0 ? 8 : names->cap * 2;
        names->e = grow(names->e, names->cap * sizeof *names->e);
    }
    memmove(names->e + k + 1, names->e + k, (names->n - k) * sizeof *names->e);
    char *copy = memfs_alloc(strlen(name) + 1);
    strcpy(copy, name);
    names->e[k] = (struct memfs_entry){copy, i};
    names->n++;
}

void memfs_names_remove(struct memfs *fs, struct memfs_names *names, const char *name)
{
    bool found;
    size_t k = place_of(names, name, &found);
    if (!found)
        return;
    struct memfs_entry e = names->e[k];
    names->n--;
    memmove(names->e + k, names->e + k + 1, (names->n - k) * sizeof *names->e);
    free(e.name);
    memfs_inode_unref(fs, e.inode);
}

void memfs_names_clear(struct memfs *fs, struct memfs_names *names)
{
    while (names->n > 0)
        memfs_names_remove(fs, names, names->e[names->n - 1].name);
}
