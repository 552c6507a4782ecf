/* Envelopes as the controller takes them, good and bad. */
#include "two_nodes.h"

static struct arena a;
static struct link c;
static int32_t id;

static void open_all(void)
{
    arena_init(&a, NULL);
    two_nodes_open();
    client_connect(&c, &t.one, LISTENER_CONTROLLER, "10.0.0.2:40000");
}

static void close_all(void)
{
    client_disconnect(&c);
    two_nodes_close();
    arena_close(&a);
}

/* A principal as Kafka 4.4 writes it (kafka-cluster.md 9): User, ANONYMOUS, without a token. */
static const uint8_t anonymous[] = {0,   0,   5,   'U', 's', 'e', 'r', 0x0a, 'A', 'N',
                                    'O', 'N', 'Y', 'M', 'O', 'U', 'S', 0,    0};
static const uint8_t alice[] = {0, 0, 5, 'U', 's', 'e', 'r', 6, 'a', 'l', 'i', 'c', 'e', 1, 0};
static const uint8_t four[] = {192, 0, 2, 7};

#define BYTES(p) ((struct bytes){(p), (int32_t)sizeof(p)})

/* ListPartitionReassignments of all, version 0, correlation id 9. */
static const uint8_t list_all[] = {0, 46, 0, 0, 0, 0, 0, 9, 0, 1, 'x', 0, 0, 0, 1, 0, 0, 0};

static struct envelope_request good(void)
{
    return (struct envelope_request){BYTES(list_all), BYTES(anonymous), BYTES(four)};
}

