/* The names of the files that a vfs has open, as a tree, so that a file whose descriptor was closed
 * is found again after it or a directory above it was renamed. Renames cost one node, whatever lies
 * below it. One thread. Names are compared as they are spelt ("a/../b" is not "b"). */
#ifndef OS_NODE_H
#define OS_NODE_H

#include "base/map.h"

/* A file or directory with an open file at it or below it. Counted by open files and children. */
struct os_node {
    struct os_node *parent; /* counted; NULL for the two roots */
    char *name;             /* of a root: "" before absolute paths, NULL before relative ones */
    uint32_t refs;
    bool gone; /* unlinked or replaced: this name means another file now, or none */
};

struct os_tree {
    struct map nodes;                  /* (parent, name) -> node; gone ones are not in it */
    struct os_node absolute, relative; /* the roots */
};

void os_tree_init(struct os_tree *t, uint64_t seed);
void os_tree_close(struct os_tree *t);

/* NULL if nothing is open there. */
struct os_node *os_tree_find(struct os_tree *t, const char *path);
/* A reference to the node of path. ERR_NOMEM. */
MUST_USE enum err os_tree_ref(struct os_tree *t, const char *path, struct os_node **out);
void os_tree_unref(struct os_tree *t, struct os_node *n);
/* ERR_NOENT if it is gone, ERR_INVALID if it is too long. */
MUST_USE enum err os_node_path(const struct os_node *n, char *out, size_t cap);
/* path was unlinked. */
void os_tree_unlink(struct os_tree *t, const char *path);

/* A rename in two steps: all memory is taken before the system call, so that afterwards nothing can
 * fail. Exactly one of commit and abort follows a prepare that succeeded. */
struct os_rename {
    struct os_node *node;     /* what moves; NULL: nothing open there */
    struct os_node *replaced; /* or NULL */
    struct os_node *to_parent;
    char *to_name;
};

MUST_USE enum err os_rename_prepare(struct os_tree *t, const char *from, const char *to,
                                    struct os_rename *r);
void os_rename_commit(struct os_tree *t, struct os_rename *r);
void os_rename_abort(struct os_tree *t, struct os_rename *r);

#endif
