#include "quorum/snapshot.h"

#include <stdio.h>

#include "log/checkpoint.h"
#include "quorum/control.h"

enum { BATCH_BYTES = 1 << 20 }; /* of records; then a new batch begins */

void snapshot_name(struct snapshot_id id, char out[SNAPSHOT_NAME_MAX])
{
    snprintf(out, SNAPSHOT_NAME_MAX, "%020lld-%010d.checkpoint", (long long)id.offset, id.epoch);
}

static bool digits(const char *p, int n, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || *out > (INT64_MAX - 9) / 10)
            return false;
        *out = *out * 10 + (p[i] - '0');
    }
    return true;
}

bool snapshot_name_parse(const char *name, struct snapshot_id *out)
{
    int64_t offset, epoch;
    if (strlen(name) != 20 + 1 + 10 + 11 || name[20] != '-' ||
        strcmp(name + 31, ".checkpoint") != 0 || !digits(name, 20, &offset) ||
        !digits(name + 21, 10, &epoch) || epoch > INT32_MAX)
        return false;
    *out = (struct snapshot_id){offset, (int32_t)epoch};
    return true;
}

/* ------------------------------------------------------------------ building */

/* Closes a batch into out; e is what adding to it gave. */
static enum err end_batch(struct batch_builder *bb, enum err e, struct buf *out)
{
    struct bytes batch;
    if (e == ERR_NONE)
        e = batch_builder_finish(bb, &batch);
    if (e == ERR_NONE)
        e = buf_append(out, batch.p, (size_t)batch.n);
    batch_builder_free(bb);
    return e;
}

static enum err build_header(const struct snapshot_content *c, int64_t *offset, struct buf *out)
{
    struct batch_builder *bb;
    const struct snapshot_header_record header = {.last_contained_log_timestamp = c->timestamp};
    enum err e = control_begin_batch(*offset, c->id.epoch, BATCH_CONTROL, &bb);
    if (e != ERR_NONE)
        return e;
    e = control_add(bb, c->timestamp, CONTROL_SNAPSHOT_HEADER, &msg_snapshot_header_record,
                    &header);
    (*offset)++;
    if (e == ERR_NONE && c->kraft_version > 0) {
        e = control_add_kraft_version(bb, c->timestamp, c->kraft_version);
        (*offset)++;
        if (e == ERR_NONE && c->voters != NULL) {
            e = control_add_voters(bb, c->timestamp, c->voters);
            (*offset)++;
        }
    }
    return end_batch(bb, e, out);
}

static enum err build_records(const struct snapshot_content *c, int64_t *offset, struct buf *out)
{
    enum err e = ERR_NONE;
    for (size_t i = 0; i < c->records_n && e == ERR_NONE;) {
        struct batch_builder *bb;
        e = control_begin_batch(*offset, c->id.epoch, 0, &bb);
        if (e != ERR_NONE)
            return e;
        do {
            e = batch_builder_add(bb, c->timestamp, BYTES_NULL, c->records[i++], NULL, 0);
            (*offset)++;
        } while (e == ERR_NONE && i < c->records_n && batch_builder_bytes(bb) < BATCH_BYTES);
        e = end_batch(bb, e, out);
    }
    return e;
}

enum err snapshot_build(const struct snapshot_content *c, struct buf *out)
{
    int64_t offset = 0;
    enum err e = build_header(c, &offset, out);
    if (e == ERR_NONE)
        e = build_records(c, &offset, out);
    if (e != ERR_NONE)
        return e;
    struct batch_builder *bb;
    const struct snapshot_footer_record footer = {.version = 0};
    e = control_begin_batch(offset, c->id.epoch, BATCH_CONTROL, &bb);
    if (e != ERR_NONE)
        return e;
    e = control_add(bb, c->timestamp, CONTROL_SNAPSHOT_FOOTER, &msg_snapshot_footer_record,
                    &footer);
    e = end_batch(bb, e, out);
    return e == ERR_NONE && out->n > SNAPSHOT_MAX_BYTES ? ERR_TOO_LARGE : e;
}

/* ------------------------------------------------------------------ files */

enum { PATH_N = 4300 };

static void path_of(char out[PATH_N], const char *dir, struct snapshot_id id)
{
    char name[SNAPSHOT_NAME_MAX];
    snapshot_name(id, name);
    snprintf(out, PATH_N, "%s/%s", dir, name);
}

enum err snapshot_write(struct disk *d, const char *dir, struct snapshot_id id, const void *p,
                        size_t n)
{
    char path[PATH_N], part[PATH_N + 8];
    path_of(path, dir, id);
    snprintf(part, sizeof part, "%s.part", path);
    enum err e = file_write_synced(d, part, p, n);
    if (e == ERR_NONE)
        e = d->fs->ops->rename(d->fs, part, path);
    return e == ERR_NONE ? d->sync_dir(d, dir) : e;
}

enum err snapshot_remove(struct vfs *fs, const char *dir, struct snapshot_id id)
{
    char path[PATH_N];
    path_of(path, dir, id);
    return fs->ops->unlink(fs, path);
}

/* Whole batches with good CRCs, from a header to a footer. */
static enum err check_content(struct bytes in)
{
    int first, last = -1;
    bool begun = false;
    while (in.n > 0) {
        struct batch b;
        enum err e = batch_take(&in, &b);
        if (e != ERR_NONE || b.magic != 2 || !batch_crc_ok(&b))
            return ERR_CORRUPT;
        first = last = -1;
        if ((b.attributes & BATCH_CONTROL) != 0 &&
            (e = control_types(&b, &first, &last)) != ERR_NONE)
            return e;
        if (!begun && first != CONTROL_SNAPSHOT_HEADER)
            return ERR_CORRUPT;
        begun = true;
    }
    return last == CONTROL_SNAPSHOT_FOOTER ? ERR_NONE : ERR_CORRUPT;
}

enum err snapshot_read(struct vfs *fs, const char *dir, struct snapshot_id id, struct buf *out)
{
    char path[PATH_N];
    path_of(path, dir, id);
    enum err e = file_slurp(fs, path, SNAPSHOT_MAX_BYTES, out);
    return e == ERR_NONE ? check_content((struct bytes){out->p, (int32_t)out->n}) : e;
}

enum err snapshot_install(struct disk *d, const char *dir, struct snapshot_id id, struct buf *out)
{
    char path[PATH_N], part[PATH_N + 8];
    path_of(path, dir, id);
    snprintf(part, sizeof part, "%s.part", path);
    enum err e = file_slurp(d->fs, part, SNAPSHOT_MAX_BYTES, out);
    if (e == ERR_NONE)
        e = check_content((struct bytes){out->p, (int32_t)out->n});
    if (e == ERR_CORRUPT) {
        enum err gone = d->fs->ops->unlink(d->fs, part);
        return gone == ERR_NONE ? e : gone;
    }
    if (e == ERR_NONE)
        e = d->sync(d, part);
    if (e == ERR_NONE)
        e = d->fs->ops->rename(d->fs, part, path);
    return e == ERR_NONE ? d->sync_dir(d, dir) : e;
}
