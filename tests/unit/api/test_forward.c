/* Requests for the controller that a client sends to a broker without it. */
#include "api/forward.h"
#include "rpc/peer_impl.h"
#include "two_nodes.h"

static struct arena a;

static void open_all(void)
{
    arena_init(&a, NULL);
    two_nodes_open();
}

static void close_all(void)
{
    two_nodes_close();
    arena_close(&a);
}

static void connect_client(struct link *l, struct side *s)
{
    client_connect(l, s, LISTENER_CLIENTS, "192.0.2.7:1234");
}

static struct create_topics_request_creatable_topic topic = {
    .name = {"t", 1}, .num_partitions = 2, .replication_factor = 1};

static struct create_topics_request create_request(void)
{
    struct create_topics_request req;
    wire_default(&wire_create_topics_request, &req);
    req.topics.v = &topic;
    req.topics.n = 1;
    req.timeout_ms = 10000;
    return req;
}

static int16_t created_error(const void *answer)
{
    const struct create_topics_response *resp = answer;
    CU_ASSERT_FATAL(resp != NULL && resp->topics.n == 1);
    return resp->topics.v[0].error_code;
}

static const struct frame_of of_create = {API_CREATE_TOPICS, 5, 77};

static void test_forward_creates_a_topic(void)
{
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    add_broker(3, "three.example");
    connect_client(&c, &t.two);
    CU_ASSERT_EQUAL(created_error(client_ask(&c, of_create, &req, &a)), K_NONE);
    CU_ASSERT_PTR_NOT_NULL(image_topic_named(&q.image, STR_LIT("t")));
    CU_ASSERT(t.seen_n == 1 && t.seen[0].key == API_ENVELOPE);
    CU_ASSERT_EQUAL(created_error(client_ask(&c, of_create, &req, &a)), K_TOPIC_ALREADY_EXISTS);
    CU_ASSERT_STRING_EQUAL(allowed_principal, "User:ANONYMOUS");
    client_disconnect(&c);
    close_all();
}

static bool versions_of(struct link *c, int16_t key, int16_t *min, int16_t *max)
{
    struct api_versions_request req;
    wire_default(&wire_api_versions_request, &req);
    req.client_software_name = req.client_software_version = STR_LIT("x");
    const struct api_versions_response *resp =
        client_ask(c, (struct frame_of){API_API_VERSIONS, 3, 78}, &req, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->error_code == K_NONE);
    for (int32_t i = 0; i < resp->api_keys.n; i++) {
        *min = resp->api_keys.v[i].min_version;
        *max = resp->api_keys.v[i].max_version;
        if (resp->api_keys.v[i].api_key == key)
            return true;
    }
    return false;
}

static struct peer_range *range_of(int16_t key)
{
    for (size_t i = 0; i < t.peer->ranges_n; i++)
        if (t.peer->ranges[i].key == key)
            return &t.peer->ranges[i];
    CU_FAIL_FATAL("node 1 does not serve it");
    return NULL;
}

/* Clients are told what the controller serves of what travels to it, and no more. */
static void test_forward_only_what_the_controller_serves(void)
{
    struct link c;
    int16_t min, max;
    const struct create_topics_request req = create_request();
    open_all();
    add_broker(3, "three.example");
    connect_client(&c, &t.two);
    CU_ASSERT(versions_of(&c, API_CREATE_TOPICS, &min, &max) && min == 2 && max == 7);
    CU_ASSERT_EQUAL(created_error(client_ask(&c, of_create, &req, &a)), K_NONE);
    CU_ASSERT(versions_of(&c, API_CREATE_TOPICS, &min, &max) && min == 2 && max == 7);
    range_of(API_CREATE_TOPICS)->min = 3;
    range_of(API_CREATE_TOPICS)->max = 6;
    range_of(API_DELETE_TOPICS)->min = 17;
    range_of(API_DELETE_TOPICS)->max = 18;
    range_of(API_ELECT_LEADERS)->key = -1; /* it is older */
    t.peer->ranges_turn++;
    CU_ASSERT(versions_of(&c, API_CREATE_TOPICS, &min, &max) && min == 3 && max == 6);
    CU_ASSERT_FALSE(versions_of(&c, API_DELETE_TOPICS, &min, &max));
    CU_ASSERT_FALSE(versions_of(&c, API_ELECT_LEADERS, &min, &max));
    CU_ASSERT(versions_of(&c, API_PRODUCE, &min, &max) && min == 0 && max == 13); /* it is ours */
    link_disconnect(&t.line, q.now);
    peer_disconnected(t.peer, q.now);
    settle();
    CU_ASSERT(versions_of(&c, API_ELECT_LEADERS, &min, &max));
    client_disconnect(&c);
    close_all();
}

