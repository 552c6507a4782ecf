/* Two nodes' tables of APIs in memory: node 1 has the quorum (real, of one voter) and the
 * controller, node 2 is a broker without one. Its channel reaches the listener of node 1's
 * controller; clients connect to both. What node 1 is asked can be seen, and answered by hand. */
#ifndef UNIT_API_TWO_NODES_H
#define UNIT_API_TWO_NODES_H

#include <stdio.h>

#include "api/api.h"
#include "base/endian.h"
#include "support/node/frames.h"
#include "support/node/link.h"
#include "support/node/settings.h"
#include "support/sole_voter.h"
#include "wire/error.h"

enum { S = 1000 * 1000, LISTENER_CLIENTS = 0, LISTENER_CONTROLLER = 1, SEEN_MAX = 64 };

struct side {
    struct api api;
    struct rpc *rpc;
    struct api_endpoint endpoints[2];
};

static struct two_nodes {
    struct budget memory;
    struct side one, two;
    struct dialing dialing;
    struct channel *channel;
    struct link line;  /* node 2's to node 1 */
    struct peer *peer; /* its end */
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

/* ------------------------------------------------------------------ connections */

static inline void link_send(struct link *l, const void *p, size_t n)
{
    pipe_put(&l->in, p, n);
    while (link_wants(l))
        (void)link_deliver(l, SIZE_MAX, q.now);
    CU_ASSERT_FATAL(l->in.n == 0 || l->conn == NULL);
}

static inline void peer_take(struct peer *p, struct pipe *from)
{
    uint8_t *to;
    size_t room;
    while (from->n > 0) {
        peer_recv_space(p, &to, &room);
        CU_ASSERT_FATAL(room > 0);
        room = room < from->n ? room : from->n;
        memcpy(to, from->p, room);
        pipe_drop(from, room);
        peer_recv(p, room);
    }
}

static inline bool settle_rpc(struct rpc *rpc)
{
    struct link *l;
    size_t n;
    bool moved = false;
    while ((l = link_next_output(rpc, &n, q.now)) != NULL) {
        if (l == &t.line)
            peer_take(t.peer, &l->out);
        moved = true;
    }
    moved |= links_settle(rpc, q.now);
    if (t.line.closed)
        peer_disconnected(t.peer, q.now);
    t.line.closed = false;
    return moved;
}

static inline bool settle_line(void)
{
    struct peer *p = t.peer;
    if (p == NULL)
        return false;
    switch (peer_wants(p)) {
    case PEER_WANTS_NOTHING:
        return false;
    case PEER_WANTS_CONNECTION:
        if (peer_connect_at_us(p) > q.now.mono_us)
            return false;
        CU_ASSERT_FATAL(link_connect(&t.line, t.one.rpc, q.now));
        peer_connected(p, q.now);
        return true;
    case PEER_WANTS_SEND: {
        const struct bytes out = peer_peek(p);
        link_send(&t.line, out.p, (size_t)out.n);
        peer_sent(p, (size_t)out.n);
        return true;
    }
    case PEER_WANTS_END:
        link_disconnect(&t.line, q.now);
        peer_disconnected(p, q.now);
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
    CU_ASSERT(t.peer == NULL && args->port == 9093);
    enum err e = peer_new(&peer_args, &t.peer);
    *out = t.peer;
    return e;
}

static inline void line_close(struct dialing *d, struct peer *p)
{
    (void)d;
    const bool connected = t.line.conn != NULL;
    link_disconnect(&t.line, q.now);
    if (connected)
        peer_disconnected(p, q.now);
    peer_free(p);
    t.peer = NULL;
}

/* Everything, until nothing moves. */
static inline void settle(void)
{
    bool moved = true;
    int rounds = 0;
    timers_run(&q.timers, q.now.mono_us);
    while (moved) {
        CU_ASSERT_FATAL(rounds++ < 1000);
        sole_settle();
        moved = channel_settle(t.channel, q.now);
        moved |= settle_line();
        moved |= settle_rpc(t.one.rpc);
        moved |= settle_rpc(t.two.rpc);
    }
}

static inline void pass(int64_t us)
{
    q.now.mono_us += us;
    q.now.wall_ms += us / 1000;
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
    s->api = (struct api){.env = &q.env.env,
                          .timers = &q.timers,
                          .config = q.config,
                          .image = &q.image,
                          .cluster_id = "cluster",
                          .node_id = node_id,
                          .endpoints = s->endpoints,
                          .endpoints_n = 2};
    struct rpc_args args = {
        .env = &q.env.env,
        .timers = &q.timers,
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
    link_init(&t.line);
    t.line.listener = LISTENER_CONTROLLER;
    t.line.address = "10.0.0.2:40000";
    budget_init(&t.memory, NULL, 64 << 20);
    sole_open(1);
    q.config = settings_config("auto.create.topics.enable=true\n");
    sole_boot();
    side_open(&t.one, 1, "one.example");
    side_open(&t.two, 2, "two.example");
    t.one.api.raft = q.raft;
    t.one.api.controller = q.controller;
    t.dialing = (struct dialing){line_open, line_close};
    const struct channel_args args = {.timers = &q.timers,
                                      .rpc = t.two.rpc,
                                      .dialing = &t.dialing,
                                      .memory = &t.memory,
                                      .node_id = 2,
                                      .client_id = STR_LIT("broker-2-forwarding"),
                                      .raft = q.raft,
                                      .retry_ms = 20};
    CU_ASSERT_EQUAL_FATAL(channel_new(&args, &t.channel), ERR_NONE);
    t.two.api.forwarding = t.channel;
}

static inline void two_nodes_close(void)
{
    channel_free(t.channel);
    settle_rpc(t.one.rpc);
    settle_rpc(t.two.rpc);
    sole_stop();
    side_close(&t.one);
    side_close(&t.two);
    link_close(&t.line);
    CU_ASSERT_EQUAL(t.memory.used_bytes, 0);
    CU_ASSERT_EQUAL(q.timers.n, 0);
    config_free(q.config);
    sole_close();
}

/* ------------------------------------------------------------------ brokers of the cluster */

/* Registers and unfences it, with one listener. */
static inline void add_broker_on(int32_t id, const char *listener_name, const char *host)
{
    (void)sole_join(id, (uint8_t)id, -1,
                    (struct broker_registration_request_listener){str_of(listener_name),
                                                                  str_of(host), 9092, 0});
    settle();
}

static inline void add_broker(int32_t id, const char *host)
{
    add_broker_on(id, "PLAINTEXT", host);
}

/* ------------------------------------------------------------------ a client */

static inline void client_connect(struct link *l, struct side *s, int listener, const char *address)
{
    link_init(l);
    l->listener = listener;
    l->address = address;
    CU_ASSERT_FATAL(link_connect(l, s->rpc, q.now));
}

static inline void client_disconnect(struct link *l)
{
    link_disconnect(l, q.now);
    settle();
    link_close(l);
}

static inline void client_send(struct link *l, struct frame_of of, const void *body)
{
    struct pipe p;
    pipe_init(&p);
    frame_put(&p, of, body);
    link_send(l, p.p, p.n);
    pipe_close(&p);
    settle();
}

/* The answer to it, in a; NULL: none is there. */
static inline const void *client_take(struct link *l, struct frame_of of, struct arena *a)
{
    const void *body = NULL;
    const enum frame_got got = frame_take(&l->out, of, a, &body);
    CU_ASSERT(got != FRAME_ALIEN);
    return got == FRAME_ANSWER ? body : NULL;
}

static inline const void *client_ask(struct link *l, struct frame_of of, const void *body,
                                     struct arena *a)
{
    client_send(l, of, body);
    return client_take(l, of, a);
}

/* For wire_random: ctx is a struct rng. */
static inline uint64_t next_random(void *ctx)
{
    return rng_u64(ctx);
}

#endif
