/* Loading a shard from its log (groups.md 1): what it makes of records, what clients hear
 * meanwhile, what it does not understand. */
#include "made.h"

static struct co c;

static void put_offset(int64_t producer_id, const char *group, int32_t index, int64_t offset)
{
    made_put_offset(&c, producer_id, group, index, offset);
}

static void put_marker(int64_t producer_id, bool commit)
{
    struct made m;
    const uint8_t key[4] = {0, 0, 0, commit}, value[6] = {0};
    made_begin(&m, producer_id, BATCH_TRANSACTIONAL | BATCH_CONTROL);
    made_raw(&c, &m, key, sizeof key, value, sizeof value);
    made_end(&c, &m);
}

static void reload(void)
{
    co_restart(&c);
    co_turns(&c);
}

/* ------------------------------------------------------------------ what it makes of records */

static void test_load_restores_offsets(void)
{
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 1, 6), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 7), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "h", 2, 8), K_NONE);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 1), K_NONE);
    CU_ASSERT_EQUAL(co_commit(&c, "gone", 0, 1), K_NONE);
    CU_ASSERT_EQUAL(co_delete(&c, "gone"), K_NONE);
    reload();
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 7);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    CU_ASSERT_EQUAL(co_offset(&c, "h", 2), 8);
    CU_ASSERT(co_exists(&c, "g") && co_exists(&c, "h") && !co_exists(&c, "gone"));
    CU_ASSERT_EQUAL(c.gs->shards[0].groups.n, 2);
    co_end(&c);
}

static void test_load_restores_a_classic_group(void)
{
    struct group *g;
    struct co_list l;
    co_begin(&c);
    CU_ASSERT_EQUAL(group_create_classic(co_shard(&c, 0), STR_LIT("g"), c.f.now, &g), K_NONE);
    fix_turn(&c.f);
    CU_ASSERT(co_exists(&c, "g"));
    reload();
    co_list(&c, &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 1);
    CU_ASSERT_STRING_EQUAL(l.v[0].state, "Empty");
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_NONE);
    reload();
    CU_ASSERT(!co_exists(&c, "g"));
    co_end(&c);
}

static void test_load_ends_transactions(void)
{
    co_begin(&c);
    put_offset(-1, "g", 0, 1);
    put_offset(7, "g", 0, 2); /* committed */
    put_offset(8, "g", 1, 3); /* aborted */
    put_offset(9, "g", 2, 4); /* open */
    put_marker(7, true);
    put_marker(8, false);
    put_offset(7, "g", 3, 5); /* a second one: open */
    reload();
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 2);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 2), -1);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 0, true), 2);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 1, true), -1);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 2, true),
                    CO_ERROR - K_UNSTABLE_OFFSET_COMMIT); /* row 17 */
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 3, true), CO_ERROR - K_UNSTABLE_OFFSET_COMMIT);
    CU_ASSERT_EQUAL(co_offsets_n(&c, "g"), 1);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->producers.n, 2);
    /* a deletion drops what is pending too */
    CU_ASSERT_EQUAL(co_delete_offset(&c, "g", 2), K_NONE);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 2, true), -1);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->producers.n, 1);
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_NONE);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->producers.n, 0);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->topics.n, 0);
    co_end(&c);
}

/* Of a transaction's offset and one committed behind it in the log the later record holds. */
static void test_load_keeps_the_later_record(void)
{
    co_begin(&c);
    put_offset(7, "g", 0, 2);
    put_offset(-1, "g", 0, 3);
    put_offset(7, "g", 1, 2);
    put_offset(-1, "g", 1, 3);
    put_offset(-1, "g", 1, -1); /* a tombstone drops the pending one too */
    put_marker(7, true);
    reload();
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 3);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), -1);
    co_end(&c);
}

