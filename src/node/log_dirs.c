/* The log directories as the node holds them: made and locked before anything else, given up when
 * they fail. One that cannot be had at the start, or fails later, is offline until the next start;
 * the node needs that of the metadata log and, as a broker, one of log.dirs (Kafka). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/inside.h"

enum { DIRECTORY_PATH_MAX = 4096 };

/* ------------------------------------------------------------------ opening */

static void add(struct node_directory *nd, const char *configured)
{
    struct node_log_dir *ld = &nd->all[nd->all_n++];
    ld->configured = configured;
    ld->clean_broker_epoch = -1;
    offset_checkpoint_init(&ld->high_watermarks);
    offset_checkpoint_init(&ld->recovery_points);
    offset_checkpoint_init(&ld->log_starts);
}

static enum err add_all(struct node *n)
{
    struct node_directory *nd = &n->directory;
    size_t count;
    const char *const *v = config_log_dirs(n->config, &count);
    const char *metadata = config_metadata_log_dir(n->config);
    nd->all = calloc(count + 1, sizeof *nd->all);
    if (nd->all == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(v[i], metadata) == 0)
            nd->metadata = &nd->all[i];
        add(nd, v[i]);
    }
    nd->log_dirs_n = nd->all_n;
    if (nd->metadata == NULL) {
        nd->metadata = &nd->all[nd->all_n];
        add(nd, metadata);
    }
    return ERR_NONE;
}

static const char *key_of(const struct node_directory *nd, const struct node_log_dir *ld)
{
    return (size_t)(ld - nd->all) < nd->log_dirs_n ? "log.dirs" : "metadata.log.dir";
}

static enum err set_path(struct node *n, struct node_log_dir *ld)
{
    char absolute[DIRECTORY_PATH_MAX];
    struct vfs *fs = n->env->fs;
    enum err e = fs->ops->absolute(fs, ld->configured, absolute, sizeof absolute);
    if (e != ERR_NONE) {
        snprintf(ld->why, sizeof ld->why, "%s=%s has no absolute path: %s",
                 key_of(&n->directory, ld), ld->configured, err_name(e));
        return e;
    }
    ld->path = strdup(absolute);
    return ld->path == NULL ? ERR_NOMEM : ERR_NONE;
}

/* mkdir -p */
static enum err make(struct vfs *fs, char *path)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        enum err e = fs->ops->mkdir(fs, path);
        *p = '/';
        (void)e; /* the last mkdir tells */
    }
    enum err e = fs->ops->mkdir(fs, path);
    return e == ERR_EXIST ? ERR_NONE : e;
}

static enum err make_and_lock(struct node *n, struct node_log_dir *ld)
{
    struct vfs *fs = n->env->fs;
    const char *key = key_of(&n->directory, ld);
    enum err e = make(fs, ld->path);
    if (e != ERR_NONE) {
        snprintf(ld->why, sizeof ld->why, "%s=%s cannot be created: %s", key, ld->configured,
                 err_name(e));
        return e;
    }
    e = fs->ops->lock(fs, ld->path);
    if (e != ERR_NONE) {
        snprintf(ld->why, sizeof ld->why, "%s=%s cannot be locked: %s", key, ld->configured,
                 e != ERR_BUSY            ? err_name(e)
                 : n->directory.all_n > 1 ? "another process uses it, or it is named twice"
                                          : "another process uses it");
        return e;
    }
    ld->locked = true;
    return ERR_NONE;
}

static const struct node_log_dir *same_path(const struct node_directory *nd,
                                            const struct node_log_dir *ld)
{
    for (const struct node_log_dir *other = nd->all; other < ld; other++)
        if (other->path != NULL && strcmp(other->path, ld->path) == 0)
            return other;
    return NULL;
}

static enum err open_one(struct node *n, struct node_log_dir *ld)
{
    struct node_directory *nd = &n->directory;
    enum err e = set_path(n, ld);
    if (e != ERR_NONE)
        return e;
    const struct node_log_dir *other = same_path(nd, ld);
    if (other != NULL) {
        snprintf(ld->why, sizeof ld->why, "%s=%s and %s=%s are one directory", key_of(nd, other),
                 other->configured, key_of(nd, ld), ld->configured);
        return ERR_INVALID;
    }
    e = make_and_lock(n, ld);
    if (e == ERR_NONE || e == ERR_BUSY || e == ERR_NOMEM || ld == nd->metadata)
        return e;
    ld->offline = e;
    env_log(n->env, LOG_ERROR, "log_dir_offline path=%s reason=\"%s\"", ld->path, ld->why);
    return ERR_NONE;
}

enum err node_open_log_dirs(struct node *n, char *message, size_t message_n)
{
    struct node_directory *nd = &n->directory;
    enum err e = add_all(n);
    for (size_t i = 0; i < nd->all_n && e == ERR_NONE; i++) {
        e = open_one(n, &nd->all[i]);
        if (e != ERR_NONE && nd->all[i].why[0] != '\0')
            snprintf(message, message_n, "%s", nd->all[i].why);
    }
    return e;
}

static void close_one(struct node *n, struct node_log_dir *ld)
{
    if (ld->locked)
        n->env->fs->ops->unlock(n->env->fs, ld->path);
    for (size_t i = 0; i < ld->dirs_n; i++)
        free(ld->dirs[i]);
    free(ld->dirs);
    free(ld->path);
    offset_checkpoint_close(&ld->high_watermarks);
    offset_checkpoint_close(&ld->recovery_points);
    offset_checkpoint_close(&ld->log_starts);
}

void node_close_log_dirs(struct node *n)
{
    struct node_directory *nd = &n->directory;
    for (size_t i = 0; i < nd->all_n; i++)
        close_one(n, &nd->all[i]);
    free(nd->all);
}

/* ------------------------------------------------------------------ facts */

size_t node_log_dirs_online_n(const struct node *n)
{
    size_t online = 0;
    for (size_t i = 0; i < n->directory.log_dirs_n; i++)
        online += n->directory.all[i].offline == ERR_NONE;
    return online;
}

int64_t node_previous_broker_epoch(const struct node *n)
{
    const struct node_directory *nd = &n->directory;
    const int64_t epoch = nd->all[0].clean_broker_epoch;
    for (size_t i = 0; i < nd->log_dirs_n; i++)
        if (nd->all[i].offline != ERR_NONE || !nd->all[i].clean ||
            nd->all[i].clean_broker_epoch != epoch)
            return -1;
    return epoch;
}

/* ------------------------------------------------------------------ failing */

void node_log_dir_failed(struct node *n, size_t i, enum err e, const char *what)
{
    struct node_log_dir *ld = &n->directory.all[i];
    ld->offline = e;
    if (ld == n->directory.metadata || node_log_dirs_online_n(n) == 0) {
        node_fail(n, false, "log directory %s failed: %s: %s", ld->path, what, err_name(e));
        return;
    }
    env_log(n->env, LOG_ERROR, "log_dir_offline path=%s reason=\"%s: %s\"", ld->path, what,
            err_name(e));
    n->env->fs->ops->unlock(n->env->fs, ld->path);
    ld->locked = false;
    broker_directory_failed(n->broker, i, n->now);
}
