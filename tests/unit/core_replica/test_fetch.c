/* Fetch: bytes, limits, long polls, errors and their order, epochs, followers. */
#include "base/limits.h"
#include "fixture.h"

static void append(struct fix *f, struct uuid t, int32_t index, size_t value_n)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.value_n = value_n;
    fix_produce(f, &p, t, index, 1, &b);
    fix_turn(f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
}

/* Bytes of a batch with one such record. */
static int32_t batch_n(const struct fix *f, size_t value_n)
{
    struct fix_batch b = fix_plain;
    size_t n;
    b.value_n = value_n;
    free(fix_batch_bytes(f, &b, &n));
    return (int32_t)n;
}

static void test_fetch_reads(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 2), K_NONE);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 1); /* inside the first batch: that comes whole */
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    const struct fetch_response_partition_data *a = fix_answer(&q, t, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_EQUAL(a->error_code, K_NONE);
    CU_ASSERT(a->high_watermark == 5 && a->last_stable_offset == 5 && a->log_start_offset == 0);
    CU_ASSERT_EQUAL(a->aborted_transactions.n, -1);
    struct batch b;
    CU_ASSERT_EQUAL_FATAL(batch_parse((struct bytes){a->records.p, a->records.n}, &b), ERR_NONE);
    CU_ASSERT(b.base_offset == 0 && b.records_n == 3 && b.leader_epoch == 0 && batch_crc_ok(&b));
    CU_ASSERT_EQUAL(q.response.session_id, 0);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_large_is_a_slice(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, LIMIT_ANSWER_COPY_BYTES);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    const struct fetch_response_partition_data *a = fix_answer(&q, t, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_EQUAL_FATAL(a->records.slices_n, 1);
    CU_ASSERT_EQUAL(a->records.n, batch_n(&f, LIMIT_ANSWER_COPY_BYTES));
    CU_ASSERT_EQUAL(a->records.slices[0].n, (uint32_t)a->records.n);
    fix_delete(&f, t); /* the slice keeps its file */
    fix_turn(&f);
    uint8_t head[BATCH_OVERHEAD];
    size_t got;
    struct file *file = a->records.slices[0].f;
    CU_ASSERT_EQUAL(file->fs->ops->pread(file, head, sizeof head, a->records.slices[0].off, &got),
                    ERR_NONE);
    CU_ASSERT_EQUAL(got, sizeof head);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_waits_and_wakes_on_append(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 0);
    fix_ask(&q, t, 1, 0);
    fix_fetch_start(&f, &q);
    fix_wait(&f, 100);
    CU_ASSERT_EQUAL(q.done, 0);
    append(&f, t, 1, 10);
    CU_ASSERT_EQUAL_FATAL(q.done, 1); /* in the same turn */
    CU_ASSERT_EQUAL(fix_answered(&q), 2);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, 0);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->high_watermark, 0);
    CU_ASSERT(fix_answer(&q, t, 1)->records.n > 0);
    fix_fetch_close(&q);
    CU_ASSERT(list_empty(&fix_find(&f, t, 0)->watchers));
    fix_end(&f);
}

static void test_fetch_deadline(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    fix_wait(&f, 499);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NONE);
    fix_fetch_close(&q);
    fix_fetch_init(&q);
    q.request.max_wait_ms = 0;
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 1);
    fix_fetch_close(&q);
    fix_fetch_init(&q);
    q.request.min_bytes = 0;
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 1);
    fix_fetch_close(&q);
    fix_fetch_init(&q); /* nothing is asked for: nothing is waited for */
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 1);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_counts_min_bytes_over_all(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    fix_fetch_init(&q);
    q.request.min_bytes = 3 * batch_n(&f, 10);
    fix_ask(&q, t, 0, 0);
    fix_ask(&q, t, 1, 0);
    fix_fetch_start(&f, &q);
    append(&f, t, 0, 10);
    append(&f, t, 1, 10);
    CU_ASSERT_EQUAL(q.done, 0);
    append(&f, t, 1, 10);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, batch_n(&f, 10));
    CU_ASSERT_EQUAL(fix_answer(&q, t, 1)->records.n, 2 * batch_n(&f, 10));
    fix_fetch_close(&q);
    fix_end(&f);
}

