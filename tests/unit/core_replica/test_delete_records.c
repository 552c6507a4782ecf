/* DeleteRecords: the log start, its file, segments, followers, every refusal (AD-04). */
#include "restart.h"

enum { ASK_MAX = 6 };

struct query {
    struct delete_records_op op;
    struct delete_records_request request;
    struct delete_records_response response;
    struct delete_records_request_delete_records_topic topics[ASK_MAX];
    struct delete_records_request_delete_records_partition parts[ASK_MAX];
    struct arena arena;
    int done;
};

static void deleted(struct delete_records_op *op)
{
    CONTAINER_OF(op, struct query, op)->done++;
}

static void query_init(struct query *q)
{
    memset(q, 0, sizeof *q);
    arena_init(&q->arena, NULL);
    wire_default(&wire_delete_records_request, &q->request);
    wire_default(&wire_delete_records_response, &q->response);
    q->request.timeout_ms = 1000;
    q->request.topics.v = q->topics;
    q->op = (struct delete_records_op){
        .arena = &q->arena, .request = &q->request, .response = &q->response, .done = deleted};
}

/* A partition more, in a topic entry of its own. */
static void ask(struct query *q, const char *topic, int32_t index, int64_t offset)
{
    const int32_t i = q->request.topics.n++;
    q->topics[i].name = str_of(topic);
    q->topics[i].partitions.v = &q->parts[i];
    q->topics[i].partitions.n = 1;
    q->parts[i].partition_index = index;
    q->parts[i].offset = offset;
}

static void begin(struct fix *f, struct query *q)
{
    CU_ASSERT_EQUAL_FATAL(replicas_delete_records(f->rs, &q->op, f->now), ERR_NONE);
    CU_ASSERT_EQUAL(q->done, 0);
}

struct result {
    int16_t error;
    int64_t low;
};

static struct result result_of(const struct query *q, const char *topic, int32_t index)
{
    for (int32_t i = 0; i < q->response.topics.n; i++) {
        const struct delete_records_response_delete_records_topic_result *t =
            &q->response.topics.v[i];
        for (int32_t k = 0; k < t->partitions.n && str_eq(t->name, str_of(topic)); k++)
            if (t->partitions.v[k].partition_index == index)
                return (struct result){t->partitions.v[k].error_code,
                                       t->partitions.v[k].low_watermark};
    }
    return (struct result){INT16_MAX, 0};
}

static bool is(struct result r, int16_t error, int64_t low)
{
    if (r.error != error || r.low != low)
        printf("error %d low watermark %lld\n", r.error, (long long)r.low);
    return r.error == error && r.low == low;
}

/* One question, answered. */
static struct result delete_to(struct fix *f, const char *topic, int32_t index, int64_t offset)
{
    struct query q;
    query_init(&q);
    ask(&q, topic, index, offset);
    begin(f, &q);
    fix_turn(f);
    CU_ASSERT_EQUAL(q.done, 1);
    const struct result r = result_of(&q, topic, index);
    arena_close(&q.arena);
    return r;
}

static int64_t start_of(struct fix *f, struct uuid t, int32_t index)
{
    return log_start_offset(fix_find(f, t, index)->log);
}

/* Also in the middle of a batch; what lies below is asked for in vain, but no error. */
static void test_delete_records_raises_the_start(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    CU_ASSERT(is(delete_to(&f, "t", 0, 0), K_NONE, 0));
    CU_ASSERT(is(delete_to(&f, "t", 0, 4), K_NONE, 4));
    CU_ASSERT_EQUAL(start_of(&f, t, 0), 4);
    CU_ASSERT(is(delete_to(&f, "t", 0, 4), K_NONE, 4));
    CU_ASSERT(is(delete_to(&f, "t", 0, 2), K_NONE, 4));
    CU_ASSERT(is(delete_to(&f, "t", 0, 10), K_OFFSET_OUT_OF_RANGE, -1));
    CU_ASSERT(is(delete_to(&f, "t", 0, -2), K_OFFSET_OUT_OF_RANGE, -1));
    CU_ASSERT(is(delete_to(&f, "t", 0, INT64_MAX), K_OFFSET_OUT_OF_RANGE, -1));
    CU_ASSERT(is(delete_to(&f, "t", 0, INT64_MIN), K_OFFSET_OUT_OF_RANGE, -1));
    CU_ASSERT(is(delete_to(&f, "t", 0, -1), K_NONE, 9));
    CU_ASSERT_EQUAL(start_of(&f, t, 0), 9);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 10);
    CU_ASSERT(is(delete_to(&f, "t", 1, -1), K_NONE, 0)); /* empty */
    fix_end(&f);
}

