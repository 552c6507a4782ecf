/* What a node that is no broker of the image's tells of those that are. */
#include "two_nodes.h"

static struct arena a;
static struct link c;

static void open_all(void)
{
    arena_init(&a, NULL);
    two_nodes_open();
    client_connect(&c, &t.one, LISTENER_CLIENTS, "192.0.2.7:1234");
}

static void close_all(void)
{
    client_disconnect(&c);
    two_nodes_close();
    arena_close(&a);
}

/* On brokers 3 and 4, the latter leading. */
static void add_topic(void)
{
    static int32_t ids[] = {4, 3};
    struct create_topics_request_creatable_replica_assignment assignment = {.broker_ids = {ids, 2}};
    struct create_topics_request_creatable_topic topic = {.name = STR_LIT("t"),
                                                          .num_partitions = -1,
                                                          .replication_factor = -1,
                                                          .assignments = {&assignment, 1}};
    struct create_topics_request req;
    wire_default(&wire_create_topics_request, &req);
    req.topics.v = &topic;
    req.topics.n = 1;
    const struct create_topics_response *resp =
        client_ask(&c, (struct frame_of){API_CREATE_TOPICS, 5, 1}, &req, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->topics.v[0].error_code == K_NONE);
}

static const struct metadata_response *metadata(int16_t version)
{
    struct metadata_request_metadata_request_topic name = {.name = STR_LIT("t")};
    struct metadata_request req;
    wire_default(&wire_metadata_request, &req);
    req.topics.v = &name;
    req.topics.n = 1;
    const struct metadata_response *resp =
        client_ask(&c, (struct frame_of){API_METADATA, version, 2}, &req, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->topics.n == 1 && resp->topics.v[0].partitions.n == 1);
    return resp;
}

static void test_several_brokers_metadata(void)
{
    open_all();
    add_broker(3, "three.example");
    add_broker(4, "four.example");
    add_topic();
    const struct metadata_response *resp = metadata(12);
    CU_ASSERT_FATAL(resp->brokers.n == 2);
    CU_ASSERT(str_eq(resp->brokers.v[1].host, STR_LIT("four.example")));
    CU_ASSERT_EQUAL(resp->controller_id, 3); /* a live one: it forwards */
    const struct metadata_response_metadata_response_partition *p =
        &resp->topics.v[0].partitions.v[0];
    CU_ASSERT(p->error_code == K_NONE && p->leader_id == 4 && p->offline_replicas.n == 0);
    close_all();
}

/* Kafka tells versions from 6 on that the leader is there, but not on the client's listener. */
static void test_several_brokers_listener_not_found(void)
{
    open_all();
    add_broker(3, "three.example");
    add_broker_on(4, "OTHER", "four.example");
    add_topic();
    for (int16_t version = 5; version <= 6; version++) {
        const struct metadata_response *resp = metadata(version);
        const struct metadata_response_metadata_response_partition *p =
            &resp->topics.v[0].partitions.v[0];
        CU_ASSERT_EQUAL(resp->brokers.n, 1);
        CU_ASSERT_EQUAL(p->error_code, version < 6 ? K_LEADER_NOT_AVAILABLE : K_LISTENER_NOT_FOUND);
        CU_ASSERT_EQUAL(p->leader_id, -1);
        CU_ASSERT_FATAL(p->offline_replicas.n == 1);
        CU_ASSERT_EQUAL(p->offline_replicas.v[0], 4);
    }
    close_all();
}

/* Nobody can be sent anywhere. */
static void test_several_brokers_no_controller(void)
{
    struct describe_cluster_request req;
    open_all();
    add_broker_on(4, "OTHER", "four.example");
    wire_default(&wire_describe_cluster_request, &req);
    const struct describe_cluster_response *resp =
        client_ask(&c, (struct frame_of){API_DESCRIBE_CLUSTER, 1, 2}, &req, &a);
    CU_ASSERT_FATAL(resp != NULL);
    CU_ASSERT(resp->controller_id == -1 && resp->brokers.n == 0);
    close_all();
}

TEST_MAIN(TEST(test_several_brokers_metadata), TEST(test_several_brokers_listener_not_found),
          TEST(test_several_brokers_no_controller))
