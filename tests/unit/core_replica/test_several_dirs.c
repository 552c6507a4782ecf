/* Several log directories: where partitions go, what a start finds in each, what becomes of those
 * in one that fails. */
#include "restart.h"

enum { A, B, C, DIRS };

static const struct uuid ids[DIRS] = {{{1, 1}}, {{2, 2}}, {{3, 3}}};
static const char *const paths[DIRS] = {"/a", "/b", "/c"};
static const struct uuid unassigned = {{[15] = IMAGE_DIRECTORY_UNASSIGNED}};

static void prepare(struct fix *f)
{
    fix_prepare(f);
    f->dirs_n = 0;
    for (size_t i = 0; i < DIRS; i++)
        fix_add_dir(f, paths[i], ids[i]);
}

static void begin(struct fix *f)
{
    prepare(f);
    fix_begin(f);
}

/* A topic of one partition here, which the metadata have in dir. */
static struct uuid topic_in(struct fix *f, const char *name, struct uuid dir)
{
    struct image_delta d;
    struct uuid id = {{9, ++f->next_topic}};
    const struct topic_record t = {str_of(name), id};
    struct partition_record r;
    int32_t one = 1;
    wire_default(&wire_partition_record, &r);
    r.topic_id = id;
    r.partition_id = 0;
    r.replicas.v = r.isr.v = &one;
    r.replicas.n = r.isr.n = r.directories.n = 1;
    r.leader = 1;
    r.leader_epoch = r.partition_epoch = 0;
    r.directories.v = &dir;
    image_delta_init(&d);
    fix_record(f, &msg_topic_record, 0, &t, &d);
    fix_record(f, &msg_partition_record, 1, &r, &d);
    fix_publish(f, &d);
    fix_turn(f);
    return id;
}

static struct uuid topic(struct fix *f, const char *name)
{
    return topic_in(f, name, unassigned);
}

static int dir_of(struct fix *f, struct uuid id)
{
    const struct partition *p = fix_find(f, id, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->dir);
    return (int)p->dir->idx;
}

static bool exists(struct fix *f, const char *path)
{
    struct file_stat st;
    return f->fs.vfs.ops->stat(&f->fs.vfs, path, &st) == ERR_NONE;
}

/* ------------------------------------------------------------------ where they go */

static void test_dirs_new_ones_go_where_there_are_fewest(void)
{
    struct fix f;
    begin(&f);
    const struct uuid first = topic(&f, "t0");
    CU_ASSERT_EQUAL(dir_of(&f, first), A);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t1")), B);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t2")), C);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t3")), A);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t4")), B);
    fix_delete(&f, first);
    fix_turn(&f);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t5")), A);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t6")), C);
    fix_end(&f);
}

static void test_dirs_the_metadata_say(void)
{
    struct fix f;
    const struct uuid stranger = {{8}};
    begin(&f);
    CU_ASSERT_EQUAL(dir_of(&f, topic_in(&f, "t", ids[C])), C);
    CU_ASSERT_EQUAL(dir_of(&f, topic_in(&f, "u", ids[C])), C);
    CU_ASSERT_EQUAL(dir_of(&f, topic_in(&f, "v", stranger)), A); /* none is missing */
    fix_end(&f);
}

static void test_dirs_cordoned_ones_come_last(void)
{
    struct fix f;
    begin(&f);
    fix_set(&f, "cordoned.log.dirs", "/a,/c");
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "t")), B);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "u")), B);
    fix_set(&f, "cordoned.log.dirs", "*"); /* somewhere it has to be */
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "v")), A);
    fix_end(&f);
}

/* ------------------------------------------------------------------ files */

static int64_t hw_in(struct fix *f, int dir, const char *name)
{
    char path[64];
    struct offset_checkpoint c;
    snprintf(path, sizeof path, "%s/%s", paths[dir], hw_file);
    offset_checkpoint_init(&c);
    CU_ASSERT_EQUAL(offset_checkpoint_read(&f->fs.vfs, path, &c), ERR_NONE);
    const int64_t hw = offset_checkpoint_get(&c, str_of(name), 0);
    offset_checkpoint_close(&c);
    return hw;
}

struct found {
    struct dirs dirs;
    struct offset_checkpoint hws, recovery, starts;
};