static bool nobody(void *ctx, struct str topic)
{
    (void)ctx;
    (void)topic;
    return false;
}

static void test_delete_records_refused(void)
{
    struct fix f = {0};
    struct query q;
    int32_t other[] = {2, 1};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), compact = fix_topic(&f, "compact", 1);
    fix_topic(&f, "both", 1);
    fix_topic(&f, "neither", 1);
    fix_topic(&f, "__consumer_offsets", 1);
    fix_topic_of(&f, "led elsewhere", 1, other, 2);
    fix_topic_config(&f, "compact", "cleanup.policy", "compact");
    fix_topic_config(&f, "both", "cleanup.policy", "compact,delete");
    fix_topic_config(&f, "neither", "cleanup.policy", "");
    CU_ASSERT(is(delete_to(&f, "none", 0, 0), K_UNKNOWN_TOPIC_OR_PARTITION, -1));
    CU_ASSERT(is(delete_to(&f, "t", 1, 0), K_UNKNOWN_TOPIC_OR_PARTITION, -1));
    CU_ASSERT(is(delete_to(&f, "t", -1, 0), K_UNKNOWN_TOPIC_OR_PARTITION, -1));
    CU_ASSERT(is(delete_to(&f, "__consumer_offsets", 0, 0), K_INVALID_TOPIC_EXCEPTION, -1));
    CU_ASSERT(is(delete_to(&f, "__consumer_offsets", 1, 0), K_UNKNOWN_TOPIC_OR_PARTITION, -1));
    CU_ASSERT(is(delete_to(&f, "led elsewhere", 0, 0), K_NOT_LEADER_OR_FOLLOWER, -1));
    CU_ASSERT(is(delete_to(&f, "compact", 0, 0), K_POLICY_VIOLATION, -1));
    CU_ASSERT(is(delete_to(&f, "compact", 0, 100), K_POLICY_VIOLATION, -1));
    CU_ASSERT(is(delete_to(&f, "both", 0, 0), K_NONE, 0));
    CU_ASSERT(is(delete_to(&f, "neither", 0, 0), K_NONE, 0));
    query_init(&q);
    q.op.allowed = nobody;
    ask(&q, "t", 0, 0);
    ask(&q, "none", 0, 0);
    begin(&f, &q);
    fix_turn(&f);
    CU_ASSERT(is(result_of(&q, "t", 0), K_TOPIC_AUTHORIZATION_FAILED, -1));
    CU_ASSERT(is(result_of(&q, "none", 0), K_TOPIC_AUTHORIZATION_FAILED, -1));
    arena_close(&q.arena);
    query_init(&q);
    begin(&f, &q);
    fix_turn(&f);
    CU_ASSERT(q.done == 1 && q.response.topics.n == 0);
    arena_close(&q.arena);
    CU_ASSERT(start_of(&f, t, 0) == 0 && start_of(&f, compact, 0) == 0);
    log_dir_fail(&f.rs->dirs[0], ERR_IO, "test");
    CU_ASSERT(is(delete_to(&f, "t", 0, 0), K_KAFKA_STORAGE_ERROR, -1));
    fix_end(&f);
}

