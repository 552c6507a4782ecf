/* Checkpoint files, all of one shape (Kafka's CheckpointFile): version 0, count, one entry a line.
 * Fields are split on any whitespace. */
#include "log/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>

#include "log/array.h"
#include "log/path.h"

#define CHECKPOINT_MAX_BYTES (256u << 20) /* a million partitions */
#define EPOCH_FILE "leader-epoch-checkpoint"

/* ------------------------------------------------------------------ lines and fields */

struct lines {
    const char *p, *end;
};

static struct lines lines_of(const struct buf *b)
{
    const char *p = b->n == 0 ? "" : (const char *)b->p;
    return (struct lines){p, p + b->n};
}

/* A last line without newline counts, as with Java's readLine. */
static bool next_line(struct lines *in, struct str *out)
{
    if (in->p == in->end)
        return false;
    const char *nl = memchr(in->p, '\n', (size_t)(in->end - in->p));
    const char *end = nl == NULL ? in->end : nl;
    *out = (struct str){in->p, (int32_t)(end - in->p)};
    in->p = nl == NULL ? in->end : nl + 1;
    if (out->n > 0 && out->p[out->n - 1] == '\r')
        out->n--;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The fields of a line; more than max count, but are not stored. */
static int split(struct str line, struct str *fields, int max)
{
    int n = 0;
    for (int32_t i = 0; i < line.n;) {
        if (is_space(line.p[i])) {
            i++;
            continue;
        }
        int32_t from = i;
        while (i < line.n && !is_space(line.p[i]))
            i++;
        if (n < max)
            fields[n] = (struct str){line.p + from, i - from};
        n++;
    }
    return n;
}

static bool parse_int(struct str s, int64_t min, int64_t max, int64_t *out)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    int32_t i = negative || (s.n > 0 && s.p[0] == '+') ? 1 : 0;
    if (s.n <= i || s.n - i > 19)
        return false;
    uint64_t v = 0;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    }
    if (v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return *out >= min && *out <= max;
}

/* The two first lines. *count is 0 when there is nothing, or the version alone. */
static enum err read_head(struct lines *in, int64_t *count)
{
    struct str line;
    int64_t version;
    *count = 0;
    if (!next_line(in, &line))
        return ERR_NONE;
    if (!parse_int(line, INT32_MIN, INT32_MAX, &version) || version != 0)
        return ERR_CORRUPT;
    if (!next_line(in, &line))
        return ERR_NONE;
    return parse_int(line, 0, INT32_MAX, count) ? ERR_NONE : ERR_CORRUPT;
}

/* ------------------------------------------------------------------ offsets */

void offset_checkpoint_init(struct offset_checkpoint *c)
{
    *c = (struct offset_checkpoint){NULL, 0, 0, 0};
}

void offset_checkpoint_close(struct offset_checkpoint *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].topic);
    free(c->v);
    offset_checkpoint_init(c);
}

enum err offset_checkpoint_add(struct offset_checkpoint *c, struct str topic, int32_t partition,
                               int64_t offset)
{
    enum err err = array_room(&c->v, c->n, &c->cap, sizeof *c->v);
    if (err != ERR_NONE)
        return err;
    size_t n = topic.n < 0 ? 0 : (size_t)topic.n;
    char *name = malloc(n + 1);
    if (name == NULL)
        return ERR_NOMEM;
    if (n > 0)
        memcpy(name, topic.p, n);
    name[n] = '\0';
    c->v[c->n++] = (struct offset_entry){name, partition, offset};
    return ERR_NONE;
}

static int compare(struct str topic, int32_t partition, const struct offset_entry *e)
{
    int order = str_cmp(topic, str_of(e->topic));
    if (order != 0)
        return order;
    return (partition > e->partition) - (partition < e->partition);
}

static int compare_entries(const void *a, const void *b)
{
    const struct offset_entry *e = a;
    return compare(str_of(e->topic), e->partition, b);
}

void offset_checkpoint_sort(struct offset_checkpoint *c)
{
    if (c->n > 1)
        qsort(c->v, c->n, sizeof *c->v, compare_entries);
    c->sorted_n = c->n;
}

int64_t offset_checkpoint_get(const struct offset_checkpoint *c, struct str topic,
                              int32_t partition)
{
    size_t lo = 0, hi = c->sorted_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = compare(topic, partition, &c->v[mid]);
        if (order == 0)
            return c->v[mid].offset;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    for (size_t i = c->sorted_n; i < c->n; i++) {
        if (compare(topic, partition, &c->v[i]) == 0)
            return c->v[i].offset;
    }
    return -1;
}