/* Kafka: what would wait at the end of an old segment leaves at once. */
static void test_fetch_does_not_wait_behind_a_segment(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, 10);
    CU_ASSERT_EQUAL(log_roll(fix_find(&f, t, 0)->log, f.now), ERR_NONE);
    append(&f, t, 0, 10);
    fix_fetch_init(&q);
    q.request.min_bytes = 100000;
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, batch_n(&f, 10));
    fix_fetch_close(&q);
    fix_fetch_init(&q);
    q.request.min_bytes = 100000;
    fix_ask(&q, t, 0, 1);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_wait(&f, 500);
    CU_ASSERT_EQUAL(q.done, 1);
    fix_fetch_close(&q);
    fix_end(&f);
}

/* FE-01 */
static void test_fetch_first_batch_passes_all_limits(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 3);
    for (int32_t i = 1; i < 3; i++)
        append(&f, t, i, 5000);
    fix_fetch_init(&q);
    q.request.max_bytes = 1;
    for (int32_t i = 0; i < 3; i++)
        fix_ask(&q, t, i, 0)->partition_max_bytes = 0;
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, 0);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 1)->records.n, batch_n(&f, 5000));
    CU_ASSERT_EQUAL(fix_answer(&q, t, 2)->records.n, 0);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 2)->high_watermark, 1);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_limits(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    const int32_t one = batch_n(&f, 1000);
    for (int i = 0; i < 6; i++)
        append(&f, t, i % 2, 1000);
    fix_fetch_init(&q);
    q.request.max_bytes = 4 * one;
    fix_ask(&q, t, 0, 0)->partition_max_bytes = 2 * one + 10; /* the end cuts a batch */
    fix_ask(&q, t, 1, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, 2 * one + 10);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 1)->records.n, 2 * one - 10);
    fix_fetch_close(&q);
    fix_end(&f);
}

/* Where it was asked for first, as it was asked for last; no level of isolation but the two. */
static void test_fetch_asked_for_twice_and_oddly(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    append(&f, t, 0, 10);
    append(&f, t, 1, 10);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 99);
    fix_ask(&q, t, 1, 0);
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answered(&q), 2);
    CU_ASSERT_EQUAL(q.response.responses.v[0].partitions.v[0].partition_index, 0);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NONE);
    CU_ASSERT_TRUE(fix_answer(&q, t, 0)->records.n > 0);
    fix_fetch_close(&q);

    fix_fetch_init(&q);
    q.request.isolation_level = 2;
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(q.response.error_code, K_UNKNOWN_SERVER_ERROR);
    CU_ASSERT_EQUAL(fix_answered(&q), 0); /* it asked by id */
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_out_of_range(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    for (int i = 0; i < 4; i++)
        append(&f, t, 0, 10);
    struct partition *p = fix_find(&f, t, 0);
    CU_ASSERT_EQUAL(log_raise_start(p->log, 2), ERR_NONE);
    const int64_t offsets[] = {-1, 1, 2, 4, 5};
    for (size_t i = 0; i < ARRAY_N(offsets); i++) {
        struct fix_fetch q;
        const bool within = offsets[i] >= 2 && offsets[i] <= 4;
        fix_fetch_init(&q);
        fix_ask(&q, t, 0, offsets[i]);
        fix_fetch_start(&f, &q);
        if (offsets[i] == 4) /* the end waits */
            fix_wait(&f, 500);
        CU_ASSERT_EQUAL_FATAL(q.done, 1);
        const struct fetch_response_partition_data *a = fix_answer(&q, t, 0);
        CU_ASSERT_EQUAL(a->error_code, within ? K_NONE : K_OFFSET_OUT_OF_RANGE);
        CU_ASSERT_EQUAL(a->high_watermark, within ? 4 : -1);
        CU_ASSERT_EQUAL(a->last_stable_offset, within ? 4 : -1);
        CU_ASSERT_EQUAL(a->log_start_offset, within ? 2 : -1);
        CU_ASSERT_EQUAL(a->records.n > 0, offsets[i] == 2);
        CU_ASSERT_EQUAL(a->aborted_transactions.n, -1);
        fix_fetch_close(&q);
    }
    fix_end(&f);
}