/* A topic or partition named twice is answered once, as it was named last. */
static void test_delete_records_merges(void)
{
    struct fix f = {0};
    struct query q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    for (int32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, i, 9), K_NONE);
    query_init(&q);
    ask(&q, "t", 0, 6);
    ask(&q, "none", 0, 0);
    ask(&q, "t", 1, 50);
    ask(&q, "t", 0, 2);
    ask(&q, "t", 1, 3);
    begin(&f, &q);
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.response.topics.n, 2);
    CU_ASSERT(is(result_of(&q, "t", 0), K_NONE, 2));
    CU_ASSERT(is(result_of(&q, "t", 1), K_NONE, 3));
    CU_ASSERT(is(result_of(&q, "none", 0), K_UNKNOWN_TOPIC_OR_PARTITION, -1));
    arena_close(&q.arena);
    fix_end(&f);
}

/* Nobody is told before the file says so; what was told holds after kill -9. */
static void test_delete_records_waits_for_its_file(void)
{
    struct fix f = {0};
    struct query q, second;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    for (int32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, i, 9), K_NONE);
    query_init(&q);
    query_init(&second);
    q.request.timeout_ms = second.request.timeout_ms = 0; /* time is for the others */
    ask(&q, "t", 0, 4);
    ask(&second, "t", 0, 5);
    ask(&second, "t", 1, 6);
    begin(&f, &q);
    begin(&f, &second); /* while the file is on its way: shares the next */
    fix_settle(&f);
    timers_run(&f.timers, f.now.mono_us + 1);
    fix_settle(&f);
    CU_ASSERT(q.done == 0 && second.done == 0);
    CU_ASSERT_EQUAL(start_of(&f, t, 0), 5); /* readers see it at once */
    memenv_run_jobs(&f.env);
    fix_settle(&f);
    CU_ASSERT(q.done == 1 && second.done == 0);
    CU_ASSERT(is(result_of(&q, "t", 0), K_NONE, 4));
    CU_ASSERT_EQUAL(checkpointed(&f, start_file, "t", 0), 4);
    fix_turn(&f);
    CU_ASSERT_EQUAL(second.done, 1);
    CU_ASSERT(is(result_of(&second, "t", 0), K_NONE, 5));
    CU_ASSERT(is(result_of(&second, "t", 1), K_NONE, 6));
    arena_close(&q.arena);
    arena_close(&second.arena);
    fix_kill(&f);
    restart(&f, false);
    CU_ASSERT(start_of(&f, t, 0) == 5 && start_of(&f, t, 1) == 6);
    CU_ASSERT(log_end_offset(fix_find(&f, t, 0)->log) == 9);
    fix_stop(&f);
    CU_ASSERT_EQUAL(checkpointed(&f, start_file, "t", 1), 6);
    restart(&f, true);
    CU_ASSERT(start_of(&f, t, 0) == 5 && start_of(&f, t, 1) == 6);
    CU_ASSERT(is(delete_to(&f, "t", 0, 5), K_NONE, 5));
    fix_end(&f);
}

