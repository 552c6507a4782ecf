/* FetchSnapshot, the leader's side (KIP-630): a piece of one of the snapshots, read by a job. The
 * one written by formatting is this node's alone. */
#include <stdio.h>

#include "quorum/inside.h"
#include "wire/error.h"

enum { PIECE_MAX_BYTES = 1 << 20 };

struct piece {
    struct job job;
    struct raft_op *op;
    const char *dir;
    struct snapshot_id id;
    int64_t position, size;
    size_t room, n;
    uint8_t *p;
    enum err err;
};

/* ------------------------------------------------------------------ the answer */

static const struct fetch_snapshot_request_partition_snapshot *
part_of(const struct fetch_snapshot_request *in)
{
    return &in->topics.v[0].partitions.v[0];
}

static struct fetch_snapshot_response_partition_snapshot *answered(const struct raft_op *op)
{
    return &((struct fetch_snapshot_response *)op->out)->topics.v[0].partitions.v[0];
}

static int16_t check_request(const struct raft *r, const struct fetch_snapshot_request *in)
{
    if (!raft_right_cluster(r, in->cluster_id))
        return K_INCONSISTENT_CLUSTER_ID;
    return in->topics.n == 1 && in->topics.v[0].partitions.n == 1 ? K_NONE : K_INVALID_REQUEST;
}

static bool have(const struct raft *r, struct snapshot_id id)
{
    for (int32_t i = 0; i < r->kept.n; i++)
        if (id.offset == r->kept.v[i].id.offset && id.epoch == r->kept.v[i].id.epoch)
            return true;
    return false;
}

static struct snapshot_id asked_for(const struct fetch_snapshot_request *in)
{
    return (struct snapshot_id){part_of(in)->snapshot_id.end_offset,
                                part_of(in)->snapshot_id.epoch};
}

static int16_t check_partition(const struct raft *r, const struct fetch_snapshot_request *in)
{
    if (!raft_is_metadata_topic(in->topics.v[0].name) || part_of(in)->partition != 0)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    const int16_t error = raft_check_leader(r, part_of(in)->current_leader_epoch);
    if (error != K_NONE)
        return error;
    if (!have(r, asked_for(in)))
        return K_SNAPSHOT_NOT_FOUND;
    return part_of(in)->position < 0 ? K_POSITION_OUT_OF_RANGE : K_NONE;
}

/* All but the bytes. */
static enum err fill(const struct raft *r, const struct raft_op *op)
{
    const struct fetch_snapshot_request *in = op->in;
    struct fetch_snapshot_response *out = op->out;
    struct fetch_snapshot_response_topic_snapshot *topic =
        wire_array(&wire_fetch_snapshot_response_topic_snapshot, op->arena, 1);
    struct fetch_snapshot_response_partition_snapshot *part =
        wire_array(&wire_fetch_snapshot_response_partition_snapshot, op->arena, 1);
    struct fetch_snapshot_response_node_endpoint *node =
        wire_array(&wire_fetch_snapshot_response_node_endpoint, op->arena, 1);
    if (topic == NULL || part == NULL || node == NULL)
        return ERR_NOMEM;
    part->index = part_of(in)->partition;
    part->snapshot_id.end_offset = part_of(in)->snapshot_id.end_offset;
    part->snapshot_id.epoch = part_of(in)->snapshot_id.epoch;
    part->position = part_of(in)->position;
    part->current_leader.leader_id = r->leader_id;
    part->current_leader.leader_epoch = r->epoch;
    part->unaligned_records.p = (const uint8_t *)"";
    part->unaligned_records.n = 0;
    topic->name = in->topics.v[0].name;
    topic->partitions.v = part;
    topic->partitions.n = 1;
    out->topics.v = topic;
    out->topics.n = 1;
    out->node_endpoints.v = node;
    out->node_endpoints.n = raft_node_endpoint(r, op, &node->node_id, &node->host, &node->port);
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the bytes */

static enum err read_piece(struct disk *d, struct piece *pc)
{
    char name[SNAPSHOT_NAME_MAX], path[4300];
    struct file_stat st;
    struct file *f;
    snapshot_name(pc->id, name);
    snprintf(path, sizeof path, "%s/%s", pc->dir, name);
    enum err e = d->fs->ops->stat(d->fs, path, &st);
    if (e != ERR_NONE)
        return e;
    pc->size = (int64_t)st.size_bytes;
    if (pc->position >= pc->size)
        return ERR_RANGE;
    e = d->fs->ops->open(d->fs, path, FILE_READ, &f);
    if (e != ERR_NONE)
        return e;
    e = d->fs->ops->pread(f, pc->p, pc->room, (uint64_t)pc->position, &pc->n);
    file_unref(f);
    return e;
}

static void piece_run(struct job *j, struct disk *d)
{
    struct piece *pc = CONTAINER_OF(j, struct piece, job);
    pc->err = read_piece(d, pc);
}

static void piece_done(struct job *j)
{
    struct piece *pc = CONTAINER_OF(j, struct piece, job);
    struct raft_op *op = pc->op;
    struct raft *r = op->raft;
    struct fetch_snapshot_response_partition_snapshot *part = answered(op);
    if (pc->err == ERR_NONE) {
        part->size = pc->size;
        part->unaligned_records.p = pc->p;
        part->unaligned_records.n = (int32_t)pc->n;
    } else {
        part->error_code = pc->err == ERR_RANGE   ? K_POSITION_OUT_OF_RANGE
                           : pc->err == ERR_NOENT ? K_SNAPSHOT_NOT_FOUND
                                                  : K_UNKNOWN_SERVER_ERROR;
    }
    raft_op_ready(r, op, ERR_NONE);
    r->pieces_n--;
    if (r->log == NULL)
        raft_job_ended(r);
}

static enum err begin_read(struct raft *r, struct raft_op *op)
{
    const struct fetch_snapshot_request *in = op->in;
    const int32_t most = in->max_bytes < 1                 ? 1
                         : in->max_bytes < PIECE_MAX_BYTES ? in->max_bytes
                                                           : PIECE_MAX_BYTES;
    struct piece *pc = arena_zalloc(op->arena, sizeof *pc);
    uint8_t *p = arena_alloc(op->arena, (size_t)most);
    if (pc == NULL || p == NULL)
        return ERR_NOMEM;
    pc->op = op;
    pc->dir = r->persist.dir;
    pc->id = asked_for(in);
    pc->position = part_of(in)->position;
    pc->room = (size_t)most;
    pc->p = p;
    pc->job = (struct job){.lane = JOB_BULK, .run = piece_run, .done = piece_done};
    r->pieces_n++;
    r->env->submit(r->env, &pc->job);
    return ERR_NONE;
}

void raft_fetch_snapshot(struct raft *r, struct raft_op *op,
                         const struct fetch_snapshot_request *in,
                         struct fetch_snapshot_response *out, struct now now)
{
    r->now = now;
    raft_op_begin(r, op, in, out);
    wire_default(&wire_fetch_snapshot_response, out);
    out->error_code = check_request(r, in);
    enum err e = out->error_code == K_NONE ? fill(r, op) : ERR_NONE;
    if (e != ERR_NONE || out->error_code != K_NONE) {
        raft_op_ready(r, op, e);
        return;
    }
    const int16_t error = check_partition(r, in);
    if (error == K_NONE) {
        raft_heard(r, in->replica_id, part_of(in)->replica_directory_id);
        e = begin_read(r, op);
        if (e == ERR_NONE)
            return;
    }
    answered(op)->error_code = error;
    raft_op_ready(r, op, e);
}
