/* The codec on single messages whose bytes are written out here. */
#include "test_codec.h"

#include "wire/api_key.h"
#include "wire/error.h"

static struct arena arena;

static void test_codec_defaults_are_those_of_the_description(void)
{
    struct fetch_request req;
    struct metadata_response_metadata_response_broker *brokers;

    memset(&req, 0x55, sizeof req);
    wire_default(&wire_fetch_request, &req);
    CU_ASSERT_EQUAL(req.cluster_id.n, -1);
    CU_ASSERT_EQUAL(req.replica_id, -1);
    CU_ASSERT_EQUAL(req.replica_state.replica_epoch, -1);
    CU_ASSERT_EQUAL(req.max_bytes, INT32_MAX);
    CU_ASSERT_EQUAL(req.topics.n, 0);
    CU_ASSERT(req.rack_id.n == 0 && req.rack_id.p != NULL);

    arena_init(&arena, NULL);
    brokers = wire_array(&wire_metadata_response_metadata_response_broker, &arena, 3);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(brokers[i].rack.n, -1);
        CU_ASSERT_EQUAL(brokers[i].port, 0);
    }
    CU_ASSERT_PTR_NULL(wire_array(&wire_fetch_request, &arena, SIZE_MAX / 2));
    arena_close(&arena);
}

static void test_codec_absent_fields_decode_to_their_defaults(void)
{
    struct metadata_request req;

    arena_init(&arena, NULL);
    CU_ASSERT_EQUAL(
        wire_decode(&msg_metadata_request, 1, BYTES(0xff, 0xff, 0xff, 0xff), &arena, &req),
        ERR_NONE);
    CU_ASSERT_EQUAL(req.topics.n, -1);
    CU_ASSERT(req.allow_auto_topic_creation);
    CU_ASSERT(!req.include_topic_authorized_operations);
    arena_close(&arena);
}

static void test_codec_refuses_null_where_the_version_has_none(void)
{
    struct metadata_request req;
    struct buf out;
    size_t n;

    arena_init(&arena, NULL);
    buf_init(&out);
    CU_ASSERT_EQUAL(
        wire_decode(&msg_metadata_request, 0, BYTES(0xff, 0xff, 0xff, 0xff), &arena, &req),
        ERR_CORRUPT);
    wire_default(&wire_metadata_request, &req);
    req.topics.n = -1;
    CU_ASSERT_EQUAL(wire_size(&msg_metadata_request, 0, &req, &n), ERR_INVALID);
    CU_ASSERT_EQUAL(wire_encode(&msg_metadata_request, 0, &req, &out), ERR_INVALID);
    CU_ASSERT_EQUAL(wire_encode(&msg_metadata_request, 1, &req, &out), ERR_NONE);
    CU_ASSERT(out.n == 4 && memcmp(out.p, "\xff\xff\xff\xff", 4) == 0);
    buf_close(&out);
    arena_close(&arena);
}

static void test_codec_versions_outside_the_range(void)
{
    struct metadata_request req;
    struct buf out;
    size_t n;

    buf_init(&out);
    wire_default(&wire_metadata_request, &req);
    for (int16_t version = -1; version <= 14; version += 15) {
        CU_ASSERT_EQUAL(wire_decode(&msg_metadata_request, version, BYTES(0), &arena, &req),
                        ERR_UNSUPPORTED);
        CU_ASSERT_EQUAL(wire_size(&msg_metadata_request, version, &req, &n), ERR_UNSUPPORTED);
        CU_ASSERT_EQUAL(wire_encode(&msg_metadata_request, version, &req, &out), ERR_UNSUPPORTED);
        CU_ASSERT_EQUAL(wire_print(&msg_metadata_request, version, &req, &out), ERR_UNSUPPORTED);
    }
    CU_ASSERT_EQUAL(out.n, 0);
    buf_close(&out);
}

