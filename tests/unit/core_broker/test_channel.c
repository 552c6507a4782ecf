/* A channel over a quorum, connections and a leader played by hand: raft_leader_endpoint is defined
 * here, so the linker leaves the real one in its archive. */
#include "core/broker/channel.h"

#include <stdlib.h>

#include "base/endian.h"
#include "support/fault.h"
#include "support/memenv.h"
#include "support/test.h"
#include "wire/error.h"

enum { S = 1000 * 1000, MS = 1000, PEERS_MAX = 8, MEMORY = 1 << 20, RETRY_MS = 20 };

/* One connection to another node. */
struct line {
    struct peer *peer; /* NULL: closed */
    char host[32];
    uint16_t port;
    bool connected;
};

static struct {
    int32_t leader_id; /* -1: none known */
    const char *host;
    uint16_t port;
    struct line lines[PEERS_MAX];
    size_t lines_n;
    enum err open_error;
    struct dialing dialing;
    struct timers timers;
    struct budget memory;
    struct memfs fs;
    struct memenv env;
    struct rpc *rpc;
    struct request *kept; /* arrived at ourselves */
    struct channel *channel;
    struct now now;
} b;

bool raft_leader_endpoint(const struct raft *r, int32_t *leader_id, struct str *host,
                          uint16_t *port)
{
    (void)r;
    *leader_id = b.leader_id;
    *host = str_of(b.host);
    *port = b.port;
    return b.leader_id >= 0;
}

static void ready(void *driver)
{
    (void)driver;
}

static enum err open_line(struct dialing *d, const struct dialing_args *args, struct peer **out)
{
    CU_ASSERT(d == &b.dialing);
    CU_ASSERT_FATAL(b.lines_n < PEERS_MAX);
    if (b.open_error != ERR_NONE)
        return b.open_error;
    struct line *l = &b.lines[b.lines_n];
    const struct peer_args peer_args = {.timers = args->timers,
                                        .memory = args->memory,
                                        .client_id = args->client_id,
                                        .answer_max_bytes = args->answer_max_bytes,
                                        .ready = ready,
                                        .driver = l};
    enum err e = peer_new(&peer_args, out);
    if (e != ERR_NONE)
        return e;
    *l = (struct line){.peer = *out, .port = args->port};
    snprintf(l->host, sizeof l->host, "%s", args->host);
    b.lines_n++;
    return ERR_NONE;
}

static void close_line(struct dialing *d, struct peer *p)
{
    (void)d;
    struct line *l = peer_driver(p);
    if (l->connected)
        peer_disconnected(p, b.now);
    peer_free(p);
    *l = (struct line){0};
}

/* ------------------------------------------------------------------ ourselves as the leader */

static bool accept_request(void *ctx, struct request *r)
{
    (void)ctx;
    struct request_header header;
    size_t used;
    r->api_key = (int16_t)be16(r->frame.p);
    r->api_version = (int16_t)be16(r->frame.p + 2);
    CU_ASSERT_EQUAL(r->listener, -1);
    return wire_decode_prefix(&msg_request_header,
                              wire_request_header_version(r->api_key, r->api_version), r->frame,
                              &r->arena, &header, &used) == ERR_NONE &&
           (r->correlation_id = header.correlation_id, true);
}

static void start_request(void *ctx, struct request *r, struct now now)
{
    (void)ctx;
    (void)now;
    if (r->api_key != API_API_VERSIONS) {
        b.kept = r;
        return;
    }
    struct api_versions_response_api_version v = {.api_key = API_HEARTBEAT, .max_version = 3};
    struct api_versions_response answer;
    wire_default(&wire_api_versions_response, &answer);
    answer.api_keys.v = &v;
    answer.api_keys.n = 1;
    CU_ASSERT(request_answer(r, &msg_api_versions_response, &answer));
}

static void cancel_request(void *ctx, struct request *r)
{
    (void)ctx;
    (void)r;
}

/* ------------------------------------------------------------------ the bench */

