/* A peer towards another node whose bytes are played by hand: what it wants of its driver,
 * versions, answers in every cut, and an other side that lies. */
#include "base/endian.h"
#include "rpc/peer.h"
#include "support/fault.h"
#include "support/rng.h"
#include "support/test.h"
#include "wire/error.h"
#include "wire/messages.h"

#include <stdlib.h>

enum { ANSWER_MAX = 1 << 16, MEMORY = 1 << 20, S = 1000 * 1000 };

static struct bench {
    struct timers timers;
    struct budget memory;
    struct peer *peer;
    struct now now;
    int ready_n;
    bool connected;
} b;

/* A call that keeps what done() said. */
struct told {
    struct peer_call call;
    struct heartbeat_request request;
    int done_n;
    enum err err;
    int16_t error_code;
    const void *response;
};

static void ready(void *driver)
{
    ((struct bench *)driver)->ready_n++;
}

static void told_done(struct peer_call *call, enum err e, const void *response)
{
    struct told *t = CONTAINER_OF(call, struct told, call);
    t->done_n++;
    t->err = e;
    t->response = response;
    if (response != NULL)
        t->error_code = ((const struct heartbeat_response *)response)->error_code;
}

static enum err begin(void)
{
    memset(&b, 0, sizeof b);
    b.now = (struct now){10 * S, 1700000000000};
    timers_init(&b.timers);
    budget_init(&b.memory, NULL, MEMORY);
    const struct peer_args args = {.timers = &b.timers,
                                   .memory = &b.memory,
                                   .client_id = STR_LIT("test"),
                                   .answer_max_bytes = ANSWER_MAX,
                                   .ready = ready,
                                   .driver = &b};
    return peer_new(&args, &b.peer);
}

static void connected(void)
{
    peer_connected(b.peer, b.now);
    b.connected = true;
}

static void disconnected(void)
{
    peer_disconnected(b.peer, b.now);
    b.connected = false;
}

static void end(void)
{
    if (b.connected)
        disconnected();
    peer_free(b.peer);
    CU_ASSERT_EQUAL(b.memory.used_bytes, 0);
    timers_close(&b.timers);
}

static void settle(void)
{
    timers_run(&b.timers, b.now.mono_us);
    while (peer_settle(b.peer, b.now))
        ;
}

static void call(struct told *t)
{
    *t = (struct told){
        .call = {
            .api_key = API_HEARTBEAT, .max_version = -1, .fixed_version = -1, .done = told_done}};
    wire_default(&wire_heartbeat_request, &t->request);
    t->call.request = &t->request;
    t->call.deadline_us = b.now.mono_us + 30 * S;
    peer_call(b.peer, &t->call, b.now);
}

/* ------------------------------------------------------------------ the other side */

struct asked {
    int16_t key, version;
    int32_t id;
};

/* Takes all that is sent, which is one request. */
static struct asked take_request(void)
{
    const struct bytes out = peer_peek(b.peer);
    CU_ASSERT_FATAL(out.n >= 12 && (int32_t)be32(out.p) == out.n - 4);
    const struct asked a = {(int16_t)be16(out.p + 4), (int16_t)be16(out.p + 6),
                            (int32_t)be32(out.p + 8)};
    peer_sent(b.peer, (size_t)out.n);
    return a;
}

static void receive(const void *p, size_t n, size_t step)
{
    for (size_t pos = 0; pos < n;) {
        uint8_t *to;
        size_t room;
        peer_recv_space(b.peer, &to, &room);
        size_t part = n - pos < step ? n - pos : step;
        part = part < room ? part : room;
        if (part == 0)
            return;
        memcpy(to, (const uint8_t *)p + pos, part);
        peer_recv(b.peer, part);
        pos += part;
    }
}

