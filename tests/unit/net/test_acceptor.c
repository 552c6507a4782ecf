/* Accepting: how many, and what happens when there is no room. And the loop that it runs on. */
#include "net/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "support/fault.h"
#include "test_net.h"

static struct bench b;
static struct acceptor a;
static struct listeners ls;

static void begin_at(const char *listeners, size_t conns_max)
{
    char message[512];
    struct config *c;
    bench_begin(&b);
    b.echo = true;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_set(c, str_of("listeners"), str_of(listeners), CONFIG_SET, NULL,
                                     NULL, message, sizeof message),
                          ERR_NONE);
    if (strstr(listeners, "CONTROLLER") != NULL)
        CU_ASSERT_EQUAL_FATAL(config_set(c, STR_LIT("controller.listener.names"),
                                         STR_LIT("CONTROLLER"), CONFIG_SET, NULL, NULL, message,
                                         sizeof message),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(c, message, sizeof message), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(listeners_bind(c, &ls, message, sizeof message), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(acceptor_init(&a, &ls, false, &b.sockets, conns_max), ERR_NONE);
    config_free(c);
}

static void begin(size_t conns_max)
{
    begin_at("PLAINTEXT://127.0.0.1:0", conns_max);
}

static void end(void)
{
    acceptor_close(&a);
    acceptor_close(&a);
    listeners_close(&ls);
    bench_end(&b);
}

static int64_t turn(void)
{
    bench_turn(&b);
    return acceptor_settle(&a);
}

static int client_at(struct in_addr address, uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(connect(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static int client_of(struct in_addr address)
{
    return client_at(address, ls.ports[0]);
}

static int client(void)
{
    return client_of((struct in_addr){htonl(INADDR_LOOPBACK)});
}

/* Who connects before the acceptor starts is served then. */
static void test_waits_for_start(void)
{
    begin(10);
    int fd = client();
    send_requests(fd, API_HEARTBEAT, 0, 1);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    acceptor_allow(&a, 0, true);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    turn();
    CU_ASSERT(b.sockets.sent_bytes > 0);
    close(fd);
    end();
}

/* Who is there stays; who comes waits until it is allowed again. */
static void test_allowed_and_not(void)
{
    begin(10);
    acceptor_allow(&a, 0, true);
    acceptor_allow(&a, 1, false); /* another one's */
    const int first = client();
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    acceptor_allow(&a, 0, false);
    const int second = client();
    turn();
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    acceptor_allow(&a, 0, true);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 2);
    close(first);
    close(second);
    end();
}

/* A pause ends where it is allowed only. */
static void test_not_allowed_while_full(void)
{
    int fds[2];
    begin(1);
    acceptor_allow(&a, 0, true);
    for (size_t i = 0; i < ARRAY_N(fds); i++)
        fds[i] = client();
    turn();
    CU_ASSERT_EQUAL(turn(), INT64_MAX);
    acceptor_allow(&a, 0, false);
    close(fds[0]);
    turn();
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    acceptor_allow(&a, 0, true);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 1);
    close(fds[1]);
    end();
}

/* Listeners of controllers take theirs whatever clients there are, and the other way round. */
static void test_controllers_count_apart(void)
{
    const struct in_addr here = {htonl(INADDR_LOOPBACK)};
    struct acceptor controllers;
    int fds[3], others[2];
    begin_at("PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", 2);
    CU_ASSERT_EQUAL_FATAL(acceptor_init(&controllers, &ls, true, &b.sockets, 2), ERR_NONE);
    CU_ASSERT(a.n == 1 && controllers.n == 1);
    for (int i = 0; i < 2; i++) {
        acceptor_allow(&a, i, true);
        acceptor_allow(&controllers, i, true);
    }
    for (size_t i = 0; i < ARRAY_N(fds); i++)
        fds[i] = client();
    turn();
    turn();
    CU_ASSERT(b.sockets.n == 2 && a.conns_n == 2); /* one waits */
    for (size_t i = 0; i < ARRAY_N(others); i++)
        others[i] = client_at(here, ls.ports[1]);
    turn();
    turn();
    CU_ASSERT(b.sockets.n == 4 && a.conns_n == 2 && controllers.conns_n == 2);
    close(others[0]);
    turn();
    turn();
    CU_ASSERT(a.conns_n == 2 && controllers.conns_n == 1);
    close(fds[0]);
    turn();
    turn();
    turn();
    CU_ASSERT(b.sockets.n == 3 && a.conns_n == 2); /* the one that waited */
    close(fds[1]);
    close(fds[2]);
    close(others[1]);
    acceptor_close(&controllers);
    end();
}

static void test_bounded_per_turn(void)
{
    int fds[LIMIT_TURN_ACCEPTS + 1];
    begin(1000);
    for (size_t i = 0; i < ARRAY_N(fds); i++)
        fds[i] = client();
    acceptor_allow(&a, 0, true);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, LIMIT_TURN_ACCEPTS);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, ARRAY_N(fds));
    for (size_t i = 0; i < ARRAY_N(fds); i++)
        close(fds[i]);
    end();
}