static enum err begin(void)
{
    memset(&b, 0, sizeof b);
    b.now = (struct now){10 * S, 1700000000000};
    b.leader_id = -1;
    b.host = "two.example";
    b.port = 9093;
    b.dialing = (struct dialing){open_line, close_line};
    timers_init(&b.timers);
    budget_init(&b.memory, NULL, MEMORY);
    memfs_init(&b.fs, 1);
    memenv_init(&b.env, &b.fs, 2);
    const struct rpc_args rpc_args = {
        .env = &b.env.env,
        .timers = &b.timers,
        .frames = &b.memory,
        .small = &b.memory,
        .answers = &b.memory,
        .request_max_bytes = 1 << 20,
        .idle_max_ms = -1,
        .handler = {.accept = accept_request, .start = start_request, .cancel = cancel_request},
    };
    enum err e = rpc_new(&rpc_args, &b.rpc);
    if (e != ERR_NONE)
        return e;
    const struct channel_args args = {
        .timers = &b.timers,
        .rpc = b.rpc,
        .dialing = &b.dialing,
        .memory = &b.memory,
        .node_id = 1,
        .client_id = STR_LIT("broker-1-test"),
        .retry_ms = RETRY_MS,
    };
    return channel_new(&args, &b.channel);
}

static void end(void)
{
    channel_free(b.channel);
    rpc_free(b.rpc);
    CU_ASSERT_EQUAL(b.memory.used_bytes, 0);
    CU_ASSERT_EQUAL(b.timers.n, 0);
    timers_close(&b.timers);
    memenv_close(&b.env);
    memfs_close(&b.fs);
}

static void settle(void)
{
    int rounds = 0;
    timers_run(&b.timers, b.now.mono_us);
    while (channel_settle(b.channel, b.now))
        CU_ASSERT_FATAL(rounds++ < 100);
}

static void pass(int64_t us)
{
    b.now.mono_us += us;
    settle();
}

struct told {
    struct channel_call call;
    struct heartbeat_request request;
    int done_n;
    enum err err;
    int16_t error_code;
};

static void told_done(struct channel_call *call, enum err e, const void *response)
{
    struct told *t = CONTAINER_OF(call, struct told, call);
    t->done_n++;
    t->err = e;
    CU_ASSERT_EQUAL(response != NULL, e == ERR_NONE);
    if (response != NULL)
        t->error_code = ((const struct heartbeat_response *)response)->error_code;
}

static int16_t error_of(const void *response)
{
    return ((const struct heartbeat_response *)response)->error_code;
}

static void call_until(struct told *t, int64_t deadline_us)
{
    *t = (struct told){.call = {.api_key = API_HEARTBEAT,
                                .deadline_us = deadline_us,
                                .error = error_of,
                                .done = told_done}};
    wire_default(&wire_heartbeat_request, &t->request);
    t->call.request = &t->request;
    channel_call(b.channel, &t->call, b.now);
    CU_ASSERT_EQUAL(t->done_n, 0);
}

static void call(struct told *t)
{
    call_until(t, INT64_MAX);
}

/* The only line that is open. */
static struct line *line(void)
{
    struct line *found = NULL;
    for (size_t i = 0; i < b.lines_n; i++) {
        CU_ASSERT_FATAL(b.lines[i].peer == NULL || found == NULL);
        if (b.lines[i].peer != NULL)
            found = &b.lines[i];
    }
    CU_ASSERT_FATAL(found != NULL);
    return found;
}

static void answer(const struct wire_message *m, int16_t key, int16_t version, int32_t id,
                   const void *body)
{
    struct buf f;
    uint8_t *to;
    size_t room;
    buf_init(&f);
    const struct response_header header = {.correlation_id = id};
    CU_ASSERT_FATAL(buf_append(&f, "\0\0\0\0", 4) == ERR_NONE);
    CU_ASSERT_FATAL(wire_encode(&msg_response_header, wire_response_header_version(key, version),
                                &header, &f) == ERR_NONE);
    CU_ASSERT_FATAL(wire_encode(m, version, body, &f) == ERR_NONE);
    put_be32(f.p, (uint32_t)(f.n - 4));
    peer_recv_space(line()->peer, &to, &room);
    CU_ASSERT_FATAL(room >= f.n);
    memcpy(to, f.p, f.n);
    peer_recv(line()->peer, f.n);
    buf_close(&f);
    settle();
}

