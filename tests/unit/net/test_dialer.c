/* Peers over real sockets: to an rpc of the same loop, to nobody, to somebody who hangs up. */
#include <errno.h>
#include <stdlib.h>

#include "net/dialer.h"
#include "os/clocks.h"
#include "os/threads.h"
#include "test_net.h"

enum { S = 1000 * 1000, LARGE = 3 << 20 };

static struct bench b;
static struct dialer dialer;
static struct env names; /* its jobs run in a pool */
static struct os_pool pool;

struct told {
    struct peer_call call;
    struct heartbeat_request request;
    int done_n;
    enum err err;
};

static void told_done(struct peer_call *call, enum err e, const void *response)
{
    struct told *t = CONTAINER_OF(call, struct told, call);
    t->done_n++;
    t->err = e;
}

static void submit(struct env *e, struct job *j)
{
    os_pool_submit(&pool, j);
}

static void begin(void)
{
    const struct os_pool_config config = {1, 1, 8};
    bench_begin(&b);
    b.echo = true;
    names = (struct env){.submit = submit};
    CU_ASSERT_FATAL(os_pool_init(&pool, &config) == ERR_NONE);
    dialer_init(&dialer, &b.loop, &b.timers, &names);
}

static void end(void)
{
    os_pool_stop(&pool);
    CU_ASSERT(os_pool_reap(&pool) == NULL);
    os_pool_close(&pool);
    dialer_close(&dialer);
    bench_end(&b);
}

/* A port that is nobody else's; who connects is refused. */
static int bind_somewhere(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CU_ASSERT_FATAL(bind(fd, (struct sockaddr *)&at, n) == 0);
    CU_ASSERT_FATAL(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static int listen_somewhere(uint16_t *port)
{
    const int fd = bind_somewhere(port);
    CU_ASSERT_FATAL(listen(fd, 8) == 0);
    return fd;
}

/* The same port at ::1, so that nobody else answers there; -1: another has it. */
static int bind_v6(uint16_t port)
{
    const struct sockaddr_in6 at = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port)};
    const int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd == -1 || bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 || errno != EADDRINUSE)
        return fd == -1 ? dup(0) : fd; /* or there is no IPv6 */
    close(fd);
    return -1;
}

static struct dialing_args args_of(const char *host, uint16_t port)
{
    return (struct dialing_args){.host = host,
                                 .port = port,
                                 .timers = &b.timers,
                                 .client_id = STR_LIT("test"),
                                 .memory = &b.memory,
                                 .answer_max_bytes = 1 << 20};
}

static struct dial *dial(const char *host, uint16_t port)
{
    struct dial *dl;
    const struct dialing_args args = args_of(host, port);
    CU_ASSERT_FATAL(dial_new(&dialer, &args, &dl) == ERR_NONE);
    return dl;
}

static void call_peer(struct peer *p, struct told *t)
{
    *t = (struct told){
        .call = {
            .api_key = API_HEARTBEAT, .max_version = -1, .fixed_version = -1, .done = told_done}};
    wire_default(&wire_heartbeat_request, &t->request);
    t->call.request = &t->request;
    t->call.deadline_us = b.loop.now.mono_us + 20 * S;
    peer_call(p, &t->call, b.loop.now);
}

static void call(struct dial *dl, struct told *t)
{
    call_peer(dial_peer(dl), t);
}

/* One turn; who knocks at fd is let in. */
static void turn(struct dial *dl, int fd)
{
    struct job *j;
    loop_turn(&b.loop, b.loop.now.mono_us + S / 1000);
    timers_run(&b.timers, b.loop.now.mono_us);
    while ((j = os_pool_reap(&pool)) != NULL)
        j->done(j);
    const int client = fd == -1 ? -1 : accept4(fd, NULL, NULL, SOCK_NONBLOCK);
    if (client != -1)
        sockets_add(&b.sockets, client, 0, "client", NULL);
    do
        (void)dialer_settle(&dialer);
    while (peer_settle(dial_peer(dl), b.loop.now));
    (void)sockets_settle(&b.sockets);
}

