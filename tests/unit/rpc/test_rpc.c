/* Connections without sockets: frames in every cut, the start rule, answers in order, memory. The
 * handler here keeps each request until the test answers it. */
#include "base/endian.h"
#include "base/limits.h"
#include "rpc/peer.h"
#include "rpc/rpc.h"
#include "support/fault.h"
#include "support/memenv.h"
#include "support/memfs.h"
#include "support/test.h"
#include "wire/messages.h"

#include <stdlib.h>

enum { KEPT_MAX = 512, MEMORY = 64 << 20 };

static struct bench {
    struct memfs fs;
    struct memenv env;
    struct timers timers;
    struct budget frames, small, answers;
    struct rpc *rpc;
    struct request *kept[KEPT_MAX];
    int kept_n, cancelled_n, started_n, lost_n;
    int64_t lost;
    struct now now;
} b;

static bool accept_request(void *ctx, struct request *r)
{
    (void)ctx;
    r->api_key = (int16_t)be16(r->frame.p);
    r->api_version = (int16_t)be16(r->frame.p + 2);
    r->correlation_id = (int32_t)be32(r->frame.p + 4);
    return r->api_key != 999;
}

static void start_request(void *ctx, struct request *r, struct now now)
{
    (void)ctx;
    (void)now;
    CU_ASSERT_FATAL(b.kept_n < KEPT_MAX);
    b.kept[b.kept_n++] = r;
    b.started_n++;
}

static void cancel_request(void *ctx, struct request *r)
{
    (void)ctx;
    (void)r;
    b.cancelled_n++;
}

static void connection_lost(void *ctx, int64_t mark, struct now now)
{
    (void)ctx;
    (void)now;
    b.lost_n++;
    b.lost = mark;
}

static void begin(uint64_t frames_limit)
{
    memset(&b, 0, sizeof b);
    b.now = (struct now){1000000, 1700000000000};
    memfs_init(&b.fs, 1);
    memenv_init(&b.env, &b.fs, 1);
    timers_init(&b.timers);
    budget_init(&b.frames, NULL, frames_limit);
    budget_init(&b.small, NULL, 1 << 20);
    budget_init(&b.answers, NULL, MEMORY);
    const struct rpc_args args = {
        .env = &b.env.env,
        .timers = &b.timers,
        .frames = &b.frames,
        .small = &b.small,
        .answers = &b.answers,
        .request_max_bytes = 4 << 20,
        .idle_max_ms = 600000,
        .handler = {.accept = accept_request,
                    .start = start_request,
                    .cancel = cancel_request,
                    .lost = connection_lost},
    };
    CU_ASSERT_FATAL(rpc_new(&args, &b.rpc) == ERR_NONE);
}

static void end(void)
{
    rpc_free(b.rpc);
    CU_ASSERT_EQUAL(b.frames.used_bytes, 0);
    CU_ASSERT_EQUAL(b.small.used_bytes, 0);
    CU_ASSERT_EQUAL(b.answers.used_bytes, 0);
    CU_ASSERT_EQUAL(timers_next_us(&b.timers), INT64_MAX);
    timers_close(&b.timers);
    memenv_close(&b.env);
    memfs_close(&b.fs);
}

/* A frame of n bytes behind its length: key, version, correlation id, filler. */
static size_t put_frame(uint8_t *p, int16_t key, int32_t id, size_t n)
{
    put_be32(p, (uint32_t)n);
    put_be16(p + 4, (uint16_t)key);
    put_be16(p + 6, 9);
    put_be32(p + 8, (uint32_t)id);
    memset(p + 12, id & 0x7f, n - 8);
    return n + 4;
}

/* Feeds bytes in pieces of at most `piece`; how many went in. */
static size_t feed(struct conn *c, const uint8_t *p, size_t n, size_t piece)
{
    size_t done = 0;
    while (done < n) {
        uint8_t *to;
        size_t room;
        conn_recv_space(c, &to, &room);
        size_t k = n - done < piece ? n - done : piece;
        if (k > room)
            k = room;
        if (k == 0)
            break;
        memcpy(to, p + done, k);
        conn_recv(c, k, b.now);
        done += k;
    }
    return done;
}

static void answer(int i)
{
    struct heartbeat_response resp;
    wire_default(&wire_heartbeat_response, &resp);
    b.kept[i]->api_key = API_HEARTBEAT;
    b.kept[i]->api_version = 0;
    CU_ASSERT(request_answer(b.kept[i], &msg_heartbeat_response, &resp));
}

/* The correlation id of the next answer to go out, taking it; -1: none. */
static int32_t take_answer(struct conn *c)
{
    struct wire_part part[1];
    if (conn_peek(c, part, 1) == 0)
        return -1;
    const int32_t id = (int32_t)be32(part[0].p + 4);
    conn_sent(c, part[0].n, b.now);
    return id;
}