/* Takes the one request that was sent; its correlation id. */
static int32_t take(int16_t key, int16_t *version)
{
    const struct bytes out = peer_peek(line()->peer);
    CU_ASSERT_FATAL(out.n >= 12 && (int32_t)be32(out.p) == out.n - 4);
    CU_ASSERT_EQUAL_FATAL((int16_t)be16(out.p + 4), key);
    *version = (int16_t)be16(out.p + 6);
    const int32_t id = (int32_t)be32(out.p + 8);
    peer_sent(line()->peer, (size_t)out.n);
    return id;
}

static void connect_line(void)
{
    int16_t version;
    CU_ASSERT_EQUAL_FATAL(peer_wants(line()->peer), PEER_WANTS_CONNECTION);
    peer_connected(line()->peer, b.now);
    line()->connected = true;
    settle();
    const int32_t id = take(API_API_VERSIONS, &version);
    struct api_versions_response_api_version v = {.api_key = API_HEARTBEAT, .max_version = 3};
    struct api_versions_response r;
    wire_default(&wire_api_versions_response, &r);
    r.api_keys.v = &v;
    r.api_keys.n = 1;
    answer(&msg_api_versions_response, API_API_VERSIONS, version, id, &r);
}

/* A call is on its way to the leader, node 2. */
static void begin_to_two(struct told *t)
{
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 2;
    call(t);
    settle();
    connect_line();
}

static void answer_heartbeat(int16_t error)
{
    int16_t version;
    const int32_t id = take(API_HEARTBEAT, &version);
    const struct heartbeat_response r = {.error_code = error};
    answer(&msg_heartbeat_response, API_HEARTBEAT, version, id, &r);
}

static void lose_line(void)
{
    peer_disconnected(line()->peer, b.now);
    line()->connected = false;
    settle();
}

/* ------------------------------------------------------------------ tests */

static void test_channel_waits_for_a_leader(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    call(&t);
    pass(60 * S);
    CU_ASSERT(t.done_n == 0 && b.lines_n == 0);
    b.leader_id = 2;
    settle();
    CU_ASSERT_STRING_EQUAL(line()->host, "two.example");
    CU_ASSERT_EQUAL(line()->port, 9093);
    connect_line();
    answer_heartbeat(K_NONE);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE);
    end();
}

static void test_channel_one_in_flight_in_order(void)
{
    struct told t[3];
    int16_t version;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 2;
    for (int i = 0; i < 3; i++)
        call(&t[i]);
    settle();
    connect_line();
    for (int i = 0; i < 3; i++) {
        const struct bytes out = peer_peek(line()->peer);
        CU_ASSERT_EQUAL((int32_t)be32(out.p), out.n - 4); /* no other behind it */
        answer_heartbeat((int16_t)(20 + i));
        CU_ASSERT(t[i].done_n == 1 && t[i].error_code == 20 + i);
        CU_ASSERT(i == 2 || t[i + 1].done_n == 0);
    }
    CU_ASSERT_EQUAL(b.lines_n, 1);
    call(&t[0]); /* and is used again, until the leader is another one */
    settle();
    (void)take(API_HEARTBEAT, &version);
    end();
    CU_ASSERT(t[0].done_n == 1 && t[0].err == ERR_CANCELLED);
}

static void test_channel_to_ourselves(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 1;
    call(&t);
    settle();
    CU_ASSERT(b.lines_n == 0 && t.done_n == 0);
    CU_ASSERT_FATAL(b.kept != NULL);
    const struct heartbeat_response r = {.error_code = 25};
    CU_ASSERT(request_answer(b.kept, &msg_heartbeat_response, &r));
    settle();
    CU_ASSERT(t.done_n == 1 && t.error_code == 25);
    b.kept = NULL;
    call(&t); /* we resign while it waits */
    settle();
    CU_ASSERT_FATAL(b.kept != NULL);
    b.leader_id = 2;
    settle();
    CU_ASSERT_EQUAL(t.done_n, 0);
    connect_line();
    answer_heartbeat(26);
    CU_ASSERT(t.done_n == 1 && t.error_code == 26);
    request_drop(b.kept);
    end();
}

