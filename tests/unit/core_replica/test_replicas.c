/* The partitions of a broker over their lives: starts, restarts, deletion, a name used again,
 * checkpoint files, closing, memory that runs out. */
#include "restart.h"

/* ------------------------------------------------------------------ restarts */

static void test_replicas_restart_clean(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 3);
    for (int32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, i, 3 + i), K_NONE);
    CU_ASSERT_FALSE(has_dir(&f, "t-2")); /* it gets one with its first batch */
    fix_stop(&f);
    CU_ASSERT(f.clean);
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "t", 0), 3);
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "t", 1), 4);
    CU_ASSERT_EQUAL(checkpointed(&f, recovery_file, "t", 1), 4);
    CU_ASSERT_EQUAL(checkpointed(&f, start_file, "t", 1), -1);
    fix_change(&f, t, 0, 1, NULL, 0); /* what the controller does at every start */
    restart(&f, true);
    const struct partition *p = fix_find(&f, t, 0);
    CU_ASSERT(p->high_watermark == 3 && p->leader_epoch == 1 && p->leader_epoch_start == 3);
    CU_ASSERT_EQUAL(log_epochs(p->log)->n, 2);
    CU_ASSERT_EQUAL(fix_find(&f, t, 1)->high_watermark, 4);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 2)->log), 0);
    for (int32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, i, 1), K_NONE);
    fix_end(&f);
}

static void test_replicas_restart_unclean(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    fix_kill(&f);
    size_t n;
    const uint8_t *bytes = memfs_get(&f.fs, "/data/t-0/00000000000000000000.log", &n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    uint8_t *torn = malloc(n);
    memcpy(torn, bytes, n);
    memfs_put(&f.fs, "/data/t-0/00000000000000000000.log", torn, n - 5);
    free(torn);
    restart(&f, false);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 3);
    CU_ASSERT_EQUAL(fix_find(&f, t, 0)->high_watermark, 3); /* alone: all that it has */
    CU_ASSERT(f.env.lines[LOG_WARN] > 0);
    fix_end(&f);
}

static void test_replicas_start_sets_strangers_aside(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), u = fix_topic(&f, "u", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    fix_stop(&f);
    fix_delete(&f, t);
    fix_delete(&f, u);
    struct uuid again = fix_topic(&f, "u", 1); /* the same name, another topic */
    memfs_mkdirs(&f.fs, "/data/gone-0.0123456789abcdef0123456789abcdef-delete");
    memfs_put(&f.fs, "/data/gone-0.0123456789abcdef0123456789abcdef-delete/x.log", "x", 1);
    memfs_mkdirs(&f.fs, "/data/not a partition");
    char name[300] = "/data/";
    memset(name + 6, 'x', 249);
    strcpy(name + 6 + 249, "-7"); /* it would not fit with what comes behind its name */
    memfs_mkdirs(&f.fs, name);
    restart(&f, true);
    CU_ASSERT_EQUAL(dirs_with(&f, "x-7."), 1);
    CU_ASSERT_EQUAL(dirs_with(&f, "t-0."), 1);
    CU_ASSERT_EQUAL(dirs_with(&f, "u-0."), 1);
    CU_ASSERT_EQUAL(dirs_with(&f, "-stray"), 3);
    CU_ASSERT_EQUAL(dirs_with(&f, "-delete"), 0);
    CU_ASSERT(has_dir(&f, "not a partition"));
    CU_ASSERT_EQUAL(checkpointed(&f, recovery_file, "t", 0), -1);
    CU_ASSERT_EQUAL(fix_append(&f, again, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, again, 0)->log), 1);
    CU_ASSERT_EQUAL(f.failed, 0);
    fix_end(&f);
}

static void test_replicas_corrupt_log_fails_the_directory(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_stop(&f);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .persistent = true,
                                                .err = ERR_IO,
                                                .kinds = MEMFS_KIND(MEMFS_LIST),
                                                .under = "/data/t-0"});
    restart(&f, true);
    CU_ASSERT(memfs_fault_hit(&f.fs));
    CU_ASSERT_EQUAL(f.failed, 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_KAFKA_STORAGE_ERROR);
    fix_end(&f);
}

