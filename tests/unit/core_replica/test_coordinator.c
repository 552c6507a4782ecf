/* What coordinators do with partitions: append, read, hear of changes. */
#include "fixture.h"

struct append {
    struct append_op op;
    uint8_t *bytes;
    int done;
    int16_t error;
    int order; /* in which they ended */
};

static struct fix f;
static struct uuid t;
static int ended;

static void append_done(struct append_op *op, int16_t error)
{
    struct append *a = CONTAINER_OF(op, struct append, op);
    a->done++;
    a->error = error;
    a->order = ended++;
}

static int16_t append(struct append *a, int32_t epoch, size_t value_n)
{
    struct fix_batch b = fix_plain;
    size_t n;
    b.value_n = value_n;
    memset(a, 0, sizeof *a);
    a->bytes = fix_batch_bytes(&f, &b, &n);
    a->op = (struct append_op){
        .topic_id = t, .leader_epoch = epoch, .batch = {a->bytes, (int32_t)n}, .done = append_done};
    const int16_t error = replicas_append(f.rs, &a->op, f.now);
    CU_ASSERT_EQUAL(a->done, 0); /* never inside the call */
    return error;
}

static void append_close(struct append *a)
{
    free(a->bytes);
}

static void test_coordinator_appends(void)
{
    struct append a[3];
    struct replicas_ends ends;
    fix_begin(&f);
    t = fix_topic(&f, "t", 1);
    ended = 0;
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(append(&a[i], 0, i == 1 ? 8000 : 10), K_NONE);
        CU_ASSERT_EQUAL(a[i].op.base_offset, i);
    }
    CU_ASSERT_EQUAL(replicas_ends(f.rs, t, 0, &ends), K_NONE);
    CU_ASSERT(ends.start == 0 && ends.staged_end == 3 && ends.end == 0 && ends.high_watermark == 0);
    fix_turn(&f);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT(a[i].done == 1 && a[i].error == K_NONE && a[i].order == i);
        append_close(&a[i]);
    }
    CU_ASSERT_EQUAL(replicas_ends(f.rs, t, 0, &ends), K_NONE);
    CU_ASSERT(ends.end == 3 && ends.high_watermark == 3);
    fix_end(&f);
}

/* Done when the high watermark has passed it, in order, whether in-sync replicas are too few or
 * not. */
static void test_coordinator_waits_for_the_high_watermark(void)
{
    int32_t two[] = {1, 2}, one[] = {1};
    struct append a, b;
    fix_begin(&f);
    fix_broker(&f, 1, f.broker_epoch);
    fix_broker(&f, 2, 1);
    t = fix_topic_of(&f, "t", 1, two, 2);
    ended = 0;
    CU_ASSERT_EQUAL(append(&a, 0, 10), K_NONE);
    fix_turn(&f);
    CU_ASSERT_EQUAL(a.done, 0);
    CU_ASSERT_EQUAL(append(&b, 0, 10), K_NONE);
    f.now.mono_us += 31000 * 1000;
    fix_change(&f, t, 0, -2, one, 1); /* the watermark passes both at once */
    fix_turn(&f);
    CU_ASSERT(a.done == 1 && b.done == 1 && a.error == K_NONE && b.error == K_NONE);
    CU_ASSERT(a.order == 0 && b.order == 1);
    append_close(&a);
    append_close(&b);
    fix_topic_config(&f, "t", "min.insync.replicas", "2");
    CU_ASSERT_EQUAL(append(&a, 0, 10), K_NONE); /* too few for a producer with acks=all */
    fix_turn(&f);
    CU_ASSERT_EQUAL(a.done, 0); /* the watermark stands still (KIP-966) */
    fix_topic_config(&f, "t", "min.insync.replicas", "1");
    CU_ASSERT_EQUAL(append(&b, 0, 10), K_NONE);
    fix_turn(&f);
    CU_ASSERT(a.done == 1 && a.error == K_NONE && b.done == 1);
    append_close(&a);
    append_close(&b);
    fix_end(&f);
}