static void find(struct fix *f, size_t i, struct found *out, struct replicas_found *found)
{
    char path[64];
    out->dirs.n = 0;
    CU_ASSERT_EQUAL(f->fs.vfs.ops->list(&f->fs.vfs, paths[i], add_dir, &out->dirs), ERR_NONE);
    offset_checkpoint_init(&out->hws);
    offset_checkpoint_init(&out->recovery);
    offset_checkpoint_init(&out->starts);
    snprintf(path, sizeof path, "%s/%s", paths[i], hw_file);
    CU_ASSERT_EQUAL(offset_checkpoint_read(&f->fs.vfs, path, &out->hws), ERR_NONE);
    snprintf(path, sizeof path, "%s/%s", paths[i], recovery_file);
    CU_ASSERT_EQUAL(offset_checkpoint_read(&f->fs.vfs, path, &out->recovery), ERR_NONE);
    *found = (struct replicas_found){out->dirs.v,    out->dirs.n,  &out->hws,
                                     &out->recovery, &out->starts, true};
}

/* With the image of before, in new leader epochs; not what is offline. */
static void start_again(struct fix *f)
{
    struct found found[DIRS];
    struct replicas_found args[DIRS] = {{0}};
    struct image_delta everything;
    for (size_t i = 0; i < DIRS; i++)
        if (!f->dirs[i].offline)
            find(f, i, &found[i], &args[i]);
    CU_ASSERT_EQUAL_FATAL(fix_start(f), ERR_NONE);
    image_delta_init(&everything);
    everything.everything = true;
    fix_publish(f, &everything);
    replicas_load(f->rs, args, f->now);
    for (size_t i = 0; i < DIRS; i++) {
        if (f->dirs[i].offline)
            continue;
        free_dirs(&found[i].dirs);
        offset_checkpoint_close(&found[i].hws);
        offset_checkpoint_close(&found[i].recovery);
        offset_checkpoint_close(&found[i].starts);
    }
    fix_turn(f);
}

static void test_dirs_each_has_its_own_files(void)
{
    struct fix f;
    begin(&f);
    struct uuid t[4];
    for (int i = 0; i < 4; i++) {
        const char name[] = {'t', (char)('0' + i), '\0'};
        t[i] = topic(&f, name);
        CU_ASSERT_EQUAL(fix_append(&f, t[i], 0, i + 1), K_NONE);
    }
    fix_stop(&f);
    CU_ASSERT_TRUE(f.clean);
    CU_ASSERT(exists(&f, "/a/t0-0") && exists(&f, "/b/t1-0") && exists(&f, "/c/t2-0") &&
              exists(&f, "/a/t3-0"));
    CU_ASSERT_EQUAL(hw_in(&f, A, "t0"), 1);
    CU_ASSERT_EQUAL(hw_in(&f, A, "t3"), 4);
    CU_ASSERT_EQUAL(hw_in(&f, B, "t1"), 2);
    CU_ASSERT_EQUAL(hw_in(&f, B, "t0"), -1);
    CU_ASSERT_EQUAL(hw_in(&f, C, "t2"), 3);
    start_again(&f);
    CU_ASSERT_EQUAL(f.loaded, 1);
    for (int i = 0; i < 4; i++) {
        const struct partition *p = fix_find(&f, t[i], 0);
        CU_ASSERT_EQUAL(dir_of(&f, t[i]), i % 3);
        CU_ASSERT_EQUAL(log_end_offset(p->log), i + 1);
        CU_ASSERT_EQUAL(p->high_watermark, i + 1);
    }
    CU_ASSERT_EQUAL(f.rs->dirs[A].partitions_n, 2);
    fix_end(&f);
}

static void test_dirs_deleted_where_it_is(void)
{
    struct fix f;
    begin(&f);
    (void)topic(&f, "t");
    const struct uuid u = topic(&f, "u");
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    CU_ASSERT_TRUE(exists(&f, "/b/u-0"));
    fix_delete(&f, u);
    fix_turn(&f);
    CU_ASSERT_FALSE(exists(&f, "/b/u-0"));
    fix_wait(&f, 61000);
    struct dirs d = {.n = 0};
    CU_ASSERT_EQUAL(f.fs.vfs.ops->list(&f.fs.vfs, "/b", add_dir, &d), ERR_NONE);
    CU_ASSERT_EQUAL(d.n, 0);
    free_dirs(&d);
    fix_end(&f);
}

/* A disk came back that had failed while its partition was made anew elsewhere. */
static void test_dirs_found_twice(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "t");
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_stop(&f);
    memfs_mkdirs(&f.fs, "/b/t-0");
    memfs_put(&f.fs, "/b/t-0/00000000000000000000.log", "", 0);
    start_again(&f);
    CU_ASSERT_EQUAL(f.failed, 1);
    CU_ASSERT_EQUAL(f.failed_dirs, 0); /* all of it */
    fix_end(&f);
}

