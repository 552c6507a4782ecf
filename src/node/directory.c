/* The log directory before anything else: formatted when it is empty, its ids compared with the
 * configuration, checkpoints read, partitions listed. Runs on a worker.
 *
 * A node that is all of its cluster formats itself as Kafka's --standalone. Nodes of one cluster
 * must not each make up an id for it: theirs has to be configured, or `dohle format` be told. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/inside.h"

static const char metadata_name[] = "__cluster_metadata-0";

__attribute__((format(printf, 3, 4))) static enum err fault(struct node_directory *nd, enum err e,
                                                            const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(nd->message, sizeof nd->message, fmt, ap);
    va_end(ap);
    return e;
}

/* ------------------------------------------------------------------ what is there */

struct listing {
    struct node_directory *nd;
    bool foreign; /* something that a fresh directory does not have */
};

static enum err add_dir(struct node_directory *nd, const char *name)
{
    if (nd->dirs_n == nd->dirs_cap) {
        const size_t cap = nd->dirs_cap == 0 ? 64 : nd->dirs_cap * 2;
        char **v = realloc(nd->dirs, cap * sizeof *v);
        if (v == NULL)
            return ERR_NOMEM;
        nd->dirs = v;
        nd->dirs_cap = cap;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return ERR_NOMEM;
    nd->dirs[nd->dirs_n++] = copy;
    return ERR_NONE;
}

static enum err list_entry(void *ctx, const char *name, bool is_dir)
{
    struct listing *l = ctx;
    if (!is_dir) {
        l->foreign |= strcmp(name, ".lock") != 0 && strstr(name, ".tmp") == NULL;
        return ERR_NONE;
    }
    if (strcmp(name, metadata_name) == 0 || strcmp(name, "lost+found") == 0)
        return ERR_NONE;
    l->foreign = true;
    return add_dir(l->nd, name);
}

/* ------------------------------------------------------------------ formatting */

static enum err not_empty(struct node_directory *nd)
{
    nd->bad_config = true;
    return fault(nd, ERR_INVALID,
                 "log.dirs=%s is not empty and has no meta.properties: name an empty directory",
                 nd->path);
}

/* Somebody has to say which cluster it is, and with dynamic voters who they are. */
static enum err not_formatted(struct node_directory *nd)
{
    nd->bad_config = true;
    if (nd->kind == FORMAT_NO_VOTERS)
        return fault(nd, ERR_INVALID,
                     "log.dirs=%s is not formatted: run 'dohle format' with the cluster's id and "
                     "--standalone, --initial-controllers or --no-initial-controllers",
                     nd->path);
    return fault(nd, ERR_INVALID,
                 "log.dirs=%s is not formatted: run 'dohle format' with one cluster id on all "
                 "nodes, or set cluster.id to it",
                 nd->path);
}

static enum err format(struct node_directory *nd, struct disk *d, bool foreign)
{
    struct meta_properties *m = &nd->meta;
    if (foreign)
        return not_empty(nd);
    if (nd->kind != FORMAT_STANDALONE &&
        (nd->cluster_id[0] == '\0' || nd->kind == FORMAT_NO_VOTERS))
        return not_formatted(nd);
    m->node_id = nd->node_id >= 0 ? nd->node_id : 1;
    m->directory_id = nd->fresh_directory_id;
    if (nd->cluster_id[0] != '\0') {
        memcpy(m->cluster_id, nd->cluster_id, sizeof m->cluster_id);
    } else {
        char text[UUID_TEXT_N + 1];
        uuid_print(nd->fresh_cluster_id, text);
        memcpy(m->cluster_id, text, sizeof text);
    }
    const struct node_format f = {
        .log_dir = nd->path,
        .kind = nd->kind,
        .meta = *m,
        .endpoint = nd->endpoint,
        .now = nd->now,
    };
    enum err e = node_format_write(d, &f);
    if (e == ERR_BUSY)
        return not_empty(nd);
    if (e != ERR_NONE)
        return fault(nd, e, "log.dirs=%s cannot be formatted: %s", nd->path, err_name(e));
    return ERR_NONE;
}

/* ------------------------------------------------------------------ reading */

static enum err check_ids(struct node_directory *nd)
{
    const struct meta_properties *m = &nd->meta;
    nd->bad_config = true;
    if (nd->node_id >= 0 && nd->node_id != m->node_id)
        return fault(nd, ERR_INVALID,
                     "node.id=%d, but log.dirs=%s belongs to node.id=%d: use its id or another "
                     "directory",
                     nd->node_id, nd->path, m->node_id);
    if (nd->cluster_id[0] != '\0' && strcmp(nd->cluster_id, m->cluster_id) != 0)
        return fault(
            nd, ERR_INVALID,
            "cluster.id=%s, but log.dirs=%s belongs to cluster.id=%s: use its id or another "
            "directory",
            nd->cluster_id, nd->path, m->cluster_id);
    nd->bad_config = false;
    return ERR_NONE;
}

/* tolerant: a number that is none means no entries, and recovery from the start (Kafka). */
static enum err read_checkpoint(struct node_directory *nd, struct disk *d, const char *name,
                                bool tolerant, struct offset_checkpoint *out)
{
    char path[sizeof nd->metadata_dir + 64];
    snprintf(path, sizeof path, "%s/%s", nd->path, name);
    enum err e = offset_checkpoint_read(d->fs, path, out);
    if (e == ERR_RANGE && tolerant) {
        offset_checkpoint_close(out);
        offset_checkpoint_init(out);
        e = ERR_NONE;
    }
    if (e != ERR_NONE)
        return fault(
            nd, e, "%s is not a checkpoint file: %s; restore it, or remove it to recover all logs",
            path, err_name(e));
    return ERR_NONE;
}

/* The marker goes before any log is loaded: a crash while loading must count as unclean. */
static enum err take_clean_marker(struct node_directory *nd, struct disk *d)
{
    nd->clean_broker_epoch = -1;
    enum err e = clean_shutdown_read(d->fs, nd->path, &nd->clean_broker_epoch);
    if (e == ERR_NOENT)
        return ERR_NONE;
    nd->clean = e == ERR_NONE;
    e = clean_shutdown_remove(d, nd->path);
    if (e != ERR_NONE)
        return fault(nd, e, "%s/.kafka_cleanshutdown cannot be removed: %s", nd->path, err_name(e));
    return ERR_NONE;
}

/* A process that was killed may have made directories whose names no sync covered; the logs in them
 * count on those from here on. */
static enum err sync_names(struct node_directory *nd, struct disk *d)
{
    enum err e = nd->clean ? ERR_NONE : d->sync_dir(d, nd->path);
    return e == ERR_NONE ? e
                         : fault(nd, e, "log.dirs=%s cannot be synced: %s", nd->path, err_name(e));
}

/* A broker's has no snapshot, so formatting makes no directory of the metadata log. */
static enum err make_metadata_dir(struct node_directory *nd, struct disk *d)
{
    enum err e = nd->kind == FORMAT_BROKER ? d->fs->ops->mkdir(d->fs, nd->metadata_dir) : ERR_EXIST;
    if (e == ERR_NONE)
        e = d->sync_dir(d, nd->path);
    return e == ERR_NONE || e == ERR_EXIST
               ? ERR_NONE
               : fault(nd, e, "%s cannot be made: %s", nd->metadata_dir, err_name(e));
}

static enum err read_formatted(struct node_directory *nd, struct disk *d)
{
    enum err e = check_ids(nd);
    if (e == ERR_NONE)
        e = take_clean_marker(nd, d);
    if (e == ERR_NONE)
        e = sync_names(nd, d);
    if (e == ERR_NONE)
        e = read_checkpoint(nd, d, "replication-offset-checkpoint", false, &nd->high_watermarks);
    if (e == ERR_NONE)
        e = read_checkpoint(nd, d, "recovery-point-offset-checkpoint", true, &nd->recovery_points);
    if (e == ERR_NONE)
        e = read_checkpoint(nd, d, "log-start-offset-checkpoint", true, &nd->log_starts);
    return e;
}

enum err node_directory_read(struct node_directory *nd, struct disk *d)
{
    struct listing l = {.nd = nd};
    char why[256] = "";
    enum err e = d->fs->ops->list(d->fs, nd->path, list_entry, &l);
    if (e != ERR_NONE)
        return fault(nd, e, "log.dirs=%s cannot be read: %s", nd->path, err_name(e));
    e = meta_properties_read(d->fs, nd->path, &nd->meta, why, sizeof why);
    if (e == ERR_NOENT) {
        e = format(nd, d, l.foreign);
    } else if (e != ERR_NONE) {
        nd->bad_config = true;
        return fault(nd, e, "%s/meta.properties: %s", nd->path, why[0] != '\0' ? why : err_name(e));
    } else {
        e = read_formatted(nd, d);
    }
    return e == ERR_NONE ? make_metadata_dir(nd, d) : e;
}

void node_directory_close(struct node_directory *nd)
{
    for (size_t i = 0; i < nd->dirs_n; i++)
        free(nd->dirs[i]);
    free(nd->dirs);
    nd->dirs = NULL;
    nd->dirs_n = nd->dirs_cap = 0;
    offset_checkpoint_close(&nd->high_watermarks);
    offset_checkpoint_close(&nd->recovery_points);
    offset_checkpoint_close(&nd->log_starts);
}
