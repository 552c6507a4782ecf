/* Bytes and files through real sockets: few calls, partial sends, slow and vanishing clients. */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/vfs.h"
#include "test_net.h"

enum { HEARTBEAT_ANSWER = 10 }; /* length, correlation id, error code */

static struct bench b;

/* 64 requests in one segment: all answers are there after one turn, for one read. */
static void test_pipeline_costs_one_turn(void)
{
    bench_begin(&b);
    b.echo = true;
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 64);
    bench_turn(&b);
    uint8_t answers[64 * HEARTBEAT_ANSWER + 1];
    CU_ASSERT_EQUAL(client_read(fd, answers, sizeof answers), 64 * HEARTBEAT_ANSWER);
    for (uint32_t i = 0; i < 64; i++)
        CU_ASSERT_EQUAL(be32(answers + i * HEARTBEAT_ANSWER + 4), i);
    close(fd);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    bench_end(&b);
}

static void test_answers_keep_their_order(void)
{
    bench_begin(&b);
    int fd = bench_connect(&b);
    send_requests(fd, API_PRODUCE, 0, 3);
    bench_turn(&b);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 3);
    for (int i = 0; i < 3; i++) {
        b.kept[i]->api_key = API_HEARTBEAT;
        b.kept[i]->api_version = 0;
    }
    answer_heartbeat(b.kept[2]);
    bench_turn(&b);
    uint8_t answers[64];
    CU_ASSERT_EQUAL(client_read(fd, answers, sizeof answers), -1);
    answer_heartbeat(b.kept[0]);
    bench_turn(&b);
    CU_ASSERT_EQUAL(client_read(fd, answers, sizeof answers), HEARTBEAT_ANSWER);
    answer_heartbeat(b.kept[1]);
    bench_turn(&b);
    CU_ASSERT_EQUAL(client_read(fd, answers, sizeof answers), 2 * HEARTBEAT_ANSWER);
    CU_ASSERT_EQUAL(be32(answers + 4), 1);
    close(fd);
    bench_end(&b);
}

/* More requests than may be unanswered: the connection is not read meanwhile, then it is again. */
static void test_full_pipeline_is_read_again(void)
{
    enum { N = LIMIT_PIPELINE + 200 };
    bench_begin(&b);
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, LIMIT_PIPELINE);
    bench_turn(&b);
    send_requests(fd, API_HEARTBEAT, LIMIT_PIPELINE, N - LIMIT_PIPELINE);
    bench_turn(&b);
    CU_ASSERT(b.sockets.received_bytes < N * 32);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3 && b.kept_n <= i; k++)
            bench_turn(&b);
        CU_ASSERT_EQUAL_FATAL(b.kept_n, i + 1);
        answer_heartbeat(b.kept[i]);
    }
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.received_bytes, N * 32);
    CU_ASSERT_EQUAL(b.sockets.sent_bytes, N * HEARTBEAT_ANSWER);
    close(fd);
    bench_end(&b);
}

static void test_client_that_leaves_cancels(void)
{
    bench_begin(&b);
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 2);
    bench_turn(&b);
    close(fd);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.cancelled_n, 1);
    answer_heartbeat(b.kept[0]);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 2); /* the second; its answer meets a closed socket */
    bench_turn(&b);
    answer_heartbeat(b.kept[1]);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 0);
    bench_end(&b);
}

static void test_client_that_resets_is_gone(void)
{
    const struct linger reset = {1, 0};
    bench_begin(&b);
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 2);
    bench_turn(&b);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.cancelled_n, 1);
    request_drop(b.kept[0]);
    bench_end(&b);
}

/* CN-04: a client that has said all it had to say gets its answers, and then the end. */
static void test_half_closed_client_is_answered(void)
{
    bench_begin(&b);
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 2);
    CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
    bench_turn(&b);
    bench_turn(&b);
    uint8_t answers[64];
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(b.kept_n, i + 1);
        answer_heartbeat(b.kept[i]);
        bench_turn(&b);
        CU_ASSERT_EQUAL(client_read(fd, answers, sizeof answers), HEARTBEAT_ANSWER);
    }
    CU_ASSERT(client_sees_end(fd));
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 0);
    close(fd);
    bench_end(&b);
}

static void test_garbage_is_closed_with_one_line(void)
{
    bench_begin(&b);
    int fd = bench_connect(&b), other = bench_connect(&b);
    CU_ASSERT(write(fd, "GET / HTTP/1.1\r\n\r\n", 18) == 18);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    CU_ASSERT(client_sees_end(fd));
    b.echo = true;
    send_requests(other, API_HEARTBEAT, 7, 1);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.sent_bytes, HEARTBEAT_ANSWER);
    close(fd);
    close(other);
    bench_end(&b);
}