/* With the controller here nothing travels. */
static void test_forward_not_when_here(void)
{
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    t.two.api.controller = q.controller;
    connect_client(&c, &t.two);
    CU_ASSERT_EQUAL(created_error(client_ask(&c, of_create, &req, &a)),
                    K_INVALID_REPLICATION_FACTOR);
    CU_ASSERT(t.seen_n == 0 && t.peer == NULL);
    client_disconnect(&c);
    close_all();
}

/* Whatever a client asks of the controller, another broker's answer is the controller's, byte for
 * byte. */
static void test_forward_same_bytes(void)
{
    struct link one, two;
    int compared = 0;
    open_all();
    connect_client(&one, &t.one);
    connect_client(&two, &t.two);
    for (const struct api_entry *e = api_table; e->key >= 0; e++) {
        if ((e->scope & API_FORWARDED) == 0 || e->key == API_ALTER_CONFIGS ||
            e->key == API_INCREMENTAL_ALTER_CONFIGS)
            continue;
        for (int16_t version = e->min; version <= e->max; version++) {
            struct arena scratch;
            const struct frame_of of = {e->key, version, 1000 + compared};
            arena_init(&scratch, NULL);
            void *body = arena_zalloc(&scratch, e->request->body->size);
            CU_ASSERT_FATAL(wire_random(e->request, version, &scratch, next_random, &q.rng, body) ==
                            ERR_NONE);
            t.seen_n = 0;
            client_send(&one, of, body);
            CU_ASSERT_EQUAL(t.seen[0].key, e->key);
            client_send(&two, of, body);
            pass(120 * S); /* some times are up at once */
            CU_ASSERT(one.out.n > 8 && one.out.n == two.out.n &&
                      memcmp(one.out.p, two.out.p, one.out.n) == 0);
            if (one.out.n != two.out.n)
                fprintf(stderr, "api %d version %d: %zu and %zu bytes\n", e->key, version,
                        one.out.n, two.out.n);
            pipe_drop(&one.out, one.out.n);
            pipe_drop(&two.out, two.out.n);
            arena_close(&scratch);
            compared++;
        }
    }
    CU_ASSERT(compared > 20);
    client_disconnect(&one);
    client_disconnect(&two);
    close_all();
}

/* Without a controller a request waits for one. */
static void test_forward_waits_for_the_controller(void)
{
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    controller_resign(q.controller);
    connect_client(&c, &t.two);
    client_send(&c, of_create, &req);
    for (int i = 0; i < 20; i++)
        pass(S / 10);
    CU_ASSERT_PTR_NULL(client_take(&c, of_create, &a));
    CU_ASSERT(t.seen_n > 3); /* NOT_CONTROLLER was asked again */
    controller_claim(q.controller, raft_epoch(q.raft), q.now);
    pass(2 * S);
    CU_ASSERT_EQUAL(created_error(client_take(&c, of_create, &a)), K_INVALID_REPLICATION_FACTOR);
    client_disconnect(&c);
    close_all();
}

/* The controller was here when it was asked, and resigned before it had an answer: as with Kafka,
 * the next one is asked, and what the first appended is there. */
static void test_forward_again(void)
{
    struct link c;
    struct pipe p;
    const struct create_topics_request req = create_request();
    open_all();
    add_broker(3, "three.example");
    t.two.api.controller = q.controller;
    connect_client(&c, &t.two);
    pipe_init(&p);
    frame_put(&p, of_create, &req);
    link_send(&c, p.p, p.n);
    pipe_close(&p);
    controller_resign(q.controller);
    pass(S);
    CU_ASSERT(t.seen_n > 0 && t.seen[0].key == API_ENVELOPE);
    controller_claim(q.controller, raft_epoch(q.raft), q.now);
    pass(S);
    CU_ASSERT_EQUAL(created_error(client_take(&c, of_create, &a)), K_TOPIC_ALREADY_EXISTS);
    client_disconnect(&c);
    close_all();
}

