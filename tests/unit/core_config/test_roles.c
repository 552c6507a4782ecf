/* What a node is told of its cluster: roles, ids, voters, controllers' listeners. */
#include "core/config/config.h"

#include <stdio.h>

#include "support/test.h"

enum { KEYS_MAX = 10 };

struct set {
    const char *key, *value; /* value NULL: leaves the key out */
};

/* A node of a cluster, and what is different. */
struct roles_case {
    struct set changes[KEYS_MAX];
    const char *complains; /* NULL: fits */
};

static char message[600];

static const char *changed(const struct set *changes, const char *key, const char *value)
{
    for (size_t i = 0; i < KEYS_MAX && changes[i].key != NULL; i++)
        if (strcmp(changes[i].key, key) == 0)
            return changes[i].value;
    return value;
}

static void put(struct config *c, const char *key, const char *value)
{
    if (value != NULL)
        CU_ASSERT_EQUAL_FATAL(config_set(c, str_of(key), str_of(value), CONFIG_SET, NULL, NULL,
                                         message, sizeof message),
                              ERR_NONE);
}

/* NULL: refused. */
static struct config *finish(const struct set *changes)
{
    static const struct set node[] = {
        {"node.id", "1"},
        {"process.roles", "broker,controller"},
        {"listeners", "PLAINTEXT://h:9092,CONTROLLER://h:9093"},
        {"controller.listener.names", "CONTROLLER"},
        {"controller.quorum.voters", "1@h:9093,2@h:9193,3@h:9293"},
    };
    struct config *c;
    CU_ASSERT_EQUAL_FATAL(config_new(&c), ERR_NONE);
    for (size_t i = 0; i < ARRAY_N(node); i++)
        put(c, node[i].key, changed(changes, node[i].key, node[i].value));
    for (size_t i = 0; i < KEYS_MAX && changes[i].key != NULL; i++) {
        bool own = false;
        for (size_t k = 0; k < ARRAY_N(node); k++)
            own |= strcmp(node[k].key, changes[i].key) == 0;
        if (!own)
            put(c, changes[i].key, changes[i].value);
    }
    message[0] = '\0';
    if (config_finish(c, message, sizeof message) == ERR_NONE)
        return c;
    config_free(c);
    return NULL;
}

static void check_cases(const struct roles_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct config *c = finish(cases[i].changes);
        const bool right = cases[i].complains == NULL
                               ? c != NULL
                               : c == NULL && strstr(message, cases[i].complains) != NULL;
        if (!right)
            fprintf(stderr, "case %zu: [%s] has no [%s]\n", i, message, cases[i].complains);
        CU_ASSERT(right);
        config_free(c);
    }
}

static void test_roles_of_a_node(void)
{
    struct config *c = finish((struct set[KEYS_MAX]){{0}});
    struct voter_set voters;
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT(config_is_broker(c) && config_is_controller(c) && config_in_cluster(c));
    CU_ASSERT_EQUAL(config_voters(c, &voters), ERR_NONE);
    CU_ASSERT(voters.n == 3 && voters.v[2].id == 3 && voters.v[2].port == 9293);
    config_free(c);
    c = finish((struct set[KEYS_MAX]){
        {"process.roles", " broker "}, {"node.id", "4"}, {"listeners", "PLAINTEXT://h:9092"}});
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT(config_is_broker(c) && !config_is_controller(c));
    config_free(c);
    c = finish((struct set[KEYS_MAX]){{"process.roles", "controller"},
                                      {"listeners", "CONTROLLER://h:9093"}});
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT(!config_is_broker(c) && config_is_controller(c));
    config_free(c);
    c = finish((struct set[KEYS_MAX]){{"process.roles", NULL},
                                      {"node.id", NULL},
                                      {"controller.listener.names", NULL},
                                      {"listeners", NULL},
                                      {"controller.quorum.voters", NULL}});
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT(config_is_broker(c) && config_is_controller(c) && !config_in_cluster(c));
    config_free(c);
}

static void test_roles_ids(void)
{
    static const struct roles_case cases[] = {
        {{{"node.id", NULL}}, "node.id must be set"},
        {{{"node.id", NULL}, {"broker.id", "1"}}, NULL},
        {{{"broker.id", "2"}}, "broker.id=2 differs"},
        {{{"node.id", "4"}}, "must include this node, node.id=4"},
        {{{"node.id", NULL}, {"controller.quorum.voters", "1@h:1"}}, NULL},
        {{{"node.id", "2"}, {"controller.quorum.voters", "1@h:1"}}, "must include this node"},
        {{{"node.id", NULL},
          {"controller.quorum.voters", NULL},
          {"controller.quorum.bootstrap.servers", "h:1"}},
         "node.id must be set"},
    };
    check_cases(cases, ARRAY_N(cases));
}

