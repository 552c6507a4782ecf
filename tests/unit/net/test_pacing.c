/* Who is on the loopback device, and whose congestion control changes. Where the kernel has no bbr
 * the second half is only that nothing changes. */
#include "net/pacing.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "support/test.h"

static bool needless(const char *text)
{
    struct sockaddr_storage at = {.ss_family = strchr(text, ':') == NULL ? AF_INET : AF_INET6};
    void *to = at.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&at)->sin_addr
                                       : (void *)&((struct sockaddr_in6 *)&at)->sin6_addr;
    CU_ASSERT_EQUAL_FATAL(inet_pton(at.ss_family, text, to), 1);
    return pacing_is_needless(&at);
}

static void test_loopback_addresses(void)
{
    const struct sockaddr_storage none = {.ss_family = AF_UNIX};
    static const char *const local[] = {"127.0.0.1", "127.255.3.4", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {"126.0.0.1",          "128.0.0.1", "192.0.2.1", "0.0.0.0",
                                         "::ffff:192.0.2.127", "::2",       "::",        "fe80::1",
                                         "::127.0.0.1"};
    for (size_t i = 0; i < ARRAY_N(local); i++)
        CU_ASSERT_TRUE(needless(local[i]));
    for (size_t i = 0; i < ARRAY_N(others); i++)
        CU_ASSERT_FALSE(needless(others[i]));
    CU_ASSERT_FALSE(pacing_is_needless(&none));
}

static bool set_control(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

static void expect_control(int fd, const char *name)
{
    char now[PACING_NAME_BYTES + 1] = "";
    socklen_t n = PACING_NAME_BYTES;
    CU_ASSERT_EQUAL(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &n), 0);
    CU_ASSERT_STRING_EQUAL(now, name);
}

static void test_others_stay(void)
{
    char was[PACING_NAME_BYTES] = "?";
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CU_ASSERT_FATAL(set_control(fd, "reno"));
    pacing_stop(fd, was);
    CU_ASSERT_STRING_EQUAL(was, "");
    pacing_give_back(fd, was);
    expect_control(fd, "reno");
    close(fd);
}

static void test_pacing_stops_and_comes_back(void)
{
    char was[PACING_NAME_BYTES] = "?";
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (set_control(fd, "bbr")) {
        pacing_stop(fd, was);
        CU_ASSERT_STRING_EQUAL(was, "bbr");
        expect_control(fd, "reno");
        pacing_give_back(fd, was);
        expect_control(fd, "bbr");
    }
    close(fd);
}

TEST_MAIN(TEST(test_loopback_addresses), TEST(test_others_stay),
          TEST(test_pacing_stops_and_comes_back))