/* ReplicaId went in version 15, MaxBytes came in 3 and is ignorable. */
static void test_codec_a_value_that_the_version_cannot_carry(void)
{
    struct fetch_request_fetch_topic topic;
    struct fetch_request req;
    struct fetch_response resp;
    struct buf out;

    buf_init(&out);
    wire_default(&wire_fetch_request, &req);
    req.replica_id = 1;
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_request, 14, &req, &out), ERR_NONE);
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_request, 15, &req, &out), ERR_UNSUPPORTED);
    req.replica_id = -1;
    req.replica_state.replica_id = 1; /* a tagged struct that 14 lacks and that is not ignorable */
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_request, 14, &req, &out), ERR_UNSUPPORTED);
    req.replica_state.replica_id = -1;
    req.cluster_id = STR_LIT("x"); /* ignorable */
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_request, 11, &req, &out), ERR_NONE);

    wire_default(&wire_fetch_request_fetch_topic, &topic);
    topic.topic_id.b[3] = 1; /* ignorable too, in an element */
    req.topics.v = &topic;
    req.topics.n = 1;
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_request, 12, &req, &out), ERR_NONE);

    wire_default(&wire_fetch_response, &resp);
    resp.session_id = 7; /* from version 7, not ignorable */
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_response, 6, &resp, &out), ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(wire_encode(&msg_fetch_response, 7, &resp, &out), ERR_NONE);
    buf_close(&out);
}

static enum err decode_fetch_snapshot_partition(struct bytes in)
{
    struct fetch_snapshot_response resp;
    enum err e;

    arena_init(&arena, NULL);
    e = wire_decode(&msg_fetch_snapshot_response, 0, in, &arena, &resp);
    arena_close(&arena);
    return e;
}

/* throttleTimeMs, errorCode, no topics, then the tags. */
#define SNAPSHOT(...) BYTES(0, 0, 0, 0, 0, 0, 1, __VA_ARGS__)

static void test_codec_tags(void)
{
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(0)), ERR_NONE);
    /* Unknown ones are skipped. */
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(2, 3, 2, 9, 9, 5, 0)), ERR_NONE);
    /* Twice, and out of order. */
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(2, 3, 0, 3, 0)), ERR_CORRUPT);
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(2, 3, 0, 2, 0)), ERR_CORRUPT);
    /* More than came: of tags, of a tag's data. */
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0)),
                    ERR_TRUNCATED);
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(1, 3, 0xff, 0xff, 0xff, 0xff, 0x0f)),
                    ERR_TRUNCATED);
    /* Numbers over 32 bits. */
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(0xff, 0xff, 0xff, 0xff, 0x1f)),
                    ERR_CORRUPT);
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(0x80, 0x80, 0x80, 0x80, 0x80, 0)),
                    ERR_CORRUPT);
    CU_ASSERT_EQUAL(decode_fetch_snapshot_partition(SNAPSHOT(0, 0)), ERR_TRAILING);
}

/* A known tag whose data is shorter or longer than its field: EndTransactionRecord has no field, so
 * AbortTransactionRecord's reason (tag 0, a string) it is. */
static void test_codec_tag_data_fills_its_field(void)
{
    struct abort_transaction_record rec;
    const struct wire_message *m = &msg_abort_transaction_record;

    arena_init(&arena, NULL);
    CU_ASSERT_EQUAL(wire_decode(m, 0, BYTES(1, 0, 3, 3, 'h', 'i'), &arena, &rec), ERR_NONE);
    CU_ASSERT(str_eq(rec.reason, STR_LIT("hi")));
    CU_ASSERT_EQUAL(wire_decode(m, 0, BYTES(1, 0, 2, 3, 'h', 'i'), &arena, &rec), ERR_CORRUPT);
    CU_ASSERT_EQUAL(wire_decode(m, 0, BYTES(1, 0, 4, 3, 'h', 'i', 0), &arena, &rec), ERR_CORRUPT);
    CU_ASSERT_EQUAL(wire_decode(m, 0, BYTES(1, 0, 3, 3, 'h'), &arena, &rec), ERR_TRUNCATED);
    CU_ASSERT_EQUAL(wire_decode(m, 0, BYTES(0), &arena, &rec), ERR_NONE);
    CU_ASSERT_EQUAL(rec.reason.n, -1);
    arena_close(&arena);
}

