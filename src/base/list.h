/* Intrusive doubly linked list with a sentinel. A node not in a list points to itself. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/types.h"

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/* n goes before l: with l the sentinel, at the end. n must not be in a list. */
static inline void list_append(struct list *l, struct list *n)
{
    n->prev = l->prev;
    n->next = l;
    l->prev->next = n;
    l->prev = n;
}

static inline void list_prepend(struct list *l, struct list *n)
{
    list_append(l->next, n);
}

/* Harmless if n is in no list. */
static inline void list_remove(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

/* First node, removed; NULL if empty. */
static inline struct list *list_pop(struct list *l)
{
    struct list *n = l->next;
    if (n == l)
        return NULL;
    list_remove(n);
    return n;
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
/* Safe against removal of `it` itself; `tmp` is a struct list *. */
#define LIST_EACH(it, tmp, head)                                                                   \
    for ((it) = (head)->next, (tmp) = (it)->next; (it) != (head); (it) = (tmp), (tmp) = (it)->next)

#endif
