/* Fetch of the metadata log, the leader's side (KIP-595, KIP-630, KIP-1166): a position that is not
 * ours is answered with where ours diverges, or with the snapshot to begin from; a valid one counts
 * for the high watermark, and waits when there is nothing new. */
#include "quorum/inside.h"
#include "wire/error.h"

enum { RECORDS_MAX_BYTES = 1 << 20 }; /* beyond the first batch */

/* What becomes of a request, without memory of its own. */
struct verdict {
    int16_t top, error;
    struct snapshot_id snapshot; /* offset -1: none */
    int32_t diverging_epoch;     /* -1: it does not */
    int64_t diverging_end;
    bool cold; /* a read has to wait for the page cache */
    struct log_span span;
};

/* ------------------------------------------------------------------ looking */

static const struct fetch_request_fetch_partition *part_of(const struct fetch_request *in)
{
    return &in->topics.v[0].partitions.v[0];
}

static int32_t replica_of(const struct fetch_request *in)
{
    return in->replica_state.replica_id >= 0 ? in->replica_state.replica_id : in->replica_id;
}

static int16_t check_request(const struct raft *r, const struct fetch_request *in)
{
    if (!raft_right_cluster(r, in->cluster_id))
        return K_INCONSISTENT_CLUSTER_ID;
    return in->topics.n == 1 && uuid_eq(in->topics.v[0].topic_id, raft_topic_id) &&
                   in->topics.v[0].partitions.n == 1 && part_of(in)->partition == 0
               ? K_NONE
               : K_INVALID_REQUEST;
}

int16_t raft_check_leader(const struct raft *r, int32_t epoch)
{
    if (epoch != r->epoch)
        return epoch < r->epoch ? K_FENCED_LEADER_EPOCH : K_UNKNOWN_LEADER_EPOCH;
    if (r->closed != NULL)
        return K_BROKER_NOT_AVAILABLE;
    return r->state == RAFT_LEADER ? K_NONE : K_NOT_LEADER_OR_FOLLOWER;
}

static int16_t check_partition(const struct raft *r, const struct fetch_request *in)
{
    const struct fetch_request_fetch_partition *p = part_of(in);
    if (in->max_wait_ms < 0 || p->fetch_offset < 0 || p->last_fetched_epoch < 0 ||
        p->last_fetched_epoch > p->current_leader_epoch)
        return K_INVALID_REQUEST;
    return raft_check_leader(r, p->current_leader_epoch);
}

/* Of the oldest snapshot that is there, but for 0-0. */
static struct snapshot_id oldest(const struct raft *r)
{
    return r->kept.n > 0 ? r->kept.v[0].id : r->newest;
}

/* Is the position one of our log's? */
static void validate(const struct raft *r, int64_t offset, int32_t epoch, struct verdict *v)
{
    const int64_t start = log_start_offset(r->log);
    const struct snapshot_id first = oldest(r);
    if (offset == 0 && r->newest.offset >= 0) {
        v->snapshot = r->newest;
        return;
    }
    if (start == 0 && offset == 0)
        return;
    if (first.offset >= 0 &&
        (offset < start || (offset == start && epoch != first.epoch) || epoch < first.epoch)) {
        v->snapshot = r->newest;
        return;
    }
    int32_t end_epoch;
    int64_t end;
    raft_epoch_end(r, epoch, &end_epoch, &end);
    if (end_epoch == epoch && end >= offset)
        return;
    v->diverging_epoch = end_epoch;
    v->diverging_end = end;
}

static void find_records(struct raft *r, const struct fetch_request *in, struct verdict *v)
{
    const int64_t end = log_end_offset(r->log), from = part_of(in)->fetch_offset;
    if (from == end)
        return;
    const int32_t most = in->max_bytes < RECORDS_MAX_BYTES ? in->max_bytes : RECORDS_MAX_BYTES;
    enum err e = log_read(r->log, from, end, (uint32_t)(most > 0 ? most : 0), true, &v->span);
    v->cold = e == ERR_AGAIN;
    if (e != ERR_NONE && e != ERR_AGAIN)
        v->top = K_UNKNOWN_SERVER_ERROR;
}