static void test_forward_time_is_over(void)
{
    struct link c;
    struct create_topics_request req = create_request();
    struct delete_topics_request del;
    const struct frame_of of_delete = {API_DELETE_TOPICS, 5, 78};
    open_all();
    controller_resign(q.controller);
    connect_client(&c, &t.two);
    client_send(&c, of_create, &req);
    pass(9 * S);
    CU_ASSERT_PTR_NULL(client_take(&c, of_create, &a));
    pass(S); /* its own 10 seconds */
    CU_ASSERT_EQUAL(created_error(client_take(&c, of_create, &a)), K_REQUEST_TIMED_OUT);
    wire_default(&wire_delete_topics_request, &del);
    struct str name = STR_LIT("t");
    del.topic_names.v = &name;
    del.topic_names.n = 1;
    del.timeout_ms = INT32_MAX;
    client_send(&c, of_delete, &del);
    pass(59 * S);
    CU_ASSERT_PTR_NULL(client_take(&c, of_delete, &a));
    pass(S); /* Kafka's 60, whatever the client would wait */
    const struct delete_topics_response *resp = client_take(&c, of_delete, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->responses.n == 1);
    CU_ASSERT_EQUAL(resp->responses.v[0].error_code, K_REQUEST_TIMED_OUT);
    client_disconnect(&c);
    close_all();
}

/* A client that leaves does not hold the channel. */
static void test_forward_client_gone(void)
{
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    controller_resign(q.controller);
    connect_client(&c, &t.two);
    client_send(&c, of_create, &req);
    CU_ASSERT_EQUAL(rpc_running_n(t.two.rpc), 1);
    client_disconnect(&c);
    CU_ASSERT_EQUAL(rpc_running_n(t.two.rpc), 0);
    close_all();
}

static void test_forward_connection_lost(void)
{
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    connect_client(&c, &t.two);
    t.hang_up = true;
    client_send(&c, of_create, &req);
    pass(S);
    CU_ASSERT(t.seen_n > 1);
    CU_ASSERT_PTR_NULL(client_take(&c, of_create, &a));
    t.hang_up = false;
    pass(2 * S);
    CU_ASSERT_EQUAL(created_error(client_take(&c, of_create, &a)), K_INVALID_REPLICATION_FACTOR);
    client_disconnect(&c);
    close_all();
}

/* ------------------------------------------------------------------ errors of an Envelope */

static const uint8_t alien[] = {0, 0, 0, 78, 0, 0, 0, 0, 0, 0};
static const uint8_t mine[] = {0, 0, 0, 77, 0, 0, 0, 0, 0, 1, 0};

static void test_forward_errors(void)
{
    const struct envelope_response cases[] = {
        {BYTES_NULL, K_PRINCIPAL_DESERIALIZATION_FAILURE},
        {BYTES_NULL, K_CLUSTER_AUTHORIZATION_FAILED},
        {BYTES_NULL, K_INVALID_REQUEST},
        {BYTES_NULL, 12345},
        {BYTES_NULL, K_NONE},
        {{alien, 0}, K_NONE},
        {{mine, 3}, K_NONE},
        {{alien, sizeof alien}, K_NONE},
    };
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    connect_client(&c, &t.two);
    for (size_t i = 0; i < ARRAY_N(cases); i++) {
        t.scripted = &cases[i];
        CU_ASSERT_EQUAL(created_error(client_ask(&c, of_create, &req, &a)), K_UNKNOWN_SERVER_ERROR);
        CU_ASSERT_FALSE(c.closed);
    }
    client_disconnect(&c);
    close_all();
}

static void test_forward_bytes_as_they_are(void)
{
    const struct envelope_response script = {{mine, sizeof mine}, K_NONE};
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    connect_client(&c, &t.two);
    t.scripted = &script;
    client_send(&c, of_create, &req);
    CU_ASSERT_FATAL(c.out.n == 4 + sizeof mine);
    CU_ASSERT(be32(c.out.p) == sizeof mine && memcmp(c.out.p + 4, mine, sizeof mine) == 0);
    client_disconnect(&c);
    close_all();
}

static void test_forward_unsupported_closes(void)
{
    const struct envelope_response script = {BYTES_NULL, K_UNSUPPORTED_VERSION};
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    connect_client(&c, &t.two);
    t.scripted = &script;
    client_send(&c, of_create, &req);
    CU_ASSERT_TRUE(c.closed);
    CU_ASSERT_PTR_NOT_NULL(strstr(q.env.last_line, "192.0.2.7:1234"));
    client_disconnect(&c);
    close_all();
}

/* ------------------------------------------------------------------ configurations */

typedef struct incremental_alter_configs_request_alter_configs_resource alter_resource;

static struct incremental_alter_configs_request_alterable_config retention = {
    .name = {"retention.ms", 12}, .value = {"1000", 4}};