static void test_full_waits_in_the_backlog(void)
{
    int fds[4];
    begin(2);
    acceptor_allow(&a, 0, true);
    for (size_t i = 0; i < ARRAY_N(fds); i++)
        fds[i] = client();
    turn();
    CU_ASSERT_EQUAL(turn(), INT64_MAX);
    CU_ASSERT_EQUAL(b.sockets.n, 2);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.line, "accept_paused"));
    close(fds[0]);
    turn(); /* sees the end, and that there is room */
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 2);
    send_requests(fds[2], API_HEARTBEAT, 0, 1);
    turn();
    CU_ASSERT(b.sockets.sent_bytes > 0);
    CU_ASSERT_EQUAL(b.lines_n, 1); /* it is full again, and was told already */
    for (size_t i = 1; i < ARRAY_N(fds); i++)
        close(fds[i]);
    end();
}

static void test_the_maximum_changes(void)
{
    int fds[4];
    begin(2);
    acceptor_allow(&a, 0, true);
    for (size_t i = 0; i < ARRAY_N(fds); i++)
        fds[i] = client();
    turn();
    CU_ASSERT_EQUAL(turn(), INT64_MAX);
    acceptor_set_max(&a, 2);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 2);
    acceptor_set_max(&a, 3);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 3);
    acceptor_set_max(&a, 1); /* those that are there stay */
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 3);
    close(fds[0]);
    turn();
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 2);
    acceptor_set_max(&a, 10);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 3);
    for (size_t i = 1; i < ARRAY_N(fds); i++)
        close(fds[i]);
    end();
}

/* Descriptors: the limit is lowered to what is open, so that no other can be had. */
static void test_out_of_descriptors(void)
{
    struct rlimit before, none;
    begin(1000);
    acceptor_allow(&a, 0, true);
    int first = client(), second = client();
    CU_ASSERT(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    int probe = dup(0);
    close(probe);
    none.rlim_cur = (rlim_t)probe;
    CU_ASSERT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    turn();
    int64_t retry = turn();
    CU_ASSERT_EQUAL(b.sockets.n, 0);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    CU_ASSERT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CU_ASSERT(retry > b.loop.now.mono_us && retry <= b.loop.now.mono_us + 1000000);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 0); /* not yet */
    b.loop.now.mono_us = retry;
    CU_ASSERT_EQUAL(acceptor_settle(&a), INT64_MAX);
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 2);
    CU_ASSERT_EQUAL(b.lines_n, 1);
    close(first);
    close(second);
    end();
}