/* The file is of those alone whose segments do not say it. */
static void test_delete_records_drops_segments(void)
{
    struct fix f = {0};
    struct query q[2];
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    struct log *log = fix_find(&f, t, 0)->log;
    struct log_config config = fix_find(&f, t, 0)->config.log;
    config.segment_bytes = 200;
    log_set_config(log, &config);
    for (int i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, 0, 2), K_NONE);
    const int32_t segments_n = log_segments_n(log);
    const uint64_t size = log_size_bytes(log);
    CU_ASSERT(segments_n >= 5);
    CU_ASSERT(is(delete_to(&f, "t", 0, 9), K_NONE, 9));
    CU_ASSERT(log_segments_n(log) < segments_n && log_size_bytes(log) < size);
    CU_ASSERT(log_files_start(log) > 0 && log_files_start(log) <= 9);
    for (int i = 0; i < 2; i++) {
        query_init(&q[i]);
        ask(&q[i], "t", 0, i == 0 ? 13 : -1);
        begin(&f, &q[i]);
        fix_settle(&f); /* the second finds the first's removal under way */
    }
    CU_ASSERT(log_segments_n(log) > 1);
    fix_turn(&f);
    CU_ASSERT_EQUAL(log_segments_n(log), 1);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT(q[i].done == 1 && is(result_of(&q[i], "t", 0), K_NONE, i == 0 ? 13 : 20));
        arena_close(&q[i].arena);
    }
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 2), K_NONE);
    CU_ASSERT(is(delete_to(&f, "t", 0, log_files_start(log)), K_NONE, 20));
    const int64_t base = log_files_start(log);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 4), K_NONE); /* rolls */
    const int64_t next = log_end_offset(log) - 4;
    CU_ASSERT(is(delete_to(&f, "t", 0, next), K_NONE, next));
    CU_ASSERT(log_files_start(log) == next && next > base);
    fix_wait(&f, 60000);
    CU_ASSERT_EQUAL(checkpointed(&f, start_file, "t", 0), -1);
    fix_kill(&f);
    restart(&f, false);
    CU_ASSERT_EQUAL(start_of(&f, t, 0), next);
    fix_end(&f);
}

static int32_t three[] = {1, 2, 3};

static void followed(struct fix *f, struct partition *p, int32_t id, int64_t log_start)
{
    follower_fetched(partition_follower(p, id), log_end_offset(p->log), log_start,
                     log_end_offset(p->log), 100 * id, f->now.mono_us);
    replicas_mark_dirty(p);
    fix_turn(f);
}

static struct uuid led_topic(struct fix *f)
{
    for (int32_t id = 1; id <= 3; id++)
        fix_broker(f, id, 100 * id);
    struct uuid t = fix_topic_of(f, "t", 1, three, 3);
    CU_ASSERT_EQUAL(fix_append(f, t, 0, 9), K_NONE);
    for (int32_t id = 2; id <= 3; id++)
        followed(f, fix_find(f, t, 0), id, 0);
    return t;
}

static void test_delete_records_waits_for_followers(void)
{
    struct fix f = {0};
    struct query q[3];
    fix_begin(&f);
    struct uuid t = led_topic(&f);
    struct partition *p = fix_find(&f, t, 0);
    const int64_t offsets[] = {5, 3, 6};
    for (int i = 0; i < 3; i++) {
        query_init(&q[i]);
        ask(&q[i], "t", 0, offsets[i]);
        begin(&f, &q[i]);
    }
    fix_turn(&f);
    followed(&f, p, 2, 6);
    CU_ASSERT(q[0].done == 0 && q[1].done == 0 && q[2].done == 0);
    followed(&f, p, 3, 3);
    CU_ASSERT(q[0].done == 0 && q[1].done == 1);
    CU_ASSERT(is(result_of(&q[1], "t", 0), K_NONE, 3));
    followed(&f, p, 3, 5);
    CU_ASSERT(q[0].done == 1 && q[2].done == 0);
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(q[2].done, 1);
    CU_ASSERT(is(result_of(&q[2], "t", 0), K_REQUEST_TIMED_OUT, 0)); /* as it was asked */
    for (int i = 0; i < 3; i++)
        arena_close(&q[i].arena);
    /* no time: what is there already is told, the rest is late at once */
    query_init(&q[0]);
    q[0].request.timeout_ms = -1;
    ask(&q[0], "t", 0, 7);
    begin(&f, &q[0]);
    fix_turn(&f);
    CU_ASSERT(q[0].done == 1 && is(result_of(&q[0], "t", 0), K_REQUEST_TIMED_OUT, 5));
    arena_close(&q[0].arena);
    CU_ASSERT(is(delete_to(&f, "t", 0, 5), K_NONE, 5));
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    CU_ASSERT(p->high_watermark == 9 && log_end_offset(p->log) == 12);
    CU_ASSERT(is(delete_to(&f, "t", 0, 10), K_OFFSET_OUT_OF_RANGE, -1));
    fix_end(&f);
}