/* Stopped before all logs were loaded: that is not clean (KAFKA-15375). */
static void test_replicas_stopped_while_loading(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 8);
    for (int32_t i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(fix_append(&f, t, i, 1), K_NONE);
    fix_stop(&f);
    struct dirs d = list_dirs(&f);
    struct offset_checkpoint none;
    struct image_delta everything;
    offset_checkpoint_init(&none);
    const struct replicas_found found = {d.v, d.n, &none, &none, &none, true};
    CU_ASSERT_EQUAL_FATAL(fix_start(&f), ERR_NONE);
    image_delta_init(&everything);
    everything.everything = true;
    fix_publish(&f, &everything);
    replicas_load(f.rs, &found, f.now);
    fix_settle(&f);
    CU_ASSERT(f.env.waiting_n > 0 && f.env.waiting_n < 8); /* a bounded number at a time */
    CU_ASSERT(memenv_run_job(&f.env));
    fix_settle(&f);
    CU_ASSERT_EQUAL(f.loaded, 0);
    fix_stop(&f);
    CU_ASSERT_FALSE(f.clean);
    free_dirs(&d);
    fix_end(&f);
}

/* ------------------------------------------------------------------ deletion */

static void test_replicas_delete_a_topic(void)
{
    struct fix f = {0};
    struct fix_produce p;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), u = fix_topic(&f, "u", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    fix_wait(&f, 60000);
    CU_ASSERT_EQUAL(checkpointed(&f, recovery_file, "t", 0) >= 0, true);
    fix_produce(&f, &p, t, 0, 1, &fix_plain);
    fix_delete(&f, t); /* staged, not written */
    fix_turn(&f);
    CU_ASSERT_EQUAL(p.part.error, K_UNKNOWN_TOPIC_OR_PARTITION);
    fix_produce_close(&p);
    CU_ASSERT_FALSE(has_dir(&f, "t-0"));
    CU_ASSERT_EQUAL(checkpointed(&f, recovery_file, "t", 0), -1); /* at once */
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "t", 0), -1);
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "u", 0), 1);
    CU_ASSERT_EQUAL(f.rs->leaving.n, 0);
    fix_wait(&f, 59999); /* file.delete.delay.ms */
    CU_ASSERT_EQUAL(dirs_with(&f, "-delete"), 1);
    fix_wait(&f, 1);
    CU_ASSERT_EQUAL(dirs_with(&f, "t-0"), 0);
    CU_ASSERT_TRUE(has_dir(&f, "u-0"));
    fix_end(&f);
    CU_ASSERT_EQUAL(f.failed, 0);
}

/* Each topic by its own value; a stop does not wait, the next start removes what is left. */
static void test_replicas_file_delete_delay(void)
{
    struct fix f = {0};
    fix_begin(&f);
    const struct uuid now = fix_topic(&f, "now", 1), later = fix_topic(&f, "later", 1);
    fix_topic_config(&f, "now", "file.delete.delay.ms", "0");
    fix_topic_config(&f, "later", "file.delete.delay.ms", "9223372036854775807");
    CU_ASSERT_EQUAL(fix_append(&f, now, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, later, 0, 1), K_NONE);
    fix_delete(&f, now);
    fix_delete(&f, later);
    fix_turn(&f);
    CU_ASSERT_EQUAL(dirs_with(&f, "now-0"), 0);
    CU_ASSERT_EQUAL(dirs_with(&f, "later-0"), 1);
    fix_wait(&f, 1000000000);
    CU_ASSERT_EQUAL(dirs_with(&f, "later-0"), 1);
    const struct uuid due = fix_topic(&f, "due", 1);
    CU_ASSERT_EQUAL(fix_append(&f, due, 0, 1), K_NONE);
    fix_delete(&f, due);
    fix_turn(&f);
    f.now.mono_us += 60000000; /* when the stop begins; it does not remove any more */
    fix_stop(&f);
    CU_ASSERT_TRUE(f.clean);
    CU_ASSERT_EQUAL(dirs_with(&f, "-delete"), 2);
    restart(&f, true);
    CU_ASSERT_EQUAL(dirs_with(&f, "-delete"), 0);
    fix_end(&f);
    CU_ASSERT_EQUAL(f.failed, 0);
}

/* In one delta, jobs in any order: the new log leads at once, its directory is made when the old
 * one's name is free. */
