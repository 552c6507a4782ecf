#include "log/entry_file.h"

#include <stdlib.h>

#include "base/check.h"

#define ENTRY_MAX_BYTES 34
#define BLOCK_BYTES 4096 /* read at once by a search */

void entry_file_init(struct entry_file *e, uint8_t entry_bytes, uint32_t written_n)
{
    CHECK(entry_bytes <= ENTRY_MAX_BYTES);
    *e = (struct entry_file){.written_n = written_n, .entry_bytes = entry_bytes};
}

void entry_file_close(struct entry_file *e)
{
    file_unref(e->f);
    free(e->tail);
    e->f = NULL;
    e->tail = NULL;
    e->tail_n = e->tail_cap = 0;
}

enum err entry_file_reserve(struct entry_file *e, uint32_t n)
{
    if (e->tail_cap - e->tail_n >= n)
        return ERR_NONE;
    uint32_t cap = e->tail_n + n;
    if (cap < 2 * e->tail_cap)
        cap = 2 * e->tail_cap;
    uint8_t *tail = realloc(e->tail, (size_t)cap * e->entry_bytes);
    if (tail == NULL)
        return ERR_NOMEM;
    e->tail = tail;
    e->tail_cap = cap;
    return ERR_NONE;
}

void entry_file_push(struct entry_file *e, const void *entry)
{
    CHECK(e->tail_n < e->tail_cap);
    memcpy(e->tail + (size_t)e->tail_n * e->entry_bytes, entry, e->entry_bytes);
    e->tail_n++;
}

static enum err open_file(struct entry_file *e, struct entry_place at)
{
    if (e->f != NULL)
        return ERR_NONE;
    return at.fs->ops->open(at.fs, at.path, e->written_n == 0 ? FILE_CREATE : FILE_WRITE, &e->f);
}

enum err entry_file_get(struct entry_file *e, struct entry_place at, uint32_t i, void *out)
{
    CHECK(i < entry_file_n(e));
    if (i >= e->written_n) {
        memcpy(out, e->tail + (size_t)(i - e->written_n) * e->entry_bytes, e->entry_bytes);
        return ERR_NONE;
    }
    enum err err = open_file(e, at);
    if (err != ERR_NONE)
        return err;
    size_t got;
    err = at.fs->ops->pread(e->f, out, e->entry_bytes, (uint64_t)i * e->entry_bytes, &got);
    if (err != ERR_NONE)
        return err;
    return got == e->entry_bytes ? ERR_NONE : ERR_CORRUPT;
}

enum err entry_file_write(struct entry_file *e, struct entry_place at)
{
    uint64_t end = (uint64_t)e->written_n * e->entry_bytes;
    enum err err = open_file(e, at);
    if (err == ERR_NONE && e->torn)
        err = at.fs->ops->truncate(e->f, end);
    if (err != ERR_NONE)
        return err;
    e->torn = false;
    if (e->tail_n == 0)
        return ERR_NONE;
    struct iov iov = {e->tail, (size_t)e->tail_n * e->entry_bytes};
    err = at.fs->ops->pwritev(e->f, &iov, 1, end);
    if (err != ERR_NONE) {
        e->torn = true;
        return err;
    }
    e->written_n += e->tail_n;
    e->tail_n = e->tail_cap = 0;
    free(e->tail);
    e->tail = NULL;
    return ERR_NONE;
}

enum err entry_file_truncate(struct entry_file *e, struct entry_place at, uint32_t n)
{
    if (n >= entry_file_n(e))
        return ERR_NONE;
    if (n >= e->written_n) {
        e->tail_n = n - e->written_n;
        return ERR_NONE;
    }
    enum err err = open_file(e, at);
    if (err == ERR_NONE)
        err = at.fs->ops->truncate(e->f, (uint64_t)n * e->entry_bytes);
    if (err != ERR_NONE)
        return err;
    e->written_n = n;
    e->tail_n = 0;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ search */

/* A search in progress: the answer is in [lo, hi]. */
struct search {
    const struct entry_file *e;
    entry_before before;
    int64_t key;
    uint32_t lo, hi;
    uint8_t *last; /* entry lo - 1, unless lo is 0; NULL: not wanted */
};

/* Takes in what n entries, from entry i on, say: they lie in [lo, hi). */
static void narrow(struct search *s, const uint8_t *entries, uint32_t i, uint32_t n)
{
    const uint8_t size = s->e->entry_bytes;
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->before(entries + (size_t)mid * size, s->key))
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0) {
        s->lo = i + lo;
        if (s->last != NULL)
            memcpy(s->last, entries + (size_t)(lo - 1) * size, size);
    }
    if (lo < n)
        s->hi = i + lo;
}

/* Reads what of the block around entry i is still of interest. */
static enum err narrow_by_block(struct search *s, struct entry_place at, uint32_t i)
{
    uint8_t block[BLOCK_BYTES];
    const uint8_t size = s->e->entry_bytes;
    const uint32_t in_block = BLOCK_BYTES / size;
    uint32_t from = i - i % in_block, to = from + in_block;
    from = from < s->lo ? s->lo : from;
    to = to > s->hi ? s->hi : to;
    struct file *f = s->e->f;
    const size_t want = (size_t)(to - from) * size;
    size_t got;
    enum err err = (at.now ? f->fs->ops->pread_now
                           : f->fs->ops->pread)(f, block, want, (uint64_t)from * size, &got);
    if (err == ERR_NONE && got < want)
        err = ERR_CORRUPT;
    if (err == ERR_NONE)
        narrow(s, block, from, to - from);
    return err;
}

enum err entry_file_search(struct entry_file *e, struct entry_place at, entry_before before,
                           int64_t key, uint32_t *n, void *last)
{
    struct search s = {e, before, key, 0, e->written_n, last};
    enum err err = ERR_NONE;
    if (e->tail_n > 0 && before(e->tail, key)) {
        s = (struct search){e, before, key, e->written_n, entry_file_n(e), last};
        narrow(&s, e->tail, e->written_n, e->tail_n);
    } else if (e->written_n > 0) {
        err = open_file(e, at);
    }
    uint32_t i = e->found;
    for (int tries = 0; s.lo < s.hi && err == ERR_NONE; tries++) {
        if (i < s.lo)
            i = tries < 2 ? s.lo : s.lo + (s.hi - s.lo) / 2;
        else if (i >= s.hi)
            i = s.lo + (s.hi - s.lo) / 2;
        err = narrow_by_block(&s, at, i);
    }
    *n = e->found = s.lo;
    return err;
}