static const struct envelope_response *ask(const struct envelope_request *req)
{
    const struct envelope_response *resp =
        client_ask(&c, (struct frame_of){API_ENVELOPE, 0, ++id}, req, &a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(resp);
    CU_ASSERT_EQUAL(resp->error_code != K_NONE, resp->response_data.n < 0);
    return resp;
}

static int16_t error_of(struct envelope_request req)
{
    return ask(&req)->error_code;
}

/* Header and body of the inner answer, with the inner request's correlation id. */
static void test_envelope_answer(void)
{
    const struct envelope_request req = good();
    open_all();
    const struct envelope_response *resp = ask(&req);
    CU_ASSERT_EQUAL(resp->error_code, K_NONE);
    CU_ASSERT_FATAL(resp->response_data.n > 5);
    CU_ASSERT_EQUAL(be32(resp->response_data.p), 9);
    struct list_partition_reassignments_response inner;
    CU_ASSERT_EQUAL(
        wire_decode(&msg_list_partition_reassignments_response, 0,
                    (struct bytes){resp->response_data.p + 5, resp->response_data.n - 5}, &a,
                    &inner),
        ERR_NONE);
    CU_ASSERT(inner.error_code == K_NONE && inner.topics.n == 0);
    CU_ASSERT_STRING_EQUAL(allowed_principal, "User:ANONYMOUS");
    close_all();
}

static void test_envelope_principal(void)
{
    struct envelope_request req = good();
    static const uint8_t version[] = {0, 1, 2, 'U', 2, 'a', 0, 0};
    static const uint8_t empty[] = {0, 0, 1, 1, 0, 0};
    open_all();
    req.request_principal = BYTES(alice);
    CU_ASSERT_EQUAL(error_of(req), K_NONE);
    CU_ASSERT_STRING_EQUAL(allowed_principal, "User:alice");
    for (int32_t n = 0; n < (int32_t)sizeof alice; n++) {
        req.request_principal.n = n;
        CU_ASSERT_EQUAL(error_of(req), K_PRINCIPAL_DESERIALIZATION_FAILURE);
    }
    req.request_principal = BYTES_NULL;
    CU_ASSERT_EQUAL(error_of(req), K_PRINCIPAL_DESERIALIZATION_FAILURE);
    req.request_principal = BYTES(version);
    CU_ASSERT_EQUAL(error_of(req), K_PRINCIPAL_DESERIALIZATION_FAILURE);
    req.request_principal = BYTES(empty);
    CU_ASSERT_EQUAL(error_of(req), K_NONE);
    CU_ASSERT_STRING_EQUAL(allowed_principal, ":");
    close_all();
}

static void test_envelope_address(void)
{
    struct envelope_request req = good();
    static const uint8_t bytes[17] = {0};
    open_all();
    for (int32_t n = 0; n <= (int32_t)sizeof bytes; n++) {
        req.client_host_address = (struct bytes){bytes, n};
        CU_ASSERT_EQUAL(error_of(req), n == 4 || n == 16 ? K_NONE : K_INVALID_REQUEST);
    }
    close_all();
}

/* Its key and version are changed; the rest is as it is. */
static int16_t error_of_key(int16_t key, int16_t version)
{
    uint8_t frame[sizeof list_all];
    struct envelope_request req = good();
    memcpy(frame, list_all, sizeof frame);
    put_be16(frame, (uint16_t)key);
    put_be16(frame + 2, (uint16_t)version);
    req.request_data = BYTES(frame);
    return error_of(req);
}

static void test_envelope_inner_api(void)
{
    open_all();
    CU_ASSERT_EQUAL(error_of_key(API_LIST_PARTITION_REASSIGNMENTS, 0), K_NONE);
    CU_ASSERT_EQUAL(error_of_key(API_LIST_PARTITION_REASSIGNMENTS, 1), K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(error_of_key(API_LIST_PARTITION_REASSIGNMENTS, -1), K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(error_of_key(API_DELETE_TOPICS, 0), K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(error_of_key(-1, 0), K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(error_of_key(1234, 0), K_UNSUPPORTED_VERSION);
    /* not for the controller; between nodes only; an Envelope in an Envelope */
    CU_ASSERT_EQUAL(error_of_key(API_PRODUCE, 9), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(error_of_key(API_METADATA, 9), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(error_of_key(API_API_VERSIONS, 3), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(error_of_key(API_VOTE, 1), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(error_of_key(API_BROKER_HEARTBEAT, 1), K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(error_of_key(API_ENVELOPE, 0), K_INVALID_REQUEST);
    CU_ASSERT_FALSE(c.closed);
    close_all();
}

/* Cut anywhere, it is no request; what stands behind one is not looked at. */
static void test_envelope_inner_frame(void)
{
    struct envelope_request req = good();
    uint8_t longer[sizeof list_all + 3] = {0};
    open_all();
    for (int32_t n = 0; n < (int32_t)sizeof list_all; n++) {
        req.request_data.n = n;
        CU_ASSERT_EQUAL(error_of(req), K_UNSUPPORTED_VERSION);
    }
    memcpy(longer, list_all, sizeof list_all);
    req.request_data = BYTES(longer);
    CU_ASSERT_EQUAL(error_of(req), K_NONE);
    close_all();
}

static void test_envelope_not_controller(void)
{
    open_all();
    controller_resign(q.controller);
    CU_ASSERT_EQUAL(error_of(good()), K_NOT_CONTROLLER);
    close_all();
}

static void test_envelope_not_allowed(void)
{
    struct envelope_request req = good();
    open_all();
    deny_cluster_action = true;
    req.request_principal = BYTES_NULL; /* not even looked at */
    CU_ASSERT_EQUAL(error_of(req), K_CLUSTER_AUTHORIZATION_FAILED);
    close_all();
}

/* Random requests of any kind in random Envelopes, damaged or not: each is answered, none costs
 * the connection. */
static void test_envelope_random(void)
{
    open_all();
    for (int i = 0; i < 3000; i++) {
        struct arena scratch;
        struct buf b;
        size_t n = 0;
        arena_init(&scratch, NULL);
        buf_init(&b);
        while (api_table[n].key >= 0)
            n++;
        const struct api_entry *e = &api_table[rng_below(&q.rng, n)];
        const int16_t version =
            (int16_t)(e->min + (int16_t)rng_below(&q.rng, (uint64_t)(e->max - e->min + 1)));
        struct request_header header;
        wire_default(&wire_request_header, &header);
        header.request_api_key = e->key;
        header.request_api_version = version;
        void *body = arena_zalloc(&scratch, e->request->body->size);
        CU_ASSERT_FATAL(wire_random(e->request, version, &scratch, next_random, &q.rng, body) ==
                        ERR_NONE);
        CU_ASSERT_FATAL(wire_encode(&msg_request_header,
                                    wire_request_header_version(e->key, version), &header,
                                    &b) == ERR_NONE);
        CU_ASSERT_FATAL(wire_encode(e->request, version, body, &b) == ERR_NONE);
        if (rng_percent(&q.rng, 50))
            b.p[rng_below(&q.rng, b.n)] ^= (uint8_t)(1u << rng_below(&q.rng, 8));
        struct envelope_request req = good();
        req.request_data = (struct bytes){b.p, (int32_t)b.n};
        client_send(&c, (struct frame_of){API_ENVELOPE, 0, ++id}, &req);
        pass(120 * S);
        CU_ASSERT_FATAL(!c.closed);
        CU_ASSERT_PTR_NOT_NULL_FATAL(
            client_take(&c, (struct frame_of){API_ENVELOPE, 0, id}, &scratch));
        t.seen_n = 0;
        buf_close(&b);
        arena_close(&scratch);
    }
    close_all();
}

TEST_MAIN(TEST(test_envelope_answer), TEST(test_envelope_principal), TEST(test_envelope_address),
          TEST(test_envelope_inner_api), TEST(test_envelope_inner_frame),
          TEST(test_envelope_not_controller), TEST(test_envelope_not_allowed),
          TEST(test_envelope_random))
