/* Produce: acks, timeouts, minimum in-sync replicas, duplicates, a full disk, a failed one. */
#include "fixture.h"

static int32_t three[] = {1, 2, 3};

/* Two followers that are registered and in sync. */
static struct uuid topic_of_three(struct fix *f, const char *min_isr)
{
    for (int32_t id = 1; id <= 3; id++)
        fix_broker(f, id, 100 * id);
    if (min_isr != NULL)
        fix_topic_config(f, "t", "min.insync.replicas", min_isr);
    return fix_topic_of(f, "t", 1, three, 3);
}

/* A follower's fetch at an offset, by hand. */
static void follow(struct fix *f, struct uuid topic, int32_t id, int64_t offset)
{
    struct partition *p = fix_find(f, topic, 0);
    follower_fetched(partition_follower(p, id), offset, 0, log_end_offset(p->log), 100 * id,
                     f->now.mono_us);
    replicas_mark_dirty(p);
    fix_turn(f);
}

static void test_produce_first_waits_for_its_directory(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_turn(&f);
    fix_produce(&f, &p, t, 0, 1, &fix_plain);
    fix_settle(&f);
    CU_ASSERT_EQUAL(p.done, 0); /* a job makes it */
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    CU_ASSERT_EQUAL(p.part.base_offset, 0);
    CU_ASSERT_EQUAL(p.part.log_start_offset, 0);
    CU_ASSERT_EQUAL(p.part.log_append_time_ms, -1);
    fix_produce_close(&p);
    fix_produce(&f, &p, t, 0, 1, &fix_plain);
    fix_settle(&f); /* now a turn is enough */
    CU_ASSERT_EQUAL(p.part.base_offset, 1);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 2);
    fix_end(&f);
}

static void test_produce_acks_of_one_node(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    for (int16_t acks = -1; acks <= 1; acks++) {
        fix_produce(&f, &p, t, 0, acks, &fix_plain);
        fix_turn(&f);
        CU_ASSERT_EQUAL(p.part.error, K_NONE);
        CU_ASSERT_EQUAL(p.part.base_offset, acks + 1);
        fix_produce_close(&p);
    }
    fix_produce(&f, &p, t, 0, 2, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_INVALID_REQUIRED_ACKS);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(timers_next_us(&f.timers) > f.now.mono_us + 4000000, true); /* none armed */
    fix_end(&f);
}

static void test_produce_acks_all_waits_for_the_others(void)
{
    struct fix f = {0};
    struct fix_produce one, all;
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    fix_produce(&f, &all, t, 0, -1, &fix_plain);
    fix_produce(&f, &one, t, 0, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(all.done, 0);
    CU_ASSERT_EQUAL(one.done, 1); /* behind it, and not held up by it */
    CU_ASSERT_EQUAL(one.part.base_offset, 1);
    fix_produce_close(&one);
    follow(&f, t, 2, 2);
    CU_ASSERT_EQUAL(all.done, 0);
    follow(&f, t, 3, 1);
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 1);
    CU_ASSERT_EQUAL(all.part.error, K_NONE);
    fix_produce_close(&all);
    fix_end(&f);
}

static void test_produce_times_out(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_turn(&f);
    fix_wait(&f, 999);
    CU_ASSERT_EQUAL(p.done, 0);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(p.part.error, K_REQUEST_TIMED_OUT);
    CU_ASSERT_EQUAL(p.part.base_offset, 0); /* it is in the log all the same, as Kafka tells */
    fix_produce_close(&p);
    fix_end(&f);
}

static void test_produce_timeout_keeps_the_frame_until_written(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_settle(&f); /* the directory is still being made */
    replicas_produce_cancel(&p.op);
    fix_settle(&f);
    CU_ASSERT_EQUAL(p.done, 0);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE); /* written, and replicated in the same turn */
    fix_produce_close(&p);
    fix_end(&f);
}

/* The same with replicas that lag: it ends as soon as it is written, and not with success. */
static void test_produce_late_ends_when_written(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_settle(&f);
    replicas_produce_cancel(&p.op);
    fix_settle(&f);
    CU_ASSERT_EQUAL(p.done, 0);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_REQUEST_TIMED_OUT);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 1);
    fix_produce_close(&p);
    fix_end(&f);
}