static bool only_u(void *ctx, struct str topic)
{
    (void)ctx;
    return str_eq(topic, STR_LIT("u"));
}

/* Errors let it leave at once; those from before reading come last. */
static void test_fetch_errors_and_their_order(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), u = fix_topic(&f, "u", 1), unknown = {{77}};
    int32_t other[] = {2};
    struct uuid far = fix_topic_of(&f, "far", 1, other, 1);
    fix_fetch_init(&q);
    fix_ask(&q, unknown, 0, 0);
    fix_ask(&q, u, 3, 0);
    fix_ask(&q, far, 0, 0);
    fix_ask(&q, u, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, unknown, 0)->error_code, K_UNKNOWN_TOPIC_ID);
    CU_ASSERT_EQUAL(fix_answer(&q, u, 3)->error_code, K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(fix_answer(&q, far, 0)->error_code, K_NOT_LEADER_OR_FOLLOWER);
    CU_ASSERT_EQUAL(fix_answer(&q, far, 0)->current_leader.leader_id, 2);
    CU_ASSERT_EQUAL(fix_answer(&q, u, 0)->error_code, K_NONE);
    CU_ASSERT_EQUAL_FATAL(q.response.responses.n, 4);
    CU_ASSERT(uuid_eq(q.response.responses.v[0].topic_id, far));
    CU_ASSERT(uuid_eq(q.response.responses.v[1].topic_id, u));
    CU_ASSERT(uuid_eq(q.response.responses.v[2].topic_id, unknown));
    fix_fetch_close(&q);

    fix_fetch_init(&q);
    q.op.allowed = only_u;
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_TOPIC_AUTHORIZATION_FAILED);
    fix_fetch_close(&q);

    fix_fetch_init(&q); /* by name: whether it exists is not told */
    q.op.version = 12;
    q.op.allowed = only_u;
    fix_ask(&q, unknown, 0, 0);
    q.topics[0].topic = STR_LIT("nowhere");
    fix_ask(&q, unknown, 0, 0);
    q.topics[1].topic = STR_LIT("u");
    fix_fetch_start(&f, &q);
    fix_wait(&f, 500);
    CU_ASSERT_EQUAL_FATAL(q.response.responses.n, 2);
    CU_ASSERT(str_eq(q.response.responses.v[0].topic, STR_LIT("u")));
    CU_ASSERT_EQUAL(q.response.responses.v[1].partitions.v[0].error_code,
                    K_TOPIC_AUTHORIZATION_FAILED);
    fix_fetch_close(&q);
    fix_end(&f);
}

/* FE-03: a topic that is not there does not end the wait for one that is. */
static void test_fetch_waits_beside_the_refused(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), unknown = {{77}};
    for (int wake = 0; wake < 2; wake++) {
        fix_fetch_init(&q);
        fix_ask(&q, unknown, 0, 0);
        fix_ask(&q, t, 5, 0);
        fix_ask(&q, t, 0, 0);
        fix_fetch_start(&f, &q);
        fix_wait(&f, 499);
        CU_ASSERT_EQUAL(q.done, 0);
        if (wake)
            append(&f, t, 0, 10);
        fix_wait(&f, wake ? 0 : 1);
        CU_ASSERT_EQUAL_FATAL(q.done, 1);
        CU_ASSERT_EQUAL(fix_answered(&q), 3);
        CU_ASSERT_EQUAL(fix_answer(&q, unknown, 0)->error_code, K_UNKNOWN_TOPIC_ID);
        CU_ASSERT_EQUAL(fix_answer(&q, t, 5)->error_code, K_UNKNOWN_TOPIC_OR_PARTITION);
        CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n > 0, wake == 1);
        fix_fetch_close(&q);
    }
    fix_end(&f);
}