/* Of another topic of that name, which was deleted while the disk was away. */
static void test_dirs_former_topic(void)
{
    static const char meta[] = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg";
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "t");
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_stop(&f);
    memfs_mkdirs(&f.fs, "/b/t-0");
    memfs_put(&f.fs, "/b/t-0/partition.metadata", meta, sizeof meta - 1);
    start_again(&f);
    CU_ASSERT(f.failed == 0 && f.loaded == 1);
    CU_ASSERT_EQUAL(dir_of(&f, t), A);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT(exists(&f, "/a/t-0") && !exists(&f, "/b/t-0"));
    fix_end(&f);
}

/* ------------------------------------------------------------------ failing */

static int16_t fetch_error(struct fix *f, struct uuid t)
{
    struct fix_fetch q;
    fix_fetch_init(&q);
    (void)fix_ask(&q, t, 0, 0);
    fix_fetch_start(f, &q);
    if (q.done == 0)
        replicas_fetch_cancel(&q.op);
    fix_turn(f);
    const int16_t error = fix_answer(&q, t, 0)->error_code;
    fix_fetch_close(&q);
    return error;
}

/* A write fails there. */
static void fail_write(struct fix *f, const char *under, struct uuid t)
{
    memfs_fault_arm(&f->fs, (struct memfs_fault){.nth = 1,
                                                 .persistent = true,
                                                 .err = ERR_IO,
                                                 .kinds = MEMFS_KIND(MEMFS_WRITE),
                                                 .under = under});
    CU_ASSERT_EQUAL(fix_append(f, t, 0, 1), K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_TRUE(memfs_fault_hit(&f->fs));
}

static void test_dirs_one_fails(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "t"), u = topic(&f, "u");
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 2), K_NONE);
    fail_write(&f, "/b", u);
    CU_ASSERT_EQUAL(f.failed_dirs, 1u << B);
    CU_ASSERT_EQUAL(f.failed, 1);
    CU_ASSERT_PTR_NULL(fix_find(&f, u, 0)->log);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_KAFKA_STORAGE_ERROR); /* the disk is well again */
    CU_ASSERT_EQUAL(fetch_error(&f, u), K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fetch_error(&f, t), K_NONE);
    CU_ASSERT_FALSE(replicas_offline(f.rs));
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "v")), C);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "w")), A);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "x")), C);
    fix_stop(&f);
    CU_ASSERT_TRUE(f.clean); /* where it could be */
    CU_ASSERT_EQUAL(hw_in(&f, B, "u"), -1);
    CU_ASSERT_EQUAL(hw_in(&f, A, "t"), 2);
    fix_end(&f);
}

/* Metadata that come later find no log there, and make none. */
static void test_dirs_failed_and_changed(void)
{
    struct fix f;
    int32_t two[] = {1, 2};
    begin(&f);
    fix_broker(&f, 2, 7);
    const struct uuid t = topic(&f, "t"), u = topic(&f, "u");
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    fail_write(&f, "/b", u);
    fix_change(&f, u, 0, -1, NULL, 0);
    fix_change(&f, u, 0, 1, two, 1);
    fix_turn(&f);
    CU_ASSERT_EQUAL(dir_of(&f, u), B);
    CU_ASSERT_PTR_NULL(fix_find(&f, u, 0)->log);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_KAFKA_STORAGE_ERROR);
    fix_delete(&f, u);
    fix_turn(&f);
    CU_ASSERT_PTR_NULL(fix_find(&f, u, 0));
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(f.failed, 1);
    fix_end(&f);
}

/* Who waits is told. */
static void test_dirs_requests_that_wait(void)
{
    struct fix f;
    struct fix_fetch q;
    begin(&f);
    const struct uuid t = topic(&f, "t"), u = topic(&f, "u");
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    fix_fetch_init(&q);
    (void)fix_ask(&q, t, 0, 1);
    (void)fix_ask(&q, u, 0, 1);
    fix_fetch_start(&f, &q);
    CU_ASSERT_EQUAL(q.done, 0);
    log_dir_fail(&f.rs->dirs[B], ERR_IO, "test");
    fix_turn(&f);
    CU_ASSERT_EQUAL_FATAL(q.done, 1);
    CU_ASSERT_EQUAL(fix_answer(&q, u, 0)->error_code, K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(fix_answer(&q, t, 0)->error_code, K_NONE);
    fix_fetch_close(&q);
    fix_end(&f);
}

/* A checkpoint tells, for one that nobody writes to. */
static void test_dirs_a_checkpoint_fails(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "t"), u = topic(&f, "u");
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    memfs_fault_arm(&f.fs, (struct memfs_fault){.nth = 1,
                                                .persistent = true,
                                                .err = ERR_NOENT,
                                                .under = "/b/replication-offset-checkpoint"});
    fix_wait(&f, 5000);
    CU_ASSERT_TRUE(memfs_fault_hit(&f.fs));
    CU_ASSERT_EQUAL(f.failed_dirs, 1u << B);
    CU_ASSERT_EQUAL(hw_in(&f, A, "t"), 1);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    fix_end(&f);
}

