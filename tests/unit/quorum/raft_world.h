/* Several rafts in one process: each has a disk, a clock-less machine whose jobs end when the
 * world says so, and messages that travel as bytes of the highest version. A seed decides delays,
 * losses, crashes. After every step the invariants of the quorum are checked (Q1 to Q13 of KRaft's
 * safety: raft_checks.h), against one history of what was ever committed. */
#ifndef TEST_RAFT_WORLD_H
#define TEST_RAFT_WORLD_H

#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "quorum/control.h"
#include "quorum/inside.h"
#include "support/memenv.h"
#include "support/quiet_log.h"
#include "support/test.h"
#include "wire/api_key.h"
#include "wire/error.h"
#include "wire/record.h"

#define DIR "/d/__cluster_metadata-0"

enum { NODES_MAX = 6, EPOCHS_MAX = 4096, OFFSETS_MAX = 8192, VALUE_MAX = 16, PORT = 9000 };

struct truth { /* of what was committed, by the base offset of its batch */
    int32_t epoch;
    uint32_t crc;
    int64_t next;
    bool known, control;
    char value[VALUE_MAX];
};

struct machine {
    int32_t id; /* from 1; its place + 1 */
    bool voter_role, up;
    uint64_t life; /* one more with each start */
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct raft_load load;
    struct raft *raft;
    bool loaded, closed, settled;
    int64_t job_us; /* when the next job ends; INT64_MAX: none */
    /* of this life */
    int64_t committed_end, hw_seen;
    int32_t claims, resigns, snapshots, failures, snapshots_due, told_leader, told_epoch;
    /* of this disk */
    int64_t flushed_end;       /* while it is down: what it had promised */
    int32_t voted[EPOCHS_MAX]; /* granted and answered; 0: nobody */
    int32_t epoch_told;
    int64_t fetched_from; /* the last Fetch that it sent: all before is on its disk */
    uint8_t disk;         /* how many it has had before this one */
};

/* A request on its way, and its answer. */
struct packet {
    struct list link;
    struct raft_op op; /* at the server */
    int from, to;
    uint64_t from_life, to_life;
    struct raft_message *message;
    int64_t at_us;
    enum { TRAVELS, SERVED, RETURNS, LOST } state;
    int16_t api_key, version;
    struct buf bytes;
    struct arena arena;
    void *request, *response;
    bool refused; /* nobody was there */
};

static struct world {
    uint64_t seed;
    struct rng rng;
    int n; /* machines */
    struct machine *m;
    struct now now;
    struct list packets;
    bool cut[NODES_MAX][NODES_MAX]; /* from, to */
    unsigned loss_percent;
    int64_t delay_max_us, job_max_us;
    bool is_static, auto_join;
    struct voter_set voters;
    struct raft_endpoint servers[NODES_MAX];
    size_t servers_n;
    int32_t leader_of[EPOCHS_MAX];
    struct truth *truth;
    int64_t committed_end; /* anywhere */
    int64_t snapshot_bytes;
    int values_n;
    int64_t steps;
    void (*on_answer)(int at, int16_t api_key, void *response);
    int32_t members[NODES_MAX], members_n; /* ids of the newest committed voters */
} w;

static long total_elections, total_crashes, total_installs, total_truncations, total_changes;

