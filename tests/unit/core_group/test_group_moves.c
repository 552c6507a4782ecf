/* A coordinator whose partition's leader moves: what waits when it goes is told, what another
 * leader wrote meanwhile is read when it comes back, and what that one never had is gone. */
#include "made.h"

static struct co c;

/* Replicas 1 and 2; the other one follows whenever we lead, as far as it matters. */
static void begin(void)
{
    int32_t two[] = {1, 2};
    co_begin_on(&c, 1, two, 2);
}

/* Out of the ISR it holds nothing back. */
static void elect(int32_t leader)
{
    int32_t isr[] = {leader};
    c.f.now.mono_us += 31000 * (int64_t)1000;
    fix_change(&c.f, c.offsets, 0, leader, isr, 1);
    co_turns(&c);
}

static struct partition *offsets_log(void)
{
    struct partition *p = fix_find(&c.f, c.offsets, 0);
    CU_ASSERT_FATAL(p != NULL && p->log != NULL);
    return p;
}

/* The leader's batch, as a fetcher would append it. */
static void replicate(const char *group, int32_t index, int64_t offset)
{
    struct made m;
    struct bytes batch;
    size_t n;
    struct partition *p = offsets_log();
    made_begin(&m, -1, 0);
    made_offset(&c, &m, group, index, offset);
    CU_ASSERT_EQUAL_FATAL(batch_builder_finish(m.bb, &batch), ERR_NONE);
    uint8_t *at = (uint8_t *)(uintptr_t)batch.p; /* not under its checksum */
    put_be64(at, (uint64_t)log_end_offset(p->log));
    put_be32(at + 12, (uint32_t)p->leader_epoch);
    CU_ASSERT_EQUAL_FATAL(log_stage_follower(p->log, batch, p->leader_epoch, c.f.now, &n),
                          ERR_NONE);
    CU_ASSERT_EQUAL(n, (size_t)batch.n);
    replicas_mark_dirty(p);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(log_end_offset(p->log), log_staged_end(p->log));
    batch_builder_free(m.bb);
    buf_close(&m.key);
    buf_close(&m.value);
}

static void test_moves_read_what_another_leader_wrote(void)
{
    begin();
    elect(1);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    elect(2);
    replicate("g", 0, 6);
    replicate("h", 1, 7);
    replicate("g", 1, -1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), CO_ERROR - K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->groups.n, 0);
    elect(1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 6);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 1), 7);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 8), K_NONE);
    co_end(&c);
}

/* What the next leader did not have is cut while we follow; who asked was told that it failed. */
static void test_moves_lose_what_was_never_replicated(void)
{
    struct co_commit q;
    begin();
    elect(1);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    int32_t both[] = {1, 2};
    fix_change(&c.f, c.offsets, 0, -2, both, 2);
    const int64_t end = log_end_offset(offsets_log()->log);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 6, "");
    co_part(&c, &q, "t", 1, 6, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q.done, 0);
    elect(2);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(log_truncate_to(offsets_log()->log, end, c.f.now), ERR_NONE);
    fix_turn(&c.f);
    replicate("h", 0, 1);
    elect(1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 0), 1);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->end, log_end_offset(offsets_log()->log));
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 7), K_NONE);
    co_end(&c);
}

/* Several epochs at once, as a snapshot tells them. */
static void test_moves_over_epochs_that_were_not_seen(void)
{
    struct partition_change_record r;
    struct image_delta d;
    begin();
    elect(1);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    image_delta_init(&d);
    for (int32_t leader = 2; leader >= 1; leader--) {
        wire_default(&wire_partition_change_record, &r);
        r.topic_id = c.offsets;
        r.partition_id = 0;
        r.leader = leader;
        fix_record(&c.f, &msg_partition_change_record, 0, &r, &d);
    }
    image_delta_close(&d);
    image_delta_init(&d);
    d.everything = true;
    fix_publish(&c.f, &d);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_LOADING);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->epoch, offsets_log()->leader_epoch);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 6), K_NONE);
    co_end(&c);
}

TEST_MAIN(TEST(test_moves_read_what_another_leader_wrote),
          TEST(test_moves_lose_what_was_never_replicated),
          TEST(test_moves_over_epochs_that_were_not_seen))
