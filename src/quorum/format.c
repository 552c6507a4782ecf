/* Formatting as Kafka's storage tool does with --standalone: a directory with nothing but the 0-0
 * snapshot, which makes this node the only voter. */
#include <stdio.h>

#include "quorum/raft.h"
#include "quorum/snapshot.h"

/* The directory's name has to last before anything says that it is formatted. */
static enum err make_directory(struct disk *d, const char *dir)
{
    char parent[4300];
    const char *slash = strrchr(dir, '/');
    const size_t n = slash == NULL ? 0 : (size_t)(slash - dir);
    if (n >= sizeof parent)
        return ERR_INVALID;
    enum err e = d->fs->ops->mkdir(d->fs, dir);
    if (e != ERR_NONE && e != ERR_EXIST)
        return e;
    memcpy(parent, slash == NULL ? "." : n == 0 ? "/" : dir, n == 0 ? 2 : n);
    parent[n == 0 ? 1 : n] = '\0';
    return d->sync_dir(d, parent);
}

enum err raft_format_standalone(struct disk *d, const char *dir, const struct raft_format *f)
{
    struct voter_set voters = {.n = 1};
    struct voter *v = &voters.v[0];
    struct buf content;
    if (!voter_reached_at(v, f->endpoint.listener, f->endpoint.host, f->endpoint.port))
        return ERR_INVALID;
    v->id = f->node_id;
    v->directory_id = f->directory_id;
    v->kraft_max = 1;
    const struct snapshot_content c = {
        .timestamp = f->now.wall_ms,
        .kraft_version = 1,
        .voters = &voters,
        .records = f->records,
        .records_n = f->records_n,
    };
    enum err e = make_directory(d, dir);
    if (e != ERR_NONE)
        return e;
    buf_init(&content);
    e = snapshot_build(&c, &content);
    if (e == ERR_NONE)
        e = snapshot_write(d, dir, c.id, content.p, content.n);
    buf_close(&content);
    return e;
}
