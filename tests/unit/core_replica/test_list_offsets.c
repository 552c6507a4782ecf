/* ListOffsets and OffsetForLeaderEpoch: all special timestamps, searches by time, epochs. */
#include "fixture.h"

enum { PARTS_MAX = 4 };

struct query {
    struct list_offsets_op op;
    struct list_offsets_request request;
    struct list_offsets_response response;
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request_list_offsets_partition parts[PARTS_MAX];
    struct arena arena;
    int done;
};

static void listed(struct list_offsets_op *op)
{
    CONTAINER_OF(op, struct query, op)->done++;
}

static void query_init(struct query *q, const char *topic)
{
    memset(q, 0, sizeof *q);
    arena_init(&q->arena, NULL);
    wire_default(&wire_list_offsets_request, &q->request);
    wire_default(&wire_list_offsets_response, &q->response);
    wire_default(&wire_list_offsets_request_list_offsets_topic, &q->topic);
    q->request.replica_id = -1;
    q->request.topics.v = &q->topic;
    q->request.topics.n = 1;
    q->topic.name = str_of(topic);
    q->topic.partitions.v = q->parts;
    q->op = (struct list_offsets_op){.arena = &q->arena,
                                     .request = &q->request,
                                     .version = 11,
                                     .response = &q->response,
                                     .done = listed};
}

static struct list_offsets_request_list_offsets_partition *ask(struct query *q, int32_t index,
                                                               int64_t timestamp)
{
    struct list_offsets_request_list_offsets_partition *p = &q->parts[q->topic.partitions.n++];
    wire_default(&wire_list_offsets_request_list_offsets_partition, p);
    p->partition_index = index;
    p->timestamp = timestamp;
    return p;
}

static void run(struct fix *f, struct query *q)
{
    CU_ASSERT_EQUAL_FATAL(replicas_list_offsets(f->rs, &q->op, f->now), ERR_NONE);
    CU_ASSERT_EQUAL(q->done, 0);
    fix_turn(f);
    CU_ASSERT_EQUAL_FATAL(q->done, 1);
    CU_ASSERT_EQUAL_FATAL(q->response.topics.n, 1);
}

struct found {
    int16_t error;
    int64_t offset, timestamp;
    int32_t epoch;
};

static struct found found_at(const struct query *q, int32_t i)
{
    const struct list_offsets_response_list_offsets_partition_response *p =
        &q->response.topics.v[0].partitions.v[i];
    return (struct found){p->error_code, p->offset, p->timestamp, p->leader_epoch};
}

/* One question about t-0. */
static struct found look_up(struct fix *f, int64_t timestamp, int16_t version, int8_t isolation,
                            int32_t replica)
{
    struct query q;
    query_init(&q, "t");
    q.op.version = version;
    q.request.isolation_level = isolation;
    q.request.replica_id = replica;
    ask(&q, 0, timestamp);
    run(f, &q);
    CU_ASSERT_EQUAL_FATAL(q.response.topics.v[0].partitions.n, 1);
    const struct found r = found_at(&q, 0);
    arena_close(&q.arena);
    return r;
}

static bool is(struct found r, int16_t error, int64_t offset, int64_t timestamp, int32_t epoch)
{
    const bool same =
        r.error == error && r.offset == offset && r.timestamp == timestamp && r.epoch == epoch;
    if (!same)
        printf("error %d offset %lld timestamp %lld epoch %d\n", r.error, (long long)r.offset,
               (long long)r.timestamp, r.epoch);
    return same;
}

static void append_at(struct fix *f, struct uuid t, int64_t timestamp, int32_t records_n)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.timestamp = timestamp;
    b.records_n = records_n;
    fix_produce(f, &p, t, 0, 1, &b);
    fix_turn(f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
}

