/* Listening sockets of configurations: addresses, ports, what accepted sockets inherit. */
#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/test.h"

/* A label is at most 63 long: no look-up needed to know that there is no such name. */
#define NO_HOST "x123456789x123456789x123456789x123456789x123456789x123456789x123456789"

static char message[512];

/* listeners=text, and one more key. */
static struct config *config_of(const char *text, const char *key, const char *value)
{
    struct config *c;
    const char *pairs[][2] = {
        {"listeners", text},
        {"listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT"},
        {key, value}};
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    for (size_t i = 0; i < ARRAY_N(pairs) && pairs[i][0] != NULL; i++)
        CU_ASSERT_EQUAL_FATAL(config_set(c, str_of(pairs[i][0]), str_of(pairs[i][1]), CONFIG_SET,
                                         NULL, NULL, message, sizeof message),
                              ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(config_finish(c, message, sizeof message), ERR_NONE);
    return c;
}

/* Binds and frees the configuration. */
static enum err bind_text(struct listeners *l, const char *text)
{
    struct config *c = config_of(text, NULL, NULL);
    enum err err = listeners_bind(c, l, message, sizeof message);
    config_free(c);
    return err;
}

static int connect_v4(uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_v6(uint16_t port)
{
    const struct sockaddr_in6 at = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd != -1 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool have_v6(void)
{
    const struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool have = fd != -1 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return have;
}

static void test_free_ports(void)
{
    struct listeners l;
    CU_ASSERT_EQUAL_FATAL(bind_text(&l, "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0"), ERR_NONE);
    CU_ASSERT_EQUAL_FATAL(l.ports_n, 2);
    CU_ASSERT_EQUAL_FATAL(l.n, 2);
    CU_ASSERT(l.ports[0] != 0 && l.ports[1] != 0 && l.ports[0] != l.ports[1]);
    CU_ASSERT_EQUAL(l.sockets[0].listener, 0);
    CU_ASSERT_EQUAL(l.sockets[1].listener, 1);
    for (int i = 0; i < 2; i++) {
        int fd = connect_v4(l.ports[i]); /* it listens already */
        CU_ASSERT_NOT_EQUAL(fd, -1);
        close(fd);
    }
    listeners_close(&l);
    listeners_close(&l);
}

static void test_all_addresses(void)
{
    struct listeners l;
    CU_ASSERT_EQUAL_FATAL(bind_text(&l, "PLAINTEXT://:0"), ERR_NONE);
    int four = connect_v4(l.ports[0]);
    CU_ASSERT_NOT_EQUAL(four, -1);
    close(four);
    if (have_v6()) {
        int six = connect_v6(l.ports[0]);
        CU_ASSERT_NOT_EQUAL(six, -1);
        close(six);
    }
    CU_ASSERT_EQUAL(l.n, 1);
    listeners_close(&l);
}

static void test_names_and_v6(void)
{
    struct listeners l;
    CU_ASSERT_EQUAL_FATAL(bind_text(&l, "PLAINTEXT://localhost:0"), ERR_NONE);
    int fd = connect_v4(l.ports[0]);
    CU_ASSERT_NOT_EQUAL(fd, -1);
    close(fd);
    listeners_close(&l);
    if (!have_v6())
        return;
    CU_ASSERT_EQUAL_FATAL(bind_text(&l, "PLAINTEXT://[::1]:0"), ERR_NONE);
    CU_ASSERT_EQUAL(connect_v4(l.ports[0]), -1);
    fd = connect_v6(l.ports[0]);
    CU_ASSERT_NOT_EQUAL(fd, -1);
    close(fd);
    listeners_close(&l);
}

static void test_port_in_use(void)
{
    struct listeners first, second;
    char text[128], part[64];
    CU_ASSERT_EQUAL_FATAL(bind_text(&first, "PLAINTEXT://127.0.0.1:0"), ERR_NONE);
    snprintf(text, sizeof text, "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:%u", first.ports[0]);
    CU_ASSERT_EQUAL(bind_text(&second, text), ERR_INVALID);
    snprintf(part, sizeof part, "port %u is in use", first.ports[0]);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, part));
    CU_ASSERT(strncmp(message, "listeners=", 10) == 0);
    CU_ASSERT_EQUAL(second.n, 0);
    const uint16_t port = first.ports[0];
    int client = connect_v4(port), served = accept(first.sockets[0].fd, NULL, NULL);
    listeners_close(&first);
    close(served); /* the port waits for late segments now, a restart may have it all the same */
    close(client);
    snprintf(text, sizeof text, "PLAINTEXT://127.0.0.1:%u", port);
    CU_ASSERT_EQUAL(bind_text(&second, text), ERR_NONE);
    listeners_close(&second);
}

static void test_addresses_of_others(void)
{
    struct listeners l;
    CU_ASSERT_EQUAL(bind_text(&l, "PLAINTEXT://192.0.2.1:0"), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "192.0.2.1 is not an address of this machine"));
    CU_ASSERT_EQUAL(bind_text(&l, "PLAINTEXT://" NO_HOST ":0"), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, NO_HOST));
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t n = sizeof value;
    CU_ASSERT(getsockopt(fd, level, name, &value, &n) == 0);
    return value;
}

