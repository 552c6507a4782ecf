/* The tree of names, and which of its changes a crash keeps.
 *
 * Each directory has its present names and its durable names. A change is made in the present and
 * queued; a sync of a directory carries the queued changes that touch it over to the durable names,
 * oldest first, together with those that they build on. A crash carries over a random part that is
 * closed under "builds on"; then the durable tree becomes the present one. A directory whose own
 * creation was not kept is simply not reachable, whatever was synced inside it. */
#include <stdlib.h>

#include "support/memfs_impl.h"

static struct memfs_place place_copy(const struct memfs_place *from)
{
    struct memfs_place p = {.dir = NULL};
    if (from != NULL) {
        p = *from;
        p.dir->refs++;
    }
    return p;
}

/* links of a directory's present entry */
static void count_link(struct memfs *fs, struct memfs_inode *i, bool more)
{
    i->links += more ? 1 : -1u;
    memfs_inode_charge(fs, i);
}

void memfs_change_make(struct memfs *fs, struct memfs_inode *i, const struct memfs_place *from,
                       const struct memfs_place *to)
{
    struct memfs_change *c = memfs_alloc(sizeof *c);
    c->inode = i;
    i->refs++;
    c->from = place_copy(from);
    c->to = place_copy(to);
    if (to != NULL) {
        struct memfs_inode *replaced = memfs_names_find(&to->dir->names, to->name);
        if (replaced != NULL)
            count_link(fs, replaced, false);
        count_link(fs, i, true);
        memfs_names_put(fs, &to->dir->names, to->name, i);
    }
    if (from != NULL) {
        count_link(fs, i, false);
        memfs_names_remove(fs, &from->dir->names, from->name);
    }
    list_append(&fs->changes, &c->link);
}

static void change_free(struct memfs *fs, struct memfs_change *c)
{
    list_remove(&c->link);
    memfs_inode_unref(fs, c->inode);
    memfs_inode_unref(fs, c->from.dir);
    memfs_inode_unref(fs, c->to.dir);
    free(c);
}

static bool same_place(const struct memfs_place *a, const struct memfs_place *b)
{
    return a->dir != NULL && a->dir == b->dir && strcmp(a->name, b->name) == 0;
}

/* True if `later` makes no sense without `earlier`. */
static bool builds_on(const struct memfs_change *later, const struct memfs_change *earlier)
{
    const struct memfs_inode *moved = earlier->from.dir != NULL ? earlier->inode : NULL;
    return later->inode == earlier->inode || same_place(&later->from, &earlier->from) ||
           same_place(&later->from, &earlier->to) || same_place(&later->to, &earlier->from) ||
           same_place(&later->to, &earlier->to) ||
           /* inside a directory that was moved: else a directory could end up in itself */
           (moved != NULL && (later->from.dir == moved || later->to.dir == moved));
}

static void make_durable(struct memfs *fs, struct memfs_change *c)
{
    if (c->to.dir != NULL)
        memfs_names_put(fs, &c->to.dir->durable_names, c->to.name, c->inode);
    if (c->from.dir != NULL)
        memfs_names_remove(fs, &c->from.dir->durable_names, c->from.name);
}

void memfs_changes_sync(struct memfs *fs, struct memfs_inode *dir)
{
    struct list *head = &fs->changes;
    for (struct list *l = head->prev; l != head; l = l->prev) {
        struct memfs_change *c = LIST_ENTRY(l, struct memfs_change, link);
        c->chosen = c->chosen || c->from.dir == dir || c->to.dir == dir;
        if (!c->chosen)
            continue;
        for (struct list *e = l->prev; e != head; e = e->prev) {
            struct memfs_change *earlier = LIST_ENTRY(e, struct memfs_change, link);
            earlier->chosen = earlier->chosen || builds_on(c, earlier);
        }
    }
    struct list *l, *next;
    LIST_EACH(l, next, head)
    {
        struct memfs_change *c = LIST_ENTRY(l, struct memfs_change, link);
        if (!c->chosen)
            continue;
        make_durable(fs, c);
        change_free(fs, c);
    }
}

