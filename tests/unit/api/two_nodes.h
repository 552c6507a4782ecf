/* Two nodes' tables of APIs in memory: node 1 has the quorum (real, of one voter) and the
 * controller, node 2 is a broker without one. Its channel reaches the listener of node 1's
 * controller; clients connect to both. What node 1 is asked can be seen, and answered by hand. */
#ifndef UNIT_API_TWO_NODES_H
#define UNIT_API_TWO_NODES_H

#include <stdio.h>

#include "api/api.h"
#include "base/endian.h"
#include "core/metadata/features.h"
#include "core/metadata/loader.h"
#include "core/metadata/records.h"
#include "support/memenv.h"
#include "support/node/frames.h"
#include "support/node/settings.h"
#include "support/test.h"
#include "wire/error.h"

#define DIR "/d/__cluster_metadata-0"
#define DIRECTORY ((struct uuid){{7}})

enum { S = 1000 * 1000, LISTENER_CLIENTS = 0, LISTENER_CONTROLLER = 1, SEEN_MAX = 64 };

/* One end of a connection to a node's rpc: a client's, or node 2's to node 1. */
struct end {
    struct rpc *rpc;
    struct conn *conn; /* NULL: not connected */
    struct peer *peer; /* node 2's; NULL: a client's */
    struct pipe out;   /* to the client */
    bool closed;       /* by the node */
};

struct side {
    struct api api;
    struct rpc *rpc;
    struct api_endpoint endpoints[2];
};

static struct two_nodes {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct budget memory;
    struct config *config;
    struct raft_load load;
    struct raft *raft;
    struct image image;
    struct loader *loader;
    struct controller *controller;
    struct side one, two;
    struct dialing dialing;
    struct channel *channel;
    struct end line; /* node 2's to node 1 */
    struct now now;
    bool loaded, closed;
    struct rng rng;
    /* what node 1 was asked, by key and version, but for ApiVersions */
    struct {
        int16_t key, version;
    } seen[SEEN_MAX];
    size_t seen_n;
    /* set: node 1 answers Envelopes with this, or ends the connection */
    const struct envelope_response *scripted;
    bool hang_up;
} t;

/* ------------------------------------------------------------------ authorization, by hand */

static char allowed_principal[64]; /* the last that was asked about */
static bool deny_cluster_action;

bool authorize(const struct authorizer *a, struct str principal, enum acl_operation op,
               enum acl_resource_type type, struct str resource)
{
    (void)a;
    (void)type;
    (void)resource;
    snprintf(allowed_principal, sizeof allowed_principal, "%.*s", principal.n, principal.p);
    return op != ACL_CLUSTER_ACTION || !deny_cluster_action;
}

void authorizer_init(struct authorizer *a, const struct config *config)
{
    (void)config;
    *a = (struct authorizer){0};
}

/* ------------------------------------------------------------------ node 1's quorum */

static inline void on_publish(void *ctx, const struct image_delta *d)
{
    (void)ctx;
    (void)d;
}

static inline void on_snapshot(void *ctx, int64_t offset, int32_t epoch, struct bytes batches)
{
    (void)ctx;
    CU_ASSERT_EQUAL_FATAL(loader_snapshot(t.loader, offset, epoch, batches), ERR_NONE);
    controller_committed(t.controller, offset, t.now);
}

static inline void on_committed(void *ctx, const struct batch *b)
{
    (void)ctx;
    CU_ASSERT_EQUAL_FATAL(loader_committed(t.loader, b), ERR_NONE);
    controller_committed(t.controller, batch_next_offset(b), t.now);
}

static inline void on_leader(void *ctx, int32_t leader_id, int32_t epoch)
{
    (void)ctx;
    (void)leader_id;
    (void)epoch;
}

static inline void on_claim(void *ctx, int32_t epoch)
{
    (void)ctx;
    controller_claim(t.controller, epoch, t.now);
}

static inline void on_resign(void *ctx, int32_t epoch)
{
    (void)ctx;
    (void)epoch;
    controller_resign(t.controller);
}

static inline void on_snapshot_due(void *ctx)
{
    (void)ctx;
}