static void test_rpc_frames_in_every_cut(void)
{
    static uint8_t bytes[4096];
    size_t n = 0;
    for (int i = 0; i < 7; i++)
        n += put_frame(bytes + n, API_HEARTBEAT, i, 8 + (size_t)i * 31);
    for (size_t piece = 1; piece <= n; piece++) {
        begin(MEMORY);
        struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
        CU_ASSERT_EQUAL(feed(c, bytes, n, piece), n);
        for (int i = 0; i < 7; i++) {
            CU_ASSERT_EQUAL_FATAL(b.kept_n, i + 1); /* one at a time, in order */
            CU_ASSERT_EQUAL(b.kept[i]->correlation_id, i);
            CU_ASSERT_EQUAL(b.kept[i]->frame.n, 8 + i * 31);
            answer(i);
            CU_ASSERT_EQUAL(take_answer(c), i);
        }
        conn_closed(c, b.now);
        end();
    }
}

static void test_rpc_large_frame_is_not_moved(void)
{
    const size_t size = 1 << 20;
    uint8_t *bytes = malloc(size + 64);
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    const size_t n = put_frame(bytes, API_PRODUCE, 1, size);
    uint8_t *first, *to;
    size_t room, done = 0;
    conn_recv_space(c, &first, &room);
    while (done < n) { /* every piece lands behind the one before: no byte is copied again */
        conn_recv_space(c, &to, &room);
        CU_ASSERT_PTR_EQUAL(to, first + done);
        const size_t k = room < 70000 ? room : 70000;
        const size_t take = n - done < k ? n - done : k;
        memcpy(to, bytes + done, take);
        conn_recv(c, take, b.now);
        done += take;
    }
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 1);
    CU_ASSERT_PTR_EQUAL(b.kept[0]->frame.p, first + 4);
    answer(0);
    CU_ASSERT_EQUAL(take_answer(c), 1);
    conn_closed(c, b.now);
    end();
    free(bytes);
}

static void test_rpc_bad_lengths_close(void)
{
    static const uint32_t lengths[] = {0, 7, 0xffffffff, 0x80000000, (4 << 20) + 1};
    for (size_t i = 0; i < ARRAY_N(lengths); i++) {
        begin(MEMORY);
        struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
        uint8_t p[16] = {0};
        put_be32(p, lengths[i]);
        feed(c, p, sizeof p, sizeof p);
        CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
        CU_ASSERT_FALSE(conn_wants_recv(c));
        CU_ASSERT_EQUAL(b.kept_n, 0);
        conn_closed(c, b.now);
        end();
    }
}