static void frame(struct buf *out, const struct wire_message *m, int16_t key, int16_t version,
                  int32_t id, const void *body)
{
    const struct response_header header = {.correlation_id = id};
    const size_t begins = out->n;
    CU_ASSERT_FATAL(buf_append(out, "\0\0\0\0", 4) == ERR_NONE);
    CU_ASSERT_FATAL(wire_encode(&msg_response_header, wire_response_header_version(key, version),
                                &header, out) == ERR_NONE);
    CU_ASSERT_FATAL(wire_encode(m, version, body, out) == ERR_NONE);
    put_be32(out->p + begins, (uint32_t)(out->n - begins - 4));
}

static void versions_frame(struct buf *out, int16_t version, int32_t id, int16_t error)
{
    struct api_versions_response_api_version v[] = {{.api_key = API_HEARTBEAT, .max_version = 3},
                                                    {.api_key = API_PRODUCE, .max_version = 9}};
    struct api_versions_response r;
    wire_default(&wire_api_versions_response, &r);
    r.error_code = error;
    r.api_keys.v = v;
    r.api_keys.n = 2;
    frame(out, &msg_api_versions_response, API_API_VERSIONS, version, id, &r);
}

static void heartbeat_frame(struct buf *out, int32_t id, int16_t error)
{
    struct heartbeat_response r;
    wire_default(&wire_heartbeat_response, &r);
    r.error_code = error;
    frame(out, &msg_heartbeat_response, API_HEARTBEAT, 3, id, &r);
}

static void answer_versions(void)
{
    struct buf f;
    buf_init(&f);
    const struct asked a = take_request();
    CU_ASSERT_EQUAL(a.key, API_API_VERSIONS);
    versions_frame(&f, a.version, a.id, 0);
    receive(f.p, f.n, SIZE_MAX);
    buf_close(&f);
    settle();
}

/* Connected, with a heartbeat that was sent. */
static struct asked sent_heartbeat(struct told *t)
{
    call(t);
    settle();
    if (peer_wants(b.peer) == PEER_WANTS_CONNECTION) {
        connected();
        settle();
        answer_versions();
    }
    return take_request();
}

/* ------------------------------------------------------------------ tests */

static void test_peer_wants_a_connection_when_called(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    settle();
    CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_NOTHING);
    call(&t);
    CU_ASSERT_EQUAL(b.ready_n, 0);
    settle();
    CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_CONNECTION);
    CU_ASSERT(b.ready_n == 1 && peer_connect_at_us(b.peer) <= b.now.mono_us);
    connected();
    settle();
    CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_SEND);
    answer_versions();
    const struct asked a = take_request();
    CU_ASSERT(a.key == API_HEARTBEAT && a.version == 3); /* ours is 4 */
    CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_NOTHING);
    CU_ASSERT(t.call.sent && t.done_n == 0);
    end();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_CANCELLED);
}

static void test_peer_answers_in_every_cut(void)
{
    struct told t[3];
    struct arena keep;
    arena_init(&keep, NULL);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    const struct asked first = sent_heartbeat(&t[0]);
    call(&t[1]);
    call(&t[2]);
    t[1].call.keep = &keep;
    settle();
    struct buf f;
    buf_init(&f);
    for (int i = 0; i < 3; i++)
        heartbeat_frame(&f, first.id + i, (int16_t)(20 + i));
    for (size_t step = 1; step <= f.n; step++) {
        receive(f.p, f.n, step);
        settle();
        for (int i = 0; i < 3; i++) {
            CU_ASSERT(t[i].done_n == 1 && t[i].err == ERR_NONE && t[i].error_code == 20 + i);
            call(&t[i]);
        }
        CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_SEND); /* one frame was not taken before */
        settle();
        f.n = 0;
        for (int i = 0; i < 3; i++)
            heartbeat_frame(&f, t[i].call.correlation_id, (int16_t)(20 + i));
    }
    buf_close(&f);
    end();
    arena_close(&keep);
}

