/* A snapshot of the leader's, for a log that is too far behind (KIP-630): downloaded piece by piece
 * beside the log, made durable by a job, then the log starts over at it. Whatever goes wrong drops
 * the download; the next Fetch says again where to begin. */
#include <stdio.h>

#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

static void part_path(const struct raft *r, struct snapshot_id id, char out[4400])
{
    char name[SNAPSHOT_NAME_MAX];
    snapshot_name(id, name);
    snprintf(out, 4400, "%s/%s.part", r->persist.dir, name);
}

void raft_drop_download(struct raft *r)
{
    if (r->download.file == NULL)
        return;
    file_unref(r->download.file);
    r->download.file = NULL; /* what is there is overwritten, or removed by the next start */
}

bool raft_snapshot_named(struct raft *r, struct snapshot_id id)
{
    char path[4400];
    if (id.offset <= r->newest.offset || r->snapshot_job.running || r->install.running)
        return false;
    raft_drop_download(r);
    part_path(r, id, path);
    enum err e = r->env->fs->ops->open(r->env->fs, path, FILE_CREATE, &r->download.file);
    if (e != ERR_NONE) {
        r->download.file = NULL;
        if (!raft_error_passes(e))
            raft_fail(r, e, "a snapshot cannot be downloaded");
        return false;
    }
    env_log(r->env, LOG_INFO, "metadata_snapshot_download offset=%lld epoch=%d leader=%d",
            (long long)id.offset, id.epoch, r->leader_id);
    r->download.id = id;
    r->download.position = 0;
    r->download.size = -1;
    return true;
}

struct raft_message *raft_ask_piece(struct raft *r, struct raft_link *l)
{
    union raft_body *b = &l->body;
    memset(b, 0, sizeof *b);
    wire_default(&wire_fetch_snapshot_request, &b->snapshot.req);
    wire_default(&wire_fetch_snapshot_request_partition_snapshot, &b->snapshot.part);
    b->snapshot.part.current_leader_epoch = r->epoch;
    b->snapshot.part.snapshot_id.end_offset = r->download.id.offset;
    b->snapshot.part.snapshot_id.epoch = r->download.id.epoch;
    b->snapshot.part.position = r->download.position;
    b->snapshot.part.replica_directory_id = r->directory_id;
    b->snapshot.topic.name = RAFT_TOPIC;
    b->snapshot.topic.partitions.v = &b->snapshot.part;
    b->snapshot.topic.partitions.n = 1;
    b->snapshot.req.cluster_id = str_of(r->cluster_id);
    b->snapshot.req.replica_id = r->node_id;
    b->snapshot.req.max_bytes = r->config.fetch_snapshot_max_bytes;
    b->snapshot.req.topics.v = &b->snapshot.topic;
    b->snapshot.req.topics.n = 1;
    return raft_send(r, l, API_FETCH_SNAPSHOT, &b->snapshot.req);
}

/* ------------------------------------------------------------------ installing */

static void install_run(struct job *j, struct disk *d)
{
    struct raft_install *in = CONTAINER_OF(j, struct raft_install, job);
    in->err = snapshot_install(d, in->dir, in->id, &in->content);
}

/* It is on disk. Only a log that does not reach it starts over: the next start would decide so too.
 */
static enum err begin_from(struct raft *r)
{
    const struct snapshot_id id = r->install.id;
    const int32_t last_epoch = raft_last_epoch(r);
    const struct snapshot_kept kept = {id, (int64_t)r->install.content.n, r->now.wall_ms};
    enum err e = raft_keep_snapshot(&r->kept, kept);
    if (e != ERR_NONE)
        return e; /* it is named and fetched again */
    r->newest = id;
    if (r->state == RAFT_LEADER || id.epoch < last_epoch ||
        (id.epoch == last_epoch && id.offset <= log_end_offset(r->log)))
        return ERR_NONE;
    buf_close(&r->newest_content);
    r->newest_content = r->install.content;
    buf_init(&r->install.content);
    e = log_reset(r->log, id.offset, r->now);
    if (e != ERR_NONE)
        return e;
    buf_close(&r->incoming);
    r->flush_asked = -1;
    r->delivered = id.offset;
    r->delivered_bytes = 0;
    r->snapshot_untold = true;
    if (r->high_watermark < id.offset)
        r->high_watermark = id.offset;
    (void)voter_history_truncate(&r->history, id.offset - 1);
    e = raft_take_snapshot_voters(r);
    if (e == ERR_NONE)
        raft_voters_changed(r);
    raft_drop_behind(r);
    return e;
}