/* All but the last, then that: who is told decides. */
static void test_dirs_all_fail(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "t");
    for (size_t i = 0; i < DIRS; i++)
        log_dir_fail(&f.rs->dirs[i], ERR_IO, "test");
    fix_turn(&f);
    CU_ASSERT_EQUAL(f.failed, DIRS);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "u")), A);
    fix_end(&f);
}

/* ------------------------------------------------------------------ at the start */

/* What may be there is not made anew; what the metadata have elsewhere, or nowhere, is. */
static void test_dirs_one_is_missing_at_the_start(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic_in(&f, "t", ids[A]), u = topic_in(&f, "u", ids[B]);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    fix_stop(&f);
    f.dirs[B].offline = true;
    f.dirs[B].id = (struct uuid){{0}};
    start_again(&f);
    CU_ASSERT(f.loaded == 1 && f.failed == 0);
    CU_ASSERT_EQUAL(fix_append(&f, t, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_KAFKA_STORAGE_ERROR);
    CU_ASSERT_EQUAL(dir_of(&f, topic(&f, "v")), C);
    CU_ASSERT_EQUAL(dir_of(&f, topic_in(&f, "w", ids[A])), A);
    fix_stop(&f);
    CU_ASSERT_TRUE(f.clean);
    f.dirs[B].offline = false; /* it is back */
    f.dirs[B].id = ids[B];
    start_again(&f);
    CU_ASSERT_EQUAL(fix_append(&f, u, 0, 1), K_NONE);
    CU_ASSERT_EQUAL(log_end_offset(fix_find(&f, u, 0)->log), 2);
    fix_end(&f);
}

/* A log that cannot be loaded takes its directory with it, and no other. */
static void test_dirs_a_log_cannot_be_loaded(void)
{
    struct fix f;
    begin(&f);
    const struct uuid t = topic(&f, "t"), u = topic(&f, "u"), v = topic(&f, "v"),
                      w = topic(&f, "w"), x = topic(&f, "x");
    const struct uuid all[] = {t, u, v, w, x};
    for (size_t i = 0; i < ARRAY_N(all); i++)
        CU_ASSERT_EQUAL(fix_append(&f, all[i], 0, 1), K_NONE);
    fix_stop(&f);
    memfs_fault_arm(&f.fs, (struct memfs_fault){
                               .nth = 1, .persistent = true, .err = ERR_IO, .under = "/b/u-0"});
    start_again(&f);
    CU_ASSERT_TRUE(memfs_fault_hit(&f.fs));
    CU_ASSERT_EQUAL(f.loaded, 1);
    CU_ASSERT_EQUAL(f.failed_dirs, 1u << B);
    for (size_t i = 0; i < ARRAY_N(all); i++) {
        CU_ASSERT_EQUAL(dir_of(&f, all[i]), (int)i % 3);
        CU_ASSERT_EQUAL(fix_append(&f, all[i], 0, 1), i % 3 == B ? K_KAFKA_STORAGE_ERROR : K_NONE);
    }
    fix_end(&f);
}

TEST_MAIN(TEST(test_dirs_new_ones_go_where_there_are_fewest), TEST(test_dirs_the_metadata_say),
          TEST(test_dirs_cordoned_ones_come_last), TEST(test_dirs_each_has_its_own_files),
          TEST(test_dirs_deleted_where_it_is), TEST(test_dirs_found_twice),
          TEST(test_dirs_former_topic), TEST(test_dirs_one_fails),
          TEST(test_dirs_failed_and_changed), TEST(test_dirs_requests_that_wait),
          TEST(test_dirs_a_checkpoint_fails), TEST(test_dirs_all_fail),
          TEST(test_dirs_one_is_missing_at_the_start), TEST(test_dirs_a_log_cannot_be_loaded))