static bool builds_on_lost(struct memfs *fs, struct memfs_change *c)
{
    for (struct list *l = c->link.prev; l != &fs->changes; l = l->prev) {
        struct memfs_change *earlier = LIST_ENTRY(l, struct memfs_change, link);
        if (!earlier->chosen && builds_on(c, earlier))
            return true;
    }
    return false;
}

/* The durable names become the present ones. All inodes are held by the caller. */
static void restore_names(struct memfs *fs, struct memfs_inode *dir)
{
    for (size_t k = 0; k < dir->names.n; k++)
        count_link(fs, dir->names.e[k].inode, false);
    memfs_names_clear(fs, &dir->names);
    for (size_t k = 0; k < dir->durable_names.n; k++) {
        struct memfs_entry *e = &dir->durable_names.e[k];
        memfs_names_put(fs, &dir->names, e->name, e->inode);
        count_link(fs, e->inode, true);
    }
}

/* A directory that nobody can reach lets go of its names. */
static void drop_unreachable(struct memfs *fs, struct memfs_inode *i)
{
    if (i->links > 0 || i == fs->root)
        return;
    for (size_t k = 0; k < i->names.n; k++)
        count_link(fs, i->names.e[k].inode, false);
    memfs_names_clear(fs, &i->names);
    memfs_names_clear(fs, &i->durable_names);
}

static void each_inode(struct memfs *fs, void (*fn)(struct memfs *, struct memfs_inode *))
{
    struct list *l, *next;
    LIST_EACH(l, next, &fs->inodes)
    fn(fs, LIST_ENTRY(l, struct memfs_inode, link));
}

static void hold(struct memfs *fs, struct memfs_inode *i)
{
    i->refs++;
}

void memfs_changes_crash(struct memfs *fs, struct rng *rng, unsigned keep)
{
    struct list *l, *next;
    LIST_EACH(l, next, &fs->changes)
    {
        struct memfs_change *c = LIST_ENTRY(l, struct memfs_change, link);
        c->chosen = rng_percent(rng, keep) && !builds_on_lost(fs, c);
        if (c->chosen)
            make_durable(fs, c);
    }
    LIST_EACH(l, next, &fs->changes)
    change_free(fs, LIST_ENTRY(l, struct memfs_change, link));
    each_inode(fs, hold);
    each_inode(fs, restore_names);
    /* In order of creation a parent comes before its children, but for a rename: go round. */
    for (int round = 0; round < 8; round++)
        each_inode(fs, drop_unreachable);
    each_inode(fs, memfs_inode_unref);
}

enum err memfs_walk(struct memfs *fs, const char *path, struct memfs_place *out)
{
    out->dir = fs->root;
    out->name[0] = '\0';
    while (*path != '\0') {
        size_t n = strcspn(path, "/");
        bool skip = n == 0 || (n == 1 && path[0] == '.');
        if (n > MEMFS_NAME_MAX)
            return ERR_INVALID;
        if (!skip) {
            if (out->name[0] != '\0') {
                out->dir = memfs_names_find(&out->dir->names, out->name);
                if (out->dir == NULL || !out->dir->is_dir)
                    return ERR_NOENT;
            }
            memcpy(out->name, path, n);
            out->name[n] = '\0';
        }
        path += n;
        path += *path == '/';
    }
    return ERR_NONE;
}

struct memfs_inode *memfs_lookup(struct memfs *fs, const char *path)
{
    struct memfs_place at;
    if (memfs_walk(fs, path, &at) != ERR_NONE)
        return NULL;
    return at.name[0] == '\0' ? at.dir : memfs_names_find(&at.dir->names, at.name);
}

struct memfs_inode *memfs_create(struct memfs *fs, const struct memfs_place *at, bool is_dir)
{
    struct memfs_inode *i = memfs_inode_new(fs, is_dir);
    memfs_change_make(fs, i, NULL, at);
    return i;
}