static void install_done(struct job *j)
{
    struct raft_install *in = CONTAINER_OF(j, struct raft_install, job);
    struct raft *r = CONTAINER_OF(in, struct raft, install);
    in->running = false;
    enum err e = in->err;
    if (r->log != NULL && !r->failed) {
        env_log(r->env, e == ERR_NONE ? LOG_INFO : LOG_WARN,
                "metadata_snapshot_install offset=%lld epoch=%d error=%s", (long long)in->id.offset,
                in->id.epoch, err_name(e));
        if (e == ERR_NONE)
            e = begin_from(r);
        if (e != ERR_NONE && e != ERR_CORRUPT && !raft_error_passes(e))
            raft_fail(r, e, "a snapshot cannot be installed");
    }
    buf_close(&in->content);
    if (r->log == NULL)
        raft_job_ended(r);
}

static void install(struct raft *r)
{
    struct raft_install *in = &r->install;
    raft_drop_download(r);
    in->running = true;
    in->dir = r->persist.dir;
    in->id = r->download.id;
    in->job = (struct job){.lane = JOB_BULK, .run = install_run, .done = install_done};
    r->env->submit(r->env, &in->job);
}

/* ------------------------------------------------------------------ answers */

static const struct fetch_snapshot_response_partition_snapshot *
part_of(const struct fetch_snapshot_response *resp)
{
    const bool good = resp->error_code == K_NONE && resp->topics.n == 1 &&
                      raft_is_metadata_topic(resp->topics.v[0].name) &&
                      resp->topics.v[0].partitions.n == 1 &&
                      resp->topics.v[0].partitions.v[0].index == 0;
    return good ? &resp->topics.v[0].partitions.v[0] : NULL;
}

static bool is_next_piece(const struct raft *r,
                          const struct fetch_snapshot_response_partition_snapshot *p)
{
    const struct raft_download *d = &r->download;
    return p->snapshot_id.end_offset == d->id.offset && p->snapshot_id.epoch == d->id.epoch &&
           p->position == d->position && p->size > 0 && p->size <= SNAPSHOT_MAX_BYTES &&
           (d->size < 0 || d->size == p->size) && p->unaligned_records.n > 0 &&
           p->unaligned_records.n <= p->size - p->position;
}

static bool take_piece(struct raft *r, const struct fetch_snapshot_response_partition_snapshot *p)
{
    struct raft_download *d = &r->download;
    const struct iov iov = {p->unaligned_records.p, (size_t)p->unaligned_records.n};
    enum err e = d->file->fs->ops->pwritev(d->file, &iov, 1, (uint64_t)d->position);
    if (e != ERR_NONE) {
        env_log(r->env, LOG_WARN, "metadata_snapshot_download_failed offset=%lld error=%s",
                (long long)d->id.offset, err_name(e));
        raft_drop_download(r);
        if (!raft_error_passes(e))
            raft_fail(r, e, "a snapshot cannot be downloaded");
        return false;
    }
    d->size = p->size;
    d->position += (int64_t)iov.n;
    if (d->position == d->size)
        install(r);
    return true;
}

bool raft_piece_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct fetch_snapshot_response *resp = response;
    const struct fetch_snapshot_response_partition_snapshot *p =
        e == ERR_NONE ? part_of(resp) : NULL;
    const uint64_t turn = r->turn;
    (void)l;
    if (p != NULL) {
        const bool at = resp->node_endpoints.n > 0 &&
                        resp->node_endpoints.v[0].node_id == p->current_leader.leader_id;
        raft_hear(r, p->current_leader.leader_epoch, p->current_leader.leader_id,
                  at ? resp->node_endpoints.v[0].host : STR_NULL,
                  at ? resp->node_endpoints.v[0].port : 0);
    }
    if (turn != r->turn)
        return true; /* the download went with the state */
    if (p == NULL || p->error_code != K_NONE || r->download.file == NULL || !is_next_piece(r, p)) {
        raft_drop_download(r);
        return false;
    }
    raft_fetch_succeeded(r);
    return take_piece(r, p);
}