/* No memory for one client: it is told by the end of its connection, the others are served. */
static void test_out_of_memory_for_a_client(void)
{
    for (long n = 1;; n++) {
        begin(1000);
        acceptor_allow(&a, 0, true);
        int fd = client(); /* the first: libev makes its tables, and cannot go on without */
        turn();
        turn();
        close(fd);
        turn();
        fd = client();
        fault_alloc_arm(n, false);
        turn();
        const bool hit = fault_alloc_hit();
        CU_ASSERT_EQUAL(b.sockets.n, hit ? 0 : 1);
        CU_ASSERT_EQUAL(b.lines_n, hit ? 1 : 0);
        if (hit)
            CU_ASSERT(client_sees_end(fd));
        close(fd);
        end();
        if (!hit)
            break;
    }
}

/* ------------------------------------------------------------------ congestion control */

/* One of this machine's addresses that is not on the loopback device. */
static bool other_address(struct in_addr *out)
{
    struct ifaddrs *all;
    bool found = false;
    CU_ASSERT_EQUAL_FATAL(getifaddrs(&all), 0);
    for (const struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next) {
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET)
            continue;
        *out = ((const struct sockaddr_in *)i->ifa_addr)->sin_addr;
        found = ntohl(out->s_addr) >> 24 != IN_LOOPBACKNET;
    }
    freeifaddrs(all);
    return found;
}

static void control_of(int fd, char out[PACING_NAME_BYTES + 1])
{
    socklen_t n = PACING_NAME_BYTES;
    memset(out, 0, PACING_NAME_BYTES + 1);
    CU_ASSERT_EQUAL_FATAL(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, out, &n), 0);
}

static void expect_accepted(struct in_addr address, const char *control)
{
    char now[PACING_NAME_BYTES + 1];
    int fd = client_of(address), accepted = dup(fd); /* the number that comes next */
    close(accepted);
    turn();
    control_of(accepted, now);
    CU_ASSERT_STRING_EQUAL(now, control);
    close(fd);
    turn();
    turn();
    CU_ASSERT_EQUAL(b.sockets.n, 0);
}

/* As if the system's own choice paced. */
static void test_only_the_loopback_device_is_not_paced(void)
{
    char own[PACING_NAME_BYTES + 1];
    struct in_addr other;
    begin_at("PLAINTEXT://:0", 10);
    int plain = socket(AF_INET, SOCK_STREAM, 0), listening = ls.sockets[0].fd;
    control_of(plain, own);
    close(plain);
    memcpy(ls.sockets[0].pacing, own, PACING_NAME_BYTES);
    CU_ASSERT_EQUAL(setsockopt(listening, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
    acceptor_allow(&a, 0, true);
    expect_accepted((struct in_addr){htonl(INADDR_LOOPBACK)}, "reno");
    if (other_address(&other))
        expect_accepted(other, own);
    end();
}

/* ------------------------------------------------------------------ the loop */

static void test_loop_waits_for_its_deadline(void)
{
    struct loop l;
    CU_ASSERT_EQUAL_FATAL(loop_init(&l), ERR_NONE);
    const int64_t begin_us = l.now.mono_us;
    int64_t deadline_us = begin_us + 20000;
    while (l.now.mono_us < deadline_us)
        loop_turn(&l, deadline_us);
    CU_ASSERT(l.now.mono_us < begin_us + 2000000);
    loop_turn(&l, 0);                    /* does not wait */
    loop_turn(&l, l.now.mono_us + 1000); /* a new deadline */
    loop_turn(&l, l.now.mono_us - 1);    /* one that has passed */
    loop_close(&l);
}

TEST_MAIN(TEST(test_waits_for_start), TEST(test_allowed_and_not), TEST(test_not_allowed_while_full),
          TEST(test_controllers_count_apart), TEST(test_bounded_per_turn),
          TEST(test_full_waits_in_the_backlog), TEST(test_the_maximum_changes),
          TEST(test_out_of_descriptors), TEST(test_out_of_memory_for_a_client),
          TEST(test_only_the_loopback_device_is_not_paced), TEST(test_loop_waits_for_its_deadline))