static void test_codec_tags_leave_when_they_differ_from_the_default(void)
{
    struct abort_transaction_record rec;
    struct buf out;

    buf_init(&out);
    wire_default(&wire_abort_transaction_record, &rec);
    CU_ASSERT_EQUAL(wire_encode(&msg_abort_transaction_record, 0, &rec, &out), ERR_NONE);
    CU_ASSERT(out.n == 1 && out.p[0] == 0);
    out.n = 0;
    rec.reason = STR_LIT(""); /* the default is null */
    CU_ASSERT_EQUAL(wire_encode(&msg_abort_transaction_record, 0, &rec, &out), ERR_NONE);
    CU_ASSERT(out.n == 4 && memcmp(out.p, "\x01\x00\x01\x01", 4) == 0);
    buf_close(&out);
}

/* The only nullable struct in a tag. Its default is one of defaults, not null. */
static void test_codec_a_nullable_struct_in_a_tag(void)
{
    struct consumer_group_member_metadata_value v, again;
    const struct wire_message *m = &msg_consumer_group_member_metadata_value;
    struct buf out;
    size_t size_default, size_null;

    arena_init(&arena, NULL);
    buf_init(&out);
    wire_default(m->body, &v);
    CU_ASSERT_PTR_NOT_NULL(v.classic_member_metadata);
    CU_ASSERT_EQUAL(wire_size(m, 0, &v, &size_default), ERR_NONE);
    v.classic_member_metadata = NULL;
    CU_ASSERT_EQUAL(wire_size(m, 0, &v, &size_null), ERR_NONE);
    CU_ASSERT_EQUAL(size_null, size_default + 3); /* tag, size, 0 */
    CU_ASSERT_EQUAL(wire_encode(m, 0, &v, &out), ERR_NONE);
    CU_ASSERT_EQUAL(wire_decode(m, 0, bytes_of(&out), &arena, &again), ERR_NONE);
    CU_ASSERT_PTR_NULL(again.classic_member_metadata);
    buf_close(&out);
    arena_close(&arena);
}

static void test_codec_strings_over_their_length(void)
{
    static char text[INT16_MAX + 1];
    struct topic_record rec;
    struct buf out;
    size_t n;

    buf_init(&out);
    wire_default(&wire_topic_record, &rec);
    rec.name = (struct str){text, INT16_MAX};
    CU_ASSERT_EQUAL(wire_size(&msg_topic_record, 0, &rec, &n), ERR_NONE);
    rec.name.n++;
    CU_ASSERT_EQUAL(wire_size(&msg_topic_record, 0, &rec, &n), ERR_TOO_LARGE);
    CU_ASSERT_EQUAL(wire_encode(&msg_topic_record, 0, &rec, &out), ERR_TOO_LARGE);
    buf_close(&out);
}

static void test_codec_prefix_says_how_long_it_was(void)
{
    /* Metadata version 12, correlation 7, client "cl", no tags, and a body that stays. */
    struct bytes in = BYTES(0, 3, 0, 12, 0, 0, 0, 7, 0, 2, 'c', 'l', 0, 0xaa, 0xbb);
    struct request_header header;
    size_t used = 0;

    arena_init(&arena, NULL);
    CU_ASSERT_EQUAL(wire_decode_prefix(&msg_request_header, 2, in, &arena, &header, &used),
                    ERR_NONE);
    CU_ASSERT_EQUAL(used, 13);
    CU_ASSERT_EQUAL(header.request_api_key, API_METADATA);
    CU_ASSERT_EQUAL(header.correlation_id, 7);
    CU_ASSERT(str_eq(header.client_id, STR_LIT("cl")));
    in.n = 12;
    CU_ASSERT_EQUAL(wire_decode_prefix(&msg_request_header, 2, in, &arena, &header, &used),
                    ERR_TRUNCATED);
    arena_close(&arena);
}