/* FE-09 */
static void test_fetch_epochs(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, 10);
    fix_change(&f, t, 0, 1, NULL, 0); /* epoch 1 begins at 1 */
    append(&f, t, 0, 10);
    const struct {
        int32_t current, last_fetched;
        int64_t offset;
        int16_t error;
        int32_t diverging;
    } rows[] = {
        {-1, -1, 0, K_NONE, -1},
        {1, -1, 0, K_NONE, -1},
        {0, -1, 0, K_FENCED_LEADER_EPOCH, -1},
        {2, -1, 0, K_UNKNOWN_LEADER_EPOCH, -1},
        {1, 0, 1, K_NONE, -1},
        {1, 1, 2, K_NONE, -1},
        {1, 0, 2, K_NONE, 0},                 /* epoch 0 ended at 1 */
        {1, 2, 2, K_OFFSET_OUT_OF_RANGE, -1}, /* not known here */
        {0, 0, 2, K_FENCED_LEADER_EPOCH, -1},
    };
    for (size_t i = 0; i < ARRAY_N(rows); i++) {
        fix_fetch_init(&q);
        q.request.max_wait_ms = 0;
        struct fetch_request_fetch_partition *in = fix_ask(&q, t, 0, rows[i].offset);
        in->current_leader_epoch = rows[i].current;
        in->last_fetched_epoch = rows[i].last_fetched;
        fix_fetch_start(&f, &q);
        const struct fetch_response_partition_data *a = fix_answer(&q, t, 0);
        CU_ASSERT_EQUAL(a->error_code, rows[i].error);
        CU_ASSERT_EQUAL(a->diverging_epoch.epoch, rows[i].diverging);
        CU_ASSERT_EQUAL(a->diverging_epoch.end_offset, rows[i].diverging < 0 ? -1 : 1);
        if (rows[i].diverging >= 0)
            CU_ASSERT_EQUAL(a->records.n, 0);
        CU_ASSERT_EQUAL(a->current_leader.leader_id,
                        rows[i].error == K_FENCED_LEADER_EPOCH ? 1 : -1);
        fix_fetch_close(&q);
    }
    fix_end(&f);
}

static void test_fetch_parked_ends_with_the_epoch_and_the_topic(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 0)->current_leader_epoch = 0;
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_change(&f, t, 0, 1, NULL, 0);
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_FENCED_LEADER_EPOCH);
    fix_fetch_close(&q);

    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_delete(&f, t);
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_UNKNOWN_TOPIC_ID);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_cancelled_ends(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    replicas_fetch_cancel(&q.op);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_settle(&f);
    CU_ASSERT_EQUAL(q.done, 1);
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_cold(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, 2000);
    memfs_cool(&f.fs);
    fix_fetch_init(&q);
    q.request.max_wait_ms = 0;
    fix_ask(&q, t, 0, 0);
    CU_ASSERT_EQUAL(replicas_fetch(f.rs, &q.op, f.now), ERR_NONE);
    fix_settle(&f);
    CU_ASSERT_EQUAL(q.done, 0); /* read ahead by a job first, deadline or not */
    fix_turn(&f);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, batch_n(&f, 2000));
    fix_fetch_close(&q);
    fix_end(&f);
}

static void test_fetch_disk_failed(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, 10);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 1);
    fix_fetch_start(&f, &q);
    log_dir_fail(&f.rs->dirs[0], ERR_IO, "test");
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1); /* the parked one too */
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(f.failed, 1);
    fix_fetch_close(&q);
    fix_fetch_init(&q);
    q.op.version = 5;
    fix_ask(&q, t, 0, 0);
    q.topics[0].topic = STR_LIT("t");
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.response.responses.v[0].partitions.v[0].error_code,
                    K_NOT_LEADER_OR_FOLLOWER); /* older clients do not know 56 */
    fix_fetch_close(&q);
    fix_end(&f);
}

/* ------------------------------------------------------------------ transactions */

static void append_transactional(struct fix *f, struct uuid t, int64_t producer, int32_t sequence)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.attributes = BATCH_TRANSACTIONAL;
    b.producer_id = producer;
    b.producer_epoch = 0;
    b.base_sequence = sequence;
    fix_produce(f, &p, t, 0, 1, &b);
    fix_turn(f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    fix_produce_close(&p);
}

