/* Half-done work of an earlier run. Compaction writes .cleaned files, renames them .swap once they
 * are whole, removes the old segments, drops the suffix; deletion renames to .deleted first. */
#include <stdio.h>
#include <stdlib.h>

#include "log/array.h"
#include "log/load.h"

struct names {
    char **v;
    size_t v_n, v_cap;
};

static enum err collect(void *ctx, const char *name, bool is_dir)
{
    struct names *n = ctx;
    if (is_dir)
        return ERR_NONE;
    enum err err = ARRAY_ROOM(n->v);
    if (err != ERR_NONE)
        return err;
    n->v[n->v_n] = strdup(name);
    return n->v[n->v_n++] == NULL ? ERR_NOMEM : ERR_NONE;
}

static void names_close(struct names *n)
{
    for (size_t i = 0; i < n->v_n; i++)
        free(n->v[i]);
    free(n->v);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);
    return n >= s && strcmp(name + n - s, suffix) == 0;
}

static enum err remove_name(struct loader *ld, char *name)
{
    char path[LOG_PATH_MAX];
    enum err err = path_join(path, ld->at.dir, name);
    if (err == ERR_NONE)
        err = ld->at.fs->ops->unlink(ld->at.fs, path);
    name[0] = '\0'; /* no longer there */
    return err == ERR_NOENT ? ERR_NONE : err;
}

/* The offset behind the last batch of a .swap log. */
static enum err end_of(struct loader *ld, const char *name, int64_t base, int64_t *end)
{
    char path[LOG_PATH_MAX];
    struct file *f;
    *end = base;
    enum err err = path_join(path, ld->at.dir, name);
    if (err == ERR_NONE)
        err = ld->at.fs->ops->open(ld->at.fs, path, FILE_READ, &f);
    if (err != ERR_NONE)
        return err;
    uint64_t size;
    err = ld->at.fs->ops->size(f, &size);
    struct scan sc;
    bool more = err == ERR_NONE;
    if (more)
        scan_init(&sc, f, 0, size, ld->buf, SCAN_BULK_BYTES);
    while (more) {
        struct batch b;
        uint64_t position;
        err = scan_next(&sc, &b, &position, &more);
        if (err == ERR_NONE && more)
            *end = batch_next_offset(&b);
    }
    file_unref(f);
    return err == ERR_CORRUPT || err == ERR_TRUNCATED ? ERR_NONE : err;
}

struct swap_range {
    int64_t from, to; /* offsets that .swap files replace */
};

static enum err drop_temporaries(struct loader *ld, struct names *n)
{
    int64_t lowest_cleaned = INT64_MAX, base;
    const char *suffix;
    for (size_t i = 0; i < n->v_n; i++) {
        if (path_parse(n->v[i], &base, &suffix) && ends_with(suffix, SUFFIX_CLEANED) &&
            base < lowest_cleaned)
            lowest_cleaned = base;
    }
    for (size_t i = 0; i < n->v_n; i++) {
        char *name = n->v[i];
        bool own = path_parse(name, &base, &suffix);
        bool drop = own ? ends_with(suffix, SUFFIX_DELETED) || ends_with(suffix, SUFFIX_CLEANED) ||
                              (ends_with(suffix, SUFFIX_SWAP) && base >= lowest_cleaned)
                        : ends_with(name, ".tmp");
        enum err err = drop ? remove_name(ld, name) : ERR_NONE;
        if (err != ERR_NONE)
            return err;
    }
    return ERR_NONE;
}

static enum err find_swaps(struct loader *ld, const struct names *n, struct swap_range *r)
{
    *r = (struct swap_range){INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < n->v_n; i++) {
        int64_t base, end;
        const char *suffix;
        if (!path_parse(n->v[i], &base, &suffix) || strcmp(suffix, SUFFIX_LOG SUFFIX_SWAP) != 0)
            continue;
        enum err err = end_of(ld, n->v[i], base, &end);
        if (err != ERR_NONE)
            return err;
        if (base < r->from)
            r->from = base;
        if (end > r->to)
            r->to = end;
    }
    return ERR_NONE;
}

static enum err drop_suffix(struct loader *ld, const char *name)
{
    char from[LOG_PATH_MAX], to[LOG_PATH_MAX];
    enum err err = path_join(from, ld->at.dir, name);
    if (err == ERR_NONE)
        err = path_join(to, ld->at.dir, name);
    if (err != ERR_NONE)
        return err;
    to[strlen(to) - strlen(SUFFIX_SWAP)] = '\0';
    return ld->at.fs->ops->rename(ld->at.fs, from, to);
}

static enum err finish_swaps(struct loader *ld, struct names *n, struct swap_range r)
{
    int64_t base;
    const char *suffix;
    enum err err = ERR_NONE;
    for (size_t i = 0; i < n->v_n && err == ERR_NONE; i++) {
        if (path_parse(n->v[i], &base, &suffix) && !ends_with(suffix, SUFFIX_SWAP) &&
            strcmp(suffix, SUFFIX_SNAPSHOT) != 0 && base >= r.from && base < r.to)
            err = remove_name(ld, n->v[i]);
    }
    for (size_t i = 0; i < n->v_n && err == ERR_NONE; i++) {
        if (path_parse(n->v[i], &base, &suffix) && ends_with(suffix, SUFFIX_SWAP))
            err = drop_suffix(ld, n->v[i]);
    }
    return err;
}

enum err load_clear_leftovers(struct loader *ld)
{
    struct names n = {0};
    struct swap_range swaps;
    enum err err = ld->at.fs->ops->list(ld->at.fs, ld->at.dir, collect, &n);
    if (err == ERR_NONE)
        err = drop_temporaries(ld, &n);
    if (err == ERR_NONE)
        err = find_swaps(ld, &n, &swaps);
    if (err == ERR_NONE)
        err = finish_swaps(ld, &n, swaps);
    names_close(&n);
    return err == ERR_NONE ? ERR_NONE
                           : load_fail(ld, err, "%s: cannot be cleared of leftovers", ld->at.dir);
}
