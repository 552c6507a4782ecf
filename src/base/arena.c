/* A chain of blocks, newest first; allocation moves a pointer through the free part of the newest.
 * What does not fit takes a new block of twice the size. A large piece gets a block of its own
 * behind the newest, whose free part stays in use. Nothing is freed singly. */
#include "base/arena.h"

#include <stdlib.h>

#define ALIGN 16u
#define BLOCK_MIN 1024u
#define BLOCK_MAX (64u << 10)
/* Larger pieces do not displace the newest block. */
#define PIECE_LARGE (BLOCK_MAX / 4)

struct arena_block {
    struct arena_block *next; /* older */
    size_t size;              /* of the block, this header included */
};

_Static_assert(sizeof(struct arena_block) == ALIGN, "pieces are aligned behind the header");

void arena_init(struct arena *a, struct budget *budget)
{
    *a = (struct arena){.budget = budget};
}

static struct arena_block *block_new(struct arena *a, size_t size)
{
    if (!budget_take(a->budget, size))
        return NULL;
    struct arena_block *b = malloc(size);
    if (b == NULL) {
        budget_give(a->budget, size);
        return NULL;
    }
    b->size = size;
    return b;
}

static void block_free(struct arena *a, struct arena_block *b)
{
    budget_give(a->budget, b->size);
    free(b);
}

static void set_head(struct arena *a, struct arena_block *b)
{
    a->head = b;
    a->pos = (uint8_t *)(b + 1);
    a->end = (uint8_t *)b + b->size;
}

static size_t next_size(const struct arena *a, size_t n)
{
    /* A large piece in front says nothing about the small ones. */
    bool first = a->head == NULL || a->head->size > BLOCK_MAX;
    size_t size = first ? BLOCK_MIN : a->head->size * 2;
    if (size > BLOCK_MAX)
        size = BLOCK_MAX;
    while (size < n + sizeof(struct arena_block))
        size *= 2;
    return size;
}

/* n is a multiple of ALIGN that does not fit into the newest block. */
static void *alloc_slow(struct arena *a, size_t n)
{
    if (n > PIECE_LARGE) {
        struct arena_block *own = block_new(a, n + sizeof *own);
        if (own == NULL)
            return NULL;
        if (a->head == NULL) {
            own->next = NULL;
            set_head(a, own);
            a->pos = a->end;
        } else {
            own->next = a->head->next;
            a->head->next = own;
        }
        return own + 1;
    }
    struct arena_block *b = block_new(a, next_size(a, n));
    if (b == NULL)
        return NULL;
    b->next = a->head;
    set_head(a, b);
    void *p = a->pos;
    a->pos += n;
    return p;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        return NULL;
    n = n == 0 ? ALIGN : (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (a->head == NULL || n > (size_t)(a->end - a->pos))
        return alloc_slow(a, n);
    void *p = a->pos;
    a->pos += n;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
    void *p = arena_alloc(a, n);
    return p == NULL ? NULL : memset(p, 0, n);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return arena_zalloc(a, bytes);
}

void *arena_memdup(struct arena *a, const void *p, size_t n)
{
    void *copy = arena_alloc(a, n);
    if (copy != NULL && n > 0)
        memcpy(copy, p, n);
    return copy;
}

char *arena_strdup(struct arena *a, struct str s)
{
    size_t n = s.n < 0 ? 0 : (size_t)s.n;
    char *p = arena_alloc(a, n + 1);
    if (p == NULL)
        return NULL;
    if (n > 0)
        memcpy(p, s.p, n);
    p[n] = '\0';
    return p;
}

/* The oldest block stays, unless it is a large piece's: one large request must not pin its memory
 * for the life of a connection. */
void arena_reset(struct arena *a)
{
    struct arena_block *kept = NULL, *older;
    for (struct arena_block *b = a->head; b != NULL; b = older) {
        older = b->next;
        struct arena_block *unneeded = b;
        if (b->size <= BLOCK_MAX) {
            unneeded = kept;
            kept = b;
        }
        if (unneeded != NULL)
            block_free(a, unneeded);
    }
    arena_init(a, a->budget);
    if (kept != NULL) {
        kept->next = NULL;
        set_head(a, kept);
    }
}

void arena_close(struct arena *a)
{
    while (a->head != NULL) {
        struct arena_block *older = a->head->next;
        block_free(a, a->head);
        a->head = older;
    }
    a->pos = a->end = NULL;
}