static struct incremental_alter_configs_request_alterable_config threads = {
    .name = {"log.cleaner.threads", 19}, .value = {"2", 1}};
static struct incremental_alter_configs_request_alterable_config bad_threads = {
    .name = {"log.cleaner.threads", 19}, .value = {"many", 4}};

static alter_resource resource(int8_t type, const char *name,
                               struct incremental_alter_configs_request_alterable_config *c)
{
    return (alter_resource){
        .resource_type = type, .resource_name = str_of(name), .configs = {c, 1}};
}

static const struct frame_of of_alter = {API_INCREMENTAL_ALTER_CONFIGS, 1, 99};

static const struct incremental_alter_configs_response *alter(struct link *c, alter_resource *v,
                                                              int32_t n)
{
    struct incremental_alter_configs_request req;
    wire_default(&wire_incremental_alter_configs_request, &req);
    req.resources.v = v;
    req.resources.n = n;
    const struct incremental_alter_configs_response *resp = client_ask(c, of_alter, &req, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->responses.n == n);
    for (int32_t i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(resp->responses.v[i].resource_type, v[i].resource_type);
        CU_ASSERT(str_eq(resp->responses.v[i].resource_name, v[i].resource_name));
    }
    return resp;
}

/* What this broker judges is done here, the rest by the controller; answers in the request's order.
 */
static void test_forward_alter_configs(void)
{
    struct link c;
    const struct create_topics_request req = create_request();
    open_all();
    add_broker(3, "three.example");
    add_broker(2, "two.example");
    connect_client(&c, &t.two);
    (void)client_ask(&c, of_create, &req, &a);
    t.seen_n = 0;
    alter_resource v[] = {
        resource(CONFIG_RESOURCE_BROKER, "3", &threads),
        resource(CONFIG_RESOURCE_TOPIC, "nobody", &retention),
        resource(CONFIG_RESOURCE_BROKER, "2", &threads),
        resource(CONFIG_RESOURCE_BROKER_LOGGER, "2", &threads),
        resource(CONFIG_RESOURCE_TOPIC, "t", &retention),
        resource(CONFIG_RESOURCE_BROKER, "", &bad_threads),
    };
    const int16_t errors[] = {
        K_INVALID_REQUEST, K_UNKNOWN_TOPIC_OR_PARTITION, K_NONE, K_INVALID_CONFIG, K_NONE,
        K_INVALID_REQUEST};
    const struct incremental_alter_configs_response *resp = alter(&c, v, ARRAY_N(v));
    for (size_t i = 0; i < ARRAY_N(v); i++)
        CU_ASSERT_EQUAL(resp->responses.v[i].error_code, errors[i]);
    CU_ASSERT(t.seen_n == 1 && t.seen[0].key == API_ENVELOPE);
    CU_ASSERT_STRING_EQUAL(
        image_config_value(&q.image, CONFIG_RESOURCE_TOPIC, STR_LIT("t"), STR_LIT("retention.ms")),
        "1000");
    CU_ASSERT_STRING_EQUAL(image_config_value(&q.image, CONFIG_RESOURCE_BROKER, STR_LIT("2"),
                                              STR_LIT("log.cleaner.threads")),
                           "2");
    client_disconnect(&c);
    close_all();
}

