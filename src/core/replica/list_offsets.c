/* ListOffsets (log.md 5): special timestamps are answered from memory, times and the maximum by
 * jobs on the log. The operation is done when its last part is. */
#include "base/check.h"
#include "core/metadata/kafka_error.h"
#include "core/replica/inside.h"
#include "core/replica/mentions.h"

enum {
    LATEST = -1,
    EARLIEST = -2,
    MAX_TIMESTAMP = -3,
    EARLIEST_LOCAL = -4,
    LATEST_TIERED = -5,
    EARLIEST_PENDING_UPLOAD = -6,
};

enum { CONSUMER = -1 }; /* a replica id */

struct part_lookup {
    struct log_lookup lookup;
    struct list_offsets_state *st;
    struct uuid topic_id;
    int32_t index;
    struct list_offsets_response_list_offsets_partition_response *out;
};

struct list_offsets_state {
    struct replicas *rs;
    struct list_offsets_op *op;
    struct list ready;
    int32_t lookups_n; /* jobs in flight */
    bool begun;        /* every part was looked at */
    bool read_committed;
    int32_t replica_id;
};

static int16_t first_version(int64_t timestamp)
{
    switch (timestamp) {
    case MAX_TIMESTAMP:
        return 7;
    case EARLIEST_LOCAL:
        return 8;
    case LATEST_TIERED:
        return 9;
    case EARLIEST_PENDING_UPLOAD:
        return 11;
    default:
        return timestamp >= EARLIEST ? 1 : INT16_MAX;
    }
}

/* ------------------------------------------------------------------ answers from memory */

static int64_t reader_limit(const struct list_offsets_state *st, const struct partition *p)
{
    return st->replica_id == CONSUMER ? partition_limit(p, st->read_committed)
                                      : log_end_offset(p->log);
}

/* KIP-207: until the high watermark has reached this epoch's start, the end may go back. */
static int16_t not_available(const struct list_offsets_state *st, const struct partition *p)
{
    if (st->replica_id != CONSUMER || p->high_watermark >= p->leader_epoch_start)
        return K_NONE;
    return st->op->version >= 5 ? K_OFFSET_NOT_AVAILABLE : K_LEADER_NOT_AVAILABLE;
}

static void set(const struct list_offsets_state *st,
                struct list_offsets_response_list_offsets_partition_response *out, int64_t offset,
                int64_t timestamp, int32_t epoch)
{
    out->offset = offset;
    out->timestamp = timestamp;
    if (st->op->version >= 4)
        out->leader_epoch = epoch;
}

static void tell_latest(const struct list_offsets_state *st, const struct partition *p,
                        struct list_offsets_response_list_offsets_partition_response *out)
{
    out->error_code = not_available(st, p);
    if (out->error_code == K_NONE)
        set(st, out, reader_limit(st, p), -1, p->leader_epoch);
}

static void tell_earliest(const struct list_offsets_state *st, const struct partition *p,
                          struct list_offsets_response_list_offsets_partition_response *out)
{
    const int64_t start = log_start_offset(p->log);
    const struct epoch_cache *c = log_epochs(p->log);
    set(st, out, start, -1, c->n > 0 && c->v[0].start_offset <= start ? c->v[0].epoch : -1);
}

/* ------------------------------------------------------------------ searches */

static void finish_lookup(struct part_lookup *pl, const struct partition *p)
{
    const struct log_lookup *lk = &pl->lookup;
    struct list_offsets_response_list_offsets_partition_response *out = pl->out;
    const int16_t error = p == NULL ? K_NOT_LEADER_OR_FOLLOWER : partition_leader_error(p);
    if (error != K_NONE || lk->err != ERR_NONE) {
        out->error_code = error != K_NONE ? error : kafka_error_of(lk->err);
        return;
    }
    const bool hidden = lk->offset < 0 || lk->offset >= reader_limit(pl->st, p);
    if (hidden)
        out->error_code = not_available(pl->st, p);
    else
        set(pl->st, out, lk->offset, lk->found_timestamp, lk->leader_epoch);
}

static void maybe_ready(struct list_offsets_state *st)
{
    if (st->begun && st->lookups_n == 0 && list_empty(&st->ready))
        list_append(&st->rs->ready_list_offsets, &st->ready);
}

static void lookup_done(struct log_lookup *lk)
{
    struct part_lookup *pl = CONTAINER_OF(lk, struct part_lookup, lookup);
    struct list_offsets_state *st = pl->st;
    finish_lookup(pl, replicas_find(st->rs, pl->topic_id, pl->index));
    st->lookups_n--;
    maybe_ready(st);
}

static void search(struct list_offsets_state *st, struct partition *p, int64_t timestamp,
                   struct list_offsets_response_list_offsets_partition_response *out)
{
    struct part_lookup *pl = arena_zalloc(st->op->arena, sizeof *pl);
    if (pl == NULL) {
        out->error_code = kafka_error_of(ERR_NOMEM);
        return;
    }
    pl->st = st;
    pl->topic_id = p->topic_id;
    pl->index = p->index;
    pl->out = out;
    pl->lookup.kind = timestamp == MAX_TIMESTAMP ? LOOKUP_MAX_TIMESTAMP : LOOKUP_TIME;
    pl->lookup.timestamp = timestamp;
    pl->lookup.done = lookup_done;
    enum err e = log_lookup_start(p->log, &pl->lookup);
    if (e != ERR_NONE)
        out->error_code = kafka_error_of(e);
    else
        st->lookups_n++;
}