static void test_coordinator_is_refused(void)
{
    struct append a;
    struct replicas_ends ends;
    struct log_span span;
    fix_begin(&f);
    t = (struct uuid){{77}};
    CU_ASSERT_EQUAL(append(&a, 0, 10), K_UNKNOWN_TOPIC_OR_PARTITION);
    append_close(&a);
    CU_ASSERT_EQUAL(replicas_ends(f.rs, t, 0, &ends), K_UNKNOWN_TOPIC_OR_PARTITION);
    CU_ASSERT_EQUAL(replicas_read(f.rs, t, 0, 0, 100, &span), ERR_OFFLINE);
    t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(append(&a, 1, 10), K_NOT_LEADER_OR_FOLLOWER); /* another epoch */
    append_close(&a);
    fix_topic_config(&f, "t", "max.message.bytes", "1000");
    CU_ASSERT_EQUAL(append(&a, 0, 1000), K_MESSAGE_TOO_LARGE);
    append_close(&a);
    fix_change(&f, t, 0, 2, NULL, 0);
    CU_ASSERT_EQUAL(append(&a, 1, 10), K_NOT_LEADER_OR_FOLLOWER);
    append_close(&a);
    CU_ASSERT_EQUAL(replicas_ends(f.rs, t, 0, &ends), K_NOT_LEADER_OR_FOLLOWER);
    fix_end(&f);
}

static void test_coordinator_hears_of_what_is_lost(void)
{
    struct append a, b;
    struct replicas_ends ends;
    fix_begin(&f);
    t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(append(&a, 0, 10), K_NONE);
    fix_turn(&f);
    append_close(&a);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .persistent = true,
                                                .err = ERR_NOSPC,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                .under = "/data/t-0"});
    ended = 0;
    CU_ASSERT_EQUAL(append(&a, 0, 10), K_NONE);
    CU_ASSERT_EQUAL(append(&b, 0, 10), K_NONE);
    fix_turn(&f);
    (void)memfs_fault_hit(&f.fs);
    CU_ASSERT(a.done == 1 && b.done == 1 && a.order == 0);
    CU_ASSERT(a.error == K_KAFKA_STORAGE_ERROR && b.error == K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(replicas_ends(f.rs, t, 0, &ends), K_NONE);
    CU_ASSERT(ends.staged_end == 1 && ends.end == 1);
    append_close(&a);
    append_close(&b);
    CU_ASSERT_EQUAL(append(&a, 0, 10), K_NONE);
    fix_delete(&f, t);
    fix_turn(&f);
    CU_ASSERT(a.done == 1 && a.error == K_UNKNOWN_TOPIC_OR_PARTITION);
    append_close(&a);
    fix_end(&f);
}

/* ------------------------------------------------------------------ reading */

static int told;

static void watch_changed(struct replicas_watch *w)
{
    (void)w;
    told++;
}

static void test_coordinator_reads_and_watches(void)
{
    struct replicas_watch w = {.changed = watch_changed};
    struct log_span span;
    uint8_t buf[4096];
    struct batch b;
    list_init(&w.link);
    fix_begin(&f);
    t = fix_topic(&f, "t", 1);
    CU_ASSERT_FALSE(replicas_watch(f.rs, t, 1, &w));
    CU_ASSERT_TRUE(replicas_watch(f.rs, t, 0, &w));
    told = 0;
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    CU_ASSERT(told > 0);
    CU_ASSERT_EQUAL(replicas_read(f.rs, t, 0, 0, 1, &span), ERR_NONE); /* one batch at least */
    CU_ASSERT_FATAL(span.n > 0 && span.n <= sizeof buf);
    CU_ASSERT_EQUAL(log_span_read(&span, buf, span.n), ERR_NONE);
    CU_ASSERT_EQUAL(batch_parse((struct bytes){buf, (int32_t)span.n}, &b), ERR_NONE);
    CU_ASSERT_EQUAL(b.records_n, 3);
    CU_ASSERT_EQUAL(replicas_read(f.rs, t, 0, 4, 100, &span), ERR_RANGE);
    told = 0;
    replicas_unwatch(&w);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(told, 0);
    CU_ASSERT_TRUE(replicas_watch(f.rs, t, 0, &w));
    fix_delete(&f, t);
    CU_ASSERT(told > 0 && list_empty(&w.link)); /* it goes with the partition */
    fix_end(&f);
}

TEST_MAIN(TEST(test_coordinator_appends), TEST(test_coordinator_waits_for_the_high_watermark),
          TEST(test_coordinator_is_refused), TEST(test_coordinator_hears_of_what_is_lost),
          TEST(test_coordinator_reads_and_watches))