static inline void on_failed(void *ctx, enum err e, const char *what)
{
    (void)ctx;
    (void)e;
    CU_FAIL(what);
}

static inline void on_loaded(struct raft_load *rl)
{
    (void)rl;
    t.loaded = true;
}

static inline void format_disk(void)
{
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    struct record_list rl;
    struct bytes values[16];
    record_list_init(&rl);
    for (size_t i = 0; i < n; i++) {
        const struct feature_level_record r = {str_of(ranges[i].name), ranges[i].fresh};
        if (r.feature_level > 0)
            CU_ASSERT_EQUAL_FATAL(record_list_add(&rl, &msg_feature_level_record, 0, &r), ERR_NONE);
    }
    for (size_t i = 0; i < rl.n; i++)
        values[i] = record_list_get(&rl, i);
    const struct raft_format f = {
        .node_id = 1,
        .directory_id = DIRECTORY,
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("one.example"), 9093},
        .records = values,
        .records_n = rl.n,
        .now = t.now,
    };
    CU_ASSERT_EQUAL_FATAL(raft_format_standalone(&t.fs.disk, DIR, &f), ERR_NONE);
    record_list_close(&rl);
}

static inline void settle_quorum(void)
{
    bool moved = true;
    while (moved) {
        moved = memenv_run_jobs(&t.env) + memenv_reap_jobs(&t.env) > 0;
        if (t.controller != NULL && !t.closed) {
            moved |= raft_settle(t.raft, t.now);
            moved |= controller_settle(t.controller, t.now);
        }
        moved |= t.env.waiting_n > 0;
    }
}