static void test_codec_header_versions(void)
{
    CU_ASSERT_EQUAL(wire_request_header_version(API_METADATA, 8), 1);
    CU_ASSERT_EQUAL(wire_request_header_version(API_METADATA, 9), 2);
    CU_ASSERT_EQUAL(wire_response_header_version(API_METADATA, 8), 0);
    CU_ASSERT_EQUAL(wire_response_header_version(API_METADATA, 9), 1);
    CU_ASSERT_EQUAL(wire_request_header_version(API_API_VERSIONS, 3), 2);
    CU_ASSERT_EQUAL(wire_response_header_version(API_API_VERSIONS, 3), 0);
    CU_ASSERT_EQUAL(wire_request_header_version(API_SASL_HANDSHAKE, 1), 1); /* never flexible */
    CU_ASSERT_EQUAL(wire_request_header_version(API_KEYS_N, 0), -1);
    CU_ASSERT_EQUAL(wire_response_header_version(-1, 0), -1);
    CU_ASSERT_EQUAL(wire_request_header_version(4, 0), -1); /* LeaderAndIsr is gone */
}

static void test_codec_finds_messages(void)
{
    CU_ASSERT_PTR_EQUAL(wire_find(WIRE_REQUEST, API_FETCH), &msg_fetch_request);
    CU_ASSERT_PTR_EQUAL(wire_find(WIRE_RESPONSE, API_FETCH), &msg_fetch_response);
    CU_ASSERT_PTR_EQUAL(wire_find(WIRE_RECORD, 2), &msg_topic_record);
    CU_ASSERT_PTR_EQUAL(wire_find_name("VotersRecord"), &msg_voters_record);
    CU_ASSERT_PTR_NULL(wire_find(WIRE_REQUEST, 4));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_REQUEST, -1));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_RESPONSE, INT16_MIN));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_RESPONSE, API_KEYS_N));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_RECORD, 6));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_RECORD, INT16_MAX));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_HEADER, -1));
    CU_ASSERT_PTR_NULL(wire_find(WIRE_DATA, 0)); /* such keys are not unique */
    for (size_t i = 0; wire_messages[i] != NULL; i++) {
        const struct wire_message *m = wire_messages[i];
        const bool by_key = m->kind != WIRE_HEADER && m->kind != WIRE_DATA;
        CU_ASSERT_PTR_EQUAL(wire_find(m->kind, m->api_key), by_key ? m : NULL);
    }
    CU_ASSERT_PTR_NULL(wire_find_name("Fetch"));
}

static void test_codec_error_names(void)
{
    CU_ASSERT_STRING_EQUAL(kafka_error_name(K_NONE), "NONE");
    CU_ASSERT_STRING_EQUAL(kafka_error_name(K_NOT_LEADER_OR_FOLLOWER), "NOT_LEADER_OR_FOLLOWER");
    CU_ASSERT_STRING_EQUAL(kafka_error_name(K_UNKNOWN_SERVER_ERROR), "UNKNOWN_SERVER_ERROR");
    CU_ASSERT_STRING_EQUAL(kafka_error_name(12345), "UNKNOWN_SERVER_ERROR");
    CU_ASSERT(kafka_error_retriable(K_NOT_LEADER_OR_FOLLOWER));
    CU_ASSERT(!kafka_error_retriable(K_NONE) && !kafka_error_retriable(K_MESSAGE_TOO_LARGE));
    CU_ASSERT(!kafka_error_retriable(K_UNKNOWN_SERVER_ERROR) && !kafka_error_retriable(12345));
    CU_ASSERT_EQUAL(K_KAFKA_STORAGE_ERROR, 56);
}

TEST_MAIN(TEST(test_codec_defaults_are_those_of_the_description),
          TEST(test_codec_absent_fields_decode_to_their_defaults),
          TEST(test_codec_refuses_null_where_the_version_has_none),
          TEST(test_codec_versions_outside_the_range),
          TEST(test_codec_a_value_that_the_version_cannot_carry), TEST(test_codec_tags),
          TEST(test_codec_tag_data_fills_its_field),
          TEST(test_codec_tags_leave_when_they_differ_from_the_default),
          TEST(test_codec_a_nullable_struct_in_a_tag), TEST(test_codec_strings_over_their_length),
          TEST(test_codec_prefix_says_how_long_it_was), TEST(test_codec_header_versions),
          TEST(test_codec_finds_messages), TEST(test_codec_error_names))
