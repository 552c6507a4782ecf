/* The log directories before anything else: formatted when all are empty, their ids compared with
 * the configuration and each other, checkpoints read, partitions listed. Runs on a worker.
 *
 * A node that is all of its cluster formats itself as Kafka's --standalone. Nodes of one cluster
 * must not each make up an id for it: theirs has to be configured, or `dohle format` be told. One
 * empty directory among others that are not may be a disk that is missing: nothing is written
 * there unless `dohle format` is told to. The metadata log's is formatted last, so that a crash in
 * between leaves what can be told from that. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/path.h"
#include "node/inside.h"

__attribute__((format(printf, 3, 4))) static enum err fault(struct node_directory *nd, enum err e,
                                                            const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(nd->message, sizeof nd->message, fmt, ap);
    va_end(ap);
    return e;
}

__attribute__((format(printf, 2, 3))) static enum err misconfigured(struct node_directory *nd,
                                                                    const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(nd->message, sizeof nd->message, fmt, ap);
    va_end(ap);
    nd->bad_config = true;
    return ERR_INVALID;
}

/* Without it the others serve. */
__attribute__((format(printf, 4, 5))) static enum err
dir_fault(struct node_directory *nd, struct node_log_dir *ld, enum err e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ld->why, sizeof ld->why, fmt, ap);
    va_end(ap);
    if (e == ERR_NOMEM || ld == nd->metadata)
        return fault(nd, e, "%s", ld->why);
    ld->offline = e;
    return ERR_NONE;
}

/* ------------------------------------------------------------------ what is there */

struct listing {
    struct node_log_dir *ld;
    bool metadata; /* a metadata log is there */
};

