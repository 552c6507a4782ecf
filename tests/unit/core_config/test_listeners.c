#include "core/config/config.h"

#include <stdio.h>

#include "support/test.h"

static char message[512];

/* Pairs of key and value, NULL at the end. NULL when config_finish refuses. */
static struct config *finish(const char *const *pairs)
{
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    message[0] = '\0';
    for (; pairs[0] != NULL; pairs += 2)
        CU_ASSERT_EQUAL(config_set(c, str_of(pairs[0]), str_of(pairs[1]), CONFIG_SET, NULL, NULL,
                                   message, sizeof message),
                        ERR_NONE);
    if (config_finish(c, message, sizeof message) == ERR_NONE)
        return c;
    config_free(c);
    return NULL;
}

#define FINISH(...) finish((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void check_listener(struct config *c, size_t i, struct listener want)
{
    size_t n;
    if (c == NULL)
        fprintf(stderr, "%s\n", message);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    const struct listener *l = config_listeners(c, &n);
    CU_ASSERT_FATAL(i < n);
    CU_ASSERT_STRING_EQUAL(l[i].name, want.name);
    CU_ASSERT_STRING_EQUAL(l[i].host, want.host);
    CU_ASSERT_EQUAL(l[i].port, want.port);
    CU_ASSERT_STRING_EQUAL(l[i].advertised_host, want.advertised_host);
    CU_ASSERT_EQUAL(l[i].advertised_port, want.advertised_port);
    CU_ASSERT_EQUAL(l[i].controller, want.controller);
    CU_ASSERT_EQUAL(l[i].security_protocol, 0);
}

static void test_listeners_default(void)
{
    struct config *c = FINISH();
    size_t n;
    check_listener(c, 0,
                   (struct listener){"PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 0, false, 0});
    (void)config_listeners(c, &n);
    CU_ASSERT_EQUAL(n, 1);
    config_free(c);
}

static void test_listeners_forms(void)
{
    struct config *c =
        FINISH("listeners",
               ", plaintext://h.example:1 ,CONTROLLER://[::1]:2,A://:3,B://0.0.0.0:4,"
               ",C://[::]:0,",
               "controller.listener.names", "controller", "listener.security.protocol.map",
               "A:PLAINTEXT,b:plaintext,C:PLAINTEXT,CONTROLLER:PLAINTEXT,"
               "PLAINTEXT:PLAINTEXT,UNUSED:SASL_SSL");
    check_listener(c, 0, (struct listener){"PLAINTEXT", "h.example", 1, "h.example", 0, false, 0});
    check_listener(c, 1, (struct listener){"CONTROLLER", "::1", 2, "::1", 0, true, 0});
    check_listener(c, 2, (struct listener){"A", "", 3, "127.0.0.1", 0, false, 0});
    check_listener(c, 3, (struct listener){"B", "", 4, "127.0.0.1", 0, false, 0});
    check_listener(c, 4, (struct listener){"C", "::", 0, "::1", 0, false, 0});
    config_free(c);
}

/* Two listeners may advertise one port on different hosts; the advertised port may differ from the
 * bound one; brackets are not sent to clients. */
static void test_listeners_advertised(void)
{
    struct config *c =
        FINISH("listeners", "INT://:19092,EXT://:9092", "advertised.listeners",
               "EXT://localhost:32840,INT://[2001:db8::1]:32840", "listener.security.protocol.map",
               "INT:PLAINTEXT,EXT:PLAINTEXT", "inter.broker.listener.name", "INT");
    check_listener(c, 0, (struct listener){"INT", "", 19092, "2001:db8::1", 32840, false, 0});
    check_listener(c, 1, (struct listener){"EXT", "", 9092, "localhost", 32840, false, 0});
    config_free(c);
}

static void test_listeners_inter_broker(void)
{
    struct config *c = FINISH();
    CU_ASSERT_STRING_EQUAL(config_inter_broker_listener(c), "PLAINTEXT");
    config_free(c);
    c = FINISH("listeners", "INT://:1,EXT://:2", "listener.security.protocol.map",
               "INT:PLAINTEXT,EXT:PLAINTEXT", "inter.broker.listener.name", "int");
    CU_ASSERT_STRING_EQUAL(config_inter_broker_listener(c), "INT");
    struct config *over;
    CU_ASSERT_EQUAL_FATAL(config_over(c, &over), ERR_NONE);
    CU_ASSERT_STRING_EQUAL(config_inter_broker_listener(over), "INT");
    config_free(over);
    config_free(c);
}

/* A controller listener that no map names is PLAINTEXT, whatever its name. */
static void test_listeners_controller_protocol(void)
{
    struct config *c =
        FINISH("listeners", "PLAINTEXT://:1,CTL://:2", "controller.listener.names", "CTL");
    check_listener(c, 1, (struct listener){"CTL", "", 2, "127.0.0.1", 0, true, 0});
    config_free(c);
    CU_ASSERT_PTR_NULL(FINISH("listeners", "PLAINTEXT://:1,CTL://:2", "controller.listener.names",
                              "CTL", "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT"));
}

static void check_refused(struct config *c, const char *complains)
{
    CU_ASSERT_PTR_NULL(c);
    if (strstr(message, complains) == NULL)
        fprintf(stderr, "[%s] has no [%s]\n", message, complains);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, complains));
    config_free(c);
}

