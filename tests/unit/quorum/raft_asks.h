/* What tests of a world of rafts do to it and ask of it: proposals, requests by hand, logs. */
#ifndef TEST_RAFT_ASKS_H
#define TEST_RAFT_ASKS_H

#include "raft_checks.h"

/* ------------------------------------------------------------------ what tests ask and do */

static inline struct raft *raft_of(int32_t id)
{
    return w.m[id - 1].raft;
}

static inline enum raft_state state_of(int32_t id)
{
    return raft_state(raft_of(id));
}

/* Of the highest epoch; 0: nobody. */
static inline int32_t world_leader(void)
{
    int32_t best = 0, epoch = -1;
    for (int i = 0; i < w.n; i++)
        if (w.m[i].up && raft_state(w.m[i].raft) == RAFT_LEADER &&
            raft_epoch(w.m[i].raft) > epoch) {
            best = i + 1;
            epoch = raft_epoch(w.m[i].raft);
        }
    return best;
}

/* Until there is a leader that has claimed. */
static inline int32_t world_elect(int64_t max_ms)
{
    const int64_t until = w.now.mono_us + max_ms * 1000;
    while (world_event(until)) {
        const int32_t id = world_leader();
        if (id > 0 && raft_of(id)->claimed)
            return id;
    }
    return 0;
}

static inline void world_start_all(void)
{
    for (int i = 0; i < w.n; i++) {
        world_start(i);
        world_step(i);
    }
}

static inline enum err world_append(int32_t id)
{
    char text[VALUE_MAX];
    int64_t last;
    snprintf(text, sizeof text, "v%d", w.values_n);
    const struct bytes value = {(const uint8_t *)text, (int32_t)strlen(text)};
    enum err e = raft_append(raft_of(id), raft_epoch(raft_of(id)), &value, 1, w.now, &last);
    w.values_n += e == ERR_NONE;
    world_step(id - 1);
    return e;
}

/* A snapshot of all that it has committed. */
static inline enum err world_snapshot(int32_t id)
{
    struct machine *m = &w.m[id - 1];
    struct bytes *records = calloc(OFFSETS_MAX, sizeof *records);
    size_t n = 0;
    for (int64_t at = 0; at < m->committed_end; at = truth_at(at)->next)
        if (!truth_at(at)->control)
            records[n++] = (struct bytes){(const uint8_t *)truth_at(at)->value,
                                          (int32_t)strlen(truth_at(at)->value)};
    enum err e = raft_snapshot(m->raft, m->committed_end, records, n, w.now);
    free(records);
    world_step(id - 1);
    return e;
}

/* ------------------------------------------------------------------ requests by hand */

/* One that a test makes itself. */
struct asked {
    struct raft_op op;
    struct arena arena;
    bool done;
    union {
        struct fetch_response fetch;
        struct vote_response vote;
        struct end_quorum_epoch_response end;
        struct begin_quorum_epoch_response begin;
        struct add_raft_voter_response add;
        struct remove_raft_voter_response remove;
    } resp;
    union {
        struct add_raft_voter_request add;
        struct remove_raft_voter_request remove;
        struct fetch_request fetch;
        struct end_quorum_epoch_request end;
    } req;
    struct add_raft_voter_request_listener listener;
    struct fetch_request_fetch_topic fetch_topic;
    struct fetch_request_fetch_partition fetch_part;
    struct end_quorum_epoch_request_topic_data end_topic;
    struct end_quorum_epoch_request_partition_data end_part;
    char host[2];
};

static inline void asked_done(struct raft_op *op)
{
    struct asked *q = CONTAINER_OF(op, struct asked, op);
    CU_ASSERT_FALSE(q->done);
    q->done = true;
}

static inline struct asked *asked_new(void)
{
    struct asked *q = calloc(1, sizeof *q);
    W_CHECK(q != NULL);
    arena_init(&q->arena, NULL);
    q->op =
        (struct raft_op){.done = asked_done, .arena = &q->arena, .listener = STR_LIT("CONTROLLER")};
    return q;
}