static void test_idle_connection_holds_no_buffer(void)
{
    bench_begin(&b);
    b.echo = true;
    int fds[50];
    for (int i = 0; i < 50; i++)
        fds[i] = bench_connect(&b);
    const uint64_t idle = b.memory.used_bytes;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 50; i++)
            send_requests(fds[i], API_HEARTBEAT, i, 1);
        bench_turn(&b);
    }
    CU_ASSERT_EQUAL(b.sockets.sent_bytes, 2 * 50 * HEARTBEAT_ANSWER);
    CU_ASSERT(b.memory.used_bytes < idle + (2 << 20)); /* one warm buffer and request for all */
    for (int i = 0; i < 50; i++)
        close(fds[i]);
    bench_end(&b);
}

/* ------------------------------------------------------------------ files */

enum { FILE_BYTES = 3 << 20 };

static struct file_bench {
    struct os_vfs fs;
    struct file *file;
    uint8_t *bytes;
    char path[300];
} f;

static void file_begin(void)
{
    bench_begin(&b);
    os_vfs_init(&f.fs, 2);
    snprintf(f.path, sizeof f.path, "%s/segment", test_dir());
    f.bytes = malloc(FILE_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++)
        f.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    test_write_file(f.path, f.bytes, FILE_BYTES);
    CU_ASSERT_EQUAL_FATAL(f.fs.vfs.ops->open(&f.fs.vfs, f.path, FILE_READ, &f.file), ERR_NONE);
}

static void file_end(void)
{
    bench_end(&b);
    CU_ASSERT_EQUAL(f.file->refs, 1); /* every slice was released */
    file_unref(f.file);
    os_vfs_close(&f.fs);
    free(f.bytes);
}

/* A Fetch answer of n partitions, each with `each` bytes of the file from off on: as slices, or in
 * memory to compare with. */
static void fill_fetch(struct fetch_response *resp, struct arena *a, bool slices, int n,
                       uint64_t off, uint32_t each)
{
    wire_default(&wire_fetch_response, resp);
    resp->responses.v = wire_array(&wire_fetch_response_fetchable_topic_response, a, 1);
    resp->responses.n = 1;
    resp->responses.v[0].topic = str_of("t");
    resp->responses.v[0].partitions.v =
        wire_array(&wire_fetch_response_partition_data, a, (size_t)n);
    resp->responses.v[0].partitions.n = n;
    for (int i = 0; i < n; i++) {
        struct wire_records *r = &resp->responses.v[0].partitions.v[i].records;
        struct slice *s = arena_alloc(a, sizeof *s);
        *r = (struct wire_records){.n = (int32_t)each};
        if (slices) {
            *s = (struct slice){file_ref(f.file), f.file->generation, off, each};
            r->slices = s;
            r->slices_n = 1;
        } else {
            r->p = f.bytes + off;
        }
        off += each;
    }
}

static void answer_fetch(struct request *r, int n, uint64_t off, uint32_t each)
{
    struct fetch_response resp;
    r->api_key = API_FETCH;
    r->api_version = 4;
    fill_fetch(&resp, &r->arena, true, n, off, each);
    CU_ASSERT(request_answer(r, &msg_fetch_response, &resp));
}

/* The whole frame that answer_fetch must send to correlation id 0. */
static void expect_fetch(struct buf *out, int n, uint64_t off, uint32_t each)
{
    struct arena a;
    struct fetch_response resp;
    uint8_t head[8];
    arena_init(&a, NULL);
    buf_init(out);
    fill_fetch(&resp, &a, false, n, off, each);
    CU_ASSERT_EQUAL_FATAL(buf_append(out, head, sizeof head), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(wire_encode(&msg_fetch_response, 4, &resp, out), ERR_NONE);
    put_be32(out->p, (uint32_t)out->n - 4);
    put_be32(out->p + 4, 0);
    arena_close(&a);
}

/* Turns and reads of `piece` bytes until n have come or nothing comes any more. */
static size_t receive(int fd, uint8_t *p, size_t n, size_t piece)
{
    size_t got = 0;
    for (int idle = 0; got < n && idle < 1000;) {
        bench_turn(&b);
        ssize_t r = client_read(fd, p + got, piece < n - got ? piece : n - got);
        if (r == 0)
            return got;
        idle = r > 0 ? 0 : idle + 1;
        got += r > 0 ? (size_t)r : 0;
    }
    return got;
}

static void check_fetch(int n, uint64_t off, uint32_t each, size_t piece)
{
    struct buf want;
    file_begin();
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 1);
    bench_turn(&b);
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 1);
    answer_fetch(b.kept[0], n, off, each);
    expect_fetch(&want, n, off, each);
    uint8_t *got = malloc(want.n);
    CU_ASSERT_EQUAL(receive(fd, got, want.n, piece), want.n);
    CU_ASSERT(memcmp(got, want.p, want.n) == 0);
    CU_ASSERT_EQUAL(b.sockets.sent_bytes, want.n);
    CU_ASSERT(list_empty(&b.sockets.blocked) && list_empty(&b.sockets.sending));
    b.echo = true; /* it is read again */
    send_requests(fd, API_HEARTBEAT, 1, 1);
    CU_ASSERT_EQUAL(receive(fd, got, HEARTBEAT_ANSWER, 100), HEARTBEAT_ANSWER);
    free(got);
    buf_close(&want);
    close(fd);
    file_end();
}