static void test_list_offsets_specials(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT(is(look_up(&f, -1, 11, 0, -1), K_NONE, 0, -1, 0));
    CU_ASSERT(is(look_up(&f, -2, 11, 0, -1), K_NONE, 0, -1, 0));
    CU_ASSERT(is(look_up(&f, -3, 11, 0, -1), K_NONE, -1, -1, -1));
    append_at(&f, t, 5000, 2); /* 5000, 5001 */
    append_at(&f, t, 9000, 1);
    append_at(&f, t, 7000, 1);
    fix_change(&f, t, 0, 1, NULL, 0);
    fix_turn(&f);
    CU_ASSERT(is(look_up(&f, -1, 11, 0, -1), K_NONE, 4, -1, 1));
    CU_ASSERT(is(look_up(&f, -1, 1, 0, -1), K_NONE, 4, -1, -1)); /* no epochs before v4 */
    CU_ASSERT(is(look_up(&f, -1, 11, 1, -1), K_NONE, 4, -1, 1));
    CU_ASSERT(is(look_up(&f, -2, 11, 0, -1), K_NONE, 0, -1, 0));
    CU_ASSERT(is(look_up(&f, -3, 11, 0, -1), K_NONE, 2, 9000, 0));
    CU_ASSERT(is(look_up(&f, -4, 11, 0, -1), K_NONE, 0, -1, 0));
    CU_ASSERT(is(look_up(&f, -5, 11, 0, -1), K_NONE, -1, -1, -1));
    CU_ASSERT(is(look_up(&f, -6, 11, 0, -1), K_NONE, -1, -1, -1));
    CU_ASSERT_EQUAL(look_up(&f, -3, 6, 0, -1).error, K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(look_up(&f, -4, 7, 0, -1).error, K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(look_up(&f, -5, 8, 0, -1).error, K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(look_up(&f, -6, 10, 0, -1).error, K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(look_up(&f, -7, 11, 0, -1).error, K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(look_up(&f, INT64_MIN, 11, 0, -1).error, K_UNSUPPORTED_VERSION);
    CU_ASSERT_EQUAL(log_raise_start(fix_find(&f, t, 0)->log, 3), ERR_NONE);
    CU_ASSERT(is(look_up(&f, -2, 11, 0, -1), K_NONE, 3, -1, 0));
    fix_end(&f);
}

/* LO-01: records stamped 2, 4, 6, 8, in one batch or in four. */
static void test_list_offsets_by_time(void)
{
    const int64_t expected[] = {-1, 0, 0, 1, 1, 2, 2, 3, 3, -1};
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    for (int64_t at = 2; at <= 8; at += 2)
        append_at(&f, t, at, 1);
    for (int64_t at = 1; at <= 9; at++) {
        const int64_t offset = expected[at];
        const int64_t stamp = offset < 0 ? -1 : 2 + 2 * offset;
        CU_ASSERT(is(look_up(&f, at, 11, 0, -1), K_NONE, offset, stamp, offset < 0 ? -1 : 0));
    }
    append_at(&f, t, 3, 1); /* goes back in time: never the first */
    CU_ASSERT(is(look_up(&f, 3, 11, 0, -1), K_NONE, 1, 4, 0));
    append_at(&f, t, 100, 5); /* 100..104 */
    CU_ASSERT(is(look_up(&f, 102, 11, 0, -1), K_NONE, 7, 102, 0));
    CU_ASSERT(is(look_up(&f, -3, 11, 0, -1), K_NONE, 9, 104, 0));
    fix_end(&f);
}

static int32_t three[] = {1, 2, 3};

/* KIP-207 and S8 (KAFKA-2334): while the HW is under the start of the leader's epoch, the end is
 * not told to consumers. */
static void test_list_offsets_not_available(void)
{
    struct fix f = {0};
    fix_begin(&f);
    for (int32_t id = 1; id <= 3; id++)
        fix_broker(&f, id, 100 * id);
    struct uuid t = fix_topic_of(&f, "t", 1, three, 3);
    append_at(&f, t, 1000, 1);
    append_at(&f, t, 2000, 1);
    fix_change(&f, t, 0, 1, NULL, 0); /* epoch 1 begins at 2, the HW is 0 */
    fix_turn(&f);
    CU_ASSERT_EQUAL(look_up(&f, -1, 11, 0, -1).error, K_OFFSET_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(look_up(&f, -1, 11, 0, -1).offset, -1);
    CU_ASSERT_EQUAL(look_up(&f, -1, 4, 0, -1).error, K_LEADER_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(look_up(&f, 1000, 11, 0, -1).error, K_OFFSET_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(look_up(&f, -3, 11, 0, -1).error, K_OFFSET_NOT_AVAILABLE);
    CU_ASSERT_EQUAL(look_up(&f, -2, 11, 0, -1).error, K_NONE);
    CU_ASSERT(is(look_up(&f, -1, 11, 0, 2), K_NONE, 2, -1, 1)); /* a replica: our end */
    CU_ASSERT(is(look_up(&f, -1, 11, 0, -2), K_NONE, 2, -1, 1));

    struct partition *p = fix_find(&f, t, 0);
    for (int32_t id = 2; id <= 3; id++)
        follower_fetched(partition_follower(p, id), 2, 0, 2, 100 * id, f.now.mono_us);
    replicas_mark_dirty(p);
    fix_turn(&f);
    CU_ASSERT(is(look_up(&f, -1, 11, 0, -1), K_NONE, 2, -1, 1));
    CU_ASSERT(is(look_up(&f, 1000, 11, 0, -1), K_NONE, 0, 1000, 0));
    append_at(&f, t, 3000, 1); /* above the HW: as if it were not there */
    CU_ASSERT(is(look_up(&f, 3000, 11, 0, -1), K_NONE, -1, -1, -1));
    CU_ASSERT(is(look_up(&f, 3000, 11, 0, 2), K_NONE, 2, 3000, 1));
    fix_end(&f);
}

static bool nobody(void *ctx, struct str topic)
{
    (void)ctx;
    (void)topic;
    return false;
}

static void test_list_offsets_errors(void)
{
    struct fix f = {0};
    struct query q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    append_at(&f, t, 5, 1);
    query_init(&q, "t");
    ask(&q, 0, -1)->current_leader_epoch = 1;
    ask(&q, 1, -1);
    ask(&q, 7, -1);
    run(&f, &q);
    CU_ASSERT_EQUAL(found_at(&q, 0).error, K_UNKNOWN_LEADER_EPOCH);
    CU_ASSERT_EQUAL(found_at(&q, 1).error, K_NONE);
    CU_ASSERT_EQUAL(found_at(&q, 2).error, K_UNKNOWN_TOPIC_OR_PARTITION);
    arena_close(&q.arena);

    query_init(&q, "t"); /* named twice: refused, once */
    ask(&q, 0, -1);
    ask(&q, 1, -1);
    ask(&q, 0, -2);
    run(&f, &q);
    CU_ASSERT_EQUAL_FATAL(q.response.topics.v[0].partitions.n, 2);
    CU_ASSERT_EQUAL(found_at(&q, 0).error, K_INVALID_REQUEST);
    CU_ASSERT_EQUAL(found_at(&q, 1).error, K_NONE);
    arena_close(&q.arena);

    query_init(&q, "t");
    q.op.allowed = nobody;
    ask(&q, 0, -1);
    run(&f, &q);
    CU_ASSERT_EQUAL(found_at(&q, 0).error, K_TOPIC_AUTHORIZATION_FAILED);
    arena_close(&q.arena);

    fix_change(&f, t, 0, 2, NULL, 0);
    CU_ASSERT_EQUAL(look_up(&f, -1, 11, 0, -1).error, K_NOT_LEADER_OR_FOLLOWER);
    fix_end(&f);
}

/* The topic goes while its log is searched. */
static void test_list_offsets_topic_deleted(void)
{
    struct fix f = {0};
    struct query q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append_at(&f, t, 5, 1);
    query_init(&q, "t");
    ask(&q, 0, 5);
    CU_ASSERT_EQUAL(replicas_list_offsets(f.rs, &q.op, f.now), ERR_NONE);
    fix_settle(&f);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_delete(&f, t);
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(found_at(&q, 0).error, K_NOT_LEADER_OR_FOLLOWER);
    arena_close(&q.arena);
    fix_end(&f);
}

/* ------------------------------------------------------------------ epochs */

static struct offset_for_leader_epoch_response_epoch_end_offset
epoch_end(struct fix *f, const char *topic, int32_t current, int32_t epoch)
{
    struct offset_for_leader_epoch_request_offset_for_leader_partition part;
    struct offset_for_leader_epoch_request_offset_for_leader_topic t;
    struct offset_for_leader_epoch_request req;
    struct offset_for_leader_epoch_response resp;
    struct arena a;
    arena_init(&a, NULL);
    wire_default(&wire_offset_for_leader_epoch_request_offset_for_leader_partition, &part);
    wire_default(&wire_offset_for_leader_epoch_request_offset_for_leader_topic, &t);
    wire_default(&wire_offset_for_leader_epoch_request, &req);
    wire_default(&wire_offset_for_leader_epoch_response, &resp);
    part.current_leader_epoch = current;
    part.leader_epoch = epoch;
    t.topic = str_of(topic);
    t.partitions.v = &part;
    req.topics.v = &t;
    t.partitions.n = req.topics.n = 1;
    CU_ASSERT_EQUAL_FATAL(replicas_offset_for_leader_epoch(f->rs, &req, 4, NULL, NULL, &a, &resp),
                          ERR_NONE);
    const struct offset_for_leader_epoch_response_epoch_end_offset r =
        resp.topics.v[0].partitions.v[0];
    arena_close(&a);
    return r;
}

/* replication.md 5, S6 (KAFKA-7415): epochs 0 at 0, 2 at 1, 3 at 1 without a write. */
static void test_leader_epoch_ends(void)
{
    struct fix f = {0};
    const struct {
        int32_t current, epoch;
        int16_t error;
        int32_t found;
        int64_t end;
    } rows[] = {
        {-1, -1, K_NONE, -1, -1},
        {-1, 0, K_NONE, 0, 1},
        {-1, 1, K_NONE, 0, 1}, /* the largest below it, and where the next began */
        {2, 2, K_NONE, 2, 2},  /* the latest ends at our end */
        {2, 3, K_NONE, -1, -1},
        {1, 0, K_FENCED_LEADER_EPOCH, -1, -1},
        {3, 0, K_UNKNOWN_LEADER_EPOCH, -1, -1},
    };
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append_at(&f, t, 5, 1);
    fix_change(&f, t, 0, 1, NULL, 0);
    fix_change(&f, t, 0, 1, NULL, 0); /* epoch 1 held nothing: 2 begins where it did */
    append_at(&f, t, 5, 1);
    for (size_t i = 0; i < ARRAY_N(rows); i++) {
        const struct offset_for_leader_epoch_response_epoch_end_offset r =
            epoch_end(&f, "t", rows[i].current, rows[i].epoch);
        CU_ASSERT_EQUAL(r.error_code, rows[i].error);
        CU_ASSERT_EQUAL(r.leader_epoch, rows[i].found);
        CU_ASSERT_EQUAL(r.end_offset, rows[i].end);
    }
    CU_ASSERT_EQUAL(epoch_end(&f, "none", -1, 0).error_code, K_UNKNOWN_TOPIC_OR_PARTITION);
    fix_end(&f);
}

TEST_MAIN(TEST(test_list_offsets_specials), TEST(test_list_offsets_by_time),
          TEST(test_list_offsets_not_available), TEST(test_list_offsets_errors),
          TEST(test_list_offsets_topic_deleted), TEST(test_leader_epoch_ends))