static inline void asked_free(struct asked *q)
{
    arena_close(&q->arena);
    free(q);
}

static inline struct asked *world_add(int32_t leader, int32_t id)
{
    struct asked *q = asked_new();
    const struct machine *m = &w.m[id - 1];
    q->listener = (struct add_raft_voter_request_listener){STR_LIT("CONTROLLER"), STR_LIT("h"),
                                                           (uint16_t)(PORT + id)};
    q->req.add = (struct add_raft_voter_request){.cluster_id = STR_LIT("cluster"),
                                                 .timeout_ms = 5000,
                                                 .voter_id = id,
                                                 .voter_directory_id = directory_at(m),
                                                 .ack_when_committed = true};
    q->req.add.listeners.v = &q->listener;
    q->req.add.listeners.n = 1;
    raft_add_voter(raft_of(leader), &q->op, &q->req.add, &q->resp.add, w.now);
    return q;
}

static inline struct asked *world_remove(int32_t leader, int32_t id)
{
    struct asked *q = asked_new();
    q->req.remove = (struct remove_raft_voter_request){
        .cluster_id = STR_LIT("cluster"), .voter_id = id, .voter_directory_id = directory_of(id)};
    raft_remove_voter(raft_of(leader), &q->op, &q->req.remove, &q->resp.remove, w.now);
    return q;
}

/* A fetch of replica id at (offset, last epoch). */
static inline struct asked *world_fetch(int32_t of, int32_t id, int32_t epoch, int64_t offset,
                                        int32_t last_epoch, int64_t hw, int32_t wait_ms)
{
    struct asked *q = asked_new();
    wire_default(&wire_fetch_request, &q->req.fetch);
    wire_default(&wire_fetch_request_fetch_partition, &q->fetch_part);
    q->fetch_part.current_leader_epoch = epoch;
    q->fetch_part.fetch_offset = offset;
    q->fetch_part.last_fetched_epoch = last_epoch;
    q->fetch_part.high_watermark = hw;
    q->fetch_part.replica_directory_id = directory_of(id);
    q->fetch_topic.topic_id = raft_topic_id;
    q->fetch_topic.partitions.v = &q->fetch_part;
    q->fetch_topic.partitions.n = 1;
    q->req.fetch.replica_state.replica_id = id;
    q->req.fetch.max_wait_ms = wait_ms;
    q->req.fetch.topics.v = &q->fetch_topic;
    q->req.fetch.topics.n = 1;
    raft_fetch(raft_of(of), &q->op, &q->req.fetch, &q->resp.fetch, w.now);
    return q;
}

static inline const struct fetch_response_partition_data *fetched(const struct asked *q)
{
    CU_ASSERT_FATAL(q->done && q->op.err == ERR_NONE && q->resp.fetch.responses.n == 1);
    return &q->resp.fetch.responses.v[0].partitions.v[0];
}

static inline struct asked *world_end_epoch(int32_t to, int32_t leader, int32_t epoch)
{
    struct asked *q = asked_new();
    q->end_part = (struct end_quorum_epoch_request_partition_data){.leader_id = leader,
                                                                   .leader_epoch = epoch};
    q->end_topic.topic_name = STR_LIT("__cluster_metadata");
    q->end_topic.partitions.v = &q->end_part;
    q->end_topic.partitions.n = 1;
    q->req.end = (struct end_quorum_epoch_request){.cluster_id = STR_NULL};
    q->req.end.topics.v = &q->end_topic;
    q->req.end.topics.n = 1;
    raft_end_quorum_epoch(raft_of(to), &q->op, &q->req.end, &q->resp.end, w.now);
    return q;
}

static inline void world_cut(int32_t a, int32_t b, bool on)
{
    w.cut[a - 1][b - 1] = w.cut[b - 1][a - 1] = on;
}

static inline void world_isolate(int32_t id, bool on)
{
    for (int32_t other = 1; other <= w.n; other++)
        if (other != id)
            world_cut(id, other, on);
}