static void test_rpc_start_rule(void)
{
    static uint8_t bytes[1024];
    static const int16_t keys[] = {API_PRODUCE, API_PRODUCE, API_FETCH, API_PRODUCE};
    size_t n = 0;
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    for (int i = 0; i < 4; i++)
        n += put_frame(bytes + n, keys[i], i, 20);
    feed(c, bytes, n, n);
    CU_ASSERT_EQUAL(b.kept_n, 1); /* the second Produce waits for the first to be staged */
    request_staged(b.kept[0]);
    CU_ASSERT_EQUAL(b.kept_n, 2);
    request_staged(b.kept[1]);
    answer(0);
    CU_ASSERT_EQUAL(b.kept_n, 2); /* a Fetch waits for all before it */
    answer(1);
    CU_ASSERT_EQUAL(b.kept_n, 3);
    answer(2);
    CU_ASSERT_EQUAL(b.kept_n, 4);
    answer(3);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(take_answer(c), i);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_staged_produce_lets_the_next_start(void)
{
    static uint8_t bytes[256];
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    feed(c, bytes, put_frame(bytes, API_PRODUCE, 0, 20), 256);
    request_staged(b.kept[0]);
    feed(c, bytes, put_frame(bytes, API_PRODUCE, 1, 20), 256);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 2);
    request_staged(b.kept[1]);
    answer(1); /* out of order: held until the first is answered */
    CU_ASSERT_EQUAL(take_answer(c), -1);
    CU_ASSERT_PTR_NULL(rpc_next_output(b.rpc));
    answer(0);
    CU_ASSERT_PTR_EQUAL(rpc_next_output(b.rpc), c);
    CU_ASSERT_EQUAL(take_answer(c), 0);
    CU_ASSERT_EQUAL(take_answer(c), 1);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_pipeline_pauses_and_resumes(void)
{
    static uint8_t bytes[LIMIT_PIPELINE * 12];
    size_t n = 0;
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    for (int i = 0; i < LIMIT_PIPELINE; i++)
        n += put_frame(bytes + n, API_HEARTBEAT, i, 8);
    feed(c, bytes, n, n);
    CU_ASSERT_FALSE(conn_wants_recv(c));
    for (int i = 0; i < LIMIT_PIPELINE; i++) {
        answer(i);
        CU_ASSERT_EQUAL(take_answer(c), i);
    }
    CU_ASSERT(conn_wants_recv(c));
    CU_ASSERT_PTR_EQUAL(rpc_next_resume(b.rpc), c);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_closed_connection_orphans_requests(void)
{
    static uint8_t bytes[64];
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    feed(c, bytes, put_frame(bytes, API_FETCH, 3, 20), 64);
    feed(c, bytes, put_frame(bytes, API_FETCH, 4, 20), 64);
    CU_ASSERT_EQUAL(b.kept_n, 1);
    conn_closed(c, b.now);
    CU_ASSERT_EQUAL(b.cancelled_n, 1);
    CU_ASSERT_PTR_NULL(b.kept[0]->conn);
    CU_ASSERT_EQUAL(rpc_running_n(b.rpc), 1);
    answer(0);
    CU_ASSERT_EQUAL(rpc_running_n(b.rpc), 0);
    end();
}

/* CN-04: what was asked is answered, in order and in no more time than it needs; then the end. */
static void test_rpc_end_of_input_answers_first(void)
{
    static uint8_t bytes[256];
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    size_t n = put_frame(bytes, API_PRODUCE, 0, 20);
    n += put_frame(bytes + n, API_FETCH, 1, 20);
    n += put_frame(bytes + n, API_FETCH, 2, 20);
    put_be32(bytes + n, 100);
    feed(c, bytes, n + 10, sizeof bytes); /* and a part of a frame */
    CU_ASSERT_EQUAL(b.kept_n, 1);
    conn_eof(c, b.now);
    conn_eof(c, b.now);
    CU_ASSERT_FALSE(conn_wants_recv(c));
    b.now.mono_us += (int64_t)LIMIT_FRAME_DEADLINE_MS * 1000; /* nobody waits for the rest */
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_EQUAL(b.cancelled_n, 0); /* a Produce is not hastened */
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_PTR_NULL(rpc_next_close(b.rpc));
        CU_ASSERT_EQUAL_FATAL(b.kept_n, i + 1);
        CU_ASSERT_EQUAL(b.cancelled_n, i);
        answer(i);
        CU_ASSERT_EQUAL(take_answer(c), i);
    }
    CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
    conn_closed(c, b.now);

    c = conn_new(b.rpc, 0, "client", NULL, b.now); /* one that waits is hastened */
    feed(c, bytes, put_frame(bytes, API_FETCH, 3, 20), sizeof bytes);
    conn_eof(c, b.now);
    CU_ASSERT_EQUAL(b.cancelled_n, 3);
    request_drop(b.kept[3]); /* without an answer it ends too */
    CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
    conn_closed(c, b.now);

    c = conn_new(b.rpc, 0, "client", NULL, b.now); /* one that owes nothing ends at once */
    conn_eof(c, b.now);
    CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_unfinished_frame_has_a_deadline(void)
{
    uint8_t p[4];
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    put_be32(p, 100);
    feed(c, p, 4, 4);
    CU_ASSERT(b.small.used_bytes > 0 && b.small.used_bytes < 32 << 10); /* not a whole buffer */
    b.now.mono_us += (int64_t)LIMIT_FRAME_DEADLINE_MS * 1000 - 1;
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_PTR_NULL(rpc_next_close(b.rpc));
    timers_run(&b.timers, b.now.mono_us + 1);
    CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_claimed_size_waits_for_memory(void)
{
    uint8_t *bytes = malloc(3 << 20);
    begin(5 << 20);
    struct conn *c1 = conn_new(b.rpc, 0, "one", NULL, b.now);
    struct conn *c2 = conn_new(b.rpc, 0, "two", NULL, b.now);
    const size_t n = put_frame(bytes, API_PRODUCE, 1, (3 << 20) - 4);
    CU_ASSERT_EQUAL(feed(c1, bytes, 100000, 100000), 100000);
    const uint64_t used = b.frames.used_bytes;
    CU_ASSERT(feed(c2, bytes, 12, 12) == 12);
    CU_ASSERT_EQUAL(b.frames.used_bytes, used); /* the claim of the second was not granted */
    CU_ASSERT_FALSE(conn_wants_recv(c2));
    CU_ASSERT_PTR_NULL(rpc_next_resume(b.rpc));
    CU_ASSERT_EQUAL(feed(c1, bytes + 100000, n - 100000, 1 << 20), n - 100000);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 1);
    answer(0);
    CU_ASSERT_EQUAL(take_answer(c1), 1);
    CU_ASSERT_PTR_EQUAL(rpc_next_resume(b.rpc), c2);
    CU_ASSERT_EQUAL(feed(c2, bytes + 12, n - 12, 1 << 20), n - 12);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 2);
    answer(1);
    conn_closed(c1, b.now);
    conn_closed(c2, b.now);
    end();
    free(bytes);
}

static void test_rpc_small_frames_pass_without_memory_for_large(void)
{
    static uint8_t bytes[64];
    begin(0);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    const size_t n = put_frame(bytes, API_HEARTBEAT, 5, 40);
    CU_ASSERT_EQUAL(feed(c, bytes, n, 7), n);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 1);
    answer(0);
    CU_ASSERT_EQUAL(take_answer(c), 5);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_refused_request_closes(void)
{
    static uint8_t bytes[64];
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    feed(c, bytes, put_frame(bytes, 999, 1, 20), 64);
    CU_ASSERT_EQUAL(b.kept_n, 0);
    CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
    conn_closed(c, b.now);
    end();
}

/* The end of a connection is told to who marked it. */
static void test_rpc_marked_connection(void)
{
    uint8_t bytes[64];
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    struct conn *other = conn_new(b.rpc, 0, "other", NULL, b.now);
    feed(c, bytes, put_frame(bytes, API_HEARTBEAT, 1, 20), 64);
    request_mark(b.kept[0], 7);
    request_mark(b.kept[0], 8);
    answer(0);
    take_answer(c);
    conn_closed(other, b.now);
    CU_ASSERT_EQUAL(b.lost_n, 0);
    conn_closed(c, b.now);
    CU_ASSERT_EQUAL(b.lost_n, 1);
    CU_ASSERT_EQUAL(b.lost, 8);
    end();
}

static void test_rpc_idle_connection_closes(void)
{
    begin(MEMORY);
    struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
    const uint64_t used = b.frames.used_bytes;
    CU_ASSERT_EQUAL(used, 0);
    uint8_t bytes[64];
    b.now.mono_us += 300 * 1000000LL;
    feed(c, bytes, put_frame(bytes, API_HEARTBEAT, 1, 20), 64);
    answer(0);
    take_answer(c);
    b.now.mono_us += 301 * 1000000LL;
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_PTR_NULL(rpc_next_close(b.rpc)); /* it spoke in between */
    b.now.mono_us += 300 * 1000000LL;
    conn_recv(c, 0, b.now);
    timers_run(&b.timers, b.now.mono_us);
    CU_ASSERT_PTR_EQUAL(rpc_next_close(b.rpc), c);
    conn_closed(c, b.now);
    end();
}

static void test_rpc_survives_failing_allocations(void)
{
    static uint8_t bytes[200000];
    size_t n = put_frame(bytes, API_PRODUCE, 0, 100000);
    n += put_frame(bytes + n, API_HEARTBEAT, 1, 50);
    long points = 0;
    for (long nth = 1;; nth++) {
        begin(MEMORY);
        fault_alloc_arm(nth, false);
        struct conn *c = conn_new(b.rpc, 0, "client", NULL, b.now);
        if (c != NULL) {
            feed(c, bytes, n, 30000);
            for (int i = 0; i < b.kept_n; i++) {
                struct heartbeat_response resp;
                wire_default(&wire_heartbeat_response, &resp);
                b.kept[i]->api_key = API_HEARTBEAT;
                b.kept[i]->api_version = 0;
                request_answer(b.kept[i], &msg_heartbeat_response, &resp);
            }
        }
        const bool hit = fault_alloc_hit();
        if (c != NULL)
            conn_closed(c, b.now);
        end();
        if (!hit)
            break;
        points++;
    }
    CU_ASSERT(points >= 5);
}

TEST_MAIN(TEST(test_rpc_marked_connection), TEST(test_rpc_frames_in_every_cut),
          TEST(test_rpc_large_frame_is_not_moved), TEST(test_rpc_bad_lengths_close),
          TEST(test_rpc_start_rule), TEST(test_rpc_staged_produce_lets_the_next_start),
          TEST(test_rpc_pipeline_pauses_and_resumes),
          TEST(test_rpc_closed_connection_orphans_requests),
          TEST(test_rpc_end_of_input_answers_first), TEST(test_rpc_unfinished_frame_has_a_deadline),
          TEST(test_rpc_claimed_size_waits_for_memory),
          TEST(test_rpc_small_frames_pass_without_memory_for_large),
          TEST(test_rpc_refused_request_closes), TEST(test_rpc_idle_connection_closes),
          TEST(test_rpc_survives_failing_allocations))
