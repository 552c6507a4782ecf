/* Formatting as Kafka's storage tool does: a directory with nothing but the 0-0 snapshot, which
 * names the voters, with --standalone this node alone. */
#include "log/checkpoint.h"
#include "log/path.h"
#include "quorum/raft.h"
#include "quorum/snapshot.h"

/* All of it is there before the first sync, which then waits for all. The snapshot needs no other
 * name while it is written: nothing says yet that the directory is formatted. */
static enum err write_directory(struct disk *d, const char *dir, struct snapshot_id id,
                                const struct buf *content)
{
    char path[LOG_PATH_MAX], parent[LOG_PATH_MAX], name[SNAPSHOT_NAME_MAX];
    snapshot_name(id, name);
    enum err e = path_join(path, dir, name);
    if (e == ERR_NONE)
        e = path_parent(parent, dir);
    if (e == ERR_NONE)
        e = d->fs->ops->mkdir(d->fs, dir);
    if (e == ERR_NONE || e == ERR_EXIST)
        e = file_write_synced(d, path, content->p, content->n);
    if (e == ERR_NONE)
        e = d->sync_dir(d, dir);
    return e == ERR_NONE ? d->sync_dir(d, parent) : e;
}

enum err raft_format_voters(struct disk *d, const char *dir, const struct raft_format *f,
                            int16_t kraft_version, const struct voter_set *voters)
{
    struct buf content;
    const struct snapshot_content c = {
        .timestamp = f->now.wall_ms,
        .kraft_version = kraft_version,
        .voters = voters,
        .records = f->records,
        .records_n = f->records_n,
    };
    buf_init(&content);
    enum err e = snapshot_build(&c, &content);
    if (e == ERR_NONE)
        e = write_directory(d, dir, c.id, &content);
    buf_close(&content);
    return e;
}

enum err raft_format_standalone(struct disk *d, const char *dir, const struct raft_format *f)
{
    struct voter_set voters = {.n = 1};
    struct voter *v = &voters.v[0];
    if (!voter_reached_at(v, f->endpoint.listener, f->endpoint.host, f->endpoint.port))
        return ERR_INVALID;
    v->id = f->node_id;
    v->directory_id = f->directory_id;
    v->kraft_max = 1;
    return raft_format_voters(d, dir, f, 1, &voters);
}