static void wait_for(struct dial *dl, int fd, const int *n, int want)
{
    const int64_t end_us = os_now().mono_us + 20 * S;
    while (*n < want && os_now().mono_us < end_us)
        turn(dl, fd);
    CU_ASSERT_EQUAL_FATAL(*n, want);
}

static void test_dialer_calls_are_answered(void)
{
    uint16_t port;
    begin();
    const int fd = listen_somewhere(&port);
    struct dial *dl = dial("127.0.0.1", port);
    struct told t[2];
    char name[32];
    snprintf(name, sizeof name, "127.0.0.1:%u", port);
    CU_ASSERT_STRING_EQUAL(dial_name(dl), name);
    call(dl, &t[0]);
    call(dl, &t[1]);
    wait_for(dl, fd, &t[1].done_n, 1);
    CU_ASSERT(t[0].done_n == 1 && t[0].err == ERR_NONE && t[1].err == ERR_NONE);
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    close(fd);
    end();
}

/* More than the sockets hold: the rest goes out when there is room. */
static void test_dialer_sends_what_does_not_fit_at_once(void)
{
    uint16_t port;
    begin();
    const int fd = listen_somewhere(&port);
    struct dial *dl = dial("127.0.0.1", port);
    struct told t;
    char *large = calloc(1, LARGE);
    struct produce_request_partition_produce_data partition = {
        .records = {.p = (const uint8_t *)large, .n = LARGE}};
    struct produce_request_topic_produce_data topic = {.name = STR_LIT("t")};
    struct produce_request request;
    wire_default(&wire_produce_request, &request);
    topic.partition_data.v = &partition;
    topic.partition_data.n = 1;
    request.topic_data.v = &topic;
    request.topic_data.n = 1;
    call(dl, &t);
    t.call.api_key = API_PRODUCE;
    t.call.request = &request;
    t.call.no_answer = true;
    b.echo = false;
    wait_for(dl, fd, &t.done_n, 1);
    CU_ASSERT_EQUAL(t.err, ERR_NONE);
    wait_for(dl, fd, &b.kept_n, 1);
    CU_ASSERT(b.kept[0]->frame.n > LARGE);
    request_drop(b.kept[0]);
    free(large);
    close(fd);
    end();
}

static void test_dialer_nobody_listens(void)
{
    uint16_t port;
    begin();
    const int fd = bind_somewhere(&port);
    struct dial *dl = dial("127.0.0.1", port);
    struct told t;
    call(dl, &t);
    wait_for(dl, -1, &t.done_n, 1);
    CU_ASSERT(t.err == ERR_CLOSED && !t.call.sent);
    CU_ASSERT_STRING_EQUAL(dial_reason(dl), strerror(ECONNREFUSED));
    CU_ASSERT_TRUE(peer_was_refused(dial_peer(dl)));
    const int64_t again_us = peer_connect_at_us(dial_peer(dl));
    call(dl, &t); /* waits for the pause to pass, then fails again */
    wait_for(dl, -1, &t.done_n, 1);
    CU_ASSERT(os_now().mono_us >= again_us);
    close(fd);
    end();
}

static void test_dialer_the_other_hangs_up(void)
{
    uint16_t port;
    begin();
    const int fd = listen_somewhere(&port);
    struct dial *dl = dial("127.0.0.1", port);
    struct told t;
    b.echo = false;
    call(dl, &t);
    wait_for(dl, fd, &b.kept_n, 1);
    b.kept_n = 0;
    sockets_close(&b.sockets);
    wait_for(dl, -1, &t.done_n, 1);
    CU_ASSERT(t.err == ERR_CLOSED && t.call.sent && dial_reason(dl)[0] != '\0');
    request_drop(b.kept[0]);
    b.echo = true;
    call(dl, &t); /* and is called again */
    wait_for(dl, fd, &t.done_n, 1);
    CU_ASSERT_EQUAL(t.err, ERR_NONE);
    CU_ASSERT_FALSE(peer_was_refused(dial_peer(dl)));
    close(fd);
    end();
}