static inline void boot_quorum(void)
{
    static struct voter_set none;
    t.load = (struct raft_load){
        .env = &t.env.env,
        .timers = &t.timers,
        .dir = DIR,
        .config = {.election_timeout_ms = 1000,
                   .fetch_timeout_ms = 2000,
                   .snapshot_max_new_bytes = 1 << 20,
                   .snapshot_max_interval_ms = 3600000,
                   .log = {.segment_bytes = 1 << 20,
                           .segment_ms = INT64_MAX,
                           .segment_index_bytes = 1 << 20,
                           .index_interval_bytes = 4096,
                           .flush_messages = INT64_MAX,
                           .flush_ms = INT64_MAX,
                           .max_compaction_lag_ms = INT64_MAX,
                           .producer_id_expiration_ms = INT64_MAX}},
        .node_id = 1,
        .directory_id = DIRECTORY,
        .cluster_id = "cluster",
        .endpoint = {STR_LIT("CONTROLLER"), STR_LIT("one.example"), 9093},
        .static_voters = &none,
        .may_vote = true,
        .events = {.snapshot = on_snapshot,
                   .committed = on_committed,
                   .leader = on_leader,
                   .claim = on_claim,
                   .resign = on_resign,
                   .snapshot_due = on_snapshot_due,
                   .failed = on_failed},
        .now = t.now,
        .done = on_loaded,
    };
    raft_load_start(&t.load);
    settle_quorum();
    CU_ASSERT_TRUE_FATAL(t.loaded && t.load.err == ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(raft_open(&t.load, &t.raft), ERR_NONE);
    image_init(&t.image, 3);
    CU_ASSERT_EQUAL_FATAL(loader_new(&t.image, on_publish, NULL, &t.loader), ERR_NONE);
    const struct controller_args args = {.env = &t.env.env,
                                         .timers = &t.timers,
                                         .raft = t.raft,
                                         .config = t.config,
                                         .committed = &t.image,
                                         .cluster_id = "cluster",
                                         .node_id = 1,
                                         .seed = 5};
    CU_ASSERT_EQUAL_FATAL(controller_new(&args, &t.controller), ERR_NONE);
    for (int i = 0; i < 20 && !controller_is_active(t.controller); i++) {
        settle_quorum();
        t.now.mono_us += 500000;
        timers_run(&t.timers, t.now.mono_us);
    }
    CU_ASSERT_TRUE_FATAL(controller_is_active(t.controller));
    settle_quorum();
}

static inline void quorum_gone(void *ctx, enum err e)
{
    (void)ctx;
    (void)e;
    t.closed = true;
}

static inline void stop_quorum(void)
{
    controller_resign(t.controller);
    raft_close(t.raft, quorum_gone, NULL);
    for (int i = 0; i < 20 && !t.closed; i++) {
        settle_quorum();
        t.now.mono_us += S;
        timers_run(&t.timers, t.now.mono_us);
    }
    CU_ASSERT_TRUE_FATAL(t.closed);
    controller_free(t.controller);
    t.controller = NULL;
    loader_free(t.loader);
    image_close(&t.image);
    raft_load_close(&t.load);
}

/* ------------------------------------------------------------------ connections */

static inline void end_connect(struct end *e, struct rpc *rpc, int listener, const char *address)
{
    *e = (struct end){.rpc = rpc, .peer = e->peer};
    pipe_init(&e->out);
    e->conn = conn_new(rpc, listener, address, e, t.now);
    CU_ASSERT_PTR_NOT_NULL_FATAL(e->conn);
}

static inline void end_disconnect(struct end *e)
{
    if (e->conn != NULL)
        conn_closed(e->conn, t.now);
    e->conn = NULL;
    pipe_close(&e->out);
    pipe_init(&e->out);
}

static inline void end_send(struct end *e, const uint8_t *p, size_t n)
{
    while (n > 0 && e->conn != NULL) {
        uint8_t *to;
        size_t room;
        conn_recv_space(e->conn, &to, &room);
        room = room < n ? room : n;
        CU_ASSERT_FATAL(room > 0);
        memcpy(to, p, room);
        conn_recv(e->conn, room, t.now);
        p += room;
        n -= room;
    }
}

static inline void end_take(struct end *e, const struct wire_part *part)
{
    uint8_t *to;
    size_t room;
    if (e->peer == NULL) {
        pipe_put(&e->out, part->p, part->n);
        return;
    }
    for (size_t done = 0; done < part->n; done += room) {
        peer_recv_space(e->peer, &to, &room);
        CU_ASSERT_FATAL(room > 0);
        room = room < part->n - done ? room : part->n - done;
        memcpy(to, part->p + done, room);
        peer_recv(e->peer, room);
    }
}

static inline bool settle_rpc(struct rpc *rpc)
{
    struct conn *c;
    struct wire_part part;
    bool moved = false;
    while ((c = rpc_next_output(rpc)) != NULL) {
        while (conn_peek(c, &part, 1) > 0) {
            end_take(conn_driver(c), &part);
            conn_sent(c, part.n, t.now);
        }
        moved = true;
    }
    while ((c = rpc_next_close(rpc)) != NULL) {
        struct end *e = conn_driver(c);
        end_disconnect(e);
        e->closed = true;
        if (e->peer != NULL)
            peer_disconnected(e->peer, t.now);
        moved = true;
    }
    while (rpc_next_resume(rpc) != NULL)
        ;
    return moved;
}

static inline bool settle_line(void)
{
    struct peer *p = t.line.peer;
    if (p == NULL)
        return false;
    switch (peer_wants(p)) {
    case PEER_WANTS_NOTHING:
        return false;
    case PEER_WANTS_CONNECTION:
        if (peer_connect_at_us(p) > t.now.mono_us)
            return false;
        end_connect(&t.line, t.one.rpc, LISTENER_CONTROLLER, "10.0.0.2:40000");
        peer_connected(p, t.now);
        return true;
    case PEER_WANTS_SEND: {
        const struct bytes out = peer_peek(p);
        end_send(&t.line, out.p, (size_t)out.n);
        peer_sent(p, (size_t)out.n);
        return true;
    }
    case PEER_WANTS_END:
        end_disconnect(&t.line);
        peer_disconnected(p, t.now);
        return true;
    }
    return false;
}

static inline void line_ready(void *driver)
{
    (void)driver;
}

static inline enum err line_open(struct dialing *d, const struct dialing_args *args,
                                 struct peer **out)
{
    const struct peer_args peer_args = {.timers = args->timers,
                                        .memory = args->memory,
                                        .client_id = args->client_id,
                                        .answer_max_bytes = args->answer_max_bytes,
                                        .ready = line_ready,
                                        .driver = &t.line};
    (void)d;
    CU_ASSERT_STRING_EQUAL(args->host, "one.example");
    CU_ASSERT(t.line.peer == NULL && args->port == 9093);
    enum err e = peer_new(&peer_args, &t.line.peer);
    *out = t.line.peer;
    return e;
}

static inline void line_close(struct dialing *d, struct peer *p)
{
    (void)d;
    const bool connected = t.line.conn != NULL;
    end_disconnect(&t.line);
    if (connected)
        peer_disconnected(p, t.now);
    peer_free(p);
    t.line.peer = NULL;
}

/* Everything, until nothing moves. */
static inline void settle(void)
{
    bool moved = true;
    int rounds = 0;
    timers_run(&t.timers, t.now.mono_us);
    while (moved) {
        CU_ASSERT_FATAL(rounds++ < 1000);
        settle_quorum();
        moved = channel_settle(t.channel, t.now);
        moved |= settle_line();
        moved |= settle_rpc(t.one.rpc);
        moved |= settle_rpc(t.two.rpc);
    }
}

static inline void pass(int64_t us)
{
    t.now.mono_us += us;
    t.now.wall_ms += us / 1000;
    settle();
}

/* ------------------------------------------------------------------ nodes */

static inline void one_start(void *ctx, struct request *r, struct now now)
{
    CU_ASSERT_FATAL(t.seen_n < SEEN_MAX);
    if (r->api_key != API_API_VERSIONS) {
        t.seen[t.seen_n].key = r->api_key;
        t.seen[t.seen_n++].version = r->api_version;
    }
    if (r->api_key == API_ENVELOPE && t.hang_up)
        request_close(r, "as the test says");
    else if (r->api_key == API_ENVELOPE && t.scripted != NULL)
        request_answer(r, &msg_envelope_response, t.scripted);
    else
        api_handler(ctx).start(ctx, r, now);
}

static inline void side_open(struct side *s, int32_t node_id, const char *host)
{
    s->endpoints[LISTENER_CLIENTS] = (struct api_endpoint){"PLAINTEXT", host, 9092, false};
    s->endpoints[LISTENER_CONTROLLER] = (struct api_endpoint){"CONTROLLER", host, 9093, true};
    s->api = (struct api){.env = &t.env.env,
                          .timers = &t.timers,
                          .config = t.config,
                          .image = &t.image,
                          .cluster_id = "cluster",
                          .node_id = node_id,
                          .endpoints = s->endpoints,
                          .endpoints_n = 2};
    struct rpc_args args = {
        .env = &t.env.env,
        .timers = &t.timers,
        .frames = &t.memory,
        .small = &t.memory,
        .answers = &t.memory,
        .request_max_bytes = 1 << 20,
        .idle_max_ms = -1,
        .handler = api_handler(&s->api),
    };
    if (node_id == 1)
        args.handler.start = one_start;
    CU_ASSERT_EQUAL_FATAL(rpc_new(&args, &s->rpc), ERR_NONE);
    s->api.rpc = s->rpc;
}

static inline void side_close(struct side *s)
{
    rpc_free(s->rpc);
    api_close(&s->api);
}

static inline void two_nodes_open(void)
{
    memset(&t, 0, sizeof t);
    deny_cluster_action = false;
    t.rng.state = 1;
    t.now = (struct now){1000000, 1700000000000};
    memfs_init(&t.fs, 1);
    memfs_mkdirs(&t.fs, "/d");
    memenv_init(&t.env, &t.fs, 1);
    timers_init(&t.timers);
    budget_init(&t.memory, NULL, 64 << 20);
    t.config = settings_config("auto.create.topics.enable=true\n");
    format_disk();
    boot_quorum();
    side_open(&t.one, 1, "one.example");
    side_open(&t.two, 2, "two.example");
    t.one.api.raft = t.raft;
    t.one.api.controller = t.controller;
    t.dialing = (struct dialing){line_open, line_close};
    const struct channel_args args = {.env = &t.env.env,
                                      .timers = &t.timers,
                                      .rpc = t.two.rpc,
                                      .dialing = &t.dialing,
                                      .memory = &t.memory,
                                      .node_id = 2,
                                      .client_id = STR_LIT("broker-2-forwarding"),
                                      .raft = t.raft,
                                      .retry_ms = 20};
    CU_ASSERT_EQUAL_FATAL(channel_new(&args, &t.channel), ERR_NONE);
    t.two.api.forwarding = t.channel;
}

static inline void two_nodes_close(void)
{
    channel_free(t.channel);
    settle_rpc(t.one.rpc);
    settle_rpc(t.two.rpc);
    stop_quorum();
    side_close(&t.one);
    side_close(&t.two);
    CU_ASSERT_EQUAL(t.memory.used_bytes, 0);
    CU_ASSERT_EQUAL(t.timers.n, 0);
    config_free(t.config);
    timers_close(&t.timers);
    memenv_close(&t.env);
    memfs_close(&t.fs);
}

/* ------------------------------------------------------------------ brokers of the cluster */

struct node_op {
    struct controller_op op;
    int done;
    int16_t error;
};

static inline void node_op_done(struct controller_op *op, int16_t error)
{
    struct node_op *o = (struct node_op *)(void *)op;
    o->done++;
    o->error = error;
}

/* Registers and unfences it, with one listener. */
static inline void add_broker_on(int32_t id, const char *listener_name, const char *host)
{
    struct broker_registration_request req;
    struct broker_registration_response resp;
    struct broker_heartbeat_request beat;
    struct broker_heartbeat_response beaten;
    struct broker_registration_request_feature features[16];
    struct broker_registration_request_listener listener = {str_of(listener_name), str_of(host),
                                                            9092, 0};
    struct uuid dir = {{(uint8_t)id, 1, 2}};
    struct node_op op = {.op = {.done = node_op_done}}, op2 = op;
    size_t n;
    const struct feature_range *ranges = feature_ranges(&n);
    for (size_t i = 0; i < n; i++)
        features[i] = (struct broker_registration_request_feature){str_of(ranges[i].name),
                                                                   ranges[i].min, ranges[i].max};
    wire_default(&wire_broker_registration_request, &req);
    wire_default(&wire_broker_registration_response, &resp);
    req.broker_id = id;
    req.cluster_id = STR_LIT("cluster");
    req.incarnation_id.b[0] = (uint8_t)id;
    req.listeners.v = &listener;
    req.listeners.n = 1;
    req.features.v = features;
    req.features.n = (int32_t)n;
    req.log_dirs.v = &dir;
    req.log_dirs.n = 1;
    controller_register_broker(t.controller, &op.op, &req, &resp, t.now);
    settle();
    CU_ASSERT_FATAL(op.done == 1 && op.error == K_NONE);
    wire_default(&wire_broker_heartbeat_request, &beat);
    wire_default(&wire_broker_heartbeat_response, &beaten);
    beat.broker_id = id;
    beat.broker_epoch = resp.broker_epoch;
    beat.current_metadata_offset = t.image.next_offset - 1;
    controller_heartbeat(t.controller, &op2.op, &beat, &beaten, t.now);
    settle();
    CU_ASSERT_FATAL(op2.done == 1 && op2.error == K_NONE && !beaten.is_fenced);
}

static inline void add_broker(int32_t id, const char *host)
{
    add_broker_on(id, "PLAINTEXT", host);
}

/* ------------------------------------------------------------------ a client */

static inline void client_send(struct end *e, struct frame_of of, const void *body)
{
    struct pipe p;
    pipe_init(&p);
    frame_put(&p, of, body);
    end_send(e, p.p, p.n);
    pipe_close(&p);
    settle();
}

/* The answer to it, in a; NULL: none is there. */
static inline const void *client_take(struct end *e, struct frame_of of, struct arena *a)
{
    const void *body = NULL;
    const enum frame_got got = frame_take(&e->out, of, a, &body);
    CU_ASSERT(got != FRAME_ALIEN);
    return got == FRAME_ANSWER ? body : NULL;
}

static inline const void *client_ask(struct end *e, struct frame_of of, const void *body,
                                     struct arena *a)
{
    client_send(e, of, body);
    return client_take(e, of, a);
}

#endif