/* A deletion that fails gives back what was pending. */
static void test_load_pending_comes_back_with_a_failed_deletion(void)
{
    co_begin(&c);
    put_offset(7, "g", 0, 2);
    reload();
    memfs_fault_arm(&c.f.fs, (struct memfs_fault){.nth = 1,
                                                  .persistent = true,
                                                  .err = ERR_NOSPC,
                                                  .kinds = MEMFS_KIND(MEMFS_WRITE)});
    CU_ASSERT_EQUAL(co_delete(&c, "g"), K_NOT_COORDINATOR);
    (void)memfs_fault_hit(&c.f.fs);
    CU_ASSERT_EQUAL(co_fetch_as(&c, "g", 0, true), CO_ERROR - K_UNSTABLE_OFFSET_COMMIT);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->producers.n, 1);
    co_end(&c);
}

static void test_load_reads_every_version_of_offsets(void)
{
    struct made m;
    co_begin(&c);
    made_begin(&m, -1, 0);
    for (int16_t version = 0; version <= 4; version++) {
        const struct offset_commit_key k = {STR_LIT("g"), STR_LIT("t"), version};
        const struct offset_commit_value value = {.offset = 10 + version,
                                                  .leader_epoch = -1,
                                                  .metadata = STR_LIT("m"),
                                                  .expire_timestamp = version == 1 ? 99 : -1};
        made_add(&c, &m, version % 2,
                 version % 2 ? &msg_offset_commit_key : &msg_legacy_offset_commit_key, &k,
                 &msg_offset_commit_value, version, &value);
    }
    made_end(&c, &m);
    reload();
    for (int16_t version = 0; version <= 4; version++)
        CU_ASSERT_EQUAL(co_offset(&c, "g", version), 10 + version);
    co_end(&c);
}

/* ------------------------------------------------------------------ kinds that are not served */

static void put_consumer_group(const char *group, bool member)
{
    struct made m;
    const struct consumer_group_metadata_key key = {str_of(group)};
    const struct consumer_group_metadata_value value = {.epoch = 3};
    const struct consumer_group_member_metadata_key member_key = {str_of(group), STR_LIT("m")};
    struct consumer_group_member_metadata_value member_value;
    wire_default(&wire_consumer_group_member_metadata_value, &member_value);
    member_value.client_id = member_value.client_host = STR_LIT("");
    made_begin(&m, -1, 0);
    if (member)
        made_add(&c, &m, 5, &msg_consumer_group_member_metadata_key, &member_key,
                 &msg_consumer_group_member_metadata_value, 0, &member_value);
    made_add(&c, &m, 3, &msg_consumer_group_metadata_key, &key, &msg_consumer_group_metadata_value,
             0, &value);
    made_offset(&c, &m, group, 0, 5);
    made_end(&c, &m);
}

static void test_load_knows_other_kinds_of_groups(void)
{
    struct co_list l;
    struct co_commit q;
    co_begin(&c);
    put_consumer_group("full", true);
    put_consumer_group("empty", false);
    reload();
    co_list(&c, &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 2);
    CU_ASSERT_STRING_EQUAL(l.v[0].type, "consumer");
    CU_ASSERT_STRING_EQUAL(l.v[0].protocol, "consumer");
    CU_ASSERT_STRING_EQUAL(l.v[0].state, "Stable");
    CU_ASSERT_STRING_EQUAL(l.v[1].state, "Empty");
    CU_ASSERT_EQUAL(co_offset(&c, "full", 0), 5);
    CU_ASSERT_EQUAL(co_commit(&c, "full", 0, 6), K_UNKNOWN_MEMBER_ID);
    CU_ASSERT_EQUAL(co_delete(&c, "full"), K_NON_EMPTY_GROUP);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "full", 0), K_GROUP_SUBSCRIBED_TO_TOPIC);
    CU_ASSERT_EQUAL(co_commit(&c, "empty", 0, 6), K_NONE);
    co_commit_init(&q, "empty");
    q.op.generation = 3;
    q.op.member = STR_LIT("m");
    co_part(&c, &q, "t", 0, 1, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    CU_ASSERT_EQUAL(q.parts[0].error, K_UNKNOWN_MEMBER_ID);
    /* nobody sends heartbeats for its member: its session ends */
    co_wait(&c, 45000);
    CU_ASSERT_EQUAL(co_commit(&c, "full", 0, 7), K_NONE);
    CU_ASSERT_EQUAL(co_delete(&c, "full"), K_NONE);
    reload();
    CU_ASSERT(!co_exists(&c, "full") && co_exists(&c, "empty"));
    co_end(&c);
}