#define W_CHECK(cond)                                                                              \
    do {                                                                                           \
        const bool good_ = (cond);                                                                 \
        if (!good_)                                                                                \
            printf("seed %llu step %lld %s:%d: %s\n", (unsigned long long)w.seed,                  \
                   (long long)w.steps, __FILE__, __LINE__, #cond);                                 \
        CU_ASSERT_FATAL(good_);                                                                    \
    } while (0)

/* ------------------------------------------------------------------ history */

static inline struct truth *truth_at(int64_t offset)
{
    W_CHECK(offset >= 0 && offset < OFFSETS_MAX);
    return &w.truth[offset];
}

static inline void read_value(const struct batch *batch, char out[VALUE_MAX])
{
    struct record_stream s;
    struct record rec;
    bool end = false;
    out[0] = '\0';
    W_CHECK(record_stream_open(&s, batch, INT32_MAX, NULL) == ERR_NONE);
    if (record_stream_next(&s, true, &rec, &end) == ERR_NONE && !end)
        snprintf(out, VALUE_MAX, "%.*s", rec.value.n < VALUE_MAX ? (int)rec.value.n : VALUE_MAX - 1,
                 (const char *)rec.value.p);
    record_stream_close(&s);
}

/* Q5: what is committed is the same everywhere, for ever. */
static inline void take_truth(const struct batch *batch)
{
    struct truth *t = truth_at(batch->base_offset);
    if (!t->known) {
        W_CHECK(batch->base_offset == w.committed_end); /* nobody has it before all before it */
        *t = (struct truth){.epoch = batch->leader_epoch,
                            .crc = batch->crc,
                            .next = batch_next_offset(batch),
                            .known = true,
                            .control = (batch->attributes & BATCH_CONTROL) != 0};
        if (!t->control)
            read_value(batch, t->value);
        w.committed_end = t->next;
    }
    W_CHECK(t->epoch == batch->leader_epoch && t->crc == batch->crc &&
            t->next == batch_next_offset(batch));
}

/* Q10: successive voter sets differ by one voter. */
static inline void check_members(const struct batch *batch)
{
    struct voter_set set = {.n = 0};
    int16_t version;
    bool found = false;
    if ((batch->attributes & BATCH_CONTROL) == 0)
        return;
    W_CHECK(control_read(batch, &version, &set, &found) == ERR_NONE);
    if (!found)
        return;
    int32_t same = 0;
    for (int32_t i = 0; i < set.n; i++)
        for (int32_t k = 0; k < w.members_n; k++)
            same += w.members[k] == set.v[i].id;
    const int32_t differ = set.n - same + w.members_n - same;
    W_CHECK(w.members_n == 0 || differ <= 1);
    total_changes += w.members_n > 0 && differ == 1;
    w.members_n = set.n;
    for (int32_t i = 0; i < set.n; i++)
        w.members[i] = set.v[i].id;
}

/* ------------------------------------------------------------------ events */

/* Q9: an epoch's first record is its LeaderChange, and epochs do not fall. */
static inline void check_epoch_start(int64_t offset, const struct batch *batch)
{
    int first, last;
    int64_t at = 0, before = -1;
    while (at < offset && truth_at(at)->known) {
        before = at;
        at = truth_at(at)->next;
    }
    if (before < 0)
        return;
    W_CHECK(truth_at(before)->epoch <= batch->leader_epoch);
    if (truth_at(before)->epoch == batch->leader_epoch)
        return;
    W_CHECK(control_types(batch, &first, &last) == ERR_NONE && first == CONTROL_LEADER_CHANGE);
}

static inline void on_committed(void *ctx, const struct batch *batch)
{
    struct machine *m = ctx;
    W_CHECK(batch->base_offset == m->committed_end); /* Q12: in order, once */
    W_CHECK(batch_crc_ok(batch));
    m->committed_end = batch_next_offset(batch);
    if (!truth_at(batch->base_offset)->known) {
        check_epoch_start(batch->base_offset, batch);
        check_members(batch);
    }
    take_truth(batch);
}

/* Q11: the values of all that was committed before it, in order. */
static inline void on_snapshot(void *ctx, int64_t offset, int32_t epoch, struct bytes in)
{
    struct machine *m = ctx;
    struct batch batch;
    int64_t at = 0;
    m->snapshots++;
    total_installs += m->settled;
    W_CHECK(offset >= m->committed_end && offset <= w.committed_end);
    m->committed_end = offset;
    while (in.n > 0 && batch_take(&in, &batch) == ERR_NONE) {
        struct record_stream s;
        struct record rec;
        bool end = false;
        if ((batch.attributes & BATCH_CONTROL) != 0)
            continue;
        W_CHECK(record_stream_open(&s, &batch, INT32_MAX, NULL) == ERR_NONE);
        while (record_stream_next(&s, true, &rec, &end) == ERR_NONE && !end) {
            while (at < offset && truth_at(at)->control)
                at = truth_at(at)->next;
            W_CHECK(at < offset && rec.value.n == (int32_t)strlen(truth_at(at)->value) &&
                    memcmp(rec.value.p, truth_at(at)->value, (size_t)rec.value.n) == 0);
            at = truth_at(at)->next;
        }
        record_stream_close(&s);
    }
    while (at < offset && truth_at(at)->control) {
        W_CHECK(truth_at(at)->epoch <= epoch);
        at = truth_at(at)->next;
    }
    W_CHECK(at == offset);
}

static inline void on_leader(void *ctx, int32_t leader_id, int32_t epoch)
{
    struct machine *m = ctx;
    W_CHECK(epoch >= m->told_epoch);
    m->told_leader = leader_id;
    m->told_epoch = epoch;
}

/* Q13: with all of the earlier epochs. */
static inline void on_claim(void *ctx, int32_t epoch)
{
    struct machine *m = ctx;
    W_CHECK(epoch == m->told_epoch && m->told_leader == m->id);
    W_CHECK(m->committed_end > m->raft->epoch_start_offset);
    m->claims++;
    total_elections++;
}

static inline void on_resign(void *ctx, int32_t epoch)
{
    struct machine *m = ctx;
    (void)epoch;
    m->resigns++;
}

static inline void on_snapshot_due(void *ctx)
{
    struct machine *m = ctx;
    m->snapshots_due++;
}

static inline void on_failed(void *ctx, enum err e, const char *what)
{
    struct machine *m = ctx;
    printf("seed %llu: node %d failed: %s: %s\n", (unsigned long long)w.seed, m->id, err_name(e),
           what);
    m->failures++;
}

static inline void on_loaded(struct raft_load *rl)
{
    CONTAINER_OF(rl, struct machine, load)->loaded = true;
}

/* ------------------------------------------------------------------ machines */

static inline struct uuid directory_of(int32_t id)
{
    return (struct uuid){{(uint8_t)id, 77}};
}

/* The disk's. */
static inline struct uuid directory_at(const struct machine *m)
{
    struct uuid d = directory_of(m->id);
    d.b[2] = m->disk;
    return d;
}

static inline void take_jobs(struct machine *m)
{
    while (memenv_run_jobs(&m->env) > 0 || memenv_reap_jobs(&m->env) > 0)
        ;
    m->job_us = INT64_MAX;
}

static inline void format_machine(struct machine *m)
{
    static const struct bytes record = {(const uint8_t *)"feature", 7};
    const struct raft_format f = {.records = &record, .records_n = 1, .now = w.now};
    W_CHECK(raft_format_voters(&m->fs.disk, DIR, &f, w.is_static ? 0 : 1,
                               w.is_static ? NULL : &w.voters) == ERR_NONE);
    memfs_sync_all(&m->fs);
}

static inline void world_start(int i)
{
    struct machine *m = &w.m[i];
    static const struct voter_set none;
    m->loaded = false;
    m->life++;
    m->committed_end = 0;
    m->hw_seen = -1;
    m->claims = m->resigns = m->snapshots = m->snapshots_due = 0;
    m->told_leader = m->told_epoch = -1;
    m->load = (struct raft_load){
        .env = &m->env.env,
        .timers = &m->timers,
        .dir = DIR,
        .config = {.election_timeout_ms = 1000,
                   .fetch_timeout_ms = 2000,
                   .election_backoff_max_ms = 1000,
                   .request_timeout_ms = 2000,
                   .retry_backoff_ms = 20,
                   .fetch_max_bytes = 1 << 20,
                   .fetch_snapshot_max_bytes = 300,
                   .snapshot_max_new_bytes = w.snapshot_bytes,
                   .snapshot_max_interval_ms = 3600000,
                   .auto_join = w.auto_join,
                   .log = quiet_log(1500, 256)},
        .node_id = m->id,
        .directory_id = directory_at(m),
        .cluster_id = "cluster",
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("h"), (uint16_t)(PORT + m->id)},
        .static_voters = w.is_static ? &w.voters : &none,
        .bootstrap = w.servers,
        .bootstrap_n = w.servers_n,
        .may_vote = m->voter_role,
        .events = {.ctx = m,
                   .snapshot = on_snapshot,
                   .committed = on_committed,
                   .leader = on_leader,
                   .claim = on_claim,
                   .resign = on_resign,
                   .snapshot_due = on_snapshot_due,
                   .failed = on_failed},
        .now = w.now,
        .done = on_loaded,
    };
    raft_load_start(&m->load);
    take_jobs(m);
    W_CHECK(m->loaded);
    if (m->load.err != ERR_NONE)
        printf("node %d: %s\n", m->id, m->load.message);
    W_CHECK(m->load.err == ERR_NONE);
    enum err e = raft_open(&m->load, &m->raft);
    if (e != ERR_NONE)
        printf("node %d: %s\n", m->id, m->load.message);
    W_CHECK(e == ERR_NONE);
    raft_load_close(&m->load);
    W_CHECK(raft_end_offset(m->raft) >= m->fetched_from); /* K15 */
    m->up = true;
    m->settled = false;
}