/* With nothing left for the controller nobody waits for it. */
static void test_forward_alter_configs_all_here(void)
{
    struct link c;
    alter_resource v[] = {resource(CONFIG_RESOURCE_BROKER, "3", &threads)};
    open_all();
    controller_resign(q.controller);
    connect_client(&c, &t.two);
    CU_ASSERT_EQUAL(alter(&c, v, 1)->responses.v[0].error_code, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(t.seen_n, 0);
    client_disconnect(&c);
    close_all();
}

/* A controller may answer in any order, and about less than it was asked. */
static void test_forward_alter_configs_any_order(void)
{
    struct link c;
    struct buf b;
    const uint8_t header[] = {0, 0, 0, 99, 0};
    struct incremental_alter_configs_response_alter_configs_resource_response answers[] = {
        {K_POLICY_VIOLATION, STR_LIT("no"), CONFIG_RESOURCE_TOPIC, STR_LIT("y")},
        {K_NONE, STR_NULL, CONFIG_RESOURCE_GROUP, STR_LIT("x")},
        {K_NONE, STR_NULL, CONFIG_RESOURCE_TOPIC, STR_LIT("x")},
    };
    struct incremental_alter_configs_response resp = {.responses = {answers, 3}};
    alter_resource v[] = {
        resource(CONFIG_RESOURCE_TOPIC, "x", &retention),
        resource(CONFIG_RESOURCE_TOPIC, "y", &retention),
        resource(CONFIG_RESOURCE_TOPIC, "z", &retention),
    };
    open_all();
    connect_client(&c, &t.two);
    buf_init(&b);
    CU_ASSERT_FATAL(buf_append(&b, header, sizeof header) == ERR_NONE);
    CU_ASSERT_FATAL(wire_encode(&msg_incremental_alter_configs_response, 1, &resp, &b) == ERR_NONE);
    const struct envelope_response script = {{b.p, (int32_t)b.n}, K_NONE};
    t.scripted = &script;
    const struct incremental_alter_configs_response *got = alter(&c, v, 3);
    CU_ASSERT_EQUAL(got->responses.v[0].error_code, K_NONE);
    CU_ASSERT_EQUAL(got->responses.v[1].error_code, K_POLICY_VIOLATION);
    CU_ASSERT(str_eq(got->responses.v[1].error_message, STR_LIT("no")));
    CU_ASSERT_EQUAL(got->responses.v[2].error_code, K_UNKNOWN_SERVER_ERROR);
    const struct envelope_response garbage = {{b.p, (int32_t)b.n - 1}, K_NONE};
    t.scripted = &garbage;
    CU_ASSERT_EQUAL(alter(&c, v, 3)->responses.v[0].error_code, K_UNKNOWN_SERVER_ERROR);
    buf_close(&b);
    client_disconnect(&c);
    close_all();
}

/* ------------------------------------------------------------------ topics made on the way */

static void test_forward_metadata_creates(void)
{
    struct link c;
    struct metadata_request_metadata_request_topic name = {.name = {"auto", 4}};
    struct metadata_request req;
    const struct frame_of of = {API_METADATA, 12, 5};
    open_all();
    add_broker(3, "three.example");
    connect_client(&c, &t.two);
    wire_default(&wire_metadata_request, &req);
    req.topics.v = &name;
    req.topics.n = 1;
    req.allow_auto_topic_creation = true;
    const struct metadata_response *resp = client_ask(&c, of, &req, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->topics.n == 1);
    CU_ASSERT(resp->topics.v[0].error_code == K_NONE && resp->topics.v[0].partitions.n == 1);
    CU_ASSERT(t.seen_n == 1 && t.seen[0].key == API_ENVELOPE);
    controller_resign(q.controller); /* nobody waits long */
    name.name = STR_LIT("later");
    client_send(&c, of, &req);
    pass(5 * S);
    resp = client_take(&c, of, &a);
    CU_ASSERT_FATAL(resp != NULL && resp->topics.n == 1);
    CU_ASSERT_EQUAL(resp->topics.v[0].error_code, K_UNKNOWN_TOPIC_OR_PARTITION);
    client_disconnect(&c);
    close_all();
}

/* Its own topics a broker makes in its own name. */
static void test_forward_find_coordinator_creates(void)
{
    struct link c;
    struct find_coordinator_request req;
    const struct frame_of of = {API_FIND_COORDINATOR, 3, 5};
    open_all();
    connect_client(&c, &t.two);
    wire_default(&wire_find_coordinator_request, &req);
    req.key = STR_LIT("g");
    const struct find_coordinator_response *resp = client_ask(&c, of, &req, &a);
    CU_ASSERT_FATAL(resp != NULL);
    CU_ASSERT_EQUAL(resp->error_code, K_COORDINATOR_NOT_AVAILABLE); /* there is no broker */
    CU_ASSERT(t.seen_n == 1 && t.seen[0].key == API_CREATE_TOPICS && t.seen[0].version == 7);
    client_disconnect(&c);
    close_all();
}

TEST_MAIN(TEST(test_forward_creates_a_topic), TEST(test_forward_only_what_the_controller_serves),
          TEST(test_forward_not_when_here), TEST(test_forward_same_bytes),
          TEST(test_forward_waits_for_the_controller), TEST(test_forward_again),
          TEST(test_forward_time_is_over), TEST(test_forward_client_gone),
          TEST(test_forward_connection_lost), TEST(test_forward_errors),
          TEST(test_forward_bytes_as_they_are), TEST(test_forward_unsupported_closes),
          TEST(test_forward_alter_configs), TEST(test_forward_alter_configs_all_here),
          TEST(test_forward_alter_configs_any_order), TEST(test_forward_metadata_creates),
          TEST(test_forward_find_coordinator_creates))