/* JoinGroup makes it so (groups.md 2, step 2). */
static void test_load_empty_groups_become_classic(void)
{
    struct group *g;
    struct co_list l;
    co_begin(&c);
    put_consumer_group("g", true);
    reload();
    co_wait(&c, 45000);
    memfs_fault_arm(&c.f.fs, (struct memfs_fault){.nth = 1,
                                                  .persistent = true,
                                                  .err = ERR_NOSPC,
                                                  .kinds = MEMFS_KIND(MEMFS_WRITE)});
    CU_ASSERT_EQUAL(group_create_classic(co_shard(&c, 0), STR_LIT("g"), c.f.now, &g), K_NONE);
    CU_ASSERT_EQUAL(group_kind(g), GROUP_CLASSIC);
    fix_turn(&c.f);
    (void)memfs_fault_hit(&c.f.fs);
    CU_ASSERT_EQUAL(group_kind(g), GROUP_CONSUMER);
    CU_ASSERT_EQUAL(group_create_classic(co_shard(&c, 0), STR_LIT("g"), c.f.now, &g), K_NONE);
    fix_turn(&c.f);
    for (int i = 0; i < 2; i++) {
        co_list(&c, &l);
        CU_ASSERT_EQUAL_FATAL(l.n, 1);
        CU_ASSERT_STRING_EQUAL(l.v[0].type, "classic");
        CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
        reload();
    }
    co_end(&c);
}

static void test_load_share_groups_have_no_offsets(void)
{
    struct made m;
    const struct share_group_metadata_key key = {STR_LIT("s")};
    const struct share_group_metadata_value value = {.epoch = 1};
    co_begin(&c);
    made_begin(&m, -1, 0);
    made_add(&c, &m, 11, &msg_share_group_metadata_key, &key, &msg_share_group_metadata_value, 0,
             &value);
    made_end(&c, &m);
    reload();
    CU_ASSERT_EQUAL(co_commit(&c, "s", 0, 1), K_GROUP_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(co_offset(&c, "s", 0), -1);
    CU_ASSERT_EQUAL(co_delete_offset(&c, "s", 0), K_GROUP_ID_NOT_FOUND);
    CU_ASSERT_EQUAL(co_delete(&c, "s"), K_NONE);
    CU_ASSERT(!co_exists(&c, "s"));
    co_end(&c);
}

/* ------------------------------------------------------------------ what it does not understand */

static void put_raw(const void *key, size_t key_n, const void *value, size_t value_n)
{
    struct made m;
    made_begin(&m, -1, 0);
    made_raw(&c, &m, key, key_n, value, value_n);
    made_end(&c, &m);
}

static void test_load_skips_unknown_keys(void)
{
    co_begin(&c);
    put_raw("\x00\x63unknown", 9, "\0\0", 2);
    put_raw("\x00\x09unknown", 9, "\0\0", 2);
    put_offset(-1, "g", 0, 5);
    reload();
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(c.f.env.lines[LOG_WARN], 2);
    co_end(&c);
}

/* Until the next election, which reads it again. */
static void refused(void)
{
    struct co_list l;
    int32_t one[] = {1};
    reload();
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_FAILED);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), CO_ERROR - K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 1), K_NOT_COORDINATOR);
    CU_ASSERT(co_list(&c, &l) == K_NONE && l.n == 0);
    CU_ASSERT(c.f.env.lines[LOG_ERROR] > 0);
    fix_change(&c.f, c.offsets, 0, 1, one, 1);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_FAILED);
    co_end(&c);
}