static void test_slices_of_files(void)
{
    check_fetch(1, 12345, 1000, 4096);
    check_fetch(50, 777, 100, 4096);
    check_fetch(50, 777, 5000, 100000);
    check_fetch(1, 0, FILE_BYTES, 1 << 20);
    check_fetch(3, 99, 1000000, 7777); /* a slow reader */
}

/* Segments with data that the client has received. */
static uint32_t segments_in(int fd)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;
    CU_ASSERT_EQUAL_FATAL(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n), 0);
    return info.tcpi_data_segs_in;
}

/* Heads and slices of two answers in one segment (few: it has at most 17 fragments), and none of it
 * waits for a later answer. */
static void test_slices_share_segments(void)
{
    enum { SLICES = 2, EACH = 2000 };
    uint8_t got[3 * SLICES * EACH];
    file_begin();
    int fd = bench_connect(&b);
    for (int i = 0; i < 2; i++) {
        send_requests(fd, API_PRODUCE, 0, 1);
        bench_turn(&b);
    }
    CU_ASSERT_EQUAL_FATAL(b.kept_n, 2);
    for (int i = 0; i < 2; i++)
        answer_fetch(b.kept[i], SLICES, 0, EACH);
    bench_turn(&b);
    CU_ASSERT_EQUAL(client_read(fd, got, sizeof got), (ssize_t)b.sockets.sent_bytes);
    CU_ASSERT(b.sockets.sent_bytes > 2 * SLICES * EACH);
    CU_ASSERT_EQUAL(segments_in(fd), 1);
    close(fd);
    file_end();
}

static void test_client_that_never_reads(void)
{
    file_begin();
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 1);
    bench_turn(&b);
    answer_fetch(b.kept[0], 1, 0, FILE_BYTES);
    bench_turn(&b);
    const uint64_t received = b.sockets.received_bytes;
    send_requests(fd, API_HEARTBEAT, 1, 100);
    int64_t next = bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.received_bytes, received); /* it is not read */
    b.loop.now.mono_us = next - 1;
    CU_ASSERT_EQUAL(sockets_settle(&b.sockets), next);
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    b.loop.now.mono_us = next;
    CU_ASSERT_EQUAL(sockets_settle(&b.sockets), INT64_MAX);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    close(fd);
    file_end();
}

/* Each byte that goes out begins the time anew. */
static void test_slow_reader_is_kept(void)
{
    static uint8_t some[400 << 10];
    file_begin();
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 1);
    bench_turn(&b);
    answer_fetch(b.kept[0], 1, 0, FILE_BYTES);
    int64_t before = bench_turn(&b);
    usleep(2000);
    CU_ASSERT(receive(fd, some, sizeof some, 50000) == sizeof some);
    CU_ASSERT(bench_turn(&b) > before);
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    close(fd);
    file_end();
}

static void test_client_that_vanishes_while_blocked(void)
{
    file_begin();
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 1);
    bench_turn(&b);
    answer_fetch(b.kept[0], 1, 0, FILE_BYTES);
    bench_turn(&b);
    const struct linger reset = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    bench_turn(&b);
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 0);
    file_end();
}

static void test_file_shorter_than_its_slice(void)
{
    file_begin();
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 1);
    bench_turn(&b);
    answer_fetch(b.kept[0], 1, 0, FILE_BYTES);
    CU_ASSERT(truncate(f.path, 1000) == 0); /* behind our back */
    static uint8_t got[2000];
    CU_ASSERT(receive(fd, got, sizeof got, sizeof got) < sizeof got);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    close(fd);
    file_end();
}

static void test_stale_slice_closes(void)
{
    file_begin();
    int fd = bench_connect(&b);
    send_requests(fd, API_HEARTBEAT, 0, 1);
    bench_turn(&b);
    answer_fetch(b.kept[0], 1, 0, FILE_BYTES);
    f.file->generation++;
    bench_turn(&b);
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.line, "truncated"));
    close(fd);
    file_end();
}

TEST_MAIN(TEST(test_pipeline_costs_one_turn), TEST(test_answers_keep_their_order),
          TEST(test_full_pipeline_is_read_again), TEST(test_client_that_leaves_cancels),
          TEST(test_client_that_resets_is_gone), TEST(test_half_closed_client_is_answered),
          TEST(test_garbage_is_closed_with_one_line), TEST(test_idle_connection_holds_no_buffer),
          TEST(test_slices_of_files), TEST(test_slices_share_segments),
          TEST(test_client_that_never_reads), TEST(test_slow_reader_is_kept),
          TEST(test_client_that_vanishes_while_blocked), TEST(test_file_shorter_than_its_slice),
          TEST(test_stale_slice_closes))