/* ------------------------------------------------------------------ one partition */

static int16_t find_part(const struct list_offsets_state *st, struct str topic,
                         const struct list_offsets_request_list_offsets_partition *in,
                         struct partition **out)
{
    const struct image_topic *t = image_topic_named(st->rs->image, topic);
    if (st->op->request->isolation_level < 0 || st->op->request->isolation_level > 1)
        return K_UNKNOWN_SERVER_ERROR;
    if (st->op->allowed != NULL && !st->op->allowed(st->op->allowed_ctx, topic))
        return K_TOPIC_AUTHORIZATION_FAILED;
    if (in->timestamp < 0 && st->op->version < first_version(in->timestamp))
        return K_UNSUPPORTED_VERSION;
    if (t == NULL || in->partition_index < 0 || in->partition_index >= t->partitions_n)
        return K_UNKNOWN_TOPIC_OR_PARTITION;
    *out = replicas_find(st->rs, t->id, in->partition_index);
    return *out == NULL ? K_NOT_LEADER_OR_FOLLOWER
                        : partition_check_epoch(*out, in->current_leader_epoch);
}

static void list_part(struct list_offsets_state *st, struct str topic,
                      const struct list_offsets_request_list_offsets_partition *in,
                      struct list_offsets_response_list_offsets_partition_response *out)
{
    struct partition *p = NULL;
    out->partition_index = in->partition_index;
    out->error_code = find_part(st, topic, in, &p);
    if (out->error_code != K_NONE)
        return;
    switch (in->timestamp) {
    case LATEST:
        tell_latest(st, p, out);
        break;
    case EARLIEST:
    case EARLIEST_LOCAL:
        tell_earliest(st, p, out);
        break;
    case LATEST_TIERED:
    case EARLIEST_PENDING_UPLOAD:
        break; /* no tiered storage: -1, without an error */
    default:
        search(st, p, in->timestamp, out);
    }
}

/* ------------------------------------------------------------------ the operation */

static enum err count_mentions(const struct list_offsets_request *req, struct arena *a,
                               struct mention **out)
{
    size_t n = 0;
    for (int32_t i = 0; i < req->topics.n; i++)
        n += (size_t)req->topics.v[i].partitions.n;
    struct mention *v = arena_zalloc(a, (n + 1) * sizeof *v);
    if (v == NULL)
        return ERR_NOMEM;
    *out = v;
    for (int32_t i = 0; i < req->topics.n; i++) {
        const struct list_offsets_request_list_offsets_topic *t = &req->topics.v[i];
        for (int32_t k = 0; k < t->partitions.n; k++)
            *v++ = (struct mention){.topic = t->name, .index = t->partitions.v[k].partition_index};
    }
    return mentions_find(*out, n, a);
}

/* Kafka refuses a partition that a request names twice, and answers it once. */
static enum err list_topic(struct list_offsets_state *st, const struct mention *all, size_t at,
                           const struct list_offsets_request_list_offsets_topic *in,
                           struct list_offsets_response_list_offsets_topic_response *out)
{
    out->name = in->name;
    out->partitions.v = wire_array(&wire_list_offsets_response_list_offsets_partition_response,
                                   st->op->arena, (size_t)in->partitions.n);
    if (out->partitions.v == NULL)
        return ERR_NOMEM;
    for (int32_t i = 0; i < in->partitions.n; i++, at++) {
        const struct list_offsets_request_list_offsets_partition *part = &in->partitions.v[i];
        if (all[at].first != at)
            continue;
        struct list_offsets_response_list_offsets_partition_response *to =
            &out->partitions.v[out->partitions.n++];
        if (all[at].last != at) {
            to->partition_index = part->partition_index;
            to->error_code = K_INVALID_REQUEST;
        } else {
            list_part(st, in->name, part, to);
        }
    }
    return ERR_NONE;
}

enum err replicas_list_offsets(struct replicas *rs, struct list_offsets_op *op, struct now now)
{
    const struct list_offsets_request *req = op->request;
    struct list_offsets_state *st = arena_zalloc(op->arena, sizeof *st);
    struct mention *mentions;
    rs->now = now;
    op->response->topics.v = wire_array(&wire_list_offsets_response_list_offsets_topic_response,
                                        op->arena, (size_t)req->topics.n);
    if (st == NULL || op->response->topics.v == NULL ||
        count_mentions(req, op->arena, &mentions) != ERR_NONE)
        return ERR_NOMEM;
    st->rs = rs;
    st->op = op;
    st->read_committed = req->isolation_level == 1;
    st->replica_id = req->replica_id;
    list_init(&st->ready);
    size_t at = 0;
    for (int32_t i = 0; i < req->topics.n; i++) {
        /* out of memory for a topic: it is left out; searches of others may be under way */
        struct list_offsets_response_list_offsets_topic_response *out =
            &op->response->topics.v[op->response->topics.n];
        if (list_topic(st, mentions, at, &req->topics.v[i], out) == ERR_NONE)
            op->response->topics.n++;
        at += (size_t)req->topics.v[i].partitions.n;
    }
    st->begun = true;
    maybe_ready(st);
    return ERR_NONE;
}

bool list_offsets_settle(struct replicas *rs)
{
    struct list *l;
    bool moved = false;
    while ((l = list_pop(&rs->ready_list_offsets)) != NULL) {
        struct list_offsets_state *st = LIST_ENTRY(l, struct list_offsets_state, ready);
        st->op->done(st->op);
        moved = true;
    }
    return moved;
}