static void test_load_fails_at_what_it_cannot_decode(void)
{
    static const struct {
        const char *key;
        size_t key_n;
        const char *value;
        size_t value_n;
    } bad[] = {
        {"", 0, "\0\0", 2},                                                /* no type */
        {"\x00\x01", 2, "\x00\x04", 2},                                    /* a key cut short */
        {"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", 12, "", 0},         /* no version */
        {"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", 12, "\x00\x63", 2}, /* an unknown version */
        {"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", 12, "\x00\x04\x00", 3},
        {"\x00\x02\x00\x01g", 5, "\x00\x03\x00", 3},
        {"\x00\x02\x00\x01gx", 6, "\x00\x03\x00", 3}, /* bytes behind the key */
    };
    for (size_t i = 0; i < ARRAY_N(bad); i++) {
        co_begin(&c);
        put_offset(-1, "g", 0, 5);
        put_raw(bad[i].key, bad[i].key_n, bad[i].value, bad[i].value_n);
        refused();
    }
}

static void test_load_fails_at_two_kinds_of_one_group(void)
{
    struct group *g;
    co_begin(&c);
    CU_ASSERT_EQUAL(group_create_classic(co_shard(&c, 0), STR_LIT("g"), c.f.now, &g), K_NONE);
    fix_turn(&c.f);
    put_consumer_group("g", true);
    refused();
}

/* Offsets that came first do not make it classic. */
static void test_load_takes_a_simple_group_for_another_kind(void)
{
    struct co_list l;
    co_begin(&c);
    put_offset(-1, "g", 1, 5);
    put_consumer_group("g", false);
    reload();
    co_list(&c, &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 1);
    CU_ASSERT_STRING_EQUAL(l.v[0].type, "consumer");
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 5);
    co_end(&c);
}

/* ------------------------------------------------------------------ meanwhile */

static void test_load_in_slices(void)
{
    struct co_list l;
    char metadata[2001];
    memset(metadata, 'm', 2000);
    metadata[2000] = 0;
    co_begin(&c);
    for (int i = 0; i < 400; i++) {
        char name[16];
        struct co_commit q;
        snprintf(name, sizeof name, "g%d", i);
        co_commit_init(&q, name);
        co_part(&c, &q, "t", 0, i, metadata);
        co_commit_start(&c, &q);
        fix_turn(&c.f);
        CU_ASSERT_EQUAL(q.parts[0].error, K_NONE);
    }
    co_restart(&c);
    int turns = 0;
    while (co_shard(&c, 0)->state != SHARD_ACTIVE && turns < 100) {
        const uint64_t before = c.f.fs.read_bytes;
        CU_ASSERT_EQUAL(co_offset(&c, "g1", 0), CO_ERROR - K_COORDINATOR_LOAD_IN_PROGRESS);
        if (co_shard(&c, 0)->state == SHARD_ACTIVE)
            break; /* that request's turn was the last */
        CU_ASSERT_EQUAL(co_list(&c, &l), K_COORDINATOR_LOAD_IN_PROGRESS);
        CU_ASSERT_EQUAL(co_commit(&c, "g1", 0, 5), K_COORDINATOR_LOAD_IN_PROGRESS);
        CU_ASSERT(c.f.fs.read_bytes - before < 2u << 20);
        turns++;
    }
    CU_ASSERT(turns > 2);
    CU_ASSERT_EQUAL(co_offset(&c, "g1", 0), 1);
    CU_ASSERT_EQUAL(co_offset(&c, "g399", 0), 399);
    co_end(&c);
}

/* What is not in the page cache is read ahead by a job. */
static void test_load_from_a_cold_disk(void)
{
    co_begin(&c);
    for (int i = 0; i < 50; i++)
        CU_ASSERT_EQUAL(co_commit(&c, "g", 0, i), K_NONE);
    co_restart(&c);
    memfs_cool(&c.f.fs);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 49);
    co_end(&c);
}