static struct verdict look(struct raft *r, const struct fetch_request *in)
{
    struct verdict v = {.snapshot = {-1, -1}, .diverging_epoch = -1};
    v.top = check_request(r, in);
    if (v.top == K_NONE)
        v.error = check_partition(r, in);
    if (v.top != K_NONE || v.error != K_NONE)
        return v;
    validate(r, part_of(in)->fetch_offset, part_of(in)->last_fetched_epoch, &v);
    if (v.snapshot.offset < 0 && v.diverging_epoch < 0)
        find_records(r, in, &v);
    return v;
}

static bool is_valid(const struct verdict *v)
{
    return v->top == K_NONE && v->error == K_NONE && v->snapshot.offset < 0 &&
           v->diverging_epoch < 0;
}

int64_t raft_known_high_watermark(const struct raft *r)
{
    const bool known = r->state != RAFT_LEADER ||
                       (r->epoch_start_offset >= 0 && r->high_watermark > r->epoch_start_offset);
    return known ? r->high_watermark : -1;
}

static bool has_to_wait(const struct raft *r, const struct fetch_request *in,
                        const struct verdict *v)
{
    return is_valid(v) && v->span.n == 0 && in->max_wait_ms > 0 &&
           part_of(in)->high_watermark >= raft_known_high_watermark(r);
}

/* ------------------------------------------------------------------ answering */

static enum err add_records(const struct verdict *v, struct arena *a,
                            struct fetch_response_partition_data *part)
{
    uint8_t *p = arena_alloc(a, v->span.n);
    if (p == NULL)
        return ERR_NOMEM;
    part->records.p = p;
    part->records.n = (int32_t)v->span.n;
    return log_span_read(&v->span, p, v->span.n);
}

static void fill(const struct raft *r, const struct verdict *v,
                 struct fetch_response_partition_data *part)
{
    part->error_code = v->error;
    part->high_watermark = -1;
    part->current_leader.leader_id = r->leader_id;
    part->current_leader.leader_epoch = r->epoch;
    part->records.p = (const uint8_t *)"";
    part->records.n = 0;
    if (v->error != K_NONE)
        return;
    part->high_watermark = raft_known_high_watermark(r);
    part->log_start_offset = log_start_offset(r->log);
    if (v->snapshot.offset >= 0) {
        part->snapshot_id.end_offset = v->snapshot.offset;
        part->snapshot_id.epoch = v->snapshot.epoch;
    }
    if (v->diverging_epoch >= 0) {
        part->diverging_epoch.epoch = v->diverging_epoch;
        part->diverging_epoch.end_offset = v->diverging_end;
    }
}

static enum err answer(const struct raft *r, const struct raft_op *op, const struct verdict *v)
{
    const struct fetch_request *in = op->in;
    struct fetch_response *out = op->out;
    wire_default(&wire_fetch_response, out);
    out->error_code = v->top;
    if (v->top != K_NONE)
        return ERR_NONE;
    struct fetch_response_fetchable_topic_response *topic =
        wire_array(&wire_fetch_response_fetchable_topic_response, op->arena, 1);
    struct fetch_response_partition_data *part =
        wire_array(&wire_fetch_response_partition_data, op->arena, 1);
    struct fetch_response_node_endpoint *node =
        wire_array(&wire_fetch_response_node_endpoint, op->arena, 1);
    if (topic == NULL || part == NULL || node == NULL)
        return ERR_NOMEM;
    fill(r, v, part);
    enum err e = v->span.n > 0 ? add_records(v, op->arena, part) : ERR_NONE;
    uint16_t port;
    topic->topic_id = in->topics.v[0].topic_id;
    topic->partitions.v = part;
    topic->partitions.n = 1;
    out->responses.v = topic;
    out->responses.n = 1;
    out->node_endpoints.v = node;
    out->node_endpoints.n = raft_node_endpoint(r, op, &node->node_id, &node->host, &port);
    node->port = out->node_endpoints.n > 0 ? port : 0;
    return e;
}