static inline void packet_free(struct packet *p)
{
    list_remove(&p->link);
    arena_close(&p->arena);
    buf_close(&p->bytes);
    free(p);
}

static inline void world_step(int i); /* settles a machine */

/* What was asked of this machine, and by it, is gone with it. */
static inline void drop_packets_of(int i)
{
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &w.packets)
    {
        struct packet *p = LIST_ENTRY(it, struct packet, link);
        if (p->from == i && p->from_life == w.m[i].life && p->state != SERVED)
            packet_free(p);
    }
}

/* Power off: what was not synced may be lost. */
static inline void world_crash(int i)
{
    struct machine *m = &w.m[i];
    total_crashes++;
    m->flushed_end = log_flushed_end(raft_log(m->raft));
    if (m->fetched_from > m->flushed_end)
        m->fetched_from = m->flushed_end; /* a truncation took it back */
    memfs_unplug(&m->fs);
    take_jobs(m);
    raft_drop(m->raft);
    m->raft = NULL;
    m->up = false;
    drop_packets_of(i);
    memfs_crash(&m->fs, &w.rng);
    m->job_us = INT64_MAX;
}

/* Its disk, which is down, is another one now. */
static inline void world_replace_disk(int i)
{
    struct machine *m = &w.m[i];
    W_CHECK(!m->up);
    memfs_close(&m->fs);
    memfs_init(&m->fs, w.seed * 41 + (uint64_t)i);
    memfs_mkdirs(&m->fs, "/d");
    memset(m->voted, 0, sizeof m->voted);
    m->disk++;
    m->epoch_told = 0;
    m->fetched_from = m->flushed_end = 0;
    format_machine(m);
}