/* What is kept outlives the buffers of the peer. */
static void test_peer_keeps_an_answer(void)
{
    struct told t;
    struct arena keep;
    arena_init(&keep, NULL);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    t = (struct told){.call = {.api_key = API_API_VERSIONS,
                               .max_version = 3,
                               .fixed_version = -1,
                               .keep = &keep,
                               .done = told_done,
                               .deadline_us = b.now.mono_us + S}};
    struct api_versions_request request;
    wire_default(&wire_api_versions_request, &request);
    t.call.request = &request;
    peer_call(b.peer, &t.call, b.now);
    settle();
    connected();
    settle();
    struct buf f;
    buf_init(&f);
    struct asked a = take_request();
    struct api_versions_response_api_version v[] = {
        {.api_key = API_API_VERSIONS, .max_version = 3}};
    struct api_versions_response_supported_feature_key feature = {.name = STR_LIT("a.feature")};
    struct api_versions_response r;
    wire_default(&wire_api_versions_response, &r);
    r.api_keys.v = v;
    r.api_keys.n = 1;
    r.supported_features.v = &feature;
    r.supported_features.n = 1;
    frame(&f, &msg_api_versions_response, API_API_VERSIONS, 3, a.id, &r);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    a = take_request();
    f.n = 0;
    frame(&f, &msg_api_versions_response, API_API_VERSIONS, 3, a.id, &r);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    buf_close(&f);
    end();
    CU_ASSERT_FATAL(t.done_n == 1 && t.response != NULL);
    const struct api_versions_response *kept = t.response;
    CU_ASSERT_EQUAL_FATAL(kept->supported_features.n, 1);
    const struct str name = kept->supported_features.v[0].name;
    CU_ASSERT_EQUAL_FATAL(name.n, 9);
    for (int i = 0; i < name.n; i++) /* memcmp may be inlined, unseen by AddressSanitizer */
        CU_ASSERT_EQUAL(name.p[i], "a.feature"[i]);
    arena_close(&keep);
}

static void test_peer_asks_an_old_broker_again(void)
{
    struct told t;
    struct buf f;
    buf_init(&f);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    call(&t);
    settle();
    connected();
    settle();
    struct asked a = take_request();
    CU_ASSERT_EQUAL(a.version, 3);
    versions_frame(&f, 0, a.id, K_UNSUPPORTED_VERSION);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    a = take_request();
    CU_ASSERT(a.key == API_API_VERSIONS && a.version == 0);
    f.n = 0;
    versions_frame(&f, 0, a.id, K_NONE);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    CU_ASSERT_EQUAL(take_request().key, API_HEARTBEAT);
    buf_close(&f);
    end();
}

static void test_peer_refuses_what_the_other_does_not_know(void)
{
    struct told known, unknown;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    (void)sent_heartbeat(&known);
    call(&unknown);
    unknown.call.api_key = API_METADATA;
    settle();
    CU_ASSERT(unknown.done_n == 1 && unknown.err == ERR_UNSUPPORTED && !unknown.call.sent);
    CU_ASSERT_EQUAL(known.done_n, 0);
    end();
}

/* Such a call does not wait for versions, a call behind it does, one behind that for both. */
static void test_peer_sends_a_fixed_version_unasked(void)
{
    struct told fixed, asks, late;
    struct buf f;
    buf_init(&f);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    call(&fixed);
    fixed.call.fixed_version = 2;
    settle();
    connected();
    settle();
    const struct asked a = take_request();
    CU_ASSERT(a.key == API_HEARTBEAT && a.version == 2);
    call(&asks);
    call(&late);
    late.call.fixed_version = 0;
    settle();
    const struct asked versions = take_request();
    CU_ASSERT_EQUAL(versions.key, API_API_VERSIONS);
    heartbeat_frame(&f, a.id, 20);
    versions_frame(&f, versions.version, versions.id, 0);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    CU_ASSERT(fixed.done_n == 1 && fixed.err == ERR_NONE && fixed.error_code == 20);
    CU_ASSERT(asks.call.version == 3 && late.call.version == 0);
    CU_ASSERT(asks.call.sent && late.call.sent);
    buf_close(&f);
    end();
}