/* A fenced broker does not hold the low watermark; one that was not heard of yet does. */
static void test_delete_records_counts_live_followers(void)
{
    struct fix f = {0};
    struct query q;
    struct register_broker_record r;
    struct image_delta d;
    fix_begin(&f);
    struct uuid t = led_topic(&f);
    struct partition *p = fix_find(&f, t, 0);
    wire_default(&wire_register_broker_record, &r);
    r.broker_id = 3;
    r.broker_epoch = 301;
    r.fenced = true;
    image_delta_init(&d);
    fix_record(&f, &msg_register_broker_record, 3, &r, &d);
    fix_publish(&f, &d);
    query_init(&q);
    ask(&q, "t", 0, 5);
    begin(&f, &q);
    fix_change(&f, t, 0, 1, NULL, 0); /* another epoch: nothing is known of 2 */
    fix_turn(&f);
    CU_ASSERT(q.done == 0 && partition_low_watermark(p) == -1);
    followed(&f, p, 2, 5);
    CU_ASSERT(q.done == 1 && is(result_of(&q, "t", 0), K_NONE, 5));
    arena_close(&q.arena);
    fix_end(&f);
}

static void test_delete_records_ends_early(void)
{
    struct fix f = {0};
    struct query q[4];
    fix_begin(&f);
    struct uuid t = led_topic(&f);
    for (int i = 0; i < 4; i++) {
        query_init(&q[i]);
        ask(&q[i], "t", 0, 2 + i);
    }
    begin(&f, &q[0]);
    fix_turn(&f);
    replicas_delete_records_cancel(&q[0].op); /* the client is gone */
    CU_ASSERT_EQUAL(q[0].done, 0);
    fix_turn(&f);
    CU_ASSERT(q[0].done == 1 && is(result_of(&q[0], "t", 0), K_REQUEST_TIMED_OUT, 0));

    begin(&f, &q[1]);
    fix_turn(&f);
    fix_change(&f, t, 0, 2, NULL, 0); /* we lead no more */
    fix_turn(&f);
    CU_ASSERT(q[1].done == 1 && is(result_of(&q[1], "t", 0), K_NOT_LEADER_OR_FOLLOWER, -1));
    fix_change(&f, t, 0, 1, NULL, 0);

    begin(&f, &q[2]);
    fix_turn(&f);
    CU_ASSERT_EQUAL(q[2].done, 0);
    fix_delete(&f, t);
    fix_turn(&f);
    CU_ASSERT(q[2].done == 1 && is(result_of(&q[2], "t", 0), K_UNKNOWN_TOPIC_OR_PARTITION, -1));

    t = led_topic(&f);
    begin(&f, &q[3]);
    log_dir_fail(&f.rs->dirs[0], ERR_IO, "test");
    fix_turn(&f);
    CU_ASSERT(q[3].done == 1 && is(result_of(&q[3], "t", 0), K_KAFKA_STORAGE_ERROR, -1));
    for (int i = 0; i < 4; i++)
        arena_close(&q[i].arena);
    fix_end(&f);
}

