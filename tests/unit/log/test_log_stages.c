/* Stages that logs share: one comes back with the write, with a cut and with a refusal; the last
 * given is the next taken; not all are kept. */
#include "base/limits.h"
#include "log/log_impl.h"
#include "unit/log/test_log.h"

static void bench_begin(struct bench *b, struct log_stages *ss)
{
    bench_init(b, 1);
    MUST(bench_new(b));
    b->log->stages = ss;
}

static void stage_one(struct bench *b)
{
    struct batch facts;
    struct log_staged st;
    uint8_t *p = batch_make((struct batch_spec){.value_bytes = 20, .producer_id = -1}, &facts);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    MUST(log_stage_leader(b->log, p, &facts, 0, LOG_CLIENT, b->now, &st));
    free(p);
}

static void test_stages_one_serves_two_logs(void)
{
    struct log_stages ss;
    struct bench a, b;
    log_stages_init(&ss);
    bench_begin(&a, &ss);
    bench_begin(&b, &ss);
    CU_ASSERT_PTR_NULL(a.log->stage);
    stage_one(&a);
    struct stage *st = a.log->stage;
    MUST(log_reset(a.log, 0, a.now)); /* cut */
    CU_ASSERT_PTR_NULL(a.log->stage);
    CU_ASSERT_FALSE(log_dirty(a.log));
    stage_one(&b);
    CU_ASSERT_PTR_EQUAL(b.log->stage, st);
    stage_one(&b);
    CU_ASSERT_EQUAL(log_staged_end(b.log), 2);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 0);
    enum err err = log_write(b.log, b.now);
    if (err == ERR_AGAIN) { /* the directory was made meanwhile */
        bench_settle(&b);
        err = log_write(b.log, b.now);
    }
    CU_ASSERT_EQUAL(err, ERR_NONE);
    CU_ASSERT_EQUAL(log_end_offset(b.log), 2);
    CU_ASSERT_PTR_NULL(b.log->stage);
    stage_one(&a); /* at a's end, not at that of b */
    CU_ASSERT_PTR_EQUAL(a.log->stage, st);
    CU_ASSERT_EQUAL(log_staged_end(a.log), 1);
    bench_close(&a);
    bench_close(&b);
    CU_ASSERT_EQUAL(ss.spare_n, 1);
    log_stages_close(&ss);
}

static void test_stages_not_all_are_kept(void)
{
    struct log_stages ss;
    struct stage *taken[LIMIT_STAGES_SPARE + 1];
    log_stages_init(&ss);
    for (size_t i = 0; i < ARRAY_N(taken); i++) {
        taken[i] = log_stages_take(&ss);
        CU_ASSERT_PTR_NOT_NULL_FATAL(taken[i]);
    }
    for (size_t i = 0; i < ARRAY_N(taken); i++)
        log_stages_give(&ss, taken[i]);
    CU_ASSERT_EQUAL(ss.spare_n, LIMIT_STAGES_SPARE);
    CU_ASSERT_PTR_EQUAL(ss.spare, taken[LIMIT_STAGES_SPARE - 1]);
    log_stages_close(&ss);
    CU_ASSERT_PTR_NULL(ss.spare);
}

TEST_MAIN(TEST(test_stages_one_serves_two_logs), TEST(test_stages_not_all_are_kept))