static void test_peer_knows_no_such_fixed_version(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    call(&t);
    t.call.fixed_version = 99;
    settle();
    connected();
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_UNSUPPORTED && !t.call.sent);
    end();
}

/* Where no versions are asked for, an answer shows that a connection was of use. */
static void test_peer_forgives_after_a_fixed_version(void)
{
    struct told t;
    struct buf f;
    buf_init(&f);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    for (int i = 0; i < 10; i++) {
        call(&t);
        t.call.fixed_version = 3;
        settle();
        connected();
        settle();
        heartbeat_frame(&f, take_request().id, 0);
        receive(f.p, f.n, SIZE_MAX);
        settle();
        CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE);
        disconnected();
        settle();
        CU_ASSERT(peer_connect_at_us(b.peer) - b.now.mono_us < S / 10);
        f.n = 0;
    }
    buf_close(&f);
    end();
}

/* That nobody listens there is known until the next attempt ends. */
static void test_peer_refused(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    CU_ASSERT_FALSE(peer_was_refused(b.peer));
    for (int i = 0; i < 2; i++) {
        call(&t);
        settle();
        peer_refused(b.peer, b.now);
        settle();
        CU_ASSERT(t.done_n == 1 && t.err == ERR_CLOSED && peer_was_refused(b.peer));
    }
    call(&t);
    settle();
    disconnected();
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_CLOSED && !peer_was_refused(b.peer));
    call(&t);
    settle();
    peer_refused(b.peer, b.now);
    settle();
    (void)sent_heartbeat(&t);
    CU_ASSERT_FALSE(peer_was_refused(b.peer));
    end();
}

static void test_peer_waits_after_a_failed_connection(void)
{
    struct told t;
    int64_t wait_us = 0;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    for (int i = 0; i < 10; i++) {
        call(&t);
        settle();
        CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_CONNECTION);
        disconnected();
        settle();
        CU_ASSERT(t.done_n == 1 && t.err == ERR_CLOSED && !t.call.sent);
        const int64_t next_us = peer_connect_at_us(b.peer) - b.now.mono_us;
        CU_ASSERT(next_us >= wait_us && next_us <= 2 * S && next_us > 0);
        wait_us = next_us;
    }
    CU_ASSERT(wait_us >= S);
    (void)sent_heartbeat(&t); /* once versions were told all is forgiven */
    disconnected();
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_CLOSED && t.call.sent);
    CU_ASSERT(peer_connect_at_us(b.peer) - b.now.mono_us < S / 10);
    end();
}

static void test_peer_call_is_late(void)
{
    struct told t, next;
    struct buf f;
    buf_init(&f);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    const struct asked a = sent_heartbeat(&t);
    b.now.mono_us += 31 * S;
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_TIMEOUT && t.call.sent);
    const struct asked second = sent_heartbeat(&next);
    heartbeat_frame(&f, a.id, 1); /* nobody waits for it any more */
    heartbeat_frame(&f, second.id, 2);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    CU_ASSERT(next.done_n == 1 && next.error_code == 2);
    buf_close(&f);
    end();
}

static void test_peer_call_is_cancelled(void)
{
    struct told queued, sent, next;
    struct buf f;
    buf_init(&f);
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    const struct asked a = sent_heartbeat(&sent);
    call(&queued);
    peer_cancel(&queued.call);
    peer_cancel(&sent.call);
    CU_ASSERT(queued.done_n == 0 && sent.done_n == 0);
    settle();
    CU_ASSERT(queued.done_n == 1 && queued.err == ERR_CANCELLED && !queued.call.sent);
    CU_ASSERT(sent.done_n == 1 && sent.err == ERR_CANCELLED);
    const struct asked second = sent_heartbeat(&next);
    heartbeat_frame(&f, a.id, 1);
    heartbeat_frame(&f, second.id, 2);
    receive(f.p, f.n, SIZE_MAX);
    settle();
    CU_ASSERT(next.done_n == 1 && next.error_code == 2);
    buf_close(&f);
    end();
}

