/* What the tests of net share: a loop with the sockets of an rpc on it, and clients on the other
 * side of the loopback device. The handler keeps each request until the test answers it. */
#ifndef TEST_NET_H
#define TEST_NET_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/limits.h"
#include "net/sockets.h"
#include "support/test.h"
#include "wire/messages.h"

enum { KEPT_MAX = 1024, SEND_BUFFER = 100 << 10 };

struct bench {
    struct env env;
    struct timers timers;
    struct budget memory;
    struct rpc *rpc;
    struct loop loop;
    struct sockets sockets;
    struct request *kept[KEPT_MAX];
    int kept_n, cancelled_n, lines_n;
    char line[256]; /* the last */
    bool echo;      /* answer at once */
};

static inline void answer_heartbeat(struct request *r)
{
    struct heartbeat_response resp;
    wire_default(&wire_heartbeat_response, &resp);
    CU_ASSERT(request_answer(r, &msg_heartbeat_response, &resp));
}

static inline void answer_versions(struct request *r)
{
    struct api_versions_response_api_version v[] = {{.api_key = API_HEARTBEAT, .max_version = 3},
                                                    {.api_key = API_PRODUCE, .max_version = 8}};
    struct api_versions_response resp;
    wire_default(&wire_api_versions_response, &resp);
    resp.api_keys.v = v;
    resp.api_keys.n = 2;
    CU_ASSERT(request_answer(r, &msg_api_versions_response, &resp));
}

static inline bool bench_accept(void *ctx, struct request *r)
{
    r->api_key = (int16_t)be16(r->frame.p);
    r->api_version = (int16_t)be16(r->frame.p + 2);
    r->correlation_id = (int32_t)be32(r->frame.p + 4);
    return r->api_key == API_HEARTBEAT || r->api_key == API_PRODUCE ||
           r->api_key == API_API_VERSIONS;
}

static inline void bench_start(void *ctx, struct request *r, struct now now)
{
    struct bench *b = ctx;
    if (r->api_key == API_API_VERSIONS) {
        answer_versions(r);
        return;
    }
    if (b->echo) {
        answer_heartbeat(r);
        return;
    }
    CU_ASSERT_FATAL(b->kept_n < KEPT_MAX);
    b->kept[b->kept_n++] = r;
    if (r->api_key == API_PRODUCE)
        request_staged(r);
}

static inline void bench_cancel(void *ctx, struct request *r)
{
    ((struct bench *)ctx)->cancelled_n++;
}

static inline void bench_log(struct env *e, enum log_level level, const char *line)
{
    struct bench *b = CONTAINER_OF(e, struct bench, env);
    b->lines_n++;
    snprintf(b->line, sizeof b->line, "%s", line);
}

static inline void bench_begin(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->env.log = bench_log;
    timers_init(&b->timers);
    budget_init(&b->memory, NULL, 64 << 20);
    const struct rpc_args args = {
        .env = &b->env,
        .timers = &b->timers,
        .frames = &b->memory,
        .small = &b->memory,
        .answers = &b->memory,
        .request_max_bytes = 4 << 20,
        .idle_max_ms = -1,
        .handler = {.ctx = b, .accept = bench_accept, .start = bench_start, .cancel = bench_cancel},
    };
    CU_ASSERT_EQUAL_FATAL(rpc_new(&args, &b->rpc), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(loop_init(&b->loop), ERR_NONE);
    sockets_init(&b->sockets, &b->loop, b->rpc, &b->env);
}

/* Every request must be answered, or its connection be closed. */
static inline void bench_end(struct bench *b)
{
    sockets_close(&b->sockets);
    CU_ASSERT_EQUAL(b->sockets.n, 0);
    loop_close(&b->loop);
    rpc_free(b->rpc);
    CU_ASSERT_EQUAL(b->memory.used_bytes, 0);
    timers_close(&b->timers);
}

/* One turn, without waiting when nothing has come. */
static inline int64_t bench_turn(struct bench *b)
{
    loop_turn(&b->loop, 0);
    return sockets_settle(&b->sockets);
}

/* A connected pair; the broker's end has the send buffer that it has by default. */
static inline int bench_connect(struct bench *b)
{
    const int send_bytes = SEND_BUFFER, receive_bytes = 64 << 10;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t at_n = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(bind(l, (struct sockaddr *)&at, sizeof at) == 0 && listen(l, 1) == 0);
    CU_ASSERT_FATAL(getsockname(l, (struct sockaddr *)&at, &at_n) == 0);
    setsockopt(l, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
    setsockopt(c, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    CU_ASSERT_FATAL(connect(c, (struct sockaddr *)&at, sizeof at) == 0);
    int fd = accept4(l, NULL, NULL, SOCK_NONBLOCK);
    CU_ASSERT_FATAL(fd != -1);
    close(l);
    sockets_add(&b->sockets, fd, 0, "client", NULL);
    return c;
}

static inline size_t put_request(uint8_t *p, int16_t key, int32_t id, size_t body_n)
{
    put_be32(p, (uint32_t)(8 + body_n));
    put_be16(p + 4, (uint16_t)key);
    put_be16(p + 6, 0);
    put_be32(p + 8, (uint32_t)id);
    memset(p + 12, 0, body_n);
    return 12 + body_n;
}

/* n requests in one write. */
static inline void send_requests(int fd, int16_t key, int32_t first_id, int n)
{
    uint8_t bytes[32 * 1024];
    size_t used = 0;
    for (int i = 0; i < n; i++)
        used += put_request(bytes + used, key, first_id + i, 20);
    CU_ASSERT_FATAL(used <= sizeof bytes && write(fd, bytes, used) == (ssize_t)used);
}

/* What has come, without waiting: -1 nothing, 0 the end. */
static inline ssize_t client_read(int fd, void *p, size_t n)
{
    return recv(fd, p, n, MSG_DONTWAIT);
}

/* The broker closed it (or the connection was reset). */
static inline bool client_sees_end(int fd)
{
    char byte;
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 1000) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

#endif
