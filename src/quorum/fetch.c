/* Fetch of the metadata log, the follower's side: one request after the other, each from where our
 * log ends on disk. Whoever knows no leader asks the bootstrap servers who it is.
 *
 * An answer tells where our log diverges (it is cut there), which snapshot to begin from, or brings
 * batches. They are appended up to the first of a later epoch than ours (KAFKA-18723). */
#include "quorum/control.h"
#include "quorum/inside.h"
#include "wire/api_key.h"
#include "wire/error.h"

enum { FETCH_WAIT_MS = 500 };

/* ------------------------------------------------------------------ whom to ask */

static bool is_self(const struct raft *r, struct str host, uint16_t port)
{
    return port == r->endpoint.port && str_eq(host, r->endpoint.host);
}

/* The ith server that tells who leads: the configured ones, or else the voters. */
static struct raft_link *server_link(struct raft *r, size_t i)
{
    const struct raft_endpoint *s = &r->servers[i];
    if (r->servers_n == 0)
        return raft_voter_link(r, (int32_t)i);
    if (is_self(r, s->host, s->port))
        return NULL;
    struct raft_link *l = raft_link_to(r, -2 - (int32_t)i, s->host, s->port);
    return l != NULL && raft_link_ready(r, l) ? l : NULL;
}

static bool asked_already(const struct raft *r)
{
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &r->links)
    {
        const struct raft_link *l = LIST_ENTRY(it, struct raft_link, link);
        if (l->busy && l->turn == r->turn)
            return true;
    }
    return false;
}

/* Any of them that may be asked now. */
static struct raft_link *some_server(struct raft *r)
{
    const size_t n = r->servers_n > 0 ? r->servers_n : (size_t)r->voters.n;
    if (n == 0 || asked_already(r))
        return NULL;
    const size_t from = n == 1 ? 0 : (size_t)(env_random_u64(r->env) % n);
    for (size_t i = 0; i < n; i++) {
        struct raft_link *l = server_link(r, (from + i) % n);
        if (l != NULL)
            return l;
    }
    return NULL;
}

static struct raft_link *whom(struct raft *r)
{
    struct str host;
    uint16_t port;
    if (r->state != RAFT_FOLLOWER || !raft_leader_address(r, &host, &port))
        return some_server(r);
    struct raft_link *l = raft_link_to(r, r->leader_id, host, port);
    if (l == NULL || (!l->busy && raft_link_ready(r, l)))
        return l;
    /* it does not answer: another may know a new leader */
    return l->failed && !l->busy && r->servers_n > 0 ? some_server(r) : NULL;
}

/* ------------------------------------------------------------------ asking */

static struct raft_message *make(struct raft *r, struct raft_link *l)
{
    union raft_body *b = &l->body;
    memset(b, 0, sizeof *b);
    wire_default(&wire_fetch_request, &b->fetch.req);
    wire_default(&wire_fetch_request_fetch_topic, &b->fetch.topic);
    wire_default(&wire_fetch_request_fetch_partition, &b->fetch.part);
    b->fetch.part.current_leader_epoch = r->epoch;
    b->fetch.part.fetch_offset = log_end_offset(r->log);
    b->fetch.part.last_fetched_epoch = raft_last_epoch(r);
    b->fetch.part.replica_directory_id = r->directory_id;
    b->fetch.part.high_watermark = r->high_watermark;
    b->fetch.topic.topic_id = raft_topic_id;
    b->fetch.topic.partitions.v = &b->fetch.part;
    b->fetch.topic.partitions.n = 1;
    b->fetch.req.cluster_id = str_of(r->cluster_id);
    b->fetch.req.replica_state.replica_id = r->node_id;
    b->fetch.req.max_wait_ms = FETCH_WAIT_MS;
    b->fetch.req.max_bytes = r->config.fetch_max_bytes;
    b->fetch.req.topics.v = &b->fetch.topic;
    b->fetch.req.topics.n = 1;
    return raft_send(r, l, API_FETCH, &b->fetch.req);
}

/* What a fetch promises of our log: it is all on disk. A node that never votes promises nothing. */
static bool log_is_settled(const struct raft *r)
{
    return !log_dirty(r->log) &&
           (!r->may_vote || log_flushed_end(r->log) == log_end_offset(r->log));
}