/* Where the replica is: a position inside a batch is not past it. */
static enum err position(const struct fetch_request *in, const struct verdict *v, int64_t *out)
{
    uint8_t head[BATCH_OVERHEAD];
    struct batch b;
    *out = part_of(in)->fetch_offset;
    if (v->span.n < sizeof head)
        return ERR_NONE;
    enum err e = log_span_read(&v->span, head, sizeof head);
    if (e == ERR_NONE)
        e = batch_parse_header((struct bytes){head, sizeof head}, &b);
    if (e == ERR_NONE && b.base_offset < *out)
        *out = b.base_offset;
    return e;
}

static void take_known(struct raft *r, int32_t id, const struct fetch_request *in)
{
    const struct uuid directory = part_of(in)->replica_directory_id;
    const int32_t i = raft_voter_index(r, id, directory);
    struct voter_progress *p = i >= 0 ? &r->progress[i] : raft_observer(r, id, directory);
    if (p != NULL)
        p->known_hw = part_of(in)->high_watermark;
}

/* Once for each request. */
static void count(struct raft *r, struct raft_op *op, struct verdict *v)
{
    const struct fetch_request *in = op->in;
    int64_t at;
    if (op->counted || v->cold || !is_valid(v))
        return;
    op->counted = true;
    if (position(in, v, &at) != ERR_NONE)
        v->top = K_UNKNOWN_SERVER_ERROR;
    else if (replica_of(in) >= 0) {
        raft_handle_fetch_position(r, replica_of(in), part_of(in)->replica_directory_id, at,
                                   r->now);
        take_known(r, replica_of(in), in);
    }
}

/* False: it waits. */
static bool serve(struct raft *r, struct raft_op *op)
{
    struct verdict v = look(r, op->in);
    count(r, op, &v);
    if (!op->hastened && (v.cold || has_to_wait(r, op->in, &v)))
        return false;
    if (v.cold)
        v.span.n = 0;
    timer_cancel(r->timers, &op->timer);
    raft_op_ready(r, op, answer(r, op, &v));
    return true;
}

static void waited_enough(struct timer *t)
{
    struct raft_op *op = CONTAINER_OF(t, struct raft_op, timer);
    raft_op_hasten(op);
}

void raft_fetch(struct raft *r, struct raft_op *op, const struct fetch_request *in,
                struct fetch_response *out, struct now now)
{
    r->now = now;
    raft_op_begin(r, op, in, out);
    if (serve(r, op))
        return;
    op->timer.fire = waited_enough;
    if (timer_arm(r->timers, &op->timer, now.mono_us + in->max_wait_ms * (int64_t)1000) != ERR_NONE)
        raft_op_ready(r, op, ERR_NOMEM);
    else
        list_append(&r->parked, &op->link);
}

/* Is anything new for those that wait? A cold read is tried again whenever something moved. */
static bool news(struct raft *r)
{
    const int64_t end = log_end_offset(r->log), hw = raft_known_high_watermark(r);
    const bool any =
        r->parked_look || r->parked_end != end || r->parked_hw != hw || r->parked_turn != r->turn;
    r->parked_look = false;
    r->parked_end = end;
    r->parked_hw = hw;
    r->parked_turn = r->turn;
    return any;
}

bool raft_wake_fetches(struct raft *r)
{
    bool moved = false;
    if (list_empty(&r->parked) || !news(r))
        return false;
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &r->parked)
    {
        list_remove(it);
        if (serve(r, LIST_ENTRY(it, struct raft_op, link)))
            moved = true;
        else
            list_append(tmp, it); /* where it was */
    }
    return moved;
}