static void test_replicas_topic_created_again(void)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct fix f = {0};
        struct fix_produce p;
        struct rng rng = {seed};
        fix_begin(&f);
        struct uuid t = fix_topic(&f, "t", 1);
        CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
        fix_produce(&f, &p, t, 0, 1, &fix_plain);
        fix_settle(&f);
        fix_delete(&f, t);
        struct uuid again = fix_topic(&f, "t", 1);
        fix_settle(&f);
        fix_produce_close(&p);
        fix_produce(&f, &p, again, 0, 1, &fix_plain);
        fix_settle(&f);
        CU_ASSERT_EQUAL(p.done, 0);
        CU_ASSERT_EQUAL(log_staged_end(fix_find(&f, again, 0)->log), 1);
        while (f.env.waiting_n > 0) {
            CU_ASSERT(p.done == 0 || dirs_with(&f, "-delete") == 1);
            memenv_run_nth_job(&f.env, rng_below(&rng, f.env.waiting_n));
            fix_settle(&f);
        }
        CU_ASSERT(p.done == 1 && p.part.error == K_NONE && p.part.base_offset == 0);
        fix_produce_close(&p);
        CU_ASSERT_EQUAL(fix_append(&f, again, 0, 1), K_NONE);
        CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, again, 0)->log), 2);
        CU_ASSERT(uuid_eq(log_topic_id(fix_find(&f, again, 0)->log), again));
        CU_ASSERT_EQUAL(dirs_with(&f, "t-0"), 2);
        fix_wait(&f, 60000);
        CU_ASSERT_EQUAL(dirs_with(&f, "t-0"), 1);
        fix_end(&f);
        CU_ASSERT_EQUAL(f.failed, 0);
    }
}

/* The one in between never gets a directory, whenever its close comes. */
static void test_replicas_topic_created_twice_again(void)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fix f = {0};
        struct fix_produce p, q;
        struct rng rng = {seed};
        fix_begin(&f);
        struct uuid first = fix_topic(&f, "t", 1);
        CU_ASSERT_EQUAL(fix_append(&f, first, 0, 3), K_NONE);
        log_flush(fix_find(&f, first, 0)->log,
                  3); /* its directory stays until that job is through */
        fix_delete(&f, first);
        struct uuid second = fix_topic(&f, "t", 1);
        fix_settle(&f);
        fix_produce(&f, &p, second, 0, 1, &fix_plain);
        fix_settle(&f);
        fix_delete(&f, second);
        struct uuid third = fix_topic(&f, "t", 1);
        fix_settle(&f);
        CU_ASSERT(p.done == 1 && p.part.error == K_UNKNOWN_TOPIC_OR_PARTITION);
        fix_produce(&f, &q, third, 0, 1, &fix_plain);
        fix_settle(&f);
        while (f.env.waiting_n > 0) {
            CU_ASSERT(q.done == 0 || dirs_with(&f, "-delete") == 1);
            memenv_run_nth_job(&f.env, rng_below(&rng, f.env.waiting_n));
            fix_settle(&f);
        }
        CU_ASSERT(q.done == 1 && q.part.error == K_NONE);
        CU_ASSERT(f.rs->leaving.n == 0 && dirs_with(&f, "t-0") == 2);
        fix_produce_close(&p);
        fix_produce_close(&q);
        fix_end(&f);
        CU_ASSERT_EQUAL(f.failed, 0);
    }
}

/* ------------------------------------------------------------------ configuration */

static size_t partitions_with_max(struct fix *f, struct uuid topic, int32_t n, int32_t max)
{
    size_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const struct partition *p = fix_find(f, topic, i);
        count += p != NULL && p->config.validate.max_message_bytes == max;
    }
    return count;
}