struct raft_message *raft_next_fetch(struct raft *r)
{
    if (!log_is_settled(r) || r->install.running)
        return NULL;
    struct raft_link *l = whom(r);
    if (l == NULL)
        return NULL;
    if (l->id == r->leader_id && raft_update_is_due(r))
        return raft_ask_update(r, l);
    if (l->id == r->leader_id && raft_join_is_due(r))
        return raft_ask_join(r, l);
    return r->download.file != NULL && l->id == r->leader_id ? raft_ask_piece(r, l) : make(r, l);
}

/* ------------------------------------------------------------------ what the leader says */

/* Once in each time that we follow it: it is asked again all the while. */
static void refuse(struct raft *r, const char *why, int64_t offset)
{
    if (r->refused_turn == r->turn)
        return;
    r->refused_turn = r->turn;
    env_log(r->env, LOG_ERROR,
            "quorum_leader_refused leader=%d epoch=%d offset=%lld end=%lld reason=\"%s\"",
            r->leader_id, r->epoch, (long long)offset, (long long)log_end_offset(r->log), why);
}

/* The log ends at x from now on. What is committed stays (Q8): a leader without it is none, and
 * not followed any further. */
static bool truncate(struct raft *r, int64_t x)
{
    const int64_t end = log_end_offset(r->log);
    if (x < r->high_watermark || x < r->newest.offset || x < log_start_offset(r->log)) {
        refuse(r, "its log diverges from what is committed", x);
        return false;
    }
    env_log(r->env, LOG_INFO, "quorum_truncate offset=%lld end=%lld epoch=%d", (long long)x,
            (long long)end, r->epoch);
    enum err e = log_truncate_to(r->log, x, r->now);
    if (e != ERR_NONE)
        raft_fail(r, e, "the metadata log cannot be truncated");
    r->flush_asked = -1;
    raft_cut_voters(r, x);
    return true;
}

/* Where a log that shares the leader's history up to (epoch, end) has to end. */
static int64_t common_end(const struct raft *r, int32_t epoch, int64_t end)
{
    int32_t own_epoch;
    int64_t own;
    raft_epoch_end(r, epoch, &own_epoch, &own);
    if (epoch == 0)
        own = log_end_offset(r->log);
    else if (own_epoch != epoch)
        return own;
    return end < own ? end : own;
}

static enum err check_control(const struct batch *b)
{
    struct voter_set set = {.n = 0};
    int16_t version = 0;
    bool has_set = false;
    enum err e = control_read(b, &version, &set, &has_set);
    return e == ERR_NONE || e == ERR_NOMEM ? e : ERR_CORRUPT;
}

/* Before they are in the log, which has no gaps, and which no start reads with a control record
 * that is none. What comes behind the last whole one is not looked at. */
static enum err check_batches(const struct raft *r, struct bytes in)
{
    struct batch b;
    int64_t end = log_staged_end(r->log);
    enum err e = ERR_NONE;
    while (e == ERR_NONE && in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
        if (b.base_offset != end || b.magic != 2)
            return ERR_CORRUPT;
        if ((b.attributes & BATCH_CONTROL) != 0)
            e = check_control(&b);
        end = batch_next_offset(&b);
    }
    return e;
}

static enum err take_controls(struct raft *r, struct bytes in)
{
    struct batch b;
    enum err e = ERR_NONE;
    while (e == ERR_NONE && in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
        if ((b.attributes & BATCH_CONTROL) == 0)
            continue;
        raft_check_leaders_voters(r, &b);
        e = raft_take_control(r, &b);
    }
    return e;
}

/* Staged from memory of ours: it may have to wait for a truncation before it. */
static enum err append(struct raft *r, struct bytes records)
{
    size_t n;
    r->incoming.n = 0;
    enum err e = buf_append(&r->incoming, records.p, (size_t)records.n);
    const struct bytes in = {r->incoming.p, records.n};
    if (e == ERR_NONE)
        e = check_batches(r, in);
    if (e == ERR_NONE)
        e = log_stage_follower(r->log, in, r->epoch, r->now, &n);
    if (e == ERR_NONE)
        e = take_controls(r, (struct bytes){in.p, (int32_t)n});
    const int64_t before = log_end_offset(r->log);
    if (e == ERR_NONE)
        e = log_write(r->log, r->now);
    if (e == ERR_AGAIN)
        return ERR_NONE;
    if (log_end_offset(r->log) > before)
        r->flush_asked = -1;
    raft_cut_voters(r, log_staged_end(r->log)); /* of what was not written */
    buf_close(&r->incoming);
    return e;
}