static inline void on_closed(void *ctx, enum err e)
{
    struct machine *m = ctx;
    m->closed = true;
    W_CHECK(e == ERR_NONE);
}

/* What a clean stop leaves. */
static inline void world_stop(int i)
{
    struct machine *m = &w.m[i];
    m->closed = false;
    raft_close(m->raft, on_closed, m);
}

static inline void world_gone(int i)
{
    struct machine *m = &w.m[i];
    take_jobs(m);
    W_CHECK(m->closed);
    m->flushed_end = INT64_MAX; /* all it has */
    m->raft = NULL;
    m->up = false;
    drop_packets_of(i);
}

static inline void world_new(uint64_t seed, int voters_n, int observers_n, bool is_static)
{
    memset(&w, 0, sizeof w);
    w.seed = seed;
    w.rng = (struct rng){seed};
    w.n = voters_n + observers_n;
    w.now = (struct now){1000000, 1700000000000};
    w.delay_max_us = 2000;
    w.job_max_us = 2000;
    w.is_static = is_static;
    w.snapshot_bytes = 1 << 20;
    w.m = calloc((size_t)w.n, sizeof *w.m);
    w.truth = calloc(OFFSETS_MAX, sizeof *w.truth);
    list_init(&w.packets);
    for (int i = 0; i < voters_n; i++) {
        struct voter *v = &w.voters.v[w.voters.n++];
        v->id = i + 1;
        if (!is_static)
            v->directory_id = directory_of(v->id);
        W_CHECK(voter_reached_at(v, STR_LIT("CONTROLLER"), STR_LIT("h"), (uint16_t)(PORT + v->id)));
        v->kraft_max = 1;
        if (!is_static)
            w.servers[w.servers_n++] =
                (struct raft_endpoint){STR_LIT(""), STR_LIT("h"), (uint16_t)(PORT + v->id)};
    }
    for (int i = 0; i < w.n; i++) {
        struct machine *m = &w.m[i];
        m->id = i + 1;
        m->voter_role = i < voters_n || !is_static;
        m->job_us = INT64_MAX;
        memfs_init(&m->fs, seed * 31 + (uint64_t)i);
        memfs_mkdirs(&m->fs, "/d");
        memenv_init(&m->env, &m->fs, seed * 37 + (uint64_t)i);
        timers_init(&m->timers);
        format_machine(m);
    }
}