static void test_produce_cancelled_ends(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_turn(&f);
    replicas_produce_cancel(&p.op);
    CU_ASSERT_EQUAL(p.done, 0);
    fix_settle(&f);
    CU_ASSERT_EQUAL(p.part.error, K_REQUEST_TIMED_OUT);
    fix_produce_close(&p);
    fix_end(&f);
}

static void test_produce_min_isr(void)
{
    struct fix f = {0};
    struct fix_produce p;
    int32_t two[] = {1, 2}, one[] = {1};
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, "2");
    fix_change(&f, t, 0, -2, two, 2);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.done, 0);
    fix_change(&f, t, 0, -2, one, 1); /* shrinks while it waits */
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.done, 0); /* the HW is frozen under min ISR */
    fix_wait(&f, 1000);
    CU_ASSERT_EQUAL(p.part.error, K_REQUEST_TIMED_OUT);
    fix_produce_close(&p);

    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_ENOUGH_REPLICAS);
    CU_ASSERT_EQUAL(p.part.log_start_offset, -1);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 1); /* nothing was appended */
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);            /* acks 1 does not ask */
    fix_end(&f);
}

/* The HW passes it, but then fewer are in sync than the topic now wants. */
static void test_produce_too_few_after_append(void)
{
    struct fix f = {0};
    struct fix_produce p;
    int32_t two[] = {1, 2};
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, "1");
    fix_change(&f, t, 0, -2, two, 2);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_turn(&f);
    struct partition *part = fix_find(&f, t, 0);
    follower_fetched(partition_follower(part, 2), 1, 0, 1, 200, f.now.mono_us);
    partition_follower(part, 3)->last_caught_up_us = 0; /* it left long ago */
    CU_ASSERT(partition_advance_high_watermark(part, 1, f.now.mono_us, 1));
    fix_topic_config(&f, "t", "min.insync.replicas", "3");
    replicas_mark_dirty(part);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    fix_produce_close(&p);
    fix_end(&f);
}

static void test_produce_leadership_lost(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    fix_produce(&f, &p, t, 0, -1, &fix_plain);
    fix_turn(&f);
    fix_change(&f, t, 0, 2, NULL, 0);
    fix_settle(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_LEADER_OR_FOLLOWER);
    fix_produce_close(&p);
    fix_produce(&f, &p, t, 0, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_LEADER_OR_FOLLOWER);
    CU_ASSERT_EQUAL(p.part.current_leader, 2);
    CU_ASSERT_EQUAL(p.part.current_leader_epoch, 1);
    fix_produce_close(&p);
    fix_end(&f);
}

/* A new epoch of our own: what the old one appended is not acknowledged by the new (KAFKA-20634).
 */
static void test_produce_new_epoch_of_our_own(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    fix_produce(&f, &p, t, 0, 1, &fix_plain); /* its directory is being made: not written */
    fix_change(&f, t, 0, 1, NULL, 0);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NOT_LEADER_OR_FOLLOWER);
    fix_produce_close(&p);
    const struct partition *part = fix_find(&f, t, 0);
    CU_ASSERT_EQUAL(part->leader_epoch_start, 1); /* the batch belongs to the old epoch */
    const struct epoch_cache *c = log_epochs(part->log);
    CU_ASSERT_EQUAL_FATAL(c->n, 2);
    CU_ASSERT(c->v[0].epoch == 0 && c->v[0].start_offset == 0);
    CU_ASSERT(c->v[1].epoch == 1 && c->v[1].start_offset == 1);
    fix_end(&f);
}

/* S32: a new epoch of the same leader forgets where the followers stood. */
static void test_produce_s32(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    const struct partition *p = fix_find(&f, t, 0);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 2), K_NONE);
    follow(&f, t, 2, 2);
    follow(&f, t, 3, 1);
    CU_ASSERT_EQUAL(p->high_watermark, 1);
    fix_change(&f, t, 0, 1, NULL, 0);
    fix_turn(&f);
    CU_ASSERT(p->followers[0].end_offset == -1 && p->followers[1].end_offset == -1);
    follow(&f, t, 3, 2); /* 2 may have truncated meanwhile */
    CU_ASSERT_EQUAL(p->high_watermark, 1);
    follow(&f, t, 2, 2);
    CU_ASSERT_EQUAL(p->high_watermark, 2);
    fix_end(&f);
}