/* Says something only where the system's own choice paces. */
static void expect_no_pacing(int fd)
{
    char name[PACING_NAME_BYTES + 1] = "";
    socklen_t n = PACING_NAME_BYTES;
    CU_ASSERT(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0);
    CU_ASSERT(strncmp(name, "bbr", 3) != 0);
}

/* Buffers of an accepted socket under key=value; the kernel doubles what is asked for. */
static void check_accepted(const char *key, const char *value, int send_bytes, int receive_bytes)
{
    struct listeners l;
    struct config *c = config_of("PLAINTEXT://127.0.0.1:0", key, value);
    CU_ASSERT_EQUAL_FATAL(listeners_bind(c, &l, message, sizeof message), ERR_NONE);
    int client = connect_v4(l.ports[0]), plain = socket(AF_INET, SOCK_STREAM, 0);
    int fd = accept(l.sockets[0].fd, NULL, NULL);
    CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
    CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    CU_ASSERT_EQUAL(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    expect_no_pacing(fd);
    const int kernels = option(plain, SOL_SOCKET, SO_RCVBUF);
    if (send_bytes > 0) {
        CU_ASSERT_EQUAL(option(fd, SOL_SOCKET, SO_SNDBUF), send_bytes * 2);
    }
    CU_ASSERT_EQUAL(option(l.sockets[0].fd, SOL_SOCKET, SO_RCVBUF),
                    receive_bytes > 0 ? receive_bytes * 2 : kernels);
    close(fd);
    close(plain);
    close(client);
    listeners_close(&l);
    config_free(c);
}

static void test_accepted_sockets(void)
{
    check_accepted(NULL, NULL, 102400, 0);
    check_accepted("socket.send.buffer.bytes", "-1", 0, 0);
    check_accepted("socket.send.buffer.bytes", "65536", 65536, 0);
    check_accepted("socket.receive.buffer.bytes", "102400", 102400, 102400);
}

static void test_out_of_memory(void)
{
    struct config *c = config_of("PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0", NULL, NULL);
    struct listeners l;
    for (long n = 1;; n++) {
        fault_alloc_arm(n, true);
        enum err err = listeners_bind(c, &l, message, sizeof message);
        if (!fault_alloc_hit()) {
            CU_ASSERT_EQUAL(err, ERR_NONE);
            break;
        }
        CU_ASSERT_NOT_EQUAL(err, ERR_NONE);
        CU_ASSERT(l.n == 0 && l.ports == NULL);
    }
    listeners_close(&l);
    config_free(c);
}

TEST_MAIN(TEST(test_free_ports), TEST(test_all_addresses), TEST(test_names_and_v6),
          TEST(test_port_in_use), TEST(test_addresses_of_others), TEST(test_accepted_sockets),
          TEST(test_out_of_memory))