static void test_dialer_names(void)
{
    uint16_t port;
    begin();
    int fd = listen_somewhere(&port), six = bind_v6(port);
    for (; six == -1; six = bind_v6(port)) {
        close(fd);
        fd = listen_somewhere(&port);
    }
    struct dial *dl = dial("localhost", port); /* perhaps at ::1 first, where nobody listens */
    struct told t;
    call(dl, &t);
    wait_for(dl, fd, &t.done_n, 1);
    CU_ASSERT_EQUAL(t.err, ERR_NONE);
    struct dial *nobody = dial("no such name.invalid", port);
    call(nobody, &t);
    wait_for(nobody, -1, &t.done_n, 1);
    CU_ASSERT(t.err == ERR_CLOSED && dial_reason(nobody)[0] != '\0');
    struct dial *v6 = dial("::1", port);
    char name[32];
    snprintf(name, sizeof name, "[::1]:%u", port);
    CU_ASSERT_STRING_EQUAL(dial_name(v6), name);
    close(fd);
    close(six);
    end();
}

static struct peer *open_peer(const char *host, uint16_t port)
{
    struct peer *p = NULL;
    const struct dialing_args args = args_of(host, port);
    CU_ASSERT_FATAL(dialer.dialing.open(&dialer.dialing, &args, &p) == ERR_NONE);
    return p;
}

/* As the inside of a node sees it: peers, and nothing of sockets. */
static void test_dialer_dialing(void)
{
    uint16_t port;
    begin();
    const int fd = listen_somewhere(&port);
    struct peer *p = open_peer("127.0.0.1", port);
    struct told t;
    call_peer(p, &t);
    wait_for(peer_driver(p), fd, &t.done_n, 1);
    CU_ASSERT_EQUAL(t.err, ERR_NONE);
    call_peer(p, &t);
    CU_ASSERT_EQUAL(t.done_n, 0);
    dialer.dialing.close(&dialer.dialing, p);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_CANCELLED);
    close(fd);
    end();
}

static void test_dialer_refuses_what_is_no_host(void)
{
    char host[300];
    struct peer *p = NULL;
    begin();
    memset(host, 'a', sizeof host);
    host[256] = '\0';
    struct dialing_args args = args_of(host, 1);
    CU_ASSERT_EQUAL(dialer.dialing.open(&dialer.dialing, &args, &p), ERR_INVALID);
    args.host = "";
    CU_ASSERT_EQUAL(dialer.dialing.open(&dialer.dialing, &args, &p), ERR_INVALID);
    CU_ASSERT(p == NULL && list_empty(&dialer.all));
    end();
}

/* The look-up outlives the peer, and nobody hears of it. */
static void test_dialer_peer_closed_while_looked_up(void)
{
    struct job *j = NULL;
    struct told t;
    begin();
    struct peer *p = open_peer("no such name.invalid", 1);
    call_peer(p, &t);
    (void)peer_settle(p, b.loop.now);
    (void)dialer_settle(&dialer);
    CU_ASSERT_FATAL(dial_looking_up(peer_driver(p)));
    dialer.dialing.close(&dialer.dialing, p);
    CU_ASSERT(t.done_n == 1 && t.err == ERR_CANCELLED && list_empty(&dialer.all));
    const int64_t end_us = os_now().mono_us + 60 * S;
    while ((j = os_pool_reap(&pool)) == NULL && os_now().mono_us < end_us)
        loop_turn(&b.loop, os_now().mono_us + S / 1000);
    CU_ASSERT_FATAL(j != NULL);
    j->done(j);
    CU_ASSERT(list_empty(&dialer.due));
    end();
}

TEST_MAIN(TEST(test_dialer_calls_are_answered), TEST(test_dialer_sends_what_does_not_fit_at_once),
          TEST(test_dialer_nobody_listens), TEST(test_dialer_the_other_hangs_up),
          TEST(test_dialer_names), TEST(test_dialer_dialing),
          TEST(test_dialer_refuses_what_is_no_host), TEST(test_dialer_peer_closed_while_looked_up))