static inline void world_free(void)
{
    for (int i = 0; i < w.n; i++)
        if (w.m[i].up)
            world_crash(i);
    struct list *it, *tmp;
    LIST_EACH(it, tmp, &w.packets)
    packet_free(LIST_ENTRY(it, struct packet, link));
    for (int i = 0; i < w.n; i++) {
        timers_close(&w.m[i].timers);
        memenv_close(&w.m[i].env);
        memfs_close(&w.m[i].fs);
    }
    free(w.m);
    free(w.truth);
}

/* ------------------------------------------------------------------ messages */

static inline const void *decoded(struct packet *p, enum wire_kind kind)
{
    const struct wire_message *m = wire_find(kind, p->api_key);
    void *out = arena_zalloc(&p->arena, m->body->size);
    enum err e =
        wire_decode(m, p->version, (struct bytes){p->bytes.p, (int32_t)p->bytes.n}, &p->arena, out);
    W_CHECK(e == ERR_NONE);
    return out;
}

static inline int64_t travel(void)
{
    return w.now.mono_us + 1 + (int64_t)rng_below(&w.rng, (uint64_t)w.delay_max_us);
}

static inline bool lost(int from, int to)
{
    return w.cut[from][to] || rng_percent(&w.rng, w.loss_percent);
}

/* Q2: one vote for each epoch, as far as anybody was told. */
static inline void check_vote(struct packet *p)
{
    if (p->api_key != API_VOTE)
        return;
    const struct vote_request *req = p->request;
    const struct vote_response *resp = p->response;
    const struct vote_request_partition_data *q = &req->topics.v[0].partitions.v[0];
    if (resp->topics.n != 1 || !resp->topics.v[0].partitions.v[0].vote_granted || q->pre_vote)
        return;
    int32_t *voted = &w.m[p->to].voted[q->replica_epoch];
    W_CHECK(*voted == 0 || *voted == q->replica_id);
    *voted = q->replica_id;
}

/* Q1: nobody is told of two leaders of an epoch. Q3: an epoch that was told is not forgotten. */
static inline void check_told(int i)
{
    struct machine *m = &w.m[i];
    const int32_t epoch = raft_epoch(m->raft), leader = raft_leader_id(m->raft);
    W_CHECK(raft_is_durable(m->raft) && epoch >= m->epoch_told && epoch < EPOCHS_MAX);
    m->epoch_told = epoch;
    if (leader < 0)
        return;
    W_CHECK(w.leader_of[epoch] == 0 || w.leader_of[epoch] == leader);
    w.leader_of[epoch] = leader;
}

static inline void op_done(struct raft_op *op)
{
    struct packet *p = CONTAINER_OF(op, struct packet, op);
    p->state = LOST;
    p->at_us = travel();
    if (op->err != ERR_NONE)
        return;
    check_told(p->to);
    check_vote(p);
    p->bytes.n = 0;
    const struct wire_message *m = wire_find(WIRE_RESPONSE, p->api_key);
    struct buf bytes; /* the answer may point into the request */
    buf_init(&bytes);
    W_CHECK(wire_encode(m, p->version, p->response, &bytes) == ERR_NONE);
    buf_close(&p->bytes);
    p->bytes = bytes;
    p->state = lost(p->to, p->from) ? LOST : RETURNS;
}

/* What its api says of a node. */
static inline void answer_versions(struct packet *p)
{
    static struct api_versions_response_supported_feature_key feature = {STR_LIT("kraft.version"),
                                                                         0, 1};
    struct api_versions_response *resp = p->response;
    wire_default(&wire_api_versions_response, resp);
    resp->supported_features.v = &feature;
    resp->supported_features.n = 1;
    resp->api_keys.n = 0;
    op_done(&p->op);
}