static enum err add_dir(struct node_log_dir *ld, const char *name)
{
    if (ld->dirs_n == ld->dirs_cap) {
        const size_t cap = ld->dirs_cap == 0 ? 64 : ld->dirs_cap * 2;
        char **v = realloc(ld->dirs, cap * sizeof *v);
        if (v == NULL)
            return ERR_NOMEM;
        ld->dirs = v;
        ld->dirs_cap = cap;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return ERR_NOMEM;
    ld->dirs[ld->dirs_n++] = copy;
    return ERR_NONE;
}

static enum err list_entry(void *ctx, const char *name, bool is_dir)
{
    struct listing *l = ctx;
    l->metadata |= is_dir && strcmp(name, NODE_METADATA_DIR) == 0;
    if (node_format_expects(name, is_dir))
        return ERR_NONE;
    l->ld->foreign = true;
    return is_dir ? add_dir(l->ld, name) : ERR_NONE;
}

static enum err read_meta(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    char why[256] = "";
    enum err e = meta_properties_read(d->fs, ld->path, &ld->meta, why, sizeof why);
    ld->formatted = e == ERR_NONE;
    if (e == ERR_NONE || e == ERR_NOENT)
        return ERR_NONE;
    if (e != ERR_CORRUPT && ld != nd->metadata)
        return dir_fault(nd, ld, e, "%s/meta.properties: %s", ld->path, err_name(e));
    nd->bad_config = true;
    return fault(nd, e, "%s/meta.properties: %s", ld->path, why[0] != '\0' ? why : err_name(e));
}

static enum err look(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    struct listing l = {.ld = ld};
    enum err e = d->fs->ops->list(d->fs, ld->path, list_entry, &l);
    if (e != ERR_NONE)
        return dir_fault(nd, ld, e, "log.dirs=%s cannot be read: %s", ld->path, err_name(e));
    if (l.metadata && ld != nd->metadata)
        return misconfigured(nd, "%s has a metadata log, but metadata.log.dir is %s", ld->path,
                             nd->metadata->path);
    return read_meta(nd, ld, d);
}

/* Each that is online. */
static enum err each(struct node_directory *nd, struct disk *d,
                     enum err (*step)(struct node_directory *, struct node_log_dir *,
                                      struct disk *))
{
    enum err e = ERR_NONE;
    for (size_t i = 0; i < nd->all_n && e == ERR_NONE; i++)
        if (nd->all[i].offline == ERR_NONE)
            e = step(nd, &nd->all[i], d);
    return e;
}

/* ------------------------------------------------------------------ formatting */

static enum err not_empty(struct node_directory *nd, const struct node_log_dir *ld)
{
    return misconfigured(nd,
                         "log.dirs=%s is not empty and has no meta.properties: name an empty "
                         "directory",
                         ld->path);
}

/* Somebody has to say which cluster it is, and with dynamic voters who they are. */
static enum err not_formatted(struct node_directory *nd)
{
    const char *path = nd->metadata->path;
    if (nd->kind == FORMAT_NO_VOTERS)
        return misconfigured(nd,
                             "log.dirs=%s is not formatted: run 'dohle format' with the cluster's "
                             "id and --standalone, --initial-controllers or "
                             "--no-initial-controllers",
                             path);
    return misconfigured(nd,
                         "log.dirs=%s is not formatted: run 'dohle format' with one cluster id on "
                         "all nodes, or set cluster.id to it",
                         path);
}

static void choose_ids(struct node_directory *nd)
{
    struct meta_properties *m = &nd->meta;
    m->node_id = nd->node_id >= 0 ? nd->node_id : 1;
    if (nd->cluster_id[0] != '\0') {
        memcpy(m->cluster_id, nd->cluster_id, sizeof m->cluster_id);
    } else {
        char text[UUID_TEXT_N + 1];
        uuid_print(nd->fresh_cluster_id, text);
        memcpy(m->cluster_id, text, sizeof text);
    }
}

static enum err format_one(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    if (ld->formatted)
        return ERR_NONE;
    ld->meta = nd->meta;
    ld->meta.directory_id = ld->fresh_id;
    const struct node_format f = {
        .log_dir = ld->path,
        .kind = ld == nd->metadata ? nd->kind : FORMAT_BROKER,
        .meta = ld->meta,
        .endpoint = nd->endpoint,
        .now = nd->now,
    };
    enum err e = node_format_write(d, &f);
    if (e == ERR_BUSY)
        return not_empty(nd, ld);
    if (e != ERR_NONE)
        return fault(nd, e, "log.dirs=%s cannot be formatted: %s", ld->path, err_name(e));
    ld->formatted = ld->fresh = true;
    return ERR_NONE;
}

/* Were its own name lost in a crash, it would be an empty one beside others. */
static enum err sync_parent(struct node_directory *nd, const struct node_log_dir *ld,
                            struct disk *d)
{
    char parent[LOG_PATH_MAX];
    enum err e = path_parent(parent, ld->path);
    if (e == ERR_NONE)
        e = d->sync_dir(d, parent);
    return e == ERR_NONE
               ? e
               : fault(nd, e, "log.dirs=%s cannot be formatted: %s", ld->path, err_name(e));
}

static enum err format_other(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    if (ld == nd->metadata)
        return ERR_NONE;
    enum err e = format_one(nd, ld, d);
    return e == ERR_NONE ? sync_parent(nd, ld, d) : e;
}

/* One that is left out would be an empty one beside others. */
static enum err check_all_online(struct node_directory *nd)
{
    for (size_t i = 0; i < nd->all_n; i++)
        if (nd->all[i].offline != ERR_NONE)
            return fault(nd, nd->all[i].offline, "%s", nd->all[i].why);
    return ERR_NONE;
}

/* All are empty, or a crash left some formatted and nothing else in them. */
static enum err format(struct node_directory *nd, struct disk *d)
{
    if (nd->kind != FORMAT_STANDALONE &&
        (nd->cluster_id[0] == '\0' || nd->kind == FORMAT_NO_VOTERS))
        return not_formatted(nd);
    choose_ids(nd);
    for (size_t i = 0; i < nd->all_n; i++)
        if (nd->all[i].formatted)
            memcpy(nd->meta.cluster_id, nd->all[i].meta.cluster_id, sizeof nd->meta.cluster_id);
    enum err e = check_all_online(nd);
    if (e == ERR_NONE)
        e = each(nd, d, format_other);
    return e == ERR_NONE ? format_one(nd, nd->metadata, d) : e;
}

static enum err missing(struct node_directory *nd, const struct node_log_dir *ld)
{
    return misconfigured(nd,
                         "log.dirs=%s is empty, other log directories are not: mount its disk, or "
                         "run 'dohle format --ignore-formatted'",
                         ld->path);
}

static enum err format_if_empty(struct node_directory *nd, struct disk *d)
{
    bool used = nd->metadata->formatted;
    const struct node_log_dir *without = NULL;
    for (size_t i = 0; i < nd->all_n; i++) {
        const struct node_log_dir *ld = &nd->all[i];
        if (ld->offline != ERR_NONE)
            continue;
        if (!ld->formatted && ld->foreign)
            return not_empty(nd, ld);
        used |= ld->dirs_n > 0;
        without = ld->formatted ? without : ld;
    }
    if (without == NULL)
        return ERR_NONE;
    return used ? missing(nd, without) : format(nd, d);
}

/* ------------------------------------------------------------------ ids */

static enum err check_ids(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    const struct meta_properties *m = &ld->meta, *first = &nd->metadata->meta;
    (void)d;
    if (nd->node_id >= 0 && nd->node_id != m->node_id)
        return misconfigured(nd,
                             "node.id=%d, but log.dirs=%s belongs to node.id=%d: use its id or "
                             "another directory",
                             nd->node_id, ld->path, m->node_id);
    if (nd->cluster_id[0] != '\0' && strcmp(nd->cluster_id, m->cluster_id) != 0)
        return misconfigured(nd,
                             "cluster.id=%s, but log.dirs=%s belongs to cluster.id=%s: use its id "
                             "or another directory",
                             nd->cluster_id, ld->path, m->cluster_id);
    if (m->node_id != first->node_id || strcmp(m->cluster_id, first->cluster_id) != 0)
        return misconfigured(nd,
                             "%s belongs to node.id=%d of cluster.id=%s, %s to node.id=%d of "
                             "cluster.id=%s",
                             nd->metadata->path, first->node_id, first->cluster_id, ld->path,
                             m->node_id, m->cluster_id);
    for (const struct node_log_dir *other = nd->all; other < ld; other++)
        if (other->offline == ERR_NONE && uuid_eq(other->meta.directory_id, m->directory_id))
            return misconfigured(nd, "%s and %s have the same directory.id: one is a copy",
                                 other->path, ld->path);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ reading */

/* tolerant: a number that is none means no entries, and recovery from the start (Kafka). */
static enum err read_checkpoint(struct node_directory *nd, struct node_log_dir *ld, struct disk *d,
                                const char *name, bool tolerant, struct offset_checkpoint *out)
{
    char path[sizeof nd->metadata_dir + 64];
    snprintf(path, sizeof path, "%s/%s", ld->path, name);
    enum err e = ld->offline != ERR_NONE ? ERR_NONE : offset_checkpoint_read(d->fs, path, out);
    if (e == ERR_RANGE && tolerant) {
        offset_checkpoint_close(out);
        offset_checkpoint_init(out);
        e = ERR_NONE;
    }
    if (e != ERR_NONE)
        return dir_fault(
            nd, ld, e,
            "%s is not a checkpoint file: %s; restore it, or remove it to recover all logs", path,
            err_name(e));
    return ERR_NONE;
}

/* The marker goes before any log is loaded: a crash while loading must count as unclean. */
static enum err take_clean_marker(struct node_directory *nd, struct node_log_dir *ld,
                                  struct disk *d)
{
    enum err e = clean_shutdown_read(d->fs, ld->path, &ld->clean_broker_epoch);
    if (e == ERR_NOENT)
        return ERR_NONE;
    ld->clean = e == ERR_NONE;
    e = clean_shutdown_remove(d, ld->path);
    if (e != ERR_NONE)
        return dir_fault(nd, ld, e, "%s/.kafka_cleanshutdown cannot be removed: %s", ld->path,
                         err_name(e));
    return ERR_NONE;
}

/* A process that was killed may have made directories whose names no sync covered; the logs in them
 * count on those from here on. */
static enum err sync_names(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    enum err e = ld->clean || ld->offline != ERR_NONE ? ERR_NONE : d->sync_dir(d, ld->path);
    return e == ERR_NONE
               ? e
               : dir_fault(nd, ld, e, "log.dirs=%s cannot be synced: %s", ld->path, err_name(e));
}

static enum err read_formatted(struct node_directory *nd, struct node_log_dir *ld, struct disk *d)
{
    if (ld->fresh)
        return ERR_NONE;
    enum err e = take_clean_marker(nd, ld, d);
    if (e == ERR_NONE)
        e = sync_names(nd, ld, d);
    if (e == ERR_NONE)
        e = read_checkpoint(nd, ld, d, "replication-offset-checkpoint", false,
                            &ld->high_watermarks);
    if (e == ERR_NONE)
        e = read_checkpoint(nd, ld, d, "recovery-point-offset-checkpoint", true,
                            &ld->recovery_points);
    if (e == ERR_NONE)
        e = read_checkpoint(nd, ld, d, "log-start-offset-checkpoint", true, &ld->log_starts);
    return e;
}

/* A controller that begins anew forgets what it voted and what it acknowledged. */
static enum err find_metadata_dir(struct node_directory *nd, struct disk *d)
{
    struct file_stat st;
    enum err e = d->fs->ops->stat(d->fs, nd->metadata_dir, &st);
    if (e == ERR_NONE)
        return ERR_NONE;
    nd->bad_config = e == ERR_NOENT;
    return fault(
        nd, e,
        "%s, the metadata log of this controller, cannot be read: %s; restore it, or empty "
        "log.dirs and format it to join as another one",
        nd->metadata_dir, err_name(e));
}

/* A broker's has no snapshot, so formatting makes no directory of the metadata log. */
static enum err make_metadata_dir(struct node_directory *nd, struct disk *d)
{
    if (nd->kind != FORMAT_BROKER)
        return find_metadata_dir(nd, d);
    enum err e = d->fs->ops->mkdir(d->fs, nd->metadata_dir);
    if (e == ERR_NONE)
        e = d->sync_dir(d, nd->metadata->path);
    return e == ERR_NONE || e == ERR_EXIST
               ? ERR_NONE
               : fault(nd, e, "%s cannot be made: %s", nd->metadata_dir, err_name(e));
}

enum err node_directory_read(struct node_directory *nd, struct disk *d)
{
    enum err e = each(nd, d, look);
    if (e == ERR_NONE)
        e = format_if_empty(nd, d);
    if (e == ERR_NONE)
        e = each(nd, d, check_ids);
    if (e == ERR_NONE)
        e = each(nd, d, read_formatted);
    if (e != ERR_NONE)
        return e;
    nd->meta = nd->metadata->meta;
    return make_metadata_dir(nd, d);
}