static void test_peer_call_without_answer(void)
{
    struct told t;
    struct produce_request request;
    struct told other;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    (void)sent_heartbeat(&other);
    call(&t);
    wire_default(&wire_produce_request, &request);
    t.call.api_key = API_PRODUCE;
    t.call.request = &request;
    t.call.no_answer = true;
    settle();
    const struct bytes out = peer_peek(b.peer);
    peer_sent(b.peer, (size_t)out.n - 1);
    settle();
    CU_ASSERT_EQUAL(t.done_n, 0);
    peer_sent(b.peer, 1);
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NONE && t.response == NULL);
    CU_ASSERT_EQUAL(other.done_n, 0);
    end();
}

/* Each lie ends the connection and fails the call. */
static void lied(const void *p, size_t n, enum err want)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    (void)sent_heartbeat(&t);
    uint8_t *to;
    size_t room;
    receive(p, n, SIZE_MAX);
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == want);
    CU_ASSERT_EQUAL(peer_wants(b.peer), PEER_WANTS_END);
    peer_recv_space(b.peer, &to, &room);
    CU_ASSERT_EQUAL(room, 0);
    CU_ASSERT(b.memory.peak_bytes < MEMORY);
    end();
}

static void test_peer_does_not_believe_all(void)
{
    const uint8_t large[] = {0, 1, 0, 1}, negative[] = {0xff, 0xff, 0xff, 0xff, 1},
                  stranger[] = {0, 0, 0, 10, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0},
                  older[] = {0, 0, 0, 10, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0},
                  truncated[] = {0, 0, 0, 6, 0, 0, 0, 1, 0, 0}, empty[] = {0, 0, 0, 0};
    lied(large, sizeof large, ERR_TOO_LARGE);
    lied(negative, sizeof negative, ERR_TOO_LARGE);
    lied(stranger, sizeof stranger, ERR_CORRUPT);
    lied(truncated, sizeof truncated, ERR_CORRUPT);
    lied(empty, sizeof empty, ERR_CORRUPT);
    struct told t; /* of a call long gone: not taken as an answer */
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    (void)sent_heartbeat(&t);
    receive(older, sizeof older, SIZE_MAX);
    settle();
    CU_ASSERT_EQUAL(t.done_n, 0);
    end();
}

static void test_peer_budget(void)
{
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    (void)sent_heartbeat(&t);
    b.memory.limit_bytes = b.memory.used_bytes + 1000;
    const uint8_t length[] = {0, 0, 0xff, 0};
    receive(length, sizeof length, SIZE_MAX);
    uint8_t *to;
    size_t room;
    peer_recv_space(b.peer, &to, &room);
    CU_ASSERT_EQUAL(room, 0);
    settle();
    CU_ASSERT(t.done_n == 1 && t.err == ERR_NOMEM);
    end();
}

/* An answer to a call that is not waited for any more, of n bytes. */
static void receive_late(int32_t id, size_t n)
{
    struct buf f;
    buf_init(&f);
    CU_ASSERT_FATAL(buf_reserve(&f, n) == ERR_NONE);
    memset(f.p, 0, n);
    put_be32(f.p, (uint32_t)(n - 4));
    put_be32(f.p + 4, (uint32_t)id);
    receive(f.p, n, SIZE_MAX);
    buf_close(&f);
}

static void answer_heartbeat(struct told *t, int32_t id)
{
    struct buf f;
    buf_init(&f);
    heartbeat_frame(&f, id, 0);
    receive(f.p, f.n, SIZE_MAX);
    buf_close(&f);
    settle();
    CU_ASSERT(t->done_n == 1 && t->err == ERR_NONE);
}