/* All partitions take other defaults, a part of them in each settle, while others come and go. */
static void test_replicas_defaults_changed(void)
{
    struct fix f = {0};
    fix_begin(&f);
    const struct uuid gone = fix_topic(&f, "gone", 70), t = fix_topic(&f, "t", 200);
    const struct uuid own = fix_topic(&f, "own", 1);
    fix_topic_config(&f, "own", "max.message.bytes", "7");
    fix_turn(&f);
    fix_set(&f, "message.max.bytes", "500");
    replicas_defaults_changed(f.rs, f.now);
    CU_ASSERT_EQUAL(partitions_with_max(&f, gone, 70, 500), 64); /* at once */
    fix_set(&f, "message.max.bytes", "600");
    replicas_defaults_changed(f.rs, f.now); /* once more from the beginning */
    CU_ASSERT_EQUAL(partitions_with_max(&f, gone, 70, 600), 64);
    fix_delete(&f, gone); /* the next of the walk among them */
    const struct uuid fresh = fix_topic(&f, "fresh", 1);
    CU_ASSERT_EQUAL(partitions_with_max(&f, fresh, 1, 600), 1);
    CU_ASSERT_EQUAL(partitions_with_max(&f, t, 200, 600), 0);
    CU_ASSERT_TRUE(replicas_settle(f.rs, f.now));
    CU_ASSERT_EQUAL(partitions_with_max(&f, t, 200, 600), 64);
    fix_turn(&f);
    CU_ASSERT_EQUAL(partitions_with_max(&f, t, 200, 600), 200);
    CU_ASSERT_EQUAL(partitions_with_max(&f, own, 1, 7), 1);
    CU_ASSERT_FALSE(replicas_settle(f.rs, f.now)); /* it has an end */
    fix_set(&f, "message.max.bytes", "700");
    replicas_defaults_changed(f.rs, f.now);
    fix_end(&f); /* in the middle of it */
}

/* A log opens with what its topic holds then, not when its load was queued. */
static void test_replicas_config_changed_while_loading(void)
{
    struct fix f = {0};
    fix_begin(&f);
    const struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    fix_stop(&f);
    struct dirs d = list_dirs(&f);
    struct offset_checkpoint none;
    struct image_delta everything;
    offset_checkpoint_init(&none);
    const struct replicas_found found = {d.v, d.n, &none, &none, &none, false};
    CU_ASSERT_EQUAL_FATAL(fix_start(&f), ERR_NONE);
    image_delta_init(&everything);
    everything.everything = true;
    fix_publish(&f, &everything);
    replicas_load(f.rs, &found, f.now);
    fix_topic_config(&f, "t", "flush.messages", "1");
    fix_turn(&f);
    const struct log *log = fix_find(&f, t, 0)->log;
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(log_end_offset(log), 4);
    CU_ASSERT_EQUAL(log_flushed_end(log), 4); /* its acknowledgement waited for the sync */
    free_dirs(&d);
    offset_checkpoint_close(&none);
    fix_end(&f);
}

/* Partition 0 is at `node` alone. */
static void move_to(struct fix *f, struct uuid id, int32_t node)
{
    struct partition_change_record r;
    struct image_delta d;
    wire_default(&wire_partition_change_record, &r);
    r.topic_id = id;
    r.partition_id = 0;
    r.leader = node;
    r.replicas.v = r.isr.v = &node;
    r.replicas.n = r.isr.n = 1;
    image_delta_init(&d);
    fix_record(f, &msg_partition_change_record, 0, &r, &d);
    fix_publish(f, &d);
}

/* Removed, and added again, while its log is loaded: the log is the new partition's. */
static void test_replicas_added_again_while_loading(void)
{
    struct fix f = {0};
    fix_begin(&f);
    const struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    fix_stop(&f);
    struct dirs d = list_dirs(&f);
    struct offset_checkpoint none;
    struct image_delta everything;
    offset_checkpoint_init(&none);
    const struct replicas_found found = {d.v, d.n, &none, &none, &none, false};
    CU_ASSERT_EQUAL_FATAL(fix_start(&f), ERR_NONE);
    image_delta_init(&everything);
    everything.everything = true;
    fix_publish(&f, &everything);
    replicas_load(f.rs, &found, f.now);
    move_to(&f, t, 2);
    CU_ASSERT_PTR_NULL(fix_find(&f, t, 0));
    move_to(&f, t, 1);
    fix_topic_config(&f, "t", "flush.messages", "1");
    fix_turn(&f);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, t, 0)->log), 3);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE); /* a sync ends, and tells the partition */
    free_dirs(&d);
    offset_checkpoint_close(&none);
    fix_end(&f);
}

/* What the image says of a life of the broker that is over makes nobody a leader: its log may have
 * been longer. */