static inline void serve_packet(struct packet *p)
{
    struct raft *r = w.m[p->to].raft;
    const void *in = decoded(p, WIRE_REQUEST);
    void *out = arena_zalloc(&p->arena, wire_find(WIRE_RESPONSE, p->api_key)->body->size);
    p->request = (void *)(uintptr_t)in;
    p->response = out;
    p->op =
        (struct raft_op){.done = op_done, .arena = &p->arena, .listener = STR_LIT("CONTROLLER")};
    p->state = SERVED;
    p->to_life = w.m[p->to].life;
    p->at_us = INT64_MAX;
    switch (p->api_key) {
    case API_VOTE:
        raft_vote(r, &p->op, in, out, w.now);
        break;
    case API_BEGIN_QUORUM_EPOCH:
        raft_begin_quorum_epoch(r, &p->op, in, out, w.now);
        break;
    case API_END_QUORUM_EPOCH:
        raft_end_quorum_epoch(r, &p->op, in, out, w.now);
        break;
    case API_FETCH:
        raft_fetch(r, &p->op, in, out, w.now);
        break;
    case API_FETCH_SNAPSHOT:
        raft_fetch_snapshot(r, &p->op, in, out, w.now);
        break;
    case API_UPDATE_RAFT_VOTER:
        raft_update_voter(r, &p->op, in, out, w.now);
        break;
    case API_ADD_RAFT_VOTER:
        raft_add_voter(r, &p->op, in, out, w.now);
        break;
    case API_REMOVE_RAFT_VOTER:
        raft_remove_voter(r, &p->op, in, out, w.now);
        break;
    case API_API_VERSIONS:
        answer_versions(p);
        break;
    default:
        W_CHECK(false);
    }
}

/* The sender learns: an answer, or that there will be none. */
static inline void return_packet(struct packet *p)
{
    struct machine *m = &w.m[p->from];
    if (!m->up || m->life != p->from_life)
        return;
    if (p->state == RETURNS) {
        arena_reset(&p->arena);
        const void *response = decoded(p, WIRE_RESPONSE);
        if (w.on_answer != NULL)
            w.on_answer(p->from, p->api_key, (void *)(uintptr_t)response);
        raft_answered(m->raft, p->message, ERR_NONE, response, w.now);
    } else {
        p->message->refused = p->refused;
        raft_answered(m->raft, p->message, ERR_CLOSED, NULL, w.now);
    }
}

static inline void deliver(struct packet *p)
{
    if (p->state == TRAVELS && w.m[p->to].up) {
        serve_packet(p);
        world_step(p->to);
        return;
    }
    if (p->state == TRAVELS) {
        p->refused = true;
        p->state = LOST;
        p->at_us = travel();
        return;
    }
    const int from = p->from;
    return_packet(p);
    packet_free(p);
    if (w.m[from].up)
        world_step(from);
}

static inline void send_message(int from, struct raft_message *msg)
{
    struct packet *p = calloc(1, sizeof *p);
    W_CHECK(p != NULL);
    const struct wire_message *m = wire_find(WIRE_REQUEST, msg->api_key);
    check_told(from);
    p->from = from;
    p->to = msg->port - PORT - 1;
    W_CHECK(p->to >= 0 && p->to < w.n && p->to != from); /* never to ourselves */
    if (msg->api_key == API_FETCH && w.m[from].voter_role) {
        const struct fetch_request *req = msg->request;
        const int64_t at = req->topics.v[0].partitions.v[0].fetch_offset;
        W_CHECK(log_flushed_end(raft_log(w.m[from].raft)) == at);
        total_truncations += at < w.m[from].fetched_from;
        w.m[from].fetched_from = at;
    }
    p->from_life = w.m[from].life;
    p->message = msg;
    p->api_key = msg->api_key;
    p->version = m->max_version;
    arena_init(&p->arena, NULL);
    buf_init(&p->bytes);
    W_CHECK(wire_encode(m, p->version, msg->request, &p->bytes) == ERR_NONE);
    p->state = lost(from, p->to) ? LOST : TRAVELS;
    p->at_us = p->state == LOST ? msg->deadline_us : travel();
    list_append(&w.packets, &p->link);
}

#endif