/* Ends a transaction as its coordinator does. */
static void append_marker(struct fix *f, struct uuid t, int64_t producer, bool commit)
{
    const struct batch_builder_args args = {
        .attributes = BATCH_TRANSACTIONAL | BATCH_CONTROL,
        .producer_id = producer,
        .base_sequence = -1,
    };
    const uint8_t key[] = {0, 0, 0, commit}, value[6] = {0};
    struct partition *p = fix_find(f, t, 0);
    struct batch_builder *bb;
    struct bytes out;
    struct batch facts;
    struct log_staged staged;
    CU_ASSERT_EQUAL_FATAL(batch_builder_new(&args, &bb), ERR_NONE);
    CU_ASSERT_EQUAL(batch_builder_add(bb, f->now.wall_ms, (struct bytes){key, sizeof key},
                                      (struct bytes){value, sizeof value}, NULL, 0),
                    ERR_NONE);
    CU_ASSERT_EQUAL(batch_builder_finish(bb, &out), ERR_NONE);
    CU_ASSERT_EQUAL(batch_parse(out, &facts), ERR_NONE);
    CU_ASSERT_EQUAL(log_stage_leader(p->log, (uint8_t *)(uintptr_t)out.p, &facts, 0,
                                     LOG_COORDINATOR, f->now, &staged),
                    ERR_NONE);
    replicas_mark_dirty(p);
    fix_turn(f);
    batch_builder_free(bb);
}

static void ask_committed(struct fix_fetch *q, struct uuid t, int64_t offset)
{
    fix_fetch_init(q);
    q->request.isolation_level = 1;
    fix_ask(q, t, 0, offset);
}

/* FE-07 */
static void test_fetch_read_committed(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, 10);              /* 0 */
    append_transactional(&f, t, 7, 0); /* 1 */
    append(&f, t, 0, 10);              /* 2 */
    ask_committed(&q, t, 0);
    fix_fetch_start(&f, &q);
    const struct fetch_response_partition_data *a = fix_answer(&q, t, 0);
    CU_ASSERT(a->high_watermark == 3 && a->last_stable_offset == 1);
    CU_ASSERT_EQUAL(a->records.n, batch_n(&f, 10)); /* nothing from the open one on */
    CU_ASSERT_EQUAL(a->aborted_transactions.n, 0);
    fix_fetch_close(&q);

    ask_committed(&q, t, 1);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);     /* at the last stable offset: waits */
    append_marker(&f, t, 7, false); /* 3 */
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    a = fix_answer(&q, t, 0);
    CU_ASSERT(a->high_watermark == 4 && a->last_stable_offset == 4);
    CU_ASSERT_EQUAL_FATAL(a->aborted_transactions.n, 1);
    CU_ASSERT_EQUAL(a->aborted_transactions.v[0].producer_id, 7);
    CU_ASSERT_EQUAL(a->aborted_transactions.v[0].first_offset, 1);
    fix_fetch_close(&q);

    fix_fetch_init(&q); /* uncommitted readers get all, and no list */
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    a = fix_answer(&q, t, 0);
    CU_ASSERT(a->records.n > 3 * batch_n(&f, 10));
    CU_ASSERT_EQUAL(a->aborted_transactions.n, -1);
    fix_fetch_close(&q);
    fix_end(&f);
}

/* ------------------------------------------------------------------ replicas */

static int32_t three[] = {1, 2, 3};

static void ask_as(struct fix_fetch *q, int32_t id, int64_t broker_epoch)
{
    fix_fetch_init(q);
    q->request.max_wait_ms = 0;
    q->request.replica_state.replica_id = id;
    q->request.replica_state.replica_epoch = broker_epoch;
}

/* A follower reads to the end, consumers to the HW, which its fetch raises. */
static void test_fetch_of_followers(void)
{
    struct fix f = {0};
    struct fix_fetch q, consumer;
    fix_begin(&f);
    for (int32_t id = 1; id <= 3; id++)
        fix_broker(&f, id, 100 * id);
    struct uuid t = fix_topic_of(&f, "t", 1, three, 3);
    append(&f, t, 0, 10);
    append(&f, t, 0, 10);
    fix_fetch_init(&consumer);
    fix_ask(&consumer, t, 0, 0);
    fix_fetch_start(&f, &consumer);
    CU_ASSERT_EQUAL(consumer.done, 0);
    for (int32_t id = 2; id <= 3; id++) {
        ask_as(&q, id, 100 * id);
        fix_ask(&q, t, 0, id - 1)->current_leader_epoch = 0;
        fix_fetch_start(&f, &q);
        CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NONE);
        CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, id == 2 ? batch_n(&f, 10) : 0);
        fix_fetch_close(&q);
    }
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 1); /* 2 asked at 1, 3 at 2 */
    CU_ASSERT_EQUAL_FATAL(consumer.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&consumer, t, 0)->records.n, batch_n(&f, 10));
    CU_ASSERT_EQUAL(fix_answer(&consumer, t, 0)->high_watermark, 1);
    fix_fetch_close(&consumer);

    ask_as(&q, 2, 199); /* a former life of broker 2 */
    fix_ask(&q, t, 0, 2);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NOT_LEADER_OR_FOLLOWER);
    fix_fetch_close(&q);
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 1);
    fix_end(&f);
}