/* Gives every line behind the head to `take`; a missing file has none. */
static enum err read_entries(struct vfs *fs, const char *path,
                             enum err (*take)(struct str line, void *out), void *out)
{
    struct buf text;
    int64_t count, n = 0;
    struct str line;
    buf_init(&text);
    enum err err = file_slurp(fs, path, CHECKPOINT_MAX_BYTES, &text);
    if (err == ERR_NONE) {
        struct lines in = lines_of(&text);
        err = read_head(&in, &count);
        for (; err == ERR_NONE && next_line(&in, &line); n++)
            err = n < count ? take(line, out) : ERR_CORRUPT;
        if (err == ERR_NONE && n != count)
            err = ERR_CORRUPT;
    } else if (err == ERR_NOENT) {
        err = ERR_NONE;
    } else if (err == ERR_TOO_LARGE) {
        err = ERR_CORRUPT;
    }
    buf_close(&text);
    return err;
}

static enum err read_offset_line(struct str line, void *out)
{
    struct str f[3];
    int64_t partition, offset;
    if (split(line, f, 3) != 3)
        return ERR_CORRUPT;
    if (!parse_int(f[1], INT32_MIN, INT32_MAX, &partition) ||
        !parse_int(f[2], INT64_MIN, INT64_MAX, &offset))
        return ERR_RANGE;
    return offset_checkpoint_add(out, f[0], (int32_t)partition, offset);
}

enum err offset_checkpoint_read(struct vfs *fs, const char *path, struct offset_checkpoint *out)
{
    enum err err = read_entries(fs, path, read_offset_line, out);
    if (err == ERR_NONE)
        offset_checkpoint_sort(out);
    return err;
}

enum err offset_checkpoint_write(struct disk *d, const char *dir, const char *name,
                                 const struct offset_checkpoint *c)
{
    struct buf text;
    buf_init(&text);
    enum err err = buf_printf(&text, "0\n%zu\n", c->n);
    for (size_t i = 0; err == ERR_NONE && i < c->n; i++)
        err = buf_printf(&text, "%s %" PRId32 " %" PRId64 "\n", c->v[i].topic, c->v[i].partition,
                         c->v[i].offset);
    if (err == ERR_NONE)
        err = file_replace(d, dir, name, text.p, text.n);
    buf_close(&text);
    return err;
}

/* ------------------------------------------------------------------ leader epochs */

static enum err read_epoch_line(struct str line, void *out)
{
    struct str f[2];
    int64_t epoch, start;
    if (split(line, f, 2) != 2 || !parse_int(f[0], 0, INT32_MAX, &epoch) ||
        !parse_int(f[1], 0, INT64_MAX, &start))
        return ERR_CORRUPT;
    return epoch_cache_assign(out, (int32_t)epoch, start, NULL);
}

enum err epoch_checkpoint_read(struct vfs *fs, const char *dir, struct epoch_cache *out)
{
    char path[LOG_PATH_MAX];
    enum err err = path_join(path, dir, EPOCH_FILE);
    return err == ERR_NONE ? read_entries(fs, path, read_epoch_line, out) : err;
}

enum err epoch_checkpoint_print(const struct epoch_cache *c, struct buf *out)
{
    enum err err = buf_printf(out, "0\n%zu\n", c->n);
    for (size_t i = 0; err == ERR_NONE && i < c->n; i++)
        err = buf_printf(out, "%" PRId32 " %" PRId64 "\n", c->v[i].epoch, c->v[i].start_offset);
    return err;
}

enum err epoch_checkpoint_begin(struct disk *d, const char *dir, struct bytes text)
{
    return file_replace_begin(d, dir, EPOCH_FILE, text.p, text.n < 0 ? 0 : (size_t)text.n);
}

enum err epoch_checkpoint_end(struct disk *d, const char *dir)
{
    return file_replace_end(d, dir, EPOCH_FILE);
}

enum err epoch_checkpoint_write(struct disk *d, const char *dir, const struct epoch_cache *c)
{
    struct buf text;
    buf_init(&text);
    enum err err = epoch_checkpoint_print(c, &text);
    if (err == ERR_NONE)
        err = file_replace(d, dir, EPOCH_FILE, text.p, text.n);
    buf_close(&text);
    return err;
}
