/* Clients' addresses as Java prints them. */
#include "api/api.h"
#include "support/test.h"

static bool host_is(const char *address, const char *expected)
{
    struct request r = {.client_address = address};
    struct str host;
    arena_init(&r.arena, NULL);
    const bool is = api_client_host(&r, &host) && str_eq(host, str_of(expected));
    arena_close(&r.arena);
    return is;
}

static void test_client_host_four(void)
{
    CU_ASSERT(host_is("127.0.0.1:1234", "/127.0.0.1"));
    CU_ASSERT(host_is("255.255.255.255:65535", "/255.255.255.255"));
}

/* All eight parts, without leading zeros. */
static void test_client_host_six(void)
{
    CU_ASSERT(host_is("[::1]:1234", "/0:0:0:0:0:0:0:1"));
    CU_ASSERT(host_is("[::]:1", "/0:0:0:0:0:0:0:0"));
    CU_ASSERT(host_is("[fe80::a:BcD]:1", "/fe80:0:0:0:0:0:a:bcd"));
    CU_ASSERT(host_is("[2001:db8::]:9", "/2001:db8:0:0:0:0:0:0"));
    CU_ASSERT(host_is("[1:2:3:4:5:6:7:8]:9", "/1:2:3:4:5:6:7:8"));
}

/* What is no address is told as it is. */
static void test_client_host_other(void)
{
    CU_ASSERT(host_is("self", "/self"));
    CU_ASSERT(host_is("", "/"));
}

TEST_MAIN(TEST(test_client_host_four), TEST(test_client_host_six), TEST(test_client_host_other))