static void test_produce_old_metadata_is_ignored(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = topic_of_three(&f, NULL);
    struct partition *p = fix_find(&f, t, 0);
    const struct image_partition *ip = image_partition(image_topic_by_id(&f.image, t), 0);
    struct image_partition old = *ip;
    fix_change(&f, t, 0, 1, NULL, 0);
    old.leader = 2;
    CU_ASSERT_EQUAL(partition_apply(p, &old, f.now), ERR_NONE);
    CU_ASSERT(p->leading && p->leader == 1 && p->leader_epoch == 1 && p->partition_epoch == 1);
    fix_end(&f);
}

static void test_produce_refusals(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), internal = fix_topic(&f, "__consumer_offsets", 1);
    fix_produce(&f, &p, t, 1, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_UNKNOWN_TOPIC_OR_PARTITION);
    fix_produce_close(&p);
    fix_produce(&f, &p, (struct uuid){{77}}, 0, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_UNKNOWN_TOPIC_OR_PARTITION);
    fix_produce_close(&p);
    fix_produce(&f, &p, internal, 0, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_INVALID_TOPIC_EXCEPTION);
    fix_produce_close(&p);

    fix_topic_config(&f, "t", "max.message.bytes", "100");
    struct fix_batch b = fix_plain;
    b.value_n = 200;
    fix_produce(&f, &p, t, 0, 1, &b);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_MESSAGE_TOO_LARGE);
    CU_ASSERT_EQUAL(p.part.log_start_offset, -1);
    fix_produce_close(&p);
    b = fix_plain;
    b.timestamp = f.now.wall_ms + 7200000; /* two hours ahead; one is allowed */
    fix_produce(&f, &p, t, 0, 1, &b);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_INVALID_TIMESTAMP);
    CU_ASSERT_EQUAL(p.part.record_errors_n, 1);
    CU_ASSERT_EQUAL(p.part.log_start_offset, 0);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 0);
    fix_end(&f);
}

static int16_t send(struct fix *f, struct uuid t, int16_t epoch, int32_t sequence, int64_t *offset)
{
    struct fix_produce p;
    struct fix_batch b = fix_plain;
    b.producer_id = 5;
    b.producer_epoch = epoch;
    b.base_sequence = sequence;
    fix_produce(f, &p, t, 0, -1, &b);
    fix_turn(f);
    fix_produce_close(&p);
    *offset = p.part.base_offset;
    return p.part.error;
}

static void test_produce_idempotent(void)
{
    struct fix f = {0};
    int64_t offset;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    for (int32_t i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(send(&f, t, 0, i, &offset), K_NONE);
        CU_ASSERT_EQUAL(offset, i);
    }
    for (int32_t i = 4; i >= 0; i--) { /* each of the five is remembered */
        CU_ASSERT_EQUAL(send(&f, t, 0, i, &offset), K_NONE);
        CU_ASSERT_EQUAL(offset, i);
    }
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 5);
    CU_ASSERT_EQUAL(send(&f, t, 0, 7, &offset), K_OUT_OF_ORDER_SEQUENCE_NUMBER);
    CU_ASSERT_EQUAL(offset, -1);
    CU_ASSERT_EQUAL(send(&f, t, 1, 0, &offset), K_NONE);
    CU_ASSERT_EQUAL(offset, 5);
    CU_ASSERT_EQUAL(send(&f, t, 0, 5, &offset), K_INVALID_PRODUCER_EPOCH);
    fix_end(&f);
}

/* Two in one turn, one the other's duplicate, before anything is written. */
static void test_produce_duplicate_of_what_is_staged(void)
{
    struct fix f = {0};
    struct fix_produce a, b;
    struct fix_batch batch = fix_plain;
    batch.producer_id = 5;
    batch.producer_epoch = batch.base_sequence = 0;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_produce(&f, &a, t, 0, 1, &batch);
    fix_produce(&f, &b, t, 0, 1, &batch);
    fix_turn(&f);
    CU_ASSERT(a.part.error == K_NONE && b.part.error == K_NONE);
    CU_ASSERT(a.part.base_offset == 0 && b.part.base_offset == 0);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 1);
    fix_produce_close(&a);
    fix_produce_close(&b);
    fix_end(&f);
}