/* ------------------------------------------------------------------ logs */

/* All batches of a log: Q9 inside it. */
static inline void read_log(int32_t id, struct buf *out)
{
    struct log *l = raft_of(id)->log;
    int32_t epoch = -1;
    for (int64_t at = log_start_offset(l); at < log_end_offset(l);) {
        struct log_span span;
        struct batch b;
        W_CHECK(log_read(l, at, log_end_offset(l), 1 << 20, true, &span) == ERR_NONE && span.n > 0);
        const size_t from = out->n;
        W_CHECK(buf_reserve(out, span.n) == ERR_NONE &&
                log_span_read(&span, out->p + from, span.n) == ERR_NONE);
        struct bytes in = {out->p + from, (int32_t)span.n};
        while (in.n > 0 && batch_take(&in, &b) == ERR_NONE) {
            int first, last;
            W_CHECK(b.base_offset == at && b.leader_epoch >= epoch && batch_crc_ok(&b));
            if (b.leader_epoch > epoch && (epoch >= 0 || log_start_offset(l) == 0))
                W_CHECK(control_types(&b, &first, &last) == ERR_NONE &&
                        first == CONTROL_LEADER_CHANGE);
            W_CHECK(epoch_cache_floor(log_epochs(l), b.base_offset) == b.leader_epoch);
            epoch = b.leader_epoch;
            at = batch_next_offset(&b);
            out->n += b.size_bytes;
        }
    }
}

/* Q4: where two logs have the same (offset, epoch) they are the same up to there. */
static inline void compare_logs(int32_t a, int32_t c)
{
    struct buf x, y;
    buf_init(&x);
    buf_init(&y);
    read_log(a, &x);
    read_log(c, &y);
    struct bytes p = {x.p, (int32_t)x.n}, q = {y.p, (int32_t)y.n};
    struct batch b, d;
    bool have_b = p.n > 0 && batch_take(&p, &b) == ERR_NONE;
    bool have_d = q.n > 0 && batch_take(&q, &d) == ERR_NONE;
    bool differ = false;
    while (have_b && have_d) {
        if (b.base_offset < d.base_offset) {
            have_b = p.n > 0 && batch_take(&p, &b) == ERR_NONE;
            continue;
        }
        if (d.base_offset < b.base_offset) {
            have_d = q.n > 0 && batch_take(&q, &d) == ERR_NONE;
            continue;
        }
        const bool same = b.leader_epoch == d.leader_epoch && b.crc == d.crc;
        W_CHECK(!(differ && b.leader_epoch == d.leader_epoch));
        W_CHECK(same || b.leader_epoch != d.leader_epoch);
        differ |= !same;
        have_b = p.n > 0 && batch_take(&p, &b) == ERR_NONE;
        have_d = q.n > 0 && batch_take(&q, &d) == ERR_NONE;
    }
    buf_close(&x);
    buf_close(&y);
}

static inline void world_compare_logs(void)
{
    for (int32_t a = 1; a <= w.n; a++)
        for (int32_t c = a + 1; c <= w.n; c++)
            if (w.m[a - 1].up && w.m[c - 1].up)
                compare_logs(a, c);
}

/* Q15: everybody has everything. */
static inline bool world_is_even(void)
{
    const int32_t id = world_leader();
    if (id == 0 || !raft_of(id)->claimed)
        return false;
    const int64_t end = raft_end_offset(raft_of(id));
    for (int i = 0; i < w.n; i++)
        if (!w.m[i].up || raft_end_offset(w.m[i].raft) != end ||
            raft_high_watermark(w.m[i].raft) != end || w.m[i].committed_end != end ||
            raft_leader_id(w.m[i].raft) != id)
            return false;
    return true;
}

static inline bool world_even_out(int64_t max_ms)
{
    const int64_t until = w.now.mono_us + max_ms * 1000;
    while (!world_is_even())
        if (!world_event(until))
            return world_is_even();
    return true;
}

#endif