static void test_replicas_lead_nothing_before_they_are_registered(void)
{
    struct fix f = {0};
    fix_begin(&f);
    const struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    fix_stop(&f);
    f.broker_epoch = -1;
    restart(&f, false);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NOT_LEADER_OR_FOLLOWER);
    CU_ASSERT_EQUAL(log_epochs(fix_find(&f, t, 0)->log)->n, 1);
    f.broker_epoch = 100;
    fix_change(&f, t, 0, 1, NULL, 0); /* elected after it */
    fix_turn(&f);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_end(&f);
}

/* After a snapshot there is no list of what was deleted. */
static void test_replicas_snapshot_forgets_a_topic(void)
{
    struct fix f = {0};
    struct image_delta everything;
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1), u = fix_topic(&f, "u", 2);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 3), K_NONE);
    const struct remove_topic_record r = {t};
    fix_record(&f, &msg_remove_topic_record, 0, &r, NULL);
    image_delta_init(&everything);
    everything.everything = true;
    fix_publish(&f, &everything);
    fix_turn(&f);
    CU_ASSERT_PTR_NULL(fix_find(&f, t, 0));
    CU_ASSERT_PTR_NOT_NULL(fix_find(&f, u, 1));
    CU_ASSERT_FALSE(has_dir(&f, "t-0"));
    CU_ASSERT_EQUAL(f.rs->partitions.n, 2);
    fix_end(&f);
}

/* ------------------------------------------------------------------ checkpoints */

static uint64_t hw_writes(struct fix *f)
{
    return f->fs.ops[MEMFS_RENAME];
}

static void test_replicas_checkpoints_only_changes(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 2), K_NONE);
    fix_wait(&f, 5000);
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "t", 0), 2);
    const uint64_t before = hw_writes(&f);
    for (int i = 0; i < 10; i++)
        fix_wait(&f, 5000);
    CU_ASSERT_EQUAL(hw_writes(&f), before); /* nothing happened */
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_wait(&f, 5000);
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "t", 0), 3);
    CU_ASSERT_EQUAL(hw_writes(&f) > before, true);
    f.now.mono_us += (int64_t)3600 * 1000 * 1000; /* the machine slept: one run, not 720 */
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_turn(&f);
    CU_ASSERT(timers_next_us(&f.timers) > f.now.mono_us);
    fix_end(&f);
}

static void test_replicas_checkpoint_on_a_full_disk(void)
{
    struct fix f = {0};
    fix_begin(&f);
    struct uuid t = fix_topic(&f, "t", 1);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 2), K_NONE);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .err = ERR_NOSPC,
                                                .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                .under = "/data/replication"});
    fix_wait(&f, 5000);
    CU_ASSERT(memfs_fault_hit(&f.fs));
    CU_ASSERT_EQUAL(f.failed, 0);
    fix_wait(&f, 5000); /* tried again though nothing changed */
    CU_ASSERT_EQUAL(checkpointed(&f, hw_file, "t", 0), 2);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .err = ERR_IO,
                                                .kinds = MEMFS_KIND(MEMFS_SYNC),
                                                .under = "/data/replication"});
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_wait(&f, 5000);
    CU_ASSERT(memfs_fault_hit(&f.fs));
    CU_ASSERT_EQUAL(f.failed, 1);
    fix_end(&f);
    CU_ASSERT_FALSE(f.clean);
}

TEST_MAIN(TEST(test_replicas_restart_clean), TEST(test_replicas_restart_unclean),
          TEST(test_replicas_start_sets_strangers_aside),
          TEST(test_replicas_corrupt_log_fails_the_directory),
          TEST(test_replicas_stopped_while_loading), TEST(test_replicas_delete_a_topic),
          TEST(test_replicas_file_delete_delay), TEST(test_replicas_defaults_changed),
          TEST(test_replicas_config_changed_while_loading),
          TEST(test_replicas_added_again_while_loading),
          TEST(test_replicas_lead_nothing_before_they_are_registered),
          TEST(test_replicas_topic_created_again), TEST(test_replicas_topic_created_twice_again),
          TEST(test_replicas_snapshot_forgets_a_topic),
          TEST(test_replicas_checkpoints_only_changes),
          TEST(test_replicas_checkpoint_on_a_full_disk))