static void test_produce_flush_messages(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    fix_topic_config(&f, "t", "flush.messages", "1");
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_produce(&f, &p, t, 0, 1, &fix_plain);
    fix_settle(&f);
    CU_ASSERT_EQUAL(p.done, 0); /* written, not synced */
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 2);
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 1);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 2);
    fix_produce_close(&p);
    fix_end(&f);
}

static void test_produce_disk_full(void)
{
    struct fix f = {0};
    struct fix_produce p, q;
    struct fix_batch large = fix_plain;
    large.value_n = 100000;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, t, 1, 1), K_NONE);
    f.fs.limit_bytes = f.fs.used_bytes + 10000;
    fix_produce(&f, &p, t, 0, 1, &large);
    fix_produce(&f, &q, t, 1, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(p.part.base_offset, -1);
    CU_ASSERT_EQUAL(q.part.error, K_NONE); /* the other goes on */
    fix_produce_close(&p);
    fix_produce_close(&q);
    CU_ASSERT_EQUAL(f.failed, 0);
    f.fs.limit_bytes = 0;
    fix_produce(&f, &p, t, 0, 1, &large); /* and so does this one, with room */
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_NONE);
    CU_ASSERT_EQUAL(p.part.base_offset, 1);
    fix_produce_close(&p);
    fix_end(&f);
}

/* An old duplicate in the same turn is not touched by the cut. */
static void test_produce_duplicate_beside_a_cut(void)
{
    struct fix f = {0};
    struct fix_produce dup, large;
    struct fix_batch b = fix_plain, l = fix_plain;
    int64_t offset;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(send(&f, t, 0, 0, &offset), K_NONE);
    b.producer_id = 5;
    b.producer_epoch = b.base_sequence = 0;
    l.value_n = 100000;
    f.fs.limit_bytes = f.fs.used_bytes + 10000;
    fix_produce(&f, &large, t, 0, 1, &l);
    fix_produce(&f, &dup, t, 0, 1, &b);
    fix_turn(&f);
    CU_ASSERT_EQUAL(large.part.error, K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(dup.part.error, K_NONE);
    CU_ASSERT_EQUAL(dup.part.base_offset, 0);
    fix_produce_close(&large);
    fix_produce_close(&dup);
    fix_end(&f);
}

static void test_produce_disk_fails(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 2);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, t, 1, 1), K_NONE);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .err = ERR_IO,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                .under = "/data/t-0"});
    fix_produce(&f, &p, t, 0, 1, &fix_plain);
    fix_turn(&f);
    CU_ASSERT(memfs_fault_hit(&f.fs));
    CU_ASSERT_EQUAL(p.part.error, K_KAFKA_STORAGE_ERROR);
    fix_produce_close(&p);
    CU_ASSERT_EQUAL(f.failed, 1);
    CU_ASSERT(replicas_offline(f.rs));
    CU_ASSERT_EQUAL(fix_append(&f, t, 1, 1), K_KAFKA_STORAGE_ERROR); /* never tried again */
    CU_ASSERT_EQUAL(f.failed, 1);
    fix_end(&f);
    CU_ASSERT_FALSE(f.clean);
}

TEST_MAIN(TEST(test_produce_first_waits_for_its_directory), TEST(test_produce_acks_of_one_node),
          TEST(test_produce_acks_all_waits_for_the_others), TEST(test_produce_times_out),
          TEST(test_produce_timeout_keeps_the_frame_until_written),
          TEST(test_produce_late_ends_when_written), TEST(test_produce_cancelled_ends),
          TEST(test_produce_min_isr), TEST(test_produce_too_few_after_append),
          TEST(test_produce_leadership_lost), TEST(test_produce_new_epoch_of_our_own),
          TEST(test_produce_s32), TEST(test_produce_old_metadata_is_ignored),
          TEST(test_produce_refusals), TEST(test_produce_idempotent),
          TEST(test_produce_duplicate_of_what_is_staged), TEST(test_produce_flush_messages),
          TEST(test_produce_disk_full), TEST(test_produce_duplicate_beside_a_cut),
          TEST(test_produce_disk_fails))