static void test_listeners_refused_forms(void)
{
    static const char *const bad[] = {
        "PLAINTEXT",       "PLAINTEXT://",        "PLAINTEXT://h",     "PLAINTEXT://h:",
        "PLAINTEXT://h:x", "PLAINTEXT://h:65536", "PLAINTEXT://h:-1",  "://h:1",
        "PLAINTEXT:/h:1",  "PLAINTEXT://::1:1",   "PLAINTEXT://[::1]", "h:1"};
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        check_refused(FINISH("listeners", bad[i]), "not NAME://host:port");
        check_refused(FINISH("listeners", bad[i]), bad[i]);
    }
    char name[80], host[300];
    snprintf(name, sizeof name, "%064d://h:1", 0);
    check_refused(FINISH("listeners", name), "not NAME://host:port");
    snprintf(host, sizeof host, "PLAINTEXT://%0256d:1", 0);
    check_refused(FINISH("listeners", host), "not NAME://host:port");
    check_refused(FINISH("listeners", ",,"), "names no listener");
    check_refused(FINISH("listeners", "PLAINTEXT://:1,plaintext://:2"), "PLAINTEXT twice");
    check_refused(FINISH("listeners", "PLAINTEXT://a:1,A://a:1"), "a:1 twice");
    check_refused(FINISH("listeners",
                         "A://:1,B://:2,C://:3,D://:4,E://:5,F://:6,G://:7,H://:8,I://:9,"
                         "J://:10,K://:11,L://:12,M://:13,N://:14,O://:15,P://:16,Q://:17"),
                  "at most 16");
}

static void test_listeners_refused_combinations(void)
{
    check_refused(FINISH("controller.listener.names", "CTL"), "CTL is not in listeners");
    check_refused(FINISH("controller.listener.names", "PLAINTEXT"), "clients need one");
    check_refused(FINISH("advertised.listeners", "OTHER://h:1"), "OTHER is not in listeners");
    check_refused(FINISH("advertised.listeners", "PLAINTEXT://0.0.0.0:1"), "clients can reach");
    check_refused(FINISH("advertised.listeners", "PLAINTEXT://:1"), "clients can reach");
    check_refused(FINISH("inter.broker.listener.name", "OTHER"), "is not in listeners");
    check_refused(FINISH("listeners", "PLAINTEXT://:1,CTL://:2", "controller.listener.names", "CTL",
                         "inter.broker.listener.name", "CTL"),
                  "is a controller listener");
    check_refused(FINISH("inter.broker.listener.name", "PLAINTEXT",
                         "security.inter.broker.protocol", "PLAINTEXT"),
                  "set one of them");
    check_refused(FINISH("listeners", "SSL://:1"), "SSL is not served yet");
    check_refused(FINISH("listeners", "A://:1"), "no protocol for listener A");
    check_refused(FINISH("listener.security.protocol.map", "PLAINTEXT:SASL_SSL"),
                  "SASL_SSL is not served yet");
    check_refused(FINISH("listener.security.protocol.map", "PLAINTEXT:TLS"), "PLAINTEXT:TLS");
    check_refused(FINISH("listener.security.protocol.map", "PLAINTEXT"), "LISTENER:PROTOCOL");
}

TEST_MAIN(TEST(test_listeners_default), TEST(test_listeners_forms), TEST(test_listeners_advertised),
          TEST(test_listeners_inter_broker), TEST(test_listeners_controller_protocol),
          TEST(test_listeners_refused_forms), TEST(test_listeners_refused_combinations))