static void test_channel_a_lost_connection(void)
{
    struct told t;
    begin_to_two(&t);
    lose_line();
    CU_ASSERT_EQUAL(t.done_n, 0);
    pass(RETRY_MS * MS - 1);
    CU_ASSERT_EQUAL(peer_wants(line()->peer), PEER_WANTS_NOTHING);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), b.now.mono_us + 1);
    pass(1);
    connect_line();
    answer_heartbeat(K_NONE);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE);
    end();
}

static void test_channel_not_the_controller(void)
{
    struct told t;
    int64_t pause_us = 0;
    begin_to_two(&t);
    for (int i = 0; i < 10; i++) {
        answer_heartbeat(K_NOT_CONTROLLER);
        CU_ASSERT_EQUAL(t.done_n, 0);
        CU_ASSERT_EQUAL(peer_peek(line()->peer).n, 0);
        const int64_t us = timers_next_us(&b.timers) - b.now.mono_us;
        CU_ASSERT(us >= pause_us && us >= RETRY_MS * MS && us <= 32 * RETRY_MS * MS);
        pause_us = us;
        pass(us);
    }
    CU_ASSERT_EQUAL(pause_us, 32 * RETRY_MS * MS);
    answer_heartbeat(K_NONE);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE && b.lines_n == 1);
    call(&t); /* all is forgiven */
    t.call.error = NULL;
    settle();
    answer_heartbeat(K_NOT_CONTROLLER); /* which is not looked at */
    CU_ASSERT(t.done_n == 1 && t.error_code == K_NOT_CONTROLLER);
    end();
}

/* Also when the old leader answers nothing any more, as a stopped process does. */
static void test_channel_follows_the_leader(void)
{
    struct told t;
    int16_t version;
    begin_to_two(&t);
    (void)take(API_HEARTBEAT, &version);
    b.leader_id = -1;
    settle(); /* nobody else leads yet: it may still answer */
    CU_ASSERT(line()->connected && t.done_n == 0);
    b.leader_id = 3;
    b.host = "three.example";
    settle();
    CU_ASSERT_STRING_EQUAL(line()->host, "three.example");
    connect_line();
    answer_heartbeat(K_NONE);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE && b.lines_n == 2);
    b.port = 9094; /* the same node, elsewhere */
    call(&t);
    settle();
    CU_ASSERT_EQUAL(line()->port, 9094);
    end();
}

/* What the old leader refused does not keep us from the new one. */
static void test_channel_asks_a_new_leader_at_once(void)
{
    struct told t;
    begin_to_two(&t);
    for (int i = 0; i < 10; i++) {
        answer_heartbeat(K_NOT_CONTROLLER);
        pass(timers_next_us(&b.timers) - b.now.mono_us);
    }
    answer_heartbeat(K_NOT_CONTROLLER);
    b.leader_id = 3;
    b.host = "three.example";
    settle();
    CU_ASSERT_STRING_EQUAL(line()->host, "three.example");
    connect_line();
    answer_heartbeat(K_NOT_CONTROLLER);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), b.now.mono_us + RETRY_MS * MS);
    pass(RETRY_MS * MS);
    answer_heartbeat(K_NONE);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE);
    end();
}

static void test_channel_does_not_wait_for_a_silent_leader(void)
{
    struct told t;
    int16_t version;
    begin_to_two(&t);
    (void)take(API_HEARTBEAT, &version);
    pass(30 * S);
    CU_ASSERT_EQUAL(t.done_n, 0);
    pass(RETRY_MS * MS);
    CU_ASSERT_EQUAL(b.lines_n, 2); /* another connection */
    connect_line();
    answer_heartbeat(K_NONE);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE);
    end();
}