/* A follower's long poll wakes on what is appended, not on the HW; it counts once, as it arrived.
 */
static void test_fetch_of_a_waiting_follower(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    for (int32_t id = 1; id <= 3; id++)
        fix_broker(&f, id, 100 * id);
    struct uuid t = fix_topic_of(&f, "t", 1, three, 3);
    append(&f, t, 0, 10);
    fix_wait(&f, 250); /* followers of a new leader do not wait */
    ask_as(&q, 2, 200);
    q.request.max_wait_ms = 500;
    fix_ask(&q, t, 0, 1);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    fix_wait(&f, 10);
    append(&f, t, 0, 10);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->records.n, batch_n(&f, 10));
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 0);
    const struct follower *follower = partition_follower(fix_find(&f, t, 0), 2);
    CU_ASSERT_EQUAL(follower->last_fetch_us, f.now.mono_us - 10000);
    CU_ASSERT_EQUAL(follower->last_fetch_leader_end, 1); /* the end as it was on arrival */
    fix_fetch_close(&q);
    fix_end(&f);
}

/* S23 (KAFKA-14078, KAFKA-13837) */
static void test_fetch_of_unknown_replicas(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    append(&f, t, 0, 10);
    ask_as(&q, 7, -1);
    fix_ask(&q, t, 0, 0)->current_leader_epoch = 0;
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_UNKNOWN_LEADER_EPOCH);
    fix_fetch_close(&q);
    ask_as(&q, 7, -1);
    fix_ask(&q, t, 0, 0);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NOT_LEADER_OR_FOLLOWER);
    fix_fetch_close(&q);
    fix_end(&f);
}

/* S21 (KAFKA-12996): below the start and diverging is out of range. */
static void test_fetch_s21(void)
{
    struct fix f = {0};
    struct fix_fetch q;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    for (int i = 0; i < 3; i++)
        append(&f, t, 0, 10);
    fix_change(&f, t, 0, 1, NULL, 0);
    CU_ASSERT_EQUAL(log_raise_start(fix_find(&f, t, 0)->log, 2), ERR_NONE);
    fix_fetch_init(&q);
    fix_ask(&q, t, 0, 1)->last_fetched_epoch = 0;
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_OFFSET_OUT_OF_RANGE);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->diverging_epoch.epoch, -1);
    fix_fetch_close(&q);
    fix_end(&f);
}

TEST_MAIN(TEST(test_fetch_reads), TEST(test_fetch_large_is_a_slice),
          TEST(test_fetch_waits_and_wakes_on_append), TEST(test_fetch_deadline),
          TEST(test_fetch_counts_min_bytes_over_all),
          TEST(test_fetch_does_not_wait_behind_a_segment),
          TEST(test_fetch_first_batch_passes_all_limits), TEST(test_fetch_limits),
          TEST(test_fetch_asked_for_twice_and_oddly), TEST(test_fetch_out_of_range),
          TEST(test_fetch_errors_and_their_order), TEST(test_fetch_waits_beside_the_refused),
          TEST(test_fetch_epochs), TEST(test_fetch_parked_ends_with_the_epoch_and_the_topic),
          TEST(test_fetch_cancelled_ends), TEST(test_fetch_cold), TEST(test_fetch_disk_failed),
          TEST(test_fetch_read_committed), TEST(test_fetch_of_followers),
          TEST(test_fetch_of_a_waiting_follower), TEST(test_fetch_of_unknown_replicas),
          TEST(test_fetch_s21))