static void test_roles_voters(void)
{
    static const struct roles_case cases[] = {
        {{{"controller.quorum.voters", " 1@h:1 , 2@[::1]:2,"}}, NULL},
        {{{"controller.quorum.voters", "1@h"}}, "id@host:port"},
        {{{"controller.quorum.voters", "x@h:1"}}, "id@host:port"},
        {{{"controller.quorum.voters", "1@h:1,1@h:2"}}, "each id once"},
        {{{"controller.quorum.voters", "2@h:1,3@h:2"}}, "must include this node"},
        {{{"process.roles", "broker"}, {"listeners", "PLAINTEXT://h:9092"}},
         "must not include this node"},
        {{{"controller.quorum.bootstrap.servers", "h:1"}}, NULL}, /* both, as in Kafka */
        {{{"controller.quorum.voters", NULL},
          {"controller.quorum.bootstrap.servers", "h:1,[::1]:2"}},
         NULL},
        {{{"controller.quorum.voters", NULL}, {"controller.quorum.bootstrap.servers", "h"}},
         "not host:port: h"},
        {{{"controller.quorum.voters", NULL}, {"controller.quorum.bootstrap.servers", "h:1,:2"}},
         "not host:port: :2"},
        {{{"controller.quorum.voters", NULL}, {"controller.quorum.bootstrap.servers", "h:0"}},
         "not host:port: h:0"},
        {{{"process.roles", "broker"},
          {"listeners", "PLAINTEXT://h:9092"},
          {"controller.quorum.voters", NULL}},
         "must say where the controllers are"},
    };
    check_cases(cases, ARRAY_N(cases));
}

static void test_roles_controller_listeners(void)
{
    static const struct roles_case cases[] = {
        {{{"controller.listener.names", NULL}}, "controller.listener.names must be set"},
        {{{"controller.listener.names", "FOO"},
          {"listener.security.protocol.map",
           "FOO:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"}},
         "controller.listener.names=FOO must contain a listener"},
        {{{"controller.listener.names", "CONTROLLER,FOO"}}, NULL},
        {{{"listeners", NULL}}, "must contain a listener of listeners"},
        {{{"listeners", "CONTROLLER://h:9093"}}, "brokers and clients need one too"},
        {{{"process.roles", "broker"}, {"node.id", "4"}},
         "must not be in listeners=PLAINTEXT://h:9092,CONTROLLER://h:9093"},
        {{{"process.roles", "broker"},
          {"node.id", "4"},
          {"listeners", "PLAINTEXT://h:9092"},
          {"controller.listener.names", "SSL"}},
         "SSL is not served yet"},
        {{{"process.roles", "broker"},
          {"node.id", "4"},
          {"listeners", "PLAINTEXT://h:9092"},
          {"controller.listener.names", NULL}},
         "controller.listener.names must be set"},
        {{{"process.roles", "controller"}}, "must contain only listeners of"},
        {{{"process.roles", "controller"}, {"listeners", NULL}}, "must contain only listeners of"},
    };
    check_cases(cases, ARRAY_N(cases));
}

static void test_roles_broker_listeners(void)
{
    static const struct roles_case cases[] = {
        {{{"listeners", "A://h:1,CONTROLLER://h:2"},
          {"listener.security.protocol.map", "A:PLAINTEXT,CONTROLLER:PLAINTEXT"}},
         "inter.broker.listener.name must name the listener of listeners=A://h:1"},
        {{{"listeners", "A://h:1,CONTROLLER://h:2"},
          {"listener.security.protocol.map", "A:PLAINTEXT,CONTROLLER:PLAINTEXT"},
          {"inter.broker.listener.name", "A"}},
         NULL},
        {{{"inter.broker.listener.name", "CONTROLLER"}}, "is a controller listener"},
        {{{"advertised.listeners", "PLAINTEXT://a:1,CONTROLLER://b:2"}}, NULL},
        {{{"process.roles", "broker"},
          {"node.id", "4"},
          {"listeners", "PLAINTEXT://h:9092"},
          {"advertised.listeners", "PLAINTEXT://a:1,CONTROLLER://b:2"}},
         NULL},
        {{{"process.roles", "controller"},
          {"listeners", "CONTROLLER://h:9093"},
          {"inter.broker.listener.name", "PLAINTEXT"}},
         NULL},
    };
    check_cases(cases, ARRAY_N(cases));
    size_t n;
    struct config *c = finish(
        (struct set[KEYS_MAX]){{"advertised.listeners", "CONTROLLER://b:2,PLAINTEXT://a:1"}});
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    const struct listener *l = config_listeners(c, &n);
    CU_ASSERT(n == 2 && l[1].controller && l[1].advertised_port == 2);
    CU_ASSERT_STRING_EQUAL(l[1].advertised_host, "b");
    config_free(c);
}

TEST_MAIN(TEST(test_roles_of_a_node), TEST(test_roles_ids), TEST(test_roles_voters),
          TEST(test_roles_controller_listeners), TEST(test_roles_broker_listeners))