/* A large answer's buffer stays for the next one, not for the life of the connection. */
static void test_peer_gives_a_large_buffer_back(void)
{
    enum { LARGE = 60 << 10 };
    struct told t;
    CU_ASSERT_FATAL(begin() == ERR_NONE);
    struct asked a = sent_heartbeat(&t);
    receive_late(a.id - 1, LARGE);
    CU_ASSERT(b.memory.used_bytes >= LARGE);
    settle();
    answer_heartbeat(&t, a.id);
    CU_ASSERT(b.memory.used_bytes >= LARGE);
    b.now.mono_us += 900 * 1000;
    a = sent_heartbeat(&t);
    receive_late(a.id - 1, LARGE);
    settle();
    answer_heartbeat(&t, a.id);
    b.now.mono_us += 900 * 1000;
    a = sent_heartbeat(&t);
    answer_heartbeat(&t, a.id);
    CU_ASSERT(b.memory.used_bytes >= LARGE); /* 0.9 s after the last */
    b.now.mono_us += 100 * 1000;
    a = sent_heartbeat(&t);
    answer_heartbeat(&t, a.id);
    CU_ASSERT(b.memory.used_bytes < LARGE / 2);
    end();
}

/* Random bytes behind a true beginning: no crash, and every call ends at its deadline at the
 * latest. */
static void test_peer_random_answers(void)
{
    struct rng rng = {7};
    for (int i = 0; i < 2000; i++) {
        struct told t;
        struct buf f;
        buf_init(&f);
        CU_ASSERT_FATAL(begin() == ERR_NONE);
        const struct asked a = sent_heartbeat(&t);
        heartbeat_frame(&f, a.id, 0);
        for (int k = 0; k < 3; k++)
            f.p[rng_below(&rng, f.n)] = (uint8_t)rng_u64(&rng);
        receive(f.p, f.n, 1 + rng_below(&rng, 10));
        settle();
        b.now.mono_us += 31 * S;
        settle();
        CU_ASSERT_EQUAL(t.done_n, 1);
        buf_close(&f);
        end();
    }
}

/* The nth allocation fails: the call ends with an error or not at all, nothing leaks. */
static void test_peer_out_of_memory(void)
{
    for (long n = 1;; n++) {
        struct told t = {0};
        uint8_t *to;
        size_t room;
        fault_alloc_arm(n, false);
        bool ok = begin() == ERR_NONE;
        if (ok) {
            call(&t);
            settle();
            if (peer_wants(b.peer) == PEER_WANTS_CONNECTION) {
                connected();
                settle();
                peer_recv_space(b.peer, &to, &room);
                settle();
                if (peer_wants(b.peer) == PEER_WANTS_NOTHING && t.done_n == 0)
                    CU_FAIL("nothing was sent and nobody was told");
            }
        }
        const bool hit = fault_alloc_hit();
        if (!ok) {
            timers_close(&b.timers);
            continue;
        }
        if (!hit)
            CU_ASSERT(t.done_n == 0);
        end();
        if (!hit)
            break;
    }
}

TEST_MAIN(TEST(test_peer_wants_a_connection_when_called), TEST(test_peer_answers_in_every_cut),
          TEST(test_peer_keeps_an_answer), TEST(test_peer_asks_an_old_broker_again),
          TEST(test_peer_refuses_what_the_other_does_not_know),
          TEST(test_peer_sends_a_fixed_version_unasked),
          TEST(test_peer_knows_no_such_fixed_version),
          TEST(test_peer_forgives_after_a_fixed_version), TEST(test_peer_refused),
          TEST(test_peer_waits_after_a_failed_connection), TEST(test_peer_call_is_late),
          TEST(test_peer_call_is_cancelled), TEST(test_peer_call_without_answer),
          TEST(test_peer_does_not_believe_all), TEST(test_peer_budget),
          TEST(test_peer_gives_a_large_buffer_back), TEST(test_peer_random_answers),
          TEST(test_peer_out_of_memory))
