/* Formatting gives meta.properties its name last: a directory without it that holds nothing but a
 * fresh __cluster_metadata-0 was half formatted and is formatted again. */
#include "node/format.h"

#include <stdio.h>

#include "base/check.h"
#include "core/metadata/features.h"
#include "core/metadata/records.h"

enum { PATH_N = 4200 };

struct clearing {
    struct vfs *fs;
    char dir[PATH_N];
};

static enum err remove_entry(void *ctx, const char *name, bool is_dir)
{
    struct clearing *c = ctx;
    char path[PATH_N + 300];
    (void)is_dir;
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    return c->fs->ops->unlink(c->fs, path);
}

static enum err only_snapshot(void *ctx, const char *name, bool is_dir)
{
    (void)ctx;
    return is_dir || strstr(name, ".checkpoint") == NULL ? ERR_BUSY : ERR_NONE;
}

bool node_format_expects(const char *name, bool is_dir)
{
    return is_dir ? strcmp(name, NODE_METADATA_DIR) == 0 || strcmp(name, "lost+found") == 0
                  : strcmp(name, ".lock") == 0 || strstr(name, ".tmp") != NULL;
}

/* The metadata log is looked at next. */
static enum err only_expected(void *ctx, const char *name, bool is_dir)
{
    (void)ctx;
    return node_format_expects(name, is_dir) ? ERR_NONE : ERR_BUSY;
}

/* A crash while formatting leaves only the 0-0 snapshot, whole or in part. */
static enum err clear_half_format(struct disk *d, struct clearing *c)
{
    struct file_stat st;
    c->fs = d->fs;
    if (d->fs->ops->stat(d->fs, c->dir, &st) == ERR_NOENT)
        return ERR_NONE;
    if (d->fs->ops->list(d->fs, c->dir, only_snapshot, NULL) != ERR_NONE)
        return ERR_BUSY;
    enum err e = d->fs->ops->list(d->fs, c->dir, remove_entry, c);
    if (e == ERR_NONE)
        e = d->fs->ops->rmdir(d->fs, c->dir);
    return e;
}

static enum err add_levels(struct record_list *records, const int16_t *levels)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    enum err e = ERR_NONE;
    for (size_t i = 0; i < n && e == ERR_NONE; i++) {
        const struct feature_level_record record = {
            .name = str_of(ranges[i].name),
            .feature_level = levels != NULL ? levels[i] : ranges[i].fresh,
        };
        if (record.feature_level > 0 && ranges[i].fresh > 0)
            e = record_list_add(records, &msg_feature_level_record, 0, &record);
    }
    return e;
}

static enum err write_snapshot(struct disk *d, const char *dir, const struct node_format *f,
                               const struct bytes *records, size_t n)
{
    const struct raft_format rf = {
        .node_id = f->meta.node_id,
        .directory_id = f->meta.directory_id,
        .endpoint = f->endpoint,
        .records = records,
        .records_n = n,
        .now = f->now,
    };
    switch (f->kind) {
    case FORMAT_STANDALONE:
        return raft_format_standalone(d, dir, &rf);
    case FORMAT_VOTERS:
        return raft_format_voters(d, dir, &rf, 1, f->voters);
    case FORMAT_NO_VOTERS:
        return raft_format_voters(d, dir, &rf, 1, NULL);
    case FORMAT_STATIC:
        return raft_format_voters(d, dir, &rf, 0, NULL);
    case FORMAT_BROKER:
        break;
    }
    return ERR_NONE;
}

static enum err write_controller(struct disk *d, const char *dir, const struct node_format *f)
{
    struct bytes framed[16];
    struct record_list records;
    record_list_init(&records);
    enum err e = add_levels(&records, f->levels);
    CHECK(records.n <= ARRAY_N(framed));
    for (size_t i = 0; i < records.n; i++)
        framed[i] = record_list_get(&records, i);
    if (e == ERR_NONE)
        e = write_snapshot(d, dir, f, framed, records.n);
    record_list_close(&records);
    return e;
}

enum err node_format_write(struct disk *d, const struct node_format *f)
{
    struct clearing c;
    enum err e = d->fs->ops->list(d->fs, f->log_dir, only_expected, NULL);
    snprintf(c.dir, sizeof c.dir, "%s/" NODE_METADATA_DIR, f->log_dir);
    if (e == ERR_NONE)
        e = clear_half_format(d, &c);
    if (e == ERR_NONE)
        e = meta_properties_begin(d, f->log_dir, &f->meta);
    if (e == ERR_NONE && f->kind != FORMAT_BROKER)
        e = write_controller(d, c.dir, f);
    if (e == ERR_NONE)
        e = meta_properties_end(d, f->log_dir);
    return e == ERR_NONE ? d->sync_dir(d, f->log_dir) : e;
}