/* A new epoch of the same leader reads everything again, what it has staged too. */
static void test_load_again_at_each_election(void)
{
    struct co_commit q;
    int32_t one[] = {1};
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 1, 6, "");
    co_commit_start(&c, &q);
    fix_change(&c.f, c.offsets, 0, 1, one, 1); /* before it is written */
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_LOADING);
    co_turns(&c);
    CU_ASSERT(q.done == 1 && q.parts[0].error == K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_ACTIVE);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 1), 6); /* it was written all the same */
    CU_ASSERT_EQUAL(co_commit(&c, "g", 2, 7), K_NONE);
    co_end(&c);
}

/* What is staged and cannot be written yet, for its directory is being made, is waited for. */
static void test_load_waits_for_what_is_staged(void)
{
    struct co_commit q;
    int32_t one[] = {1};
    co_begin(&c);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_commit_start(&c, &q);
    fix_settle(&c.f); /* no job has run */
    fix_change(&c.f, c.offsets, 0, 1, one, 1);
    for (int i = 0; i < 3; i++) {
        timers_run(&c.f.timers, c.f.now.mono_us);
        fix_settle(&c.f);
        CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_LOADING);
    }
    co_turns(&c);
    CU_ASSERT_EQUAL(q.parts[0].error, K_NOT_COORDINATOR);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_end(&c);
}

/* Bytes that rotted under a batch. */
static void test_load_fails_at_a_wrong_checksum(void)
{
    struct file *f;
    struct iov iov = {"X", 1};
    int32_t one[] = {1};
    co_begin(&c);
    CU_ASSERT_EQUAL(co_commit(&c, "g", 0, 5), K_NONE);
    CU_ASSERT_EQUAL_FATAL(
        c.f.fs.vfs.ops->open(&c.f.fs.vfs, "/data/__consumer_offsets-0/00000000000000000000.log",
                             FILE_WRITE, &f),
        ERR_NONE);
    CU_ASSERT_EQUAL(c.f.fs.vfs.ops->pwritev(f, &iov, 1, 90), ERR_NONE);
    file_unref(f);
    fix_change(&c.f, c.offsets, 0, 1, one, 1);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_shard(&c, 0)->state, SHARD_FAILED);
    co_end(&c);
}

/* Behind what is not replicated everywhere nobody reads. */
static void test_load_waits_for_the_high_watermark(void)
{
    int32_t two[] = {1, 2}, one[] = {1};
    struct co_commit q;
    co_begin_on(&c, 1, two, 2);
    co_commit_init(&q, "g");
    co_part(&c, &q, "t", 0, 5, "");
    co_commit_start(&c, &q);
    fix_turn(&c.f);
    fix_change(&c.f, c.offsets, 0, 1, NULL, 0);
    co_turns(&c);
    CU_ASSERT_EQUAL(q.done, 1);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), CO_ERROR - K_COORDINATOR_LOAD_IN_PROGRESS);
    c.f.now.mono_us += 31000 * 1000;
    fix_change(&c.f, c.offsets, 0, -2, one, 1);
    co_turns(&c);
    CU_ASSERT_EQUAL(co_offset(&c, "g", 0), 5);
    co_end(&c);
}

TEST_MAIN(TEST(test_load_restores_offsets), TEST(test_load_restores_a_classic_group),
          TEST(test_load_ends_transactions), TEST(test_load_keeps_the_later_record),
          TEST(test_load_pending_comes_back_with_a_failed_deletion),
          TEST(test_load_reads_every_version_of_offsets),
          TEST(test_load_knows_other_kinds_of_groups), TEST(test_load_empty_groups_become_classic),
          TEST(test_load_share_groups_have_no_offsets), TEST(test_load_skips_unknown_keys),
          TEST(test_load_fails_at_what_it_cannot_decode),
          TEST(test_load_fails_at_two_kinds_of_one_group),
          TEST(test_load_takes_a_simple_group_for_another_kind), TEST(test_load_in_slices),
          TEST(test_load_from_a_cold_disk), TEST(test_load_again_at_each_election),
          TEST(test_load_waits_for_what_is_staged), TEST(test_load_fails_at_a_wrong_checksum),
          TEST(test_load_waits_for_the_high_watermark))