/* It is for what was sent, not for our disk. */
static bool is_of_bytes(enum err e)
{
    return e == ERR_CORRUPT || e == ERR_TRUNCATED || e == ERR_TRAILING || e == ERR_RANGE ||
           e == ERR_UNSUPPORTED || e == ERR_TOO_LARGE;
}

/* Committed is what the leader says, as far as we have it. */
static void take_high_watermark(struct raft *r, int64_t given)
{
    const int64_t end = log_end_offset(r->log);
    const int64_t hw = given < end ? given : end;
    if (hw > r->high_watermark)
        r->high_watermark = hw;
}

/* False: nothing came of it. */
static bool take_data(struct raft *r, const struct fetch_response_partition_data *p)
{
    const int64_t end = log_staged_end(r->log);
    const bool any = p->records.n > 0;
    enum err e = any ? append(r, (struct bytes){p->records.p, p->records.n}) : ERR_NONE;
    if (is_of_bytes(e)) {
        refuse(r, "its batches are damaged", end);
        return false;
    }
    raft_fetch_succeeded(r);
    take_high_watermark(r, p->high_watermark);
    if (e == ERR_NONE)
        return !any || log_staged_end(r->log) > end;
    env_log(r->env, LOG_WARN, "quorum_append_failed offset=%lld error=%s", (long long)end,
            err_name(e));
    if (!raft_error_passes(e))
        raft_fail(r, e, "what the leader sent cannot be appended");
    return false;
}

static bool take_partition(struct raft *r, const struct fetch_response_partition_data *p)
{
    if (p->diverging_epoch.epoch >= 0) {
        if (!truncate(r, common_end(r, p->diverging_epoch.epoch, p->diverging_epoch.end_offset)))
            return false;
        raft_fetch_succeeded(r);
        return true;
    }
    if (p->snapshot_id.end_offset >= 0) {
        raft_fetch_succeeded(r);
        return raft_snapshot_named(
            r, (struct snapshot_id){p->snapshot_id.end_offset, p->snapshot_id.epoch});
    }
    return take_data(r, p);
}

/* ------------------------------------------------------------------ answers */

static const struct fetch_response_partition_data *part_of(const struct fetch_response *resp)
{
    const bool good = resp->error_code == K_NONE && resp->responses.n == 1 &&
                      uuid_eq(resp->responses.v[0].topic_id, raft_topic_id) &&
                      resp->responses.v[0].partitions.n == 1 &&
                      resp->responses.v[0].partitions.v[0].partition_index == 0;
    return good ? &resp->responses.v[0].partitions.v[0] : NULL;
}

static void hear(struct raft *r, const struct fetch_response *resp,
                 const struct fetch_response_partition_data *p)
{
    struct str host = STR_NULL;
    uint16_t port = 0;
    for (int32_t i = 0; i < resp->node_endpoints.n; i++) {
        const struct fetch_response_node_endpoint *e = &resp->node_endpoints.v[i];
        if (e->node_id != p->current_leader.leader_id || e->port < 0 || e->port > UINT16_MAX)
            continue;
        host = e->host;
        port = (uint16_t)e->port;
    }
    raft_hear(r, p->current_leader.leader_epoch, p->current_leader.leader_id, host, port);
}

bool raft_fetch_answered(struct raft *r, struct raft_link *l, enum err e, const void *response)
{
    const struct fetch_response *resp = response;
    const uint64_t turn = r->turn;
    const struct fetch_response_partition_data *p = e == ERR_NONE ? part_of(resp) : NULL;
    if (p == NULL) {
        if (e == ERR_NONE)
            env_log(r->env, LOG_WARN, "quorum_fetch_refused node=%d error=%d", l->id,
                    resp->error_code);
        return false;
    }
    hear(r, resp, p);
    if (p->error_code != K_NONE)
        return turn != r->turn;
    if (r->state != RAFT_FOLLOWER || p->current_leader.leader_epoch != r->epoch ||
        p->current_leader.leader_id != r->leader_id)
        return turn != r->turn;
    if (l->body.fetch.part.fetch_offset != log_staged_end(r->log))
        return true; /* our log is not where it was when we asked */
    return take_partition(r, p);
}