static void test_channel_deadline(void)
{
    struct told sent, waits, next;
    int16_t version;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    call_until(&sent, b.now.mono_us + S);
    pass(S - 1);
    CU_ASSERT_EQUAL(sent.done_n, 0);
    pass(1); /* no leader all the time */
    CU_ASSERT(sent.done_n == 1 && sent.err == ERR_TIMEOUT);
    b.leader_id = 2;
    call_until(&sent, b.now.mono_us + S);
    call_until(&waits, b.now.mono_us + S / 2);
    settle();
    connect_line();
    const int32_t late = take(API_HEARTBEAT, &version);
    pass(S / 2);
    CU_ASSERT(waits.done_n == 1 && waits.err == ERR_TIMEOUT && sent.done_n == 0);
    pass(S / 2);
    CU_ASSERT(sent.done_n == 1 && sent.err == ERR_TIMEOUT);
    call(&next);
    settle();
    const struct heartbeat_response r = {.error_code = 1};
    answer(&msg_heartbeat_response, API_HEARTBEAT, version, late, &r); /* nobody waits for it */
    CU_ASSERT_EQUAL(next.done_n, 0);
    answer_heartbeat(2);
    CU_ASSERT(next.done_n == 1 && next.error_code == 2);
    end();
}

static void test_channel_cancel(void)
{
    struct told sent, waits;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 2;
    call(&sent);
    call(&waits);
    settle();
    connect_line();
    channel_cancel(&sent.call);
    channel_cancel(&waits.call);
    channel_cancel(&waits.call);
    CU_ASSERT(sent.done_n == 0 && waits.done_n == 0);
    settle();
    CU_ASSERT(sent.done_n == 1 && sent.err == ERR_CANCELLED);
    CU_ASSERT(waits.done_n == 1 && waits.err == ERR_CANCELLED);
    end();
}

/* The raft may be gone: nobody is looked for any more. */
static void test_channel_stops(void)
{
    struct told sent, waits, late;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 2;
    call(&sent);
    call(&waits);
    settle();
    connect_line();
    channel_stop(b.channel);
    CU_ASSERT(b.lines[0].peer == NULL);
    call(&late);
    settle();
    CU_ASSERT(sent.done_n == 1 && sent.err == ERR_CANCELLED);
    CU_ASSERT(waits.done_n == 1 && waits.err == ERR_CANCELLED);
    CU_ASSERT(late.done_n == 1 && late.err == ERR_CANCELLED && b.lines_n == 1);
    end();
}

static void test_channel_unsupported(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 2;
    call(&t);
    t.call.api_key = API_METADATA;
    settle();
    connect_line();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_UNSUPPORTED);
    end();
}

static void test_channel_a_host_that_is_none(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    b.leader_id = 2;
    b.open_error = ERR_INVALID;
    call_until(&t, b.now.mono_us + S);
    for (int i = 0; i < 10 && t.done_n == 0; i++)
        pass(timers_next_us(&b.timers) - b.now.mono_us);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_TIMEOUT);
    end();
}

/* The nth allocation fails: every call completes once, nothing leaks. */
static void test_channel_out_of_memory(void)
{
    for (long n = 1;; n++) {
        struct told t = {0};
        fault_alloc_arm(n, false);
        const bool ok = begin() == ERR_NONE;
        if (ok) {
            b.leader_id = 2;
            call_until(&t, b.now.mono_us + S);
            settle();
            pass(S);
        }
        const bool hit = fault_alloc_hit();
        if (!ok) {
            rpc_free(b.rpc);
            timers_close(&b.timers);
            memenv_close(&b.env);
            memfs_close(&b.fs);
            continue;
        }
        CU_ASSERT(t.done_n == 1 && (t.err == ERR_TIMEOUT || t.err == ERR_NOMEM));
        end();
        if (!hit)
            break;
    }
}

TEST_MAIN(TEST(test_channel_waits_for_a_leader), TEST(test_channel_one_in_flight_in_order),
          TEST(test_channel_to_ourselves), TEST(test_channel_a_lost_connection),
          TEST(test_channel_not_the_controller), TEST(test_channel_follows_the_leader),
          TEST(test_channel_asks_a_new_leader_at_once),
          TEST(test_channel_does_not_wait_for_a_silent_leader), TEST(test_channel_deadline),
          TEST(test_channel_cancel), TEST(test_channel_stops), TEST(test_channel_unsupported),
          TEST(test_channel_a_host_that_is_none), TEST(test_channel_out_of_memory))
