#include "os/node.h"

#include <limits.h>
#include <stdlib.h>

#include "base/check.h"

/* What the map knows a node by. */
struct key {
    size_t n;
    char bytes[sizeof(struct os_node *) + NAME_MAX];
};

static bool key_of(struct key *k, const struct os_node *parent, const char *name, size_t name_n)
{
    if (name_n > NAME_MAX)
        return false;
    memcpy(k->bytes, &parent, sizeof parent);
    memcpy(k->bytes + sizeof parent, name, name_n);
    k->n = sizeof parent + name_n;
    return true;
}

void os_tree_init(struct os_tree *t, uint64_t seed)
{
    static char nothing[] = "";
    *t = (struct os_tree){.absolute = {.name = nothing, .refs = 1}, .relative = {.refs = 1}};
    map_init(&t->nodes, seed);
}

void os_tree_close(struct os_tree *t)
{
    CHECK(t->nodes.n == 0);
    map_close(&t->nodes);
}

/* The next component of *path, which moves behind it; its length, 0 at the end. */
static size_t component(const char **path, const char **name)
{
    *path += strspn(*path, "/");
    *name = *path;
    size_t n = strcspn(*path, "/");
    *path += n;
    return n;
}

static struct os_node *root_of(struct os_tree *t, const char *path)
{
    return *path == '/' ? &t->absolute : &t->relative;
}

static struct os_node *child(struct os_tree *t, struct os_node *n, const char *name, size_t name_n)
{
    struct key k;
    return key_of(&k, n, name, name_n) ? map_get(&t->nodes, k.bytes, k.n) : NULL;
}

struct os_node *os_tree_find(struct os_tree *t, const char *path)
{
    struct os_node *n = root_of(t, path);
    const char *name;
    size_t name_n;
    while (n != NULL && (name_n = component(&path, &name)) > 0)
        n = child(t, n, name, name_n);
    return n;
}

static enum err child_new(struct os_tree *t, struct os_node *parent, const char *name,
                          size_t name_n, struct os_node **out)
{
    struct key k;
    if (!key_of(&k, parent, name, name_n))
        return ERR_INVALID;
    struct os_node *n = malloc(sizeof *n);
    if (n == NULL)
        return ERR_NOMEM;
    *n = (struct os_node){.parent = parent, .name = malloc(name_n + 1)};
    if (n->name == NULL || map_put(&t->nodes, k.bytes, k.n, n) != ERR_NONE) {
        free(n->name);
        free(n);
        return ERR_NOMEM;
    }
    memcpy(n->name, name, name_n);
    n->name[name_n] = '\0';
    parent->refs++;
    *out = n;
    return ERR_NONE;
}

enum err os_tree_ref(struct os_tree *t, const char *path, struct os_node **out)
{
    struct os_node *n = root_of(t, path);
    n->refs++;
    const char *name;
    size_t name_n;
    while ((name_n = component(&path, &name)) > 0) {
        struct os_node *next = child(t, n, name, name_n);
        enum err err = next == NULL ? child_new(t, n, name, name_n, &next) : ERR_NONE;
        if (err != ERR_NONE) {
            os_tree_unref(t, n);
            return err;
        }
        next->refs++;
        os_tree_unref(t, n);
        n = next;
    }
    *out = n;
    return ERR_NONE;
}

static void forget(struct os_tree *t, struct os_node *n)
{
    struct key k;
    if (n->gone || !key_of(&k, n->parent, n->name, strlen(n->name)))
        return;
    CHECK(map_remove(&t->nodes, k.bytes, k.n) == n);
}

void os_tree_unref(struct os_tree *t, struct os_node *n)
{
    while (n != NULL && --n->refs == 0) {
        struct os_node *parent = n->parent;
        CHECK(parent != NULL); /* the roots hold themselves */
        forget(t, n);
        free(n->name);
        free(n);
        n = parent;
    }
}

enum err os_node_path(const struct os_node *n, char *out, size_t cap)
{
    size_t at = cap - 1; /* filled from its end */
    out[at] = '\0';
    const struct os_node *root = n;
    for (; root->parent != NULL; root = root->parent) {
        size_t name_n = strlen(root->name);
        if (root->gone)
            return ERR_NOENT;
        if (name_n + 1 > at)
            return ERR_INVALID;
        at -= name_n;
        memcpy(out + at, root->name, name_n);
        out[--at] = '/';
    }
    at += root->name == NULL; /* a relative path does not begin with the slash */
    memmove(out, out + at, cap - at);
    return ERR_NONE;
}

void os_tree_unlink(struct os_tree *t, const char *path)
{
    struct os_node *n = os_tree_find(t, path);
    if (n == NULL || n->parent == NULL)
        return;
    forget(t, n);
    n->gone = true;
}

static const char *last_component(const char *path, size_t *n)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *n = end - begin;
    return path + begin;
}

static char *copy(const char *p, size_t n)
{
    char *s = malloc(n + 1);
    if (s == NULL)
        return NULL;
    memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

static enum err parent_ref(struct os_tree *t, const char *path, const char *name,
                           struct os_node **out)
{
    char *dir = copy(path, (size_t)(name - path));
    if (dir == NULL)
        return ERR_NOMEM;
    enum err err = os_tree_ref(t, dir, out);
    free(dir);
    return err;
}

enum err os_rename_prepare(struct os_tree *t, const char *from, const char *to, struct os_rename *r)
{
    *r = (struct os_rename){.node = os_tree_find(t, from), .replaced = os_tree_find(t, to)};
    if (r->node == NULL || r->node->parent == NULL || r->node == r->replaced) {
        if (r->node == r->replaced)
            r->replaced = NULL;
        r->node = NULL;
        return ERR_NONE;
    }
    size_t name_n;
    const char *name = last_component(to, &name_n);
    if (name_n == 0)
        return ERR_INVALID;
    enum err err = parent_ref(t, to, name, &r->to_parent);
    if (err != ERR_NONE)
        return err;
    struct key k;
    r->to_name = copy(name, name_n);
    err = key_of(&k, r->to_parent, name, name_n) ? ERR_NONE : ERR_INVALID;
    if (err == ERR_NONE)
        err = r->to_name == NULL ? ERR_NOMEM : map_put(&t->nodes, k.bytes, k.n, r->node);
    if (err != ERR_NONE) {
        free(r->to_name);
        os_tree_unref(t, r->to_parent);
    }
    return err;
}

void os_rename_commit(struct os_tree *t, struct os_rename *r)
{
    if (r->node == NULL) {
        if (r->replaced != NULL) {
            forget(t, r->replaced);
            r->replaced->gone = true;
        }
        return;
    }
    if (r->replaced != NULL)
        r->replaced->gone = true; /* the map has the new one in its place already */
    forget(t, r->node);
    free(r->node->name);
    r->node->name = r->to_name;
    struct os_node *old_parent = r->node->parent;
    r->node->parent = r->to_parent;
    os_tree_unref(t, old_parent);
}

void os_rename_abort(struct os_tree *t, struct os_rename *r)
{
    if (r->node == NULL)
        return;
    struct key k;
    CHECK(key_of(&k, r->to_parent, r->to_name, strlen(r->to_name)));
    if (r->replaced == NULL)
        CHECK(map_remove(&t->nodes, k.bytes, k.n) == r->node);
    else
        CHECK(map_put(&t->nodes, k.bytes, k.n, r->replaced) == ERR_NONE); /* takes no memory */
    free(r->to_name);
    os_tree_unref(t, r->to_parent);
}