/* No room for the file: it waits for room, but not longer than the client does. */
static void test_delete_records_on_a_full_disk(void)
{
    struct fix f = {0};
    struct query q[2];
    const struct memfs_fault full = {.nth = 1,
                                     .persistent = true,
                                     .err = ERR_NOSPC,
                                     .kinds = MEMFS_KIND(MEMFS_WRITE),
                                     .under = "/data/log-start"};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 9), K_NONE);
    for (int i = 0; i < 2; i++) {
        query_init(&q[i]);
        q[i].request.timeout_ms = i == 0 ? 1000 : 60000;
        ask(&q[i], "t", 0, 4 + i);
    }
    memfs_fault_arm(&f.fs, full);
    begin(&f, &q[0]);
    begin(&f, &q[1]);
    fix_turn(&f);
    CU_ASSERT(memfs_fault_hit(&f.fs));
    memfs_fault_arm(&f.fs, full);
    CU_ASSERT(q[0].done == 0 && q[1].done == 0 && f.failed == 0);
    fix_wait(&f, 1000);
    CU_ASSERT(q[0].done == 1 && q[1].done == 0);
    CU_ASSERT(is(result_of(&q[0], "t", 0), K_REQUEST_TIMED_OUT, 0));
    CU_ASSERT_EQUAL(start_of(&f, t, 0), 5);
    (void)memfs_fault_hit(&f.fs);
    fix_wait(&f, 5000); /* with the high watermarks */
    CU_ASSERT(q[1].done == 1 && is(result_of(&q[1], "t", 0), K_NONE, 5));
    CU_ASSERT_EQUAL(checkpointed(&f, start_file, "t", 0), 5);
    for (int i = 0; i < 2; i++)
        arena_close(&q[i].arena);
    fix_end(&f);
}

/* Our file waits behind one that fails: without time there is nothing to wait for any more. */
static void test_delete_records_behind_a_failed_checkpoint(void)
{
    struct fix f = {0};
    struct query q;
    fix_begin(&f);
    fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, image_topic_named(&f.image, STR_LIT("t"))->id, 0, 9), K_NONE);
    query_init(&q);
    q.request.timeout_ms = 0;
    ask(&q, "t", 0, 4);
    f.now.mono_us += 5000000;
    timers_run(&f.timers, f.now.mono_us); /* the high watermarks are on their way */
    begin(&f, &q);
    fix_settle(&f);
    timers_run(&f.timers, f.now.mono_us);
    fix_settle(&f);
    CU_ASSERT_EQUAL(q.done, 0);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .err = ERR_NOSPC,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                .under = "/data/replication-offset"});
    memenv_run_jobs(&f.env);
    fix_settle(&f);
    CU_ASSERT(memfs_fault_hit(&f.fs));
    CU_ASSERT(q.done == 1 && is(result_of(&q, "t", 0), K_REQUEST_TIMED_OUT, 0));
    fix_wait(&f, 5000);
    CU_ASSERT_EQUAL(checkpointed(&f, start_file, "t", 0), 4);
    arena_close(&q.arena);
    fix_end(&f);
}

/* A reader that waits in a session is told of the new start. */
static void test_delete_records_wakes_sessions(void)
{
    struct fix f = {0};
    struct fix_fetch first, next;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 9), K_NONE);
    fix_fetch_init(&first);
    first.request.session_epoch = 0;
    fix_ask(&first, t, 0, 9);
    fix_fetch_start(&f, &first);
    fix_wait(&f, 500);
    CU_ASSERT_EQUAL_FATAL(first.done, 1);
    fix_fetch_init(&next);
    next.request.session_id = first.response.session_id;
    next.request.session_epoch = 1;
    fix_fetch_start(&f, &next);
    CU_ASSERT_EQUAL(next.done, 0);
    CU_ASSERT(is(delete_to(&f, "t", 0, 4), K_NONE, 4));
    fix_wait(&f, 500);
    CU_ASSERT_EQUAL_FATAL(next.done, 1);
    const struct fetch_response_partition_data *p = fix_answer(&next, t, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_EQUAL(p->log_start_offset, 4);
    fix_fetch_close(&first);
    fix_fetch_close(&next);
    fix_end(&f);
}

TEST_MAIN(TEST(test_delete_records_raises_the_start), TEST(test_delete_records_refused),
          TEST(test_delete_records_merges), TEST(test_delete_records_waits_for_its_file),
          TEST(test_delete_records_drops_segments), TEST(test_delete_records_waits_for_followers),
          TEST(test_delete_records_counts_live_followers), TEST(test_delete_records_ends_early),
          TEST(test_delete_records_on_a_full_disk),
          TEST(test_delete_records_behind_a_failed_checkpoint),
          TEST(test_delete_records_wakes_sessions))
